//! What a writer keeps, by key.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

/// Values, each with the operation that set it.
type Values = Vec<(u64, Box<[u8]>)>;

/// For each key the values that it has had.
#[derive(Debug, Default)]
pub(super) struct Marks {
    values: RwLock<BTreeMap<String, Values>>,
    /// Memory, about.
    bytes: AtomicU64,
}

/// What the map and the allocator add to a key, and to a value, about.
const KEY: usize = 64;
const VALUE: usize = 32;

impl Marks {
    pub(super) fn set(&self, key: &str, value: &[u8], operation: u64) {
        let mut all = self.values.write().unwrap_or_else(PoisonError::into_inner);
        let key_bytes = if all.contains_key(key) { 0 } else { KEY + key.len() };
        self.bytes.fetch_add((key_bytes + VALUE + value.len()) as u64, Ordering::Relaxed);
        match all.get_mut(key) {
            Some(values) => values.push((operation, value.into())),
            None => drop(all.insert(key.to_string(), vec![(operation, value.into())])),
        }
    }

    /// The value that a version shows.
    pub(super) fn get(&self, key: &str, version: u64) -> Option<Vec<u8>> {
        let all = self.values.read().unwrap_or_else(PoisonError::into_inner);
        all.get(key).and_then(|values| newest(values, version))
    }

    /// All keys with their values, ascending.
    pub(super) fn all(&self, version: u64) -> Vec<(String, Vec<u8>)> {
        let all = self.values.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(|(key, values)| Some((key.clone(), newest(values, version)?))).collect()
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

fn newest(values: &[(u64, Box<[u8]>)], version: u64) -> Option<Vec<u8>> {
    let after = values.partition_point(|&(operation, _)| operation <= version);
    after.checked_sub(1).map(|last| values[last].1.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_shows_what_it_had() {
        let marks = Marks::default();
        marks.set("a", &[5], 1);
        marks.set("b", &[7], 3);
        marks.set("a", &[], 4);
        let at = |version| (marks.get("a", version), marks.get("b", version), marks.all(version).len());
        assert_eq!(at(0), (None, None, 0));
        assert_eq!(at(2), (Some(vec![5]), None, 1));
        assert_eq!(at(3), (Some(vec![5]), Some(vec![7]), 2));
        assert_eq!(at(9), (Some(vec![]), Some(vec![7]), 2));
        assert_eq!(marks.all(9), [("a".to_string(), vec![]), ("b".to_string(), vec![7])]);
        assert!(marks.bytes() > 0);
    }
}
