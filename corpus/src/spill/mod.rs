//! Keeps the data of a job within its memory budget: computes the budget, manages the folder of temporary files for data
//! beyond it, and holds rows in memory or in a file. The temporary files and the external sorter are those of
//! [`simstore::spill`].

mod memory_budget;
mod rows;
mod temporary_folder;

pub use self::memory_budget::{MemoryBudget, check_memory};
pub use self::rows::{RowCursor, Rows, RowsIter, RowsWriter, read_exact_at};
pub use self::temporary_folder::TemporaryFolder;
pub use simstore::spill::{FixedSize, Sortable, Sorter, SpillFile, SpillReader, SpillWriter};
