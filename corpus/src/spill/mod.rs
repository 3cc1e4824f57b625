//! What is too much for the memory, on disk: a folder of temporary files that goes with the run, files that are written once and
//! read in order, sorting beyond memory; and how much memory there is.

mod budget;
mod file;
mod fixed;
mod folder;
mod rows;
mod sorter;

pub(crate) use self::budget::Budget;
pub(crate) use self::file::{SpillFile, SpillReader, SpillWriter, read_at};
pub(crate) use self::fixed::Fixed;
pub(crate) use self::folder::Temporary;
pub(crate) use self::rows::{Cursor, Rows, RowsIter, RowsWriter};
pub(crate) use self::sorter::{Record, Sorter};
