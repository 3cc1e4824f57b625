//! The files that paths, patterns and folders name. A file with several names is read once.

mod listing;
pub(crate) mod named;
mod once;
mod pattern;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use walkdir::{DirEntry, FilterEntry, WalkDir};

use self::listing::{is_shown, leads_nowhere, walk_error};
use self::named::Named;
pub use self::once::FilesById;
pub use self::pattern::{matches_of, pattern_base};
use crate::bytes::compression::Compression;
use crate::bytes::open_errors::{cannot_open, is_folder};
use crate::bytes::pipes::Pipes;
use crate::formats::detect::{self, Format};
use crate::{DocumentFormat, DocumentOptions, ReadNote, ReadProgress};
use simstore::{Error, Result};

/// A file of documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    /// The file; `-` for standard input.
    pub path: PathBuf,
    /// Format of its content.
    pub format: DocumentFormat,
    /// How it is compressed.
    pub compression: Compression,
    /// Its size on disk; `None` for standard input and pipes.
    pub bytes: Option<u64>,
}

/// All files that [`records`](crate::records) and [`documents`](crate::documents) read for the same paths, in the same order. Only
/// their first bytes are read. Each file alone gives the same documents as among the others.
///
/// # Errors
/// [`Error::BadInput`] for a file or folder that cannot be opened or listed; the next file follows. Any other error is the last
/// item.
pub fn input_files(paths: &[PathBuf], options: &DocumentOptions) -> InputFiles {
    InputFiles::new(paths, options, &Arc::default())
}

/// An iterator over the files of paths: see [`input_files`].
#[derive(Debug)]
pub struct InputFiles {
    files: Files,
    progress: Arc<ReadProgress>,
}

impl InputFiles {
    /// Iterates over the files that `paths` name, as [`input_files`] does. `pipes` keeps bytes of pipes that were read ahead.
    pub fn new(paths: &[PathBuf], options: &DocumentOptions, pipes: &Arc<Pipes>) -> InputFiles {
        let progress = Arc::default();
        InputFiles { files: Files::new(paths, options, &progress, pipes), progress }
    }

    /// Counts the files that are passed over.
    pub fn progress(&self) -> Arc<ReadProgress> {
        Arc::clone(&self.progress)
    }
}

impl Iterator for InputFiles {
    type Item = Result<InputFile>;

    fn next(&mut self) -> Option<Self::Item> {
        let file = self.files.next()?;
        Some(file.and_then(|Found { path, format, compression }| {
            let once = self.files.pipes.is_read_once(&path)?;
            let bytes = if once { None } else { Some(path.metadata().map_err(cannot_open(&path))?.len()) };
            Ok(InputFile { path, format, compression, bytes })
        }))
    }
}

/// Paths, with each pattern replaced by its matches.
///
/// # Errors
/// As [`input_files`].
pub fn matching_paths(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in paths {
        match matches_of(path, None)? {
            Some(matches) => all.extend(matches),
            None => all.push(path.clone()),
        }
    }
    Ok(all)
}

/// A file with its format and its compression.
#[derive(Debug)]
pub(crate) struct Found {
    pub path: PathBuf,
    pub(crate) format: DocumentFormat,
    pub(crate) compression: Compression,
}

/// All below a folder that is not hidden; links are not followed.
type Walk = FilterEntry<walkdir::IntoIter, fn(&DirEntry) -> bool>;

/// The files of paths, with their formats.
#[derive(Debug)]
pub(crate) struct Files {
    named: Named,
    /// The current folder is last; links that lead to it are in the folders before it. Each has a flag: whether a link led to it.
    walks: Vec<(Walk, bool)>,
    options: DocumentOptions,
    /// The first file of JSON that was passed over, as long as nothing else was found.
    other_json: Option<PathBuf>,
    is_found: bool,
    progress: Arc<ReadProgress>,
    pipes: Arc<Pipes>,
    failed: bool,
}

impl Files {
    pub(crate) fn new(
        paths: &[PathBuf],
        options: &DocumentOptions,
        progress: &Arc<ReadProgress>,
        pipes: &Arc<Pipes>,
    ) -> Files {
        Files {
            named: Named::new(paths, options.format.is_some(), progress, pipes),
            walks: Vec::new(),
            options: options.clone(),
            other_json: None,
            is_found: false,
            progress: Arc::clone(progress),
            pipes: Arc::clone(pipes),
            failed: false,
        }
    }

    fn advance(&mut self) -> Result<Option<Found>> {
        loop {
            if let Some((walk, through_link)) = self.walks.last_mut() {
                let through_link = *through_link;
                let found = match walk.next() {
                    Some(entry) => self.below_folder(&entry.map_err(walk_error)?, through_link)?,
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
            let Some((path, is_link)) = self.named.next_file()? else {
                // If no other file was found, the reader's error names the fields of this one.
                let other = self.other_json.take().filter(|_| !self.is_found);
                return other.map(|path| self.found(path, DocumentFormat::Jsonl)).transpose();
            };
            if self.pipes.is_given(&path) {
                let (format, compression) = (DocumentFormat::Jsonl, Compression::None);
                return Ok(Some(Found { path, format, compression }));
            }
            if !self.pipes.is_read_once(&path)? && is_folder(&path)? {
                self.walk(&path, is_link);
            } else {
                let format = self.format_of(&path)?;
                return self.found(path, format).map(Some);
            }
        }
    }

    fn walk(&mut self, folder: &Path, through_link: bool) {
        let walk = WalkDir::new(folder).sort_by_file_name().into_iter();
        self.walks.push((walk.filter_entry(is_shown), through_link));
    }

    /// The file of an entry below the current folder; `None` if it is not read. A folder behind a link becomes the current folder.
    fn below_folder(&mut self, entry: &DirEntry, through_link: bool) -> Result<Option<Found>> {
        let (path, is_link) = (entry.path(), entry.path_is_symlink());
        // The folder itself; also where it is a link.
        if entry.depth() == 0 {
            return Ok(None);
        }
        let kind = match path.metadata() {
            Ok(metadata) => metadata.file_type(),
            Err(error) if is_link && leads_nowhere(&error) => {
                self.progress.note(ReadNote::DeadLink);
                return Ok(None);
            }
            Err(error) => return Err(cannot_open(path)(error)),
        };
        let through_link = through_link || is_link;
        if kind.is_dir() {
            match (self.named.is_read_here(path, through_link), is_link) {
                (true, true) => self.walk(path, through_link),
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
            self.progress.note(ReadNote::NoFile);
            return Ok(None);
        }
        if self.options.format.is_none() && detect::by_name(path).is_none() {
            self.progress.note(ReadNote::UnknownFile);
            return Ok(None);
        }
        if !self.named.is_read_here(path, through_link) {
            return Ok(None);
        }
        match self.format_in_folder(path)? {
            Some(format) => self.found(path.to_path_buf(), format).map(Some),
            None => Ok(None),
        }
    }

    fn found(&mut self, path: PathBuf, format: DocumentFormat) -> Result<Found> {
        self.is_found = true;
        let compression = match format {
            DocumentFormat::Parquet => Compression::None,
            _ => detect::compression(&path, &self.pipes)?,
        };
        Ok(Found { path, format, compression })
    }

    /// The format of a file below a folder; `None` if it is passed over.
    fn format_in_folder(&mut self, path: &Path) -> Result<Option<DocumentFormat>> {
        let note = match detect::detect(path, false, &self.options, &self.pipes)? {
            Some(Format::Documents(format)) => return Ok(Some(format)),
            Some(Format::HexLines | Format::Raw { .. }) => ReadNote::FingerprintFile,
            None => {
                self.other_json.get_or_insert_with(|| path.to_path_buf());
                ReadNote::OtherJson
            }
        };
        self.progress.note(note);
        Ok(None)
    }

    /// The format of a file that was named.
    fn format_of(&self, path: &Path) -> Result<DocumentFormat> {
        match detect::detect(path, true, &self.options, &self.pipes)? {
            Some(Format::Documents(format)) => Ok(format),
            Some(Format::HexLines | Format::Raw { .. }) => {
                Err(Error::BadArgument(format!("{}: holds fingerprints, not documents", path.display())))
            }
            None if self.pipes.is_read_once(path)? => Ok(DocumentFormat::Jsonl),
            None => Ok(DocumentFormat::Text),
        }
    }
}

impl Iterator for Files {
    type Item = Result<Found>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let file = self.advance();
        self.failed = matches!(&file, Err(error) if !matches!(error, Error::BadInput { .. }));
        file.transpose()
    }
}
