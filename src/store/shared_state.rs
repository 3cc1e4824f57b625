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

/// Interval at which a waiting thread calls its progress callback, to check for cancellation.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// State of the background work, shared by the background threads and the threads that wait for them.
#[derive(Debug, Default)]
pub(super) struct BackgroundState {
    /// Whether the store is being closed.
    pub(super) is_closing: bool,
    /// Message of the first failed write. After a failure nothing more is written.
    pub(super) failure: Option<String>,
}

/// Bytes written, flushes and merges since a store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteStats {
    /// Size of the logs that are full, in bytes. The current log is not counted.
    pub log_bytes: u64,
    /// Number of memtables that were written as segments.
    pub flushes: u64,
    /// Size of these segments, in bytes.
    pub flush_bytes: u64,
    /// Number of merges of segments.
    pub compactions: u64,
    /// Size of the segments that merges have written, in bytes.
    pub compaction_bytes: u64,
}

pub(super) struct SharedState<F: Fingerprint> {
    pub(super) path: PathBuf,
    /// Options of the store. Their `fs` holds the lock of the folder.
    pub(super) options: StoreOptions,
    view: RwLock<Arc<View<F>>>,
    /// Held while the manifest is replaced, so that edits do not overlap.
    edit_lock: Mutex<()>,
    /// Held while segments are merged, so that merges do not overlap.
    pub(super) merge_lock: Mutex<()>,
    pub(super) background: Mutex<BackgroundState>,
    /// Notified when `background` or `view` has changed.
    pub(super) changed: Condvar,
    /// Threads that write segments. The caller's pool is not used, since all its threads may be waiting for a segment.
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

/// A change of the manifest: segments are removed or added.
pub(super) struct ManifestEdit<F> {
    /// Numbers of the removed segments.
    pub(super) removed: Vec<u64>,
    /// New segment. It takes the position of the last removed segment or, if none is removed, comes last.
    pub(super) added: Option<(SegmentEntry, Arc<Segment<F>>)>,
    /// Whether the edit is a flush. Then the oldest memtable and its logs are removed.
    pub(super) is_flush: bool,
    /// Largest distance of queries after the edit, in bits.
    pub(super) distance: u32,
    /// Largest id in the new segment. `None` if the manifest's highest id is at least as large, as after a merge.
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

    /// Adds a memtable, which takes all later writes.
    pub(super) fn push_memtable(&self, recent: MemtableRef<F>) {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let mut memtables = view.memtables.clone();
        memtables.push(recent);
        *view = Arc::new(View { memtables, ..View::clone(&view) });
        drop(view);
        self.notify();
    }

    /// Wakes all threads that wait for a change of the background state or of the view.
    pub(super) fn notify(&self) {
        drop(lock(&self.background));
        self.changed.notify_all();
    }

    /// Returns an error in a forked process. Must be called before any lock is taken: a lock that another thread held during
    /// the fork stays locked.
    pub(super) fn check_process(&self) -> Result<()> {
        if self.process.is_here() { Ok(()) } else { Err(Error::Forked { path: self.path.clone() }) }
    }

    /// Returns an error if an earlier write failed, or in a forked process.
    pub(super) fn check(&self) -> Result<()> {
        self.check_process()?;
        match &lock(&self.background).failure {
            Some(reason) => Err(Error::Poisoned { path: self.path.clone(), reason: reason.clone() }),
            None => Ok(()),
        }
    }

    /// Records a failed write, unless an earlier one is recorded, and wakes all waiting threads.
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

    /// Runs the work of a background thread. If it panics, the store is marked as failed, so that no thread waits for it.
    pub(super) fn run_guarded(&self, work: impl FnOnce()) {
        let _guard = PanicGuard(self);
        work();
    }

    /// Waits until all frozen memtables are flushed, or the callback cancels.
    pub(super) fn wait_for_flush(&self, progress: Option<&ProgressCallback>) -> Result<()> {
        self.check_process()?;
        let mut state = lock(&self.background);
        while state.failure.is_none() && self.view().memtables.len() > 1 {
            state = self.wait(state, progress)?;
        }
        drop(state);
        self.check()
    }

    /// Waits for a change of the background state or of the view. If there is a callback, waits at most
    /// [`CANCEL_CHECK_INTERVAL`], then calls it to check for cancellation.
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

    /// Takes the merge lock. Waits until no other merge is running, or the callback cancels.
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

    /// Removes the files of a segment that is not in the manifest. If a file cannot be removed, the next open removes it.
    pub(super) fn remove_files(&self, entry: &SegmentEntry) {
        entry.file_names().into_iter().for_each(|name| drop(self.options.fs.remove(&self.path.join(name))));
    }

    /// Returns the options for building a segment of the store, for queries up to `distance`.
    pub(super) fn build_options(&self, view: &View<F>, distance: u32) -> BuildOptions {
        let settings = &view.manifest.settings;
        BuildOptions {
            distance,
            codec: settings.codec,
            plan: settings.plan.or_auto::<F>(distance),
            block_size: settings.block_size,
            span: settings.span,
            memory: self.options.memory,
            ids: settings.has_ids,
            fs: self.options.fs.clone(),
            ..BuildOptions::default()
        }
    }

    /// Makes an edited list of segments durable, and then visible. Removes files that are no longer used.
    ///
    /// After an error, the disk may have the old or the new list, so the store is marked as failed.
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
        manifest.settings.distance = edit.distance;
        manifest.settings.plan = manifest.settings.plan.or_auto::<F>(edit.distance);
        manifest.highest_id = manifest.highest_id.max(edit.highest_id);
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
