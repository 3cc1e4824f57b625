//! Output files under a temporary name.
//!
//! The name is `.NAME.tmp`, in the folder where `NAME` will appear, and the file is locked. If a killed
//! process left such a file, the next process that writes the same output removes it. If two processes write
//! the same output at the same time, the second one fails. The file is always created: a link or file that
//! already has this name is never written to.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use simstore::{Error, Result};

use super::complete_output::CompleteOutput;
use super::temporary_path::{TemporaryPath, hidden_path};
use super::unfinished_outputs::UnfinishedOutputs;

/// An open output file under a temporary name. A pipe or a device such as `/dev/null` has no temporary name
/// and is written directly.
#[derive(Debug)]
pub(super) struct TemporaryFile {
    /// Temporary name. This field is before the file, and so is dropped first: the file is still locked while it is
    /// removed.
    name: TemporaryPath,
    pub(super) file: Arc<File>,
}

impl TemporaryFile {
    /// Creates a temporary file for the output `path`. If `path` is a pipe or a device, opens it directly instead.
    pub(super) fn create(path: &Path, unfinished: &UnfinishedOutputs) -> Result<Self> {
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            let file = File::options().write(true).open(path).map_err(Error::io(path, "write"))?;
            return Ok(TemporaryFile { name: TemporaryPath::default(), file: Arc::new(file) });
        }
        TemporaryFile::replace(path, unfinished)
    }

    /// Creates a temporary file that will replace anything at `path` except a folder.
    pub(super) fn replace(path: &Path, unfinished: &UnfinishedOutputs) -> Result<Self> {
        let Some(temporary) = hidden_path(path, "tmp") else {
            return Err(Error::BadArgument(format!("{}: not a file name", path.display())));
        };
        loop {
            let file = match File::options().write(true).create_new(true).open(&temporary) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    remove_leftover(path, &temporary)?;
                    continue;
                }
                file => file.map_err(Error::io(path, "write"))?,
            };
            lock(&file, path, &temporary)?;
            // Before this process took the lock, another one may have removed the file as a leftover.
            if is_same_file(&file, &temporary) {
                let name = TemporaryPath::new(temporary, unfinished);
                return Ok(TemporaryFile { name, file: Arc::new(file) });
            }
        }
    }

    /// Syncs the file to disk. The file keeps its temporary name; `path` is its final name.
    pub(super) fn complete(self, path: PathBuf) -> Result<CompleteOutput> {
        match self.file.sync_all() {
            // Pipes and devices cannot be synced.
            Err(error) if self.name.path().is_some() => Err(Error::io(&path, "write")(error)),
            _ => Ok(CompleteOutput::new(path, self.name, Some(self.file))),
        }
    }
}

/// Locks the file or folder with the path `temporary`. Succeeds without a lock if the file system has no locks. `path`
/// is the final name, for the error message.
pub(super) fn lock(file: &File, path: &Path, temporary: &Path) -> Result<()> {
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

/// Removes the file or link that already has the path `temporary`, unless another process has locked the file. A link
/// is removed, not its target. `path` is the final name, for error messages.
fn remove_leftover(path: &Path, temporary: &Path) -> Result<()> {
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
        // Before this process took the lock, another one may have replaced the file.
        if !is_same_file(file, temporary) {
            return Ok(());
        }
    }
    match std::fs::remove_file(temporary) {
        Err(error) if !is_gone(&error) => Err(in_the_way(error)),
        _ => Ok(()),
    }
}

/// Whether a path is the name of an open file, and not a link to the file. Always true on systems without inodes.
pub(super) fn is_same_file(file: &File, path: &Path) -> bool {
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
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::*;

    fn written(path: &Path) -> Result<()> {
        let file = TemporaryFile::create(path, &UnfinishedOutputs::default())?;
        (&*file.file).write_all(b"new").unwrap();
        file.complete(path.to_path_buf())?.publish()
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
    fn files_that_cannot_be_removed_are_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".out.tmp")).unwrap();
        let refused = written(&folder.path().join("out")).unwrap_err().to_string();
        assert!(refused.contains(".out.tmp exists and cannot be removed"), "{refused}");
    }
}
