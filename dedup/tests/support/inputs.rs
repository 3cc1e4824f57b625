//! Creates inputs in memory for tests, and a configuration that verifies texts.

use simstore::Fingerprint;
use simstore_corpus::Inputs;
use simstore_dedup::{ComparisonConfig, DistanceConfig, VerifyConfig};
use simstore_io::{Document, DocumentId};

/// Creates inputs from ids and texts.
pub(crate) fn texts(documents: impl IntoIterator<Item = (DocumentId, String)>) -> Inputs {
    let documents: Vec<_> = documents.into_iter().map(|(id, text)| Ok(Document::new(id, text))).collect();
    Inputs::from_documents(documents)
}

/// Creates inputs from texts. The id of a text is its index in `all`.
pub(crate) fn numbered(all: &[String]) -> Inputs {
    texts((0..).map(DocumentId::Number).zip(all.iter().cloned()))
}

/// Creates inputs from ids and fingerprints.
pub(crate) fn values<F: Fingerprint>(all: impl IntoIterator<Item = (DocumentId, F)>) -> Inputs {
    let (ids, fingerprints) = all.into_iter().unzip();
    Inputs::from_fingerprints(fingerprints, Some(ids)).unwrap()
}

/// Returns a configuration that compares fingerprints by a distance of up to `most` bits, and verifies that the
/// texts have a similarity of at least `least`.
pub(crate) fn verified(most: u32, least: f64) -> ComparisonConfig {
    let verify = Some(VerifyConfig { min_similarity: least, profile: None });
    ComparisonConfig::Distance(DistanceConfig {
        max_distance: Some(most),
        verify,
        ..DistanceConfig::default()
    })
}
