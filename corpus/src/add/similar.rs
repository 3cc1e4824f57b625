//! Documents into a store of similar ones.

use std::collections::HashMap;

use simstore::{Fingerprint, Match, Result, Snapshot, Store};
use simstore_text::{DocumentNames, Kept, SimilarDocument, Sketched, StoredTexts};

use crate::Item;
use simstore_io::DocumentId;

/// Documents after which it is looked whether the texts in the store are enough to make a dictionary of.
const LEARN_AFTER: u64 = 1000;

/// Search for similar documents, in the store and in the batch that is not written yet.
pub(super) struct Similar {
    texts: StoredTexts,
    /// Sketches by id or, where there are names, by name.
    waiting: HashMap<(Option<u128>, DocumentId), Sketched>,
    /// The names of all documents, once one with a name comes. A text may have a name that another one has if there is none.
    names: Option<DocumentNames>,
    names_are_shared: bool,
    /// Documents written since the last attempt to make a dictionary; `None` if the store has one, or needs none.
    since: Option<u64>,
}

impl Similar {
    /// Texts with one name are refused, unless `names_are_shared`.
    pub(super) fn new<F: Fingerprint>(
        store: &Store<F>,
        texts: StoredTexts,
        names_are_shared: bool,
    ) -> Result<Self> {
        let is_complete = !texts.settings().has_texts() || texts.learn(store)?;
        let since = (!is_complete).then_some(0);
        Ok(Similar { texts, waiting: HashMap::new(), names: None, names_are_shared, since })
    }

    /// The note of a document.
    pub(super) fn keep<F: Fingerprint>(&self, item: &Item<F>, sketched: Sketched) -> Result<Kept> {
        let text = item.text.as_deref().unwrap_or_default();
        Kept::new(sketched, text, &self.texts).map_err(|error| item.bad(error.to_string()))
    }

    /// Whether a document is stored, or waits to be; `Some(false)`: another text with its id, or name, is.
    pub(super) fn is_known<F: Fingerprint>(
        &mut self,
        store: &Snapshot<F>,
        kept: &Kept,
        id: u64,
        name: Option<&str>,
    ) -> Result<Option<bool>> {
        let (settings, sketched) = (self.texts.settings(), kept.sketched());
        if let Some(waiting) = self.waiting.get(&self.key(id, name, sketched)) {
            return Ok(Some(waiting == sketched));
        }
        let Some(name) = name else {
            return Ok(settings.sketched(store, id)?.map(|stored| stored == *sketched));
        };
        if !self.names_are_shared {
            let names = match &mut self.names {
                Some(names) => names,
                none => none.insert(DocumentNames::read(store)?),
            };
            let mut is_known = None;
            for other in names.find(store, name)? {
                if let Some(stored) = settings.sketched(store, other)? {
                    is_known = Some(is_known == Some(true) || stored == *sketched);
                }
            }
            return Ok(is_known);
        }
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
        self.waiting.insert(self.key(id, name, kept.sketched()), *kept.sketched());
        if let (Some(names), Some(name)) = (&mut self.names, name) {
            names.enter(name, id);
        }
    }

    /// The key of a waiting document: its id, or its name, with the text where texts may share a name.
    fn key(&self, id: u64, name: Option<&str>, sketched: &Sketched) -> (Option<u128>, DocumentId) {
        match name {
            None => (None, DocumentId::Number(id)),
            Some(name) => {
                let digest = self.names_are_shared.then(|| sketched.digest());
                (digest, DocumentId::Name(name.to_owned()))
            }
        }
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
