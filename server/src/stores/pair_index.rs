//! Index of the stored fingerprints by numeric id.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use simstore::{Fingerprint, Result, Snapshot};

/// Maximum number of pairs in the window of the greatest ids.
const WINDOW_PAIRS: usize = if cfg!(test) { 16 } else { 1 << 16 };

/// Index of pairs of a numeric id and a fingerprint. A store has no such index on disk.
///
/// The pairs with the greatest ids are always in memory. So clients that number their documents upwards, even from several
/// connections at once, need no other pairs. The first look-up of a smaller id reads all ids of the store. From then on, all pairs are
/// in memory, which takes about 18 bytes for a pair of 64 bits.
pub(super) struct PairIndex<F>(Mutex<IndexedPairs<F>>);

struct IndexedPairs<F> {
    /// All pairs of the store; `None` before the first look-up that needs them.
    all: Option<BTreeSet<(u64, F)>>,
    /// All pairs whose id is greater than `floor`.
    window: BTreeSet<(u64, F)>,
    /// Greatest id that the window does not have; `None` if the window has all ids.
    floor: Option<u64>,
}

impl<F: Fingerprint> PairIndex<F> {
    /// Creates the index of a store whose greatest id is `highest_id`.
    pub(super) fn new(highest_id: Option<u64>) -> PairIndex<F> {
        PairIndex(Mutex::new(IndexedPairs { all: None, window: BTreeSet::new(), floor: highest_id }))
    }

    fn lock(&self) -> MutexGuard<'_, IndexedPairs<F>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the fingerprints that are stored with an id. `snapshot` returns the newest state of the store.
    pub(super) fn fingerprints(&self, id: u64, snapshot: impl Fn() -> Snapshot<F>) -> Result<Vec<F>> {
        let mut pairs = self.lock();
        let IndexedPairs { all, window, floor } = &mut *pairs;
        let pairs = match all {
            _ if Some(id) > *floor => window,
            Some(all) => all,
            // The snapshot is taken after the lock, so it has every pair that was written before the index existed.
            none => none.insert(read_pairs(&snapshot())?),
        };
        Ok(pairs.range((id, F::ZERO)..=(id, F::MAX)).map(|&(_, fingerprint)| fingerprint).collect())
    }

    /// Adds a pair that was inserted in the store.
    pub(super) fn insert(&self, id: u64, fingerprint: F) {
        let mut pairs = self.lock();
        if let Some(all) = &mut pairs.all {
            all.insert((id, fingerprint));
        }
        if Some(id) > pairs.floor {
            pairs.window.insert((id, fingerprint));
        }
        while pairs.window.len() > WINDOW_PAIRS {
            let smallest = pairs.window.pop_first();
            pairs.floor = smallest.map(|(id, _)| id).max(pairs.floor);
        }
    }

    /// Removes a pair that was deleted from the store.
    pub(super) fn remove(&self, id: u64, fingerprint: F) {
        let mut pairs = self.lock();
        if let Some(all) = &mut pairs.all {
            all.remove(&(id, fingerprint));
        }
        pairs.window.remove(&(id, fingerprint));
    }
}

fn read_pairs<F: Fingerprint>(snapshot: &Snapshot<F>) -> Result<BTreeSet<(u64, F)>> {
    snapshot.iter().map(|entry| entry.map(|entry| (entry.id.unwrap_or(0), entry.fingerprint))).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use simstore::{Store, StoreOptions};

    use super::*;

    /// Compares the index with the pairs themselves, for ids in an order that is nearly ascending, then in any order.
    #[test]
    fn the_index_has_the_pairs_of_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::<u64>::open(&folder.path().join("store"), StoreOptions::default()).unwrap();
        store.insert(77, 5).unwrap();
        let index = PairIndex::new(store.snapshot().highest_id());
        let reads = Cell::new(0);
        let snapshot = || {
            reads.set(reads.get() + 1);
            store.snapshot()
        };
        let mut plain = BTreeSet::from([(5_u64, 77_u64)]);
        let mut check = |id: u64, fingerprint: u64| {
            let stored: Vec<u64> = plain.iter().filter(|pair| pair.0 == id).map(|pair| pair.1).collect();
            assert_eq!(index.fingerprints(id, snapshot).unwrap(), stored, "{id}");
            store.insert(fingerprint, id).unwrap();
            index.insert(id, fingerprint);
            plain.insert((id, fingerprint));
        };
        for i in 0..200_u64 {
            check(6 + (i ^ 3), i);
        }
        assert_eq!(reads.get(), 0, "ids that ascend need no other pairs");
        for i in 0..200_u64 {
            check(i * 37 % 250, 1000 + i);
        }
        assert_eq!(reads.get(), 1);
        for &(id, fingerprint) in plain.iter().step_by(3) {
            store.delete(fingerprint, id).unwrap();
            index.remove(id, fingerprint);
            assert!(!index.fingerprints(id, snapshot).unwrap().contains(&fingerprint));
        }
    }
}
