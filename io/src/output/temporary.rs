//! A file under a temporary name.
//!
//! The name is `.NAME.tmp`, in the folder where `NAME` will appear, and the file is locked. If a killed process has
//! left such a file, the next process that writes the same output removes it. If two processes write the same output at
//! the same time, the second one stops. The file is always new: a link or file already under this name is never written
//! to.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use simstore::{Error, Result};

use super::unfinished::Unfinished;

/// An output file under a temporary name, if it can be replaced. It is removed when dropped, unless it was renamed.
#[derive(Debug)]
pub(super) struct TemporaryFile {
    /// `None` for a pipe or a device such as `/dev/null`, which is written directly, and for a file to keep.
    path: Option<PathBuf>,
    file: File,
    unfinished: Unfinished,
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // A file that cannot be removed does no harm.
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

/// Renames a file, durably.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)?;
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

impl TemporaryFile {
    /// Creates a temporary file, or opens `path` itself if it is a pipe or a device.
    pub(super) fn create(path: &Path, unfinished: &Unfinished) -> Result<Self> {
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            let file = File::options().write(true).open(path).map_err(Error::io(path, "write"))?;
            return Ok(TemporaryFile { path: None, file, unfinished: unfinished.clone() });
        }
        TemporaryFile::replace(path, unfinished)
    }

    /// Creates a temporary file that replaces anything but a folder.
    pub(super) fn replace(path: &Path, unfinished: &Unfinished) -> Result<Self> {
        let Some(temporary) = hidden(path, "tmp") else {
            return Err(Error::BadArgument(format!("{}: not a file name", path.display())));
        };
        loop {
            let file = match File::options().write(true).create_new(true).open(&temporary) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    remove_left(path, &temporary)?;
                    continue;
                }
                file => file.map_err(Error::io(path, "write"))?,
            };
            lock(&file, path, &temporary)?;
            // Before the lock, another process may have removed the file as a leftover.
            if is_at(&file, &temporary) {
                unfinished.change(|all| all.insert(temporary.clone()));
                let unfinished = unfinished.clone();
                return Ok(TemporaryFile { path: Some(temporary), file, unfinished });
            }
        }
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        match self.file.sync_all() {
            // Pipes and devices cannot be synced.
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

    /// Renames the file to `.NAME.SUFFIX`, durably. `None` if it has no temporary name.
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

    /// Keeps the file under its current name.
    pub(super) fn keep(&mut self) {
        if let Some(path) = self.path.take() {
            self.unfinished.change(|all| all.remove(&path));
        }
    }
}

/// Locks a temporary file.
fn lock(file: &File, path: &Path, temporary: &Path) -> Result<()> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Error::Refused(format!(
            "{}: another simstore process is writing it (as {})",
            path.display(),
            temporary.display()
        ))),
        // Not all file systems have locks.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

/// Removes an entry with a temporary name, unless another process has locked it. A link is removed, not its target.
fn remove_left(path: &Path, temporary: &Path) -> Result<()> {
    let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let in_the_way = |error: io::Error| {
        Error::Refused(format!(
            "{}: cannot be written, because {} exists and cannot be removed: {error}; remove it",
            path.display(),
            temporary.display()
        ))
    };
    let is_file = match temporary.symlink_metadata() {
        Err(error) if is_gone(&error) => return Ok(()),
        found => found.map_err(in_the_way)?.is_file(),
    };
    // The lock is held until the file is removed.
    let left = if is_file { File::options().write(true).open(temporary).ok() } else { None };
    if let Some(file) = &left {
        lock(file, path, temporary)?;
        // Before the lock, another process may have replaced the file.
        if !is_at(file, temporary) {
            return Ok(());
        }
    }
    match std::fs::remove_file(temporary) {
        Err(error) if !is_gone(&error) => Err(in_the_way(error)),
        _ => Ok(()),
    }
}

/// Whether a path is the name of an open file, and not a link to it.
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let key = |metadata: io::Result<std::fs::Metadata>| metadata.map(|it| (it.dev(), it.ino())).ok();
        key(file.metadata()) == key(path.symlink_metadata())
    }
    #[cfg(not(unix))]
    {
        let _ = (file, path);
        true
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn written(path: &Path) -> Result<()> {
        let mut file = TemporaryFile::create(path, &Unfinished::default())?;
        file.write_all(b"new").unwrap();
        file.publish(path).unwrap();
        Ok(())
    }

    #[test]
    fn nothing_is_written_where_a_temporary_name_leads() {
        let folder = tempfile::tempdir().unwrap();
        let [victim, path, temporary] = ["victim", "out", ".out.tmp"].map(|name| folder.path().join(name));
        let put: [(&str, &dyn Fn()); 6] = [
            ("a link", &|| symlink(&victim, &temporary).unwrap()),
            ("a link that leads nowhere", &|| symlink(folder.path().join("nowhere"), &temporary).unwrap()),
            ("a link to a directory", &|| symlink(folder.path(), &temporary).unwrap()),
            ("a hard link", &|| fs::hard_link(&victim, &temporary).unwrap()),
            ("what a killed run has left", &|| fs::write(&temporary, "left, and longer").unwrap()),
            ("a socket", &|| drop(std::os::unix::net::UnixListener::bind(&temporary).unwrap())),
        ];
        for (what, put) in put {
            fs::write(&victim, "untouched").unwrap();
            put();
            written(&path).unwrap();
            assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched", "{what}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "new", "{what}");
            assert!(path.symlink_metadata().unwrap().is_file(), "{what}");
            let mut names: Vec<_> =
                fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            assert_eq!(names, ["out", "victim"], "{what}");
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn what_cannot_be_removed_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".out.tmp")).unwrap();
        let refused = written(&folder.path().join("out")).unwrap_err().to_string();
        assert!(refused.contains(".out.tmp exists and cannot be removed"), "{refused}");
    }
}
