//! Locations of temporary files, and counters of the bytes in them.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::fs::{Fs, TEMPORARY_SUFFIX};

/// A location where temporary files are created.
pub trait SpillLocation: Debug + Send + Sync {
    /// File system of the location.
    fn fs(&self) -> &dyn Fs;

    /// Path of the file with this number. Each file has its own number.
    ///
    /// # Errors
    /// An error if the folder for the file cannot be created.
    fn path(&self, number: u64) -> Result<PathBuf>;

    /// Counters of the bytes in the files of this location.
    fn counters(&self) -> &SpillCounters;

    /// Error for a file that cannot be created or written; `action` is the verb for the message, such as "write".
    fn file_error(&self, path: &Path, action: &'static str, error: io::Error) -> Error {
        Error::io(path, action)(error)
    }
}

/// Counters of the temporary files of a location: bytes written and read, and bytes that are on disk.
#[derive(Debug, Default)]
pub struct SpillCounters {
    files: AtomicU64,
    written: AtomicU64,
    read: AtomicU64,
    on_disk: AtomicU64,
    peak_on_disk: AtomicU64,
}

impl SpillCounters {
    /// Total bytes written.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Total bytes read with [`SpillReader`](crate::spill::SpillReader).
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Bytes currently on disk.
    pub fn on_disk(&self) -> u64 {
        self.on_disk.load(Ordering::Relaxed)
    }

    /// Largest number of bytes that were on disk at the same time so far.
    pub fn peak_on_disk(&self) -> u64 {
        self.peak_on_disk.load(Ordering::Relaxed)
    }

    pub(super) fn next_file(&self) -> u64 {
        self.files.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts `bytes` more bytes written to disk.
    pub fn add_written(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
        let on_disk = self.on_disk.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak_on_disk.fetch_max(on_disk, Ordering::Relaxed);
    }

    pub(super) fn add_read(&self, bytes: u64) {
        self.read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts `bytes` bytes removed from disk.
    pub fn add_removed(&self, bytes: u64) {
        self.on_disk.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Location of temporary files in an existing folder. The paths of all its files start with the same prefix.
#[derive(Debug)]
pub struct PrefixLocation {
    fs: Arc<dyn Fs>,
    prefix: PathBuf,
    counts: SpillCounters,
}

impl PrefixLocation {
    /// Creates the location of the files `PREFIX.NUMBER.tmp`. No other paths may start with the prefix.
    pub fn new(fs: &Arc<dyn Fs>, prefix: &Path) -> Arc<PrefixLocation> {
        Arc::new(PrefixLocation {
            fs: fs.clone(),
            prefix: prefix.to_path_buf(),
            counts: SpillCounters::default(),
        })
    }
}

impl SpillLocation for PrefixLocation {
    fn fs(&self) -> &dyn Fs {
        &*self.fs
    }

    fn path(&self, number: u64) -> Result<PathBuf> {
        let mut path = self.prefix.clone().into_os_string();
        path.push(format!(".{number}{TEMPORARY_SUFFIX}"));
        Ok(path.into())
    }

    fn counters(&self) -> &SpillCounters {
        &self.counts
    }
}
