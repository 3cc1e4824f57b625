//! The state that the writer, the readers and the background threads of a store share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::time::Duration;

use crate::threads::lock;
use rayon::ThreadPool;

use super::snapshot::Snapshot;
use super::view::{Recent, View};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::manifest::{Manifest, SegmentEntry, log_name};
use crate::options::{BuildOptions, StoreOptions};
use crate::progress::{ProgressCallback, Steps};
use crate::segment::Segment;
use crate::threads::{self, Process};

/// Interval of asking a callback whether to continue waiting.
const ASKED_EVERY: Duration = Duration::from_millis(50);

/// State of the background work, for the threads that do it and the threads that wait for it.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// The store is being closed.
    pub(super) closing: bool,
    /// The first failed write: nothing is written after it.
    pub(super) failure: Option<String>,
}

/// Bytes and operations of a store since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes of log records.
    pub log_bytes: u64,
    /// Memtables that became segments.
    pub flushes: u64,
    /// Bytes of these segments.
    pub flush_bytes: u64,
    /// Merges of segments.
    pub compactions: u64,
    /// Bytes of the merged segments.
    pub compaction_bytes: u64,
}

pub(super) struct Shared<F: Fingerprint> {
    pub(super) path: PathBuf,
    /// The options' file system holds the lock of the folder.
    pub(super) options: StoreOptions,
    view: RwLock<Arc<View<F>>>,
    /// Held while the manifest is changed: one change at a time.
    changing: Mutex<()>,
    /// Held while segments are merged: one merge at a time.
    pub(super) merging: Mutex<()>,
    pub(super) work: Mutex<Work>,
    /// Signals a change of `work` or of the view.
    pub(super) changed: Condvar,
    /// The threads that write segments. They are separate, since all threads of a caller may be waiting for a
    /// segment.
    pool: ThreadPool,
    pub(super) next_number: AtomicU64,
    pub(super) written: Mutex<Written>,
    pub(super) process: Process,
}

/// Fails a store if the current thread panics.
struct Unwinding<'a, F: Fingerprint>(&'a Shared<F>);

impl<F: Fingerprint> Drop for Unwinding<'_, F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let source = std::io::Error::other("a thread in the background panicked");
            self.0.fail(&Error::io(&self.0.path, "flush or merge")(source));
        }
    }
}

/// A change of the list of segments.
pub(super) struct Change<F> {
    /// Numbers of the segments to remove.
    pub(super) removed: Vec<u64>,
    /// The new segment. It replaces the last removed one, or comes after all others.
    pub(super) added: Option<(SegmentEntry, Arc<Segment<F>>)>,
    /// Whether the oldest memtable has become a segment.
    pub(super) flushed: bool,
    /// The largest distance that queries may ask for.
    pub(super) distance: u32,
    /// The largest id of the new segment.
    pub(super) highest_id: Option<u64>,
}

impl<F: Fingerprint> Shared<F> {
    pub(super) fn new(
        path: PathBuf,
        options: StoreOptions,
        view: View<F>,
        next_number: u64,
        pool: ThreadPool,
    ) -> Self {
        Shared {
            path,
            pool,
            options,
            view: RwLock::new(Arc::new(view)),
            changing: Mutex::new(()),
            merging: Mutex::new(()),
            work: Mutex::default(),
            changed: Condvar::new(),
            next_number: AtomicU64::new(next_number),
            written: Mutex::default(),
            process: Process::this(),
        }
    }

    pub(super) fn view(&self) -> Arc<View<F>> {
        self.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn snapshot(&self) -> Snapshot<F> {
        Snapshot::new(self.view())
    }

    /// Adds a memtable for all writes from now on.
    pub(super) fn push_memtable(&self, recent: Recent<F>) {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let mut memtables = view.memtables.clone();
        memtables.push(recent);
        *view = Arc::new(View { memtables, ..View::clone(&view) });
        drop(view);
        self.tell();
    }

    /// Wakes all threads that wait for a change.
    pub(super) fn tell(&self) {
        drop(lock(&self.work));
        self.changed.notify_all();
    }

    /// Fails in a forked process. Called before any lock is taken: a lock that another thread held during the fork
    /// stays locked.
    pub(super) fn check_process(&self) -> Result<()> {
        if self.process.is_here() { Ok(()) } else { Err(Error::Forked { path: self.path.clone() }) }
    }

    /// Fails if nothing may be written any more.
    pub(super) fn check(&self) -> Result<()> {
        self.check_process()?;
        match &lock(&self.work).failure {
            Some(reason) => Err(Error::Poisoned { path: self.path.clone(), reason: reason.clone() }),
            None => Ok(()),
        }
    }

    /// Keeps the first failed write.
    pub(super) fn fail(&self, error: &Error) {
        lock(&self.work).failure.get_or_insert_with(|| error.to_string());
        self.changed.notify_all();
    }

    /// Runs work on the threads that write segments.
    pub(super) fn in_pool<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        if rayon::current_thread_index().is_none() {
            return self.pool.install(work);
        }
        // A thread of another pool would take other work of that pool while it waits. So a new thread waits instead.
        std::thread::scope(|scope| {
            let waiting = std::thread::Builder::new().spawn_scoped(scope, || self.pool.install(work));
            let done = waiting.map_err(threads::not_started)?.join();
            done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Runs the work of a background thread. If it panics, the store fails, and no thread waits for this one.
    pub(super) fn do_work(&self, work: impl FnOnce()) {
        let _guard = Unwinding(self);
        work();
    }

    /// Waits until all memtables except the last are segments, or the callback asks to stop.
    pub(super) fn wait_for_flush(&self, progress: Option<&ProgressCallback>) -> Result<()> {
        self.check_process()?;
        let mut work = lock(&self.work);
        while work.failure.is_none() && self.view().memtables.len() > 1 {
            work = self.wait(work, progress)?;
        }
        drop(work);
        self.check()
    }

    /// Waits for a change. With a callback, only for a while, and then asks whether to continue.
    pub(super) fn wait<'a>(
        &'a self,
        work: MutexGuard<'a, Work>,
        progress: Option<&ProgressCallback>,
    ) -> Result<MutexGuard<'a, Work>> {
        if progress.is_none() {
            return Ok(self.changed.wait(work).unwrap_or_else(PoisonError::into_inner));
        }
        let waited = self.changed.wait_timeout(work, ASKED_EVERY).unwrap_or_else(PoisonError::into_inner);
        // The callback may use the store, so the lock is released first.
        drop(waited);
        Steps::new(progress, 0).ask()?;
        Ok(lock(&self.work))
    }

    /// Waits until no other merge is running, or the callback asks to stop.
    pub(super) fn begin_merge(&self, progress: Option<&ProgressCallback>) -> Result<MutexGuard<'_, ()>> {
        if progress.is_none() {
            return Ok(lock(&self.merging));
        }
        loop {
            match self.merging.try_lock() {
                Ok(one) => return Ok(one),
                Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => drop(self.wait(lock(&self.work), progress)?),
            }
        }
    }

    pub(super) fn take_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// Removes the files of a segment that no manifest names. If a file cannot be removed, the next open removes it.
    pub(super) fn remove(&self, entry: &SegmentEntry) {
        entry.files().into_iter().for_each(|name| drop(self.options.fs.remove(&self.path.join(name))));
    }

    /// Options for building segments of the store.
    pub(super) fn build_options(&self, view: &View<F>, distance: u32) -> BuildOptions {
        let settings = &view.manifest.settings;
        BuildOptions {
            distance,
            codec: settings.codec,
            plan: settings.plan.at::<F>(distance),
            block_size: settings.block_size,
            span: settings.span,
            memory: self.options.memory,
            ids: settings.ids,
            fs: self.options.fs.clone(),
            ..BuildOptions::default()
        }
    }

    /// Makes a new list of segments durable, and then visible. Removes files that are no longer used.
    ///
    /// After an error it is unknown which list is on the disk, so nothing more is written.
    pub(super) fn change(&self, change: Change<F>) -> Result<()> {
        let _one = lock(&self.changing);
        self.check()?;
        self.replace_manifest(change).inspect_err(|error| self.fail(error))
    }

    fn replace_manifest(&self, change: Change<F>) -> Result<()> {
        let fs = &self.options.fs;
        let view = self.view();
        let mut manifest =
            Manifest { next_number: self.next_number.load(Ordering::Relaxed), ..view.manifest.clone() };
        manifest.settings.distance = change.distance;
        manifest.settings.plan = manifest.settings.plan.at::<F>(change.distance);
        manifest.highest_id = manifest.highest_id.max(change.highest_id);
        let is_removed = |number: u64| change.removed.contains(&number);
        let place = manifest.segments.iter().rposition(|entry| is_removed(entry.number));
        let kept_before = |i: usize| !is_removed(manifest.segments[i].number);
        let end = place.map_or(manifest.segments.len(), |last| last + 1);
        let place = (0..end).filter(|&i| kept_before(i)).count();
        let mut segments = view.segments.clone();
        segments.retain(|segment| !is_removed(segment.number()));
        let gone: Vec<SegmentEntry> =
            manifest.segments.iter().filter(|entry| is_removed(entry.number)).cloned().collect();
        manifest.segments.retain(|entry| !is_removed(entry.number));
        if let Some((entry, segment)) = change.added {
            manifest.segments.insert(place, entry);
            segments.insert(place, segment);
        }
        let mut logs = Vec::new();
        if change.flushed
            && let [first, next, ..] = &view.memtables[..]
            && let [first_log, ..] = next.logs[..]
        {
            (manifest.first_log, manifest.sequence) = (first_log, next.sequence);
            logs.clone_from(&first.logs);
        }
        fs.sync_dir(&self.path).map_err(Error::io(&self.path, "sync"))?;
        manifest.save(fs, &self.path)?;

        let mut current = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let flushed = usize::from(change.flushed);
        let memtables = current.memtables[flushed.min(current.memtables.len() - 1)..].to_vec();
        let manifest_bytes = manifest.encode().len() as u64;
        *current = Arc::new(View { manifest, manifest_bytes, segments, memtables, ..View::clone(&current) });
        drop(current);
        self.tell();

        // Readers may have the files open. If a file cannot be removed now, the next open removes it.
        let files = gone.iter().flat_map(SegmentEntry::files).chain(logs.into_iter().map(log_name));
        files.for_each(|name| drop(fs.remove(&self.path.join(name))));
        Ok(())
    }
}
