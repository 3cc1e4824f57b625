//! Documents into a store of similar ones.

use std::collections::HashMap;

use simstore::{Fingerprint, Match, Result, Snapshot, Store};
use simstore_text::{Kept, SimilarDocument, Sketched, StoredTexts};

use crate::Item;

/// Documents after which it is looked whether the texts in the store are enough to make a dictionary of.
const LEARN_AFTER: u64 = 1000;

/// Search for similar documents, in the store and in the batch that is not written yet.
pub(super) struct Similar {
    texts: StoredTexts,
    /// Sketches by id or, where there are names, by name.
    waiting: HashMap<(u64, Option<String>), Sketched>,
    /// Documents written since the last attempt to make a dictionary; `None` if the store has one, or needs none.
    since: Option<u64>,
}

impl Similar {
    pub(super) fn new<F: Fingerprint>(store: &Store<F>, texts: StoredTexts) -> Result<Self> {
        let is_complete = !texts.settings().has_texts() || texts.learn(store)?;
        Ok(Similar { texts, waiting: HashMap::new(), since: (!is_complete).then_some(0) })
    }

    /// The note of a document.
    pub(super) fn keep<F: Fingerprint>(&self, item: &Item<F>, sketched: Sketched) -> Result<Kept> {
        let text = item.text.as_deref().unwrap_or_default();
        Kept::new(sketched, text, &self.texts).map_err(|error| item.bad(error.to_string()))
    }

    /// Whether a document is stored, or waits to be; `Some(false)`: another text with its id is.
    pub(super) fn is_known<F: Fingerprint>(
        &self,
        store: &Snapshot<F>,
        kept: &Kept,
        id: u64,
        name: Option<&str>,
    ) -> Result<Option<bool>> {
        let (settings, sketched) = (self.texts.settings(), kept.sketched());
        if let Some(waiting) = self.waiting.get(&key(id, name, sketched)) {
            return Ok(Some(waiting == sketched));
        }
        let Some(name) = name else {
            return Ok(settings.sketched(store, id)?.map(|stored| stored == *sketched));
        };
        let Some(first) = kept.fingerprints::<F>().next() else { return Ok(None) };
        for found in store.query(first, 0)? {
            if let Some(id) = found.id
                && settings.sketched(store, id)?.as_ref() == Some(sketched)
                && store.name(id)?.as_deref() == Some(name)
            {
                return Ok(Some(true));
            }
        }
        Ok(None)
    }

    /// Takes note of a document that waits to be written.
    pub(super) fn enter(&mut self, kept: &Kept, id: u64, name: Option<&str>) {
        self.waiting.insert(key(id, name, kept.sketched()), *kept.sketched());
    }

    /// All that was waiting is written: so many documents.
    pub(super) fn written<F: Fingerprint>(&mut self, store: &Store<F>, documents: u64) -> Result<()> {
        self.waiting.clear();
        if let Some(since) = &mut self.since {
            *since += documents;
            if *since >= LEARN_AFTER {
                self.since = (!self.texts.learn(store)?).then_some(0);
            }
        }
        Ok(())
    }

    /// The earlier documents among some matches of fingerprints, if the item is not new.
    pub(super) fn among<F: Fingerprint>(
        &self,
        store: &Snapshot<F>,
        item: &Item<F>,
        kept: &Kept,
        matches: &[Match<F>],
    ) -> Result<Vec<SimilarDocument>> {
        let mut ids: Vec<u64> = matches.iter().filter_map(|found| found.id).collect();
        ids.sort_unstable();
        ids.dedup();
        let features = || Ok(self.texts.profile().feature_set(item.text.as_deref().unwrap_or_default()));
        let least = self.texts.settings().similar();
        self.texts.earlier_among(store, kept.sketched(), features, &ids, least)
    }
}

/// Key of a waiting document. A number has one text; a name may have several.
fn key(id: u64, name: Option<&str>, sketched: &Sketched) -> (u64, Option<String>) {
    match name {
        None => (id, None),
        Some(name) => (sketched.digest() as u64, Some(name.to_owned())),
    }
}
