//! Which output files are not finished.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The output files of a job that have not got their names yet; clones are the same list.
///
/// Each is removed when its [`Output`](super::Output) is dropped. The list is for a process that ends without dropping what it
/// holds: on a signal.
#[derive(Clone, Debug, Default)]
pub struct Unfinished(Arc<Mutex<BTreeSet<PathBuf>>>);

impl Unfinished {
    /// Removes all of them, and lets none be finished any more: whatever gives one its name waits for the end of the process.
    pub fn remove_for_good(&self) {
        let unfinished = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for path in &*unfinished {
            // What cannot be removed is no more than litter.
            let _ = std::fs::remove_file(path);
        }
        // A file that is given its name takes the lock first.
        std::mem::forget(unfinished);
    }

    /// Changes the list, and the disk with it.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut BTreeSet<PathBuf>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
