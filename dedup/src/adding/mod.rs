//! Adding the kept documents to a store, in one step with the output files, even if the process is killed. First the complete files
//! are set aside under names that identify the run. Then one commit adds the documents, and a mark that names the run and its files.
//! Then the files get their names. A run that finds such a mark gives the files their names that have none yet, and a run that is the
//! same does nothing again.

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

use crate::adding::last_run::Run;
use crate::adding::names_in_use::{ADDED_TWICE, IS_STORED, NamesInUse};
use crate::adding::similar_writer::IntoSimilar;
use crate::corpus::Corpus;
use crate::pipeline::clusters::ClusterCursor;
use crate::reference::{ReferenceStore, open_store, options};

/// The mark of the last run, and of each of its files, followed by a number.
const RUN_MARK: &str = "dedup";
const FILE_MARK: &str = "dedup file ";

impl ReferenceStore {
    /// The run that added to the store last.
    pub(crate) fn last_run(&self) -> Result<Option<Run>> {
        let Some(snapshot) = self.snapshot() else { return Ok(None) };
        let Some(mark) = snapshot.metadata(RUN_MARK)? else { return Ok(None) };
        let damaged = |what: String| {
            Error::Refused(format!(
                "{}: cannot read the record of the last run: {what}",
                self.path().display()
            ))
        };
        let mut run: Run = serde_json::from_slice(&mark).map_err(|error| damaged(error.to_string()))?;
        for number in 0..run.files {
            let path = snapshot.metadata(&format!("{FILE_MARK}{number}"))?;
            let path = path.and_then(|path| String::from_utf8(path).ok());
            run.paths.push(name_to_path(&path.ok_or_else(|| damaged(format!("no file {number}")))?));
        }
        Ok(Some(run))
    }

    /// Gives the files of a run their names that was cut off before it could do so. Returns these.
    pub(crate) fn finish(&self, run: &Run) -> Result<Vec<PathBuf>> {
        let mut finished = Vec::new();
        for path in &run.paths {
            if let Some(aside) = StagedOutput::new(path, &suffix(&run.run))
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
    pub(crate) fn open_store(
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
        let options = StoreOptions { distance, profile: Some(profile.to_string()), ..options(budget) };
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

    /// Refuses documents whose ids would be ambiguous in the store, before anything changes.
    pub(crate) fn check_names(
        &self,
        corpus: &Corpus,
        mut clustered: ClusterCursor<'_>,
        is_similar: bool,
        observer: &dyn Observer,
    ) -> Result<()> {
        let mut naming = self.snapshot().map_or(
            (IdScheme::Undecided, Some(0)),
            |store| each_width!(store, store => IdScheme::from_store(store)),
        );
        let mut ids = Vec::new();
        let mut names = NamesInUse::new(self.snapshot());
        corpus.scan(observer, "ids", |document| {
            let is_added = clustered.status(document.number)?.is_kept && document.fingerprint().is_some();
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
    fn check_name(&self, names: &mut NamesInUse, name: &str) -> Result<()> {
        let Some(by) = names.enter(name)? else { return Ok(()) };
        Err(Error::Refused(format!(
            "{}: nothing was added: the name `{}` {by}, and in a store of similar documents a name belongs to one text",
            self.path().display(),
            escape_text(&excerpt(name))
        )))
    }

    /// Refuses numbers that several texts have: of similar documents, a number is of one.
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
                if note.is_some_and(|note| !note.is_empty()) {
                    return refused(id, IS_STORED);
                }
            }
        }
        Ok(())
    }

    /// The id and the name that a document gets in the store.
    fn assign(
        &self,
        (naming, next_id): &mut (IdScheme, Option<u64>),
        id: IdRef<'_>,
    ) -> Result<(u64, Option<String>)> {
        let assigned = naming.assign(id.into(), *next_id);
        let (id, name) = assigned.map_err(|reason| {
            Error::Refused(format!("{}: nothing was added: {reason}", self.path().display()))
        })?;
        if name.is_some() {
            *next_id = id.checked_add(1);
        }
        Ok((id, name))
    }

    /// The store to add to, if it was there, or was made.
    pub(crate) fn to_add_to<'a>(&'a self, made: Option<&'a AnyStore>) -> Option<&'a AnyStore> {
        self.store.as_ref().or(made)
    }

    /// Loads all kept documents into a store, without the commit.
    pub(crate) fn load<'a, F: Fingerprint>(
        &self,
        store: &'a Store<F>,
        corpus: &Corpus,
        mut clustered: ClusterCursor<'_>,
        mut similar: Option<IntoSimilar<'_>>,
    ) -> Result<BulkLoad<'a, F>> {
        let mut naming = IdScheme::from_store(&store.snapshot());
        let mut load = store.bulk_load()?;
        corpus.visit(|document| {
            let is_kept = clustered.status(document.number)?.is_kept;
            let Some(fingerprint) = document.fingerprint().filter(|_| is_kept) else { return Ok(()) };
            let fingerprint = F::from_u128(fingerprint);
            let (id, name) = self.assign(&mut naming, document.id())?;
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

/// Ending of the names under which a run sets its files aside.
pub(crate) fn suffix(run: &str) -> String {
    format!("{run}.new")
}

/// Adds all at once, with the mark of the run.
pub(crate) fn commit<F: Fingerprint>(
    mut load: BulkLoad<'_, F>,
    run: &str,
    added: u64,
    aside: &[StagedOutput],
) -> Result<()> {
    let files: Vec<String> = aside.iter().map(StagedOutput::resolved_path).collect();
    let mark = Run { run: run.to_owned(), added, files: files.len(), paths: Vec::new() };
    let mark = serde_json::to_vec(&mark).map_err(|error| Error::Refused(error.to_string()))?;
    load.set_metadata(RUN_MARK, &mark)?;
    for (number, file) in files.iter().enumerate() {
        load.set_metadata(&format!("{FILE_MARK}{number}"), file.as_bytes())?;
    }
    load.finish()
}
