//! Columns of what is stored.

use std::sync::Arc;

use arrow_array::{ArrayRef, LargeStringArray, UInt64Array, new_null_array};
use arrow_schema::DataType;
use simstore::Result;
use simstore::any::AnySnapshot;

/// Ids, those that there are.
pub(crate) fn id_column(ids: Vec<Option<u64>>) -> ArrayRef {
    Arc::new(UInt64Array::from(ids))
}

/// The names of documents, in any order; no part of the store's names is read twice.
pub(crate) fn name_column(snapshot: &AnySnapshot, ids: &[Option<u64>]) -> Result<ArrayRef> {
    let mut asked: Vec<u64> = ids.iter().flatten().copied().collect();
    if asked.is_empty() || snapshot.stats().names == 0 {
        return Ok(new_null_array(&DataType::LargeUtf8, ids.len()));
    }
    asked.sort_unstable();
    asked.dedup();
    let names = snapshot.names_of(&asked)?;
    let name = |id: &Option<u64>| names[asked.binary_search(&(*id)?).ok()?].as_deref();
    Ok(Arc::new(ids.iter().map(name).collect::<LargeStringArray>()))
}
