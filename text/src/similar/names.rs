//! The documents of a store by their names.

use std::collections::HashMap;

use simstore::{Fingerprint, Result, Snapshot};
use xxhash_rust::xxh3::xxh3_64;

/// Names are read of so many documents at once.
const BATCH: usize = 4096;

/// An index of the names of a store's documents, in memory: 16 bytes for each name that is stored when it is made.
#[derive(Debug, Default)]
pub struct DocumentNames {
    /// Hash of a name, and the document's id; ascending.
    stored: Vec<(u64, u64)>,
    /// The same for names that came later.
    entered: HashMap<u64, Vec<u64>>,
}

impl DocumentNames {
    /// Reads the names of all documents of a store.
    ///
    /// # Errors
    /// Those of reading the store.
    pub fn read<F: Fingerprint>(store: &Snapshot<F>) -> Result<DocumentNames> {
        let mut ids = store.iter().map(|entry| Ok(entry?.id.unwrap_or(0))).collect::<Result<Vec<u64>>>()?;
        ids.sort_unstable();
        ids.dedup();
        let mut stored = Vec::new();
        for ids in ids.chunks(BATCH) {
            let named = ids.iter().zip(store.names_of(ids)?);
            stored.extend(named.filter_map(|(&id, name)| Some((xxh3_64(name?.as_bytes()), id))));
        }
        stored.sort_unstable();
        Ok(DocumentNames { stored, entered: HashMap::new() })
    }

    /// Takes note of a document that gets a name.
    pub fn enter(&mut self, name: &str, id: u64) {
        self.entered.entry(xxh3_64(name.as_bytes())).or_default().push(id);
    }

    /// The ids of documents in a store that have this name, ascending as they were stored. Documents that were deleted since may be
    /// among them.
    ///
    /// # Errors
    /// Those of [`Snapshot::name`].
    pub fn find<F: Fingerprint>(&self, store: &Snapshot<F>, name: &str) -> Result<Vec<u64>> {
        let hash = xxh3_64(name.as_bytes());
        let begin = self.stored.partition_point(|&(other, _)| other < hash);
        let stored = self.stored[begin..].iter().take_while(|&&(other, _)| other == hash).map(|&(_, id)| id);
        let mut found = Vec::new();
        for id in stored.chain(self.entered.get(&hash).into_iter().flatten().copied()) {
            if store.name(id)?.as_deref() == Some(name) {
                found.push(id);
            }
        }
        Ok(found)
    }
}
