//! What is stored under the ids of documents that are added.

use std::collections::{HashMap, HashSet};

use simstore::{Fingerprint, Result, Snapshot};
use simstore_io::DocumentId;

/// What becomes of a document whose id is stored with another fingerprint. All but [`SameId::Both`] read the ids of the store
/// once for every 131,072 documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SameId {
    /// Both are kept: an id may have any number of fingerprints.
    #[default]
    Both,
    /// It takes the place of what was stored with its id.
    Replace,
    /// It is malformed.
    Refuse,
}

/// The pairs of fingerprint and id that are stored for documents, by what these are called.
#[derive(Debug, Default)]
pub(super) struct Stored<F>(HashMap<DocumentId, Vec<(F, u64)>>);

impl<F: Fingerprint> Stored<F> {
    /// Looks for all of these ids, or names, in one pass over those of the store.
    pub(super) fn find<'a>(store: &Snapshot<F>, ids: impl Iterator<Item = &'a DocumentId>) -> Result<Self> {
        let (mut numbers, mut names) = (HashSet::new(), HashSet::new());
        for id in ids {
            match id {
                DocumentId::Number(number) => drop(numbers.insert(*number)),
                DocumentId::Name(name) => drop(names.insert(name.clone())),
            }
        }
        let mut stored = Stored::default();
        for pair in store.pairs_of_names(&names)? {
            let name = pair.name.unwrap_or_default();
            stored.enter(&DocumentId::Name(name), pair.fingerprint, pair.id);
        }
        for pair in store.pairs_of_ids(&numbers)? {
            stored.enter(&DocumentId::Number(pair.id), pair.fingerprint, pair.id);
        }
        Ok(stored)
    }

    /// Takes note of a pair.
    pub(super) fn enter(&mut self, id: &DocumentId, fingerprint: F, number: u64) {
        self.0.entry(id.clone()).or_default().push((fingerprint, number));
    }

    /// How many pairs are stored under an id.
    pub(super) fn len(&self, id: &DocumentId) -> usize {
        self.0.get(id).map_or(0, Vec::len)
    }

    /// The pairs that are stored under an id with another fingerprint than this.
    pub(super) fn others(&self, id: &DocumentId, fingerprint: Option<F>) -> Vec<(F, u64)> {
        let pairs = self.0.get(id).into_iter().flatten();
        pairs.filter(|&&(stored, _)| Some(stored) != fingerprint).copied().collect()
    }

    /// Forgets pairs of an id.
    pub(super) fn forget(&mut self, id: &DocumentId, pairs: &[(F, u64)]) {
        if let Some(stored) = self.0.get_mut(id) {
            stored.retain(|pair| !pairs.contains(pair));
        }
    }
}
