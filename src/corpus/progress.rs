//! How far the reading has come.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far the reading of files has come; may be asked from another thread.
///
/// The totals to compare with are those of [`input_files`](crate::corpus::input_files).
#[derive(Debug, Default)]
pub struct ReadProgress {
    bytes: AtomicU64,
    files: AtomicU64,
}

impl ReadProgress {
    /// Bytes read of the files as they are on disk, before decompression.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Files read to their end, or given up.
    pub fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }
}

/// A reader whose bytes are counted.
pub(crate) struct Counted<R> {
    inner: R,
    progress: Arc<ReadProgress>,
}

impl<R> Counted<R> {
    pub(crate) fn new(inner: R, progress: &Arc<ReadProgress>) -> Self {
        Counted { inner, progress: Arc::clone(progress) }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.progress.add_bytes(read as u64);
        Ok(read)
    }
}
