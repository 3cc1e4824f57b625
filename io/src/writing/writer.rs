//! Writing documents byte for byte as they were read.

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::bytes::encoding::{self, Encoding};
use crate::document::escape::{escaped, path_text};
use crate::formats::csv::Header;
use crate::formats::fields::is_taken;
use crate::formats::json;
#[cfg(feature = "parquet")]
use crate::formats::parquet::Row;
use crate::reading::record::Content;
use crate::writing::annotation::Annotation;
#[cfg(feature = "parquet")]
use crate::writing::parquet::RowWriter;
use crate::{DocumentFormat, Record};
use simstore::{Error, Result};

/// Writes documents in the format of their inputs, byte for byte.
///
/// | format | written |
/// |---|---|
/// | JSON lines | the line, and a newline |
/// | CSV, TSV | the header of the first file, then the rows |
/// | WARC | the records of documents; other records, such as requests, are left out |
/// | text files | the path, [escaped](crate::escape), and a newline |
/// | Parquet | the rows, with the columns of the first file, compressed with zstd |
///
/// An [`Annotation`] is one more field before the closing brace, one more column, or follows the path after a tab;
/// a web archive has no place for it.
///
/// The output is not compressed, unless it is a [`Compressor`](crate::Compressor). Lines of a file in UTF-16 become UTF-8.
///
/// ```
/// use simstore_io::{DocumentOptions, Annotation, records, DocumentWriter};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("pages.jsonl");
/// std::fs::write(&path, "{\"id\": 7, \"text\": \"To be\"}\n")?;
/// let mut writer = DocumentWriter::new(Vec::new());
/// for record in records(&[path], &DocumentOptions::default()) {
///     writer.write(&record?, Some(&Annotation { cluster: Some(3), ..Annotation::default() }))?;
/// }
/// assert_eq!(writer.finish()?, b"{\"id\": 7, \"text\": \"To be\",\"cluster\":3}\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DocumentWriter<W: Write + Send> {
    output: Output<W>,
    path: PathBuf,
    /// Whether paths of text files end in a zero byte.
    null: bool,
    /// The form of the output, which the first record decides.
    first: Option<First>,
}

/// Where documents go to.
#[derive(Debug)]
enum Output<W: Write + Send> {
    Bytes(W),
    #[cfg(feature = "parquet")]
    Rows(Box<RowWriter<W>>),
    /// The writer of rows could not be made.
    #[cfg(feature = "parquet")]
    Broken,
}

/// The form of an output.
#[derive(Debug)]
struct First {
    path: PathBuf,
    format: DocumentFormat,
    /// The name of the annotation, if any.
    field: Option<String>,
    header: Option<Arc<Header>>,
}

impl<W: Write + Send> DocumentWriter<W> {
    /// A writer of no document yet.
    pub fn new(write: W) -> Self {
        DocumentWriter { output: Output::Bytes(write), path: PathBuf::from("-"), null: false, first: None }
    }

    /// Says what errors call the output; else it is `-`, standard output.
    #[must_use]
    pub fn with_path(self, path: &Path) -> Self {
        DocumentWriter { path: path.to_path_buf(), ..self }
    }

    /// Says whether a zero byte comes after the path of a text file, instead of a newline, which may be part of it.
    #[must_use]
    pub fn with_null(self, null: bool) -> Self {
        DocumentWriter { null, ..self }
    }

    /// Writes a document; all with an annotation or all without.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for a document of another format or with other columns than the first, for one that is
    /// [in memory](crate::reading::GivenDocuments), and for an annotation of a web archive; [`Error::Io`] if it cannot be written.
    pub fn write(&mut self, record: &Record, annotation: Option<&Annotation<'_>>) -> Result<()> {
        let refused = |reason: String| {
            Error::BadArgument(format!("{}:{}: {reason}", record.path().display(), record.line()))
        };
        let field = annotation.map(|annotation| annotation.field);
        let is_first = self.first.is_none();
        let first = self.first.get_or_insert_with(|| First::new(record, field));
        first.check(record, field).map_err(refused)?;
        let lines = match record.content() {
            #[cfg(feature = "parquet")]
            Content::Parquet(row) => {
                if let Some(name) = field.filter(|name| row.has_column(name)) {
                    return Err(refused(is_taken("column", name)));
                }
                let rows = self.output.rows(row, field, &self.path)?;
                if !rows.fits(row) {
                    return Err(refused(first.other_columns()));
                }
                return rows.write(row, annotation, &self.path);
            }
            Content::Jsonl { line, encoding } => match annotation {
                Some(annotation) => with_field(line, *encoding, annotation),
                None => Ok(Cow::Borrowed(&**line)),
            },
            Content::Table { row, header } => table_lines(row, header, annotation, is_first),
            Content::Warc { .. } if annotation.is_some() => {
                Err("a web archive cannot hold clusters; write them to a separate file (option `clusters`)"
                    .to_owned())
            }
            Content::Warc { bytes, .. } => Ok(Cow::Borrowed(&**bytes)),
            Content::Text(_) => {
                let path = if self.null {
                    Cow::Borrowed(record.path().as_os_str().as_encoded_bytes())
                } else {
                    escaped(&path_text(record.path())).into_owned().into_bytes().into()
                };
                Ok(match annotation {
                    Some(annotation) => [&path, &b"\t"[..], number(annotation).as_bytes()].concat().into(),
                    None => path,
                })
            }
            Content::Given(_) => Err("is not from a file".to_owned()),
        };
        let lines = lines.map_err(refused)?;
        let end: &[u8] = match record.format() {
            DocumentFormat::Warc => b"",
            DocumentFormat::Text if self.null => b"\0",
            _ => b"\n",
        };
        self.output.write(&[&lines, end], &self.path)
    }

    /// The output, after all that was written; `None` for Parquet, which writes when it sees fit.
    pub fn get_mut(&mut self) -> Option<&mut W> {
        match &mut self.output {
            Output::Bytes(write) => Some(write),
            #[cfg(feature = "parquet")]
            Output::Rows(_) | Output::Broken => None,
        }
    }

    /// Writes what is left and hands the output back.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written.
    pub fn finish(self) -> Result<W> {
        self.output.finish(&self.path)
    }
}

impl<W: Write + Send> Output<W> {
    fn write(&mut self, parts: &[&[u8]], path: &Path) -> Result<()> {
        match self {
            Output::Bytes(write) => {
                parts.iter().try_for_each(|part| write.write_all(part)).map_err(Error::io(path, "write"))
            }
            // Only rows of Parquet come here, and they are not written as bytes.
            #[cfg(feature = "parquet")]
            Output::Rows(_) | Output::Broken => Err(broken(path)),
        }
    }

    fn finish(self, path: &Path) -> Result<W> {
        match self {
            Output::Bytes(mut write) => write.flush().map(|()| write).map_err(Error::io(path, "write")),
            #[cfg(feature = "parquet")]
            Output::Rows(rows) => rows.finish(path),
            #[cfg(feature = "parquet")]
            Output::Broken => Err(broken(path)),
        }
    }

    /// The writer of rows; the first row decides on its columns.
    #[cfg(feature = "parquet")]
    fn rows(&mut self, row: &Row, field: Option<&str>, path: &Path) -> Result<&mut RowWriter<W>> {
        if let Output::Bytes(_) = self
            && let Output::Bytes(write) = std::mem::replace(self, Output::Broken)
        {
            *self = Output::Rows(Box::new(RowWriter::new(write, row, field, path)?));
        }
        match self {
            Output::Rows(rows) => Ok(rows),
            Output::Bytes(_) | Output::Broken => Err(broken(path)),
        }
    }
}

#[cfg(feature = "parquet")]
fn broken(path: &Path) -> Error {
    Error::io(path, "write")(std::io::Error::other("an earlier write has failed"))
}

impl First {
    fn new(record: &Record, field: Option<&str>) -> First {
        let header = match record.content() {
            Content::Table { header, .. } => Some(Arc::clone(header)),
            _ => None,
        };
        First {
            path: record.path().to_path_buf(),
            format: record.format(),
            field: field.map(str::to_owned),
            header,
        }
    }

    /// The reason why a record does not fit the first one, if any.
    fn check(&self, record: &Record, field: Option<&str>) -> Result<(), String> {
        if record.format() != self.format {
            return Err(format!(
                "holds {}, but the output began with {} of {}; write files of one format at a time",
                record.format(),
                self.format,
                self.path.display()
            ));
        }
        if field != self.field.as_deref() {
            return Err(
                "documents with and without an annotation, or with different ones, in one output".to_owned()
            );
        }
        let header = match record.content() {
            Content::Table { header, .. } => Some(header),
            _ => None,
        };
        if header != self.header.as_ref() {
            return Err(self.other_columns());
        }
        Ok(())
    }

    fn other_columns(&self) -> String {
        format!(
            "has other columns or another encoding than {}; process these files separately",
            self.path.display()
        )
    }
}

fn number(annotation: &Annotation<'_>) -> String {
    annotation.cluster.map_or_else(String::new, |cluster| cluster.to_string())
}

/// An object with one more field.
fn with_field<'r>(
    line: &[u8],
    encoding: Encoding,
    annotation: &Annotation<'_>,
) -> Result<Cow<'r, [u8]>, String> {
    let (text, _) = encoding::decode_line(line, encoding);
    let (has_any, is_there) = json::has_fields(&text, annotation.field)?;
    if is_there {
        return Err(is_taken("field", annotation.field));
    }
    // The last byte that is not blank: in an object, no part of a character.
    let Some(end) = line.iter().rposition(|&byte| byte == b'}') else {
        return Err("not a JSON object".to_owned());
    };
    let separator = if has_any { "," } else { "" };
    let value = annotation.cluster.map_or("null".to_owned(), |cluster| cluster.to_string());
    let field = format!("{separator}{}:{value}", json::ascii_string(annotation.field));
    Ok([&line[..end], field.as_bytes(), &line[end..]].concat().into())
}

/// A row, with one more cell for the annotation; with the header before it, if it is the first.
fn table_lines<'r>(
    row: &'r [u8],
    header: &Header,
    annotation: Option<&Annotation<'_>>,
    is_first: bool,
) -> Result<Cow<'r, [u8]>, String> {
    if annotation.is_none() && !is_first {
        return Ok(row.into());
    }
    let mut lines = Vec::new();
    if is_first {
        let name = annotation.map(|annotation| header.new_column(annotation.field)).transpose()?;
        lines.extend_from_slice(header.mark);
        push_row(&mut lines, &header.row, name.as_deref(), header.delimiter);
        lines.push(b'\n');
    }
    let cell = annotation.map(|annotation| number(annotation).into_bytes());
    push_row(&mut lines, row, cell.as_deref(), header.delimiter);
    Ok(lines.into())
}

fn push_row(lines: &mut Vec<u8>, row: &[u8], cell: Option<&[u8]>, delimiter: u8) {
    let Some(cell) = cell else { return lines.extend_from_slice(row) };
    // The carriage return before the newline.
    let (row, end) = row.strip_suffix(b"\r").map_or((row, &b""[..]), |row| (row, b"\r"));
    lines.extend_from_slice(row);
    lines.push(delimiter);
    lines.extend_from_slice(cell);
    lines.extend_from_slice(end);
}
