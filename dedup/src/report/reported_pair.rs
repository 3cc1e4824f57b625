//! Pairs of documents with ids, for output tables and for callers of the library.

use crate::documents::DocumentLookup;
use crate::rows::{MemberRow, ScoreWithError, StoredRow};
use simstore_io::result_table::Cell;
use simstore_io::{DocumentId, IdRef};

/// Input document (`document`) and a related document (`other`). The related document is a near-duplicate of the
/// input document, the document that it duplicates, or the representative of its cluster.
pub(crate) struct ReportedPair {
    pub(crate) document: usize,
    pub(crate) other: OtherDocument,
    pub(crate) proximity: Proximity,
}

/// The second document of a pair: an input document or a stored document.
pub(crate) enum OtherDocument {
    /// Index of an input document in the corpus.
    Document(usize),
    /// Id of a stored document, and the index of its store.
    Stored(DocumentId, usize),
}

impl OtherDocument {
    pub(crate) fn id<'a>(&'a self, lookup: &'a DocumentLookup<'_>) -> IdRef<'a> {
        match self {
            OtherDocument::Document(document) => lookup.id(*document),
            OtherDocument::Stored(id, _) => id.into(),
        }
    }

    pub(crate) fn into_id(self, lookup: &DocumentLookup<'_>) -> DocumentId {
        match self {
            OtherDocument::Document(document) => lookup.id(document).into(),
            OtherDocument::Stored(id, _) => id,
        }
    }

    /// Returns the index of an input document in the corpus; `None` for a stored document.
    pub(crate) fn document(&self) -> Option<usize> {
        if let OtherDocument::Document(document) = self { Some(*document) } else { None }
    }

    /// Returns the index of the store of a stored document; `None` for an input document.
    pub(crate) fn store(&self) -> Option<usize> {
        if let OtherDocument::Stored(_, store) = self { Some(*store) } else { None }
    }
}

/// Reason why a document is removed: another document that it duplicates. If that is a stored document, its name
/// must still be looked up in the store.
pub(crate) enum RemovalReason {
    /// The document duplicates a stored document: (index of the removed document, stored document, score).
    Stored(usize, StoredRow, ScoreWithError),
    /// The document duplicates an input document. The row has the removed document, and as `representative` the
    /// document that it duplicates, which is not always the representative of its cluster.
    Member(MemberRow),
}

/// Distance or similarity of two documents.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Proximity {
    /// Hamming distance of the fingerprints in bits; `None` if documents are compared by similarity.
    pub(crate) distance: Option<u32>,
    /// Jaccard similarity of the texts, from 0 to 1; `None` if texts are not compared.
    pub(crate) similarity: Option<f64>,
    /// Standard error of the similarity; `None` or 0 if the similarity is exact.
    pub(crate) standard_error: Option<f64>,
}

impl Proximity {
    /// Returns the cells for a table row: the distance, the similarity, or both, whichever is known; then the
    /// standard error if `with_errors` is set.
    pub(crate) fn cells<'a>(self, with_errors: bool) -> impl Iterator<Item = Cell<'a>> {
        let distance = self.distance.map(|distance| Cell::Count(u64::from(distance)));
        // An exact similarity has the standard error 0.
        let error = with_errors.then(|| Cell::Share(self.standard_error.unwrap_or_default()));
        distance.into_iter().chain(self.similarity.map(Cell::Share)).chain(error)
    }
}
