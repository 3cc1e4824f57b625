//! Where temporary files are, and what has been moved to and from them.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::fs::{Fs, TEMPORARY};

/// Where temporary files are made.
pub trait Place: Debug + Send + Sync {
    /// The disk.
    fn fs(&self) -> &dyn Fs;

    /// The path of a file; each has a number of its own.
    ///
    /// # Errors
    /// That of a folder that cannot be made.
    fn path(&self, number: u64) -> Result<PathBuf>;

    /// What has been moved to and from the files of this place.
    fn counts(&self) -> &Counts;

    /// The error of a file that cannot be made or written.
    fn failed(&self, path: &Path, action: &'static str, error: io::Error) -> Error {
        Error::io(path, action)(error)
    }
}

/// The bytes that have been moved to and from temporary files.
#[derive(Debug, Default)]
pub struct Counts {
    files: AtomicU64,
    written: AtomicU64,
    read: AtomicU64,
    held: AtomicU64,
    most: AtomicU64,
}

impl Counts {
    /// Bytes written.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Bytes read in order.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Bytes that are on the disk.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Bytes that were on the disk when these were most.
    pub fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    pub(super) fn next_file(&self) -> u64 {
        self.files.fetch_add(1, Ordering::Relaxed)
    }

    /// So many more bytes are on the disk.
    pub fn add_written(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
        let held = self.held.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.most.fetch_max(held, Ordering::Relaxed);
    }

    pub(super) fn add_read(&self, bytes: u64) {
        self.read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// So many of them have been removed.
    pub fn add_removed(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Temporary files whose paths begin alike, in a folder that is there.
#[derive(Debug)]
pub struct Folder {
    fs: Arc<dyn Fs>,
    begin: PathBuf,
    counts: Counts,
}

impl Folder {
    /// Files with the path `begin`, to which `.NUMBER.tmp` is added. No others may begin so.
    pub fn new(fs: &Arc<dyn Fs>, begin: &Path) -> Arc<Folder> {
        Arc::new(Folder { fs: fs.clone(), begin: begin.to_path_buf(), counts: Counts::default() })
    }
}

impl Place for Folder {
    fn fs(&self) -> &dyn Fs {
        &*self.fs
    }

    fn path(&self, number: u64) -> Result<PathBuf> {
        let mut path = self.begin.clone().into_os_string();
        path.push(format!(".{number}{TEMPORARY}"));
        Ok(path.into())
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }
}
