//! The cluster id that is written with a document.

/// Cluster of a document, written as an additional field or column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterAnnotation<'a> {
    /// Name of the field or column that is added. It must be the same for all documents of an output.
    pub field: &'a str,
    /// Id of the cluster; `None` if the document is in no cluster.
    pub cluster: Option<u64>,
}

impl Default for ClusterAnnotation<'_> {
    /// Returns an annotation in the field `cluster` that says that the document is in no cluster.
    fn default() -> Self {
        ClusterAnnotation { field: "cluster", cluster: None }
    }
}
