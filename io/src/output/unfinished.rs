//! Which output files are not finished, and what else goes with the process.

use std::collections::BTreeSet;
use std::fs::{remove_dir_all, remove_file};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// How often it is tried.
const REMOVED_AGAIN: usize = 100;

/// The output files of a job that have not got their names yet, and the folders of its temporary files; clones are the same list.
///
/// Each is removed when its [`Output`](super::Output), or what else holds it, is dropped. The list is for a process that ends
/// without dropping what it holds: on a signal.
#[derive(Clone, Debug, Default)]
pub struct Unfinished(Arc<Mutex<BTreeSet<PathBuf>>>);

impl Unfinished {
    /// Removes all of them, and lets none be finished any more: whatever gives one its name waits for the end of the process.
    pub fn remove_for_good(&self) {
        let unfinished = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for path in &*unfinished {
            // What cannot be removed is no more than litter. While a folder is being removed, there may come more into it.
            let remove = || if path.is_dir() { remove_dir_all(path) } else { remove_file(path) };
            let _ = (0..REMOVED_AGAIN).find(|_| remove().is_ok() || !path.exists());
        }
        // A file that is given its name takes the lock first.
        std::mem::forget(unfinished);
    }

    /// Adds a file or folder, to be removed if the process ends on a signal.
    pub fn insert(&self, path: PathBuf) {
        self.change(|all| all.insert(path));
    }

    /// Takes one from the list: it is removed by whoever has made it, or is to stay.
    pub fn remove(&self, path: &Path) {
        self.change(|all| all.remove(path));
    }

    /// Changes the list, and the disk with it.
    pub fn change<T>(&self, change: impl FnOnce(&mut BTreeSet<PathBuf>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
