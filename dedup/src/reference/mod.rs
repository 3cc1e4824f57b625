//! Reference stores: documents that are near a stored document are removed.

use std::any::Any;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use simstore::any::{AnySnapshot, AnyStore, AnyWidth, Width};
use simstore::store::is_store;
use simstore::{Codec, Error, Fingerprint, Result, Snapshot, Store, StoreOptions, each_width};
use simstore_corpus::spill::MemoryBudget;
use simstore_corpus::{Diagnostic, Observer, torn_log_tails};
use simstore_text::{DocumentComparer, Profile, SIMILAR_STORE_KEY, SimilarSettings};

/// Least memory that the engine sorts in, in bytes.
const LEAST_OF_SORTING: u64 = 16 << 20;

/// A store that documents are compared with, and perhaps added to.
pub(crate) struct ReferenceStore {
    path: PathBuf,
    /// Open for writing, so that no other process adds documents between the comparison and the commit.
    pub(crate) store: Option<AnyStore>,
    /// `None` if the store does not exist yet.
    snapshot: Option<AnySnapshot>,
}

impl ReferenceStore {
    /// Opens the store. Documents that are added are sorted in a share of the memory.
    fn open(
        path: &Path,
        width: Width,
        add: bool,
        budget: MemoryBudget,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let exists = has_store(path)?;
        let store = if add && exists { Some(open_store(path, width, &options(budget))?) } else { None };
        if let Some(torn_end) = store.as_ref().and_then(AnyStore::torn_tail) {
            observer.diagnostic(&Diagnostic::Warning(&torn_end.to_string()));
        }
        // Its making was cut off before it was marked: it is made again.
        let store = store.filter(|store| !is_half_made(&store.snapshot()));
        let snapshot = match &store {
            Some(store) => Some(store.snapshot()),
            None if exists && !add => Some(open_to_read(path, width, observer)?),
            None => None,
        };
        Ok(ReferenceStore { path: path.to_path_buf(), store, snapshot })
    }

    /// Contents of the store, if it exists.
    pub(crate) fn snapshot(&self) -> Option<&AnySnapshot> {
        self.snapshot.as_ref()
    }

    /// As it was named.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is a store to add to.
    pub(crate) fn exists(&self) -> bool {
        self.snapshot.is_some()
    }
}

/// The reference stores of a run. All have the same kind, width and profile.
pub(crate) struct References {
    pub(crate) stores: Vec<ReferenceStore>,
    /// Profile of the stores. `None` without stores, and for stores whose fingerprints may have any profile.
    pub(crate) profile: Option<String>,
    /// Settings of the existing stores, if they are stores of similar documents.
    pub(crate) settings: Vec<SimilarSettings>,
}

impl References {
    /// Opens stores. If `add` is set, the first store is opened for writing, and may be missing.
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
        let (profile, settings) = (profile_of(&stores)?.map(str::to_owned), settings_of(&stores)?);
        Ok(References { stores, profile, settings })
    }

    /// Snapshots of the existing stores.
    pub(crate) fn snapshots(&self) -> impl Iterator<Item = &AnySnapshot> {
        self.stores.iter().filter_map(ReferenceStore::snapshot)
    }

    /// Numbers and snapshots of the existing stores of this width.
    pub(crate) fn of_width<F: Fingerprint>(&self) -> impl Iterator<Item = (u32, &Snapshot<F>)> {
        let stores = (0..).zip(&self.stores);
        stores.filter_map(|(number, store)| {
            let snapshot = each_width!(store.snapshot()?, snapshot => snapshot as &dyn Any);
            Some((number, snapshot.downcast_ref()?))
        })
    }

    /// Whether the stores keep similar documents, not fingerprints alone.
    pub(crate) fn are_similar(&self) -> bool {
        !self.settings.is_empty()
    }

    /// Texts of each existing store, if these are stores of similar documents.
    pub(crate) fn texts(&self, profile: &Profile) -> Result<Vec<DocumentComparer>> {
        let stores = self.snapshots().zip(&self.settings);
        stores
            .map(|(store, &settings)| each_width!(store, store => DocumentComparer::new(store, settings, profile.clone())))
            .collect()
    }
}

/// Whether there is a store; a folder that cannot be listed is not taken for none.
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

/// Whether a store of similar documents was cut off before its mark was written.
fn is_half_made(store: &AnySnapshot) -> bool {
    let has_no_mark = || matches!(store.metadata(SIMILAR_STORE_KEY), Ok(None));
    store.is_empty() && store.highest_id().is_none() && store.codec() == Codec::EliasFano && has_no_mark()
}

/// Opens or creates a store.
pub(crate) fn open_store(path: &Path, width: Width, options: &StoreOptions) -> Result<AnyStore> {
    AnyWidth::with_bits(
        width.bits(),
        || Store::open(path, options.clone()),
        || Store::open(path, options.clone()),
    )
}

/// Opens a store for reading only. Warns of a torn log, since its lost records are not compared.
fn open_to_read(path: &Path, width: Width, observer: &dyn Observer) -> Result<AnySnapshot> {
    let open = || Snapshot::open_retrying(path);
    let store: AnySnapshot = AnyWidth::with_bits(width.bits(), open, || Snapshot::open_retrying(path))?;
    let torn_tails: Vec<Error> = each_width!(&store, store => torn_log_tails(store).collect());
    for torn in torn_tails {
        observer.diagnostic(&Diagnostic::Warning(&format!("these lost writes are not compared: {torn}")));
    }
    Ok(store)
}

/// Options of a store that is added to: sorting takes a quarter of the memory, or the least that the engine takes.
pub(crate) fn options(budget: MemoryBudget) -> StoreOptions {
    let memory = (budget.bytes < u64::MAX).then_some((budget.bytes / 4).max(LEAST_OF_SORTING));
    StoreOptions { memory, ..StoreOptions::default() }
}

/// The profile that all stores have, but those whose fingerprints may be of any.
fn profile_of(stores: &[ReferenceStore]) -> Result<Option<&str>> {
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

/// How similar documents are found in each store, if the stores are of such.
fn settings_of(stores: &[ReferenceStore]) -> Result<Vec<SimilarSettings>> {
    let mut kinds = Vec::new();
    for store in stores {
        // One that is made is of the kind of the others.
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
