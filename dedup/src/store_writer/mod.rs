//! Adds the kept documents to a store, atomically with the output files, even if the process is killed:
//!
//! 1. The complete output files get hidden names that contain the hash of the run. They are now *staged*.
//! 2. One commit adds the documents to the store, together with a record of the run and its output files.
//! 3. The staged files get their final names.
//!
//! If files are still staged when a later run reads the record, the later run gives them their final names. If the
//! later run is identical to the recorded run, it does nothing else.

pub(crate) mod last_run;
pub(crate) mod names_in_use;
pub(crate) mod similar_writer;

use std::path::PathBuf;

use simstore::any::{AnyStore, Width};
use simstore::error::excerpt;
use simstore::store::BulkLoad;
use simstore::{Error, Fingerprint, Result, Store, StoreOptions, each_width};
use simstore_corpus::spill::MemoryBudget;
use simstore_corpus::{IdScheme, Observer};
use simstore_io::IdRef;
use simstore_io::document::{escape_text, name_to_path};
use simstore_io::output::StagedOutput;
use simstore_text::{SimilarSettings, open_similar_store};

use crate::documents::Corpus;
use crate::pipeline::clusters::ClusterCursor;
use crate::reference_stores::{ReferenceStore, open_store, write_options};
use crate::store_writer::last_run::AddedRun;
use crate::store_writer::names_in_use::{ADDED_TWICE, IS_STORED, NamesInUse};
use crate::store_writer::similar_writer::SimilarStoreWriter;

/// Key of the record of the last run in the metadata of a store.
const RUN_KEY: &str = "dedup";
/// Prefix of the metadata keys for the paths of the last run's output files. In a key, the index of the file follows
/// the prefix.
const FILE_KEY_PREFIX: &str = "dedup file ";

impl ReferenceStore {
    /// Reads the record of the last run that added documents to the store.
    pub(crate) fn last_run(&self) -> Result<Option<AddedRun>> {
        let Some(snapshot) = self.snapshot() else { return Ok(None) };
        let Some(record) = snapshot.metadata(RUN_KEY)? else { return Ok(None) };
        let damaged = |what: String| {
            Error::Refused(format!(
                "{}: cannot read the record of the last run: {what}",
                self.path().display()
            ))
        };
        let mut run: AddedRun =
            serde_json::from_slice(&record).map_err(|error| damaged(error.to_string()))?;
        for number in 0..run.files {
            let path = snapshot.metadata(&format!("{FILE_KEY_PREFIX}{number}"))?;
            let path = path.and_then(|path| String::from_utf8(path).ok());
            run.paths.push(name_to_path(&path.ok_or_else(|| damaged(format!("no file {number}")))?));
        }
        Ok(Some(run))
    }

    /// Gives the output files of a run their final names, if they still have hidden names because the run was killed.
    /// Returns the paths of these files.
    pub(crate) fn publish_files(&self, run: &AddedRun) -> Result<Vec<PathBuf>> {
        let mut finished = Vec::new();
        for path in &run.paths {
            if let Some(staged) = StagedOutput::new(path, &staged_suffix(&run.run))
                && staged.publish()?
            {
                finished.push(path.clone());
            }
        }
        Ok(finished)
    }

    /// Creates the store, and returns it. Returns `None` if the store existed when this run opened it. If
    /// `similar` is set, creates a store of similar documents.
    ///
    /// # Errors
    /// [`Error::Refused`] if another run has created the store since this run began, because the documents of this
    /// run were not compared with the documents of the other run.
    pub(crate) fn create_missing(
        &self,
        distance: Option<u32>,
        similar: Option<SimilarSettings>,
        profile: &str,
        width: Width,
        budget: MemoryBudget,
    ) -> Result<Option<AnyStore>> {
        if self.store.is_some() {
            return Ok(None);
        }
        let options = StoreOptions { distance, profile: Some(profile.to_string()), ..write_options(budget) };
        if let Some(settings) = similar {
            open_similar_store(self.path(), options.clone(), settings)?;
        }
        let store = open_store(self.path(), width, &options)?;
        let snapshot = store.snapshot();
        if !snapshot.is_empty() || snapshot.highest_id().is_some() {
            return Err(Error::Refused(format!(
                "{}: another run created this store meanwhile, so nothing was compared with it; nothing was added or written: run this \
                 again",
                self.path().display()
            )));
        }
        Ok(Some(store))
    }

    /// Fails if the kept documents cannot be added to the store: in a store of similar documents (`is_similar`), two
    /// documents would have the same id or the same name. Must be called before the store changes.
    pub(crate) fn check_added_ids(
        &self,
        corpus: &Corpus,
        mut cluster_cursor: ClusterCursor<'_>,
        is_similar: bool,
        observer: &dyn Observer,
    ) -> Result<()> {
        if self.snapshot().is_some_and(|store| !store.keeps_ids()) {
            // Such a store keeps neither ids nor names.
            return Ok(());
        }
        let mut id_scheme = self.snapshot().map_or(
            (IdScheme::Undecided, Some(0)),
            |store| each_width!(store, store => IdScheme::from_store(store)),
        );
        let mut ids = Vec::new();
        let mut names = NamesInUse::new(self.snapshot());
        corpus.scan(observer, "ids", |document| {
            let is_added =
                cluster_cursor.status(document.number)?.is_kept && document.fingerprint().is_some();
            if is_added {
                let (id, name) = self.assign(&mut id_scheme, document.id())?;
                match name.filter(|_| is_similar) {
                    Some(name) => self.check_name(&mut names, &name)?,
                    None => ids.extend(is_similar.then_some(id)),
                }
            }
            Ok(())
        })?;
        self.check_ids(ids)
    }

    /// Fails if a stored document, or another added document, has the name `name`.
    fn check_name(&self, names: &mut NamesInUse, name: &str) -> Result<()> {
        let Some(by) = names.enter(name)? else { return Ok(()) };
        Err(Error::Refused(format!(
            "{}: nothing was added: the name `{}` {by}, and in a store of similar documents a name belongs to one text",
            self.path().display(),
            escape_text(&excerpt(name))
        )))
    }

    /// Fails if an id occurs twice in `ids`, or if a stored document has one of these ids, because in a store of
    /// similar documents, an id must belong to only one text.
    fn check_ids(&self, mut ids: Vec<u64>) -> Result<()> {
        let refused = |id: u64, by: &str| {
            let store = self.path().display();
            Err(Error::Refused(format!(
                "{store}: nothing was added: the id {id} {by}, and in a store of similar documents an id belongs to one text"
            )))
        };
        ids.sort_unstable();
        if let Some(same) = ids.windows(2).find(|ids| ids[0] == ids[1]) {
            return refused(same[0], ADDED_TWICE);
        }
        let Some(store) = self.snapshot() else { return Ok(()) };
        for some in ids.chunks(1 << 12) {
            let notes = some.iter().zip(store.notes_of(some)?);
            for (&id, note) in notes {
                if note.is_some() {
                    return refused(id, IS_STORED);
                }
            }
        }
        Ok(())
    }

    /// Returns the id and the name that a document with the input id `id` gets in the store. If it gets a name,
    /// also advances the id for the next named document.
    fn assign(
        &self,
        (id_scheme, next_id): &mut (IdScheme, Option<u64>),
        id: IdRef<'_>,
    ) -> Result<(u64, Option<String>)> {
        let assigned = id_scheme.assign(id.into(), *next_id);
        let (id, name) = assigned.map_err(|reason| {
            Error::Refused(format!("{}: nothing was added: {reason}", self.path().display()))
        })?;
        if name.is_some() {
            *next_id = id.checked_add(1);
        }
        Ok((id, name))
    }

    /// Returns the store that is open for writing: the store that existed before this run, else `made`, which
    /// this run has created.
    pub(crate) fn writable_store<'a>(&'a self, made: Option<&'a AnyStore>) -> Option<&'a AnyStore> {
        self.store.as_ref().or(made)
    }

    /// Adds all kept documents to a store. Returns the bulk load, which the caller commits.
    pub(crate) fn load_kept<'a, F: Fingerprint>(
        &self,
        store: &'a Store<F>,
        corpus: &Corpus,
        mut cluster_cursor: ClusterCursor<'_>,
        mut similar: Option<SimilarStoreWriter<'_>>,
    ) -> Result<BulkLoad<'a, F>> {
        let mut id_scheme = IdScheme::from_store(&store.snapshot());
        let keeps_ids = store.snapshot().keeps_ids();
        let mut load = store.bulk_load()?;
        corpus.visit(|document| {
            let is_kept = cluster_cursor.status(document.number)?.is_kept;
            let Some(fingerprint) = document.fingerprint().filter(|_| is_kept) else { return Ok(()) };
            let fingerprint = F::from_u128(fingerprint);
            // A store without ids keeps neither ids nor names.
            let (id, name) = if keeps_ids { self.assign(&mut id_scheme, document.id())? } else { (0, None) };
            match (&mut similar, name) {
                (Some(similar), name) => similar.push(&mut load, &document, id, name.as_deref()),
                (None, None) => load.insert(fingerprint, id),
                (None, Some(name)) => load.insert_named(fingerprint, id, &name),
            }
        })?;
        similar.map_or(Ok(()), |similar| similar.finish(&mut load))?;
        Ok(load)
    }
}

/// Returns the suffix of the hidden names of a run's staged output files. `run` is the hash of the run.
pub(crate) fn staged_suffix(run: &str) -> String {
    format!("{run}.new")
}

/// Commits the added documents, together with the record of the run.
pub(crate) fn commit<F: Fingerprint>(
    mut load: BulkLoad<'_, F>,
    run: &str,
    added: u64,
    staged: &[StagedOutput],
) -> Result<()> {
    let files: Vec<String> = staged.iter().map(StagedOutput::resolved_path).collect();
    let record = AddedRun { run: run.to_owned(), added, files: files.len(), paths: Vec::new() };
    let record = serde_json::to_vec(&record).map_err(|error| Error::Refused(error.to_string()))?;
    load.set_metadata(RUN_KEY, &record)?;
    for (number, file) in files.iter().enumerate() {
        load.set_metadata(&format!("{FILE_KEY_PREFIX}{number}"), file.as_bytes())?;
    }
    load.finish()
}
