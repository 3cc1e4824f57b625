//! The memory and the folders that a run may use.

use std::path::PathBuf;
use std::sync::Arc;

use simstore::Result;
use simstore_corpus::Watch;
use simstore_corpus::spill::{Budget, Fixed, RowsWriter, Sorter, Temporary};
use simstore_io::output::Unfinished;

use crate::config::DedupConfig;

/// Of the memory, one of so many shares is for the rows that are sorted or written at a time.
const SHARES: u64 = 8;

/// The memory and the folders that a run may use.
#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    pub(crate) budget: Budget,
    pub(crate) temporary: Arc<Temporary>,
    /// The folder of parts, of a run that can be carried on.
    pub(crate) parts: Option<PathBuf>,
}

impl Workspace {
    /// Creates the folder for temporary files.
    ///
    /// # Errors
    /// The errors of creating it.
    pub(crate) fn new(config: &DedupConfig, unfinished: &Unfinished, watch: &dyn Watch) -> Result<Workspace> {
        Ok(Workspace {
            budget: Budget::new(config.memory),
            temporary: Temporary::new(config.temporary.as_deref(), unfinished, watch)?,
            parts: config.resume.as_ref().map(|resume| resume.folder.clone()),
        })
    }

    /// Bytes of memory for one of several things that are in it at the same time.
    pub(crate) fn share(&self) -> u64 {
        self.budget.bytes / SHARES
    }

    /// Sorts rows.
    pub(crate) fn sorter<R: Fixed>(&self) -> Sorter<R> {
        Sorter::new(self.temporary.clone(), self.share())
    }

    /// Takes rows in their order.
    pub(crate) fn rows<R: Fixed>(&self) -> RowsWriter<R> {
        RowsWriter::new(self.temporary.clone(), self.share())
    }
}
