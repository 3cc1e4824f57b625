//! The last run that added documents to a store. If this last run was killed before it renamed its output files to
//! their final names, the next run renames them. If the next run is identical to the last run, it does not add the
//! documents again.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use simstore::{Error, Result};

use crate::config::DedupConfig;
use crate::reference_stores::ReferenceStore;
use crate::report::outputs::Outputs;
use simstore_corpus::{Diagnostic, Observer};
use simstore_io::output::resolve_path;

/// Record of a run that added documents to a store, in the metadata of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AddedRun {
    /// Hash of inputs and options, which identifies the run.
    pub(crate) run: String,
    /// Number of added documents.
    pub(crate) added: u64,
    /// Number of output files.
    pub(crate) files: usize,
    /// Paths of the output files. They are not serialized with the record, because each of them is a metadata value
    /// of its own in the store.
    #[serde(skip)]
    pub(crate) paths: Vec<PathBuf>,
}

impl AddedRun {
    /// Whether `path` is an output file of the run.
    pub(crate) fn has_written(&self, path: &Path) -> bool {
        self.paths.contains(&resolve_path(path))
    }
}

/// Last run that added documents to the store. There may be no such run.
pub(crate) struct LastRun {
    run: Option<AddedRun>,
    /// Output files of the last run that only this run has renamed to their final names, because the last run was
    /// killed.
    completed_files: Vec<PathBuf>,
}

impl LastRun {
    /// Reads the record of the last run. If that run was killed before it renamed its output files to their final
    /// names, renames these files.
    pub(crate) fn complete(added_to: Option<&ReferenceStore>, observer: &dyn Observer) -> Result<LastRun> {
        let run = added_to.map_or(Ok(None), ReferenceStore::last_run)?;
        let finished = match (added_to, &run) {
            (Some(store), Some(run)) => store.publish_files(run)?,
            _ => Vec::new(),
        };
        finished.iter().for_each(|path| observer.diagnostic(&Diagnostic::CompletedOutput(path)));
        Ok(LastRun { run, completed_files: finished })
    }

    /// Returns the number of documents that the last run added, if it was identical to this run. `run` is the
    /// hash of this run. Returns `None` if this run has to be done.
    ///
    /// # Errors
    /// [`Error::Refused`] in two cases:
    /// - The last run was identical, but a requested output file is missing or was not written by the last run.
    /// - This run has to be done, but would overwrite an output file of the last run. That run was killed before it
    ///   renamed the file to its final name, so [`complete`](Self::complete) has just renamed it.
    pub(crate) fn added_by_same_run(
        &self,
        run: &str,
        config: &DedupConfig,
        outputs: &Outputs,
    ) -> Result<Option<u64>> {
        if let Some(last) = &self.run
            && last.run == run
            && !config.add.is_some_and(|add| add.again)
            && !outputs.is_empty()
        {
            check_same_outputs(last, outputs)?;
            return Ok(Some(last.added));
        }
        match outputs.paths().find(|path| self.completed_files.contains(&resolve_path(path))) {
            Some(path) => Err(Error::Refused(format!(
                "{}: holds the result of another run that was interrupted: move it, then run this again",
                path.display()
            ))),
            None => Ok(None),
        }
    }
}

/// Fails unless the last run, which was identical to this run, has written all requested output files, and these files
/// still exist.
fn check_same_outputs(last: &AddedRun, outputs: &Outputs) -> Result<()> {
    let mut missing = None;
    for path in outputs.paths() {
        let is_there = last.has_written(path) && path.try_exists().map_err(Error::io(path, "look for"))?;
        missing = missing.or((!is_there).then_some(path));
    }
    match missing {
        Some(path) => Err(Error::Refused(format!(
            "this run has already added these documents to the store, but its output ({}) is missing and cannot be reproduced. Option \
             `again` compares with the store as it is now",
            if path.as_os_str() == "-" { "standard output".into() } else { path.to_string_lossy() }
        ))),
        None => Ok(()),
    }
}
