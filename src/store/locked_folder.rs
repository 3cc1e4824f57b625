//! The disk for the writer of a store, who holds the lock of the store's folder.
//!
//! Files are found by their paths. If the folder is moved while it is written, and another one gets its place, the same paths lead
//! to the files of another store. So each operation first makes sure that the path of the lock leads to the locked file.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use super::LOCK;
use crate::error::{Error, Result};
use crate::fs::{Fs, Lock, WriteFile, delegate, is_locked_here};
use crate::map::Bytes;

/// A disk on which only the locked folder is read or written: every operation fails once the folder is elsewhere, or its lock
/// removed. Files that are open can be written further, wherever the folder is.
#[derive(Clone)]
pub(super) struct LockedFolder {
    disk: Arc<dyn Fs>,
    lock: Arc<Lock>,
}

impl LockedFolder {
    /// Locks the folder of a store.
    pub(super) fn take(disk: &Arc<dyn Fs>, path: &Path) -> Result<LockedFolder> {
        let file = path.join(LOCK);
        match disk.lock(&file).map_err(Error::io(&file, "lock"))? {
            Some(lock) => Ok(LockedFolder { disk: disk.clone(), lock: Arc::new(lock) }),
            None => Err(Error::Locked { path: path.to_path_buf(), is_here: is_locked_here(&file) }),
        }
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

    /// The disk, after a check that the folder is still the locked one.
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
        // Nothing is said to be done that may have been done elsewhere.
        self.check()
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        self.disk.lock(path)
    }
}
