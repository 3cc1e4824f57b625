//! A record: one document as it is in its file, not yet parsed.

use std::borrow::Cow;
use std::path::{MAIN_SEPARATOR_STR, Path};
use std::sync::Arc;

use bytes::Bytes;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::bytes::encoding::{self, Encoding};
use crate::document::escape::path_to_name;
use crate::document::id::format_position;
use crate::formats::csv::CsvHeader;
use crate::formats::fields::ParsedDocument;
use crate::formats::json;
#[cfg(feature = "parquet")]
use crate::formats::parquet;
use crate::formats::warc;
use crate::{Document, DocumentFormat, DocumentId, DocumentOptions};
use simstore::{Error, Result};

/// A document as it is in its file: a line of JSON, a row of a table, a WARC record, a whole text file, or a
/// document [from an iterator](crate::reading::DocumentStream).
///
/// A file of JSON is read in blocks of 64 KiB or more, and its records refer to the memory of these blocks. So a record
/// that is kept also keeps its whole block in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    path: Arc<Path>,
    line: u64,
    content: RecordContent,
}

/// Content of a record, with the data needed to parse it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RecordContent {
    Jsonl {
        line: Bytes,
        encoding: Encoding,
    },
    Table {
        row: Vec<u8>,
        header: Arc<CsvHeader>,
    },
    Warc {
        bytes: Vec<u8>,
        header_bytes: usize,
    },
    Text(Vec<u8>),
    #[cfg(feature = "parquet")]
    Parquet(parquet::ParquetRow),
    InMemory(InMemoryDocument),
}

/// A document from an iterator.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InMemoryDocument {
    pub id: DocumentId,
    pub text: String,
    pub extra: Option<String>,
}

impl Record {
    pub(crate) fn new(path: &Arc<Path>, line: u64, content: RecordContent) -> Record {
        Record { path: Arc::clone(path), line, content }
    }

    /// Copies the line of a JSON record, so that the record does not keep a whole block of the file in memory. This is
    /// useful if few records of many are kept.
    pub fn detached(mut self) -> Record {
        if let RecordContent::Jsonl { line, .. } = &mut self.content {
            *line = Bytes::copy_from_slice(line);
        }
        self
    }

    pub(crate) fn content(&self) -> &RecordContent {
        &self.content
    }

    /// Path of the file; `-` for standard input. A member of an archive has a path that begins with the path of the
    /// archive: `pages.zip/a/b.txt`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Like [`path`](Record::path), but shared by all records of the file.
    pub fn shared_path(&self) -> &Arc<Path> {
        &self.path
    }

    /// Position of the record in its file, from 1.
    ///
    /// In JSON lines and tables, the position is the number of the record's first line. In Parquet, it is the number of
    /// the row; in a web archive, of the WARC record; in a JSON array, of the element. A text file has position 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Bytes of the record as in its file: a line or row without its newline, a WARC record, a whole text
    /// file. `None` for a row of Parquet and for a document from an iterator.
    ///
    /// Two kinds of records are changed. Lines and rows of a UTF-16 file are converted to UTF-8. The elements of a
    /// JSON array in any encoding are converted to UTF-8 too, and lose the newlines between their tokens.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.content {
            RecordContent::Jsonl { line, .. } => Some(line),
            RecordContent::Table { row: bytes, .. }
            | RecordContent::Warc { bytes, .. }
            | RecordContent::Text(bytes) => Some(bytes),
            #[cfg(feature = "parquet")]
            RecordContent::Parquet(_) => None,
            RecordContent::InMemory(_) => None,
        }
    }

    /// Format of the file; [`DocumentFormat::Jsonl`] for a document from an iterator.
    pub fn format(&self) -> DocumentFormat {
        match &self.content {
            RecordContent::Jsonl { .. } | RecordContent::InMemory(_) => DocumentFormat::Jsonl,
            RecordContent::Table { header, .. } if header.delimiter == b'\t' => DocumentFormat::Tsv,
            RecordContent::Table { .. } => DocumentFormat::Csv,
            RecordContent::Warc { .. } => DocumentFormat::Warc,
            RecordContent::Text(_) => DocumentFormat::Text,
            #[cfg(feature = "parquet")]
            RecordContent::Parquet(_) => DocumentFormat::Parquet,
        }
    }

    /// Approximate size of the record in memory, in bytes.
    pub fn size(&self) -> usize {
        match &self.content {
            #[cfg(feature = "parquet")]
            RecordContent::Parquet(row) => row.size(),
            RecordContent::InMemory(document) => document.text.len(),
            _ => self.bytes().map_or(0, <[u8]>::len),
        }
    }

    /// Returns a checksum that shows whether a document has changed since it was last read.
    ///
    /// The checksum is xxh3 of the bytes of the record and, in CSV and TSV, of the header. In Parquet, it covers the
    /// columns that the options name. For a document from an iterator, it covers the text.
    pub fn checksum(
        &self,
        #[cfg_attr(
            not(feature = "parquet"),
            expect(unused_variables, reason = "only for Parquet does the checksum depend on the options")
        )]
        options: &DocumentOptions,
    ) -> u64 {
        match &self.content {
            RecordContent::Table { row, header } => xxh3_64_with_seed(row, header.checksum),
            #[cfg(feature = "parquet")]
            RecordContent::Parquet(row) => row.checksum(options),
            RecordContent::Jsonl { line, .. } => xxh3_64(line),
            RecordContent::Warc { bytes, .. } | RecordContent::Text(bytes) => xxh3_64(bytes),
            RecordContent::InMemory(document) => xxh3_64(document.text.as_bytes()),
        }
    }

    /// Parses the document. A text field that is missing or `null` is empty.
    ///
    /// # Errors
    /// [`Error::BadInput`] for:
    ///
    /// - a line that is not one JSON object,
    /// - a row with more or fewer fields than the header,
    /// - a document without the id field that the options name,
    /// - an id that is too long,
    /// - a field that has the wrong type or occurs twice.
    pub fn into_document(self, options: &DocumentOptions) -> Result<Document> {
        let ParsedDocument { id, text, replacements, extra, has_position_id, detected_encoding } =
            self.parse(options)?;
        let text = text.into_owned();
        let (path, line) = (self.path, self.line);
        Ok(Document { id, text, path, line, replacements, extra, has_position_id, detected_encoding })
    }

    /// Like [`Record::into_document`], but borrows the text from the record where possible.
    ///
    /// # Errors
    /// See [`Record::into_document`].
    pub fn parse(&self, options: &DocumentOptions) -> Result<ParsedDocument<'_>> {
        let Record { path, line, content } = self;
        let position = || format_position(path, *line);
        let parsed = match content {
            RecordContent::Jsonl { line, encoding } => json::parse(line, *encoding, options, position),
            RecordContent::Table { row, header } => header.parse(row, *line, options, position),
            RecordContent::Warc { bytes, header_bytes } => warc::parse(bytes, *header_bytes, options),
            RecordContent::Text(bytes) => id_from_path(path).map(|id| {
                let ((text, replacements), detected_encoding) =
                    encoding::decode_text(bytes, options.encoding, None);
                ParsedDocument {
                    id,
                    text,
                    replacements,
                    extra: None,
                    has_position_id: false,
                    detected_encoding,
                }
            }),
            #[cfg(feature = "parquet")]
            RecordContent::Parquet(row) => row.parse(options, position),
            RecordContent::InMemory(InMemoryDocument { id, text, extra }) => Ok(ParsedDocument {
                id: id.clone(),
                text: Cow::Borrowed(text),
                replacements: 0,
                extra: extra.clone(),
                has_position_id: false,
                detected_encoding: None,
            }),
        };
        parsed.map_err(|reason| Error::BadInput { path: path.to_path_buf(), line: *line, reason })
    }
}

fn id_from_path(path: &Path) -> Result<DocumentId, String> {
    let name = path_to_name(path);
    DocumentId::from_name(if MAIN_SEPARATOR_STR == "/" {
        name.into_owned()
    } else {
        name.replace(MAIN_SEPARATOR_STR, "/")
    })
}
