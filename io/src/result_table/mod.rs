//! Writes tables of results in the format that the file name implies.
//!
//! - `.jsonl`: one JSON object per row
//! - `.csv`, `.tsv`: a header with the column names, then the rows
//! - `.parquet`: typed columns (feature `parquet`)
//! - any other name: lines of tab-separated columns without a header or, if the caller chooses so, JSON objects

use std::fmt;
use std::path::Path;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use simstore::{Error, Result};

use crate::DocumentFormat;
use crate::formats::Format;
use crate::output::{CompleteOutput, Output, output_format};

mod cell;
#[cfg(feature = "parquet")]
mod parquet;

pub use crate::result_table::cell::{Cell, Column, ColumnKind};

/// Writer of a table of results, row by row. Call [`ResultTableWriter::complete`] at the end.
pub struct ResultTableWriter {
    columns: Vec<Column>,
    writer: TableFormatWriter,
}

impl fmt::Debug for ResultTableWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultTableWriter").field("columns", &self.columns).finish_non_exhaustive()
    }
}

enum TableFormatWriter {
    Lines(Output),
    Json(Output),
    Csv(Box<csv::Writer<Output>>, std::path::PathBuf),
    #[cfg(feature = "parquet")]
    Parquet(Box<parquet::ParquetTableWriter>),
}

/// A row that is serialized as a JSON object.
struct RowObject<'a>(&'a [Column], &'a [Cell<'a>]);

impl Serialize for RowObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for ((name, _), cell) in self.0.iter().zip(self.1) {
            map.serialize_entry(name, cell)?;
        }
        map.end()
    }
}

/// Checks that a table can be written to a file with this name.
///
/// # Errors
/// [`Error::BadArgument`] if the name implies a format that cannot hold a table. The message lists the supported
/// formats.
pub fn check_name(path: &Path) -> Result<()> {
    output_format::check_name(path)?;
    match output_format::format_from_name(path) {
        Some(Format::Documents(DocumentFormat::Warc) | Format::HexLines | Format::Raw { .. }) => {
            Err(Error::BadArgument(format!(
                "{}: a table is .jsonl, .csv, .tsv or .parquet; any other extension gives lines",
                path.display()
            )))
        }
        _ => Ok(()),
    }
}

impl ResultTableWriter {
    /// Creates a table. If the file name in `path` implies no format, `json` decides: rows are written as JSON objects
    /// or, if `json` is false, as tab-separated lines.
    ///
    /// # Errors
    /// [`Error::Io`] if the header cannot be written.
    pub fn new(path: &Path, output: Output, columns: &[Column], json: bool) -> Result<ResultTableWriter> {
        let writer = match output_format::format_from_name(path) {
            Some(Format::Documents(DocumentFormat::Jsonl)) => TableFormatWriter::Json(output),
            Some(Format::Documents(separated @ (DocumentFormat::Csv | DocumentFormat::Tsv))) => {
                let delimiter = if separated == DocumentFormat::Csv { b',' } else { b'\t' };
                let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(output);
                writer.write_record(columns.iter().map(|(name, _)| name)).map_err(csv_error(path))?;
                TableFormatWriter::Csv(Box::new(writer), path.to_path_buf())
            }
            #[cfg(feature = "parquet")]
            Some(Format::Documents(DocumentFormat::Parquet)) => {
                TableFormatWriter::Parquet(Box::new(parquet::ParquetTableWriter::new(path, output, columns)?))
            }
            _ if json => TableFormatWriter::Json(output),
            _ => TableFormatWriter::Lines(output),
        };
        Ok(ResultTableWriter { columns: columns.to_vec(), writer })
    }

    /// Writes a row. `cells` has a cell for each column, of the column's type.
    ///
    /// # Errors
    /// [`Error::Io`] if the row cannot be written.
    pub fn write_row(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        match &mut self.writer {
            TableFormatWriter::Lines(output) => {
                for (i, cell) in cells.iter().enumerate() {
                    if i > 0 {
                        output.write_bytes(b"\t")?;
                    }
                    output.write_bytes(cell.escaped_text().as_bytes())?;
                }
                output.write_bytes(b"\n")
            }
            TableFormatWriter::Json(output) => output.write_json(&RowObject(&self.columns, cells)),
            TableFormatWriter::Csv(writer, path) => writer
                .write_record(cells.iter().map(|cell| cell.text().into_owned()))
                .map_err(csv_error(path)),
            #[cfg(feature = "parquet")]
            TableFormatWriter::Parquet(writer) => writer.write_row(cells),
        }
    }

    /// Writes buffered data and syncs the file, which keeps its temporary name.
    ///
    /// # Errors
    /// [`Error::Io`] if the data cannot be written.
    pub fn complete(self) -> Result<CompleteOutput> {
        match self.writer {
            TableFormatWriter::Lines(output) | TableFormatWriter::Json(output) => output.complete(),
            TableFormatWriter::Csv(writer, path) => {
                writer.into_inner().map_err(|error| Error::io(&path, "write")(error.into_error()))?.complete()
            }
            #[cfg(feature = "parquet")]
            TableFormatWriter::Parquet(writer) => writer.complete(),
        }
    }
}

fn csv_error(path: &Path) -> impl Fn(csv::Error) -> Error {
    move |error| {
        Error::io(path, "write")(match error.into_kind() {
            csv::ErrorKind::Io(error) => error,
            // All rows have the same number of columns, and all of them are UTF-8.
            other => std::io::Error::other(format!("{other:?}")),
        })
    }
}
