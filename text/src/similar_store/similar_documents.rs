//! Additions, removals and searches in a store of similar documents, from any number of threads. Start with [`SimilarDocuments`].

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use simstore::error::excerpt;
use simstore::store::is_store;
use simstore::{Codec, Durability, Error, Insertion, PlanChoice, Result, Snapshot, Store, StoreOptions};

use super::text_codec::DICTIONARY_SAMPLES;
use super::{
    DocumentComparer, DocumentNameIndex, EncodedDocument, SIMILAR_STORE_KEY, SimilarDocument, SimilarSettings,
};
use crate::{Profile, Signature};
use xxhash_rust::xxh3::xxh3_64;

/// Result of [`SimilarDocuments::add`].
#[derive(Clone, Debug, PartialEq)]
pub enum SimilarAddition {
    /// No stored document is similar, so the document was added.
    Added,
    /// These stored documents are similar, the most similar first. The document was not added.
    SimilarTo(Vec<SimilarDocument>),
    /// The text has no features, so the document was not added.
    Empty,
}

/// A text with its features and signature, ready to be added to a store: the result of [`SimilarDocuments::prepare`].
#[derive(Clone, Debug)]
pub struct PreparedText {
    encoded: EncodedDocument,
    features: Vec<u64>,
}

/// Number of locks for ids, and also number of locks for names. Ids with the same remainder modulo this number share a lock. Names
/// whose hashes have the same remainder share a lock too.
const LOCK_COUNT: usize = 64;

/// A [store of similar documents](open_similar_store), open for reading and writing. It adds a document if no stored document is
/// similar; otherwise it returns the similar documents.
///
/// The store keeps a signature of 76 bytes for each document, and indexes the signature's first bands as fingerprints. A stored
/// document exactly at the similarity threshold becomes a candidate with the probability of the
/// [recall](SimilarSettings::recall). More similar documents have a higher probability, and equal documents always become
/// candidates.
///
/// In a store [with texts](SimilarSettings::with_texts), similarities are exact. In other stores they are estimates with a
/// standard error, so about half of the documents exactly at the threshold are found. If a document has several candidates near
/// the threshold, it counts as new unless an estimate reaches the [limit](super::EstimateLimit) for this number of candidates.
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
/// assert_eq!(pages.add(text, 1, Some("fox"))?, SimilarAddition::Added);
/// let SimilarAddition::SimilarTo(earlier) = pages.add(&text.replace("cat", "fox"), 2, None)? else { panic!() };
/// assert_eq!((earlier[0].id, earlier[0].name.as_deref()), (1, Some("fox")));
/// assert_eq!((earlier[0].estimate.similarity, earlier[0].estimate.standard_error), (11.0 / 13.0, 0.0));
/// assert_eq!(pages.text(1)?.as_deref(), Some(text));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SimilarDocuments {
    store: Store<u64>,
    comparer: DocumentComparer,
    durability: Durability,
    /// Number of documents added since the last check whether the store has enough texts to train a compression dictionary.
    additions_since_check: AtomicUsize,
    /// Locks for ids. A writer of a document holds the lock with index `id % LOCK_COUNT`.
    id_locks: [Mutex<()>; LOCK_COUNT],
    /// Locks for names. A writer of a document with a name first takes the lock for the document's id, then the lock with index
    /// `hash % LOCK_COUNT`, where `hash` is the hash of the name.
    name_locks: [Mutex<()>; LOCK_COUNT],
    /// Index of all names in the store. It is built when the first document with a name is added after opening.
    names: Mutex<Option<DocumentNameIndex>>,
    /// Highest id that was ever used. It is cached, because [`Snapshot::highest_id`] scans the memtables.
    highest_id: Mutex<Option<u64>>,
}

impl SimilarDocuments {
    /// Opens the store at `path`, or creates it with this profile and these settings. The distance and the profile in `options`
    /// are ignored, because `settings` and `profile` take their place.
    ///
    /// # Errors
    /// The errors of [`Store::open`]; [`Error::Setting`] if the store has another profile or other settings, or is no store of
    /// similar documents.
    pub fn open(
        path: &Path,
        options: StoreOptions,
        profile: Profile,
        settings: SimilarSettings,
    ) -> Result<Self> {
        let durability = options.durability;
        let options = StoreOptions { profile: Some(profile.to_string()), ..options };
        let store = open_similar_store(path, options, settings)?;
        // An existing store keeps its own settings, since its number of bands may differ.
        let settings = SimilarSettings::from_store(&store.snapshot())?.unwrap_or(settings);
        let comparer = DocumentComparer::new(&store.snapshot(), settings, profile)?;
        let [id_locks, name_locks] = std::array::from_fn(|_| std::array::from_fn(|_| Mutex::new(())));
        let highest_id = Mutex::new(store.snapshot().highest_id());
        Ok(SimilarDocuments {
            store,
            comparer,
            durability,
            additions_since_check: AtomicUsize::new(DICTIONARY_SAMPLES),
            id_locks,
            name_locks,
            names: Mutex::default(),
            highest_id,
        })
    }

    /// Adds a document with an id and an optional name, unless similar documents are found. Returns when the write has the
    /// durability of [`StoreOptions::durability`]. Threads may call this method concurrently. If two threads add similar texts,
    /// only one text is added.
    ///
    /// # Errors
    /// The errors of [`SimilarDocuments::prepare`] and [`SimilarDocuments::add_prepared`].
    pub fn add(&self, text: &str, id: u64, name: Option<&str>) -> Result<SimilarAddition> {
        match self.prepare(text)? {
            Some(prepared) => self.add_prepared(&prepared, id, name),
            None => Ok(SimilarAddition::Empty),
        }
    }

    /// Computes the features and the signature of a text, and compresses the text if the store keeps texts. Returns `None` if the
    /// text has no features. Preparation is most of the work of adding a document, and runs concurrently on any number of threads.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the text is too long for a store that keeps texts.
    pub fn prepare(&self, text: &str) -> Result<Option<PreparedText>> {
        let features = self.comparer.profile().feature_set(text);
        let Some(signature) = Signature::new(&features) else { return Ok(None) };
        let encoded = EncodedDocument::new(signature, text, &self.comparer)?;
        Ok(Some(PreparedText { encoded, features }))
    }

    /// Like [`SimilarDocuments::add`], for a prepared text.
    ///
    /// # Errors
    /// Errors of reading or writing the store; [`Error::BadArgument`] if the id or the name belongs to a document with another
    /// text ([remove](SimilarDocuments::remove) that document first), or if the name is longer than 64 KiB.
    pub fn add_prepared(
        &self,
        prepared: &PreparedText,
        id: u64,
        name: Option<&str>,
    ) -> Result<SimilarAddition> {
        let PreparedText { encoded, features } = prepared;
        let id_lock = self.id_lock(id);
        self.is_stored(encoded, id)?;
        let name_lock = name.map(|name| self.name_lock(name));
        name.map_or(Ok(()), |name| self.check_name(encoded, id, name))?;
        let mut transaction = self.store.transaction();
        encoded.insert(&mut transaction, id, name)?;
        let (mut similar, mut seen) = (Vec::new(), HashSet::new());
        let insertion = transaction.commit_unless(self.durability, |matches| {
            let ids = matches.iter().filter_map(|found| found.id);
            let mut ids: Vec<u64> = ids.filter(|&id| seen.insert(id)).collect();
            ids.sort_unstable();
            let (snapshot, min_similarity) = (self.store.snapshot(), self.settings().min_similarity());
            similar = self.comparer.find_earlier(
                &snapshot,
                encoded.signature(),
                || Ok(features.clone()),
                &ids,
                min_similarity,
            )?;
            Ok(!similar.is_empty())
        })?;
        Ok(match insertion {
            Insertion::Inserted => {
                self.record_write(id, name);
                drop((id_lock, name_lock));
                self.build_dictionary_if_due()?;
                SimilarAddition::Added
            }
            Insertion::DuplicateOf(_) => SimilarAddition::SimilarTo(similar),
        })
    }

    /// Inserts a document with an id and an optional name, without a search for similar documents. Returns `false`, and changes
    /// nothing, if the same text is already stored with this id.
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
    /// assert_eq!(pages.find_id(&text, "hamlet")?, Some(2));
    /// assert_eq!(pages.find("To be or not to be: that is the question!")?.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`SimilarDocuments::add_prepared`].
    pub fn insert(&self, prepared: &PreparedText, id: u64, name: Option<&str>) -> Result<bool> {
        let id_lock = self.id_lock(id);
        if self.is_stored(&prepared.encoded, id)? {
            return Ok(false);
        }
        let name_lock = name.map(|name| self.name_lock(name));
        name.map_or(Ok(()), |name| self.check_name(&prepared.encoded, id, name))?;
        let mut transaction = self.store.transaction();
        prepared.encoded.insert(&mut transaction, id, name)?;
        transaction.commit(self.durability)?;
        self.record_write(id, name);
        drop((id_lock, name_lock));
        self.build_dictionary_if_due()?;
        Ok(true)
    }

    /// Returns an error if a document with another text and another id has this name. Several documents with the same text may
    /// share a name.
    fn check_name(&self, encoded: &EncodedDocument, id: u64, name: &str) -> Result<()> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        // The snapshot is taken after the lock. So it contains every name that was written before the index existed.
        let snapshot = self.store.snapshot();
        let names = match &mut *names {
            Some(names) => names,
            none => none.insert(DocumentNameIndex::read(&snapshot)?),
        };
        for other in names.find(&snapshot, name)?.into_iter().filter(|&other| other != id) {
            if self
                .settings()
                .signature(&snapshot, other)?
                .is_some_and(|stored| stored != *encoded.signature())
            {
                return Err(Error::BadArgument(format!(
                    "the name `{}` already has another text (id {other}): delete that document first",
                    excerpt(name)
                )));
            }
        }
        Ok(())
    }

    /// Whether a document with the same text is already stored with this id.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if a document with another text is stored with this id.
    fn is_stored(&self, encoded: &EncodedDocument, id: u64) -> Result<bool> {
        // No document has an id above the highest one, so nothing needs to be read.
        if self.highest_id().is_none_or(|highest_id| id > highest_id) {
            return Ok(false);
        }
        match self.settings().signature(&self.store.snapshot(), id)? {
            Some(stored) if stored != *encoded.signature() => Err(Error::BadArgument(format!(
                "the id {id} already has another text: delete that document first"
            ))),
            stored => Ok(stored.is_some()),
        }
    }

    /// Returns the id of a stored document with this text and this name; `None` if no such document is stored.
    ///
    /// # Errors
    /// Errors of reading the store.
    pub fn find_id(&self, prepared: &PreparedText, name: &str) -> Result<Option<u64>> {
        let (snapshot, signature) = (self.store.snapshot(), prepared.encoded.signature());
        let Some(first) = prepared.encoded.fingerprints::<u64>().next() else { return Ok(None) };
        for id in snapshot.query(first, 0)?.iter().filter_map(|found| found.id) {
            if self.settings().signature(&snapshot, id)?.as_ref() == Some(signature)
                && snapshot.name(id)?.as_deref() == Some(name)
            {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// Returns an unused id for a new document: the highest id that was ever used plus 1.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the highest id is 2^64 - 1.
    pub fn next_id(&self) -> Result<u64> {
        self.highest_id().map_or(Some(0), |id| id.checked_add(1)).ok_or_else(|| {
            Error::BadArgument(
                "the greatest id, 2^64 - 1, is in use, so no other document can be numbered".to_owned(),
            )
        })
    }

    fn highest_id(&self) -> MutexGuard<'_, Option<u64>> {
        self.highest_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record_write(&self, id: u64, name: Option<&str>) {
        let mut highest_id = self.highest_id();
        *highest_id = (*highest_id).max(Some(id));
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(names), Some(name)) = (&mut *names, name) {
            names.insert(name, id);
        }
    }

    /// Locks a name. The caller holds the lock while it writes a document with this name.
    fn name_lock(&self, name: &str) -> MutexGuard<'_, ()> {
        let rest = xxh3_64(name.as_bytes()) % LOCK_COUNT as u64;
        self.name_locks[rest as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks an id. The caller holds the lock while it writes or removes the document with this id.
    fn id_lock(&self, id: u64) -> MutexGuard<'_, ()> {
        self.id_locks[(id % LOCK_COUNT as u64) as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Trains the store's compression dictionary once the store has enough texts. Counts the texts at the first addition, then
    /// after every [`DICTIONARY_SAMPLES`] additions, until the store has a dictionary.
    fn build_dictionary_if_due(&self) -> Result<()> {
        if self.settings().has_texts()
            && self.additions_since_check.fetch_add(1, Ordering::Relaxed) == DICTIONARY_SAMPLES
        {
            let has_one = self.comparer.build_dictionary(&self.store)?;
            self.additions_since_check
                .store(if has_one { DICTIONARY_SAMPLES + 1 } else { 0 }, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns the stored documents that are similar to a text, the most similar first. The result is empty if the text has no
    /// features.
    ///
    /// # Errors
    /// The errors of [`SimilarSettings::candidates`] and [`DocumentComparer::find_similar`].
    pub fn find(&self, text: &str) -> Result<Vec<SimilarDocument>> {
        let features = self.comparer.profile().feature_set(text);
        let Some(signature) = Signature::new(&features) else { return Ok(Vec::new()) };
        let candidates = self.settings().candidates(&self.store.snapshot(), &signature)?;
        self.compare(&signature, || Ok(features), &candidates)
    }

    /// Returns the documents among `ids` that are similar to a text. `signature` is the signature of the text. `features`
    /// computes the features of the text, and is called only if they are needed.
    fn compare(
        &self,
        signature: &Signature,
        features: impl FnOnce() -> Result<Vec<u64>>,
        ids: &[u64],
    ) -> Result<Vec<SimilarDocument>> {
        let min_similarity = self.settings().min_similarity();
        self.comparer.find_similar(&self.store.snapshot(), signature, features, ids, min_similarity)
    }

    /// Returns the text of the document with this id; `None` if there is no such document or the store keeps no texts.
    ///
    /// # Errors
    /// The errors of [`DocumentComparer::text`].
    pub fn text(&self, id: u64) -> Result<Option<String>> {
        self.comparer.text(&self.store.snapshot(), id)
    }

    /// Removes the document with this id. Returns `false` if there is no such document.
    ///
    /// # Errors
    /// The errors of [`SimilarSettings::signature`] and [`Transaction::commit`](simstore::Transaction::commit).
    pub fn remove(&self, id: u64) -> Result<bool> {
        let _writing = self.id_lock(id);
        let Some(signature) = self.settings().signature(&self.store.snapshot(), id)? else {
            return Ok(false);
        };
        let mut transaction = self.store.transaction();
        self.settings().delete(&mut transaction, &signature, id);
        transaction.commit(self.durability)?;
        Ok(true)
    }

    /// Returns the number of documents. The number is too high while the store's files still contain deleted documents.
    pub fn count(&self) -> u64 {
        let stats = self.store.snapshot().stats();
        (stats.ids + stats.memtable_entries) / self.settings().bands() as u64
    }

    /// Returns the profile, which defines the features of a text.
    pub fn profile(&self) -> &Profile {
        self.comparer.profile()
    }

    /// Returns the underlying store of fingerprints. The fingerprints of a document are the first bands of its MinHash signature.
    /// Their number is [`SimilarSettings::bands`].
    pub fn store(&self) -> &Store<u64> {
        &self.store
    }

    /// Returns the settings of the store.
    pub fn settings(&self) -> &SimilarSettings {
        self.comparer.settings()
    }
}

/// Default [table plan](PlanChoice) of a new store for queries with a distance of at least [`DEFAULT_PLAN_MIN_DISTANCE`]. The plan
/// has three tables. By the cost model, it is the fastest plan at these distances for a thousand to a billion stored bands.
const DEFAULT_PLAN: &str = "probe-3";
const DEFAULT_PLAN_MIN_DISTANCE: u32 = 4;

/// Opens or creates a *store of similar documents*: an on-disk store that keeps a MinHash signature and optionally the text of each
/// document, and finds the stored documents that are similar to a given text.
///
/// The fingerprints in the store are the first bands (64-bit words) of the signatures. A new store answers queries within the
/// [band distance](SimilarSettings::band_distance) of `settings`, and the distance in `options` is ignored. The store's plan and
/// codec suit this distance, unless `options` choose others.
///
/// # Errors
/// The errors of [`Store::open`]; [`Error::Setting`] if an existing store has other settings, or is no store of similar
/// documents.
pub fn open_similar_store(
    path: &Path,
    options: StoreOptions,
    settings: SimilarSettings,
) -> Result<Store<u64>> {
    // An existing store keeps its own distance, which may be greater than the distance of the settings.
    let existing = if is_store(path) { settings.read_equivalent(&Snapshot::open(path)?)? } else { None };
    let distance = if existing.is_some() { None } else { Some(settings.band_distance()) };
    let mut options = StoreOptions { distance, ids: Some(true), ..options };
    if !is_store(path) && settings.band_distance() >= DEFAULT_PLAN_MIN_DISTANCE {
        options.plan.get_or_insert_with(|| PlanChoice::Named(DEFAULT_PLAN.to_owned()));
    }
    if !is_store(path) {
        options.codec.get_or_insert(Codec::EliasFano);
    }
    let store = Store::open(path, options)?;
    if settings.read_equivalent(&store.snapshot())?.is_none() {
        let mut transaction = store.transaction();
        transaction.set_metadata(SIMILAR_STORE_KEY, settings.to_string().as_bytes())?;
        transaction.commit(Durability::Sync)?;
    }
    Ok(store)
}
