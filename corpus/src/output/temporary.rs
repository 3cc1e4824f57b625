//! A file under a temporary name.
//!
//! The name is `.NAME.tmp`, in the folder where `NAME` is to appear, and the file is locked: what a process has left that
//! was killed is used again by the next one that writes the same output, and of two at the same time the second stops.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use simstore::{Error, Result};

use super::Unfinished;

/// A file, where it can be replaced under a temporary name; that one is removed when dropped, unless it has been given
/// another.
#[derive(Debug)]
pub(super) struct TemporaryFile {
    /// `None` for what is no regular file (a pipe, /dev/null), and can only be written to; and for what stays.
    path: Option<PathBuf>,
    file: File,
    unfinished: Unfinished,
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // What cannot be removed is no more than litter.
            let _ = std::fs::remove_file(path);
            self.unfinished.change(|all| all.remove(path));
        }
    }
}

impl Write for TemporaryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// `.NAME.SUFFIX` in the folder of a file.
pub(super) fn hidden(path: &Path, suffix: &str) -> Option<PathBuf> {
    let mut hidden = OsString::from(".");
    hidden.push(path.file_name()?);
    hidden.push(format!(".{suffix}"));
    Some(path.with_file_name(hidden))
}

/// Renames, durably.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)?;
    sync_folder(to)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        match File::open(folder).and_then(|folder| folder.sync_all()) {
            // A folder may be written to that may not be listed, and some file systems sync none.
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

impl TemporaryFile {
    pub(super) fn create(path: &Path, unfinished: &Unfinished) -> Result<Self> {
        let Some(temporary) = hidden(path, "tmp") else {
            return Err(Error::BadArgument(format!("{}: not the name of a file", path.display())));
        };
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            let file = File::options().write(true).open(path).map_err(Error::io(path, "write"))?;
            return Ok(TemporaryFile { path: None, file, unfinished: unfinished.clone() });
        }
        loop {
            let open = File::options().write(true).create(true).truncate(false).open(&temporary);
            let file = open.map_err(Error::io(path, "write"))?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::Refused(format!(
                        "{}: another simstore is writing it, to {}",
                        path.display(),
                        temporary.display()
                    )));
                }
                // Not all file systems have locks.
                Ok(()) | Err(TryLockError::Error(_)) => {}
            }
            // Whoever had it before may have given it its name meanwhile, or removed it.
            if is_at(&file, &temporary) {
                unfinished.change(|all| all.insert(temporary.clone()));
                let unfinished = unfinished.clone();
                let file = TemporaryFile { path: Some(temporary), file, unfinished };
                file.file.set_len(0).map_err(Error::io(path, "write"))?;
                return Ok(file);
            }
        }
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        match self.file.sync_all() {
            // A pipe, or a device.
            Err(_) if self.path.is_none() => Ok(()),
            synced => synced,
        }
    }

    pub(super) fn publish(mut self, path: &Path) -> io::Result<()> {
        let Some(temporary) = self.path.take() else { return Ok(()) };
        let renamed = self.unfinished.change(|all| {
            all.remove(&temporary);
            rename(&temporary, path)
        });
        if renamed.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        renamed
    }

    /// Renames it to `.NAME.SUFFIX`, which is durable then; `None` if it has no name but its own.
    pub(super) fn set_aside(&mut self, path: &Path, suffix: &str) -> io::Result<Option<PathBuf>> {
        let (Some(temporary), Some(aside)) = (&self.path, hidden(path, suffix)) else { return Ok(None) };
        self.unfinished.change(|all| {
            std::fs::rename(temporary, &aside)?;
            all.remove(temporary);
            all.insert(aside.clone());
            io::Result::Ok(())
        })?;
        self.path = Some(aside.clone());
        sync_folder(&aside)?;
        Ok(Some(aside))
    }

    /// Lets the file be where it is.
    pub(super) fn keep(&mut self) {
        if let Some(path) = self.path.take() {
            self.unfinished.change(|all| all.remove(&path));
        }
    }
}

/// Whether a path leads to an open file.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let key = |metadata: io::Result<std::fs::Metadata>| metadata.map(|it| (it.dev(), it.ino())).ok();
        key(file.metadata()) == key(path.metadata())
    }
    #[cfg(not(unix))]
    {
        let _ = (file, path);
        true
    }
}
