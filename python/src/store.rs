//! A store that is written to.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use numpy::PyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use simstore::any::AnyStore;
use simstore::store::CompactOptions;
use simstore::{Durability, Insertion, Result, StoreOptions};

use crate::array::Array;
use crate::batch::Batch;
use crate::entries::Entries;
use crate::gate;
use crate::matches;
use crate::numbers;
use crate::rows::{Rows, id_of};
use crate::settings::{codec_of, path_of, plan_of, profile_of};
use crate::similar::{self, is_similar};
use crate::snapshot::Snapshot;
use crate::table::Table;
use crate::text_profile::TextProfile;
use crate::writable::Writable;

/// An array is written in transactions of about so many bytes of the log.
const TRANSACTION: usize = 1 << 20;
/// Pairs that are looked for, and deleted, in one transaction.
const DELETED: usize = 1 << 12;
/// How long a writer waits for others that share its sync.
const GROUP: Duration = Duration::from_millis(2);

/// A store on disk that takes inserts and deletes, from any number of threads, and answers queries meanwhile.
///
/// One process at a time may have a store open like this; any number may read it as a `Snapshot`. Use it as a context manager,
/// or call `close()`: until then no other process can write to it.
///
/// Parameters
/// ----------
/// path : str or os.PathLike
///     The store's folder; made if it is not there.
/// distance : int, optional
///     The largest distance that queries will ask for, in bits: 3 for a new store. Other settings that are given, too, must be
///     those that a store has.
/// bits : {64, 128}, optional
///     Width of the fingerprints: that of ``profile``, or 64, for a new store.
/// create : bool
///     Whether a store is made where there is none; FileNotFoundError otherwise.
/// codec : {"first-difference", "gap", "elias-fano", "all-differences"}, optional
///     How fingerprints are compressed: "first-difference" for a new store. "elias-fano" is fastest
///     to query; "gap" is smallest for random fingerprints, "all-differences" where many are near one another.
/// plan : str, optional
///     Which tables are kept, as ``simstore plan`` lists them; "auto" for a new store.
/// durability : {"os", "group", "sync"}
///     When a write is acknowledged: when the operating system has it, so that it survives the end of this process; when it is
///     on the disk, after waiting at most 2 ms for other threads to share the sync; when it is on the disk.
/// profile : Profile or str, optional
///     How texts become fingerprints: kept with the store.
/// memory : int or str, optional
///     Memory for sorting when segments are written, in bytes, or as "8G": 16 MiB or more; a quarter of the machine's by default.
/// ids : bool, optional
///     Whether ids are kept; they are in a new store.
///
/// Raises
/// ------
/// LockedError
///     If another process, or another `Store` of this one, has it open.
/// NotAStoreError
///     If there is something else.
/// ValueError
///     If the store has another setting than the one asked for.
///
/// Notes
/// -----
/// In a process that was forked after the store was opened, whatever writes or asks raises `Error` with code "forked": open it
/// after the fork, or use a `Snapshot`. A store cannot be pickled, a `Snapshot` can.
///
/// Examples
/// --------
/// >>> import simstore
/// >>> with simstore.Store("pages") as store:
/// ...     store.insert(0b1111, 1, "https://example.org/")
/// ...     store.insert_if_new(0b1110, 2)
/// [Match(fingerprint=0xf, distance=1, id=1, name='https://example.org/')]
///
/// A store with a profile takes texts, and names instead of numbers.
///
/// >>> with simstore.Store("texts", profile=simstore.Profile()) as store:
/// ...     store.insert(text="To be, or not to be, that is the question", id="https://example.org/hamlet")
/// ...     [match.name for match in store.query(text="To be or not to be: that is the question!")]
/// ['https://example.org/hamlet']
#[pyclass(frozen, module = "simstore")]
pub(crate) struct Store {
    /// Its batches have it, too.
    inner: Arc<Writable>,
}

impl Deref for Store {
    type Target = Writable;

    fn deref(&self) -> &Writable {
        &self.inner
    }
}

impl Store {
    fn asked_snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        Ok(Snapshot::with(self.asked(py)?, self.profile().clone()))
    }
}

#[pymethods]
impl Store {
    #[new]
    #[pyo3(signature = (path, *, distance=None, bits=None, create=true, codec=None, plan=None, durability="os", profile=None, memory=None, ids=None))]
    #[expect(
        clippy::too_many_arguments,
        clippy::needless_pass_by_value,
        reason = "settings, by name; a path is made"
    )]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        #[pyo3(from_py_with = numbers::distance)] distance: Option<u32>,
        #[pyo3(from_py_with = numbers::bits)] bits: Option<u32>,
        create: bool,
        codec: Option<&str>,
        plan: Option<&str>,
        durability: &str,
        profile: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = numbers::memory)] memory: Option<u64>,
        ids: Option<bool>,
    ) -> PyResult<Store> {
        let durability = match durability {
            "os" => Durability::Os,
            "group" => Durability::Group(GROUP),
            "sync" => Durability::Sync,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "there is no durability `{durability}`; expected os, group or sync"
                )));
            }
        };
        let given = profile;
        let (profile, profile_bits) = profile_of(profile)?;
        let (store, snapshot, is_similar) = gate::quick(py, || {
            let (codec, plan) = (codec_of(codec)?, plan_of(plan)?);
            let options = StoreOptions {
                create,
                distance,
                codec,
                plan,
                profile,
                durability,
                memory,
                ids,
                ..StoreOptions::default()
            };
            let store = AnyStore::open(&path, bits.or(profile_bits), options)?;
            let snapshot = store.snapshot();
            let is_similar = is_similar(&snapshot)?;
            Ok((store, snapshot, is_similar))
        })?;
        if let Some(torn) = store.torn_end() {
            gate::warn_of(py, &torn.to_string())?;
        }
        let text_profile = TextProfile::new(snapshot.profile(), snapshot.width(), snapshot.path(), given);
        Ok(Store { inner: Arc::new(Writable::new(store, is_similar, durability, text_profile)) })
    }

    /// Adds a fingerprint, or that of a text, with an id. The same pair again changes nothing; a fingerprint may have any number of ids.
    ///
    /// Parameters
    /// ----------
    /// fingerprint : int
    ///     Or ``text``.
    /// id : int or str
    ///     A number; or a name, as documents of `simstore add` have it: the number is then one more than the highest id ever stored, and
    ///     the same fingerprint and name again changes nothing. The same name with another fingerprint is another document. A store that
    ///     has begun with numbers alone takes no names.
    /// name : str, optional
    ///     The name of a document whose id is a number, up to 64 KiB; the newest one of an id counts.
    /// text : str
    ///     A text, whose fingerprint the store's profile makes.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the text has no letter and no digit, and so no fingerprint; if the store has no profile.
    #[pyo3(signature = (fingerprint=None, id=None, name=None, *, text=None))]
    fn insert(
        &self,
        py: Python<'_>,
        fingerprint: Option<&Bound<'_, PyAny>>,
        id: Option<&Bound<'_, PyAny>>,
        name: Option<&str>,
        text: Option<&str>,
    ) -> PyResult<()> {
        let (open, entry) = (self.writable(py)?, self.entry(py, fingerprint, id, name, text)?);
        gate::quick(py, || {
            let (_inserting, mut transaction, mut numbers) = open.inserting(entry.by_name())?;
            entry.insert(&mut transaction, &mut numbers)?;
            transaction.commit(self.durability())
        })
    }

    /// Adds arrays of fingerprints and ids, in transactions of some 50,000 rows: readers see the first ones before the last. A call
    /// that is interrupted or fails has inserted the first ones whole; calling it again changes nothing about these. For all or
    /// none, see `batch`.
    ///
    /// Parameters
    /// ----------
    /// fingerprints : array_like, shape (n,)
    ///     Numpy's of uint64, or of uint8 of shape (n, 16); Arrow's of uint64 or fixed_size_binary[16]; a list of ints. Or ``texts``.
    /// ids : array_like, shape (n,)
    ///     Ints from 0 to 2**64 - 1; or names, as for `insert`.
    /// names : array_like of str or None, shape (n,), optional
    /// texts : iterable of str or None
    ///     Texts, as `Profile.fingerprints` takes them. Those without a fingerprint are left out, with a warning.
    /// progress : bool or callable, optional
    ///     True for a bar of tqdm; a callable is called with a `Progress` some times a second.
    #[pyo3(signature = (fingerprints=None, ids=None, names=None, *, texts=None, progress=None))]
    fn insert_many(
        &self,
        py: Python<'_>,
        fingerprints: Option<&Bound<'_, PyAny>>,
        ids: Option<&Bound<'_, PyAny>>,
        names: Option<&Bound<'_, PyAny>>,
        texts: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let open = self.writable(py)?;
        let mut entries = Entries::read(fingerprints, ids, names, texts, self.bits())?;
        gate::told(py, progress, |call| {
            entries.make(self.profile(), call)?;
            let mut at = 0;
            while at < entries.len() {
                call.check()?;
                let (_inserting, mut transaction, mut numbers) = open.inserting(entries.by_name())?;
                while at < entries.len() && transaction.bytes() < TRANSACTION {
                    entries.insert(at, &mut transaction, &mut numbers)?;
                    at += 1;
                }
                transaction.commit(if at < entries.len() { Durability::Os } else { self.durability() })?;
                call.step("fingerprints", at as u64, entries.len() as u64);
            }
            Ok(())
        })
    }

    /// Adds a fingerprint with an id, unless something within the store's distance is there: as one step, whatever other threads
    /// do.
    ///
    /// Parameters
    /// ----------
    /// fingerprint, id, name, text
    ///     As for `insert`.
    ///
    /// Returns
    /// -------
    /// list of Match
    ///     What is there, nearest first; empty if the fingerprint was inserted.
    #[pyo3(signature = (fingerprint=None, id=None, name=None, *, text=None))]
    fn insert_if_new<'py>(
        &self,
        py: Python<'py>,
        fingerprint: Option<&Bound<'py, PyAny>>,
        id: Option<&Bound<'py, PyAny>>,
        name: Option<&str>,
        text: Option<&str>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (open, entry) = (self.writable(py)?, self.entry(py, fingerprint, id, name, text)?);
        let found = gate::quick(py, || {
            let (_inserting, mut transaction, mut numbers) = open.inserting(entry.by_name())?;
            if !entry.insert(&mut transaction, &mut numbers)? {
                // The same document is there.
                let snapshot = open.store.snapshot();
                return matches::named(&snapshot, snapshot.query(entry.fingerprint, snapshot.distance())?);
            }
            match transaction.commit_if_new(self.durability())? {
                Insertion::Inserted => Ok(Vec::new()),
                Insertion::DuplicateOf(found) => matches::named(&open.store.snapshot(), found),
            }
        })?;
        PyList::new(py, found)
    }

    /// Adds arrays, in order, each element unless something within the store's distance is there: earlier ones of the same array
    /// count. A call that is interrupted has done so with the first ones; calling it again would tell these as not new.
    ///
    /// Parameters
    /// ----------
    /// fingerprints, ids, names, texts, progress
    ///     As for `insert_many`.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray of bool, shape (n,)
    ///     Which were inserted.
    #[pyo3(signature = (fingerprints=None, ids=None, names=None, *, texts=None, progress=None))]
    fn insert_many_if_new<'py>(
        &self,
        py: Python<'py>,
        fingerprints: Option<&Bound<'py, PyAny>>,
        ids: Option<&Bound<'py, PyAny>>,
        names: Option<&Bound<'py, PyAny>>,
        texts: Option<&Bound<'py, PyAny>>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let open = self.writable(py)?;
        let mut entries = Entries::read(fingerprints, ids, names, texts, self.bits())?;
        let inserted = gate::told(py, progress, |call| {
            entries.make(self.profile(), call)?;
            let one = |at| {
                call.check()?;
                let (_inserting, mut transaction, mut numbers) = open.inserting(entries.by_name())?;
                let is_inserted = entries.insert(at, &mut transaction, &mut numbers)?
                    && transaction.commit_if_new(Durability::Os)? == Insertion::Inserted;
                if (at + 1) % DELETED == 0 || at + 1 == entries.len() {
                    call.step("fingerprints", at as u64 + 1, entries.len() as u64);
                }
                Ok(is_inserted)
            };
            let inserted = (0..entries.len()).map(one).collect::<Result<Vec<bool>>>()?;
            if self.durability() != Durability::Os {
                open.store.sync()?;
            }
            Ok(inserted)
        })?;
        Ok(PyArray1::from_vec(py, inserted))
    }

    /// Removes a pair of fingerprint and id, if it is there, and forgets the name of the id; in a store without ids, removes the
    /// fingerprint.
    ///
    /// Returns
    /// -------
    /// bool
    ///     Whether it was there.
    fn delete(
        &self,
        py: Python<'_>,
        fingerprint: &Bound<'_, PyAny>,
        id: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let (open, fingerprint, id) = (self.writable(py)?, self.fingerprint(fingerprint)?, id_of(id)?);
        gate::quick(py, || open.store.delete(fingerprint, id))
    }

    /// Removes pairs of arrays of fingerprints and ids, and forgets the names of these ids, some thousand in a transaction. A call
    /// that is interrupted has removed the first ones.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray of bool, shape (n,)
    ///     Which were there; of a pair that comes twice, the first.
    #[pyo3(signature = (fingerprints, ids, *, progress=None))]
    fn delete_many<'py>(
        &self,
        py: Python<'py>,
        fingerprints: &Bound<'py, PyAny>,
        ids: &Bound<'py, PyAny>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let (open, rows) = (self.writable(py)?, Rows::read(fingerprints, ids, self.bits())?);
        let deleted = gate::told(py, progress, |call| {
            let mut deleted = Vec::with_capacity(rows.len());
            while deleted.len() < rows.len() {
                call.check()?;
                let end = rows.len().min(deleted.len() + DELETED);
                let pairs: Vec<(u128, u64)> = rows.pairs(deleted.len()..end).collect();
                let durability = if end < rows.len() { Durability::Os } else { self.durability() };
                deleted.extend(open.store.delete_all(&pairs, durability)?);
                call.step("fingerprints", end as u64, rows.len() as u64);
            }
            Ok(deleted)
        })?;
        Ok(PyArray1::from_vec(py, deleted))
    }

    /// Writes that become visible and durable all at once, or not at all: ``with store.batch() as batch:`` commits at the end,
    /// and writes nothing after an exception.
    fn batch(slf: &Bound<'_, Self>) -> PyResult<Batch> {
        slf.get().writable(slf.py())?;
        Ok(Batch::new(Arc::clone(&slf.get().inner)))
    }

    /// What is stored within some bits of a fingerprint, or of that of a text, now.
    ///
    /// Parameters
    /// ----------
    /// fingerprint : int
    ///     Or ``text``.
    /// distance : int, optional
    ///     In bits; the store's own if not given, which is also the largest one.
    /// text : str
    ///     A text, whose fingerprint the store's profile makes; nothing is near one that has none.
    ///
    /// Returns
    /// -------
    /// list of Match
    ///     One for each id, sorted by distance, then fingerprint, then id.
    #[pyo3(signature = (fingerprint=None, distance=None, *, text=None))]
    fn query<'py>(
        &self,
        py: Python<'py>,
        fingerprint: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = numbers::distance)] distance: Option<u32>,
        text: Option<&str>,
    ) -> PyResult<Bound<'py, PyList>> {
        let snapshot = self.asked(py)?;
        let fingerprint = self.profile().either(py, fingerprint, text, |one| self.fingerprint(one))?;
        matches::query(py, &snapshot, fingerprint, distance)
    }

    /// What is stored within some bits of each of many fingerprints, or of texts, now: as `Snapshot.query_many`.
    #[pyo3(signature = (fingerprints=None, distance=None, *, texts=None, progress=None))]
    fn query_many(
        &self,
        py: Python<'_>,
        fingerprints: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = numbers::distance)] distance: Option<u32>,
        texts: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Table> {
        self.asked_snapshot(py)?.query_many(py, fingerprints, distance, texts, progress)
    }

    /// The name of a document; None if it has none.
    fn name(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
        self.asked_snapshot(py)?.name(py, id)
    }

    /// The names of documents, as `Snapshot.names`.
    fn names(&self, py: Python<'_>, ids: &Bound<'_, PyAny>) -> PyResult<Array> {
        self.asked_snapshot(py)?.names(py, ids)
    }

    /// The store as it is now, which stays so while the store moves on, also after it is closed.
    fn snapshot(&self) -> PyResult<Snapshot> {
        Ok(Snapshot::with(self.snapshot_of()?, self.profile().clone()))
    }

    /// Makes a segment of what is in the log, and waits for it: the next opening is quick then.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.open()?;
        gate::quick(py, || open.store.flush())
    }

    /// Makes all that has been written durable.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.open()?;
        gate::quick(py, || open.store.sync())
    }

    /// Merges all segments into one, and waits for it: queries are faster then, and what was deleted takes no space. Interrupted, it
    /// leaves the store as it was.
    ///
    /// Parameters
    /// ----------
    /// distance : int, optional
    ///     The largest distance that the store answers from then on, in bits: no smaller than now.
    /// progress : bool or callable, optional
    ///     True for a bar of tqdm; a callable is called with a `Progress` some times a second.
    #[pyo3(signature = (distance=None, *, progress=None))]
    fn compact(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::distance)] distance: Option<u32>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let open = self.open()?;
        gate::told(py, progress, |call| {
            let progress = Some(call.callback("fingerprints"));
            open.store.compact_with(&CompactOptions { distance, progress })
        })
    }

    /// Closes the store, once calls of other threads that are under way have ended: what is written is durable then, and another
    /// process can open it. A closed one is closed again without effect.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     In the middle of another call of the same thread on this store, such as in its progress callable or in a signal handler: close
    ///     the store when that call has returned.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.inner.close(py)
    }

    /// Whether it has been closed.
    #[getter]
    fn closed(&self) -> bool {
        self.is_closed()
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        slf.get().open()?;
        Ok(slf.clone())
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        let _ = exception;
        self.close(py)
    }

    /// Number of fingerprints: an upper bound while some are in several segments, or deleted and not yet compacted.
    fn __len__(&self) -> PyResult<usize> {
        Ok(self.snapshot_of()?.len() as usize)
    }

    fn __contains__(&self, py: Python<'_>, fingerprint: &Bound<'_, PyAny>) -> PyResult<bool> {
        let fingerprint = self.fingerprint(fingerprint)?;
        let snapshot = self.of_fingerprints(py, similar::LOOK_UP)?.store.snapshot();
        gate::quick(py, || snapshot.contains(fingerprint))
    }

    /// The store's folder.
    #[getter]
    fn path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        path_of(py, self.inner.path())
    }

    /// Width of the fingerprints, in bits: 64 or 128.
    #[getter(bits)]
    fn width(&self) -> u32 {
        self.bits()
    }

    /// The largest distance that queries may ask for, in bits.
    #[getter]
    fn distance(&self) -> PyResult<u32> {
        Ok(self.snapshot_of()?.distance())
    }

    fn __repr__(&self) -> String {
        let closed = if self.closed() { ", closed" } else { "" };
        format!("Store('{}', bits={}{closed})", self.inner.path().display(), self.bits())
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(format!(
            "a Store cannot be pickled: one process at a time writes to a store; send the path, or Snapshot('{}')",
            self.inner.path().display()
        )))
    }
}
