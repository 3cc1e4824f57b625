//! A complete output that still has its temporary name.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use simstore::{Error, Result};

use super::temporary_name::{TemporaryName, hidden, rename};
use crate::document::escape::path_text;

/// A complete output that still has its temporary name. It is removed when dropped.
#[derive(Debug)]
pub struct Complete {
    path: PathBuf,
    /// Dropped before the lock, which then covers the removal.
    name: TemporaryName,
    _lock: Option<Arc<File>>,
}

impl Complete {
    /// A complete output with the final name `path`.
    pub(super) fn new(path: PathBuf, name: TemporaryName, lock: Option<Arc<File>>) -> Complete {
        Complete { path, name, _lock: lock }
    }

    /// Gives a file or a folder its final name.
    ///
    /// # Errors
    /// [`Error::Io`] if renaming fails; the output is removed then.
    pub fn publish(self) -> Result<()> {
        self.name.publish(&self.path).map_err(Error::io(&self.path, "write"))
    }

    /// Renames the output to another temporary name, under which a later process can find and publish it. `None` for an
    /// output to a pipe or a writer.
    ///
    /// # Errors
    /// [`Error::Io`] if renaming fails.
    pub fn set_aside(&mut self, suffix: &str) -> Result<Option<SetAside>> {
        let aside = self.name.set_aside(&self.path, suffix).map_err(Error::io(&self.path, "write"))?;
        Ok(aside.map(|aside| SetAside { aside, path: self.path.clone() }))
    }

    /// Keeps the output that was set aside, even if it is not published.
    pub fn keep(&mut self) {
        self.name.keep();
    }
}

/// A file that was set aside, and its final name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    aside: PathBuf,
    path: PathBuf,
}

impl SetAside {
    /// Returns the file set aside for a path.
    pub fn of(path: &Path, suffix: &str) -> Option<SetAside> {
        let aside = hidden(path, suffix)?;
        Some(SetAside { aside, path: path.to_path_buf() })
    }

    /// Final path of the file, independent of the working folder.
    pub fn place(&self) -> String {
        path_text(&place_of(&self.path)).into_owned()
    }

    /// Gives the file its final name. Returns false if that is done already.
    pub fn publish(&self) -> Result<bool> {
        if !self.aside.try_exists().map_err(Error::io(&self.aside, "look for"))? {
            return Ok(false);
        }
        rename(&self.aside, &self.path).map_err(Error::io(&self.path, "write"))?;
        Ok(true)
    }
}

/// Resolves a path whose file need not exist. Two paths of one file give the same result.
pub fn place_of(path: &Path) -> PathBuf {
    let Some(name) = path.file_name() else { return path.to_path_buf() };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf()).join(name)
}
