//! The list of unfinished outputs and temporary folders. If a signal ends the process, they are removed.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of attempts to remove a folder. An attempt may fail because other threads still create files in the
/// folder.
const MAX_REMOVE_ATTEMPTS: usize = 100;

/// The unfinished output files and temporary folders of a job. Clones share one list.
///
/// Dropping an [`Output`](super::Output) removes its file. But a process that a signal ends does not drop its values:
/// it needs this list to remove the files.
#[derive(Clone, Debug, Default)]
pub struct UnfinishedOutputs(Arc<Mutex<BTreeSet<PathBuf>>>);

impl UnfinishedOutputs {
    /// Removes all files and folders of the list, and keeps the list locked. So a thread that then tries to finish an
    /// output waits until the process ends.
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

    /// Calls a function that changes the list, while the list is locked. The function may also rename or remove the
    /// files.
    pub fn update<T>(&self, update: impl FnOnce(&mut BTreeSet<PathBuf>) -> T) -> T {
        update(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Removes a file, or a folder with its content. A link is removed, not its target.
pub(super) fn remove_file_or_folder(path: &Path) -> io::Result<()> {
    let is_folder = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}
