//! Work on a store as a whole, equal for all kinds of stores.

use simstore::Result;
use simstore::progress::ProgressCallback;

use super::store_inspection::StoreInspection;
use crate::service_error::ServiceResult;

/// Maintenance of a store of any kind and width: sync, flush, merge, refresh.
pub(crate) trait StoreUpkeep {
    /// Makes all earlier writes durable.
    fn sync(&self) -> ServiceResult<()>;

    /// Writes all memtables to segments. Returns the number of segments.
    fn flush(&self) -> ServiceResult<usize>;

    /// Merges all segments into one.
    fn compact(&self, progress: ProgressCallback) -> ServiceResult<()>;

    /// Reads the newest state of a store that another process writes. Does nothing in a store that is open for writing.
    fn refresh(&self) -> Result<()>;

    /// Returns the newest state of the store, for looking at its segments.
    fn inspection(&self) -> Box<dyn StoreInspection>;
}
