//! Outputs that are completely written, but still have their temporary names.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use simstore::{Error, Result};

use super::temporary_path::{TemporaryPath, hidden_path, rename_durably};
use crate::document::escape::path_to_name;

/// An output file or folder that is completely written, but still has its temporary name. Dropping this value removes
/// the file or folder, unless [`publish`](Self::publish) or [`keep`](Self::keep) was called.
#[derive(Debug)]
pub struct CompleteOutput {
    path: PathBuf,
    /// Temporary name. This field is before the lock, and so is dropped first: the file is still locked while it is
    /// removed.
    name: TemporaryPath,
    _lock: Option<Arc<File>>,
}

impl CompleteOutput {
    /// Wraps a written output with the temporary name `name` and the final name `path`. `lock` is its locked file, if
    /// any, which stays open as long as the value exists.
    pub(super) fn new(path: PathBuf, name: TemporaryPath, lock: Option<Arc<File>>) -> CompleteOutput {
        CompleteOutput { path, name, _lock: lock }
    }

    /// Renames the file or folder to its final name.
    ///
    /// # Errors
    /// [`Error::Io`] if renaming fails; the output is removed then.
    pub fn publish(self) -> Result<()> {
        self.name.publish(&self.path).map_err(Error::io(&self.path, "write"))
    }

    /// Renames the output to `.NAME.SUFFIX`, where `NAME` is the final name. A later process can find and publish it
    /// there. Returns `None` for an output to a pipe or a writer.
    ///
    /// # Errors
    /// [`Error::Io`] if renaming fails.
    pub fn stage(&mut self, suffix: &str) -> Result<Option<StagedOutput>> {
        let staged = self.name.stage(&self.path, suffix).map_err(Error::io(&self.path, "write"))?;
        Ok(staged.map(|staged| StagedOutput { staged, path: self.path.clone() }))
    }

    /// Keeps the output under its current temporary name: dropping this value does not remove it.
    pub fn keep(&mut self) {
        self.name.keep();
    }
}

/// An output that [`CompleteOutput::stage`] has renamed to `.NAME.SUFFIX`. A later process can publish it under its
/// final name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedOutput {
    staged: PathBuf,
    path: PathBuf,
}

impl StagedOutput {
    /// Returns the output that [`CompleteOutput::stage`] has renamed with this `suffix`. `path` is its final name. Returns
    /// `None` if `path` does not end in a file name.
    pub fn new(path: &Path, suffix: &str) -> Option<StagedOutput> {
        let staged = hidden_path(path, suffix)?;
        Some(StagedOutput { staged, path: path.to_path_buf() })
    }

    /// Returns the final path as text, made absolute so that it does not depend on the working folder.
    pub fn resolved_path(&self) -> String {
        path_to_name(&resolve_path(&self.path)).into_owned()
    }

    /// Renames the output to its final name. Returns false if there is no staged file, because it was already
    /// published.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be examined or renamed.
    pub fn publish(&self) -> Result<bool> {
        if !self.staged.try_exists().map_err(Error::io(&self.staged, "look for"))? {
            return Ok(false);
        }
        rename_durably(&self.staged, &self.path).map_err(Error::io(&self.path, "write"))?;
        Ok(true)
    }
}

/// Returns the absolute path of a file that may not exist yet. Links in the path of its folder are resolved, so that
/// all paths to the same folder and file name give the same result.
pub fn resolve_path(path: &Path) -> PathBuf {
    let Some(name) = path.file_name() else { return path.to_path_buf() };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf()).join(name)
}
