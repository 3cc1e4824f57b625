//! Index of the stored fingerprints by numeric id.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use simstore::{Fingerprint, Result, Snapshot};

/// Index of all pairs of a numeric id and a fingerprint. A store has no such index on disk, so the first look-up reads all ids of the
/// store. The index takes about 18 bytes of memory for each pair of 64 bits.
pub(super) struct PairIndex<F>(Mutex<Option<BTreeSet<(u64, F)>>>);

impl<F: Fingerprint> PairIndex<F> {
    pub(super) fn new() -> PairIndex<F> {
        PairIndex(Mutex::new(None))
    }

    /// Returns the fingerprints that are stored with an id. `snapshot` returns the newest state of the store.
    pub(super) fn fingerprints(&self, id: u64, snapshot: impl Fn() -> Snapshot<F>) -> Result<Vec<F>> {
        let mut pairs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pairs = match &mut *pairs {
            Some(pairs) => pairs,
            // The snapshot is taken after the lock, so it has every pair that was written before the index existed.
            none => none.insert(read_pairs(&snapshot())?),
        };
        Ok(pairs.range((id, F::ZERO)..=(id, F::MAX)).map(|&(_, fingerprint)| fingerprint).collect())
    }

    /// Adds a pair that was inserted in the store.
    pub(super) fn insert(&self, id: u64, fingerprint: F) {
        if let Some(pairs) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            pairs.insert((id, fingerprint));
        }
    }

    /// Removes a pair that was deleted from the store.
    pub(super) fn remove(&self, id: u64, fingerprint: F) {
        if let Some(pairs) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            pairs.remove(&(id, fingerprint));
        }
    }
}

fn read_pairs<F: Fingerprint>(snapshot: &Snapshot<F>) -> Result<BTreeSet<(u64, F)>> {
    snapshot.iter().map(|entry| entry.map(|entry| (entry.id.unwrap_or(0), entry.fingerprint))).collect()
}
