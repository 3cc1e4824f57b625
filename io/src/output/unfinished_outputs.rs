//! The list of unfinished outputs and temporary folders, which a process removes if a signal ends it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of attempts to remove a folder, since other threads may still create files in it.
const MAX_REMOVE_ATTEMPTS: usize = 100;

/// The unfinished output files and temporary folders of a job. Clones share one list.
///
/// Dropping an [`Output`](super::Output) removes its file. The list is for a process that a signal ends: such
/// a process does not drop its values.
#[derive(Clone, Debug, Default)]
pub struct UnfinishedOutputs(Arc<Mutex<BTreeSet<PathBuf>>>);

impl UnfinishedOutputs {
    /// Removes all files and folders of the list, and keeps the list locked. A thread that then tries to
    /// finish an output blocks until the process ends.
    pub fn remove_all_and_block(&self) {
        let unfinished = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for path in &*unfinished {
            // A file that cannot be removed does no harm. Other threads may still write into a folder.
            let _ = (0..MAX_REMOVE_ATTEMPTS).find(|_| remove_file_or_folder(path).is_ok() || !path.exists());
        }
        // Renaming an output takes this lock first.
        std::mem::forget(unfinished);
    }

    /// Adds a file or folder, to be removed if a signal ends the process.
    pub fn insert(&self, path: PathBuf) {
        self.update(|all| all.insert(path));
    }

    /// Removes an entry from the list. The file or folder remains.
    pub fn remove(&self, path: &Path) {
        self.update(|all| all.remove(path));
    }

    /// Changes the list while holding its lock. The change may include renaming or removing the files.
    pub fn update<T>(&self, update: impl FnOnce(&mut BTreeSet<PathBuf>) -> T) -> T {
        update(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Removes a file, or a folder with its content. A link is removed, not its target.
pub(super) fn remove_file_or_folder(path: &Path) -> io::Result<()> {
    let is_folder = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}
