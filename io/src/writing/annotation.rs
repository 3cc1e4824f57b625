//! What is written beside a document.

/// The cluster of a document, written beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotation<'a> {
    /// The name of the field or column. The same for all documents of an output.
    pub field: &'a str,
    /// The number of the cluster; `None` if the document is in none.
    pub cluster: Option<u64>,
}

impl Default for Annotation<'_> {
    /// In no cluster, as the field `cluster` tells.
    fn default() -> Self {
        Annotation { field: "cluster", cluster: None }
    }
}
