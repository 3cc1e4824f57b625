//! Index of the documents of a store by name.

use std::sync::{Mutex, PoisonError};

use simstore::{Fingerprint, Result, Snapshot};
use simstore_text::DocumentNameIndex;

/// Index of all names. The first look-up reads all names of the store. The index takes 16 bytes of memory for each name.
pub(super) struct NameLookup(Mutex<Option<DocumentNameIndex>>);

impl NameLookup {
    pub(super) fn new() -> NameLookup {
        NameLookup(Mutex::new(None))
    }

    /// Returns the numeric ids of the documents with a name. `snapshot` returns the newest state of the store.
    pub(super) fn ids<F: Fingerprint>(
        &self,
        name: &str,
        snapshot: impl Fn() -> Snapshot<F>,
    ) -> Result<Vec<u64>> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The snapshot is taken after the lock, so it has every name that was written before the index existed.
        let snapshot = snapshot();
        let names = match &mut *names {
            Some(names) => names,
            none => none.insert(DocumentNameIndex::read(&snapshot)?),
        };
        names.find(&snapshot, name)
    }

    /// Adds the name of a document that was stored.
    pub(super) fn insert(&self, name: &str, id: u64) {
        if let Some(names) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            names.insert(name, id);
        }
    }
}
