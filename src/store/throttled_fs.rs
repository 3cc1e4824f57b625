//! [`ThrottledFs`]: the file system for background merges. It limits the write rate of a merge, and makes writes fail when the
//! store is closed.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::shared_state::SharedState;
use crate::file_bytes::Bytes;
use crate::fingerprint::Fingerprint;
use crate::fs::{Fs, Lock, SyncFile, WriteFile, delegate};
use crate::threads::lock;

/// A file system with a limited write rate, whose writes fail once the store is being closed.
pub(super) struct ThrottledFs<F: Fingerprint> {
    shared: Arc<SharedState<F>>,
    rate_limit: Arc<RateLimit>,
}

/// A limit for the write rate of a merge. All files of the merge share it.
struct RateLimit {
    /// Maximum write rate; `None` means no limit.
    bytes_per_second: Option<u64>,
    /// Earliest time of the next write.
    due: std::sync::Mutex<Instant>,
}

impl<F: Fingerprint> ThrottledFs<F> {
    pub(super) fn new(shared: Arc<SharedState<F>>) -> Self {
        let bytes_per_second = shared.options.compaction_rate.map(|rate| rate.max(1));
        ThrottledFs {
            shared,
            rate_limit: Arc::new(RateLimit { bytes_per_second, due: std::sync::Mutex::new(Instant::now()) }),
        }
    }

    fn disk(&self) -> &dyn Fs {
        &*self.shared.options.fs
    }
}

impl<F: Fingerprint> fmt::Debug for ThrottledFs<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThrottledFs").finish_non_exhaustive()
    }
}

struct ThrottledFile<F: Fingerprint> {
    file: Box<dyn WriteFile>,
    shared: Arc<SharedState<F>>,
    rate_limit: Arc<RateLimit>,
}

/// Maximum length of one write, in bytes. Longer writes are split, because the rate limit and the closing of the
/// store are checked only before each write.
const WRITE_BYTES_MAX: usize = 1 << 18;

impl<F: Fingerprint> Write for ThrottledFile<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = lock(&self.shared.background);
        if state.is_closing {
            return Err(io::Error::other("the store is being closed"));
        }
        if let Some(rate) = self.rate_limit.bytes_per_second {
            loop {
                let now = Instant::now();
                let mut due = lock(&self.rate_limit.due);
                let Some(wait) = due.checked_duration_since(now).filter(|wait| !wait.is_zero()) else {
                    let len = bytes.len().min(WRITE_BYTES_MAX) as f64;
                    *due = now + Duration::from_secs_f64(len / rate as f64);
                    break;
                };
                drop(due);
                let (again, _) =
                    self.shared.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner);
                state = again;
                if state.is_closing {
                    return Err(io::Error::other("the store is being closed"));
                }
            }
        }
        drop(state);
        self.file.write(&bytes[..bytes.len().min(WRITE_BYTES_MAX)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl<F: Fingerprint> WriteFile for ThrottledFile<F> {
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    fn sync_handle(&self) -> io::Result<Box<dyn SyncFile>> {
        self.file.sync_handle()
    }
}

impl<F: Fingerprint> Fs for ThrottledFs<F> {
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let file = self.disk().create(path)?;
        Ok(Box::new(ThrottledFile { file, shared: self.shared.clone(), rate_limit: self.rate_limit.clone() }))
    }

    delegate! { self => self.disk();
        open(path) -> Box<dyn Read + Send>;
        map(path) -> Bytes;
        rename(from, to) -> ();
        hard_link(from, to) -> ();
        remove(path) -> ();
        create_dir(path) -> ();
        remove_dir(path) -> ();
        list(path) -> Vec<String>;
        sync_file(path) -> ();
        sync_dir(path) -> ();
        lock(path) -> Option<Lock>;
    }
}
