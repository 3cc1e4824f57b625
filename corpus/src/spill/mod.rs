//! What is too much for the memory, on disk: a folder of temporary files that goes with the run, rows in them or in memory; and
//! how much memory there is. Files and sorting are the engine's.

mod budget;
mod folder;
mod rows;

pub use self::budget::{Budget, check_memory};
pub use self::folder::Temporary;
pub use self::rows::{Cursor, Rows, RowsIter, RowsWriter, read_at};
pub use simstore::spill::{Fixed, Sortable, Sorter, SpillFile, SpillReader, SpillWriter};
