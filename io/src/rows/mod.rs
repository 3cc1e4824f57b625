//! Rows of results, written in the format that a file's name asks for: `.jsonl` (an object a line), `.csv` or `.tsv` (with a
//! line of column names), `.parquet`; else lines of columns separated by tabs, without names, or objects.

use std::fmt;
use std::path::Path;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use simstore::{Error, Result};

use crate::DocumentFormat;
use crate::formats::Format;
use crate::output::{Complete, Output, format_of_name};

mod cell;
#[cfg(feature = "parquet")]
mod parquet;

pub use crate::rows::cell::{Cell, Column, Kind};

/// Rows that are written one by one; [`Rows::complete`] must be called at the end.
pub struct Rows {
    columns: Vec<Column>,
    writer: Writer,
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("columns", &self.columns).finish_non_exhaustive()
    }
}

enum Writer {
    Lines(Output),
    Json(Output),
    Csv(Box<csv::Writer<Output>>, std::path::PathBuf),
    #[cfg(feature = "parquet")]
    Parquet(Box<parquet::Writer>),
}

/// The row as an object.
struct Object<'a>(&'a [Column], &'a [Cell<'a>]);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for ((name, _), cell) in self.0.iter().zip(self.1) {
            map.serialize_entry(name, cell)?;
        }
        map.end()
    }
}

/// Refuses a file that cannot be written in the format of its name.
///
/// # Errors
/// [`Error::BadArgument`], which says which formats there are.
pub fn check(path: &Path) -> Result<()> {
    format_of_name::check(path)?;
    match format_of_name::format(path) {
        Some(Format::Documents(DocumentFormat::Warc) | Format::HexLines | Format::Raw { .. }) => {
            Err(Error::BadArgument(format!(
                "{}: a table is .jsonl, .csv, .tsv or .parquet; any other extension gives lines",
                path.display()
            )))
        }
        _ => Ok(()),
    }
}

impl Rows {
    /// Rows in an output of this path; where that does not say the format, in objects if `json` is set.
    ///
    /// # Errors
    /// [`Error::Io`] if the names of the columns cannot be written.
    pub fn new(path: &Path, output: Output, columns: &[Column], json: bool) -> Result<Rows> {
        let writer = match format_of_name::format(path) {
            Some(Format::Documents(DocumentFormat::Jsonl)) => Writer::Json(output),
            Some(Format::Documents(separated @ (DocumentFormat::Csv | DocumentFormat::Tsv))) => {
                let delimiter = if separated == DocumentFormat::Csv { b',' } else { b'\t' };
                let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(output);
                writer.write_record(columns.iter().map(|(name, _)| name)).map_err(csv_failure(path))?;
                Writer::Csv(Box::new(writer), path.to_path_buf())
            }
            #[cfg(feature = "parquet")]
            Some(Format::Documents(DocumentFormat::Parquet)) => {
                Writer::Parquet(Box::new(parquet::Writer::new(path, output, columns)?))
            }
            _ if json => Writer::Json(output),
            _ => Writer::Lines(output),
        };
        Ok(Rows { columns: columns.to_vec(), writer })
    }

    /// Writes a row: a cell for each column, of its kind.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written.
    pub fn push(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        match &mut self.writer {
            Writer::Lines(output) => {
                for (i, cell) in cells.iter().enumerate() {
                    if i > 0 {
                        output.push(b"\t")?;
                    }
                    output.push(cell.column().as_bytes())?;
                }
                output.push(b"\n")
            }
            Writer::Json(output) => output.json(&Object(&self.columns, cells)),
            Writer::Csv(writer, path) => writer
                .write_record(cells.iter().map(|cell| cell.text().into_owned()))
                .map_err(csv_failure(path)),
            #[cfg(feature = "parquet")]
            Writer::Parquet(writer) => writer.push(cells),
        }
    }

    /// Writes the rest: nothing is missing then but the name.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written.
    pub fn complete(self) -> Result<Complete> {
        match self.writer {
            Writer::Lines(output) | Writer::Json(output) => output.complete(),
            Writer::Csv(writer, path) => {
                writer.into_inner().map_err(|error| Error::io(&path, "write")(error.into_error()))?.complete()
            }
            #[cfg(feature = "parquet")]
            Writer::Parquet(writer) => writer.complete(),
        }
    }
}

fn csv_failure(path: &Path) -> impl Fn(csv::Error) -> Error {
    move |error| {
        Error::io(path, "write")(match error.into_kind() {
            csv::ErrorKind::Io(error) => error,
            // All rows have the same number of columns, and all of them are UTF-8.
            other => std::io::Error::other(format!("{other:?}")),
        })
    }
}
