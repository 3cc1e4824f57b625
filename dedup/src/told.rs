//! Facts about one document or two, for tables and callers.

use super::model::{Measure, Member, Nearness, Stored};
use simstore_io::rows::Cell;
use simstore_io::{DocumentId, IdRef};

/// A document and another one that it is near to.
pub(super) struct Near<'a> {
    pub(super) document: usize,
    pub(super) other: Other<'a>,
    pub(super) how: How,
}

/// The other document of a near pair.
pub(super) enum Other<'a> {
    /// A later document.
    Document(usize),
    /// A stored document, by its name, and the number of its store.
    Stored(IdRef<'a>, usize),
}

/// Why a document is not kept.
pub(super) struct Reason {
    pub(super) document: usize,
    /// The document that it is a duplicate of.
    pub(super) of: Named,
    pub(super) how: How,
}

/// As [`Reason`], before the names of documents are known.
pub(super) enum Why<F> {
    Stored(Stored<F>, Measure),
    Nearest(usize, Nearness),
    Cluster(Member),
}

/// Name of a document or a stored document.
pub(super) struct Named {
    pub(super) id: DocumentId,
    /// Where it stands, in case its id does not tell which one it is.
    pub(super) place: Option<String>,
    /// The document; `None` for something stored.
    pub(super) document: Option<usize>,
    /// The store that has it.
    pub(super) store: Option<usize>,
}

/// How near two documents are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct How {
    /// Of the fingerprints, in bits.
    pub(super) distance: Option<u32>,
    /// Of the texts, from 0 to 1.
    pub(super) similarity: Option<f64>,
    /// The standard error of the similarity, where that is estimated.
    pub(super) error: Option<f64>,
}

impl How {
    pub(super) fn cells<'a>(self, with_errors: bool) -> impl Iterator<Item = Cell<'a>> {
        let distance = self.distance.map(|distance| Cell::Count(u64::from(distance)));
        // Without an error, the similarity is exact.
        let error = with_errors.then(|| Cell::Share(self.error.unwrap_or_default()));
        distance.into_iter().chain(self.similarity.map(Cell::Share)).chain(error)
    }
}
