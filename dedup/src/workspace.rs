//! The memory and the folders that a run may use.

use std::path::PathBuf;
use std::sync::Arc;

use simstore::Result;
use simstore_corpus::Watch;
use simstore_corpus::spill::{Budget, Fixed, Rows, RowsWriter, Sorter, Temporary};
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

    /// Keeps rows in their order.
    pub(crate) fn collected<R: Fixed>(&self, rows: impl IntoIterator<Item = Result<R>>) -> Result<Rows<R>> {
        let mut writer = self.rows();
        rows.into_iter().try_for_each(|row| writer.push(row?))?;
        writer.finish()
    }

    /// Keeps rows sorted.
    pub(crate) fn sorted<R: Fixed>(&self, rows: impl IntoIterator<Item = Result<R>>) -> Result<Rows<R>> {
        let mut sorter = self.sorter();
        rows.into_iter().try_for_each(|row| sorter.push(row?))?;
        Rows::sorted(sorter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_kept_in_their_order_or_sorted() {
        let folder = tempfile::tempdir().unwrap();
        let temporary = Temporary::new(Some(folder.path()), &Unfinished::default(), &()).unwrap();
        let budget = Budget { bytes: 0, ..Budget::new(None) };
        let workspace = Workspace { budget, temporary, parts: None };
        let numbers = || (0..5120_u32).map(|number| Ok(number ^ 0x155));
        let read = |rows: Rows<u32>| rows.iter().unwrap().map(Result::unwrap).collect::<Vec<_>>();
        assert!(read(workspace.collected(numbers()).unwrap()).into_iter().eq(numbers().map(Result::unwrap)));
        assert!(read(workspace.sorted(numbers()).unwrap()).into_iter().eq(0..5120));
        let failing = || numbers().chain([Err(simstore::Error::Cancelled)]);
        assert!(workspace.collected(failing()).is_err() && workspace.sorted(failing()).is_err());
    }
}
