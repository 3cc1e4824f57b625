//! Temporary paths of output files and folders.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::unfinished_outputs::{UnfinishedOutputs, remove_file_or_folder};

/// Temporary path of an output. Dropping this value removes the file or folder, unless [`publish`](Self::publish) or
/// [`keep`](Self::keep) was called.
#[derive(Debug, Default)]
pub(super) struct TemporaryPath {
    /// The current path; `None` if there is no file or folder that must be removed on drop.
    path: Option<PathBuf>,
    unfinished: UnfinishedOutputs,
}

impl Drop for TemporaryPath {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // A file that cannot be removed does no harm.
            let _ = remove_file_or_folder(path);
            self.unfinished.remove(path);
        }
    }
}

impl TemporaryPath {
    /// Takes over an existing file or folder: it is removed when the returned value is dropped, or if a signal ends the
    /// process.
    pub(super) fn new(path: PathBuf, unfinished: &UnfinishedOutputs) -> TemporaryPath {
        unfinished.insert(path.clone());
        TemporaryPath { path: Some(path), unfinished: unfinished.clone() }
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Renames the output to its final path, durably. If renaming fails, the output is removed.
    pub(super) fn publish(mut self, path: &Path) -> io::Result<()> {
        let Some(temporary) = self.path.take() else { return Ok(()) };
        let renamed = self.unfinished.update(|all| {
            all.remove(&temporary);
            rename_durably(&temporary, path)
        });
        if renamed.is_err() {
            let _ = remove_file_or_folder(&temporary);
        }
        renamed
    }

    /// Renames the output to `.NAME.SUFFIX`, durably, and returns this path. `path` is the final path, with the file
    /// name `NAME`. Returns `None` if the output has no temporary path.
    pub(super) fn stage(&mut self, path: &Path, suffix: &str) -> io::Result<Option<PathBuf>> {
        let (Some(temporary), Some(staged)) = (&self.path, hidden_path(path, suffix)) else {
            return Ok(None);
        };
        self.unfinished.update(|all| {
            fs::rename(temporary, &staged)?;
            all.remove(temporary);
            all.insert(staged.clone());
            io::Result::Ok(())
        })?;
        self.path = Some(staged.clone());
        sync_folder(&staged)?;
        Ok(Some(staged))
    }

    /// Keeps the output at its current path: dropping this value does not remove the file or folder.
    pub(super) fn keep(&mut self) {
        if let Some(path) = self.path.take() {
            self.unfinished.remove(&path);
        }
    }
}

/// Returns the path `.NAME.SUFFIX` in the folder of `path`; `None` if `path` does not end in a file name.
pub(super) fn hidden_path(path: &Path, suffix: &str) -> Option<PathBuf> {
    let mut hidden = OsString::from(".");
    hidden.push(path.file_name()?);
    hidden.push(format!(".{suffix}"));
    Some(path.with_file_name(hidden))
}

/// Renames a file or folder, and syncs the folder that contains it, so that the new name survives a crash.
pub(super) fn rename_durably(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_folder(to)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        match File::open(folder).and_then(|folder| folder.sync_all()) {
            // A writable folder may not be readable, and some file systems cannot sync folders.
            Err(error)
                if !matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied
                        | io::ErrorKind::InvalidInput
                        | io::ErrorKind::Unsupported
                ) =>
            {
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(())
}
