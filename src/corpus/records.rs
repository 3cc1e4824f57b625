//! Documents as they stand in files, not yet parsed.

use std::path::{MAIN_SEPARATOR_STR, Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::corpus::csv::{self, Header};
use crate::corpus::encoding::{self, Encoding};
use crate::corpus::fields::Parsed;
use crate::corpus::files::Files;
use crate::corpus::input::Input;
use crate::corpus::json;
#[cfg(feature = "parquet")]
use crate::corpus::parquet;
use crate::corpus::progress::ReadProgress;
use crate::corpus::warc::{self, Page};
use crate::corpus::{Document, DocumentFormat, DocumentId, DocumentOptions};
use crate::error::{Error, Result};

/// A document as it stands in its file: a line of JSON, a row of a table, a record of a web archive or a text file.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    path: Arc<Path>,
    line: u64,
    content: Content,
}

/// What a record consists of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    Jsonl {
        line: Vec<u8>,
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
}

impl Record {
    pub(crate) fn new(path: &Arc<Path>, line: u64, content: Content) -> Record {
        Record { path: Arc::clone(path), line, content }
    }

    pub(crate) fn content(&self) -> &Content {
        &self.content
    }

    /// The file it stands in; `-` for standard input.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The line it starts on, from 1; 1 for a text file. Of a Parquet file the row, of a web archive the
    /// number of the record, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Its bytes as they stand: a line or a row without the newline, a record of a web archive, a whole text file.
    /// `None` for a row of Parquet. Lines and rows of a file in UTF-16 are in UTF-8.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.content {
            Content::Jsonl { line: bytes, .. }
            | Content::Table { row: bytes, .. }
            | Content::Warc { bytes, .. }
            | Content::Text(bytes) => Some(bytes),
            #[cfg(feature = "parquet")]
            Content::Parquet(_) => None,
        }
    }

    /// What kind of file it stands in.
    pub fn format(&self) -> DocumentFormat {
        match &self.content {
            Content::Jsonl { .. } => DocumentFormat::Jsonl,
            Content::Table { header, .. } if header.delimiter == b'\t' => DocumentFormat::Tsv,
            Content::Table { .. } => DocumentFormat::Csv,
            Content::Warc { .. } => DocumentFormat::Warc,
            Content::Text(_) => DocumentFormat::Text,
            #[cfg(feature = "parquet")]
            Content::Parquet(_) => DocumentFormat::Parquet,
        }
    }

    /// Bytes that it takes in memory, more or less.
    pub(crate) fn size(&self) -> usize {
        match &self.content {
            #[cfg(feature = "parquet")]
            Content::Parquet(row) => row.bytes,
            _ => self.bytes().map_or(0, <[u8]>::len),
        }
    }

    /// A checksum of what stands there: xxh3 of its bytes and, for a row, of the header. Of a row of Parquet, of the
    /// columns that these options ask for. It tells whether a document that is read again is still the same.
    pub fn checksum(&self, options: &DocumentOptions) -> u64 {
        match &self.content {
            Content::Table { row, header } => xxh3_64_with_seed(row, header.checksum),
            #[cfg(feature = "parquet")]
            Content::Parquet(row) => row.checksum(options),
            Content::Jsonl { line: bytes, .. } | Content::Warc { bytes, .. } | Content::Text(bytes) => {
                xxh3_64(bytes)
            }
        }
    }

    /// Parses the document.
    ///
    /// # Errors
    /// [`Error::BadInput`] for a line that is not one JSON object, a row with more or fewer fields than the header,
    /// fields that are missing, of another type or there twice, and an id that is too long.
    pub fn document(self, options: &DocumentOptions) -> Result<Document> {
        let Record { path, line, content } = self;
        let position = || format!("{}:{line}", path.display());
        let parsed = match content {
            Content::Jsonl { line, encoding } => json::parse(line, encoding, options, position),
            Content::Table { row, header } => header.parse(&row, options, position),
            Content::Warc { bytes, header_bytes } => warc::parse(&bytes, header_bytes, options),
            Content::Text(bytes) => path_id(&path).map(|id| {
                let (text, replaced) = encoding::decode_text(bytes, options.encoding, None);
                Parsed { id, text, replaced, extra: None }
            }),
            #[cfg(feature = "parquet")]
            Content::Parquet(row) => row.parse(options, position),
        };
        match parsed {
            Ok(Parsed { id, text, replaced, extra }) => {
                Ok(Document { id, text, path, line, replaced, extra })
            }
            Err(reason) => Err(Error::BadInput { path: path.to_path_buf(), line, reason }),
        }
    }
}

fn path_id(path: &Path) -> Result<DocumentId, String> {
    let name = path.to_str().ok_or("the path is the document's id, but is not Unicode")?;
    DocumentId::name(name.replace(MAIN_SEPARATOR_STR, "/"))
}

/// The documents of files and folders, in order and not yet parsed: for callers that write out
/// some of what they read.
///
/// # Errors
/// Items are [`Error::BadInput`] for a document longer than [`max_bytes`](DocumentOptions::max_bytes); for what
/// else is, and for what ends the iteration, see [`documents`](crate::corpus::documents).
pub fn records(paths: &[PathBuf], options: &DocumentOptions) -> Records {
    Records {
        files: Files::new(paths, options),
        open: None,
        options: options.clone(),
        is_projected: false,
        progress: Arc::default(),
        failed: false,
    }
}

/// An iterator over the documents of files: see [`records`].
#[derive(Debug)]
pub struct Records {
    files: Files,
    /// The file that is being read.
    open: Option<File>,
    options: DocumentOptions,
    /// Whether only the columns that documents consist of are read, where that is less work.
    is_projected: bool,
    progress: Arc<ReadProgress>,
    failed: bool,
}

/// An open file of documents. After an error it goes on with what can still be read.
#[derive(Debug)]
enum File {
    Jsonl {
        input: Input,
        is_first: bool,
    },
    Table(Box<csv::Rows>),
    Warc(warc::Pages),
    Text(Input),
    #[cfg(feature = "parquet")]
    Parquet(parquet::Rows),
    Ended,
}

impl File {
    fn open(
        path: &Path,
        format: DocumentFormat,
        options: &DocumentOptions,
        #[cfg_attr(
            not(feature = "parquet"),
            expect(unused_variables, reason = "only Parquet has columns apart")
        )]
        is_projected: bool,
        progress: &Arc<ReadProgress>,
    ) -> Result<File> {
        let lines = || Input::open(path, progress)?.into_lines(options.encoding);
        let table = |delimiter| {
            Ok(csv::Rows::open(lines()?, delimiter, options)?
                .map_or(File::Ended, |rows| File::Table(Box::new(rows))))
        };
        match format {
            DocumentFormat::Jsonl => Ok(File::Jsonl { input: lines()?, is_first: true }),
            DocumentFormat::Csv => table(b','),
            DocumentFormat::Tsv => table(b'\t'),
            DocumentFormat::Warc => {
                Ok(File::Warc(warc::Pages::new(Input::open(path, progress)?, options.max_bytes)))
            }
            DocumentFormat::Text => Ok(File::Text(Input::open(path, progress)?)),
            #[cfg(feature = "parquet")]
            DocumentFormat::Parquet => {
                Ok(File::Parquet(parquet::Rows::open(path, options, is_projected, progress)?))
            }
            #[cfg(not(feature = "parquet"))]
            DocumentFormat::Parquet => Err(Error::BadArgument(format!(
                "{}: this simstore reads no Parquet; build it with the feature `parquet`",
                path.display()
            ))),
        }
    }

    fn next(&mut self, max_bytes: usize) -> Result<Option<Record>> {
        match self {
            File::Jsonl { input, is_first } => {
                let mut line = Vec::new();
                if !input.read_line(&mut line, max_bytes)? {
                    return Ok(None);
                }
                if std::mem::take(is_first)
                    && let Some(reason) = json::is_no_line(&line)
                {
                    input.end();
                    return Err(input.bad(reason.to_owned()));
                }
                let content = Content::Jsonl { line, encoding: input.encoding() };
                Ok(Some(Record::new(input.path(), input.line(), content)))
            }
            File::Table(rows) => Ok(rows.read()?.map(|(line, row)| {
                Record::new(rows.path(), line, Content::Table { row, header: Arc::clone(rows.header()) })
            })),
            File::Warc(pages) => Ok(pages.read()?.map(|page| {
                let Page { number, bytes, header_bytes } = page;
                Record::new(pages.path(), number, Content::Warc { bytes, header_bytes })
            })),
            File::Text(_) => {
                let File::Text(mut input) = std::mem::replace(self, File::Ended) else { return Ok(None) };
                let bytes = input.read_all(max_bytes)?;
                Ok(Some(Record::new(input.path(), 1, Content::Text(bytes))))
            }
            #[cfg(feature = "parquet")]
            File::Parquet(rows) => {
                Ok(rows.read()?.map(|(number, row)| Record::new(rows.path(), number, Content::Parquet(row))))
            }
            File::Ended => Ok(None),
        }
    }
}

impl Records {
    /// Reads only the columns that documents consist of: rows cannot be written again.
    pub(crate) fn projected(self, is_projected: bool) -> Self {
        Records { is_projected, ..self }
    }

    /// How far the reading has come.
    pub fn progress(&self) -> Arc<ReadProgress> {
        Arc::clone(&self.progress)
    }

    /// The next record of the file that is being read, or else of the next one that has any.
    fn advance(&mut self) -> Result<Option<Record>> {
        loop {
            if let Some(file) = &mut self.open {
                if let Some(record) = file.next(self.options.max_bytes)? {
                    return Ok(Some(record));
                }
                self.open = None;
                self.progress.add_file();
            }
            let Some(file) = self.files.next() else { return Ok(None) };
            let (path, format) = file?;
            // What cannot be opened has been read as far as it can be.
            self.open = Some(File::Ended);
            self.open = Some(File::open(&path, format, &self.options, self.is_projected, &self.progress)?);
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let record = self.advance();
        self.failed = matches!(&record, Err(error) if !matches!(error, Error::BadInput { .. }));
        record.transpose()
    }
}
