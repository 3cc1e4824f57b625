//! The last run that added to a store: its unfinished files are completed, and its work is not repeated.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use simstore::{Error, Result};

use crate::config::DedupConfig;
use crate::reference::ReferenceStore;
use crate::report::outputs::Outputs;
use simstore_corpus::{Diagnostic, Observer};
use simstore_io::output::resolve_path;

/// A run that has added documents to a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    /// Tells it from runs on other documents, or with other options.
    pub(crate) run: String,
    pub(crate) added: u64,
    pub(crate) files: usize,
    #[serde(skip)]
    pub(crate) paths: Vec<PathBuf>,
}

impl Run {
    /// Whether it has written this file.
    pub(crate) fn has_written(&self, path: &Path) -> bool {
        self.paths.contains(&resolve_path(path))
    }
}

/// The last run that added to the store, if any.
pub(crate) struct LastRun {
    run: Option<Run>,
    /// Files that have got their names only now.
    finished: Vec<PathBuf>,
}

impl LastRun {
    /// Completes the files of the last run, whether or not this run is the same.
    pub(crate) fn finished(added_to: Option<&ReferenceStore>, observer: &dyn Observer) -> Result<LastRun> {
        let run = added_to.map_or(Ok(None), ReferenceStore::last_run)?;
        let finished = match (added_to, &run) {
            (Some(store), Some(run)) => store.finish(run)?,
            _ => Vec::new(),
        };
        finished.iter().for_each(|path| observer.diagnostic(&Diagnostic::CompletedOutput(path)));
        Ok(LastRun { run, finished })
    }

    /// How many documents it has added, if it was the same and has written the same files.
    pub(crate) fn has_added(
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
            check_outputs_of(last, outputs)?;
            return Ok(Some(last.added));
        }
        match outputs.all().find(|path| self.finished.contains(&resolve_path(path))) {
            Some(path) => Err(Error::Refused(format!(
                "{}: holds the result of another run that was interrupted: move it, then run this again",
                path.display()
            ))),
            None => Ok(None),
        }
    }
}

/// Fails unless the outputs that are asked for are there, from a run that was the same.
fn check_outputs_of(last: &Run, outputs: &Outputs) -> Result<()> {
    let mut missing = None;
    for path in outputs.all() {
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
