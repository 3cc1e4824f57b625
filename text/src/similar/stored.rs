//! Which stored documents are similar to a text: by the stored texts, or by an estimate.

use std::collections::HashSet;
use std::fmt;

use simstore::{Error, Fingerprint, Result, Snapshot, Store};

use super::texts::{LEARNT_FROM, Packing, sample, store_dictionary};
use super::{Estimate, SimilarSettings};
use crate::{Profile, Sketched, jaccard};

/// A stored document that is similar to a text.
#[derive(Clone, Debug, PartialEq)]
pub struct SimilarDocument {
    /// Under which it is stored.
    pub id: u64,
    /// The name that it was stored with, if any.
    pub name: Option<String>,
    /// How similar it is: exact in a store that keeps texts.
    pub estimate: Estimate,
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
    /// Those of a store with these settings and this profile.
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

    /// How texts become features.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    pub(super) fn pack(&self, text: &str) -> Result<Vec<u8>> {
        self.packing.pack(text)
    }

    /// Makes a dictionary of the texts of a store and stores it, if it has a thousand or more and no dictionary: texts that are
    /// added from then on take less. Says whether there is one now.
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

    /// How many texts a dictionary is made of.
    pub const LEARNT_FROM: usize = LEARNT_FROM;

    /// As much of a text as a dictionary is made of.
    pub fn sample(text: String) -> String {
        sample(text)
    }

    /// Makes a dictionary of some texts, which may be those that are added next, and stores it, if there are enough of them and there is
    /// none.
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

    /// The text that is stored under an id; `None` if there is none, or the store keeps no texts.
    ///
    /// # Errors
    /// Those of reading; [`Error::Refused`] if what is kept is damaged.
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

    /// Those of some stored documents, by their ids, that are at least so similar to a text, the most similar first. It is known by its
    /// sketches, and `features` are its features, ascending, if they are asked for.
    ///
    /// In a store that keeps texts, these decide: those whose sketches are near enough are compared by their features. In others
    /// the [estimate](Sketched::estimate) does.
    ///
    /// # Errors
    /// Those of [`Snapshot::notes_of`] and of `features`; [`Error::Refused`] if what is kept of a document is damaged.
    pub fn similar_among<F: Fingerprint>(
        &self,
        store: &Snapshot<F>,
        of_text: &Sketched,
        features: impl FnOnce() -> Result<Vec<u64>>,
        ids: &[u64],
        least: f64,
    ) -> Result<Vec<SimilarDocument>> {
        let (mut found, mut make, mut features) = (Vec::new(), Some(features), None::<Vec<u64>>);
        for (&id, note) in ids.iter().zip(store.notes_of(ids)?) {
            // A document that was deleted meanwhile has no note.
            let Some(note) = note.filter(|note| !note.is_empty()) else { continue };
            let (sketched, packed) = kept(store, id, &note)?;
            let mut estimate = sketched.estimate(of_text);
            if self.settings.has_texts() && estimate.standard_error > 0.0 {
                if sketched.distance(of_text) > self.settings.total() {
                    continue;
                }
                let stored = self.profile.feature_set(&self.unpack(store, id, packed)?);
                let asked = match &mut features {
                    Some(features) => features,
                    none => none.insert(make.take().map_or_else(|| Ok(Vec::new()), |make| make())?),
                };
                estimate = Estimate::exact(jaccard(&stored, asked));
            }
            if estimate.similarity >= least {
                found.push((id, estimate));
            }
        }
        found.sort_by(|(a, x), (b, y)| y.similarity.total_cmp(&x.similarity).then(a.cmp(b)));
        let named = |(id, estimate)| Ok(SimilarDocument { id, name: store.name(id)?, estimate });
        found.into_iter().map(named).collect()
    }
}

impl SimilarSettings {
    /// The sketches of a document that is stored under an id; `None` if there is none.
    ///
    /// # Errors
    /// Those of reading; [`Error::Refused`] if what is kept is damaged.
    pub fn sketched<F: Fingerprint>(&self, store: &Snapshot<F>, id: u64) -> Result<Option<Sketched>> {
        let Some(note) = store.note(id)?.filter(|note| !note.is_empty()) else { return Ok(None) };
        kept(store, id, &note).map(|(sketched, _)| Some(sketched))
    }
}

/// What a note says of a document, and its text as it is kept.
fn kept<'a, F: Fingerprint>(store: &Snapshot<F>, id: u64, note: &'a [u8]) -> Result<(Sketched, &'a [u8])> {
    Sketched::from_bytes(note).ok_or_else(|| damaged(store, id, "bytes that are no sketches"))
}

fn damaged<F: Fingerprint>(store: &Snapshot<F>, id: u64, found: &str) -> Error {
    Error::Refused(format!(
        "{}: the note of document {id} holds {found}, where sketches were expected, and the text if the store keeps texts: delete the \
         document, and add it again",
        store.path().display()
    ))
}
