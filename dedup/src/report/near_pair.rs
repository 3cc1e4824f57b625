//! Pairs of documents, for tables and callers.

use crate::corpus::Told;
use crate::rows::{MemberRow, ScoreWithError, StoredRow};
use simstore_io::result_table::Cell;
use simstore_io::{DocumentId, IdRef};

/// A document, and another one: a near document, the document that it duplicates, or the representative of its cluster.
pub(crate) struct Pair {
    pub(crate) document: usize,
    pub(crate) other: Other,
    pub(crate) how: How,
}

/// The other document of a pair.
pub(crate) enum Other {
    Document(usize),
    /// Id of a stored document, and the number of its store.
    Stored(DocumentId, usize),
}

impl Other {
    pub(crate) fn id<'a>(&'a self, told: &'a Told<'_>) -> IdRef<'a> {
        match self {
            Other::Document(document) => told.id(*document),
            Other::Stored(id, _) => id.into(),
        }
    }

    pub(crate) fn into_id(self, told: &Told<'_>) -> DocumentId {
        match self {
            Other::Document(document) => told.id(document).into(),
            Other::Stored(id, _) => id,
        }
    }

    /// Index of the document; `None` for a stored document.
    pub(crate) fn document(&self) -> Option<usize> {
        if let Other::Document(document) = self { Some(*document) } else { None }
    }

    /// Number of the store of a stored document.
    pub(crate) fn store(&self) -> Option<usize> {
        if let Other::Stored(_, store) = self { Some(*store) } else { None }
    }
}

/// Reason why a document is not kept, before ids are known.
pub(crate) enum Why {
    /// A near stored document.
    Stored(usize, StoredRow, ScoreWithError),
    /// The nearest kept document, or the representative of the cluster.
    Member(MemberRow),
}

/// How near two documents are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct How {
    /// Of the fingerprints, in bits.
    pub(crate) distance: Option<u32>,
    /// Of the texts, from 0 to 1.
    pub(crate) similarity: Option<f64>,
    /// The standard error of the similarity, where that is estimated.
    pub(crate) error: Option<f64>,
}

impl How {
    pub(crate) fn cells<'a>(self, with_errors: bool) -> impl Iterator<Item = Cell<'a>> {
        let distance = self.distance.map(|distance| Cell::Count(u64::from(distance)));
        // Without an error, the similarity is exact.
        let error = with_errors.then(|| Cell::Share(self.error.unwrap_or_default()));
        distance.into_iter().chain(self.similarity.map(Cell::Share)).chain(error)
    }
}
