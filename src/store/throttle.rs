//! The disk as compaction in the background sees it: no faster than it may write, and at an end when the store is closed.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::shared::Shared;
use crate::fingerprint::Fingerprint;
use crate::fs::{Fs, Lock, SyncFile, WriteFile, delegate};
use crate::map::Bytes;
use crate::threads::lock;

pub(super) struct Throttle<F: Fingerprint> {
    shared: Arc<Shared<F>>,
    pace: Arc<Pace>,
}

/// When the next write is due.
struct Pace {
    bytes_per_second: Option<u64>,
    due: std::sync::Mutex<Instant>,
}

impl<F: Fingerprint> Throttle<F> {
    pub(super) fn new(shared: Arc<Shared<F>>) -> Self {
        let bytes_per_second = shared.options.compaction_rate.map(|rate| rate.max(1));
        Throttle {
            shared,
            pace: Arc::new(Pace { bytes_per_second, due: std::sync::Mutex::new(Instant::now()) }),
        }
    }

    fn disk(&self) -> &dyn Fs {
        &*self.shared.options.fs
    }
}

impl<F: Fingerprint> fmt::Debug for Throttle<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Throttle").finish_non_exhaustive()
    }
}

struct ThrottledFile<F: Fingerprint> {
    file: Box<dyn WriteFile>,
    shared: Arc<Shared<F>>,
    pace: Arc<Pace>,
}

/// The most bytes that are written between two looks at the clock.
const STEP: usize = 1 << 18;

impl<F: Fingerprint> Write for ThrottledFile<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut work = lock(&self.shared.work);
        if work.closing {
            return Err(io::Error::other("the store is being closed"));
        }
        if let Some(rate) = self.pace.bytes_per_second {
            loop {
                let now = Instant::now();
                let mut due = lock(&self.pace.due);
                let Some(wait) = due.checked_duration_since(now).filter(|wait| !wait.is_zero()) else {
                    let len = bytes.len().min(STEP) as f64;
                    *due = now + Duration::from_secs_f64(len / rate as f64);
                    break;
                };
                drop(due);
                let (again, _) =
                    self.shared.changed.wait_timeout(work, wait).unwrap_or_else(PoisonError::into_inner);
                work = again;
                if work.closing {
                    return Err(io::Error::other("the store is being closed"));
                }
            }
        }
        drop(work);
        self.file.write(&bytes[..bytes.len().min(STEP)])
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

impl<F: Fingerprint> Fs for Throttle<F> {
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let file = self.disk().create(path)?;
        Ok(Box::new(ThrottledFile { file, shared: self.shared.clone(), pace: self.pace.clone() }))
    }

    delegate! { self => self.disk();
        open(path) -> Box<dyn Read + Send>;
        map(path) -> Bytes;
        rename(from, to) -> ();
        remove(path) -> ();
        create_dir(path) -> ();
        remove_dir(path) -> ();
        list(path) -> Vec<String>;
        sync_file(path) -> ();
        sync_dir(path) -> ();
        lock(path) -> Option<Lock>;
    }
}
