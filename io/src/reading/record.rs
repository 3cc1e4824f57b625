//! A record: a document as in its file.

use std::borrow::Cow;
use std::path::{MAIN_SEPARATOR_STR, Path};
use std::sync::Arc;

use bytes::Bytes;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::bytes::encoding::{self, Encoding};
use crate::document::escape::path_text;
use crate::document::id::place;
use crate::formats::csv::Header;
use crate::formats::fields::Parsed;
use crate::formats::json;
#[cfg(feature = "parquet")]
use crate::formats::parquet;
use crate::formats::warc;
use crate::{Document, DocumentFormat, DocumentId, DocumentOptions};
use simstore::{Error, Result};

/// A document as in its file: a line of JSON, a row of a table, a record of a web archive or a text file; or a document
/// [from an iterator](crate::reading::GivenDocuments).
///
/// Lines of JSON share the block that they were read in: a record that is kept also keeps its block, 64 KiB or more.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    path: Arc<Path>,
    line: u64,
    content: Content,
}

/// The contents of a record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    Jsonl {
        line: Bytes,
        encoding: Encoding,
    },
    Table {
        row: Vec<u8>,
        header: Arc<Header>,
    },
    Warc {
        bytes: Vec<u8>,
        header_bytes: usize,
    },
    Text(Vec<u8>),
    #[cfg(feature = "parquet")]
    Parquet(parquet::Row),
    Given(GivenDocument),
}

/// A document from an iterator.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GivenDocument {
    pub id: DocumentId,
    pub text: String,
    pub extra: Option<String>,
}

impl Record {
    pub(crate) fn new(path: &Arc<Path>, line: u64, content: Content) -> Record {
        Record { path: Arc::clone(path), line, content }
    }

    /// The same record without the block that its line shares with others: for records that are kept while few others are.
    pub fn detached(mut self) -> Record {
        if let Content::Jsonl { line, .. } = &mut self.content {
            *line = Bytes::copy_from_slice(line);
        }
        self
    }

    pub(crate) fn content(&self) -> &Content {
        &self.content
    }

    /// Path of the file; `-` for standard input. For a member of an archive, the path of the archive and of the member
    /// in it: `pages.zip/a/b.txt`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of the file, as records of one file share it.
    pub fn shared_path(&self) -> &Arc<Path> {
        &self.path
    }

    /// Number of the first line, from 1; 1 for a text file. For Parquet the number of the row, for a web archive of the
    /// record, and for a JSON array of the element, each from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Bytes of the record in its file: a line or a row without the newline, a record of a web archive, a whole text
    /// file. `None` for a row of Parquet and for a document from an iterator.
    ///
    /// Lines and rows of a UTF-16 file are converted to UTF-8. So are the elements of a JSON array; each is one line
    /// here, without the newlines between its tokens.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.content {
            Content::Jsonl { line, .. } => Some(line),
            Content::Table { row: bytes, .. } | Content::Warc { bytes, .. } | Content::Text(bytes) => {
                Some(bytes)
            }
            #[cfg(feature = "parquet")]
            Content::Parquet(_) => None,
            Content::Given(_) => None,
        }
    }

    /// Format of the file; [`DocumentFormat::Jsonl`] for a document from an iterator.
    pub fn format(&self) -> DocumentFormat {
        match &self.content {
            Content::Jsonl { .. } | Content::Given(_) => DocumentFormat::Jsonl,
            Content::Table { header, .. } if header.delimiter == b'\t' => DocumentFormat::Tsv,
            Content::Table { .. } => DocumentFormat::Csv,
            Content::Warc { .. } => DocumentFormat::Warc,
            Content::Text(_) => DocumentFormat::Text,
            #[cfg(feature = "parquet")]
            Content::Parquet(_) => DocumentFormat::Parquet,
        }
    }

    /// Approximate size in memory, in bytes.
    pub fn size(&self) -> usize {
        match &self.content {
            #[cfg(feature = "parquet")]
            Content::Parquet(row) => row.size(),
            Content::Given(given) => given.text.len(),
            _ => self.bytes().map_or(0, <[u8]>::len),
        }
    }

    /// Checksum that shows whether a document has changed when it is read again: xxh3 of the bytes and, for a row, of
    /// the header. For a row of Parquet, of the columns that the options name; for a document from an iterator, of the
    /// text.
    pub fn checksum(
        &self,
        #[cfg_attr(
            not(feature = "parquet"),
            expect(unused_variables, reason = "only of Parquet are columns asked for")
        )]
        options: &DocumentOptions,
    ) -> u64 {
        match &self.content {
            Content::Table { row, header } => xxh3_64_with_seed(row, header.checksum),
            #[cfg(feature = "parquet")]
            Content::Parquet(row) => row.checksum(options),
            Content::Jsonl { line, .. } => xxh3_64(line),
            Content::Warc { bytes, .. } | Content::Text(bytes) => xxh3_64(bytes),
            Content::Given(given) => xxh3_64(given.text.as_bytes()),
        }
    }

    /// Parses the document.
    ///
    /// # Errors
    /// [`Error::BadInput`] for a line that is not one JSON object, and for a row with more or fewer fields than the
    /// header. The same error for an id that is too long, or requested and missing, and for a field of another type or
    /// that occurs twice. A text that is `null` or missing is empty.
    pub fn document(self, options: &DocumentOptions) -> Result<Document> {
        let Parsed { id, text, replaced, extra, is_placed, guessed } = self.parse(options)?;
        let text = text.into_owned();
        Ok(Document { id, text, path: self.path, line: self.line, replaced, extra, is_placed, guessed })
    }

    /// Parses the document; its text is copied only if the record does not hold it as it is.
    ///
    /// # Errors
    /// As [`Record::document`].
    pub fn parse(&self, options: &DocumentOptions) -> Result<Parsed<'_>> {
        let Record { path, line, content } = self;
        let position = || place(path, *line);
        let parsed = match content {
            Content::Jsonl { line, encoding } => json::parse(line, *encoding, options, position),
            Content::Table { row, header } => header.parse(row, *line, options, position),
            Content::Warc { bytes, header_bytes } => warc::parse(bytes, *header_bytes, options),
            Content::Text(bytes) => path_id(path).map(|id| {
                let ((text, replaced), guessed) = encoding::decode_text(bytes, options.encoding, None);
                Parsed { id, text, replaced, extra: None, is_placed: false, guessed }
            }),
            #[cfg(feature = "parquet")]
            Content::Parquet(row) => row.parse(options, position),
            Content::Given(GivenDocument { id, text, extra }) => Ok(Parsed {
                id: id.clone(),
                text: Cow::Borrowed(text),
                replaced: 0,
                extra: extra.clone(),
                is_placed: false,
                guessed: None,
            }),
        };
        parsed.map_err(|reason| Error::BadInput { path: path.to_path_buf(), line: *line, reason })
    }
}

fn path_id(path: &Path) -> Result<DocumentId, String> {
    let name = path_text(path);
    DocumentId::name(if MAIN_SEPARATOR_STR == "/" {
        name.into_owned()
    } else {
        name.replace(MAIN_SEPARATOR_STR, "/")
    })
}
