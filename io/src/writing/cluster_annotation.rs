//! The cluster id that is written with a document.

/// Cluster of a document, written as an additional field or column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterAnnotation<'a> {
    /// Name of the field or column. All documents of an output must have the same one.
    pub field: &'a str,
    /// Id of the cluster; `None` if the document is in no cluster.
    pub cluster: Option<u64>,
}

impl Default for ClusterAnnotation<'_> {
    /// No cluster, in the field `cluster`.
    fn default() -> Self {
        ClusterAnnotation { field: "cluster", cluster: None }
    }
}
