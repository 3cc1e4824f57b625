//! Documents into a store of similar ones.

use std::collections::HashMap;

use simstore::{Fingerprint, Match, Result, Snapshot};
use simstore_text::{Kept, Profile, SimilarDocument, SimilarSettings, Sketcher, similar_among};
use xxhash_rust::xxh3::xxh3_128;

use crate::Item;

/// What makes all features of documents known.
pub(crate) fn sketcher(profile: &Profile) -> Sketcher {
    Sketcher::new(profile.clone(), 1, u32::MAX)
}

/// How documents are found, and what is in the batch that is not written yet.
pub(super) struct Similar {
    settings: SimilarSettings,
    /// Hashes of texts by id or, where there are names, by name.
    waiting: HashMap<(u64, Option<String>), u128>,
}

impl Similar {
    pub(super) fn new(settings: SimilarSettings) -> Self {
        Similar { settings, waiting: HashMap::new() }
    }

    /// What is kept of a document.
    pub(super) fn keep<F>(&self, item: &Item<F>) -> Option<Kept> {
        self.settings.keep(item.sketched.as_ref()?.members.as_deref()?)
    }

    /// Whether a document is stored, or waits to be; `Some(false)`: another text with its id is.
    pub(super) fn is_known<F: Fingerprint>(
        &self,
        store: &Snapshot<F>,
        kept: &Kept,
        id: u64,
        name: Option<&str>,
    ) -> Result<Option<bool>> {
        let note = kept.note();
        if let Some(&hash) = self.waiting.get(&key(id, name, &note)) {
            return Ok(Some(hash == xxh3_128(&note)));
        }
        let Some(name) = name else {
            let stored = store.note(id)?.filter(|stored| !stored.is_empty());
            return Ok(stored.map(|stored| stored == note));
        };
        let Some(first) = kept.fingerprints::<F>().next() else { return Ok(None) };
        for found in store.query(first, 0)? {
            if let Some(id) = found.id
                && store.note(id)?.as_ref() == Some(&note)
                && store.name(id)?.as_deref() == Some(name)
            {
                return Ok(Some(true));
            }
        }
        Ok(None)
    }

    /// Takes note of a document that waits to be written.
    pub(super) fn enter(&mut self, kept: &Kept, id: u64, name: Option<&str>) {
        let note = kept.note();
        self.waiting.insert(key(id, name, &note), xxh3_128(&note));
    }

    /// All that was waiting is written.
    pub(super) fn forget(&mut self) {
        self.waiting.clear();
    }

    /// The similar ones of what was found by fingerprints.
    pub(super) fn among<F: Fingerprint>(
        &self,
        store: &Snapshot<F>,
        kept: &Kept,
        matches: &[Match<F>],
    ) -> Result<Vec<SimilarDocument>> {
        let mut ids: Vec<u64> = matches.iter().filter_map(|found| found.id).collect();
        ids.sort_unstable();
        ids.dedup();
        similar_among(store, kept.sample(), &ids, self.settings.similar())
    }
}

/// Under which a waiting document is known: a number is of one text, a name may be of several.
fn key(id: u64, name: Option<&str>, note: &[u8]) -> (u64, Option<String>) {
    match name {
        None => (id, None),
        Some(name) => (xxh3_128(note) as u64, Some(name.to_owned())),
    }
}
