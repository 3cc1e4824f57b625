//! Finds documents that are stored with the same name and fingerprint.

use std::collections::{HashMap, HashSet};

use simstore::{Fingerprint, Result, Snapshot};
use xxhash_rust::xxh3::xxh3_128;

/// Maximum number of cached names.
const MAX_CACHED_NAMES: usize = 1 << 20;

/// Cache of document names. For each fingerprint that this job added, the cache has the names of all documents with this
/// fingerprint. Many documents may share a fingerprint. Without the cache, adding each of them would look up the names of all
/// others, which takes quadratic time.
#[derive(Debug)]
pub(super) struct NameCache<F: Fingerprint> {
    store: Snapshot<F>,
    /// 128-bit hashes of the names that documents with a fingerprint have, keyed by the fingerprint.
    names: HashMap<F, HashSet<u128>>,
    count: usize,
}

impl<F: Fingerprint> NameCache<F> {
    pub(super) fn new(store: Snapshot<F>) -> Self {
        NameCache { store, names: HashMap::new(), count: 0 }
    }

    /// Adds the name of a document to the cache. Returns true if a document with this name and fingerprint was already in the
    /// store or in the cache.
    pub(super) fn insert(&mut self, fingerprint: F, name: &str) -> Result<bool> {
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

    /// Removes the name of a document that was added to the cache, but then not stored.
    pub(super) fn remove(&mut self, fingerprint: F, name: &str) {
        if let Some(names) = self.names.get_mut(&fingerprint) {
            names.remove(&xxh3_128(name.as_bytes()));
        }
    }

    /// If the cache is too large, clears it and takes a new snapshot from `store`. Before the call, all documents in the cache
    /// must be stored.
    pub(super) fn trim(&mut self, store: impl FnOnce() -> Snapshot<F>) {
        if self.count + self.names.len() > MAX_CACHED_NAMES {
            *self = NameCache::new(store());
        }
    }
}
