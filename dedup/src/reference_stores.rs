//! Reference stores. Input documents are compared with the documents in these stores, and an input document is
//! removed if it is near a stored document.

use std::any::Any;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use simstore::any::{AnySnapshot, AnyStore, AnyWidth, Width};
use simstore::store::is_store;
use simstore::{Codec, Error, Fingerprint, Result, Snapshot, Store, StoreOptions, each_width};
use simstore_corpus::spill::MemoryBudget;
use simstore_corpus::{Diagnostic, Observer, torn_log_tails};
use simstore_text::{DocumentComparer, Profile, SIMILAR_STORE_KEY, SimilarSettings};

/// Least memory that a store gets for sorting when documents are added, in bytes.
const MIN_SORT_BYTES: u64 = 16 << 20;

/// Store that input documents are compared with, and perhaps added to.
pub(crate) struct ReferenceStore {
    path: PathBuf,
    /// The store opened for writing, if documents are added to it. It is open during the whole run, so that
    /// no other process adds documents between the comparison and the commit.
    pub(crate) store: Option<AnyStore>,
    /// Content of the store; `None` if the store does not exist yet.
    snapshot: Option<AnySnapshot>,
}

impl ReferenceStore {
    /// Opens the store in the folder `path`, if it exists: for writing if `add` is set, otherwise only for reading.
    /// If no store exists there, the result has neither a store nor a snapshot.
    fn open(
        path: &Path,
        width: Width,
        add: bool,
        budget: MemoryBudget,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let exists = has_store(path)?;
        let store = if add && exists { Some(open_store(path, width, &write_options(budget))?) } else { None };
        if let Some(torn_tail) = store.as_ref().and_then(AnyStore::torn_tail) {
            observer.diagnostic(&Diagnostic::Warning(&torn_tail.to_string()));
        }
        // A killed run created the store without its settings, so it is created again.
        let store = store.filter(|store| !is_half_created(&store.snapshot()));
        let snapshot = match &store {
            Some(store) => Some(store.snapshot()),
            None if exists && !add => Some(open_read_only(path, width, observer)?),
            None => None,
        };
        Ok(ReferenceStore { path: path.to_path_buf(), store, snapshot })
    }

    /// Content of the store; `None` if the store does not exist yet.
    pub(crate) fn snapshot(&self) -> Option<&AnySnapshot> {
        self.snapshot.as_ref()
    }

    /// Path of the store as the user gave it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the store exists.
    pub(crate) fn exists(&self) -> bool {
        self.snapshot.is_some()
    }
}

/// Reference stores of a run. All have the same kind, width and profile.
pub(crate) struct ReferenceStores {
    pub(crate) stores: Vec<ReferenceStore>,
    /// Profile of the stores. `None` if there are no stores, or if no store has a profile, so that any profile
    /// is allowed.
    pub(crate) profile: Option<String>,
    /// Settings of the existing stores, in order; empty unless they are stores of similar documents.
    pub(crate) settings: Vec<SimilarSettings>,
}

impl ReferenceStores {
    /// Opens all stores. If `add` is set, opens the first store for writing; it may be missing.
    ///
    /// # Errors
    /// [`Error::Refused`] if the stores differ in kind or profile.
    pub(crate) fn open(
        paths: &[PathBuf],
        width: Width,
        add: bool,
        budget: MemoryBudget,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let stores = paths.iter().enumerate();
        let stores: Vec<ReferenceStore> = stores
            .map(|(at, path)| ReferenceStore::open(path, width, add && at == 0, budget, observer))
            .collect::<Result<_>>()?;
        let (profile, settings) = (common_profile(&stores)?.map(str::to_owned), similar_settings(&stores)?);
        Ok(ReferenceStores { stores, profile, settings })
    }

    /// Snapshots of the existing stores.
    pub(crate) fn snapshots(&self) -> impl Iterator<Item = &AnySnapshot> {
        self.stores.iter().filter_map(ReferenceStore::snapshot)
    }

    /// Existing stores of the width of `F`: the index of each store among all reference stores, and its snapshot.
    pub(crate) fn with_width<F: Fingerprint>(&self) -> impl Iterator<Item = (u32, &Snapshot<F>)> {
        let stores = (0..).zip(&self.stores);
        stores.filter_map(|(number, store)| {
            let snapshot = each_width!(store.snapshot()?, snapshot => snapshot as &dyn Any);
            Some((number, snapshot.downcast_ref()?))
        })
    }

    /// Whether the stores are stores of similar documents, not of fingerprints only.
    pub(crate) fn are_similar(&self) -> bool {
        !self.settings.is_empty()
    }

    /// Returns a comparer for each existing store, which computes similarities to the documents of the store.
    /// Returns an empty list if the stores are not stores of similar documents.
    pub(crate) fn text_comparers(&self, profile: &Profile) -> Result<Vec<DocumentComparer>> {
        let stores = self.snapshots().zip(&self.settings);
        stores
            .map(|(store, &settings)| each_width!(store, store => DocumentComparer::new(store, settings, profile.clone())))
            .collect()
    }
}

/// Whether there is a store at `path`. Fails if `path` is a folder that cannot be listed.
fn has_store(path: &Path) -> Result<bool> {
    if is_store(path) {
        return Ok(true);
    }
    match path.read_dir() {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(Error::io(path, "list")(error))
        }
        _ => Ok(false),
    }
}

/// Whether the creation of this store, as a store of similar documents, was interrupted before its settings were
/// written.
fn is_half_created(store: &AnySnapshot) -> bool {
    let has_no_mark = || matches!(store.metadata(SIMILAR_STORE_KEY), Ok(None));
    store.is_empty() && store.highest_id().is_none() && store.codec() == Codec::EliasFano && has_no_mark()
}

/// Opens a store for writing. Creates it if it does not exist.
pub(crate) fn open_store(path: &Path, width: Width, options: &StoreOptions) -> Result<AnyStore> {
    AnyWidth::with_bits(
        width.bits(),
        || Store::open(path, options.clone()),
        || Store::open(path, options.clone()),
    )
}

/// Opens a store for reading only. Warns if the end of its log is torn: inputs are then not compared with the
/// documents that were lost there.
fn open_read_only(path: &Path, width: Width, observer: &dyn Observer) -> Result<AnySnapshot> {
    let open = || Snapshot::open_retrying(path);
    let store: AnySnapshot = AnyWidth::with_bits(width.bits(), open, || Snapshot::open_retrying(path))?;
    let torn_tails: Vec<Error> = each_width!(&store, store => torn_log_tails(store).collect());
    for torn in torn_tails {
        observer.diagnostic(&Diagnostic::Warning(&format!("these lost writes are not compared: {torn}")));
    }
    Ok(store)
}

/// Options for a store opened for writing. Sorting uses a quarter of the memory budget, but at least
/// [`MIN_SORT_BYTES`].
pub(crate) fn write_options(budget: MemoryBudget) -> StoreOptions {
    let memory = (budget.bytes < u64::MAX).then_some((budget.bytes / 4).max(MIN_SORT_BYTES));
    StoreOptions { memory, ..StoreOptions::default() }
}

/// Returns the profile that all stores with a profile have; `None` if no store has a profile. Fails if profiles
/// differ.
fn common_profile(stores: &[ReferenceStore]) -> Result<Option<&str>> {
    let profiles = stores.iter().filter_map(|store| Some((store, store.snapshot()?.profile())));
    let mut profiles = profiles.filter(|(_, profile)| !profile.is_empty());
    let Some((first, profile)) = profiles.next() else { return Ok(None) };
    match profiles.find(|(_, other)| *other != profile) {
        Some((store, other)) => Err(Error::Refused(format!(
            "{}: has profile {other}, but {} has {profile}: use stores of one profile",
            store.path.display(),
            first.path.display()
        ))),
        None => Ok(Some(profile)),
    }
}

/// Returns the settings of the existing stores if they are stores of similar documents, else an empty list. Fails
/// if only some of the stores are stores of similar documents.
fn similar_settings(stores: &[ReferenceStore]) -> Result<Vec<SimilarSettings>> {
    let mut kinds = Vec::new();
    for store in stores {
        // A missing store is created with the kind of the others.
        let Some(snapshot) = store.snapshot() else { continue };
        kinds.push((store, each_width!(snapshot, snapshot => SimilarSettings::from_store(snapshot))?));
    }
    let similar = kinds.iter().find(|(_, settings)| settings.is_some());
    let others = kinds.iter().find(|(_, settings)| settings.is_none());
    if let (Some((similar, _)), Some((other, _))) = (similar, others) {
        return Err(Error::Refused(format!(
            "{}: is a store of similar documents, but {} is a store of fingerprints: use stores of one kind",
            similar.path.display(),
            other.path.display()
        )));
    }
    Ok(kinds.into_iter().filter_map(|(_, settings)| settings).collect())
}
