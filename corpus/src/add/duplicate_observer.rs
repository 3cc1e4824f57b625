//! Reports of documents that are not stored because they are duplicates.

use crate::Item;
use simstore::{Fingerprint, Match, Result, Snapshot};
use simstore_text::SimilarDocument;

/// Receives the documents that are not stored because a similar one is stored. `()` ignores them.
pub trait DuplicateObserver<F: Fingerprint> {
    /// Called for a document that is not stored: `earlier` are the matches in `store` within the distance, nearest first.
    ///
    /// # Errors
    /// Any error ends the job, and the document does not count as read.
    fn near_duplicate(&mut self, item: &Item<F>, earlier: &[Match<F>], store: &Snapshot<F>) -> Result<()>;

    /// Called for a document that is not stored in a store of similar documents: `earlier` are the similar documents, most
    /// similar first.
    ///
    /// # Errors
    /// Any error ends the job, and the document does not count as read.
    fn similar_duplicate(&mut self, _item: &Item<F>, _earlier: &[SimilarDocument]) -> Result<()> {
        Ok(())
    }

    /// Writes out all reports received so far. Called before the reported documents are recorded as read, because no later
    /// call reports them again.
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
