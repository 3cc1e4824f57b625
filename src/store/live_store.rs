//! [`Store`]: a store that is open for writing.

use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

use super::bulk_load::BulkLoad;
use super::merge::MergeMode;
use super::open;
use super::shared_state::{SharedState, WriteStats};
use super::snapshot::Snapshot;
use super::writer::{Insertion, StoreWriter, Transaction};
use super::{flush, merge};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::options::{Durability, StoreOptions, check_memory};
use crate::progress::ProgressCallback;
use crate::segment::Match;
use crate::threads::lock;
use crate::threads::{self, IdleThread};

/// Options of [`Store::compact_with`]: the query distance, and a callback.
#[derive(Clone, Debug, Default)]
pub struct CompactOptions {
    /// Largest distance that queries may ask for after the compaction, in bits. `None` leaves the store's distance unchanged.
    pub distance: Option<u32>,
    /// Callback that receives the progress of the merge, and can cancel the merge.
    pub progress: Option<ProgressCallback>,
}

/// A store that takes inserts and deletes from any number of threads, and answers queries at the same time.
///
/// One process at a time may open a store for writing. Any number of processes may read it by [`Snapshot::open`]. A
/// forked process does not inherit the threads of an open store, so writes and queries by this type fail there with
/// [`Error::Forked`]. A [`Snapshot`] can be read in a forked process.
///
/// ```
/// use simstore::{Insertion, StoreOptions, Store};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("pages");
/// let store = Store::<u64>::open(&path, StoreOptions { distance: Some(3), ..StoreOptions::default() })?;
/// store.insert(0x0123_4567_89ab_cdef, 1)?;
/// let Insertion::DuplicateOf(matches) = store.insert_if_new(0x0123_4567_89ab_cdee, 2)? else { panic!() };
/// assert_eq!((matches[0].id, matches[0].distance), (Some(1), 1));
/// assert!(store.delete(0x0123_4567_89ab_cdef, 1)?);
/// assert_eq!(store.insert_if_new(0x0123_4567_89ab_cdee, 2)?, Insertion::Inserted);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Store<F: Fingerprint> {
    shared: Arc<SharedState<F>>,
    writer: StoreWriter<F>,
    workers: Vec<JoinHandle<()>>,
    torn_tail: Option<Error>,
}

impl<F: Fingerprint> std::fmt::Debug for Store<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

impl<F: Fingerprint> Store<F> {
    /// Opens a store for writing, or creates it. Recovers the contents of its logs. If the logs are many or long, their
    /// contents are flushed to a segment in the background.
    ///
    /// A program that often opens a store for a short while should call [`Store::wait_for_background`] before it
    /// drops the store: an interrupted merge starts again from the beginning.
    ///
    /// # Errors
    /// [`Error::Locked`] if this process or another one has the store open for writing. [`Error::Setting`] if an
    /// option differs from the store's setting. [`Error::NotAStore`] if the path is not a store, or if it does not
    /// exist and `create` is not set. Also the errors of [`Snapshot::open`].
    pub fn open(path: &Path, options: StoreOptions) -> Result<Self> {
        check_memory(options.memory)?;
        // The threads are started first: if that fails, nothing has been written.
        let flushing = IdleThread::start_threads("simstore flush")?;
        let merging =
            if options.compaction { Some(IdleThread::start_threads("simstore compaction")?) } else { None };
        let pool = threads::pool("simstore segments")?;
        let opened = open::open::<F>(path, &options)?;
        let distance = opened.view.manifest.settings.distance;
        let options = StoreOptions { fs: opened.fs, ..options };
        let shared = SharedState::new(path.to_path_buf(), options, opened.view, opened.next_number, pool);
        let shared = Arc::new(shared);
        let writer = StoreWriter::new(shared.clone(), opened.log, distance);
        let torn_tail = opened.torn_tail;
        let mut workers = Vec::new();
        let flushed = shared.clone();
        workers.push(flushing.run(move || flushed.run_guarded(|| flush::run_worker(&flushed))));
        if let Some(merging) = merging {
            let merged = shared.clone();
            workers.push(merging.run(move || merged.run_guarded(|| merge::run_worker(&merged))));
        }
        Ok(Store { shared, writer, workers, torn_tail })
    }

    /// Adds a fingerprint with an id. Adding the same pair again changes nothing. A fingerprint may have any number
    /// of ids. Like the other writes without a `durability` argument, it uses [`StoreOptions::durability`].
    ///
    /// # Errors
    /// [`Error::Poisoned`] after a write has failed, [`Error::Io`] if this one fails.
    pub fn insert(&self, fingerprint: F, id: u64) -> Result<()> {
        let mut transaction = self.transaction();
        transaction.insert(fingerprint, id);
        transaction.commit(self.shared.options.durability)
    }

    /// Like [`Store::insert`], for a document with a name of up to 64 KiB.
    ///
    /// # Errors
    /// Errors of [`Store::insert`]; [`Error::BadArgument`] if the name is longer than 64 KiB.
    pub fn insert_named(&self, fingerprint: F, id: u64, name: &str) -> Result<()> {
        let mut transaction = self.transaction();
        transaction.insert_named(fingerprint, id, name)?;
        transaction.commit(self.shared.options.durability)
    }

    /// Like [`Store::insert`], but inserts nothing if a fingerprint within the store's distance is stored already. The
    /// check and the insert are one atomic step. For a document with a name, see [`Transaction::commit_if_new`].
    ///
    /// # Errors
    /// Errors of [`Store::insert`] and of [`Snapshot::query`].
    pub fn insert_if_new(&self, fingerprint: F, id: u64) -> Result<Insertion<F>> {
        let mut transaction = self.transaction();
        transaction.insert(fingerprint, id);
        transaction.commit_if_new(self.shared.options.durability)
    }

    /// Removes a pair of fingerprint and id. Returns whether the pair was stored. In a store without ids, removes the
    /// fingerprint. Like [`Transaction::delete`], also removes the [name](Transaction::insert_named) and the
    /// [note](Transaction::set_note) of the id.
    ///
    /// # Errors
    /// Errors of [`Store::insert`] and of [`Snapshot::contains_pair`].
    pub fn delete(&self, fingerprint: F, id: u64) -> Result<bool> {
        Ok(self.delete_all(&[(fingerprint, id)], self.shared.options.durability)? == [true])
    }

    /// Like [`Store::delete`], for many pairs in one atomic step. Returns for each pair whether the pair was stored. If a
    /// pair is repeated, the result is false for all occurrences except the first.
    ///
    /// # Errors
    /// Errors of [`Store::delete`]; [`Error::BadArgument`] if the pairs are too many for one transaction.
    pub fn delete_all(&self, pairs: &[(F, u64)], durability: Durability) -> Result<Vec<bool>> {
        self.writer.delete_all(pairs, durability)
    }

    /// Starts a transaction: a set of writes that become visible and durable atomically.
    pub fn transaction(&self) -> Transaction<'_, F> {
        Transaction::new(&self.writer)
    }

    /// Returns the current state of the store. Later writes do not change a snapshot.
    pub fn snapshot(&self) -> Snapshot<F> {
        self.shared.snapshot()
    }

    /// Like [`Snapshot::query`], for the current state.
    ///
    /// # Errors
    /// Errors of [`Snapshot::query`]; [`Error::Forked`] in a forked process.
    pub fn query(&self, fingerprint: F, distance: u32) -> Result<Vec<Match<F>>> {
        self.shared.check_process()?;
        self.snapshot().query(fingerprint, distance)
    }

    /// Like [`Snapshot::query_into`], for the current state.
    ///
    /// # Errors
    /// Errors of [`Snapshot::query`]; [`Error::Forked`] in a forked process.
    pub fn query_into(&self, fingerprint: F, distance: u32, matches: &mut Vec<Match<F>>) -> Result<()> {
        self.shared.check_process()?;
        self.snapshot().query_into(fingerprint, distance, matches)
    }

    /// Makes all previous writes durable.
    ///
    /// # Errors
    /// Errors of [`Store::insert`].
    pub fn sync(&self) -> Result<()> {
        self.writer.sync()
    }

    /// Writes the contents of all memtables to segments, and waits until the segments are durable. Afterwards the log is
    /// empty, unless other threads write meanwhile.
    ///
    /// # Errors
    /// Errors of [`Store::insert`].
    pub fn flush(&self) -> Result<()> {
        self.writer.freeze()?;
        self.shared.wait_for_flush(None)
    }

    /// Merges all segments into one, and waits for the end of the merge. Afterwards queries search one set of tables, and
    /// deleted pairs take no space.
    ///
    /// # Errors
    /// Errors of [`Store::insert`], and [`Error::Corrupt`] if a segment is damaged; in that case the store is
    /// unchanged.
    pub fn compact(&self) -> Result<()> {
        self.compact_with(&CompactOptions::default())
    }

    /// Like [`Store::compact`], but can also build tables for a larger query distance, and take a callback that can stop
    /// the merge.
    ///
    /// If the store has a fixed plan, and no plan of the same name exists for the new distance, the store changes to
    /// the plan `auto`. [`Snapshot::plan_policy`] returns the name of the store's plan.
    ///
    /// # Errors
    /// Errors of [`Store::compact`]; [`Error::BadArgument`] if the distance is smaller than the store's, or larger
    /// than [`Fingerprint::MAX_DISTANCE`]; [`Error::Cancelled`] if the callback stopped the merge. In that case the
    /// segments are unchanged.
    pub fn compact_with(&self, options: &CompactOptions) -> Result<()> {
        self.shared.check()?;
        let settings = self.shared.view().manifest.settings.clone();
        let distance = options.distance.unwrap_or(settings.distance);
        let progress = options.progress.as_ref();
        if distance < settings.distance || distance > F::MAX_DISTANCE {
            return Err(Error::BadArgument(format!(
                "the store's distance is {}; it can be raised up to {}, not changed to {distance}",
                settings.distance,
                F::MAX_DISTANCE
            )));
        }
        self.writer.raise_distance(distance)?;
        self.shared.wait_for_flush(progress)?;
        self.merge_all(distance, distance > settings.distance, progress)
    }

    fn merge_all(&self, distance: u32, raised: bool, progress: Option<&ProgressCallback>) -> Result<()> {
        let _guard = self.shared.lock_merge(progress)?;
        let view = self.shared.view();
        let segments = view.segments.len();
        let has_tombstones = view.segments.iter().any(|segment| !segment.tombstones().is_empty());
        if segments > 1 || has_tombstones || raised {
            merge::merge(&self.shared, 0..segments, distance, MergeMode::Foreground(progress))?;
        }
        Ok(())
    }

    /// Waits until the background threads have no more work: no flush is pending and, if [`StoreOptions::compaction`] is
    /// set, no merge is due.
    ///
    /// # Errors
    /// Errors of [`Store::insert`].
    pub fn wait_for_background(&self) -> Result<()> {
        self.shared.wait_for_flush(None)?;
        let shared = &self.shared;
        let mut state = lock(&shared.background);
        while shared.options.compaction && state.failure.is_none() && merge::next_merge(shared).is_some() {
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        shared.check()
    }

    /// Starts a bulk load: many fingerprints, in any order, that become one segment without being written to the log.
    ///
    /// # Errors
    /// Errors of [`Store::insert`].
    pub fn bulk_load(&self) -> Result<BulkLoad<'_, F>> {
        BulkLoad::new(&self.shared, &self.writer, None)
    }

    /// Like [`Store::bulk_load`], with a callback that can stop the load. If the callback stops the load, nothing is
    /// stored.
    ///
    /// # Errors
    /// Errors of [`Store::bulk_load`].
    pub fn bulk_load_with(&self, progress: ProgressCallback) -> Result<BulkLoad<'_, F>> {
        BulkLoad::new(&self.shared, &self.writer, Some(progress))
    }

    /// Returns [`Error::TornTail`] if the newest log had a torn tail when the store was opened: bytes at the log's end that
    /// were not a record, and were left out. Usually a crash is the cause. If the bytes were damaged records, acknowledged
    /// writes are lost.
    pub fn torn_tail(&self) -> Option<&Error> {
        self.torn_tail.as_ref()
    }

    /// Returns the numbers of flushes, merges and written bytes since the store was opened.
    pub fn write_stats(&self) -> WriteStats {
        *lock(&self.shared.write_stats)
    }
}

impl<F: Fingerprint> Drop for Store<F> {
    /// Stops background merges, flushes the frozen memtables (those that take no more writes), and syncs the log, which
    /// has all other writes. In a forked process, does nothing.
    fn drop(&mut self) {
        if !self.shared.process.is_here() {
            // The threads and the log belong to the other process: they cannot be joined or ended here.
            self.workers.drain(..).for_each(std::mem::forget);
            std::mem::forget(self.shared.clone());
            return;
        }
        lock(&self.shared.background).is_closing = true;
        self.shared.changed.notify_all();
        for worker in self.workers.drain(..) {
            // If a worker panicked, the files are as after a crash, and the next open recovers them.
            let _ = worker.join();
        }
        // If this fails, the log is as after a crash. Writes that were acknowledged as durable are on the disk already.
        let _ = self.writer.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that writes and waits return an error after a background thread has panicked, but queries still work.
    #[test]
    fn a_panic_in_the_background_fails_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::<u64>::open(&folder.path().join("store"), StoreOptions::default()).unwrap();
        store.insert(1, 1).unwrap();
        let shared = store.shared.clone();
        let panics = std::thread::spawn(move || shared.run_guarded(|| panic!("on purpose")));
        assert!(panics.join().is_err());
        let error = store.insert(2, 2).unwrap_err();
        assert!(matches!(&error, Error::Poisoned { reason, .. } if reason.contains("panicked")), "{error}");
        assert!(store.flush().is_err() && store.wait_for_background().is_err());
        assert_eq!(store.query(1, 0).unwrap().len(), 1);
    }

    /// Asserts that a store can be used on the only thread of a rayon pool: the store's work must not wait for another
    /// thread of this pool.
    #[test]
    fn work_from_inside_of_another_pool() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        pool.install(|| {
            let store = Store::<u64>::open(&path, StoreOptions::default()).unwrap();
            let mut load = store.bulk_load().unwrap();
            (0..100).try_for_each(|i| load.insert(i << 32, i)).unwrap();
            load.finish().unwrap();
            store.insert(1, 1).unwrap();
            store.compact().unwrap();
            assert_eq!(store.snapshot().len(), 101);
        });
    }
}
