//! Finds equal and similar documents while documents are added to a [store of similar
//! documents](simstore_text::open_similar_store).

use std::collections::HashMap;

use simstore::{Fingerprint, Match, Result, Snapshot, Store};
use simstore_text::{DocumentComparer, DocumentNameIndex, EncodedDocument, Signature, SimilarDocument};

use crate::Item;
use simstore_io::DocumentId;

/// Number of documents written between two attempts to train a compression dictionary. An attempt fails while the store has
/// too few texts.
const DICTIONARY_RETRY_DOCUMENTS: u64 = 1000;

/// Search for similar documents in the store, and in the batch that is not written yet.
pub(super) struct SimilarLookup {
    comparer: DocumentComparer,
    /// Signatures of pending documents, by key. See [`key`](Self::key).
    pending: HashMap<(Option<u128>, DocumentId), Signature>,
    /// Index of all names in the store, read when the first document with a name is added. Stays `None` if different texts
    /// may have the same name.
    names: Option<DocumentNameIndex>,
    /// Whether different texts may have the same name.
    names_are_shared: bool,
    /// Number of documents written since the last attempt to train a dictionary; `None` if the store has one, or needs none.
    documents_since_attempt: Option<u64>,
}

impl SimilarLookup {
    /// Creates a lookup without pending documents. Unless `names_are_shared`, a second text with the same name is refused.
    pub(super) fn new<F: Fingerprint>(
        store: &Store<F>,
        comparer: DocumentComparer,
        names_are_shared: bool,
    ) -> Result<Self> {
        let is_complete = !comparer.settings().has_texts() || comparer.build_dictionary(store)?;
        let documents_since_attempt = (!is_complete).then_some(0);
        Ok(SimilarLookup {
            comparer,
            pending: HashMap::new(),
            names: None,
            names_are_shared,
            documents_since_attempt,
        })
    }

    /// Encodes the signature and text of a document for the store.
    pub(super) fn encode<F: Fingerprint>(
        &self,
        item: &Item<F>,
        signature: Signature,
    ) -> Result<EncodedDocument> {
        let text = item.text.as_deref().unwrap_or_default();
        EncodedDocument::new(signature, text, &self.comparer)
            .map_err(|error| item.malformed(error.to_string()))
    }

    /// Compares a document with the stored or pending document that has the same id or name. Returns whether the signatures
    /// of the two documents are equal; `None` if no stored or pending document has this id or name.
    pub(super) fn matches_stored<F: Fingerprint>(
        &mut self,
        store: &Snapshot<F>,
        encoded: &EncodedDocument,
        id: u64,
        name: Option<&str>,
    ) -> Result<Option<bool>> {
        let (settings, signature) = (self.comparer.settings(), encoded.signature());
        if let Some(pending) = self.pending.get(&self.key(id, name, signature)) {
            return Ok(Some(pending == signature));
        }
        let Some(name) = name else {
            return Ok(settings.signature(store, id)?.map(|stored| stored == *signature));
        };
        if !self.names_are_shared {
            let names = match &mut self.names {
                Some(names) => names,
                none => none.insert(DocumentNameIndex::read(store)?),
            };
            let mut is_equal = None;
            for other in names.find(store, name)? {
                if let Some(stored) = settings.signature(store, other)? {
                    is_equal = Some(is_equal == Some(true) || stored == *signature);
                }
            }
            return Ok(is_equal);
        }
        let Some(first) = encoded.fingerprints::<F>().next() else { return Ok(None) };
        for stored_match in store.query(first, 0)? {
            if let Some(id) = stored_match.id
                && settings.signature(store, id)?.as_ref() == Some(signature)
                && store.name(id)?.as_deref() == Some(name)
            {
                return Ok(Some(true));
            }
        }
        Ok(None)
    }

    /// Adds a new document to the pending documents, which are not in the store until the next batch is written.
    pub(super) fn insert(&mut self, encoded: &EncodedDocument, id: u64, name: Option<&str>) {
        self.pending.insert(self.key(id, name, encoded.signature()), *encoded.signature());
        if let (Some(names), Some(name)) = (&mut self.names, name) {
            names.insert(name, id);
        }
    }

    /// Returns the key of a document in the map `pending`: its name or, without a name, its id. If different texts may have
    /// the same name, a key with a name includes the hash of the text's signature.
    fn key(&self, id: u64, name: Option<&str>, signature: &Signature) -> (Option<u128>, DocumentId) {
        match name {
            None => (None, DocumentId::Number(id)),
            Some(name) => {
                let digest = self.names_are_shared.then(|| signature.digest());
                (digest, DocumentId::Name(name.to_owned()))
            }
        }
    }

    /// Clears the pending documents, after a batch of `documents` documents was written. Tries to train a compression
    /// dictionary if enough documents were written since the last attempt.
    pub(super) fn batch_written<F: Fingerprint>(&mut self, store: &Store<F>, documents: u64) -> Result<()> {
        self.pending.clear();
        if let Some(documents_since_attempt) = &mut self.documents_since_attempt {
            *documents_since_attempt += documents;
            if *documents_since_attempt >= DICTIONARY_RETRY_DOCUMENTS {
                self.documents_since_attempt = (!self.comparer.build_dictionary(store)?).then_some(0);
            }
        }
        Ok(())
    }

    /// Returns the stored documents that are similar to `item`. `matches` has the stored fingerprints that match a fingerprint
    /// of `item`; their documents are compared.
    pub(super) fn similar_among<F: Fingerprint>(
        &self,
        store: &Snapshot<F>,
        item: &Item<F>,
        encoded: &EncodedDocument,
        matches: &[Match<F>],
    ) -> Result<Vec<SimilarDocument>> {
        let mut ids: Vec<u64> = matches.iter().filter_map(|stored_match| stored_match.id).collect();
        ids.sort_unstable();
        ids.dedup();
        let features = || Ok(self.comparer.profile().feature_set(item.text.as_deref().unwrap_or_default()));
        let least = self.comparer.settings().min_similarity();
        self.comparer.find_earlier(store, encoded.signature(), features, &ids, least)
    }
}
