//! The temporary name of an output file or folder, until it gets its final name.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::unfinished::{Unfinished, remove};

/// The temporary name of an output. Dropping it removes the file or folder, unless that was renamed or kept.
#[derive(Debug, Default)]
pub(super) struct TemporaryName {
    /// `None` for outputs without a temporary name, and for an output that was renamed or kept.
    path: Option<PathBuf>,
    unfinished: Unfinished,
}

impl Drop for TemporaryName {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // A file that cannot be removed does no harm.
            let _ = remove(path);
            self.unfinished.remove(path);
        }
    }
}

impl TemporaryName {
    /// The name of an existing file or folder.
    pub(super) fn new(path: PathBuf, unfinished: &Unfinished) -> TemporaryName {
        unfinished.insert(path.clone());
        TemporaryName { path: Some(path), unfinished: unfinished.clone() }
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Renames the output to its final name, durably. If that fails, the output is removed.
    pub(super) fn publish(mut self, path: &Path) -> io::Result<()> {
        let Some(temporary) = self.path.take() else { return Ok(()) };
        let renamed = self.unfinished.change(|all| {
            all.remove(&temporary);
            rename(&temporary, path)
        });
        if renamed.is_err() {
            let _ = remove(&temporary);
        }
        renamed
    }

    /// Renames the output to `.NAME.SUFFIX`, durably. `None` if it has no temporary name.
    pub(super) fn set_aside(&mut self, path: &Path, suffix: &str) -> io::Result<Option<PathBuf>> {
        let (Some(temporary), Some(aside)) = (&self.path, hidden(path, suffix)) else { return Ok(None) };
        self.unfinished.change(|all| {
            fs::rename(temporary, &aside)?;
            all.remove(temporary);
            all.insert(aside.clone());
            io::Result::Ok(())
        })?;
        self.path = Some(aside.clone());
        sync_folder(&aside)?;
        Ok(Some(aside))
    }

    /// Keeps the output under its current name.
    pub(super) fn keep(&mut self) {
        if let Some(path) = self.path.take() {
            self.unfinished.remove(&path);
        }
    }
}

/// `.NAME.SUFFIX` in the folder of a file.
pub(super) fn hidden(path: &Path, suffix: &str) -> Option<PathBuf> {
    let mut hidden = OsString::from(".");
    hidden.push(path.file_name()?);
    hidden.push(format!(".{suffix}"));
    Some(path.with_file_name(hidden))
}

/// Renames a file or folder, durably.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
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
