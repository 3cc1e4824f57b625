//! Columns of ids and document names for tables of matches.

use std::sync::Arc;

use arrow_array::{ArrayRef, LargeStringArray, UInt64Array, new_null_array};
use arrow_schema::DataType;
use simstore::Result;
use simstore::any::AnySnapshot;

/// Makes a column of ids; `None` becomes null.
pub(crate) fn id_column(ids: Vec<Option<u64>>) -> ArrayRef {
    Arc::new(UInt64Array::from(ids))
}

/// Makes a column with the name of each id, or null. Reads the names in order of ids, so no part of the store is read twice.
pub(crate) fn name_column(snapshot: &AnySnapshot, ids: &[Option<u64>]) -> Result<ArrayRef> {
    let mut wanted: Vec<u64> = ids.iter().flatten().copied().collect();
    if wanted.is_empty() || snapshot.stats().names == 0 {
        return Ok(new_null_array(&DataType::LargeUtf8, ids.len()));
    }
    wanted.sort_unstable();
    wanted.dedup();
    let names = snapshot.names_of(&wanted)?;
    let name = |id: &Option<u64>| names[wanted.binary_search(&(*id)?).ok()?].as_deref();
    Ok(Arc::new(ids.iter().map(name).collect::<LargeStringArray>()))
}
