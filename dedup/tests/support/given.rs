//! Documents and fingerprints that are handed over, and how they are compared.

use simstore::Fingerprint;
use simstore_corpus::Inputs;
use simstore_dedup::{Compare, Distance, Verify};
use simstore_io::{Document, DocumentId};

/// Texts with their ids.
pub(crate) fn texts(documents: impl IntoIterator<Item = (DocumentId, String)>) -> Inputs {
    let documents: Vec<_> = documents.into_iter().map(|(id, text)| Ok(Document::new(id, text))).collect();
    Inputs::of_documents(documents)
}

/// Texts whose ids are their positions.
pub(crate) fn numbered(all: &[String]) -> Inputs {
    texts((0..).map(DocumentId::Number).zip(all.iter().cloned()))
}

/// Fingerprints with their ids.
pub(crate) fn values<F: Fingerprint>(all: impl IntoIterator<Item = (DocumentId, F)>) -> Inputs {
    let (ids, fingerprints) = all.into_iter().unzip();
    Inputs::of_fingerprints(fingerprints, Some(ids)).unwrap()
}

/// Within so many bits, if so much of the texts is the same.
pub(crate) fn verified(most: u32, least: f64) -> Compare {
    let verify = Some(Verify { least, profile: None });
    Compare::Distance(Distance { most: Some(most), verify, ..Distance::default() })
}
