//! Which documents are stored already, with the same name and the same fingerprint.

use std::collections::{HashMap, HashSet};

use simstore::{Fingerprint, Result, Snapshot};
use xxhash_rust::xxh3::xxh3_128;

/// Names that are held at most.
const MOST_NAMES: usize = 1 << 20;

/// The names of the fingerprints that a run has met: many documents may share a fingerprint, and looking up all of
/// their names for each of them would take the square of their number.
#[derive(Debug)]
pub(super) struct Known<F: Fingerprint> {
    store: Snapshot<F>,
    /// Hashes of the names of each fingerprint.
    names: HashMap<F, HashSet<u128>>,
    count: usize,
}

impl<F: Fingerprint> Known<F> {
    pub(super) fn new(store: Snapshot<F>) -> Self {
        Known { store, names: HashMap::new(), count: 0 }
    }

    /// Takes note of a document; says whether it was there already.
    pub(super) fn enter(&mut self, fingerprint: F, name: &str) -> Result<bool> {
        if !self.names.contains_key(&fingerprint) {
            let mut names = HashSet::new();
            if self.store.contains(fingerprint)? {
                for found in self.store.query(fingerprint, 0)? {
                    if let Some(name) = found.id.map_or(Ok(None), |id| self.store.name(id))? {
                        names.insert(xxh3_128(name.as_bytes()));
                    }
                }
            }
            self.count += names.len();
            self.names.insert(fingerprint, names);
        }
        let names = self.names.entry(fingerprint).or_default();
        let is_new = names.insert(xxh3_128(name.as_bytes()));
        self.count += usize::from(is_new);
        Ok(!is_new)
    }

    /// Forgets a document that was not stored after all.
    pub(super) fn forget(&mut self, fingerprint: F, name: &str) {
        if let Some(names) = self.names.get_mut(&fingerprint) {
            names.remove(&xxh3_128(name.as_bytes()));
        }
    }

    /// Starts anew from what is stored now, when much is held: to be called when all that was entered is stored.
    pub(super) fn trim(&mut self, store: impl FnOnce() -> Snapshot<F>) {
        if self.count + self.names.len() > MOST_NAMES {
            *self = Known::new(store());
        }
    }
}
