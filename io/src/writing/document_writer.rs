//! Writes documents byte for byte as they were read.

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::bytes::encoding::{self, Encoding};
use crate::document::escape::{escape_text, path_to_name};
use crate::formats::csv::CsvHeader;
use crate::formats::fields::name_taken_reason;
use crate::formats::json;
#[cfg(feature = "parquet")]
use crate::formats::parquet::ParquetRow;
use crate::reading::record::RecordContent;
use crate::writing::cluster_annotation::ClusterAnnotation;
#[cfg(feature = "parquet")]
use crate::writing::parquet_rows::ParquetRowWriter;
use crate::{DocumentFormat, Record};
use simstore::{Error, Result};

/// Writes documents to an output of the same format as their input. The bytes of a line, a row, or a WARC
/// record are written as they were read.
///
/// | format of the input | output |
/// |---|---|
/// | JSON lines | the lines of the documents |
/// | CSV, TSV | the header of the first file, then the rows of the documents |
/// | WARC | the records of the documents; other records, such as requests, are omitted |
/// | text files | a list of their paths, [escaped](crate::escape), one per line |
/// | Parquet | the rows of the documents, with the columns of the first file, compressed with zstd |
///
/// A [`ClusterAnnotation`] is written as one more field before the closing brace of a JSON object, as one more
/// column of a table, or after the path of a text file and a tab. It cannot be written to a web archive.
///
/// The output is not compressed, unless `W` is a [`Compressor`](crate::Compressor). Lines of a UTF-16 file
/// are written as UTF-8.
///
/// ```
/// use simstore_io::{ClusterAnnotation, DocumentOptions, DocumentWriter, records};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("pages.jsonl");
/// std::fs::write(&path, "{\"id\": 7, \"text\": \"To be\"}\n")?;
/// let mut writer = DocumentWriter::new(Vec::new());
/// for record in records(&[path], &DocumentOptions::default()) {
///     writer.write(&record?, Some(&ClusterAnnotation { cluster: Some(3), ..ClusterAnnotation::default() }))?;
/// }
/// assert_eq!(writer.finish()?, b"{\"id\": 7, \"text\": \"To be\",\"cluster\":3}\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DocumentWriter<W: Write + Send> {
    output: DocumentOutput<W>,
    path: PathBuf,
    /// Of text files, only the paths are written. This flag says whether each path ends with a zero byte, not a newline.
    is_null_terminated: bool,
    /// Properties of the first written record; `None` until a record is written. All later records must have the same
    /// properties.
    first: Option<FirstRecord>,
}

/// The output of a [`DocumentWriter`], which takes either bytes or rows of Parquet.
#[derive(Debug)]
enum DocumentOutput<W: Write + Send> {
    Bytes(W),
    #[cfg(feature = "parquet")]
    Rows(Box<ParquetRowWriter<W>>),
    /// Creating the Parquet writer has failed, so nothing can be written.
    #[cfg(feature = "parquet")]
    Broken,
}

/// Properties of the first written record. All later records of the output must have the same properties.
#[derive(Debug)]
struct FirstRecord {
    path: PathBuf,
    format: DocumentFormat,
    /// Name of the field that the [`ClusterAnnotation`] adds; `None` if documents are written without annotation.
    field: Option<String>,
    header: Option<Arc<CsvHeader>>,
}

impl<W: Write + Send> DocumentWriter<W> {
    /// Creates a writer. The first document decides the format of the output.
    pub fn new(write: W) -> Self {
        DocumentWriter {
            output: DocumentOutput::Bytes(write),
            path: PathBuf::from("-"),
            is_null_terminated: false,
            first: None,
        }
    }

    /// Sets the path of the output in error messages. The default is `-`, standard output.
    #[must_use]
    pub fn with_path(self, path: &Path) -> Self {
        DocumentWriter { path: path.to_path_buf(), ..self }
    }

    /// Sets whether the path of a text file is written without escapes and with a zero byte at its end. The default is
    /// an escaped path with a newline at its end.
    #[must_use]
    pub fn with_null_terminators(self, is_null_terminated: bool) -> Self {
        DocumentWriter { is_null_terminated, ..self }
    }

    /// Writes a document. Either all documents of an output have an annotation, or none has.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for a document with another format or other columns than the first one, for a document
    /// [from an iterator](crate::reading::DocumentStream), and for an annotation in a web archive;
    /// [`Error::Io`] if the document cannot be written.
    pub fn write(&mut self, record: &Record, annotation: Option<&ClusterAnnotation<'_>>) -> Result<()> {
        let refused = |reason: String| {
            Error::BadArgument(format!("{}:{}: {reason}", record.path().display(), record.line()))
        };
        let field = annotation.map(|annotation| annotation.field);
        let is_first = self.first.is_none();
        let first = self.first.get_or_insert_with(|| FirstRecord::new(record, field));
        first.check(record, field).map_err(refused)?;
        let lines = match record.content() {
            #[cfg(feature = "parquet")]
            RecordContent::Parquet(row) => {
                if let Some(name) = field.filter(|name| row.has_column(name)) {
                    return Err(refused(name_taken_reason("column", name)));
                }
                let rows = self.output.parquet_writer(row, field, &self.path)?;
                if !rows.has_same_columns(row) {
                    return Err(refused(first.other_columns()));
                }
                return rows.write(row, annotation, &self.path);
            }
            RecordContent::Jsonl { line, encoding } => match annotation {
                Some(annotation) => append_field(line, *encoding, annotation),
                None => Ok(Cow::Borrowed(&**line)),
            },
            RecordContent::Table { row, header } => table_lines(row, header, annotation, is_first),
            RecordContent::Warc { .. } if annotation.is_some() => {
                Err("a web archive cannot hold clusters; write them to a separate file (option `clusters`)"
                    .to_owned())
            }
            RecordContent::Warc { bytes, .. } => Ok(Cow::Borrowed(&**bytes)),
            RecordContent::Text(_) => {
                let path = if self.is_null_terminated {
                    Cow::Borrowed(record.path().as_os_str().as_encoded_bytes())
                } else {
                    escape_text(&path_to_name(record.path())).into_owned().into_bytes().into()
                };
                Ok(match annotation {
                    Some(annotation) => {
                        [&path, &b"\t"[..], cluster_text(annotation).as_bytes()].concat().into()
                    }
                    None => path,
                })
            }
            RecordContent::InMemory(_) => Err("is not from a file".to_owned()),
        };
        let lines = lines.map_err(refused)?;
        let end: &[u8] = match record.format() {
            DocumentFormat::Warc => b"",
            DocumentFormat::Text if self.is_null_terminated => b"\0",
            _ => b"\n",
        };
        self.output.write(&[&lines, end], &self.path)
    }

    /// Returns the output to which this writer has written all documents so far. Returns `None` for Parquet, because
    /// its rows are buffered.
    pub fn get_mut(&mut self) -> Option<&mut W> {
        match &mut self.output {
            DocumentOutput::Bytes(write) => Some(write),
            #[cfg(feature = "parquet")]
            DocumentOutput::Rows(_) | DocumentOutput::Broken => None,
        }
    }

    /// Writes buffered data and returns the output.
    ///
    /// # Errors
    /// [`Error::Io`] if the data cannot be written.
    pub fn finish(self) -> Result<W> {
        self.output.finish(&self.path)
    }
}

impl<W: Write + Send> DocumentOutput<W> {
    fn write(&mut self, parts: &[&[u8]], path: &Path) -> Result<()> {
        match self {
            DocumentOutput::Bytes(write) => {
                parts.iter().try_for_each(|part| write.write_all(part)).map_err(Error::io(path, "write"))
            }
            // Not reached: rows of Parquet are not written as bytes.
            #[cfg(feature = "parquet")]
            DocumentOutput::Rows(_) | DocumentOutput::Broken => Err(after_failure(path)),
        }
    }

    fn finish(self, path: &Path) -> Result<W> {
        match self {
            DocumentOutput::Bytes(mut write) => {
                write.flush().map(|()| write).map_err(Error::io(path, "write"))
            }
            #[cfg(feature = "parquet")]
            DocumentOutput::Rows(rows) => rows.finish(path),
            #[cfg(feature = "parquet")]
            DocumentOutput::Broken => Err(after_failure(path)),
        }
    }

    /// Returns the Parquet writer. For the first row, creates a writer with the columns of `row`, and a column `field`
    /// for the cluster if `field` is given.
    #[cfg(feature = "parquet")]
    fn parquet_writer(
        &mut self,
        row: &ParquetRow,
        field: Option<&str>,
        path: &Path,
    ) -> Result<&mut ParquetRowWriter<W>> {
        if let DocumentOutput::Bytes(_) = self
            && let DocumentOutput::Bytes(write) = std::mem::replace(self, DocumentOutput::Broken)
        {
            *self = DocumentOutput::Rows(Box::new(ParquetRowWriter::new(write, row, field, path)?));
        }
        match self {
            DocumentOutput::Rows(rows) => Ok(rows),
            DocumentOutput::Bytes(_) | DocumentOutput::Broken => Err(after_failure(path)),
        }
    }
}

#[cfg(feature = "parquet")]
fn after_failure(path: &Path) -> Error {
    Error::io(path, "write")(std::io::Error::other("an earlier write has failed"))
}

impl FirstRecord {
    fn new(record: &Record, field: Option<&str>) -> FirstRecord {
        let header = match record.content() {
            RecordContent::Table { header, .. } => Some(Arc::clone(header)),
            _ => None,
        };
        FirstRecord {
            path: record.path().to_path_buf(),
            format: record.format(),
            field: field.map(str::to_owned),
            header,
        }
    }

    /// Returns the reason if a record cannot be written after the first one, because their properties differ. `field`
    /// is the name of the field that is added to the record, if any.
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
            RecordContent::Table { header, .. } => Some(header),
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

fn cluster_text(annotation: &ClusterAnnotation<'_>) -> String {
    annotation.cluster.map_or_else(String::new, |cluster| cluster.to_string())
}

/// Returns a line of JSON with the annotation as one more field at the end of the object. Returns the reason if the
/// object already has this field.
fn append_field<'r>(
    line: &[u8],
    encoding: Encoding,
    annotation: &ClusterAnnotation<'_>,
) -> Result<Cow<'r, [u8]>, String> {
    let (text, _) = encoding::decode_line(line, encoding);
    let (has_any, is_there) = json::has_fields(&text, annotation.field)?;
    if is_there {
        return Err(name_taken_reason("field", annotation.field));
    }
    // The brace that closes the object is its last byte except for blanks, so it is not part of a longer character.
    let Some(end) = line.iter().rposition(|&byte| byte == b'}') else {
        return Err("not a JSON object".to_owned());
    };
    let separator = if has_any { "," } else { "" };
    let value = annotation.cluster.map_or("null".to_owned(), |cluster| cluster.to_string());
    let field = format!("{separator}{}:{value}", json::ascii_string(annotation.field));
    Ok([&line[..end], field.as_bytes(), &line[end..]].concat().into())
}

/// Returns a row of a table, with one more cell if there is an annotation. If the row is the first one, the result
/// begins with the header.
fn table_lines<'r>(
    row: &'r [u8],
    header: &CsvHeader,
    annotation: Option<&ClusterAnnotation<'_>>,
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
    let cell = annotation.map(|annotation| cluster_text(annotation).into_bytes());
    push_row(&mut lines, row, cell.as_deref(), header.delimiter);
    Ok(lines.into())
}

fn push_row(lines: &mut Vec<u8>, row: &[u8], cell: Option<&[u8]>, delimiter: u8) {
    let Some(cell) = cell else { return lines.extend_from_slice(row) };
    // The new cell goes before a carriage return at the end of the row.
    let (row, end) = row.strip_suffix(b"\r").map_or((row, &b""[..]), |row| (row, b"\r"));
    lines.extend_from_slice(row);
    lines.push(delimiter);
    lines.extend_from_slice(cell);
    lines.extend_from_slice(end);
}
