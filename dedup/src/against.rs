//! A reference store: compared with, and perhaps added to.
//!
//! If documents are added, the store and the output files change in one step, whenever the process is killed. First the complete
//! files are set aside under names that identify the run. Then one commit adds the documents, and a mark that names the run and its
//! files. Then the files get their names. A run that finds such a mark gives the files their names that have
//! none yet, and a run that is the same does nothing again.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use simstore::error::excerpt;
use simstore::store::{Load, is_store};
use simstore::{Codec, Error, Fingerprint, Result, Snapshot, Store, StoreOptions};
use simstore_text::{Profile, SIMILAR_MARK, SimilarSettings, StoredTexts, open_similar};

use super::documents::Corpus;
use super::into_similar::IntoSimilar;
use super::names_in_use::{InUse, NamesInUse};
use super::written::Clustered;
use simstore_corpus::Naming;
use simstore_corpus::spill::Budget;
use simstore_corpus::torn_ends;
use simstore_corpus::{Notice, Watch};
use simstore_io::IdRef;
use simstore_io::document::{escaped, path_of_text};
use simstore_io::output::{SetAside, place_of};

/// The mark of the last run, and of each of its files, followed by a number.
const RUN_MARK: &str = "dedup";
const FILE_MARK: &str = "dedup file ";

/// A run that has added documents to a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Run {
    /// Tells it from runs on other documents, or with other options.
    pub(super) run: String,
    pub(super) added: u64,
    files: usize,
    #[serde(skip)]
    paths: Vec<PathBuf>,
}

impl Run {
    /// Whether it has written this file.
    pub(super) fn has_written(&self, path: &Path) -> bool {
        self.paths.contains(&place_of(path))
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

/// A store that documents are compared with.
pub(super) struct Against<F: Fingerprint> {
    path: PathBuf,
    /// Open for writing, so that no other process adds documents between the comparison and the commit.
    store: Option<Store<F>>,
    /// `None` if the store does not exist yet.
    snapshot: Option<Snapshot<F>>,
}

impl<F: Fingerprint> Against<F> {
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
        Ok(Against { path: path.to_path_buf(), store, snapshot })
    }

    /// Contents of the store, if it exists.
    pub(super) fn snapshot(&self) -> Option<&Snapshot<F>> {
        self.snapshot.as_ref()
    }

    /// As it was named.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The run that added to the store last.
    pub(super) fn last_run(&self) -> Result<Option<Run>> {
        let Some(snapshot) = &self.snapshot else { return Ok(None) };
        let Some(mark) = snapshot.mark(RUN_MARK)? else { return Ok(None) };
        let damaged = |what: String| {
            Error::Refused(format!("{}: cannot read the record of the last run: {what}", self.path.display()))
        };
        let mut run: Run = serde_json::from_slice(&mark).map_err(|error| damaged(error.to_string()))?;
        for number in 0..run.files {
            let path = snapshot.mark(&format!("{FILE_MARK}{number}"))?;
            let path = path.and_then(|path| String::from_utf8(path).ok());
            run.paths.push(path_of_text(&path.ok_or_else(|| damaged(format!("no file {number}")))?));
        }
        Ok(Some(run))
    }

    /// Gives the files of a run their names that was cut off before it could do so. Returns these.
    pub(super) fn finish(&self, run: &Run) -> Result<Vec<PathBuf>> {
        let mut finished = Vec::new();
        for path in &run.paths {
            if let Some(aside) = SetAside::of(path, &suffix(&run.run))
                && aside.publish()?
            {
                finished.push(path.clone());
            }
        }
        Ok(finished)
    }

    /// Makes the store to add to, if it does not exist. With `similar`, it is a store of similar documents.
    ///
    /// # Errors
    /// [`Error::Refused`] if another run has made the store since this one began: its documents were not compared with.
    pub(super) fn open_store(
        &self,
        distance: Option<u32>,
        similar: Option<SimilarSettings>,
        profile: &str,
        budget: Budget,
    ) -> Result<Option<Store<F>>> {
        if self.store.is_some() {
            return Ok(None);
        }
        let options = StoreOptions { distance, profile: Some(profile.to_string()), ..options(budget) };
        if let Some(settings) = similar {
            open_similar(&self.path, options.clone(), settings)?;
        }
        let store = Store::open(&self.path, options)?;
        let snapshot = store.snapshot();
        if !snapshot.is_empty() || snapshot.highest_id().is_some() {
            return Err(Error::Refused(format!(
                "{}: another run created this store meanwhile, so nothing was compared with it; nothing was added or written: run this \
                 again",
                self.path.display()
            )));
        }
        Ok(Some(store))
    }

    /// Whether there is a store to add to.
    pub(super) fn exists(&self) -> bool {
        self.snapshot.is_some()
    }

    /// Waits for due merges. Without it, many short runs would never merge.
    pub(super) fn settle(&self, made: Option<&Store<F>>) -> Result<()> {
        match self.store.as_ref().or(made) {
            Some(store) => store.wait_for_background(),
            None => Ok(()),
        }
    }

    /// Refuses documents whose ids would be ambiguous in the store, before anything changes.
    pub(super) fn check_names(
        &self,
        corpus: &Corpus<F>,
        mut clustered: Clustered<'_>,
        is_similar: bool,
        watch: &dyn Watch,
    ) -> Result<()> {
        let mut naming =
            self.snapshot.as_ref().map_or((Naming::Undecided, Some(0)), |store| Naming::of_store(store));
        let mut ids = Vec::new();
        let mut names = NamesInUse::new(self.snapshot.as_ref());
        corpus.scan(watch, "ids", |document| {
            let is_added = clustered.of(document.number)?.is_kept && document.fingerprint().is_some();
            if is_added {
                let (id, name) = self.assign(&mut naming, document.id())?;
                match name.filter(|_| is_similar) {
                    Some(name) => self.check_name(&mut names, &name)?,
                    None => ids.extend(is_similar.then_some(id)),
                }
            }
            Ok(())
        })?;
        self.check_ids(ids)
    }

    /// Refuses a name that several texts have.
    fn check_name(&self, names: &mut NamesInUse<F>, name: &str) -> Result<()> {
        let by = match names.enter(name)? {
            None => return Ok(()),
            Some(InUse::Stored) => "is stored with another text (`simstore delete` deletes it)",
            Some(InUse::Entered) => "belongs to two different texts",
        };
        Err(Error::Refused(format!(
            "{}: nothing was added: the name `{}` {by}, and in a store of similar documents a name belongs to one text",
            self.path.display(),
            escaped(&excerpt(name))
        )))
    }

    /// Refuses numbers that several texts have: of similar documents, a number is of one.
    fn check_ids(&self, mut ids: Vec<u64>) -> Result<()> {
        let refused = |id: u64, by: &str| {
            let store = self.path.display();
            Err(Error::Refused(format!(
                "{store}: nothing was added: the id {id} {by}, and in a store of similar documents an id belongs to one text"
            )))
        };
        ids.sort_unstable();
        if let Some(same) = ids.windows(2).find(|ids| ids[0] == ids[1]) {
            return refused(same[0], "belongs to two different texts");
        }
        let Some(store) = &self.snapshot else { return Ok(()) };
        for some in ids.chunks(1 << 12) {
            let notes = some.iter().zip(store.notes_of(some)?);
            for (&id, note) in notes {
                if note.is_some_and(|note| !note.is_empty()) {
                    return refused(id, "is stored with another text (`simstore delete` deletes it)");
                }
            }
        }
        Ok(())
    }

    /// The id and the name that a document gets in the store.
    fn assign(
        &self,
        (naming, next_id): &mut (Naming, Option<u64>),
        id: IdRef<'_>,
    ) -> Result<(u64, Option<String>)> {
        let assigned = naming.assign(id.into(), *next_id);
        let (id, name) = assigned.map_err(|reason| {
            Error::Refused(format!("{}: nothing was added: {reason}", self.path.display()))
        })?;
        if name.is_some() {
            *next_id = id.checked_add(1);
        }
        Ok((id, name))
    }

    /// The store to add to, if it was there, or was made.
    pub(super) fn to_add_to<'a>(&'a self, made: Option<&'a Store<F>>) -> Option<&'a Store<F>> {
        self.store.as_ref().or(made)
    }

    /// All that is kept, on its way into the store.
    pub(super) fn load<'a>(
        &'a self,
        made: Option<&'a Store<F>>,
        corpus: &Corpus<F>,
        mut clustered: Clustered<'_>,
        mut similar: Option<IntoSimilar<'_, F>>,
    ) -> Result<Option<Load<'a, F>>> {
        let Some(store) = self.to_add_to(made) else { return Ok(None) };
        let mut naming = Naming::of_store(&store.snapshot());
        let mut load = store.load()?;
        corpus.visit(|document| {
            let is_kept = clustered.of(document.number)?.is_kept;
            let Some(fingerprint) = document.fingerprint().filter(|_| is_kept) else { return Ok(()) };
            let (id, name) = self.assign(&mut naming, document.id())?;
            match (&mut similar, name) {
                (Some(similar), name) => similar.push(&mut load, &document, id, name.as_deref()),
                (None, None) => load.insert(fingerprint, id),
                (None, Some(name)) => load.insert_named(fingerprint, id, &name),
            }
        })?;
        similar.map_or(Ok(()), |similar| similar.finish(&mut load))?;
        Ok(Some(load))
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

/// Least memory that the engine sorts in, in bytes.
const LEAST_OF_SORTING: u64 = 16 << 20;

/// Options of a store that is added to: sorting takes a quarter of the memory, or the least that the engine takes.
fn options(budget: Budget) -> StoreOptions {
    let memory = (budget.bytes < u64::MAX).then_some((budget.bytes / 4).max(LEAST_OF_SORTING));
    StoreOptions { memory, ..StoreOptions::default() }
}

/// Opens stores; the first of them to `add` to, if so.
pub(super) fn open_all<F: Fingerprint>(
    paths: &[PathBuf],
    add: bool,
    budget: Budget,
    watch: &dyn Watch,
) -> Result<Vec<Against<F>>> {
    let stores = paths.iter().enumerate();
    stores.map(|(at, path)| Against::open(path, add && at == 0, budget, watch)).collect()
}

/// The profile that all stores have, but those whose fingerprints may be of any.
pub(super) fn profile_of<F: Fingerprint>(stores: &[Against<F>]) -> Result<Option<&str>> {
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
pub(super) fn settings_of<F: Fingerprint>(stores: &[Against<F>]) -> Result<Vec<SimilarSettings>> {
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

/// Comparers of texts, one for each store.
pub(super) fn texts_of<F: Fingerprint>(
    stores: &[Against<F>],
    settings: &[SimilarSettings],
    profile: &Profile,
) -> Result<Vec<StoredTexts>> {
    let stores = stores.iter().filter_map(Against::snapshot).zip(settings);
    stores.map(|(store, &settings)| StoredTexts::new(store, settings, profile.clone())).collect()
}

/// Ending of the names under which a run sets its files aside.
pub(super) fn suffix(run: &str) -> String {
    format!("{run}.new")
}

/// Adds all at once, with the mark of the run.
pub(super) fn commit<F: Fingerprint>(
    mut load: Load<'_, F>,
    run: &str,
    added: u64,
    aside: &[SetAside],
) -> Result<()> {
    let files: Vec<String> = aside.iter().map(SetAside::place).collect();
    let mark = Run { run: run.to_owned(), added, files: files.len(), paths: Vec::new() };
    let mark = serde_json::to_vec(&mark).map_err(|error| Error::Refused(error.to_string()))?;
    load.mark(RUN_MARK, &mark)?;
    for (number, file) in files.iter().enumerate() {
        load.mark(&format!("{FILE_MARK}{number}"), file.as_bytes())?;
    }
    load.finish()
}
