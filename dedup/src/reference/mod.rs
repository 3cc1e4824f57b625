//! Reference stores: documents that are near a stored document are removed.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use simstore::store::is_store;
use simstore::{Codec, Error, Fingerprint, Result, Snapshot, Store, StoreOptions};
use simstore_corpus::spill::Budget;
use simstore_corpus::{Notice, Watch, torn_ends};
use simstore_text::{Profile, SIMILAR_MARK, SimilarSettings, StoredTexts};

/// Least memory that the engine sorts in, in bytes.
const LEAST_OF_SORTING: u64 = 16 << 20;

/// A store that documents are compared with, and perhaps added to.
pub(crate) struct ReferenceStore<F: Fingerprint> {
    path: PathBuf,
    /// Open for writing, so that no other process adds documents between the comparison and the commit.
    pub(crate) store: Option<Store<F>>,
    /// `None` if the store does not exist yet.
    snapshot: Option<Snapshot<F>>,
}

impl<F: Fingerprint> ReferenceStore<F> {
    /// Opens the store. Documents that are added are sorted in a share of the memory.
    fn open(path: &Path, add: bool, budget: Budget, watch: &dyn Watch) -> Result<Self> {
        let exists = has_store(path)?;
        let store = if add && exists { Some(Store::<F>::open(path, options(budget))?) } else { None };
        if let Some(torn_end) = store.as_ref().and_then(Store::torn_end) {
            watch.notice(&Notice::Warning(&torn_end.to_string()));
        }
        // Its making was cut off before it was marked: it is made again.
        let store = store.filter(|store| !is_half_made(&store.snapshot()));
        let snapshot = match &store {
            Some(store) => Some(store.snapshot()),
            None if exists && !add => Some(open_to_read(path, watch)?),
            None => None,
        };
        Ok(ReferenceStore { path: path.to_path_buf(), store, snapshot })
    }

    /// Contents of the store, if it exists.
    pub(crate) fn snapshot(&self) -> Option<&Snapshot<F>> {
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
pub(crate) struct References<F: Fingerprint> {
    pub(crate) stores: Vec<ReferenceStore<F>>,
    /// Profile of the stores. `None` without stores, and for stores whose fingerprints may have any profile.
    pub(crate) profile: Option<String>,
    /// Settings of the existing stores, if they are stores of similar documents.
    pub(crate) settings: Vec<SimilarSettings>,
}

impl<F: Fingerprint> References<F> {
    /// Opens stores. If `add` is set, the first store is opened for writing, and may be missing.
    ///
    /// # Errors
    /// [`Error::Refused`] if the stores differ in kind or profile, and the errors of opening.
    pub(crate) fn open(paths: &[PathBuf], add: bool, budget: Budget, watch: &dyn Watch) -> Result<Self> {
        let stores = paths.iter().enumerate();
        let stores: Vec<ReferenceStore<F>> = stores
            .map(|(at, path)| ReferenceStore::open(path, add && at == 0, budget, watch))
            .collect::<Result<_>>()?;
        let (profile, settings) = (profile_of(&stores)?.map(str::to_owned), settings_of(&stores)?);
        Ok(References { stores, profile, settings })
    }

    /// Snapshots of the existing stores.
    pub(crate) fn snapshots(&self) -> impl Iterator<Item = &Snapshot<F>> {
        self.stores.iter().filter_map(ReferenceStore::snapshot)
    }

    /// Whether the stores keep similar documents, not fingerprints alone.
    pub(crate) fn are_similar(&self) -> bool {
        !self.settings.is_empty()
    }

    /// Texts of each existing store, if these are stores of similar documents.
    pub(crate) fn texts(&self, profile: &Profile) -> Result<Vec<StoredTexts>> {
        let stores = self.snapshots().zip(&self.settings);
        stores.map(|(store, &settings)| StoredTexts::new(store, settings, profile.clone())).collect()
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
fn is_half_made<F: Fingerprint>(store: &Snapshot<F>) -> bool {
    let has_no_mark = || matches!(store.mark(SIMILAR_MARK), Ok(None));
    store.is_empty() && store.highest_id().is_none() && store.codec() == Codec::EliasFano && has_no_mark()
}

/// Opens a store for reading only. Warns of a torn log, since its lost records are not compared.
fn open_to_read<F: Fingerprint>(path: &Path, watch: &dyn Watch) -> Result<Snapshot<F>> {
    let store = Snapshot::open_settled(path)?;
    for torn in torn_ends(&store) {
        watch.notice(&Notice::Warning(&format!("these lost writes are not compared: {torn}")));
    }
    Ok(store)
}

/// DedupConfig of a store that is added to: sorting takes a quarter of the memory, or the least that the engine takes.
pub(crate) fn options(budget: Budget) -> StoreOptions {
    let memory = (budget.bytes < u64::MAX).then_some((budget.bytes / 4).max(LEAST_OF_SORTING));
    StoreOptions { memory, ..StoreOptions::default() }
}

/// The profile that all stores have, but those whose fingerprints may be of any.
fn profile_of<F: Fingerprint>(stores: &[ReferenceStore<F>]) -> Result<Option<&str>> {
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
fn settings_of<F: Fingerprint>(stores: &[ReferenceStore<F>]) -> Result<Vec<SimilarSettings>> {
    let mut kinds = Vec::new();
    for store in stores {
        // One that is made is of the kind of the others.
        let Some(snapshot) = store.snapshot() else { continue };
        kinds.push((store, SimilarSettings::of_store(snapshot)?));
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
