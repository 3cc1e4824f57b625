//! Data beyond the memory budget: the budget, the folder of temporary files, and rows in memory or in files. The engine's
//! `spill` module has the files and the sorter.

mod memory_budget;
mod rows;
mod temporary_folder;

pub use self::memory_budget::{MemoryBudget, check_memory};
pub use self::rows::{RowCursor, Rows, RowsIter, RowsWriter, read_exact_at};
pub use self::temporary_folder::TemporaryFolder;
pub use simstore::spill::{FixedSize, Sortable, Sorter, SpillFile, SpillReader, SpillWriter};
