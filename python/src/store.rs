//! The class `Store`.

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

use crate::array::PyArrowArray;
use crate::batch::PyBatch;
use crate::call;
use crate::id_pairs::{IdPairs, read_id};
use crate::matches;
use crate::new_documents::NewDocuments;
use crate::number_arguments;
use crate::settings::{parse_codec, parse_plan, path_to_python, read_profile};
use crate::similar_settings::{self, is_similar_store};
use crate::snapshot::PySnapshot;
use crate::table::PyTable;
use crate::text_profile::TextProfile;
use crate::writable_store::WritableStore;

/// Approximate log bytes in each transaction when an array is written.
const TRANSACTION_BYTES: usize = 1 << 20;
/// Number of (fingerprint, id) pairs that `delete_many` deletes in one transaction. Also the number of documents
/// that `insert_many_if_new` inserts between two progress reports.
const PAIR_BATCH: usize = 1 << 12;
/// Time that a writer waits for other threads to share its sync, with `durability="group"`.
const GROUP_COMMIT_WAIT: Duration = Duration::from_millis(2);

/// A store on disk that accepts inserts and deletes, from any number of threads, and answers queries at the same time.
///
/// Only one process at a time may have a store open in this way; any number may read it as a `Snapshot`. Use it as a context manager, or
/// call `close()`. Until then no other process can write to it.
///
/// Parameters
/// ----------
/// path : str or os.PathLike
///     The store's directory, which is created if it is missing.
/// distance : int, optional
///     The largest distance of later queries, in bits: 3 for a new store. For an existing store, this and all other given settings must
///     match.
/// bits : {64, 128}, optional
///     Width of the fingerprints. For a new store, the default is the width of ``profile``, or 64.
/// create : bool
///     Whether a missing store is created. If False, a missing store raises FileNotFoundError.
/// codec : {"first-difference", "gap", "elias-fano", "all-differences", "prefix-lines"}, optional
///     The codec that compresses the fingerprints: "first-difference" for a new store. "prefix-lines" is fastest to query up to distance 6.
///     "elias-fano" is fastest at distance 8 and more, and if many fingerprints are near one another. "gap" is smallest for random fingerprints, "all-differences" for many near-duplicates.
/// plan : str, optional
///     The plan of the tables, as listed by ``simstore plan``; "auto" for a new store.
/// durability : {"os", "group", "sync"}
///     When a write returns. "os": when the operating system has the data, which then survives the end of this process. "sync": when the
///     data is on the disk. "group": like "sync", but waits at most 2 ms for other threads to share the sync.
/// profile : Profile or str, optional
///     The profile that turns texts into fingerprints. The store records the profile's name.
/// memory : int or str, optional
///     Memory for sorting when segments are written, in bytes, or as "8G": 16 MiB or more; by default a quarter of the machine's.
/// ids : bool, optional
///     Whether the store keeps ids; True for a new store.
///
/// Raises
/// ------
/// LockedError
///     If another process, or another `Store` object in this process, has the store open.
/// NotAStoreError
///     If the directory holds something other than a store.
/// ValueError
///     If a given setting differs from the store's setting.
///
/// Notes
/// -----
/// In a process that was forked after the store was opened, reads and writes raise `Error` with code "forked". Open the store after the
/// fork, or use a `Snapshot`. A store cannot be pickled, a `Snapshot` can.
///
/// Examples
/// --------
/// >>> import simstore
/// >>> with simstore.Store("pages") as store:
/// ...     store.insert(0b1111, 1, "https://example.org/")
/// ...     store.insert_if_new(0b1110, 2)
/// [Match(fingerprint=0xf, distance=1, id=1, name='https://example.org/')]
///
/// A store with a profile accepts texts, and names instead of numbers.
///
/// >>> with simstore.Store("texts", profile=simstore.Profile()) as store:
/// ...     store.insert(text="To be, or not to be, that is the question", id="https://example.org/hamlet")
/// ...     [match.name for match in store.query(text="To be or not to be: that is the question!")]
/// ['https://example.org/hamlet']
#[pyclass(frozen, module = "simstore", name = "Store")]
pub(crate) struct PyStore {
    /// Shared with each [`PyBatch`] of this store.
    inner: Arc<WritableStore>,
}

impl Deref for PyStore {
    type Target = WritableStore;

    fn deref(&self) -> &WritableStore {
        &self.inner
    }
}

impl PyStore {
    fn py_snapshot(&self, py: Python<'_>) -> PyResult<PySnapshot> {
        Ok(PySnapshot::with(self.query_snapshot(py)?, self.profile.clone()))
    }
}

#[pymethods]
impl PyStore {
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
        #[pyo3(from_py_with = number_arguments::distance)] distance: Option<u32>,
        #[pyo3(from_py_with = number_arguments::bits)] bits: Option<u32>,
        create: bool,
        codec: Option<&str>,
        plan: Option<&str>,
        durability: &str,
        profile: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = number_arguments::memory)] memory: Option<u64>,
        ids: Option<bool>,
    ) -> PyResult<PyStore> {
        let durability = match durability {
            "os" => Durability::Os,
            "group" => Durability::Group(GROUP_COMMIT_WAIT),
            "sync" => Durability::Sync,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "unknown durability `{durability}`; expected os, group or sync"
                )));
            }
        };
        let profile_object = profile;
        let (profile, profile_bits) = read_profile(profile)?;
        let (store, snapshot, is_similar) = call::detached(py, || {
            let (codec, plan) = (parse_codec(codec)?, parse_plan(plan)?);
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
            let is_similar = is_similar_store(&snapshot)?;
            Ok((store, snapshot, is_similar))
        })?;
        if let Some(torn) = store.torn_tail() {
            call::issue_warning(py, &torn.to_string())?;
        }
        let text_profile =
            TextProfile::new(snapshot.profile(), snapshot.width(), snapshot.path(), profile_object);
        Ok(PyStore { inner: Arc::new(WritableStore::new(store, is_similar, durability, text_profile)) })
    }

    /// Adds a fingerprint (given, or made from a text) with an id. Adding the same pair again changes nothing. A fingerprint may have
    /// several ids.
    ///
    /// Parameters
    /// ----------
    /// fingerprint : int
    ///     The fingerprint, if ``text`` is not given.
    /// id : int or str
    ///     A number, or a name, as in `simstore add`. A document with a name as id gets the highest number ever
    ///     stored as an id, plus 1. Adding the same fingerprint and name again changes nothing; the same name with
    ///     another fingerprint is another document. If the store has documents, but none with a name, names are
    ///     refused as ids.
    /// name : str, optional
    ///     The name of a document with a numeric id, up to 64 KiB. The newest name of an id counts.
    /// text : str
    ///     A text that the store's profile turns into a fingerprint.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the text has no fingerprint, because it has no letter and no digit, or if the store has no profile.
    #[pyo3(signature = (fingerprint=None, id=None, name=None, *, text=None))]
    fn insert(
        &self,
        py: Python<'_>,
        fingerprint: Option<&Bound<'_, PyAny>>,
        id: Option<&Bound<'_, PyAny>>,
        name: Option<&str>,
        text: Option<&str>,
    ) -> PyResult<()> {
        let (open, entry) = (self.writable(py)?, self.read_document(py, fingerprint, id, name, text)?);
        call::detached(py, || {
            let (_inserting, mut transaction, mut numbers) = open.begin_insert(entry.has_name_id())?;
            entry.insert(&mut transaction, &mut numbers)?;
            transaction.commit(self.durability)
        })
    }

    /// Adds arrays of fingerprints and ids, in transactions of about 50,000 rows. Readers see completed transactions before the call ends.
    /// If the call fails or is interrupted, completed transactions stay; repeating the call changes nothing in these rows. To add all rows
    /// or none, use `batch`.
    ///
    /// Parameters
    /// ----------
    /// fingerprints : array_like, shape (n,)
    ///     Numpy array of uint64, or of uint8 with shape (n, 16); Arrow array of uint64 or fixed_size_binary[16]; a list of ints. Omit it
    ///     if ``texts`` is given.
    /// ids : array_like, shape (n,)
    ///     Ints from 0 to 2**64 - 1; or names, as for `insert`.
    /// names : array_like of str or None, shape (n,), optional
    ///     The names of documents with numeric ids, as for `insert`.
    /// texts : iterable of str or None
    ///     Texts, as for `Profile.fingerprints`. Texts without a fingerprint are skipped with a warning.
    /// progress : bool or callable, optional
    ///     True shows a bar of tqdm. A callable receives a `Progress` several times a second.
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
        let mut entries = NewDocuments::read(fingerprints, ids, names, texts, self.width.bits())?;
        call::with_progress(py, progress, |call| {
            entries.compute_fingerprints(&self.profile, call)?;
            let mut at = 0;
            while at < entries.len() {
                call.check()?;
                let (_inserting, mut transaction, mut numbers) = open.begin_insert(entries.has_name_ids())?;
                while at < entries.len() && transaction.bytes() < TRANSACTION_BYTES {
                    entries.insert(at, &mut transaction, &mut numbers)?;
                    at += 1;
                }
                transaction.commit(if at < entries.len() { Durability::Os } else { self.durability })?;
                call.report_step("fingerprints", at as u64, entries.len() as u64);
            }
            Ok(())
        })
    }

    /// Adds a fingerprint with an id, unless a stored fingerprint is within the store's distance. The call is atomic with respect to other
    /// threads.
    ///
    /// Parameters
    /// ----------
    /// fingerprint, id, name, text
    ///     As for `insert`.
    ///
    /// Returns
    /// -------
    /// list of Match
    ///     The near stored fingerprints, nearest first. Empty if the fingerprint was inserted.
    #[pyo3(signature = (fingerprint=None, id=None, name=None, *, text=None))]
    fn insert_if_new<'py>(
        &self,
        py: Python<'py>,
        fingerprint: Option<&Bound<'py, PyAny>>,
        id: Option<&Bound<'py, PyAny>>,
        name: Option<&str>,
        text: Option<&str>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (open, entry) = (self.writable(py)?, self.read_document(py, fingerprint, id, name, text)?);
        let found = call::detached(py, || {
            let (_inserting, mut transaction, mut numbers) = open.begin_insert(entry.has_name_id())?;
            if !entry.insert(&mut transaction, &mut numbers)? {
                // The same document is already stored.
                let snapshot = open.store.snapshot();
                return matches::with_names(
                    &snapshot,
                    snapshot.query(entry.fingerprint, snapshot.distance())?,
                );
            }
            match transaction.commit_if_new(self.durability)? {
                Insertion::Inserted => Ok(Vec::new()),
                Insertion::DuplicateOf(found) => matches::with_names(&open.store.snapshot(), found),
            }
        })?;
        PyList::new(py, found)
    }

    /// Adds arrays of fingerprints and ids, one element after another. An element is skipped if a fingerprint
    /// within the store's distance is stored, including fingerprints added earlier in this call. If the call is
    /// interrupted, the elements before that point are done; repeating the call would report them as not new.
    ///
    /// Parameters
    /// ----------
    /// fingerprints, ids, names, texts, progress
    ///     As for `insert_many`.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray of bool, shape (n,)
    ///     Which elements were inserted.
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
        let mut entries = NewDocuments::read(fingerprints, ids, names, texts, self.width.bits())?;
        let inserted = call::with_progress(py, progress, |call| {
            entries.compute_fingerprints(&self.profile, call)?;
            let one = |at| {
                call.check()?;
                let (_inserting, mut transaction, mut numbers) = open.begin_insert(entries.has_name_ids())?;
                let is_inserted = entries.insert(at, &mut transaction, &mut numbers)?
                    && transaction.commit_if_new(Durability::Os)? == Insertion::Inserted;
                if (at + 1) % PAIR_BATCH == 0 || at + 1 == entries.len() {
                    call.report_step("fingerprints", at as u64 + 1, entries.len() as u64);
                }
                Ok(is_inserted)
            };
            let inserted = (0..entries.len()).map(one).collect::<Result<Vec<bool>>>()?;
            if self.durability != Durability::Os {
                open.store.sync()?;
            }
            Ok(inserted)
        })?;
        Ok(PyArray1::from_vec(py, inserted))
    }

    /// Removes a pair of fingerprint and id, if it is stored, and the name of the id. In a store without ids, removes the fingerprint.
    ///
    /// Returns
    /// -------
    /// bool
    ///     Whether the pair was stored.
    fn delete(
        &self,
        py: Python<'_>,
        fingerprint: &Bound<'_, PyAny>,
        id: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let (open, fingerprint, id) = (self.writable(py)?, self.fingerprint(fingerprint)?, read_id(id)?);
        call::detached(py, || open.store.delete(fingerprint, id))
    }

    /// Removes the pairs in arrays of fingerprints and ids, and the names of these ids, in transactions of a few thousand pairs. If the
    /// call is interrupted, the pairs before that point are removed.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray of bool, shape (n,)
    ///     Which pairs were stored. If a pair occurs twice in the arrays, the value of the second is False.
    #[pyo3(signature = (fingerprints, ids, *, progress=None))]
    fn delete_many<'py>(
        &self,
        py: Python<'py>,
        fingerprints: &Bound<'py, PyAny>,
        ids: &Bound<'py, PyAny>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let (open, rows) = (self.writable(py)?, IdPairs::read(fingerprints, ids, self.width.bits())?);
        let deleted = call::with_progress(py, progress, |call| {
            let mut deleted = Vec::with_capacity(rows.len());
            while deleted.len() < rows.len() {
                call.check()?;
                let end = rows.len().min(deleted.len() + PAIR_BATCH);
                let pairs: Vec<(u128, u64)> = rows.pairs(deleted.len()..end).collect();
                let durability = if end < rows.len() { Durability::Os } else { self.durability };
                deleted.extend(open.store.delete_all(&pairs, durability)?);
                call.report_step("fingerprints", end as u64, rows.len() as u64);
            }
            Ok(deleted)
        })?;
        Ok(PyArray1::from_vec(py, deleted))
    }

    /// Returns a batch of writes that become visible and durable together, or not at all. ``with store.batch() as batch:`` commits at the
    /// end, and writes nothing after an exception.
    fn batch(slf: &Bound<'_, Self>) -> PyResult<PyBatch> {
        slf.get().writable(slf.py())?;
        Ok(PyBatch::new(Arc::clone(&slf.get().inner)))
    }

    /// Returns the stored fingerprints within a distance of a given fingerprint, or of the fingerprint of a text. Includes all inserts
    /// so far.
    ///
    /// Parameters
    /// ----------
    /// fingerprint : int
    ///     The fingerprint, if ``text`` is not given.
    /// distance : int, optional
    ///     In bits. The default is the store's distance, which is also the maximum.
    /// text : str
    ///     A text that the store's profile turns into a fingerprint. A text without a fingerprint matches nothing.
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
        #[pyo3(from_py_with = number_arguments::distance)] distance: Option<u32>,
        text: Option<&str>,
    ) -> PyResult<Bound<'py, PyList>> {
        let snapshot = self.query_snapshot(py)?;
        let fingerprint =
            self.profile.fingerprint_or_text(py, fingerprint, text, |one| self.fingerprint(one))?;
        matches::query(py, &snapshot, fingerprint, distance)
    }

    /// Returns the fingerprints now stored within a distance of each of many fingerprints or texts, like `Snapshot.query_many`.
    #[pyo3(signature = (fingerprints=None, distance=None, *, texts=None, progress=None))]
    fn query_many(
        &self,
        py: Python<'_>,
        fingerprints: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = number_arguments::distance)] distance: Option<u32>,
        texts: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTable> {
        self.py_snapshot(py)?.query_many(py, fingerprints, distance, texts, progress)
    }

    /// Returns the name of a document; None if it has none.
    fn name(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
        self.py_snapshot(py)?.name(py, id)
    }

    /// Returns the names of documents, like `Snapshot.names`.
    fn names(&self, py: Python<'_>, ids: &Bound<'_, PyAny>) -> PyResult<PyArrowArray> {
        self.py_snapshot(py)?.names(py, ids)
    }

    /// Returns a snapshot of the store's current state. The snapshot does not change, and remains usable after the
    /// store is closed.
    fn snapshot(&self) -> PyResult<PySnapshot> {
        Ok(PySnapshot::with(self.current_snapshot()?, self.profile.clone()))
    }

    /// Writes the log's contents to a segment, and waits until that is done. The next opening is then faster.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.opened.acquire_in_any_process()?;
        call::detached(py, || open.store.flush())
    }

    /// Makes all previous writes durable.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.opened.acquire_in_any_process()?;
        call::detached(py, || open.store.sync())
    }

    /// Merges all segments into one, and waits until that is done. Queries are then faster, and deleted entries take no space. An
    /// interrupted call leaves the store unchanged.
    ///
    /// Parameters
    /// ----------
    /// distance : int, optional
    ///     The largest distance of later queries, in bits. It must not be smaller than the current one.
    /// progress : bool or callable, optional
    ///     True shows a bar of tqdm. A callable receives a `Progress` several times a second.
    #[pyo3(signature = (distance=None, *, progress=None))]
    fn compact(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number_arguments::distance)] distance: Option<u32>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let open = self.opened.acquire_in_any_process()?;
        call::with_progress(py, progress, |call| {
            let progress = Some(call.callback("fingerprints"));
            open.store.compact_with(&CompactOptions { distance, progress })
        })
    }

    /// Closes the store, after running calls of other threads have ended. All writes are durable then, and another process can open the
    /// store. Closing a closed store has no effect.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     If called during another call of the same thread on this store, such as from its progress callable or from a signal handler.
    ///     Close the store after that call has returned.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.opened.close(py, "Store.close")
    }

    /// Whether the store has been closed.
    #[getter]
    fn closed(&self) -> bool {
        self.opened.is_closed()
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        slf.get().opened.acquire_in_any_process()?;
        Ok(slf.clone())
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        let _ = exception;
        self.close(py)
    }

    /// Number of fingerprints. It is an upper bound while some are in several segments, or deleted and not yet compacted.
    fn __len__(&self) -> PyResult<usize> {
        Ok(self.current_snapshot()?.len() as usize)
    }

    fn __contains__(&self, py: Python<'_>, fingerprint: &Bound<'_, PyAny>) -> PyResult<bool> {
        let fingerprint = self.fingerprint(fingerprint)?;
        let snapshot = self.fingerprint_store(py, similar_settings::QUERY_ADVICE)?.store.snapshot();
        call::detached(py, || snapshot.contains(fingerprint))
    }

    /// The store's directory.
    #[getter]
    fn path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        path_to_python(py, self.opened.path())
    }

    /// Width of the fingerprints, in bits: 64 or 128.
    #[getter(bits)]
    fn width(&self) -> u32 {
        self.width.bits()
    }

    /// The largest distance of queries, in bits.
    #[getter]
    fn distance(&self) -> PyResult<u32> {
        Ok(self.current_snapshot()?.distance())
    }

    fn __repr__(&self) -> String {
        let closed = if self.closed() { ", closed" } else { "" };
        format!("Store('{}', bits={}{closed})", self.opened.path().display(), self.width.bits())
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(format!(
            "a Store cannot be pickled: one process at a time writes to a store; send the path, or Snapshot('{}')",
            self.opened.path().display()
        )))
    }
}
