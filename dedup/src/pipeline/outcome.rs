//! Result of the stages.

use crate::pipeline::boilerplate::Boilerplate;
use crate::pipeline::clusters::{Clusters, NearDocuments};
use crate::pipeline::nearest::Nearest;
use crate::pipeline::stored::matches::FoundStored;
use simstore_corpus::spill::Rows;

/// Result of the stages.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) clusters: Clusters,
    pub(crate) stored: FoundStored,
    pub(crate) near: NearDocuments,
    /// Nearest documents, where these are not the representatives of their clusters; by document.
    pub(crate) nearest: Rows<Nearest>,
    /// Number of different fingerprints, or of different sets of features.
    pub(crate) distinct: usize,
    /// How many pairs of texts were compared, and how many of them were not alike, where texts are compared.
    pub(crate) compared: Option<(u64, u64)>,
    pub(crate) boilerplate: Option<Boilerplate>,
}
