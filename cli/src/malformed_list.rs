//! Table of malformed documents and unreadable files, for `--bad`.

use std::path::Path;

use simstore::Error;
use simstore_io::result_table::{self, Cell, Column, ColumnKind, ResultTableWriter};

use crate::command_error::{CommandError, CommandResult};
use crate::output;

/// Columns of the table of malformed documents. In column `line`, 0 means the whole file.
const COLUMNS: [Column; 3] =
    [("file", ColumnKind::Text), ("line", ColumnKind::Count), ("reason", ColumnKind::Text)];

/// Table with one row for each malformed document and each unreadable file.
#[derive(Debug)]
pub(crate) struct MalformedList {
    table: ResultTableWriter,
    /// Error of the first row that could not be written; `Ok` if all rows were written. Rows after an error are dropped.
    write_result: Result<(), Error>,
}

impl MalformedList {
    /// Creates a table without rows. The extension of `path` sets the file format; the path `-` is standard output.
    pub(crate) fn create(path: &Path) -> CommandResult<MalformedList> {
        result_table::check_name(path).map_err(CommandError::usage)?;
        Ok(MalformedList {
            table: ResultTableWriter::new(path, output::create(path)?, &COLUMNS, false)?,
            write_result: Ok(()),
        })
    }

    /// Appends a row for an [`Error::BadInput`]; ignores other errors. If the write fails, [`MalformedList::finish`] returns
    /// the error.
    pub(crate) fn push(&mut self, error: &Error) {
        let Error::BadInput { path, line, reason } = error else { return };
        let row = [Cell::Text(&path.to_string_lossy()), Cell::Count(*line), Cell::Text(reason)];
        if self.write_result.is_ok() {
            self.write_result = self.table.write_row(&row);
        }
    }

    /// Completes the table, and renames its temporary file to its final name.
    pub(crate) fn finish(self) -> CommandResult {
        self.write_result?;
        Ok(self.table.complete()?.publish()?)
    }
}
