//! The disk for the writer of a store, who holds the lock of the store's folder.
//!
//! Files are found by their paths. If the folder is moved while it is written, and another one gets its place, the same paths lead
//! to the files of another store. So each operation first makes sure that the path of the lock leads to the locked file.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use crate::fs::{Fs, Lock, WriteFile};
use crate::map::Bytes;

/// A disk on which only the locked folder is read or written: every operation fails once the folder is elsewhere, or its lock
/// removed. Files that are open can be written further, wherever the folder is.
#[derive(Clone)]
pub(super) struct LockedFolder {
    disk: Arc<dyn Fs>,
    lock: Arc<Lock>,
}

impl LockedFolder {
    pub(super) fn new(disk: &Arc<dyn Fs>, lock: Lock) -> LockedFolder {
        LockedFolder { disk: disk.clone(), lock: Arc::new(lock) }
    }

    pub(super) fn check(&self) -> io::Result<()> {
        if self.lock.is_in_place()? {
            return Ok(());
        }
        Err(io::Error::other(
            "the directory was moved, or its LOCK file was removed, while this process was writing; writing has stopped: open the store \
             again at its present path",
        ))
    }
}

impl std::fmt::Debug for LockedFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockedFolder").field("disk", &self.disk).finish_non_exhaustive()
    }
}

impl Fs for LockedFolder {
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.check()?;
        self.disk.create(path)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        self.check()?;
        self.disk.open(path)
    }

    fn map(&self, path: &Path) -> io::Result<Bytes> {
        self.check()?;
        self.disk.map(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check()?;
        self.disk.rename(from, to)?;
        // Nothing is said to be done that may have been done elsewhere.
        self.check()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.check()?;
        self.disk.remove(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.check()?;
        self.disk.create_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.check()?;
        self.disk.remove_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.check()?;
        self.disk.list(path)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.check()?;
        self.disk.sync_file(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.check()?;
        self.disk.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        self.disk.lock(path)
    }
}
