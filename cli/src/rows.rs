//! Tables of results, in the format that a file's name asks for.

use std::borrow::Cow;
use std::path::Path;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use simstore_corpus::DocumentFormat;

use crate::failure::{Failure, Outcome};
use crate::naming::Id;
use crate::output::{Complete, Output, column};
use crate::output_name::{self, NamedFormat};

#[cfg(feature = "parquet")]
mod parquet;

/// What is said of the formats, for the help of options that name such a file.
pub(crate) const FORMATS_HELP: &str = "\
Tables are written in the format that the file's name ends in: .jsonl (an object a line), .csv or .tsv (with a line of \
column names), .parquet; these but the last compressed, where .gz, .zst, .bz2 or .xz follows; else, and to standard output (`-`), in lines of columns separated by tabs, without names, or \
with --json in objects.";

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Ids of documents: numbers if all of them are, else text.
    Ids {
        are_numbers: bool,
    },
    Text,
    Count,
    Flag,
}

/// A name and what it holds.
pub(crate) type Column = (&'static str, Kind);

/// A value of a row.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Cell<'a> {
    Id(Id<'a>),
    Text(&'a str),
    Count(u64),
    Flag(bool),
}

impl Cell<'_> {
    /// The value as text; in lines of columns, what would break them is escaped.
    fn text(&self, escaped: bool) -> Cow<'_, str> {
        match self {
            Cell::Id(Id::Name(text)) | Cell::Text(text) if escaped => column(text),
            Cell::Id(Id::Name(text)) | Cell::Text(text) => (*text).into(),
            Cell::Id(Id::Number(number)) | Cell::Count(number) => number.to_string().into(),
            Cell::Flag(flag) => flag.to_string().into(),
        }
    }
}

/// A table that is written row by row; [`Rows::complete`] must be called at the end.
pub(crate) struct Rows {
    columns: Vec<Column>,
    writer: Writer,
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
pub(crate) fn check(path: &Path) -> Outcome {
    output_name::check(path)?;
    match output_name::format(path) {
        NamedFormat::Documents(DocumentFormat::Warc) | NamedFormat::HexLines | NamedFormat::Raw => {
            Err(Failure::Usage(format!(
                "{}: a table can be .jsonl, .csv, .tsv or .parquet, or lines under any other name",
                path.display()
            )))
        }
        _ => Ok(()),
    }
}

impl Rows {
    /// A table in a file whose output is open already.
    pub(crate) fn new(path: &Path, output: Output, columns: &[Column], json: bool) -> Outcome<Rows> {
        let writer = match output_name::format(path) {
            NamedFormat::Documents(DocumentFormat::Jsonl) => Writer::Json(output),
            NamedFormat::Documents(separated @ (DocumentFormat::Csv | DocumentFormat::Tsv)) => {
                let delimiter = if separated == DocumentFormat::Csv { b',' } else { b'\t' };
                let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(output);
                writer.write_record(columns.iter().map(|(name, _)| name)).map_err(csv_failure(path))?;
                Writer::Csv(Box::new(writer), path.to_path_buf())
            }
            #[cfg(feature = "parquet")]
            NamedFormat::Documents(DocumentFormat::Parquet) => {
                Writer::Parquet(Box::new(parquet::Writer::new(path, output, columns)?))
            }
            _ if json => Writer::Json(output),
            _ => Writer::Lines(output),
        };
        Ok(Rows { columns: columns.to_vec(), writer })
    }

    /// Writes a row: a cell for each column.
    pub(crate) fn push(&mut self, cells: &[Cell]) -> Outcome {
        match &mut self.writer {
            Writer::Lines(output) => {
                for (i, cell) in cells.iter().enumerate() {
                    if i > 0 {
                        output.write(b"\t")?;
                    }
                    output.write(cell.text(true).as_bytes())?;
                }
                output.write(b"\n")
            }
            Writer::Json(output) => output.json(&Object(&self.columns, cells)),
            Writer::Csv(writer, path) => writer
                .write_record(cells.iter().map(|cell| cell.text(false).into_owned()))
                .map_err(csv_failure(path)),
            #[cfg(feature = "parquet")]
            Writer::Parquet(writer) => writer.push(cells),
        }
    }

    /// Writes the rest.
    pub(crate) fn complete(self) -> Outcome<Complete> {
        match self.writer {
            Writer::Lines(output) | Writer::Json(output) => output.complete(),
            Writer::Csv(writer, path) => {
                writer.into_inner().map_err(|error| Failure::write(&path)(error.into_error()))?.complete()
            }
            #[cfg(feature = "parquet")]
            Writer::Parquet(writer) => writer.complete(),
        }
    }
}

fn csv_failure(path: &Path) -> impl Fn(csv::Error) -> Failure {
    move |error| match error.into_kind() {
        csv::ErrorKind::Io(error) => Failure::write(path)(error),
        // All rows have the same number of columns, and all of them are UTF-8.
        other => Failure::Failed(format!("{}: cannot write: {other:?}", path.display())),
    }
}
