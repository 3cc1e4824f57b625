//! A store that is being written to.

use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

use super::load::Load;
use super::merge::Way;
use super::open;
use super::shared::{Shared, Written, lock};
use super::snapshot::Snapshot;
use super::writer::{Insertion, Transaction, Writer};
use super::{flush, merge};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::options::{Durability, StoreOptions, check_memory};
use crate::progress::ProgressCallback;
use crate::segment::Match;
use crate::threads::{self, Ready};

/// How segments are merged by [`Store::compact_with`].
#[derive(Clone, Debug, Default)]
pub struct CompactOptions {
    /// The largest distance that queries may ask for from then on, in bits; as before by default.
    pub distance: Option<u32>,
    /// Is told how far the merge is, and says whether it goes on.
    pub progress: Option<ProgressCallback>,
}

/// A store that takes inserts and deletes, from any number of threads, and answers queries meanwhile.
///
/// One process at a time may open a store like this; any number may read it by [`Snapshot::open`]. A process that is forked
/// from it has not the threads that a store needs: there, what writes or asks ends with [`Error::Forked`]. A [`Snapshot`] can
/// be read there.
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
    shared: Arc<Shared<F>>,
    writer: Writer<F>,
    workers: Vec<JoinHandle<()>>,
    torn_end: Option<Error>,
}

impl<F: Fingerprint> std::fmt::Debug for Store<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

impl<F: Fingerprint> Store<F> {
    /// Opens a store to write to it, and makes it if there is none. What is in its logs is recovered; where these are many,
    /// or long, it becomes a segment in the background.
    ///
    /// A program that opens a store for a short while, and often, calls [`Store::wait_for_background`] before it drops it:
    /// a merge that is cut off begins again from its start.
    ///
    /// # Errors
    /// [`Error::Locked`] if another process, or this one, has it, [`Error::Setting`] if the options ask for another setting than the
    /// store has, [`Error::NotAStore`] if there is something else, or nothing and it is not to be made; and as
    /// [`Snapshot::open`].
    pub fn open(path: &Path, options: StoreOptions) -> Result<Self> {
        check_memory(options.memory)?;
        // Before anything is written: a store without its threads is none.
        let flushing = Ready::start("simstore flush")?;
        let merging = if options.compaction { Some(Ready::start("simstore compaction")?) } else { None };
        let pool = threads::pool("simstore segments")?;
        let opened = open::open::<F>(path, &options)?;
        let distance = opened.view.manifest.settings.distance;
        let options = StoreOptions { fs: opened.fs, ..options };
        let shared = Shared::new(path.to_path_buf(), options, opened.view, opened.next_number, pool);
        let shared = Arc::new(shared);
        let writer = Writer::new(shared.clone(), opened.log, distance);
        let torn_end = opened.torn_end;
        let mut workers = Vec::new();
        let flushed = shared.clone();
        workers.push(flushing.give(move || flushed.do_work(|| flush::work(&flushed))));
        if let Some(merging) = merging {
            let merged = shared.clone();
            workers.push(merging.give(move || merged.do_work(|| merge::work(&merged))));
        }
        Ok(Store { shared, writer, workers, torn_end })
    }

    /// Adds a fingerprint with an id. The same pair again changes nothing; a fingerprint may have any number of ids.
    /// Acknowledged as [`StoreOptions::durability`] says, as are the other single writes.
    ///
    /// # Errors
    /// [`Error::Poisoned`] after a write has failed, [`Error::Io`] if this one fails.
    pub fn insert(&self, fingerprint: F, id: u64) -> Result<()> {
        let mut transaction = self.transaction();
        transaction.insert(fingerprint, id);
        transaction.commit(self.shared.options.durability)
    }

    /// [`Store::insert`] for a document that has a name, up to 64 KiB of it.
    ///
    /// # Errors
    /// As [`Store::insert`]; [`Error::BadArgument`] if the name is too long or no UTF-8.
    pub fn insert_named(&self, fingerprint: F, id: u64, name: &str) -> Result<()> {
        let mut transaction = self.transaction();
        transaction.insert_named(fingerprint, id, name)?;
        transaction.commit(self.shared.options.durability)
    }

    /// [`Store::insert`], unless something within the store's distance is there: both as one step, whatever other threads do.
    /// For a document with a name, see [`Transaction::commit_if_new`].
    ///
    /// # Errors
    /// As [`Store::insert`], and as [`Snapshot::query`].
    pub fn insert_if_new(&self, fingerprint: F, id: u64) -> Result<Insertion<F>> {
        let mut transaction = self.transaction();
        transaction.insert(fingerprint, id);
        transaction.commit_if_new(self.shared.options.durability)
    }

    /// Removes a pair of fingerprint and id, if it is there; says whether it was. In a store without ids, removes the
    /// fingerprint. The name and the note of the id are forgotten, as by [`Transaction::delete`].
    ///
    /// # Errors
    /// As [`Store::insert`], and as [`Snapshot::contains_pair`].
    pub fn delete(&self, fingerprint: F, id: u64) -> Result<bool> {
        Ok(self.delete_all(&[(fingerprint, id)], self.shared.options.durability)? == [true])
    }

    /// [`Store::delete`] for many pairs as one step, whatever other threads do: all become visible and durable at once. Says of
    /// each whether it was there; of a pair that comes twice, the first time alone.
    ///
    /// # Errors
    /// As [`Store::delete`]; [`Error::BadArgument`] if they are more than fit into a transaction.
    pub fn delete_all(&self, pairs: &[(F, u64)], durability: Durability) -> Result<Vec<bool>> {
        self.writer.delete_all(pairs, durability)
    }

    /// Starts writes that become visible and durable all at once, or not at all.
    pub fn transaction(&self) -> Transaction<'_, F> {
        Transaction::new(&self.writer)
    }

    /// The store as it is now, which stays so while the store moves on.
    pub fn snapshot(&self) -> Snapshot<F> {
        self.shared.snapshot()
    }

    /// [`Snapshot::query`] of the newest state.
    ///
    /// # Errors
    /// As [`Snapshot::query`].
    pub fn query(&self, fingerprint: F, distance: u32) -> Result<Vec<Match<F>>> {
        self.shared.check_process()?;
        self.snapshot().query(fingerprint, distance)
    }

    /// [`Snapshot::query_into`] of the newest state.
    ///
    /// # Errors
    /// As [`Snapshot::query`].
    pub fn query_into(&self, fingerprint: F, distance: u32, matches: &mut Vec<Match<F>>) -> Result<()> {
        self.shared.check_process()?;
        self.snapshot().query_into(fingerprint, distance, matches)
    }

    /// Makes all that has been written durable.
    ///
    /// # Errors
    /// As [`Store::insert`].
    pub fn sync(&self) -> Result<()> {
        self.writer.sync()
    }

    /// Makes a segment of what is not in segments yet, and waits for it. The log is short after that.
    ///
    /// # Errors
    /// As [`Store::insert`].
    pub fn flush(&self) -> Result<()> {
        self.writer.freeze()?;
        self.shared.wait_for_flush(None)
    }

    /// Merges all segments into one, and waits for it: queries look into one set of tables, and what was deleted takes
    /// no space any more.
    ///
    /// # Errors
    /// As [`Store::insert`], and [`Error::Corrupt`] if a segment is damaged; then the store stays as it was.
    pub fn compact(&self) -> Result<()> {
        self.compact_with(&CompactOptions::default())
    }

    /// [`Store::compact`], with tables that answer queries up to a larger distance, or until a callback says not to go on.
    ///
    /// If the store's plan is a named one that does not exist for the new distance, the store gets the plan `auto`:
    /// [`Snapshot::plan_policy`] says which one it has.
    ///
    /// # Errors
    /// As [`Store::compact`]; [`Error::BadArgument`] if the distance is smaller than the store's, or larger than
    /// [`Fingerprint::MAX_DISTANCE`]; [`Error::Cancelled`] if the callback said not to go on: the segments stay as they were.
    pub fn compact_with(&self, options: &CompactOptions) -> Result<()> {
        self.shared.check()?;
        let settings = self.shared.view().manifest.settings.clone();
        let distance = options.distance.unwrap_or(settings.distance);
        let progress = options.progress.as_ref();
        if distance < settings.distance || distance > F::MAX_DISTANCE {
            return Err(Error::BadArgument(format!(
                "the store is kept for distance {}; it can be raised up to {}, not changed to {distance}",
                settings.distance,
                F::MAX_DISTANCE
            )));
        }
        self.writer.raise_distance(distance)?;
        self.shared.wait_for_flush(progress)?;
        self.merge_all(distance, distance > settings.distance, progress)
    }

    fn merge_all(&self, distance: u32, raised: bool, progress: Option<&ProgressCallback>) -> Result<()> {
        let _one = self.shared.begin_merge(progress)?;
        let view = self.shared.view();
        let segments = view.segments.len();
        let has_tombstones = view.segments.iter().any(|segment| !segment.tombstones().is_empty());
        if segments > 1 || has_tombstones || raised {
            merge::merge(&self.shared, 0..segments, distance, Way::Waiting(progress))?;
        }
        Ok(())
    }

    /// Waits until nothing is left to flush or, unless compaction is switched off, to merge.
    ///
    /// # Errors
    /// As [`Store::insert`].
    pub fn wait_for_background(&self) -> Result<()> {
        self.shared.wait_for_flush(None)?;
        let shared = &self.shared;
        let mut work = lock(&shared.work);
        while shared.options.compaction && work.failure.is_none() && merge::due(shared).is_some() {
            work = shared.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
        drop(work);
        shared.check()
    }

    /// Starts loading many fingerprints at once, in any order: they become one segment, without going through the log.
    ///
    /// # Errors
    /// As [`Store::insert`].
    pub fn load(&self) -> Result<Load<'_, F>> {
        Load::new(&self.shared, &self.writer, None)
    }

    /// [`Store::load`], until the callback says not to go on: then nothing was loaded.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn load_with(&self, progress: ProgressCallback) -> Result<Load<'_, F>> {
        Load::new(&self.shared, &self.writer, Some(progress))
    }

    /// What was left out when the store was opened: [`Error::TornEnd`] if the newest log ended in bytes that were no record.
    /// That is what a crash leaves; but had they been damaged, something that was acknowledged is lost.
    pub fn torn_end(&self) -> Option<&Error> {
        self.torn_end.as_ref()
    }

    /// How much has been written since the store was opened.
    pub fn written(&self) -> Written {
        *lock(&self.shared.written)
    }
}

impl<F: Fingerprint> Drop for Store<F> {
    /// Stops merges where they are; memtables that are full become segments. What is not in segments is in the log, which
    /// is synced. In a process that was forked from the one that opened the store it does nothing.
    fn drop(&mut self) {
        if !self.shared.process.is_here() {
            // All of it is the other process's: its threads are not here to be joined, and its log is not to be ended.
            self.workers.drain(..).for_each(std::mem::forget);
            std::mem::forget(self.shared.clone());
            return;
        }
        lock(&self.shared.work).closing = true;
        self.shared.changed.notify_all();
        for worker in self.workers.drain(..) {
            // A worker that panicked has left the store as a crash does.
            let _ = worker.join();
        }
        // After a failure the log is as a crash leaves it. What was to be durable was so before.
        let _ = self.writer.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody waits for what a thread that has panicked will never do.
    #[test]
    fn a_panic_in_the_background_fails_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::<u64>::open(&folder.path().join("store"), StoreOptions::default()).unwrap();
        store.insert(1, 1).unwrap();
        let shared = store.shared.clone();
        let panics = std::thread::spawn(move || shared.do_work(|| panic!("on purpose")));
        assert!(panics.join().is_err());
        let error = store.insert(2, 2).unwrap_err();
        assert!(matches!(&error, Error::Poisoned { reason, .. } if reason.contains("panicked")), "{error}");
        assert!(store.flush().is_err() && store.wait_for_background().is_err());
        assert_eq!(store.query(1, 0).unwrap().len(), 1);
    }

    /// Called from a pool all of whose threads are taken, it does not wait for one of them.
    #[test]
    fn work_from_inside_of_another_pool() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        pool.install(|| {
            let store = Store::<u64>::open(&path, StoreOptions::default()).unwrap();
            let mut load = store.load().unwrap();
            (0..100).try_for_each(|i| load.insert(i << 32, i)).unwrap();
            load.finish().unwrap();
            store.insert(1, 1).unwrap();
            store.compact().unwrap();
            assert_eq!(store.snapshot().len(), 101);
        });
    }
}
