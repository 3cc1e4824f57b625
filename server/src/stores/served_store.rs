//! The requests that a store answers.

use super::store_upkeep::StoreUpkeep;
use crate::messages::{
    AnswerId, ComparedSide, ComparisonAnswer, DocumentAnswer, DocumentMessage, JsonId, MatchList,
    QueryMessage, StoreStats, StoredDocumentMessage, TraceAnswer,
};
use crate::service_error::ServiceResult;

/// Whether an addition looks for near-duplicates first, and how many of them the answer lists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdditionOptions {
    pub(crate) if_new: bool,
    pub(crate) limit: usize,
}

/// A store that answers requests from any number of threads.
pub(crate) trait ServedStore: Send + Sync {
    /// Adds a document. When this returns, the operating system has the write; see [`StoreUpkeep::sync`].
    fn add(&self, document: &DocumentMessage, options: AdditionOptions) -> ServiceResult<DocumentAnswer>;

    /// Returns the stored documents near a text, a fingerprint or a stored document. The answer lists at most `limit` matches.
    fn query(&self, query: &QueryMessage, limit: usize) -> ServiceResult<MatchList>;

    /// Whether a query takes so short that it need not run on a thread of its own.
    fn is_short(&self, query: &QueryMessage) -> bool;

    /// Compares two documents.
    fn compare(&self, a: &ComparedSide, b: &ComparedSide) -> ServiceResult<ComparisonAnswer>;

    /// Counts where a query looks in the segments.
    fn trace(&self, query: &QueryMessage) -> ServiceResult<TraceAnswer>;

    /// Returns a stored document.
    fn document(&self, id: &JsonId) -> ServiceResult<Option<StoredDocumentMessage>>;

    /// Deletes a document. Returns its id, or `None` if it is not stored.
    fn delete(&self, id: &JsonId) -> ServiceResult<Option<AnswerId>>;

    /// Returns the store as a whole.
    fn upkeep(&self) -> &dyn StoreUpkeep;

    /// Describes the store.
    fn stats(&self) -> StoreStats;
}
