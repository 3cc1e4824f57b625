//! List of the input files with their sizes and modification times at the start of a run. A run that reads
//! files twice compares the list at its end, to refuse files that changed.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use simstore::{Error, Result};

use simstore_corpus::Inputs;
use simstore_io::DocumentFormat;

/// Input files of documents, in input order, with their sizes and modification times at the start of the run.
#[derive(Debug)]
pub(crate) struct FileList {
    files: Vec<ListedFile>,
}

#[derive(Debug, PartialEq, Eq)]
struct ListedFile {
    path: PathBuf,
    format: DocumentFormat,
    /// Size, modification time and inode number of the file at the start of the run. `None` for a pipe: it cannot
    /// change, because its content is copied to a temporary file when it is read.
    state: Option<FileState>,
}

#[derive(Debug, PartialEq, Eq)]
struct FileState {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Inode number, which detects that a file was replaced by another one of the same name. 0 on systems
    /// without inodes.
    inode: u64,
}

impl FileState {
    fn read(path: &Path) -> Result<FileState> {
        let metadata = path.metadata().map_err(Error::io(path, "look at"))?;
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
        #[cfg(not(unix))]
        let inode = 0;
        Ok(FileState { bytes: metadata.len(), modified: metadata.modified().ok(), inode })
    }
}

impl FileList {
    pub(crate) fn read(inputs: &Inputs) -> Result<FileList> {
        let mut files = Vec::new();
        for file in inputs.files() {
            match file {
                Ok(file) => files.push(ListedFile {
                    state: file.bytes.map(|_| FileState::read(&file.path)).transpose()?,
                    path: file.path,
                    format: file.format,
                }),
                // A file that cannot be opened is reported when it is read.
                Err(Error::BadInput { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(FileList { files })
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| &*file.path)
    }

    /// Returns the common format of all files; `None` if the formats differ, if the list is empty, or if
    /// it contains archives. The formats of archive members are unknown until they are read.
    pub(crate) fn format(&self) -> Option<DocumentFormat> {
        let first = self.files.first()?.format;
        let is_known = first != DocumentFormat::Archive;
        (is_known && self.files.iter().all(|file| file.format == first)).then_some(first)
    }

    /// Returns two files with different formats, if there are any. Archives are not considered.
    pub(crate) fn mixed_formats(&self) -> Option<[(&Path, DocumentFormat); 2]> {
        let mut known = self.files.iter().filter(|file| file.format != DocumentFormat::Archive);
        let first = known.next()?;
        let other = known.find(|file| file.format != first.format)?;
        Some([(&first.path, first.format), (&other.path, other.format)])
    }

    /// Lists the input files again, and fails if the new list differs from this one.
    pub(crate) fn check_unchanged(&self, inputs: &Inputs) -> Result<()> {
        let now = FileList::read(inputs)?;
        let pairs = self.files.iter().zip(&now.files);
        let is_there = |path: &PathBuf| now.files.iter().any(|file| file.path == *path);
        let different = pairs
            .filter(|(before, now)| before != now)
            .map(|(before, now)| if is_there(&before.path) { &now.path } else { &before.path });
        let longer = if self.files.len() > now.files.len() { &self.files } else { &now.files };
        let further = longer.get(self.files.len().min(now.files.len())).map(|file| &file.path);
        match different.chain(further).next() {
            Some(path) => Err(file_list_changed_error(&path.display().to_string())),
            None => Ok(()),
        }
    }
}

/// Returns the error for an input file that was added, removed or changed during the run. `place` is its path.
fn file_list_changed_error(place: &str) -> Error {
    Error::Refused(format!(
        "{place}: the list of input files changed while they were read; nothing was written: run this again when they no longer change"
    ))
}
