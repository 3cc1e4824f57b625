//! Small numbers that a writer keeps, by key.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

/// For each key the values that it has had, each with the operation that set it.
#[derive(Debug, Default)]
pub(super) struct Marks(RwLock<BTreeMap<String, Vec<(u64, u64)>>>);

impl Marks {
    pub(super) fn set(&self, key: &str, value: u64, operation: u64) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match all.get_mut(key) {
            Some(values) => values.push((operation, value)),
            None => drop(all.insert(key.to_string(), vec![(operation, value)])),
        }
    }

    /// The value that a version shows.
    pub(super) fn get(&self, key: &str, version: u64) -> Option<u64> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(key).and_then(|values| newest(values, version))
    }

    /// All keys with their values, ascending.
    pub(super) fn all(&self, version: u64) -> Vec<(String, u64)> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(|(key, values)| Some((key.clone(), newest(values, version)?))).collect()
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(key, values)| (key.len() + 64 + values.capacity() * 16) as u64).sum()
    }
}

fn newest(values: &[(u64, u64)], version: u64) -> Option<u64> {
    let after = values.partition_point(|&(operation, _)| operation <= version);
    after.checked_sub(1).map(|last| values[last].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_shows_what_it_had() {
        let marks = Marks::default();
        marks.set("a", 5, 1);
        marks.set("b", 7, 3);
        marks.set("a", 6, 4);
        let at = |version| (marks.get("a", version), marks.get("b", version), marks.all(version).len());
        assert_eq!(at(0), (None, None, 0));
        assert_eq!(at(2), (Some(5), None, 1));
        assert_eq!(at(3), (Some(5), Some(7), 2));
        assert_eq!(at(9), (Some(6), Some(7), 2));
        assert_eq!(marks.all(9), [("a".to_string(), 6), ("b".to_string(), 7)]);
        assert!(marks.bytes() > 0);
    }
}
