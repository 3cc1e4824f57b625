//! Stored documents that are similar to a text: by the stored texts, or by an estimate.

use std::collections::HashSet;
use std::fmt;

use simstore::{Error, Fingerprint, Result, Snapshot, Store};

use super::texts::{LEARNT_FROM, Packing, sample, store_dictionary};
use super::{Estimate, EstimateLimit, SimilarSettings};
use crate::{Profile, Sketched, jaccard};

/// A stored document that is similar to a text.
#[derive(Clone, Debug, PartialEq)]
pub struct SimilarDocument {
    /// Its id.
    pub id: u64,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its similarity: exact in a store that keeps texts.
    pub estimate: Estimate,
}

/// A stored document, read to be compared with any number of texts.
#[derive(Clone, Debug)]
pub struct StoredDocument {
    /// Its id.
    pub id: u64,
    /// Its sketches.
    pub sketched: Sketched,
    /// The text as it is kept, if it is.
    packed: Vec<u8>,
}

/// Compares texts with the documents of a store, and packs and unpacks the texts that it keeps.
pub struct StoredTexts {
    settings: SimilarSettings,
    profile: Profile,
    packing: Packing,
}

impl fmt::Debug for StoredTexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoredTexts").field(&self.settings).finish()
    }
}

impl StoredTexts {
    /// Reads the dictionary of a store with these settings and this profile.
    ///
    /// # Errors
    /// Those of reading the store.
    pub fn new<F: Fingerprint>(
        store: &Snapshot<F>,
        settings: SimilarSettings,
        profile: Profile,
    ) -> Result<Self> {
        let packing = Packing::default();
        if settings.has_texts() {
            packing.learn(store)?;
        }
        Ok(StoredTexts { settings, profile, packing })
    }

    /// How the store finds similar documents.
    pub fn settings(&self) -> &SimilarSettings {
        &self.settings
    }

    /// The profile that makes features of texts.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    pub(super) fn pack(&self, text: &str) -> Result<Vec<u8>> {
        self.packing.pack(text)
    }

    /// Makes a dictionary of the texts of a store and stores it, if the store has a thousand texts and no dictionary. Later
    /// texts take fewer bytes. Returns whether the store has a dictionary now.
    ///
    /// # Errors
    /// Those of the store.
    pub fn learn<F: Fingerprint>(&self, store: &Store<F>) -> Result<bool> {
        let snapshot = store.snapshot();
        if !self.settings.has_texts() || self.packing.learn(&snapshot)? {
            return Ok(self.settings.has_texts());
        }
        // A document has several fingerprints.
        let (mut texts, mut seen) = (Vec::new(), HashSet::new());
        for entry in snapshot.iter() {
            let Some(id) = entry?.id.filter(|&id| seen.insert(id)) else { continue };
            texts.extend(self.text(&snapshot, id)?.map(sample));
            if texts.len() == LEARNT_FROM {
                store_dictionary(store, &texts)?;
                return self.packing.learn(&store.snapshot());
            }
        }
        Ok(false)
    }

    /// Number of texts that a dictionary is made of.
    pub const LEARNT_FROM: usize = LEARNT_FROM;

    /// The start of a text, which a dictionary is made of.
    pub fn sample(text: String) -> String {
        sample(text)
    }

    /// Makes a dictionary of some texts, such as the next ones to be added, and stores it, if they are enough and the store has none.
    ///
    /// # Errors
    /// Those of the store.
    pub fn learn_from<F: Fingerprint>(&self, store: &Store<F>, texts: &[String]) -> Result<()> {
        if self.settings.has_texts()
            && texts.len() >= LEARNT_FROM
            && !self.packing.learn(&store.snapshot())?
        {
            store_dictionary(store, texts)?;
            self.packing.learn(&store.snapshot())?;
        }
        Ok(())
    }

    /// The text that is stored under an id; `None` if the id is free, or the store keeps no texts.
    ///
    /// # Errors
    /// Those of reading; [`Error::Refused`] if the note is damaged.
    pub fn text<F: Fingerprint>(&self, store: &Snapshot<F>, id: u64) -> Result<Option<String>> {
        if !self.settings.has_texts() {
            return Ok(None);
        }
        // Earlier versions left an empty note of a deleted document.
        let Some(note) = store.note(id)?.filter(|note| !note.is_empty()) else { return Ok(None) };
        let (_, packed) = kept(store, id, &note)?;
        self.unpack(store, id, packed).map(Some)
    }

    fn unpack<F: Fingerprint>(&self, store: &Snapshot<F>, id: u64, packed: &[u8]) -> Result<String> {
        self.packing.unpack(packed, store)?.map_err(|found| damaged(store, id, found))
    }

    /// Stored documents by their ids, which ascend, without deleted ones.
    ///
    /// # Errors
    /// Those of [`Snapshot::notes_of`]; [`Error::Refused`] if a note is damaged.
    pub fn documents<F: Fingerprint>(&self, store: &Snapshot<F>, ids: &[u64]) -> Result<Vec<StoredDocument>> {
        let mut documents = Vec::with_capacity(ids.len());
        for (&id, note) in ids.iter().zip(store.notes_of(ids)?) {
            // A document that was deleted meanwhile has an empty note.
            let Some(mut note) = note.filter(|note| !note.is_empty()) else { continue };
            let (sketched, packed) = kept(store, id, &note)?;
            let start = note.len() - packed.len();
            documents.push(StoredDocument { id, sketched, packed: note.split_off(start) });
        }
        Ok(documents)
    }

    /// The features of a stored document's text, ascending.
    ///
    /// # Errors
    /// [`Error::Refused`] if the text is damaged.
    pub fn features<F: Fingerprint>(
        &self,
        store: &Snapshot<F>,
        document: &StoredDocument,
    ) -> Result<Vec<u64>> {
        Ok(self.profile.feature_set(&self.unpack(store, document.id, &document.packed)?))
    }

    /// The similarity of a stored document to a text by their sketches; `None` if texts decide.
    pub fn by_sketches(&self, document: &StoredDocument, of_text: &Sketched) -> Option<Estimate> {
        let estimate = document.sketched.estimate(of_text);
        (!self.settings.has_texts() || estimate.standard_error == 0.0).then_some(estimate)
    }

    /// Whether texts are compared: not if the sketches are too far apart.
    pub fn compares(&self, document: &StoredDocument, of_text: &Sketched) -> bool {
        document.sketched.distance(of_text) <= self.settings.total()
    }

    /// The stored documents among some, by their ids, that are at least this similar to a text, the most similar first. The text has
    /// these sketches; `features` makes its features, ascending, if they are needed.
    ///
    /// A store that keeps texts compares the features of documents whose sketches are near enough. Other stores take
    /// the [estimate](Sketched::estimate).
    ///
    /// # Errors
    /// Those of [`StoredTexts::documents`], [`StoredTexts::features`] and `features`.
    pub fn similar_among<F: Fingerprint>(
        &self,
        store: &Snapshot<F>,
        of_text: &Sketched,
        features: impl FnOnce() -> Result<Vec<u64>>,
        ids: &[u64],
        least: f64,
    ) -> Result<Vec<SimilarDocument>> {
        Ok(self.among(store, of_text, features, ids, least)?.0)
    }

    /// As [`StoredTexts::similar_among`], to decide whether the text is new: without texts, no document is similar unless the
    /// estimate of one is within the [limit](EstimateLimit) for all of them.
    ///
    /// # Errors
    /// As [`StoredTexts::similar_among`].
    pub fn earlier_among<F: Fingerprint>(
        &self,
        store: &Snapshot<F>,
        of_text: &Sketched,
        features: impl FnOnce() -> Result<Vec<u64>>,
        ids: &[u64],
        least: f64,
    ) -> Result<Vec<SimilarDocument>> {
        let (found, is_earlier) = self.among(store, of_text, features, ids, least)?;
        Ok(if is_earlier { found } else { Vec::new() })
    }

    /// The similar documents, and whether one of them is similar beyond doubt.
    fn among<F: Fingerprint>(
        &self,
        store: &Snapshot<F>,
        of_text: &Sketched,
        features: impl FnOnce() -> Result<Vec<u64>>,
        ids: &[u64],
        least: f64,
    ) -> Result<(Vec<SimilarDocument>, bool)> {
        let (mut found, mut make, mut features) = (Vec::new(), Some(features), None::<Vec<u64>>);
        let documents = self.documents(store, ids)?;
        for document in &documents {
            let estimate = match self.by_sketches(document, of_text) {
                Some(estimate) => estimate,
                None if !self.compares(document, of_text) => continue,
                None => {
                    let stored = self.features(store, document)?;
                    let asked = match &mut features {
                        Some(features) => features,
                        none => none.insert(make.take().map_or_else(|| Ok(Vec::new()), |make| make())?),
                    };
                    Estimate::exact(jaccard(&stored, asked))
                }
            };
            if estimate.similarity >= least {
                found.push((document.id, estimate));
            }
        }
        found.sort_by(|(a, x), (b, y)| y.similarity.total_cmp(&x.similarity).then(a.cmp(b)));
        let named = |(id, estimate)| Ok(SimilarDocument { id, name: store.name(id)?, estimate });
        let found: Vec<SimilarDocument> = found.into_iter().map(named).collect::<Result<_>>()?;
        let is_earlier = self.settings.has_texts() || {
            let near = documents.iter().filter(|document| document.sketched.is_near(of_text, least));
            let limit = EstimateLimit::new(least, near.count() as u64);
            documents.iter().any(|document| limit.holds(&document.sketched, of_text))
        };
        Ok((found, is_earlier))
    }
}

impl SimilarSettings {
    /// The sketches of the document with this id; `None` if the id is free.
    ///
    /// # Errors
    /// Those of reading; [`Error::Refused`] if the note is damaged.
    pub fn sketched<F: Fingerprint>(&self, store: &Snapshot<F>, id: u64) -> Result<Option<Sketched>> {
        let Some(note) = store.note(id)?.filter(|note| !note.is_empty()) else { return Ok(None) };
        kept(store, id, &note).map(|(sketched, _)| Some(sketched))
    }
}

/// The sketches in the note of a document, and its packed text.
fn kept<'a, F: Fingerprint>(store: &Snapshot<F>, id: u64, note: &'a [u8]) -> Result<(Sketched, &'a [u8])> {
    Sketched::from_bytes(note).ok_or_else(|| damaged(store, id, "bytes that are not a signature"))
}

fn damaged<F: Fingerprint>(store: &Snapshot<F>, id: u64, found: &str) -> Error {
    Error::Refused(format!(
        "{}: the note of document {id} holds {found}, expected a signature (and the text, in a store with texts): delete the document \
         and add it again",
        store.path().display()
    ))
}
