//! [`SharedState`]: the state that the writer, the readers and the background threads of a store share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::time::Duration;

use crate::threads::lock;
use rayon::ThreadPool;

use super::snapshot::Snapshot;
use super::view::{MemtableRef, View};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::manifest::{Manifest, SegmentEntry, log_file_name};
use crate::options::{BuildOptions, StoreOptions};
use crate::progress::{ProgressCallback, ProgressCounter};
use crate::segment::Segment;
use crate::threads::{self, Process};

/// Maximum time between two calls of a progress callback while its thread waits. Each call can cancel the wait.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// State of the background work (flushes and merges), shared by the background threads and the threads that wait for
/// them.
#[derive(Debug, Default)]
pub(super) struct BackgroundState {
    /// Whether the store is being closed.
    pub(super) is_closing: bool,
    /// Error message of the first failed write, if a write has failed. After a failure nothing more is written.
    pub(super) failure: Option<String>,
}

/// Numbers of written bytes, flushes (memtables written as segments) and merges since a store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteStats {
    /// Total size of the logs that this process has written and then replaced by a newer log, in bytes. The current log is
    /// not counted.
    pub log_bytes: u64,
    /// Number of memtables that were written as segments.
    pub flushes: u64,
    /// Total size of the segments that flushes have written, in bytes.
    pub flush_bytes: u64,
    /// Number of merges of segments.
    pub compactions: u64,
    /// Total size of the segments that merges have written, in bytes.
    pub compaction_bytes: u64,
}

pub(super) struct SharedState<F: Fingerprint> {
    pub(super) path: PathBuf,
    /// Options with which the store was opened. The file system `options.fs` holds the lock of the store's folder.
    pub(super) options: StoreOptions,
    view: RwLock<Arc<View<F>>>,
    /// Lock that is held while the manifest is replaced, so that edits of the manifest do not overlap.
    edit_lock: Mutex<()>,
    /// Lock that is held while segments are merged, so that merges do not overlap.
    pub(super) merge_lock: Mutex<()>,
    pub(super) background: Mutex<BackgroundState>,
    /// Notified when `background` or `view` has changed.
    pub(super) changed: Condvar,
    /// Threads that write segments. They are not threads of the caller's pool, because all of those may be waiting for a
    /// segment.
    pool: ThreadPool,
    pub(super) next_number: AtomicU64,
    pub(super) write_stats: Mutex<WriteStats>,
    pub(super) process: Process,
}

/// Guard that marks the store as failed if the current thread panics.
struct PanicGuard<'a, F: Fingerprint>(&'a SharedState<F>);

impl<F: Fingerprint> Drop for PanicGuard<'_, F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let source = std::io::Error::other("a thread in the background panicked");
            self.0.fail(&Error::io(&self.0.path, "flush or merge")(source));
        }
    }
}

/// A change of the manifest by a flush, a merge or a bulk load: the segments that it removes, and the one that it adds.
pub(super) struct ManifestEdit<F> {
    /// File numbers of the removed segments.
    pub(super) removed: Vec<u64>,
    /// New segment. It takes the position of the last removed segment or, if none is removed, comes last.
    pub(super) added: Option<(SegmentEntry, Arc<Segment<F>>)>,
    /// Whether the change is a flush. If so, the oldest memtable and its logs are removed, because the new segment has
    /// their contents.
    pub(super) is_flush: bool,
    /// Largest distance that queries may ask for after the change, in bits.
    pub(super) distance: u32,
    /// Largest id of the flushed or loaded pairs, even if the pair with this id has been deleted. `None` if there is no new
    /// id, as after a merge.
    pub(super) highest_id: Option<u64>,
}

impl<F: Fingerprint> SharedState<F> {
    pub(super) fn new(
        path: PathBuf,
        options: StoreOptions,
        view: View<F>,
        next_number: u64,
        pool: ThreadPool,
    ) -> Self {
        SharedState {
            path,
            pool,
            options,
            view: RwLock::new(Arc::new(view)),
            edit_lock: Mutex::new(()),
            merge_lock: Mutex::new(()),
            background: Mutex::default(),
            changed: Condvar::new(),
            next_number: AtomicU64::new(next_number),
            write_stats: Mutex::default(),
            process: Process::this(),
        }
    }

    pub(super) fn view(&self) -> Arc<View<F>> {
        self.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn snapshot(&self) -> Snapshot<F> {
        Snapshot::new(self.view())
    }

    /// Adds an empty memtable, which takes all later writes, to the current [`View`].
    pub(super) fn push_memtable(&self, recent: MemtableRef<F>) {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let mut memtables = view.memtables.clone();
        memtables.push(recent);
        *view = Arc::new(View { memtables, ..View::clone(&view) });
        drop(view);
        self.notify();
    }

    /// Wakes all threads that wait for a change of the [`BackgroundState`] or of the [`View`].
    pub(super) fn notify(&self) {
        drop(lock(&self.background));
        self.changed.notify_all();
    }

    /// Returns an error if this process was forked after the store was opened. Must be called before any lock is taken,
    /// because a lock that another thread held during the fork stays locked forever in this process.
    pub(super) fn check_process(&self) -> Result<()> {
        if self.process.is_here() { Ok(()) } else { Err(Error::Forked { path: self.path.clone() }) }
    }

    /// Returns an error if an earlier write failed, or if this process was forked after the store was opened.
    pub(super) fn check(&self) -> Result<()> {
        self.check_process()?;
        match &lock(&self.background).failure {
            Some(reason) => Err(Error::Poisoned { path: self.path.clone(), reason: reason.clone() }),
            None => Ok(()),
        }
    }

    /// Records the error of a failed write, unless an earlier error is recorded, and wakes all waiting threads.
    pub(super) fn fail(&self, error: &Error) {
        lock(&self.background).failure.get_or_insert_with(|| error.to_string());
        self.changed.notify_all();
    }

    /// Runs `work` on the pool of threads that write segments.
    pub(super) fn in_pool<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        if rayon::current_thread_index().is_none() {
            return self.pool.install(work);
        }
        // A waiting thread of another rayon pool would run other tasks of that pool meanwhile. So a new thread waits instead.
        std::thread::scope(|scope| {
            let waiting = std::thread::Builder::new().spawn_scoped(scope, || self.pool.install(work));
            let done = waiting.map_err(threads::not_started)?.join();
            done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Runs the work of a background thread. If the work panics, the store is marked as failed. Then threads that wait for
    /// the work get an error.
    pub(super) fn run_guarded(&self, work: impl FnOnce()) {
        let _guard = PanicGuard(self);
        work();
    }

    /// Waits until all frozen memtables (those that take no more writes) are flushed. Returns an error if the callback cancels.
    pub(super) fn wait_for_flush(&self, progress: Option<&ProgressCallback>) -> Result<()> {
        self.check_process()?;
        let mut state = lock(&self.background);
        while state.failure.is_none() && self.view().memtables.len() > 1 {
            state = self.wait(state, progress)?;
        }
        drop(state);
        self.check()
    }

    /// Waits for a change of the [`BackgroundState`] or of the [`View`]. With a callback, waits at most
    /// [`CANCEL_CHECK_INTERVAL`], then calls the callback, which can cancel. `state` is the guard of the background state;
    /// the lock is released while this thread waits.
    pub(super) fn wait<'a>(
        &'a self,
        state: MutexGuard<'a, BackgroundState>,
        progress: Option<&ProgressCallback>,
    ) -> Result<MutexGuard<'a, BackgroundState>> {
        if progress.is_none() {
            return Ok(self.changed.wait(state).unwrap_or_else(PoisonError::into_inner));
        }
        let waited =
            self.changed.wait_timeout(state, CANCEL_CHECK_INTERVAL).unwrap_or_else(PoisonError::into_inner);
        // The callback may use the store, so the lock is released first.
        drop(waited);
        ProgressCounter::new(progress, 0).check_cancelled()?;
        Ok(lock(&self.background))
    }

    /// Waits until no other merge is running, and takes the merge lock. Returns an error if the callback cancels.
    pub(super) fn lock_merge(&self, progress: Option<&ProgressCallback>) -> Result<MutexGuard<'_, ()>> {
        if progress.is_none() {
            return Ok(lock(&self.merge_lock));
        }
        loop {
            match self.merge_lock.try_lock() {
                Ok(one) => return Ok(one),
                Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => drop(self.wait(lock(&self.background), progress)?),
            }
        }
    }

    pub(super) fn allocate_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// Removes the files of a segment that is not in the manifest. Ignores errors, because files that remain are removed
    /// when the store is opened for writing again.
    pub(super) fn remove_files(&self, entry: &SegmentEntry) {
        entry.file_names().into_iter().for_each(|name| drop(self.options.fs.remove(&self.path.join(name))));
    }

    /// Returns the options for building a segment of the store, whose tables answer queries up to `distance` bits.
    pub(super) fn build_options(&self, view: &View<F>, distance: u32) -> BuildOptions {
        view.build_options(distance, self.options.memory, &self.options.fs)
    }

    /// Applies a change to the manifest: makes the new list of segments durable, and then visible. Removes files that are no
    /// longer used.
    ///
    /// After an error, the manifest on the disk may be the old or the new one, so the store is marked as failed.
    pub(super) fn apply_edit(&self, edit: ManifestEdit<F>) -> Result<()> {
        let _guard = lock(&self.edit_lock);
        self.check()?;
        self.replace_manifest(edit).inspect_err(|error| self.fail(error))
    }

    fn replace_manifest(&self, edit: ManifestEdit<F>) -> Result<()> {
        let fs = &self.options.fs;
        let view = self.view();
        let mut manifest =
            Manifest { next_number: self.next_number.load(Ordering::Relaxed), ..view.manifest.clone() };
        // As long as the distance stays, a plan that this version does not know stays in the manifest.
        if manifest.settings.distance != edit.distance {
            manifest.settings.distance = edit.distance;
            manifest.settings.plan = manifest.settings.plan.or_auto::<F>(edit.distance);
        }
        if manifest.settings.has_ids {
            manifest.highest_id = manifest.highest_id.max(edit.highest_id);
        }
        let is_removed = |number: u64| edit.removed.contains(&number);
        let last_removed = manifest.segments.iter().rposition(|entry| is_removed(entry.number));
        let is_kept = |i: usize| !is_removed(manifest.segments[i].number);
        let end = last_removed.map_or(manifest.segments.len(), |last| last + 1);
        let index = (0..end).filter(|&i| is_kept(i)).count();
        let mut segments = view.segments.clone();
        segments.retain(|segment| !is_removed(segment.number()));
        let removed_entries: Vec<SegmentEntry> =
            manifest.segments.iter().filter(|entry| is_removed(entry.number)).cloned().collect();
        manifest.segments.retain(|entry| !is_removed(entry.number));
        if let Some((entry, segment)) = edit.added {
            manifest.segments.insert(index, entry);
            segments.insert(index, segment);
        }
        let mut logs = Vec::new();
        if edit.is_flush
            && let [first, next, ..] = &view.memtables[..]
            && let [first_log, ..] = next.log_numbers[..]
        {
            (manifest.first_log, manifest.first_sequence) = (first_log, next.first_sequence);
            logs.clone_from(&first.log_numbers);
        }
        fs.sync_dir(&self.path).map_err(Error::io(&self.path, "sync"))?;
        manifest.save(fs, &self.path)?;

        let mut current = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let flushed = usize::from(edit.is_flush);
        let memtables = current.memtables[flushed.min(current.memtables.len() - 1)..].to_vec();
        let manifest_bytes = manifest.encode().len() as u64;
        *current = Arc::new(View { manifest, manifest_bytes, segments, memtables, ..View::clone(&current) });
        drop(current);
        self.notify();

        // Readers may still have these files open. If a file cannot be removed now, the next open removes it.
        let files = removed_entries
            .iter()
            .flat_map(SegmentEntry::file_names)
            .chain(logs.into_iter().map(log_file_name));
        files.for_each(|name| drop(fs.remove(&self.path.join(name))));
        Ok(())
    }
}
