//! The class `Batch`: writes to a store that are committed atomically.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use simstore_text::SIMILAR_STORE_KEY;

use crate::call;
use crate::id_pairs::{IdPairs, read_id};
use crate::new_documents::{NewDocument, NewDocuments};
use crate::writable_store::WritableStore;

/// Writes that become visible and durable together, or not at all. `Store.batch` makes a batch.
///
/// The writes stay in memory until the end of the ``with`` block, which commits them. After an exception nothing is written.
///
/// Examples
/// --------
/// >>> import simstore
/// >>> with simstore.Store("pages") as store:
/// ...     with store.batch() as batch:
/// ...         batch.insert(0b1111, 1)
/// ...         batch.set_metadata("crawl", b"up to page 1")
/// ...     store.snapshot().metadata("crawl")
/// b'up to page 1'
#[pyclass(frozen, module = "simstore", name = "Batch")]
pub(crate) struct PyBatch {
    store: Arc<WritableStore>,
    /// The writes so far; `None` after the batch was committed or discarded. Locked only while holding the GIL,
    /// and only briefly.
    writes: Mutex<Option<Vec<BatchWrite>>>,
}

enum BatchWrite {
    Insert(NewDocument),
    InsertMany(NewDocuments),
    Delete { fingerprint: u128, id: u64 },
    DeleteMany(IdPairs),
    SetMetadata { key: String, value: Vec<u8> },
}

impl PyBatch {
    pub(crate) fn new(store: Arc<WritableStore>) -> PyBatch {
        PyBatch { store, writes: Mutex::new(Some(Vec::new())) }
    }

    fn writes(&self) -> MutexGuard<'_, Option<Vec<BatchWrite>>> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, write: BatchWrite) -> PyResult<()> {
        let mut writes = self.writes();
        let writes =
            writes.as_mut().ok_or_else(|| PyValueError::new_err("the batch has ended: begin another"))?;
        writes.push(write);
        Ok(())
    }
}

#[pymethods]
impl PyBatch {
    /// Adds a fingerprint (given, or made from a text) with an id or a name, like `Store.insert`. A document with
    /// a name as id gets its number when the batch is committed.
    #[pyo3(signature = (fingerprint=None, id=None, name=None, *, text=None))]
    fn insert<'py>(
        &self,
        py: Python<'py>,
        fingerprint: Option<&Bound<'py, PyAny>>,
        id: Option<&Bound<'py, PyAny>>,
        name: Option<&str>,
        text: Option<&str>,
    ) -> PyResult<()> {
        self.push(BatchWrite::Insert(self.store.read_document(py, fingerprint, id, name, text)?))
    }

    /// Adds arrays of fingerprints and ids, like `Store.insert_many`.
    #[pyo3(signature = (fingerprints=None, ids=None, names=None, *, texts=None))]
    fn insert_many(
        &self,
        py: Python<'_>,
        fingerprints: Option<&Bound<'_, PyAny>>,
        ids: Option<&Bound<'_, PyAny>>,
        names: Option<&Bound<'_, PyAny>>,
        texts: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let store = &self.store;
        let mut entries = NewDocuments::read(fingerprints, ids, names, texts, store.width.bits())?;
        call::interruptible(py, |call| entries.compute_fingerprints(&store.profile, call))?;
        self.push(BatchWrite::InsertMany(entries))
    }

    /// Removes a pair of fingerprint and id, and the name of the id. A pair that is not stored is no error.
    fn delete(&self, fingerprint: &Bound<'_, PyAny>, id: &Bound<'_, PyAny>) -> PyResult<()> {
        let (fingerprint, id) = (self.store.fingerprint(fingerprint)?, read_id(id)?);
        self.push(BatchWrite::Delete { fingerprint, id })
    }

    /// Removes the pairs in arrays of fingerprints and ids, and the names of these ids. A pair that is not stored is no error.
    fn delete_many(&self, fingerprints: &Bound<'_, PyAny>, ids: &Bound<'_, PyAny>) -> PyResult<()> {
        self.push(BatchWrite::DeleteMany(IdPairs::read(fingerprints, ids, self.store.width.bits())?))
    }

    /// Stores bytes under a key, such as the position in an input, so that a job can continue there after a crash.
    ///
    /// Parameters
    /// ----------
    /// key : str
    /// value : bytes
    ///     Key and value have up to 4 KiB each.
    fn set_metadata(&self, key: String, value: Vec<u8>) -> PyResult<()> {
        if key == SIMILAR_STORE_KEY {
            return Err(PyValueError::new_err(format!(
                "the key `{key}` says that a store is of similar documents: choose another key"
            )));
        }
        self.push(BatchWrite::SetMetadata { key, value })
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        let writes = self.writes().take();
        let failed = exception.get_item(0).is_ok_and(|kind| !kind.is_none());
        let Some(writes) = writes.filter(|_| !failed) else { return Ok(()) };
        let store = &self.store;
        let (open, durability) = (store.writable(py)?, store.durability);
        call::interruptible(py, |call| {
            let by_name = writes.iter().any(|write| match write {
                BatchWrite::Insert(entry) => entry.has_name_id(),
                BatchWrite::InsertMany(entries) => entries.has_name_ids(),
                _ => false,
            });
            let (_inserting, mut transaction, mut numbers) = open.begin_insert(by_name)?;
            for write in &writes {
                call.check()?;
                match write {
                    BatchWrite::Insert(entry) => drop(entry.insert(&mut transaction, &mut numbers)?),
                    BatchWrite::InsertMany(entries) => (0..entries.len())
                        .try_for_each(|at| entries.insert(at, &mut transaction, &mut numbers).map(drop))?,
                    &BatchWrite::Delete { fingerprint, id } => transaction.delete(fingerprint, id)?,
                    BatchWrite::DeleteMany(rows) => rows
                        .pairs(0..rows.len())
                        .try_for_each(|(fingerprint, id)| transaction.delete(fingerprint, id))?,
                    BatchWrite::SetMetadata { key, value } => transaction.set_metadata(key, value)?,
                }
            }
            transaction.commit(durability)
        })
    }

    /// Number of writes so far. Each call of a method that inserts, deletes or sets metadata is one write.
    fn __len__(&self) -> usize {
        self.writes().as_ref().map_or(0, Vec::len)
    }
}
