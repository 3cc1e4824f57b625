//! Facts about one document or two, for tables and callers.

use crate::rows::{Measure, Member, Nearness, Stored};
use simstore_io::rows::Cell;
use simstore_io::{DocumentId, IdRef};

/// A document and another one that it is near to.
pub(crate) struct Near<'a> {
    pub(crate) document: usize,
    pub(crate) other: Other<'a>,
    pub(crate) how: How,
}

/// The other document of a near pair.
pub(crate) enum Other<'a> {
    /// A later document.
    Document(usize),
    /// A stored document, by its name, and the number of its store.
    Stored(IdRef<'a>, usize),
}

/// Why a document is not kept.
pub(crate) struct Reason {
    pub(crate) document: usize,
    /// The document that it is a duplicate of.
    pub(crate) of: Named,
    pub(crate) how: How,
}

/// As [`Reason`], before the names of documents are known.
pub(crate) enum Why {
    Stored(Stored, Measure),
    Nearest(usize, Nearness),
    Cluster(Member),
}

/// Name of a document or a stored document.
pub(crate) struct Named {
    pub(crate) id: DocumentId,
    /// Where it stands, in case its id does not tell which one it is.
    pub(crate) place: Option<String>,
    /// The document; `None` for something stored.
    pub(crate) document: Option<usize>,
    /// The store that has it.
    pub(crate) store: Option<usize>,
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
