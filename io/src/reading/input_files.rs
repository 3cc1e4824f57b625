//! Finds the input files that paths, globs, and folders lead to. A file with several paths is read once.

mod file_id;
mod globs;
mod listing;
pub(crate) mod path_expander;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use walkdir::{DirEntry, FilterEntry, WalkDir};

pub use self::file_id::FileSet;
pub use self::globs::{expand_glob, glob_base};
use self::listing::{is_dangling, is_visible, walk_error};
use self::path_expander::PathExpander;
use crate::bytes::compression::Compression;
use crate::bytes::open_errors::{cannot_open, is_folder};
use crate::bytes::read_once::ReadOnceInputs;
use crate::formats::detect::{self, Format};
use crate::{DocumentFormat, DocumentOptions, ReadDiagnostic, ReadProgress};
use simstore::{Error, Result};

/// A file of documents, with its detected format and compression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    /// Path of the file; `-` for standard input.
    pub path: PathBuf,
    /// Format of the file, after decompression.
    pub format: DocumentFormat,
    /// Compression of the file as a whole.
    pub compression: Compression,
    /// Size on disk in bytes; `None` for standard input and pipes.
    pub bytes: Option<u64>,
}

/// Returns all files that [`records`](crate::records) and [`documents`](crate::documents) read for the same
/// paths, in the same order.
///
/// Only the first bytes of the files are read, to detect the formats. If each returned file is then read in a separate
/// call, the documents are the same as if all paths are read in one call.
///
/// # Errors
/// [`Error::BadInput`] for a file or folder that cannot be opened or listed; after it, the iterator continues with the
/// next file. Any other error is the last item.
pub fn input_files(paths: &[PathBuf], options: &DocumentOptions) -> InputFiles {
    InputFiles::new(paths, options, &Arc::default())
}

/// Iterator over input files: see [`input_files`].
#[derive(Debug)]
pub struct InputFiles {
    files: InputFileWalker,
    progress: Arc<ReadProgress>,
}

impl InputFiles {
    /// Creates an iterator like [`input_files`]. The first bytes of standard input and pipes are read to detect their
    /// formats; `read_once` keeps these bytes for the reader of the documents.
    pub fn new(paths: &[PathBuf], options: &DocumentOptions, read_once: &Arc<ReadOnceInputs>) -> InputFiles {
        let progress = Arc::default();
        InputFiles { files: InputFileWalker::new(paths, options, &progress, read_once), progress }
    }

    /// Returns the progress of this iterator, with the numbers of files that it has skipped so far.
    pub fn progress(&self) -> Arc<ReadProgress> {
        Arc::clone(&self.progress)
    }
}

impl Iterator for InputFiles {
    type Item = Result<InputFile>;

    fn next(&mut self) -> Option<Self::Item> {
        let file = self.files.next()?;
        Some(file.and_then(|DetectedFile { path, format, compression }| {
            let once = self.files.read_once.is_read_once(&path)?;
            let bytes = if once { None } else { Some(path.metadata().map_err(cannot_open(&path))?.len()) };
            Ok(InputFile { path, format, compression, bytes })
        }))
    }
}

/// Returns the paths with each glob replaced by its matches.
///
/// # Errors
/// See [`expand_glob`].
pub fn expand_globs(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in paths {
        match expand_glob(path, None)? {
            Some(matches) => all.extend(matches),
            None => all.push(path.clone()),
        }
    }
    Ok(all)
}

/// A file with its detected format and compression.
#[derive(Debug)]
pub(crate) struct DetectedFile {
    pub path: PathBuf,
    pub(crate) format: DocumentFormat,
    pub(crate) compression: Compression,
}

/// Iterator over a folder and the entries below it whose names do not begin with a dot. It does not follow links.
type FolderWalk = FilterEntry<walkdir::IntoIter, fn(&DirEntry) -> bool>;

/// Iterator over the input files with their detected formats. It walks through folders, and follows links.
#[derive(Debug)]
pub(crate) struct InputFileWalker {
    paths: PathExpander,
    /// Stack of the walks through folders, the current walk last. If a walk finds a link to another folder, a walk
    /// through this folder is pushed. The flag says whether a link was followed to reach the folder.
    walks: Vec<(FolderWalk, bool)>,
    options: DocumentOptions,
    /// The first JSON file that was skipped because it has no text field. If no other file is returned, this file is
    /// returned after all, so that its reader reports the missing field.
    first_skipped_json: Option<PathBuf>,
    /// Whether any file was returned.
    has_yielded: bool,
    progress: Arc<ReadProgress>,
    read_once: Arc<ReadOnceInputs>,
    failed: bool,
}

impl InputFileWalker {
    pub(crate) fn new(
        paths: &[PathBuf],
        options: &DocumentOptions,
        progress: &Arc<ReadProgress>,
        read_once: &Arc<ReadOnceInputs>,
    ) -> InputFileWalker {
        InputFileWalker {
            paths: PathExpander::new(paths, options.format.is_some(), progress, read_once),
            walks: Vec::new(),
            options: options.clone(),
            first_skipped_json: None,
            has_yielded: false,
            progress: Arc::clone(progress),
            read_once: Arc::clone(read_once),
            failed: false,
        }
    }

    fn advance(&mut self) -> Result<Option<DetectedFile>> {
        loop {
            if let Some((walk, through_link)) = self.walks.last_mut() {
                let through_link = *through_link;
                let found = match walk.next() {
                    Some(entry) => self.detect_entry(&entry.map_err(walk_error)?, through_link)?,
                    None => {
                        self.walks.pop();
                        None
                    }
                };
                if found.is_some() {
                    return Ok(found);
                }
                continue;
            }
            let Some((path, is_link)) = self.paths.next_file()? else {
                // If all files were skipped, this file is read after all: the error of its reader names the existing fields.
                let other = self.first_skipped_json.take().filter(|_| !self.has_yielded);
                return other.map(|path| self.detected_file(path, DocumentFormat::Jsonl)).transpose();
            };
            if self.read_once.is_stream(&path) {
                let (format, compression) = (DocumentFormat::Jsonl, Compression::None);
                return Ok(Some(DetectedFile { path, format, compression }));
            }
            if !self.read_once.is_read_once(&path)? && is_folder(&path)? {
                self.enter_folder(&path, is_link);
            } else {
                let format = self.detect_named(&path)?;
                return self.detected_file(path, format).map(Some);
            }
        }
    }

    fn enter_folder(&mut self, folder: &Path, through_link: bool) {
        let walk = WalkDir::new(folder).sort_by_file_name().into_iter();
        self.walks.push((walk.filter_entry(is_visible), through_link));
    }

    /// Returns the file that an entry of the current folder is or links to. Returns `None` if the entry is skipped, or
    /// is a folder. If the entry is a link to a folder, the iterator enters this folder next. `through_link` says whether a
    /// link was followed to reach the current folder.
    fn detect_entry(&mut self, entry: &DirEntry, through_link: bool) -> Result<Option<DetectedFile>> {
        let (path, is_link) = (entry.path(), entry.path_is_symlink());
        // The folder itself, which may be a link.
        if entry.depth() == 0 {
            return Ok(None);
        }
        let kind = match path.metadata() {
            Ok(metadata) => metadata.file_type(),
            Err(error) if is_link && is_dangling(&error) => {
                self.progress.add_diagnostic(ReadDiagnostic::DanglingLink);
                return Ok(None);
            }
            Err(error) => return Err(cannot_open(path)(error)),
        };
        let through_link = through_link || is_link;
        if kind.is_dir() {
            match (self.paths.claim(path, through_link), is_link) {
                (true, true) => self.enter_folder(path, through_link),
                (false, false) => {
                    if let Some((walk, _)) = self.walks.last_mut() {
                        walk.skip_current_dir();
                    }
                }
                (true, false) | (false, true) => {}
            }
            return Ok(None);
        }
        if !kind.is_file() {
            self.progress.add_diagnostic(ReadDiagnostic::SpecialFile);
            return Ok(None);
        }
        if self.options.format.is_none() && detect::format_from_name(path).is_none() {
            self.progress.add_diagnostic(ReadDiagnostic::UnknownExtension);
            return Ok(None);
        }
        if !self.paths.claim(path, through_link) {
            return Ok(None);
        }
        match self.detect_in_folder(path)? {
            Some(format) => self.detected_file(path.to_path_buf(), format).map(Some),
            None => Ok(None),
        }
    }

    fn detected_file(&mut self, path: PathBuf, format: DocumentFormat) -> Result<DetectedFile> {
        self.has_yielded = true;
        let compression = match format {
            DocumentFormat::Parquet => Compression::None,
            _ => detect::detect_compression(&path, &self.read_once)?,
        };
        Ok(DetectedFile { path, format, compression })
    }

    /// Detects the format of a file that was found in a folder; returns `None` if the file is skipped.
    fn detect_in_folder(&mut self, path: &Path) -> Result<Option<DocumentFormat>> {
        let diagnostic = match detect::detect(path, false, &self.options, &self.read_once)? {
            Some(Format::Documents(format)) => return Ok(Some(format)),
            Some(Format::HexLines | Format::Raw { .. }) => ReadDiagnostic::FingerprintFile,
            None => {
                self.first_skipped_json.get_or_insert_with(|| path.to_path_buf());
                ReadDiagnostic::JsonWithoutText
            }
        };
        self.progress.add_diagnostic(diagnostic);
        Ok(None)
    }

    /// Detects the format of a file that the user named.
    fn detect_named(&self, path: &Path) -> Result<DocumentFormat> {
        match detect::detect(path, true, &self.options, &self.read_once)? {
            Some(Format::Documents(format)) => Ok(format),
            Some(Format::HexLines | Format::Raw { .. }) => {
                Err(Error::BadArgument(format!("{}: holds fingerprints, not documents", path.display())))
            }
            None if self.read_once.is_read_once(path)? => Ok(DocumentFormat::Jsonl),
            None => Ok(DocumentFormat::Text),
        }
    }
}

impl Iterator for InputFileWalker {
    type Item = Result<DetectedFile>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let file = self.advance();
        self.failed = matches!(&file, Err(error) if !matches!(error, Error::BadInput { .. }));
        file.transpose()
    }
}
