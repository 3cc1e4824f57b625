//! Folder for the temporary files of a job.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use simstore::fs::{Disk, Fs};
use simstore::spill::{SpillCounters, SpillLocation};
use simstore::{Error, Result};

use crate::{Diagnostic, Observer};
use simstore_io::numbers::format_bytes;
use simstore_io::output::UnfinishedOutputs;

/// Prefix of the name of each temporary folder.
const PREFIX: &str = "simstore-";
/// Suffix of the name of each temporary folder.
const SUFFIX: &str = ".tmp";
/// Name of the file in the folder that the process keeps locked, so that no other process removes the folder.
const LOCK: &str = "lock";

/// Temporary folder for data beyond the memory budget of a job. Its parent is a given folder, or the system's folder for
/// temporary files. The folder is created at first use, and removed with its contents when this value is dropped, or when
/// the program is interrupted. If the process is killed, the folder remains until a later job with the same parent removes
/// it.
#[derive(Debug)]
pub struct TemporaryFolder {
    parent: PathBuf,
    unfinished: UnfinishedOutputs,
    created: Mutex<Option<CreatedFolder>>,
    disk: Disk,
    /// Counters of the bytes that were written to files in the folder, and of the bytes that these files hold now.
    pub counts: SpillCounters,
    /// Largest number of bytes that the folder is expected to hold at one time; 0 if unknown.
    needed: AtomicU64,
}

/// A temporary folder that has been created, locked as long as this value exists.
#[derive(Debug)]
struct CreatedFolder {
    path: PathBuf,
    _lock: File,
}

impl TemporaryFolder {
    /// Prepares a folder in `parent` or, without `parent`, in the system's folder for temporary files. Creates nothing
    /// yet. Removes temporary folders that killed processes have left in the parent, and reports them to the observer.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if `parent` is not a folder.
    pub fn new(
        parent: Option<&Path>,
        unfinished: &UnfinishedOutputs,
        observer: &dyn Observer,
    ) -> Result<Arc<TemporaryFolder>> {
        let is_folder = |parent: &Path| match parent.metadata() {
            Ok(metadata) => Ok(metadata.is_dir()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::io(parent, "look at")(error)),
        };
        if let Some(parent) = parent
            && !is_folder(parent)?
        {
            return Err(Error::BadArgument(format!(
                "{}: does not exist; give an existing directory as option `temporary`",
                parent.display()
            )));
        }
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_path_buf);
        remove_leftovers(&parent, observer);
        Ok(Arc::new(TemporaryFolder {
            parent,
            unfinished: unfinished.clone(),
            created: Mutex::default(),
            disk: Disk::default(),
            counts: SpillCounters::default(),
            needed: AtomicU64::new(0),
        }))
    }

    /// Parent of the folder, where unnamed files can be created.
    pub fn parent(&self) -> &Path {
        &self.parent
    }

    /// Returns the folder's path, and creates it at first use.
    ///
    /// # Errors
    /// [`Error::Refused`] if the folder cannot be created.
    pub fn folder(&self) -> Result<PathBuf> {
        let mut created = self.created.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(created) = &*created {
            return Ok(created.path.clone());
        }
        let new = self.create().map_err(|error| self.write_error(&error))?;
        let path = new.path.clone();
        *created = Some(new);
        Ok(path)
    }

    fn create(&self) -> io::Result<CreatedFolder> {
        loop {
            let folder = tempfile::Builder::new().prefix(PREFIX).suffix(SUFFIX).tempdir_in(&self.parent)?;
            let path = folder.path().to_path_buf();
            // Before the lock, another process may remove the folder as a leftover.
            let lock = match File::create_new(path.join(LOCK)) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                lock => lock?,
            };
            match lock.try_lock() {
                Err(TryLockError::WouldBlock) => continue,
                // Not all file systems have locks. Without locks, no process removes it as a leftover.
                Ok(()) | Err(TryLockError::Error(_)) => {}
            }
            if path.join(LOCK).exists() {
                self.unfinished.update(|all| all.insert(folder.keep()));
                return Ok(CreatedFolder { path, _lock: lock });
            }
        }
    }

    /// Records that the folder is expected to hold up to `bytes` bytes.
    pub fn expect_bytes(&self, bytes: u64) {
        self.needed.fetch_max(bytes, Ordering::Relaxed);
    }

    /// Returns the error for a failed write in the folder. If the disk is full, the message says how many bytes the folder
    /// holds and needs.
    pub fn write_error(&self, error: &io::Error) -> Error {
        let is_full = matches!(
            error.kind(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
        );
        let (held, needed) = (self.counts.on_disk(), self.needed.load(Ordering::Relaxed));
        let what = match (is_full, needed > held) {
            (false, _) => String::new(),
            (true, true) => {
                format!(": wrote {} of about {} needed", format_bytes(held), format_bytes(needed))
            }
            (true, false) => format!(": wrote {}, and more is needed", format_bytes(held)),
        };
        Error::Refused(format!(
            "{}: cannot write temporary files: {error}{what}; free some space, or select another directory with option `temporary`",
            self.parent.display()
        ))
    }

    /// Returns [`write_error`](Self::write_error) for an I/O error of a file in the folder. Returns other errors unchanged.
    pub fn explain(&self, error: Error) -> Error {
        match error {
            Error::Io { path, source, .. } if self.contains(&path) => self.write_error(&source),
            error => error,
        }
    }

    fn contains(&self, path: &Path) -> bool {
        let created = self.created.lock().unwrap_or_else(PoisonError::into_inner);
        path == self.parent || created.as_ref().is_some_and(|created| path.starts_with(&created.path))
    }
}

impl SpillLocation for TemporaryFolder {
    fn fs(&self) -> &dyn Fs {
        &self.disk
    }

    fn path(&self, number: u64) -> Result<PathBuf> {
        Ok(self.folder()?.join(format!("{number}")))
    }

    fn counters(&self) -> &SpillCounters {
        &self.counts
    }

    fn file_error(&self, _: &Path, _: &'static str, error: io::Error) -> Error {
        TemporaryFolder::write_error(self, &error)
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let created = self.created.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(CreatedFolder { path, .. }) = created {
            self.unfinished.update(|all| {
                // The next run tries again.
                let _ = std::fs::remove_dir_all(&*path);
                all.remove(path)
            });
        }
    }
}

/// Removes the temporary folders in `parent` that no process has locked, and reports them to the observer.
fn remove_leftovers(parent: &Path, observer: &dyn Observer) {
    // If the parent cannot be read, nothing is removed.
    let Ok(entries) = parent.read_dir() else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let has_temporary_name =
            name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        if !has_temporary_name || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path().join(LOCK);
        // In a folder that all users can write to, an entry of another user may lead anywhere. Creates no file, follows
        // no link.
        let is_removed = if path.symlink_metadata().is_ok_and(|it| it.is_file()) {
            let lock = File::open(path);
            lock.is_ok_and(|lock| lock.try_lock().is_ok() && std::fs::remove_dir_all(entry.path()).is_ok())
        } else {
            // Removes an empty folder only. Its owner may be about to lock it, and then makes a new one.
            std::fs::remove_dir(entry.path()).is_ok()
        };
        if is_removed {
            observer.diagnostic(&Diagnostic::Info(&format!(
                "{}: removed, left by a killed run",
                entry.path().display()
            )));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spill::SpillWriter;

    #[derive(Default)]
    struct InfoCollector(Mutex<Vec<String>>);

    impl Observer for InfoCollector {
        fn diagnostic(&self, diagnostic: &Diagnostic<'_>) {
            if let Diagnostic::Info(remark) = diagnostic {
                self.0.lock().unwrap().push((*remark).to_owned());
            }
        }
    }

    fn count(folder: &Path) -> usize {
        folder.read_dir().unwrap().count()
    }

    #[test]
    fn it_is_made_when_needed_and_gone_in_the_end() {
        let parent = tempfile::tempdir().unwrap();
        let unfinished = UnfinishedOutputs::default();
        let temporary = TemporaryFolder::new(Some(parent.path()), &unfinished, &()).unwrap();
        assert_eq!(count(parent.path()), 0);
        let mut file = SpillWriter::create(temporary.clone()).unwrap();
        file.push(b"12345").unwrap();
        let file = file.finish().unwrap();
        assert_eq!((count(parent.path()), temporary.counts.on_disk(), temporary.counts.written()), (1, 5, 5));
        drop(file);
        assert_eq!((temporary.counts.on_disk(), temporary.counts.peak_on_disk()), (0, 5));
        drop(temporary);
        assert_eq!(count(parent.path()), 0);
        // A process that ends without dropping the value.
        let temporary = TemporaryFolder::new(Some(parent.path()), &unfinished, &()).unwrap();
        std::mem::forget(SpillWriter::create(temporary.clone()).unwrap());
        unfinished.remove_all_and_block();
        assert_eq!(count(parent.path()), 0);
        // Dropping it would block: after `remove_all_and_block`, changes wait for the end of the process.
        std::mem::forget(temporary);
    }

    #[test]
    fn leftovers_are_removed_and_files_in_use_are_not() {
        let parent = tempfile::tempdir().unwrap();
        let collector = InfoCollector::default();
        let open =
            || TemporaryFolder::new(Some(parent.path()), &UnfinishedOutputs::default(), &collector).unwrap();
        let used = open();
        let in_use = used.folder().unwrap();
        for (name, files) in [
            ("simstore-a.tmp", &["lock", "a"][..]),
            ("simstore-b.tmp", &[]),
            ("simstore-c.tmp", &["a"]),
            ("other-e.tmp", &["lock"]),
        ] {
            std::fs::create_dir(parent.path().join(name)).unwrap();
            files
                .iter()
                .for_each(|file| std::fs::write(parent.path().join(name).join(file), "left").unwrap());
        }
        std::fs::write(parent.path().join("simstore-d.tmp"), "a file").unwrap();
        open();
        let mut left: Vec<PathBuf> =
            parent.path().read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
        left.sort();
        let stays = ["simstore-c.tmp", "simstore-d.tmp", "other-e.tmp"].map(|name| parent.path().join(name));
        let mut expected = [&stays[..], &[in_use]].concat();
        expected.sort();
        assert_eq!(left, expected);
        let mut messages = collector.0.into_inner().unwrap();
        messages.sort();
        assert_eq!(messages.len(), 2);
        assert!(messages[0].ends_with("simstore-a.tmp: removed, left by a killed run"), "{messages:?}");
    }

    #[test]
    fn a_full_disk_is_reported_with_the_needed_space() {
        let parent = tempfile::tempdir().unwrap();
        let temporary =
            TemporaryFolder::new(Some(parent.path()), &UnfinishedOutputs::default(), &()).unwrap();
        temporary.counts.add_written(3 << 20);
        let full = || io::Error::from(ErrorKind::StorageFull);
        let message = temporary.write_error(&full()).to_string();
        assert!(message.contains(": wrote 3.0 MiB, and more is needed; free some space"), "{message}");
        temporary.expect_bytes(5 << 30);
        let inside = temporary.folder().unwrap().join("x");
        let explained = temporary.explain(Error::Io { path: inside, action: "write", source: full() });
        assert!(explained.to_string().contains("of about 5.0 GiB needed"), "{explained}");
        let other = Error::Io { path: parent.path().join("x"), action: "write", source: full() };
        assert!(matches!(temporary.explain(other), Error::Io { .. }));
        let missing =
            TemporaryFolder::new(Some(&parent.path().join("none")), &UnfinishedOutputs::default(), &());
        assert!(missing.unwrap_err().to_string().contains("option `temporary`"));
    }
}
