//! Documents as they stand in files, not yet parsed.

use std::path::{MAIN_SEPARATOR_STR, Path, PathBuf};
use std::sync::Arc;

use walkdir::WalkDir;

use crate::corpus::input::{self, Format, Input};
use crate::corpus::json;
use crate::corpus::once;
use crate::corpus::{Document, DocumentId, DocumentOptions};
use crate::error::{Error, Result};

/// A document as it stands in its file: a line of JSON, or a text file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    path: Arc<Path>,
    line: u64,
    bytes: Vec<u8>,
    is_json: bool,
}

impl Record {
    /// The file it stands in; `-` for standard input.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its line, from 1; 1 for a text file.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Its bytes: the line without its end, or the text file without a byte order mark.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether it is a line of JSON, and not a text file.
    pub fn is_json(&self) -> bool {
        self.is_json
    }

    /// Parses the document.
    ///
    /// # Errors
    /// [`Error::BadInput`] for text that is not UTF-8, a line that is not one JSON object,
    /// fields that are missing, of another type or there twice, and an id that is too long.
    pub fn document(self, options: &DocumentOptions) -> Result<Document> {
        let Record { path, line, bytes, is_json } = self;
        let parsed = String::from_utf8(bytes)
            .map_err(|error| format!("not UTF-8 at byte {}", error.utf8_error().valid_up_to() + 1))
            .and_then(|text| {
                if is_json {
                    json::parse(&text, options, || format!("{}:{line}", path.display()))
                } else {
                    Ok((path_id(&path)?, text))
                }
            });
        match parsed {
            Ok((id, text)) => Ok(Document { id, text, path, line }),
            Err(reason) => Err(Error::BadInput { path: path.to_path_buf(), line, reason }),
        }
    }
}

fn path_id(path: &Path) -> Result<DocumentId, String> {
    let name = path.to_str().ok_or("the path is the document's id, but is not Unicode")?;
    DocumentId::name(name.replace(MAIN_SEPARATOR_STR, "/"))
}

/// The documents of files and folders, in order and not yet parsed: for callers that write out
/// some of the lines they read.
///
/// # Errors
/// Items are [`Error::BadInput`] for a document longer than
/// [`max_bytes`](DocumentOptions::max_bytes); for what else ends the iteration, see
/// [`documents`](crate::corpus::documents).
pub fn records(paths: &[PathBuf], options: &DocumentOptions) -> Records {
    Records {
        paths: Vec::from(paths).into_iter(),
        walk: None,
        lines: None,
        max_bytes: options.max_bytes,
        failed: false,
    }
}

/// An iterator over the documents of files: see [`records`].
#[derive(Debug)]
pub struct Records {
    paths: std::vec::IntoIter<PathBuf>,
    /// The folder that is being walked.
    walk: Option<walkdir::IntoIter>,
    /// The file of JSON lines that is being read.
    lines: Option<(Arc<Path>, Input)>,
    max_bytes: usize,
    failed: bool,
}

impl Records {
    /// The next record of the file that is being read, or else of the next one that has any.
    fn advance(&mut self) -> Result<Option<Record>> {
        loop {
            if let Some((path, input)) = &mut self.lines {
                let mut bytes = Vec::new();
                if input.read_line(&mut bytes, self.max_bytes)? {
                    let path = Arc::clone(path);
                    return Ok(Some(Record { path, line: input.line(), bytes, is_json: true }));
                }
                self.lines = None;
            }
            let Some((path, format)) = self.next_file()? else { return Ok(None) };
            let mut input = Input::open(&path)?;
            let path: Arc<Path> = path.into();
            match format {
                Format::Text => {
                    let bytes = input.read_all(self.max_bytes)?;
                    return Ok(Some(Record { path, line: 1, bytes, is_json: false }));
                }
                Format::Jsonl => self.lines = Some((path, input)),
                Format::HexLines | Format::Raw { .. } => {
                    return Err(Error::BadArgument(format!(
                        "{}: holds fingerprints, not documents",
                        path.display()
                    )));
                }
            }
        }
    }

    fn next_file(&mut self) -> Result<Option<(PathBuf, Format)>> {
        loop {
            for entry in self.walk.iter_mut().flatten() {
                let entry = entry.map_err(walk_error)?;
                let format = input::format_by_name(entry.path());
                if let Some(format @ (Format::Jsonl | Format::Text)) = format
                    && entry.file_type().is_file()
                {
                    return Ok(Some((entry.into_path(), format)));
                }
            }
            let Some(path) = self.paths.next() else { return Ok(None) };
            if !once::is_stdin(&path) && input::is_folder(&path)? {
                self.walk = Some(WalkDir::new(path).sort_by_file_name().into_iter());
                continue;
            }
            let by_default = if once::is_read_once(&path)? { Format::Jsonl } else { Format::Text };
            let format = input::detect_format(&path)?.unwrap_or(by_default);
            return Ok(Some((path, format)));
        }
    }
}

fn walk_error(error: walkdir::Error) -> Error {
    let path = error.path().map(Path::to_path_buf).unwrap_or_default();
    // Only a loop of links is no I/O error, and links are not followed.
    let source = error.into_io_error().unwrap_or_else(|| std::io::ErrorKind::Other.into());
    Error::Io { path, action: "list", source }
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
