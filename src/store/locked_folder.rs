//! The file system through which a writer accesses the store's folder. This file system holds the folder's lock.
//!
//! Files are opened by path. If the folder is moved during a write, and another folder takes its place, the same paths refer to
//! files of another store. So each operation first checks that the path of the lock file still refers to the locked file.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use super::LOCK_FILE;
use crate::error::{Error, Result};
use crate::file_bytes::Bytes;
use crate::fs::{Fs, Lock, WriteFile, delegate, is_locked_by_this_process};

/// A file system for one locked folder. After the folder has been moved, or its lock file has been removed, every operation
/// fails. Files that were opened before can still be written.
#[derive(Clone)]
pub(super) struct LockedFolder {
    disk: Arc<dyn Fs>,
    lock: Arc<Lock>,
}

impl LockedFolder {
    /// Locks the folder of a store. Returns [`Error::Locked`] if another writer holds the lock.
    pub(super) fn acquire(disk: &Arc<dyn Fs>, path: &Path) -> Result<LockedFolder> {
        let file = path.join(LOCK_FILE);
        match disk.lock(&file).map_err(Error::io(&file, "lock"))? {
            Some(lock) => Ok(LockedFolder { disk: disk.clone(), lock: Arc::new(lock) }),
            None => {
                Err(Error::Locked { path: path.to_path_buf(), is_here: is_locked_by_this_process(&file) })
            }
        }
    }

    /// Checks that the folder is still at its path, and that its lock file is still the locked file.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.lock.is_in_place()? {
            return Ok(());
        }
        Err(io::Error::other(
            "the directory was moved, or its LOCK file was removed, while this process was writing; writing has stopped: open the store \
             again at its present path",
        ))
    }

    /// Returns the underlying file system, after [`LockedFolder::check`].
    fn checked(&self) -> io::Result<&dyn Fs> {
        self.check()?;
        Ok(&*self.disk)
    }
}

impl std::fmt::Debug for LockedFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockedFolder").field("disk", &self.disk).finish_non_exhaustive()
    }
}

impl Fs for LockedFolder {
    delegate! { self => self.checked()?;
        create(path) -> Box<dyn WriteFile>;
        open(path) -> Box<dyn Read + Send>;
        map(path) -> Bytes;
        remove(path) -> ();
        create_dir(path) -> ();
        remove_dir(path) -> ();
        list(path) -> Vec<String>;
        sync_file(path) -> ();
        sync_dir(path) -> ();
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.checked()?.rename(from, to)?;
        // The folder may have been moved during the rename, so success is reported only after a second check.
        self.check()
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.checked()?.hard_link(from, to)?;
        self.check()
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        self.disk.lock(path)
    }
}
