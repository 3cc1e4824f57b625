//! Group commit: one sync for all who wait for one.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::fs::SyncFile;

/// Makes a log durable, shared by all threads that wait for it: whoever comes first syncs for all who wait.
pub(crate) struct LogSyncer {
    path: PathBuf,
    file: Box<dyn SyncFile>,
    /// Bytes handed to the operating system.
    written: AtomicU64,
    /// Bytes known to be durable.
    durable: AtomicU64,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    syncing: bool,
    /// Why a sync failed. What the disk holds is unknown from then on, and another sync could succeed without it.
    failure: Option<(io::ErrorKind, String)>,
}

impl LogSyncer {
    pub(super) fn new(path: &Path, file: Box<dyn SyncFile>, written: u64) -> LogSyncer {
        LogSyncer {
            path: path.to_path_buf(),
            file,
            written: AtomicU64::new(written),
            durable: AtomicU64::new(0),
            state: Mutex::default(),
            ended: Condvar::new(),
        }
    }

    pub(super) fn set_written(&self, len: u64) {
        self.written.store(len, Ordering::Release);
    }

    /// Bytes known to be durable.
    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Returns once the first `len` bytes are durable. If nobody is syncing, this thread does so, after `delay` for
    /// others to join. A failed sync is never retried: it fails for everyone who waits, now and later.
    pub(crate) fn sync_to(&self, len: u64, delay: Duration) -> Result<()> {
        if len > self.written.load(Ordering::Acquire) {
            let path = self.path.display();
            return Err(Error::Bug(format!("{path}: {len} bytes are to be synced before they are written")));
        }
        let mut state = self.lock();
        loop {
            if self.durable() >= len {
                return Ok(());
            }
            if let Some((kind, reason)) = &state.failure {
                return Err(Error::io(&self.path, "sync")(io::Error::new(*kind, reason.clone())));
            }
            if state.syncing {
                state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.syncing = true;
            drop(state);
            self.sync(delay);
            state = self.lock();
        }
    }

    /// Syncs, as the only thread that does.
    fn sync(&self, delay: Duration) {
        // If the file's sync panics, this one counts as failed and nobody waits for ever.
        let mut round = Round { syncer: self, outcome: Err(io::Error::other("the sync was cut off")) };
        if !delay.is_zero() {
            thread::sleep(delay);
        }
        // Only what was written before the sync began is certain to be covered by it.
        let written = self.written.load(Ordering::Acquire);
        round.outcome = self.file.sync().map(|()| written);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sync under way; its end is told to all who wait.
struct Round<'a> {
    syncer: &'a LogSyncer,
    outcome: io::Result<u64>,
}

impl Drop for Round<'_> {
    fn drop(&mut self) {
        let mut state = self.syncer.lock();
        state.syncing = false;
        match &self.outcome {
            Ok(durable) => self.syncer.durable.store(*durable, Ordering::Release),
            Err(error) => {
                let reason = format!("{error}; what was written may be lost: open the store again");
                state.failure = Some((error.kind(), reason));
            }
        }
        self.syncer.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    const FAILS: usize = usize::MAX;

    /// A file of which every sync takes a while. It knows how many bytes a caller had written when the sync began.
    #[derive(Default)]
    struct Counting {
        written: AtomicU64,
        covered: AtomicU64,
        syncs: AtomicUsize,
    }

    impl SyncFile for Arc<Counting> {
        fn sync(&self) -> io::Result<()> {
            if self.syncs.load(Ordering::SeqCst) == FAILS {
                thread::sleep(Duration::from_millis(20));
                self.syncs.store(0, Ordering::SeqCst);
                return Err(io::Error::other("the disk is on fire"));
            }
            let begun = self.written.load(Ordering::SeqCst);
            thread::sleep(Duration::from_millis(1));
            self.covered.fetch_max(begun, Ordering::SeqCst);
            self.syncs.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    }

    fn counting() -> (Arc<Counting>, LogSyncer) {
        let file = Arc::new(Counting::default());
        (file.clone(), LogSyncer::new(Path::new("000001.log"), Box::new(file), 0))
    }

    #[test]
    fn one_sync_serves_all_who_wait() {
        for delay in [Duration::ZERO, Duration::from_millis(2)] {
            let (file, syncer) = counting();
            let append = Mutex::new(());
            let (threads, each) = (8, 40);
            thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        for _ in 0..each {
                            let appending = append.lock().unwrap();
                            let len = file.written.fetch_add(8, Ordering::SeqCst) + 8;
                            syncer.set_written(len);
                            drop(appending);
                            syncer.sync_to(len, delay).unwrap();
                            assert!(file.covered.load(Ordering::SeqCst) >= len);
                            assert!(syncer.durable() >= len);
                        }
                    });
                }
            });
            let syncs = file.syncs.load(Ordering::SeqCst);
            assert!((each..=threads * each).contains(&syncs), "{syncs}");
            assert!(syncs < threads * each / 2, "{syncs} syncs of {} appends", threads * each);
        }
    }

    #[test]
    fn a_failed_sync_fails_for_all_now_and_later() {
        let (file, syncer) = counting();
        syncer.set_written(8);
        syncer.sync_to(8, Duration::ZERO).unwrap();
        file.syncs.store(FAILS, Ordering::SeqCst);
        syncer.set_written(16);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let error = syncer.sync_to(16, Duration::ZERO).unwrap_err().to_string();
                    assert!(error.contains("000001.log: cannot sync: the disk is on fire"), "{error}");
                });
            }
        });
        syncer.set_written(24);
        assert!(syncer.sync_to(24, Duration::ZERO).is_err());
        // What was durable before still is, and the file was not synced again.
        syncer.sync_to(8, Duration::ZERO).unwrap();
        assert_eq!((syncer.durable(), file.syncs.load(Ordering::SeqCst)), (8, 0));
    }

    #[test]
    fn a_sync_that_panics_leaves_nobody_waiting() {
        struct Panics;
        impl SyncFile for Panics {
            fn sync(&self) -> io::Result<()> {
                panic!("on purpose")
            }
        }
        let syncer = LogSyncer::new(Path::new("000001.log"), Box::new(Panics), 8);
        thread::scope(|scope| assert!(scope.spawn(|| syncer.sync_to(8, Duration::ZERO)).join().is_err()));
        assert!(syncer.sync_to(8, Duration::ZERO).is_err());
    }
}
