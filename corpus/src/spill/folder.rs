//! The folder of a run's temporary files.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use simstore::fs::{Disk, Fs};
use simstore::spill::{Counts, Place};
use simstore::{Error, Result};

use crate::{Notice, Watch};
use simstore_io::numbers::bytes;
use simstore_io::output::Unfinished;

/// Prefix and suffix of the folder's name, and the file in the folder that the process locks.
const PREFIX: &str = "simstore-";
const SUFFIX: &str = ".tmp";
const LOCK: &str = "lock";

/// Folder for data beyond the memory limit of a run, inside a given folder or the system's folder for temporary files.
/// It is created at first use. It is removed with its contents when this value is dropped, or the run is interrupted.
/// If a process is killed, the next run with the same parent folder removes it.
#[derive(Debug)]
pub struct Temporary {
    parent: PathBuf,
    unfinished: Unfinished,
    made: Mutex<Option<Made>>,
    disk: Disk,
    /// Bytes written, and bytes held on disk.
    pub counts: Counts,
    /// Largest number of bytes expected on disk, as far as known.
    needed: AtomicU64,
}

/// An existing folder. Its lock is held as long as this value.
#[derive(Debug)]
struct Made {
    path: PathBuf,
    _lock: File,
}

impl Temporary {
    /// Prepares a folder in `parent`, or else in the system's folder for temporary files; creates nothing yet. Removes
    /// folders left by killed processes, and reports this to the watch.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if `parent` is not a folder.
    pub fn new(parent: Option<&Path>, unfinished: &Unfinished, watch: &dyn Watch) -> Result<Arc<Temporary>> {
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
        remove_left(&parent, watch);
        Ok(Arc::new(Temporary {
            parent,
            unfinished: unfinished.clone(),
            made: Mutex::default(),
            disk: Disk::default(),
            counts: Counts::default(),
            needed: AtomicU64::new(0),
        }))
    }

    /// The given folder, where unnamed files can be created.
    pub fn parent(&self) -> &Path {
        &self.parent
    }

    /// Returns the folder's path, and creates it at first use.
    ///
    /// # Errors
    /// [`Error::Refused`] if it cannot be created.
    pub fn folder(&self) -> Result<PathBuf> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = &*made {
            return Ok(made.path.clone());
        }
        let new = self.make().map_err(|error| self.failed(&error))?;
        let path = new.path.clone();
        *made = Some(new);
        Ok(path)
    }

    fn make(&self) -> io::Result<Made> {
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
                self.unfinished.change(|all| all.insert(folder.keep()));
                return Ok(Made { path, _lock: lock });
            }
        }
    }

    /// Announces that the folder will hold at most this many bytes.
    pub fn expect(&self, bytes: u64) {
        self.needed.fetch_max(bytes, Ordering::Relaxed);
    }

    /// Error for a failed write in the folder. It names the bytes held, the bytes needed, and a remedy.
    pub fn failed(&self, error: &io::Error) -> Error {
        let is_full = matches!(
            error.kind(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
        );
        let (held, needed) = (self.counts.held(), self.needed.load(Ordering::Relaxed));
        let what = match (is_full, needed > held) {
            (false, _) => String::new(),
            (true, true) => {
                format!(": wrote {} of about {} needed", bytes(held), bytes(needed))
            }
            (true, false) => format!(": wrote {}, and more is needed", bytes(held)),
        };
        Error::Refused(format!(
            "{}: cannot write temporary files: {error}{what}; free some space, or select another directory with option `temporary`",
            self.parent.display()
        ))
    }

    /// Like [`failed`](Self::failed) for an error of a file in the folder. Returns other errors unchanged.
    pub fn explain(&self, error: Error) -> Error {
        match error {
            Error::Io { path, source, .. } if self.is_here(&path) => self.failed(&source),
            error => error,
        }
    }

    fn is_here(&self, path: &Path) -> bool {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        path == self.parent || made.as_ref().is_some_and(|made| path.starts_with(&made.path))
    }
}

impl Place for Temporary {
    fn fs(&self) -> &dyn Fs {
        &self.disk
    }

    fn path(&self, number: u64) -> Result<PathBuf> {
        Ok(self.folder()?.join(format!("{number}")))
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn failed(&self, _: &Path, _: &'static str, error: io::Error) -> Error {
        Temporary::failed(self, &error)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let made = self.made.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(Made { path, .. }) = made {
            self.unfinished.change(|all| {
                // The next run tries again.
                let _ = std::fs::remove_dir_all(&*path);
                all.remove(path)
            });
        }
    }
}

/// Removes the folders that no process has locked.
fn remove_left(parent: &Path, watch: &dyn Watch) {
    // A folder that cannot be read is not ours.
    let Ok(entries) = parent.read_dir() else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_one = name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        if !is_one || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
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
            watch.notice(&Notice::Remark(&format!(
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
    struct Told(Mutex<Vec<String>>);

    impl Watch for Told {
        fn notice(&self, notice: &Notice<'_>) {
            if let Notice::Remark(remark) = notice {
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
        let unfinished = Unfinished::default();
        let temporary = Temporary::new(Some(parent.path()), &unfinished, &()).unwrap();
        assert_eq!(count(parent.path()), 0);
        let mut file = SpillWriter::create(temporary.clone()).unwrap();
        file.push(b"12345").unwrap();
        let file = file.finish().unwrap();
        assert_eq!((count(parent.path()), temporary.counts.held(), temporary.counts.written()), (1, 5, 5));
        drop(file);
        assert_eq!((temporary.counts.held(), temporary.counts.most()), (0, 5));
        drop(temporary);
        assert_eq!(count(parent.path()), 0);
        // A process that ends without dropping the value.
        let temporary = Temporary::new(Some(parent.path()), &unfinished, &()).unwrap();
        std::mem::forget(SpillWriter::create(temporary.clone()).unwrap());
        unfinished.remove_for_good();
        assert_eq!(count(parent.path()), 0);
        // Dropping it would block: after `remove_for_good`, changes wait for the end of the process.
        std::mem::forget(temporary);
    }

    #[test]
    fn what_was_left_is_removed_and_what_is_in_use_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let told = Told::default();
        let open = || Temporary::new(Some(parent.path()), &Unfinished::default(), &told).unwrap();
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
        let mut told = told.0.into_inner().unwrap();
        told.sort();
        assert_eq!(told.len(), 2);
        assert!(told[0].ends_with("simstore-a.tmp: removed, left by a killed run"), "{told:?}");
    }

    #[test]
    fn a_full_disk_is_told_with_what_is_needed() {
        let parent = tempfile::tempdir().unwrap();
        let temporary = Temporary::new(Some(parent.path()), &Unfinished::default(), &()).unwrap();
        temporary.counts.add_written(3 << 20);
        let full = || io::Error::from(ErrorKind::StorageFull);
        let message = temporary.failed(&full()).to_string();
        assert!(message.contains(": wrote 3.0 MiB, and more is needed; free some space"), "{message}");
        temporary.expect(5 << 30);
        let inside = temporary.folder().unwrap().join("x");
        let explained = temporary.explain(Error::Io { path: inside, action: "write", source: full() });
        assert!(explained.to_string().contains("of about 5.0 GiB needed"), "{explained}");
        let other = Error::Io { path: parent.path().join("x"), action: "write", source: full() };
        assert!(matches!(temporary.explain(other), Error::Io { .. }));
        let missing = Temporary::new(Some(&parent.path().join("none")), &Unfinished::default(), &());
        assert!(missing.unwrap_err().to_string().contains("option `temporary`"));
    }
}
