//! What is too much for the memory, on disk: a folder of temporary files that goes with the run, rows in them or in memory; and
//! how much memory there is. Files and sorting are the engine's.

mod budget;
mod folder;
mod rows;

pub(crate) use self::budget::{Budget, check_memory};
pub(crate) use self::folder::Temporary;
pub(crate) use self::rows::{Cursor, Rows, RowsIter, RowsWriter, read_at};
pub(crate) use simstore::spill::{Fixed, Sortable, Sorter, SpillFile, SpillReader, SpillWriter};
