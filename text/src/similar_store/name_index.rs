//! Index of a store's documents by name.

use std::collections::HashMap;

use simstore::{Fingerprint, Result, Snapshot};
use xxhash_rust::xxh3::xxh3_64;

/// Number of documents whose names are read together.
const BATCH_DOCUMENTS: usize = 4096;

/// In-memory index of a store's documents by name. It takes 16 bytes for each name that the store had when the index was built.
#[derive(Debug, Default)]
pub struct DocumentNameIndex {
    /// The names that the store had when the index was built. Each entry consists of the hash of a name and the id of a document
    /// with this name. Entries are in ascending order.
    stored_names: Vec<(u64, u64)>,
    /// The names that [`insert`](Self::insert) added: for the hash of each name, the ids of the documents with this name.
    added_names: HashMap<u64, Vec<u64>>,
}

impl DocumentNameIndex {
    /// Builds the index of all documents of a store that have a name.
    ///
    /// # Errors
    /// Errors of reading the store.
    pub fn read<F: Fingerprint>(store: &Snapshot<F>) -> Result<DocumentNameIndex> {
        let mut ids = store.iter().map(|entry| Ok(entry?.id.unwrap_or(0))).collect::<Result<Vec<u64>>>()?;
        ids.sort_unstable();
        ids.dedup();
        let mut sorted = Vec::new();
        for ids in ids.chunks(BATCH_DOCUMENTS) {
            let named = ids.iter().zip(store.names_of(ids)?);
            sorted.extend(named.filter_map(|(&id, name)| Some((xxh3_64(name?.as_bytes()), id))));
        }
        sorted.sort_unstable();
        Ok(DocumentNameIndex { stored_names: sorted, added_names: HashMap::new() })
    }

    /// Adds the name and id of a new document to the index. The store is not changed.
    pub fn insert(&mut self, name: &str, id: u64) {
        self.added_names.entry(xxh3_64(name.as_bytes())).or_default().push(id);
    }

    /// Returns the ids of the documents with this name: first the documents that the store had when the index was built, in
    /// ascending order of id, then the documents that were inserted later.
    ///
    /// # Errors
    /// The errors of [`Snapshot::name`].
    pub fn find<F: Fingerprint>(&self, store: &Snapshot<F>, name: &str) -> Result<Vec<u64>> {
        let hash = xxh3_64(name.as_bytes());
        let begin = self.stored_names.partition_point(|&(other, _)| other < hash);
        let sorted =
            self.stored_names[begin..].iter().take_while(|&&(other, _)| other == hash).map(|&(_, id)| id);
        let mut found = Vec::new();
        for id in sorted.chain(self.added_names.get(&hash).into_iter().flatten().copied()) {
            if store.name(id)?.as_deref() == Some(name) {
                found.push(id);
            }
        }
        Ok(found)
    }
}
