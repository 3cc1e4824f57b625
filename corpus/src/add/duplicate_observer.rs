//! Reports of documents that are not stored because they are duplicates.

use crate::Item;
use simstore::{Fingerprint, Match, Result, Snapshot};
use simstore_text::SimilarDocument;

/// Receives the documents that are not stored because a similar document is already stored. `()` ignores them.
pub trait DuplicateObserver<F: Fingerprint> {
    /// Called for a document that is not stored, because near fingerprints are already stored. `earlier` has the stored
    /// fingerprints within the distance of `store`, nearest first.
    ///
    /// # Errors
    /// Any error ends the job, and the document does not count as read.
    fn near_duplicate(&mut self, item: &Item<F>, earlier: &[Match<F>], store: &Snapshot<F>) -> Result<()>;

    /// Called for a document that is not stored, instead of [`near_duplicate`](Self::near_duplicate), if the store is a
    /// [store of similar documents](simstore_text::open_similar_store). `earlier` has the similar stored documents, most
    /// similar first.
    ///
    /// # Errors
    /// Any error ends the job, and the document does not count as read.
    fn similar_duplicate(&mut self, _item: &Item<F>, _earlier: &[SimilarDocument]) -> Result<()> {
        Ok(())
    }

    /// Writes out all reports received so far. Called before the reported documents are recorded as read. Later jobs skip the
    /// recorded documents, so they are not reported again.
    ///
    /// # Errors
    /// Any error ends the job, and the documents do not count as read.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl<F: Fingerprint> DuplicateObserver<F> for () {
    fn near_duplicate(&mut self, _: &Item<F>, _: &[Match<F>], _: &Snapshot<F>) -> Result<()> {
        Ok(())
    }
}
