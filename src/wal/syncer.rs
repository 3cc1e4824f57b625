//! Group commit: one sync for all threads that wait for durability.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::fs::SyncFile;

/// Makes a log durable. If several threads wait for durability, the first one syncs for all of them.
pub(crate) struct LogSyncer {
    path: PathBuf,
    file: Box<dyn SyncFile>,
    /// Length of the part of the log that the operating system has received, in bytes.
    written: AtomicU64,
    /// Length of the part of the log that is known to be durable, in bytes.
    durable: AtomicU64,
    state: Mutex<SyncState>,
    /// Notified when a sync has ended.
    ended: Condvar,
    /// Notified when a thread has called [`LogSyncer::sync_to`]. Before a sync, the syncing thread waits here for others.
    joined: Condvar,
}

#[derive(Default)]
struct SyncState {
    /// Whether a thread is syncing, or is waiting for other threads before its sync.
    syncing: bool,
    /// Length in bytes of the part of the log that the current or last sync covers.
    target: u64,
    /// Number of threads that wait for the current sync, or waited for the last one.
    sharing: usize,
    /// Number of threads that wait for the next sync.
    waiting: usize,
    /// Number of threads that the next sync waits for: the threads that shared the last sync, and those that called
    /// [`LogSyncer::sync_to`] during it.
    expected: usize,
    /// Error of a failed sync. After it, the contents of the disk are unknown, and another sync could succeed without
    /// writing the lost data.
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
            joined: Condvar::new(),
        }
    }

    pub(super) fn set_written(&self, len: u64) {
        self.written.store(len, Ordering::Release);
    }

    /// Returns the length of the part of the log that is known to be durable, in bytes.
    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Returns once the first `len` bytes of the log are durable. If no other thread is syncing the log, this thread
    /// syncs it. Before the sync, it waits, but at most for `delay`, until the other threads that waited during the last
    /// sync have called this function again. So a single thread never waits. A failed sync is never retried: this call
    /// and all later calls for bytes that are not durable return its error.
    pub(crate) fn sync_to(&self, len: u64, delay: Duration) -> Result<()> {
        if len > self.written.load(Ordering::Acquire) {
            let path = self.path.display();
            return Err(Error::Bug(format!("{path}: {len} bytes are to be synced before they are written")));
        }
        let mut state = self.lock();
        if self.durable() < len {
            if len <= state.target {
                state.sharing += 1;
            } else {
                state.waiting += 1;
            }
            if delay.is_zero() {
                // A thread without a delay ends the waiting for more threads.
                state.expected = 0;
            }
            self.joined.notify_one();
        }
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
            self.sync(state, delay);
            state = self.lock();
        }
    }

    /// Waits for other threads to join this sync, and then syncs the file. Only one thread is in this function at
    /// a time.
    fn sync(&self, state: MutexGuard<'_, SyncState>, delay: Duration) {
        let is_incomplete = |state: &mut SyncState| state.waiting < state.expected;
        let collected = self.joined.wait_timeout_while(state, delay, is_incomplete);
        let (mut state, _) = collected.unwrap_or_else(PoisonError::into_inner);
        // Only what was written before the sync began is certain to be covered by it.
        let written = self.written.load(Ordering::Acquire);
        state.target = written;
        state.sharing = std::mem::take(&mut state.waiting);
        drop(state);
        // If the file's sync panics, the round counts as failed, so that no thread waits forever.
        let mut round = SyncRound { syncer: self, result: Err(io::Error::other("the sync was interrupted")) };
        round.result = self.file.sync().map(|()| written);
    }

    fn lock(&self) -> MutexGuard<'_, SyncState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running sync. Dropping it stores the result and wakes all waiting threads.
struct SyncRound<'a> {
    syncer: &'a LogSyncer,
    result: io::Result<u64>,
}

impl Drop for SyncRound<'_> {
    fn drop(&mut self) {
        let mut state = self.syncer.lock();
        state.syncing = false;
        state.expected = state.sharing + state.waiting;
        match &self.result {
            Ok(durable) => self.syncer.durable.store(*durable, Ordering::Release),
            Err(error) => {
                let reason = format!("{error}; recent writes may be lost: open the store again");
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
    use std::thread;

    use super::*;

    const FAILS_NEXT: usize = usize::MAX;

    /// A file whose syncs take 1 ms. At the start of each sync, it records the number of bytes written.
    #[derive(Default)]
    struct CountingFile {
        written: AtomicU64,
        covered: AtomicU64,
        syncs: AtomicUsize,
    }

    impl SyncFile for Arc<CountingFile> {
        fn sync(&self) -> io::Result<()> {
            if self.syncs.load(Ordering::SeqCst) == FAILS_NEXT {
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

    fn counting() -> (Arc<CountingFile>, LogSyncer) {
        let file = Arc::new(CountingFile::default());
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
        file.syncs.store(FAILS_NEXT, Ordering::SeqCst);
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
        // Bytes that were durable before still are, and the file was not synced again.
        syncer.sync_to(8, Duration::ZERO).unwrap();
        assert_eq!((syncer.durable(), file.syncs.load(Ordering::SeqCst)), (8, 0));
    }

    #[test]
    fn a_sync_that_panics_leaves_nobody_waiting() {
        struct PanickingFile;
        impl SyncFile for PanickingFile {
            fn sync(&self) -> io::Result<()> {
                panic!("on purpose")
            }
        }
        let syncer = LogSyncer::new(Path::new("000001.log"), Box::new(PanickingFile), 8);
        thread::scope(|scope| assert!(scope.spawn(|| syncer.sync_to(8, Duration::ZERO)).join().is_err()));
        assert!(syncer.sync_to(8, Duration::ZERO).is_err());
    }

    /// A delay that never ends during a test.
    const UNLIMITED_DELAY: Duration = Duration::from_secs(1 << 40);

    #[test]
    fn who_is_alone_waits_for_nobody() {
        let (file, syncer) = counting();
        for len in 1..=50 {
            syncer.set_written(len);
            syncer.sync_to(len, UNLIMITED_DELAY).unwrap();
            assert_eq!(file.syncs.load(Ordering::SeqCst) as u64, len);
        }
    }

    /// A file whose syncs block until they are released.
    #[derive(Default)]
    struct BlockingFile {
        /// Number of syncs that have begun, and number of syncs that may end.
        syncs: Mutex<(u32, u32)>,
        changed: Condvar,
    }

    impl BlockingFile {
        fn await_begun(&self, count: u32) {
            let syncs = self.syncs.lock().unwrap();
            drop(self.changed.wait_while(syncs, |syncs| syncs.0 < count).unwrap());
        }

        fn let_end(&self, count: u32) {
            self.syncs.lock().unwrap().1 = count;
            self.changed.notify_all();
        }

        fn begun(&self) -> u32 {
            self.syncs.lock().unwrap().0
        }
    }

    impl SyncFile for Arc<BlockingFile> {
        fn sync(&self) -> io::Result<()> {
            let mut syncs = self.syncs.lock().unwrap();
            syncs.0 += 1;
            let this = syncs.0;
            self.changed.notify_all();
            drop(self.changed.wait_while(syncs, |syncs| syncs.1 < this).unwrap());
            Ok(())
        }
    }

    fn held() -> (Arc<BlockingFile>, LogSyncer) {
        let file = Arc::new(BlockingFile::default());
        (file.clone(), LogSyncer::new(Path::new("000001.log"), Box::new(file), 0))
    }

    /// Waits until the state of the syncer fulfils a condition.
    fn await_state(syncer: &LogSyncer, reached: impl Fn(&SyncState) -> bool) {
        while !reached(&syncer.lock()) {
            thread::yield_now();
        }
    }

    /// Asserts that a thread that calls `sync_to` during the sync of another thread waits until the other thread calls
    /// `sync_to` again, and that both then share the next sync. If the next call is a third thread's, without a delay,
    /// the wait ends and the sync starts at once.
    #[test]
    fn who_is_not_alone_waits_for_the_others() {
        for third in [false, true] {
            let (file, syncer) = held();
            let write = |len: u64, delay| {
                syncer.set_written(len);
                syncer.sync_to(len, delay).unwrap();
            };
            thread::scope(|scope| {
                let first = scope.spawn(|| write(8, UNLIMITED_DELAY));
                file.await_begun(1);
                let second = scope.spawn(|| write(16, UNLIMITED_DELAY));
                await_state(&syncer, |state| state.waiting == 1);
                file.let_end(1);
                first.join().unwrap();
                await_state(&syncer, |state| state.syncing && state.expected == 2);
                assert_eq!((file.begun(), syncer.durable()), (1, 8));
                file.let_end(2);
                write(24, if third { Duration::ZERO } else { UNLIMITED_DELAY });
                second.join().unwrap();
            });
            assert_eq!((file.begun(), syncer.durable()), (2, 24));
        }
    }

    /// Asserts that a sync waits up to its delay for the threads that shared the last sync. If they do not call `sync_to`
    /// in this time, the next sync does not wait for them again.
    #[test]
    fn who_went_away_is_waited_for_once() {
        let (file, syncer) = held();
        syncer.set_written(8);
        syncer.lock().expected = 3;
        file.let_end(u32::MAX);
        syncer.sync_to(8, Duration::from_millis(1)).unwrap();
        assert_eq!(syncer.lock().expected, 1);
        syncer.set_written(16);
        syncer.sync_to(16, UNLIMITED_DELAY).unwrap();
        assert_eq!((file.begun(), syncer.durable()), (2, 16));
    }
}
