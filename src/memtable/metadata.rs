//! Metadata of a store: small values, each stored by a program under a key.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

/// Values of a key, oldest first, each with the number of the operation that set it.
type ValueHistory = Vec<(u64, Box<[u8]>)>;

/// Metadata with all earlier values. So readers can read it as it was after any number of operations.
#[derive(Debug, Default)]
pub(super) struct VersionedMetadata {
    values: RwLock<BTreeMap<String, ValueHistory>>,
    /// Approximate memory of the metadata in bytes.
    bytes: AtomicU64,
}

/// Approximate overhead of the map and the allocator for a key, in bytes.
const KEY_OVERHEAD: usize = 64;
/// Approximate overhead of the vector and the allocator for a value, in bytes.
const VALUE_OVERHEAD: usize = 32;

impl VersionedMetadata {
    pub(super) fn set(&self, key: &str, value: &[u8], operation: u64) {
        let mut all = self.values.write().unwrap_or_else(PoisonError::into_inner);
        let key_bytes = if all.contains_key(key) { 0 } else { KEY_OVERHEAD + key.len() };
        self.bytes.fetch_add((key_bytes + VALUE_OVERHEAD + value.len()) as u64, Ordering::Relaxed);
        match all.get_mut(key) {
            Some(values) => values.push((operation, value.into())),
            None => drop(all.insert(key.to_string(), vec![(operation, value.into())])),
        }
    }

    /// Value of a key after the first `version` operations, or `None` if it had no value.
    pub(super) fn get(&self, key: &str, version: u64) -> Option<Vec<u8>> {
        let all = self.values.read().unwrap_or_else(PoisonError::into_inner);
        all.get(key).and_then(|values| value_at(values, version))
    }

    /// All keys with their values after the first `version` operations, ascending by key.
    pub(super) fn all(&self, version: u64) -> Vec<(String, Vec<u8>)> {
        let all = self.values.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(|(key, values)| Some((key.clone(), value_at(values, version)?))).collect()
    }

    /// Approximate memory of the metadata in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

fn value_at(values: &[(u64, Box<[u8]>)], version: u64) -> Option<Vec<u8>> {
    let after = values.partition_point(|&(operation, _)| operation <= version);
    after.checked_sub(1).map(|last| values[last].1.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_shows_what_it_had() {
        let metadata = VersionedMetadata::default();
        metadata.set("a", &[5], 1);
        metadata.set("b", &[7], 3);
        metadata.set("a", &[], 4);
        let at =
            |version| (metadata.get("a", version), metadata.get("b", version), metadata.all(version).len());
        assert_eq!(at(0), (None, None, 0));
        assert_eq!(at(2), (Some(vec![5]), None, 1));
        assert_eq!(at(3), (Some(vec![5]), Some(vec![7]), 2));
        assert_eq!(at(9), (Some(vec![]), Some(vec![7]), 2));
        assert_eq!(metadata.all(9), [("a".to_string(), vec![]), ("b".to_string(), vec![7])]);
        assert!(metadata.bytes() > 0);
    }
}
