//! Texts in, similar documents out: a live store that remembers documents by their sketches.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use simstore::error::excerpt;
use simstore::store::is_store;
use simstore::{Codec, Durability, Error, Insertion, PlanChoice, Result, Snapshot, Store, StoreOptions};

use super::texts::LEARNT_FROM;
use super::{DocumentNames, Kept, SIMILAR_MARK, SimilarDocument, SimilarSettings, StoredTexts};
use crate::{Profile, Sketched};
use xxhash_rust::xxh3::xxh3_64;

/// Result of [`SimilarDocuments::add`].
#[derive(Clone, Debug, PartialEq)]
pub enum SimilarAddition {
    /// Nothing similar was found; it is remembered now.
    Remembered,
    /// These earlier documents are similar, the most similar first; it is not remembered.
    SimilarTo(Vec<SimilarDocument>),
    /// The text has no features; it is not remembered.
    Empty,
}

/// A text that is ready to be added to a store, made by [`SimilarDocuments::prepare`].
#[derive(Clone, Debug)]
pub struct PreparedText {
    kept: Kept,
    features: Vec<u64>,
}

/// Ids share so many locks.
const LOCKS: usize = 64;

/// A store of documents by their similarity: each is remembered if it is new, and answered with the earlier ones that are
/// similar if it is not.
///
/// Of each document the store has sketches, 76 bytes, and some of them once more in its tables. Documents of just the least
/// similarity become candidates with the recall that was asked for, more similar ones with a greater one, equal ones always. In a store
/// [with texts](SimilarSettings::with_texts) similarities are exact. In others they are estimates with a standard error: about half of the
/// documents of just the least similarity are found. A document that has several candidates near it is new unless an estimate is
/// within the [limit](super::EstimateLimit) for all of them.
///
/// ```
/// use simstore::StoreOptions;
/// use simstore_text::{Profile, SimilarAddition, SimilarDocuments, SimilarSettings};
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("pages");
/// let settings = SimilarSettings::new(0.8, 0.95)?.with_texts();
/// let pages = SimilarDocuments::open(&path, StoreOptions::default(), Profile::shingles(), settings)?;
/// let text = "The quick brown fox jumps over the lazy dog, and over the sleeping cat.";
/// assert_eq!(pages.add(text, 1, Some("fox"))?, SimilarAddition::Remembered);
/// let SimilarAddition::SimilarTo(earlier) = pages.add(&text.replace("cat", "fox"), 2, None)? else { panic!() };
/// assert_eq!((earlier[0].id, earlier[0].name.as_deref()), (1, Some("fox")));
/// assert_eq!((earlier[0].estimate.similarity, earlier[0].estimate.standard_error), (11.0 / 13.0, 0.0));
/// assert_eq!(pages.text(1)?.as_deref(), Some(text));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SimilarDocuments {
    store: Store<u64>,
    texts: StoredTexts,
    durability: Durability,
    /// Documents that were added since it was last looked whether a dictionary can be made.
    since: AtomicUsize,
    /// Held while a document is written: the lock of its id modulo their number.
    writing: [Mutex<()>; LOCKS],
    /// Held while a document with a name is written: the lock of the name's hash modulo their number. Taken after `writing`.
    naming: [Mutex<()>; LOCKS],
    /// The names of all documents, once one with a name is added.
    names: Mutex<Option<DocumentNames>>,
    /// The highest id that there ever was: the store looks through what is in its memory for it.
    highest: Mutex<Option<u64>>,
}

impl SimilarDocuments {
    /// Opens a store of documents with these settings, or makes it. How texts become features is kept with it.
    /// The distance of the options is left out.
    ///
    /// # Errors
    /// As [`Store::open`]; [`Error::Setting`] if the store has another profile or other settings, or is of fingerprints.
    pub fn open(
        path: &Path,
        options: StoreOptions,
        profile: Profile,
        settings: SimilarSettings,
    ) -> Result<Self> {
        let durability = options.durability;
        let options = StoreOptions { profile: Some(profile.to_string()), ..options };
        let store = open_similar(path, options, settings)?;
        // Those of a store that is there count: it may look up another number of sketches.
        let settings = SimilarSettings::of_store(&store.snapshot())?.unwrap_or(settings);
        let texts = StoredTexts::new(&store.snapshot(), settings, profile)?;
        let [writing, naming] = std::array::from_fn(|_| std::array::from_fn(|_| Mutex::new(())));
        let highest = Mutex::new(store.snapshot().highest_id());
        Ok(SimilarDocuments {
            store,
            texts,
            durability,
            since: AtomicUsize::new(LEARNT_FROM),
            writing,
            naming,
            names: Mutex::default(),
            highest,
        })
    }

    /// Remembers a text under an id, unless earlier ones are found that are similar. Acknowledged as
    /// [`StoreOptions::durability`] says. Threads may add at once: of two similar texts one is remembered.
    ///
    /// # Errors
    /// Those of [`SimilarDocuments::prepare`] and [`SimilarDocuments::add_prepared`].
    pub fn add(&self, text: &str, id: u64, name: Option<&str>) -> Result<SimilarAddition> {
        match self.prepare(text)? {
            Some(prepared) => self.add_prepared(&prepared, id, name),
            None => Ok(SimilarAddition::Empty),
        }
    }

    /// Makes what is kept of a text, which takes most of the time of adding it; `None` if the text has no features. Any number of
    /// threads may do so at once.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the text is too long to be kept.
    pub fn prepare(&self, text: &str) -> Result<Option<PreparedText>> {
        let features = self.texts.profile().feature_set(text);
        let Some(sketched) = Sketched::new(&features) else { return Ok(None) };
        let kept = Kept::new(sketched, text, &self.texts)?;
        Ok(Some(PreparedText { kept, features }))
    }

    /// As [`SimilarDocuments::add`].
    ///
    /// # Errors
    /// Those of the store; [`Error::BadArgument`] if the id or the name has another text (it may be
    /// [removed](SimilarDocuments::remove) first), or the name is longer than 64 KiB.
    pub fn add_prepared(
        &self,
        prepared: &PreparedText,
        id: u64,
        name: Option<&str>,
    ) -> Result<SimilarAddition> {
        let PreparedText { kept, features } = prepared;
        let writing = self.writing(id);
        self.is_known(kept, id)?;
        let naming = name.map(|name| self.naming(name));
        name.map_or(Ok(()), |name| self.check_name(kept, id, name))?;
        let mut transaction = self.store.transaction();
        kept.insert(&mut transaction, id, name)?;
        let (mut similar, mut asked) = (Vec::new(), HashSet::new());
        let insertion = transaction.commit_unless(self.durability, |matches| {
            let ids = matches.iter().filter_map(|found| found.id);
            let mut ids: Vec<u64> = ids.filter(|&id| asked.insert(id)).collect();
            ids.sort_unstable();
            let (snapshot, least) = (self.store.snapshot(), self.settings().similar());
            similar =
                self.texts.earlier_among(&snapshot, kept.sketched(), || Ok(features.clone()), &ids, least)?;
            Ok(!similar.is_empty())
        })?;
        Ok(match insertion {
            Insertion::Inserted => {
                self.written(id, name);
                drop((writing, naming));
                self.learn()?;
                SimilarAddition::Remembered
            }
            Insertion::DuplicateOf(_) => SimilarAddition::SimilarTo(similar),
        })
    }

    /// Remembers a text under an id, without looking for similar ones. Says whether it was not there: the same text under the same id
    /// again changes nothing.
    ///
    /// ```
    /// use simstore::StoreOptions;
    /// use simstore_text::{Profile, SimilarDocuments, SimilarSettings};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("pages");
    /// let settings = SimilarSettings::new(0.8, 0.95)?;
    /// let pages = SimilarDocuments::open(&path, StoreOptions::default(), Profile::shingles(), settings)?;
    /// let text = pages.prepare("To be, or not to be, that is the question")?.expect("it has words");
    /// assert!(pages.insert(&text, 1, None)? && pages.insert(&text, pages.next_id()?, Some("hamlet"))?);
    /// assert!(!pages.insert(&text, 1, None)?);
    /// assert_eq!(pages.id_of(&text, "hamlet")?, Some(2));
    /// assert_eq!(pages.find("To be or not to be: that is the question!")?.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`SimilarDocuments::add_prepared`].
    pub fn insert(&self, prepared: &PreparedText, id: u64, name: Option<&str>) -> Result<bool> {
        let writing = self.writing(id);
        if self.is_known(&prepared.kept, id)? {
            return Ok(false);
        }
        let naming = name.map(|name| self.naming(name));
        name.map_or(Ok(()), |name| self.check_name(&prepared.kept, id, name))?;
        let mut transaction = self.store.transaction();
        prepared.kept.insert(&mut transaction, id, name)?;
        transaction.commit(self.durability)?;
        self.written(id, name);
        drop((writing, naming));
        self.learn()?;
        Ok(true)
    }

    /// Refuses a name that another text has. The same text may have it under several ids.
    fn check_name(&self, kept: &Kept, id: u64, name: &str) -> Result<()> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        // After the lock: a name that was written before it, when there was no index to enter it into, is in the snapshot.
        let snapshot = self.store.snapshot();
        let names = match &mut *names {
            Some(names) => names,
            none => none.insert(DocumentNames::read(&snapshot)?),
        };
        for other in names.find(&snapshot, name)?.into_iter().filter(|&other| other != id) {
            if self.settings().sketched(&snapshot, other)?.is_some_and(|stored| stored != *kept.sketched()) {
                return Err(Error::BadArgument(format!(
                    "the name `{}` already has another text (id {other}): delete that document first",
                    excerpt(name)
                )));
            }
        }
        Ok(())
    }

    /// Whether a document is stored under an id.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if another one is.
    fn is_known(&self, kept: &Kept, id: u64) -> Result<bool> {
        // There is nothing to read after the highest id.
        if self.highest().is_none_or(|highest| id > highest) {
            return Ok(false);
        }
        match self.settings().sketched(&self.store.snapshot(), id)? {
            Some(stored) if stored != *kept.sketched() => Err(Error::BadArgument(format!(
                "the id {id} already has another text: delete that document first"
            ))),
            stored => Ok(stored.is_some()),
        }
    }

    /// The id under which a text is stored with this name; `None` if it is not.
    ///
    /// # Errors
    /// Those of reading the store.
    pub fn id_of(&self, prepared: &PreparedText, name: &str) -> Result<Option<u64>> {
        let (snapshot, sketched) = (self.store.snapshot(), prepared.kept.sketched());
        let Some(first) = prepared.kept.fingerprints::<u64>().next() else { return Ok(None) };
        for id in snapshot.query(first, 0)?.iter().filter_map(|found| found.id) {
            if self.settings().sketched(&snapshot, id)?.as_ref() == Some(sketched)
                && snapshot.name(id)?.as_deref() == Some(name)
            {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// One more than the highest id that there ever was: for a document that has none.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if that is 2^64 - 1.
    pub fn next_id(&self) -> Result<u64> {
        self.highest().map_or(Some(0), |id| id.checked_add(1)).ok_or_else(|| {
            Error::BadArgument(
                "the greatest id, 2^64 - 1, is in use, so no other document can be numbered".to_owned(),
            )
        })
    }

    fn highest(&self) -> MutexGuard<'_, Option<u64>> {
        self.highest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn written(&self, id: u64, name: Option<&str>) {
        let mut highest = self.highest();
        *highest = (*highest).max(Some(id));
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(names), Some(name)) = (&mut *names, name) {
            names.enter(name, id);
        }
    }

    /// Locks a name for a write.
    fn naming(&self, name: &str) -> MutexGuard<'_, ()> {
        let rest = xxh3_64(name.as_bytes()) % LOCKS as u64;
        self.naming[rest as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks an id for a write.
    fn writing(&self, id: u64) -> MutexGuard<'_, ()> {
        self.writing[(id % LOCKS as u64) as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a dictionary when there are enough texts; checks that now and then.
    fn learn(&self) -> Result<()> {
        if self.settings().has_texts() && self.since.fetch_add(1, Ordering::Relaxed) == LEARNT_FROM {
            let has_one = self.texts.learn(&self.store)?;
            self.since.store(if has_one { LEARNT_FROM + 1 } else { 0 }, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The documents that are similar to a text, the most similar first; none for white space.
    ///
    /// # Errors
    /// Those of [`SimilarSettings::candidates`] and [`StoredTexts::similar_among`].
    pub fn find(&self, text: &str) -> Result<Vec<SimilarDocument>> {
        let features = self.texts.profile().feature_set(text);
        let Some(sketched) = Sketched::new(&features) else { return Ok(Vec::new()) };
        let candidates = self.settings().candidates(&self.store.snapshot(), &sketched)?;
        self.among(&sketched, || Ok(features), &candidates)
    }

    /// Those of some documents that are similar.
    fn among(
        &self,
        sketched: &Sketched,
        features: impl FnOnce() -> Result<Vec<u64>>,
        ids: &[u64],
    ) -> Result<Vec<SimilarDocument>> {
        let least = self.settings().similar();
        self.texts.similar_among(&self.store.snapshot(), sketched, features, ids, least)
    }

    /// The text that was added under an id; `None` if the id is free, or texts are not kept.
    ///
    /// # Errors
    /// As [`StoredTexts::text`].
    pub fn text(&self, id: u64) -> Result<Option<String>> {
        self.texts.text(&self.store.snapshot(), id)
    }

    /// Forgets what was added under an id; says whether it was there.
    ///
    /// # Errors
    /// As [`Transaction::commit`](simstore::Transaction::commit).
    pub fn remove(&self, id: u64) -> Result<bool> {
        let _writing = self.writing(id);
        let Some(sketched) = self.settings().sketched(&self.store.snapshot(), id)? else { return Ok(false) };
        let mut transaction = self.store.transaction();
        self.settings().delete(&mut transaction, &sketched, id);
        transaction.commit(self.durability)?;
        Ok(true)
    }

    /// Number of documents: an upper bound while some that were deleted are still in the store's files.
    pub fn count(&self) -> u64 {
        let stats = self.store.snapshot().stats();
        (stats.ids + stats.memtable_entries) / self.settings().sketches() as u64
    }

    /// How texts become features.
    pub fn profile(&self) -> &Profile {
        self.texts.profile()
    }

    /// The store: the fingerprints of a document are some of its sketches.
    pub fn store(&self) -> &Store<u64> {
        &self.store
    }

    /// How similar documents are found.
    pub fn settings(&self) -> &SimilarSettings {
        self.texts.settings()
    }
}

/// Three tables are the fastest at the distances of these stores, from a thousand sketches to a billion, by the cost model.
const PLAN: &str = "probe-3";
const LARGE_DISTANCE: u32 = 4;

/// Opens or makes a store of similar documents. A new store has the distance of the settings, and tables for it unless they are given.
///
/// # Errors
/// As [`Store::open`]; [`Error::Setting`] if an existing store has other settings, or holds fingerprints alone.
pub fn open_similar(path: &Path, options: StoreOptions, settings: SimilarSettings) -> Result<Store<u64>> {
    // An existing store has its own distance, which may be greater than the one of the settings.
    let there = if is_store(path) { settings.stored_in(&Snapshot::open(path)?)? } else { None };
    let distance = if there.is_some() { None } else { Some(settings.distance()) };
    let mut options = StoreOptions { distance, ids: Some(true), ..options };
    if !is_store(path) && settings.distance() >= LARGE_DISTANCE {
        options.plan.get_or_insert_with(|| PlanChoice::Named(PLAN.to_owned()));
    }
    if !is_store(path) {
        options.codec.get_or_insert(Codec::EliasFano);
    }
    let store = Store::open(path, options)?;
    if settings.stored_in(&store.snapshot())?.is_none() {
        let mut transaction = store.transaction();
        transaction.mark(SIMILAR_MARK, settings.to_string().as_bytes())?;
        transaction.commit(Durability::Sync)?;
    }
    Ok(store)
}
