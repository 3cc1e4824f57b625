//! Looks up the ids of new documents in a store: finds the stored pairs of fingerprint and id that have these ids.

use std::collections::{HashMap, HashSet};

use simstore::{Fingerprint, Result, Snapshot};
use simstore_io::DocumentId;

/// How to treat a document whose id is stored with another fingerprint. All policies except [`SameIdPolicy::KeepBoth`] read
/// all ids of the store once for every 131,072 documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SameIdPolicy {
    /// Stores the new fingerprint in addition to the stored ones. An id may have any number of fingerprints.
    #[default]
    KeepBoth,
    /// Replaces all fingerprints that are stored with the id.
    Replace,
    /// Treats the document as malformed.
    Refuse,
}

/// Stored pairs of fingerprint and numeric id, keyed by document id.
#[derive(Debug, Default)]
pub(super) struct StoredPairs<F>(HashMap<DocumentId, Vec<(F, u64)>>);

impl<F: Fingerprint> StoredPairs<F> {
    /// Finds the stored fingerprints whose id is one of `ids` (numbers or names), in one pass over the ids of the store.
    pub(super) fn find<'a>(store: &Snapshot<F>, ids: impl Iterator<Item = &'a DocumentId>) -> Result<Self> {
        let (mut numbers, mut names) = (HashSet::new(), HashSet::new());
        for id in ids {
            match id {
                DocumentId::Number(number) => drop(numbers.insert(*number)),
                DocumentId::Name(name) => drop(names.insert(name.clone())),
            }
        }
        let mut stored = StoredPairs::default();
        for pair in store.pairs_of_names(&names)? {
            let name = pair.name.unwrap_or_default();
            stored.insert(&DocumentId::Name(name), pair.fingerprint, pair.id);
        }
        for pair in store.pairs_of_ids(&numbers)? {
            stored.insert(&DocumentId::Number(pair.id), pair.fingerprint, pair.id);
        }
        Ok(stored)
    }

    /// Adds a pair that has been inserted in the store.
    pub(super) fn insert(&mut self, id: &DocumentId, fingerprint: F, number: u64) {
        self.0.entry(id.clone()).or_default().push((fingerprint, number));
    }

    /// Returns how many pairs of fingerprint and numeric id are stored for a document id.
    pub(super) fn len(&self, id: &DocumentId) -> usize {
        self.0.get(id).map_or(0, Vec::len)
    }

    /// Returns the pairs of fingerprint and numeric id that are stored for a document id, without pairs of `fingerprint`.
    pub(super) fn with_other_fingerprint(&self, id: &DocumentId, fingerprint: Option<F>) -> Vec<(F, u64)> {
        let pairs = self.0.get(id).into_iter().flatten();
        pairs.filter(|&&(stored, _)| Some(stored) != fingerprint).copied().collect()
    }

    /// Removes pairs of an id that have been deleted from the store.
    pub(super) fn remove(&mut self, id: &DocumentId, pairs: &[(F, u64)]) {
        if let Some(stored) = self.0.get_mut(id) {
            stored.retain(|pair| !pairs.contains(pair));
        }
    }
}
