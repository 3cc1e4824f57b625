//! Who hears of documents that are not stored.

use crate::Item;
use simstore::{Fingerprint, Match, Result, Snapshot};
use simstore_text::SimilarDocument;

/// Hears of documents that are not stored since something near is. `()` is one that does not care.
pub trait Listener<F: Fingerprint> {
    /// A document is not stored: these were within the distance, in this store, the nearest first.
    ///
    /// # Errors
    /// Any error ends the work; the document counts as not read.
    fn duplicate(&mut self, item: &Item<F>, earlier: &[Match<F>], store: &Snapshot<F>) -> Result<()>;

    /// A document is not stored: these are similar, in this store of similar documents, the most similar first.
    ///
    /// # Errors
    /// Any error ends the work; the document counts as not read.
    fn similar(&mut self, _item: &Item<F>, _earlier: &[SimilarDocument]) -> Result<()> {
        Ok(())
    }

    /// The documents that were told of are about to count as read: what was said of them has to be out, since no call will
    /// tell it again.
    ///
    /// # Errors
    /// Any error ends the work; the documents count as not read.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl<F: Fingerprint> Listener<F> for () {
    fn duplicate(&mut self, _: &Item<F>, _: &[Match<F>], _: &Snapshot<F>) -> Result<()> {
        Ok(())
    }
}
