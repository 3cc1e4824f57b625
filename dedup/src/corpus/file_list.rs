//! The files of the inputs as they are when a run begins: files that are read twice must not change.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use simstore::{Error, Result};

use simstore_corpus::Inputs;
use simstore_io::DocumentFormat;

/// The files of documents, in order.
#[derive(Debug)]
pub(crate) struct FileList {
    files: Vec<Listed>,
}

#[derive(Debug, PartialEq, Eq)]
struct Listed {
    path: PathBuf,
    format: DocumentFormat,
    /// `None` for pipes, which are read once and put aside.
    state: Option<State>,
}

#[derive(Debug, PartialEq, Eq)]
struct State {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Another file under the same name has another number.
    number: u64,
}

impl State {
    fn of(path: &Path) -> Result<State> {
        let metadata = path.metadata().map_err(Error::io(path, "look at"))?;
        #[cfg(unix)]
        let number = std::os::unix::fs::MetadataExt::ino(&metadata);
        #[cfg(not(unix))]
        let number = 0;
        Ok(State { bytes: metadata.len(), modified: metadata.modified().ok(), number })
    }
}

impl FileList {
    pub(crate) fn read(inputs: &Inputs) -> Result<FileList> {
        let mut files = Vec::new();
        for file in inputs.files() {
            match file {
                Ok(file) => files.push(Listed {
                    state: file.bytes.map(|_| State::of(&file.path)).transpose()?,
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

    /// The format of all files, if they have the same. The formats of members of archives are not known before they are read.
    pub(crate) fn format(&self) -> Option<DocumentFormat> {
        let first = self.files.first()?.format;
        let is_known = first != DocumentFormat::Archive;
        (is_known && self.files.iter().all(|file| file.format == first)).then_some(first)
    }

    /// Two files of different formats.
    pub(crate) fn mixed(&self) -> Option<[(&Path, DocumentFormat); 2]> {
        let mut known = self.files.iter().filter(|file| file.format != DocumentFormat::Archive);
        let first = known.next()?;
        let other = known.find(|file| file.format != first.format)?;
        Some([(&first.path, first.format), (&other.path, other.format)])
    }

    /// Fails if the files are not those that were listed.
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
            Some(path) => Err(changed(&path.display().to_string())),
            None => Ok(()),
        }
    }
}

/// The error of a run whose inputs changed under it.
fn changed(place: &str) -> Error {
    Error::Refused(format!(
        "{place}: the list of input files changed while they were read; nothing was written: run this again when they no longer change"
    ))
}
