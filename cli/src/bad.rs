//! The list of all that was malformed.

use std::path::Path;

use simstore::Error;
use simstore_io::rows::{self, Cell, Column, Kind, Rows};

use crate::failure::{Failure, Outcome};
use crate::output;

/// Line 0 is the file as a whole.
const COLUMNS: [Column; 3] = [("file", Kind::Text), ("line", Kind::Count), ("reason", Kind::Text)];

/// A row for each malformed document, and for each file that could not be read.
#[derive(Debug)]
pub(crate) struct BadList {
    rows: Rows,
    /// The first failure to write one.
    failed: Result<(), Error>,
}

impl BadList {
    /// Opens a file of the format that its name says; `-` is standard output.
    pub(crate) fn create(path: &Path) -> Outcome<BadList> {
        rows::check(path).map_err(Failure::usage)?;
        Ok(BadList { rows: Rows::new(path, output::create(path)?, &COLUMNS, false)?, failed: Ok(()) })
    }

    /// Adds what is malformed.
    pub(crate) fn push(&mut self, error: &Error) {
        let Error::BadInput { path, line, reason } = error else { return };
        let row = [Cell::Text(&path.to_string_lossy()), Cell::Count(*line), Cell::Text(reason)];
        if self.failed.is_ok() {
            self.failed = self.rows.push(&row);
        }
    }

    /// Gives the file its name.
    pub(crate) fn finish(self) -> Outcome {
        self.failed?;
        Ok(self.rows.complete()?.publish()?)
    }
}
