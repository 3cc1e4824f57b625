//! What is complete, and gets its name in the end.

use std::path::{Path, PathBuf};

use simstore::{Error, Result};

use super::temporary::{TemporaryFile, hidden, rename};
use super::temporary_folder::TemporaryFolder;
use crate::document::escape::path_text;

/// An output of which nothing is missing but its name. Dropped, it is gone.
#[derive(Debug)]
pub struct Complete {
    path: PathBuf,
    written: Written,
}

/// What is to get a name.
#[derive(Debug)]
pub(super) enum Written {
    /// What went to a pipe, or to a writer.
    Nothing,
    File(TemporaryFile),
    Folder(TemporaryFolder),
}

impl Complete {
    pub(super) fn new(path: PathBuf, written: Written) -> Complete {
        Complete { path, written }
    }

    /// Gives a file or a folder its name.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be renamed; it is gone then.
    pub fn publish(self) -> Result<()> {
        let published = match self.written {
            Written::Nothing => Ok(()),
            Written::File(file) => file.publish(&self.path),
            Written::Folder(folder) => folder.publish(&self.path),
        };
        published.map_err(Error::io(&self.path, "write"))
    }

    /// Gives it another name that does not end with the process: whoever knows it can publish it later.
    /// `None` for what has no other name.
    pub(crate) fn set_aside(&mut self, suffix: &str) -> Result<Option<SetAside>> {
        let aside = match &mut self.written {
            Written::Nothing => return Ok(None),
            Written::File(file) => file.set_aside(&self.path, suffix),
            Written::Folder(folder) => folder.set_aside(&self.path, suffix),
        };
        let aside = aside.map_err(Error::io(&self.path, "write"))?;
        Ok(aside.map(|aside| SetAside { aside, path: self.path.clone() }))
    }

    /// From now on what was set aside stays, whatever happens.
    pub(crate) fn keep(&mut self) {
        match &mut self.written {
            Written::Nothing => {}
            Written::File(file) => file.keep(),
            Written::Folder(folder) => folder.keep(),
        }
    }
}

/// A file that was set aside, and the name that it is to get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetAside {
    aside: PathBuf,
    path: PathBuf,
}

impl SetAside {
    /// The file that was set aside for a path.
    pub(crate) fn of(path: &Path, suffix: &str) -> Option<SetAside> {
        let aside = hidden(path, suffix)?;
        Some(SetAside { aside, path: path.to_path_buf() })
    }

    /// Where the file is to be, whatever folder another process runs in.
    pub(crate) fn place(&self) -> String {
        path_text(&place_of(&self.path)).into_owned()
    }

    /// Gives the file its name, if that is still to be done.
    pub(crate) fn publish(&self) -> Result<bool> {
        if !self.aside.try_exists().map_err(Error::io(&self.aside, "look for"))? {
            return Ok(false);
        }
        rename(&self.aside, &self.path).map_err(Error::io(&self.path, "write"))?;
        Ok(true)
    }
}

/// Where a path leads to, also if there is nothing yet: two paths of one file are equal then.
pub(crate) fn place_of(path: &Path) -> PathBuf {
    let Some(name) = path.file_name() else { return path.to_path_buf() };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf()).join(name)
}
