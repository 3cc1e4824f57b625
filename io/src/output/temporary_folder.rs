//! A folder under a temporary name, until it gets its own.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::temporary::{hidden, rename};
use super::unfinished::Unfinished;

/// A folder where it is now, with its lock.
#[derive(Debug)]
pub(super) struct TemporaryFolder {
    /// `None` when it has been given its name, or stays.
    path: Option<PathBuf>,
    _lock: Option<File>,
    unfinished: Unfinished,
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // What cannot be removed is no more than litter.
            let _ = fs::remove_dir_all(path);
            self.unfinished.change(|all| all.remove(path));
        }
    }
}

impl TemporaryFolder {
    /// A folder that is there, and removed with the process if that ends early.
    pub(super) fn new(path: PathBuf, lock: Option<File>, unfinished: &Unfinished) -> TemporaryFolder {
        unfinished.change(|all| all.insert(path.clone()));
        TemporaryFolder { path: Some(path), _lock: lock, unfinished: unfinished.clone() }
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Gives it its name.
    pub(super) fn publish(mut self, path: &Path) -> io::Result<()> {
        let Some(temporary) = self.path.take() else { return Ok(()) };
        let renamed = self.unfinished.change(|all| {
            all.remove(&temporary);
            rename(&temporary, path)
        });
        if renamed.is_err() {
            let _ = fs::remove_dir_all(&temporary);
        }
        renamed
    }

    /// Renames it to `.NAME.SUFFIX`, which is durable then.
    pub(super) fn set_aside(&mut self, path: &Path, suffix: &str) -> io::Result<Option<PathBuf>> {
        let (Some(temporary), Some(aside)) = (&self.path, hidden(path, suffix)) else { return Ok(None) };
        self.unfinished.change(|all| {
            rename(temporary, &aside)?;
            all.remove(temporary);
            all.insert(aside.clone());
            io::Result::Ok(())
        })?;
        self.path = Some(aside.clone());
        Ok(Some(aside))
    }

    /// Lets the folder be where it is.
    pub(super) fn keep(&mut self) {
        if let Some(path) = self.path.take() {
            self.unfinished.change(|all| all.remove(&path));
        }
    }
}
