//! Memory budget and temporary folder of a run.

use std::path::PathBuf;
use std::sync::Arc;

use simstore::Result;
use simstore_corpus::Observer;
use simstore_corpus::spill::{FixedSize, MemoryBudget, Rows, RowsWriter, Sorter, TemporaryFolder};
use simstore_io::output::UnfinishedOutputs;

use crate::config::DedupConfig;

/// Number of equal shares into which the memory budget is divided. One writer or sorter of rows may use one share.
const BUDGET_SHARES: u64 = 8;

/// Memory budget and temporary folder of a run.
#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    pub(crate) budget: MemoryBudget,
    pub(crate) temporary: Arc<TemporaryFolder>,
    /// Folder of the part files, if the run can be resumed; else `None`.
    pub(crate) parts: Option<PathBuf>,
}

impl Workspace {
    /// Creates a workspace and its folder for temporary files.
    pub(crate) fn new(
        config: &DedupConfig,
        unfinished: &UnfinishedOutputs,
        observer: &dyn Observer,
    ) -> Result<Workspace> {
        Ok(Workspace {
            budget: MemoryBudget::new(config.memory),
            temporary: TemporaryFolder::new(config.temporary_folder.as_deref(), unfinished, observer)?,
            parts: config.resume.as_ref().map(|resume| resume.folder.clone()),
        })
    }

    /// Bytes of memory for one sorter, writer or index: one share of the budget.
    pub(crate) fn share(&self) -> u64 {
        self.budget.bytes / BUDGET_SHARES
    }

    /// Creates a sorter of rows. If the rows exceed one [share](Self::share) of the memory budget, they spill to disk.
    pub(crate) fn sorter<R: FixedSize>(&self) -> Sorter<R> {
        Sorter::new(self.temporary.clone(), self.share())
    }

    /// Creates a writer that keeps rows in the order in which they are written. If the rows exceed one
    /// [share](Self::share) of the memory budget, they spill to disk.
    pub(crate) fn rows<R: FixedSize>(&self) -> RowsWriter<R> {
        RowsWriter::new(self.temporary.clone(), self.share())
    }

    /// Collects the rows of an iterator, in the same order.
    pub(crate) fn collected<R: FixedSize>(
        &self,
        rows: impl IntoIterator<Item = Result<R>>,
    ) -> Result<Rows<R>> {
        let mut writer = self.rows();
        rows.into_iter().try_for_each(|row| writer.push(row?))?;
        writer.finish()
    }

    /// Collects the rows of an iterator, and sorts them.
    pub(crate) fn sorted<R: FixedSize>(&self, rows: impl IntoIterator<Item = Result<R>>) -> Result<Rows<R>> {
        let mut sorter = self.sorter();
        rows.into_iter().try_for_each(|row| sorter.push(row?))?;
        Rows::from_sorter(sorter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_kept_in_their_order_or_sorted() {
        let folder = tempfile::tempdir().unwrap();
        let temporary =
            TemporaryFolder::new(Some(folder.path()), &UnfinishedOutputs::default(), &()).unwrap();
        let budget = MemoryBudget { bytes: 0, ..MemoryBudget::new(None) };
        let workspace = Workspace { budget, temporary, parts: None };
        let numbers = || (0..5120_u32).map(|number| Ok(number ^ 0x155));
        let read = |rows: Rows<u32>| rows.iter().unwrap().map(Result::unwrap).collect::<Vec<_>>();
        assert!(read(workspace.collected(numbers()).unwrap()).into_iter().eq(numbers().map(Result::unwrap)));
        assert!(read(workspace.sorted(numbers()).unwrap()).into_iter().eq(0..5120));
        let failing = || numbers().chain([Err(simstore::Error::Cancelled)]);
        assert!(workspace.collected(failing()).is_err() && workspace.sorted(failing()).is_err());
    }
}
