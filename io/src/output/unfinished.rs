//! The list of unfinished output files and temporary folders, which a process removes if a signal ends it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Attempts to remove a folder into which other threads may still write.
const REMOVED_AGAIN: usize = 100;

/// The unfinished output files of a job, and the folders of its temporary files. Clones share one list.
///
/// Dropping an [`Output`](super::Output) removes its file. The list is for a process that a signal ends, which drops nothing.
#[derive(Clone, Debug, Default)]
pub struct Unfinished(Arc<Mutex<BTreeSet<PathBuf>>>);

impl Unfinished {
    /// Removes all files and folders of the list. From then on no output can be finished: a thread that tries waits for the end of the
    /// process.
    pub fn remove_for_good(&self) {
        let unfinished = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for path in &*unfinished {
            // A file that cannot be removed does no harm. Other threads may still write into a folder.
            let _ = (0..REMOVED_AGAIN).find(|_| remove(path).is_ok() || !path.exists());
        }
        // Renaming an output takes this lock first.
        std::mem::forget(unfinished);
    }

    /// Adds a file or folder, to be removed if the process ends on a signal.
    pub fn insert(&self, path: PathBuf) {
        self.change(|all| all.insert(path));
    }

    /// Removes an entry from the list. The file or folder remains.
    pub fn remove(&self, path: &Path) {
        self.change(|all| all.remove(path));
    }

    /// Changes the list, and the disk with it, under the lock of the list.
    pub fn change<T>(&self, change: impl FnOnce(&mut BTreeSet<PathBuf>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Removes a file, or a folder with its content. A link is removed, not its target.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let is_folder = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}
