//! Texts in, similar documents out: a live store that remembers documents by their sketches and samples.

use std::collections::HashSet;
use std::path::Path;

use simstore::store::is_store;
use simstore::{
    Durability, Error, Fingerprint, Insertion, PlanChoice, Result, Snapshot, Store, StoreOptions, Transaction,
};

use super::{Estimate, Kept, SIMILAR_MARK, Sample, SimilarSettings};
use crate::Profile;

/// A stored document that is similar to a text.
#[derive(Clone, Debug, PartialEq)]
pub struct SimilarDocument {
    /// Under which it is stored.
    pub id: u64,
    /// The name that it was stored with, if any.
    pub name: Option<String>,
    /// How similar it is, by the samples of both.
    pub estimate: Estimate,
}

/// What [`SimilarDocuments::add`] did.
#[derive(Clone, Debug, PartialEq)]
pub enum SimilarAddition {
    /// Nothing similar was found; it is remembered now.
    Remembered,
    /// These earlier documents are similar, the most similar first; it is not remembered.
    SimilarTo(Vec<SimilarDocument>),
    /// The text has no features; it is not remembered.
    Empty,
}

/// Those of some stored documents, by their ids, that are at least so similar to what a sample was taken of, the most similar
/// first.
///
/// # Errors
/// Those of [`Snapshot::notes_of`]; [`Error::Refused`] if what is kept with a document is no sample.
pub fn similar_among<F: Fingerprint>(
    store: &Snapshot<F>,
    sample: &Sample,
    ids: &[u64],
    least: f64,
) -> Result<Vec<SimilarDocument>> {
    let mut found = Vec::new();
    for (&id, note) in ids.iter().zip(store.notes_of(ids)?) {
        // A document that was removed meanwhile has an empty note.
        let Some(note) = note.filter(|note| !note.is_empty()) else { continue };
        let estimate = sample_of(store, id, &note)?.estimate(sample);
        if estimate.similarity >= least {
            found.push((id, estimate));
        }
    }
    found.sort_by(|(a, x), (b, y)| y.similarity.total_cmp(&x.similarity).then(a.cmp(b)));
    let named = |(id, estimate)| Ok(SimilarDocument { id, name: store.name(id)?, estimate });
    found.into_iter().map(named).collect()
}

fn sample_of<F: Fingerprint>(store: &Snapshot<F>, id: u64, note: &[u8]) -> Result<Sample> {
    Sample::from_bytes(note).ok_or_else(|| {
        Error::Refused(format!(
            "{}: the note of document {id} is no sample of a text: {} bytes that are not as expected; delete the document, and \
             add it again",
            store.path().display(),
            note.len()
        ))
    })
}

/// A store of documents by their similarity: each is remembered if it is new, and answered with the earlier ones that are
/// similar if it is not.
///
/// Of each document the store has sketches, and a sample of its features, 1 KiB of them: so how similar two are is an
/// estimate, whose standard error is told; it is exact for texts of at most 128 features. Documents of just the least similarity are found with
/// the recall that was asked for, more similar ones with a greater one, and of those that have fewer than 32 features, all.
///
/// ```
/// use simstore::StoreOptions;
/// use simstore_text::{Profile, SimilarAddition, SimilarDocuments};
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("pages");
/// let pages = SimilarDocuments::open(&path, StoreOptions::default(), Profile::shingles(), 0.5, 0.95);
/// assert!(pages.unwrap_err().to_string().contains("option `similar`"));
/// let pages = SimilarDocuments::open(&path, StoreOptions::default(), Profile::shingles(), 0.8, 0.95)?;
/// let text = "The quick brown fox jumps over the lazy dog, and over the sleeping cat.";
/// assert_eq!(pages.add(text, 1, Some("fox"))?, SimilarAddition::Remembered);
/// let SimilarAddition::SimilarTo(earlier) = pages.add(&text.replace("cat", "fox"), 2, None)? else { panic!() };
/// assert_eq!((earlier[0].id, earlier[0].name.as_deref()), (1, Some("fox")));
/// assert_eq!((earlier[0].estimate.similarity, earlier[0].estimate.standard_error), (11.0 / 13.0, 0.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SimilarDocuments {
    store: Store<u64>,
    settings: SimilarSettings,
    profile: Profile,
    durability: Durability,
}

impl SimilarDocuments {
    /// Opens a store of documents that finds those of this similarity with a probability of `recall`, and makes it if there is
    /// none. How texts become features is kept with it. The distance of the options is left out.
    ///
    /// # Errors
    /// As [`Store::open`] and [`SimilarSettings::new`]; [`Error::Setting`] if the store has another profile, similarity or
    /// recall, or is of fingerprints.
    pub fn open(
        path: &Path,
        options: StoreOptions,
        profile: Profile,
        similar: f64,
        recall: f64,
    ) -> Result<Self> {
        let settings = SimilarSettings::new(similar, recall)?;
        let durability = options.durability;
        let options = StoreOptions { profile: Some(profile.to_string()), ..options };
        let store = open_similar(path, options, settings)?;
        // Those of a store that is there count: it may have been made with another number of sketches.
        let settings = SimilarSettings::of_store(&store.snapshot())?.unwrap_or(settings);
        Ok(SimilarDocuments { store, settings, profile, durability })
    }

    /// Remembers a text under an id, unless earlier ones are found that are similar. Acknowledged as
    /// [`StoreOptions::durability`] says. Threads may add at once: of two similar texts one is remembered.
    ///
    /// # Errors
    /// Those of the store; [`Error::BadArgument`] if the id has another text (it may be [removed](SimilarDocuments::remove)
    /// first), or the name is longer than 64 KiB.
    pub fn add(&self, text: &str, id: u64, name: Option<&str>) -> Result<SimilarAddition> {
        let Some(kept) = self.settings.keep(&self.profile.feature_set(text)) else {
            return Ok(SimilarAddition::Empty);
        };
        let before = self.store.snapshot().note(id)?.filter(|note| !note.is_empty());
        if before.is_some_and(|note| note != kept.note()) {
            return Err(Error::BadArgument(format!("the id {id} has another text: remove that first")));
        }
        let mut transaction = self.store.transaction();
        kept.insert(&mut transaction, id, name)?;
        let (mut similar, mut asked) = (Vec::new(), HashSet::new());
        let insertion = transaction.commit_unless(self.durability, |matches| {
            let ids = matches.iter().filter_map(|found| found.id);
            let mut ids: Vec<u64> = ids.filter(|&id| asked.insert(id)).collect();
            ids.sort_unstable();
            similar = similar_among(&self.store.snapshot(), kept.sample(), &ids, self.settings.similar())?;
            Ok(!similar.is_empty())
        })?;
        Ok(match insertion {
            Insertion::Inserted => SimilarAddition::Remembered,
            Insertion::DuplicateOf(_) => SimilarAddition::SimilarTo(similar),
        })
    }

    /// The documents that are similar to a text, the most similar first; none for white space.
    ///
    /// # Errors
    /// Those of [`Kept::candidates`] and [`similar_among`].
    pub fn find(&self, text: &str) -> Result<Vec<SimilarDocument>> {
        let Some(kept) = self.settings.keep(&self.profile.feature_set(text)) else { return Ok(Vec::new()) };
        let store = self.store.snapshot();
        similar_among(&store, kept.sample(), &kept.candidates(&store)?, self.settings.similar())
    }

    /// Forgets a text that was added under an id; says whether it was there.
    ///
    /// # Errors
    /// As [`Transaction::commit`](simstore::Transaction::commit).
    pub fn remove(&self, text: &str, id: u64) -> Result<bool> {
        let Some(kept) = self.settings.keep(&self.profile.feature_set(text)) else { return Ok(false) };
        if self.store.snapshot().note(id)?.is_none_or(|note| note != kept.note()) {
            return Ok(false);
        }
        let mut transaction = self.store.transaction();
        kept.delete(&mut transaction, id)?;
        transaction.commit(self.durability)?;
        Ok(true)
    }

    /// The store: the fingerprints of a document are its sketches, or keys of its features if these are few.
    pub fn store(&self) -> &Store<u64> {
        &self.store
    }

    /// How similar documents are found.
    pub fn settings(&self) -> &SimilarSettings {
        &self.settings
    }
}

/// Four tables take 23 bytes a sketch where one takes 6, little beside a sample of 1 KiB. By the cost model, a million documents
/// are asked for a sketch in 0.3 ms, where reading all of one table takes 21: what suits the size of the tables alone.
const PLAN: &str = "probe-4";
const LARGE_DISTANCE: u32 = 8;

/// Opens a store that finds similar documents, or makes it, with tables for its distance unless they are given; its distance is that of the settings.
///
/// # Errors
/// As [`Store::open`]; [`Error::Setting`] if there is a store with other settings, or one of fingerprints.
pub fn open_similar(path: &Path, options: StoreOptions, settings: SimilarSettings) -> Result<Store<u64>> {
    // A store that is there has a distance of its own, which may be greater than what is looked up.
    let there = if is_store(path) { stored(&Snapshot::open(path)?, settings)? } else { None };
    let distance = if there.is_some() { None } else { Some(settings.distance()) };
    let mut options = StoreOptions { distance, ids: Some(true), ..options };
    if !is_store(path) && settings.distance() >= LARGE_DISTANCE {
        options.plan.get_or_insert_with(|| PlanChoice::Named(PLAN.to_owned()));
    }
    let store = Store::open(path, options)?;
    if stored(&store.snapshot(), settings)?.is_none() {
        let mut transaction = store.transaction();
        transaction.mark(SIMILAR_MARK, settings.to_string().as_bytes())?;
        transaction.commit(Durability::Sync)?;
    }
    Ok(store)
}

/// The settings of a store that finds what these find; `None` for one that was just made, or whose making was cut off.
fn stored(store: &Snapshot<u64>, settings: SimilarSettings) -> Result<Option<SimilarSettings>> {
    match SimilarSettings::of_store(store)? {
        Some(has) if has.finds_as(&settings) => Ok(Some(has)),
        None if store.is_empty() && store.highest_id().is_none() => Ok(None),
        has => Err(Error::Setting {
            path: store.path().to_path_buf(),
            setting: "settings",
            has: has.map_or_else(|| "for fingerprints alone".to_owned(), |has| has.to_string()),
            asked: settings.to_string(),
        }),
    }
}

impl Kept {
    /// Stores the document under an id, and a name if it has one.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the name is too long.
    pub fn insert<F: Fingerprint>(
        &self,
        transaction: &mut Transaction<'_, F>,
        id: u64,
        name: Option<&str>,
    ) -> Result<()> {
        for (at, fingerprint) in self.fingerprints().enumerate() {
            match name.filter(|_| at == 0) {
                Some(name) => transaction.insert_named(fingerprint, id, name)?,
                None => transaction.insert(fingerprint, id),
            }
        }
        transaction.note(id, &self.note())
    }

    /// Deletes the document that is stored under an id.
    ///
    /// # Errors
    /// As [`Transaction::note`].
    pub fn delete<F: Fingerprint>(&self, transaction: &mut Transaction<'_, F>, id: u64) -> Result<()> {
        self.fingerprints().for_each(|fingerprint| transaction.delete(fingerprint, id));
        // So that the id is free for another text.
        transaction.note(id, &[])
    }
}
