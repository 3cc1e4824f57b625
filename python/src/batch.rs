//! Writes of a store that are done together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use simstore_text::SIMILAR_MARK;

use crate::entries::{Entries, Entry};
use crate::gate;
use crate::rows::{Rows, id_of};
use crate::writable::Writable;

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
/// ...         batch.mark("crawl", b"up to page 1")
/// ...     store.snapshot().mark("crawl")
/// b'up to page 1'
#[pyclass(frozen, module = "simstore")]
pub(crate) struct Batch {
    store: Arc<Writable>,
    /// Locked under the GIL alone, and never for long. `None` when all is committed, or given up.
    writes: Mutex<Option<Vec<Write>>>,
}

enum Write {
    Insert(Entry),
    InsertMany(Entries),
    Delete { fingerprint: u128, id: u64 },
    DeleteMany(Rows),
    Mark { key: String, value: Vec<u8> },
}

impl Batch {
    pub(crate) fn new(store: Arc<Writable>) -> Batch {
        Batch { store, writes: Mutex::new(Some(Vec::new())) }
    }

    fn writes(&self) -> MutexGuard<'_, Option<Vec<Write>>> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, write: Write) -> PyResult<()> {
        let mut writes = self.writes();
        let writes =
            writes.as_mut().ok_or_else(|| PyValueError::new_err("the batch has ended: begin another"))?;
        writes.push(write);
        Ok(())
    }
}

#[pymethods]
impl Batch {
    /// Adds a fingerprint (given, or made from a text) with an id or a name, like `Store.insert`. Names get their numbers when the batch is
    /// committed.
    #[pyo3(signature = (fingerprint=None, id=None, name=None, *, text=None))]
    fn insert<'py>(
        &self,
        py: Python<'py>,
        fingerprint: Option<&Bound<'py, PyAny>>,
        id: Option<&Bound<'py, PyAny>>,
        name: Option<&str>,
        text: Option<&str>,
    ) -> PyResult<()> {
        self.push(Write::Insert(self.store.entry(py, fingerprint, id, name, text)?))
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
        let mut entries = Entries::read(fingerprints, ids, names, texts, store.width.bits())?;
        gate::long(py, |call| entries.make(&store.profile, call))?;
        self.push(Write::InsertMany(entries))
    }

    /// Removes a pair of fingerprint and id, even if it is not stored, and the name of the id.
    fn delete(&self, fingerprint: &Bound<'_, PyAny>, id: &Bound<'_, PyAny>) -> PyResult<()> {
        let (fingerprint, id) = (self.store.fingerprint(fingerprint)?, id_of(id)?);
        self.push(Write::Delete { fingerprint, id })
    }

    /// Removes the pairs in arrays of fingerprints and ids, even if they are not stored, and the names of these ids.
    fn delete_many(&self, fingerprints: &Bound<'_, PyAny>, ids: &Bound<'_, PyAny>) -> PyResult<()> {
        self.push(Write::DeleteMany(Rows::read(fingerprints, ids, self.store.width.bits())?))
    }

    /// Stores some bytes under a key, such as the position in an input, to continue there after a crash.
    ///
    /// Parameters
    /// ----------
    /// key : str
    /// value : bytes
    ///     Key and value have up to 4 KiB each.
    fn mark(&self, key: String, value: Vec<u8>) -> PyResult<()> {
        if key == SIMILAR_MARK {
            return Err(PyValueError::new_err(format!(
                "the mark `{key}` says that a store is of similar documents: choose another key"
            )));
        }
        self.push(Write::Mark { key, value })
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
        gate::long(py, |call| {
            let by_name = writes.iter().any(|write| match write {
                Write::Insert(entry) => entry.by_name(),
                Write::InsertMany(entries) => entries.by_name(),
                _ => false,
            });
            let (_inserting, mut transaction, mut numbers) = open.inserting(by_name)?;
            for write in &writes {
                call.check()?;
                match write {
                    Write::Insert(entry) => drop(entry.insert(&mut transaction, &mut numbers)?),
                    Write::InsertMany(entries) => (0..entries.len())
                        .try_for_each(|at| entries.insert(at, &mut transaction, &mut numbers).map(drop))?,
                    &Write::Delete { fingerprint, id } => transaction.delete(fingerprint, id)?,
                    Write::DeleteMany(rows) => rows
                        .pairs(0..rows.len())
                        .try_for_each(|(fingerprint, id)| transaction.delete(fingerprint, id))?,
                    Write::Mark { key, value } => transaction.mark(key, value)?,
                }
            }
            transaction.commit(durability)
        })
    }

    /// Number of calls in the batch.
    fn __len__(&self) -> usize {
        self.writes().as_ref().map_or(0, Vec::len)
    }
}
