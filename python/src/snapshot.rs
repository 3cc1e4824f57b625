//! The class `Snapshot`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, UInt8Array, UInt32Array};
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList, PyString, PyTuple};
use simstore::any::AnySnapshot;
use simstore::batch::BatchMatch;
use simstore::fs::{Disk, Fs};
use simstore::{Fingerprint, Result, each_width};
use simstore_corpus::describe::describe_store;

use crate::array::PyArrowArray;
use crate::batches::{BatchReader, PyBatches};
use crate::call::{self, in_parallel};
use crate::errors::exception;
use crate::fingerprints::{FingerprintColumn, array_of, read_one};
use crate::id_columns::{id_column, name_column};
use crate::id_pairs::{read_id, read_ids};
use crate::matches;
use crate::number_arguments;
use crate::profile::PyProfile;
use crate::settings::path_to_python;
use crate::similar_settings::check_has_fingerprints;
use crate::summary::parse_json;
use crate::table::{PyTable, export_stream};
use crate::text_profile::{QueryInput, TextProfile};

/// Fingerprints that are looked up between checks for interruption.
const LOOKUPS_PER_CANCEL_CHECK: usize = 256;

/// A read-only view of a store at one moment. It answers queries from any number of threads, while another process may write to the
/// store.
///
/// A snapshot is pickled by its path, so that ``multiprocessing`` and Spark can send it. The other process opens the store, and sees
/// everything written to it by then, in segments and in the log.
///
/// A snapshot is an Arrow stream of all stored pairs, with columns fingerprint, id and name, ascending by fingerprint, then id. Read it by
/// ``duckdb.sql("from snapshot")``, ``polars.DataFrame(snapshot)``, ``pyarrow.RecordBatchReader.from_stream(snapshot)``.
///
/// Parameters
/// ----------
/// path : str or os.PathLike
///     The store's directory.
/// mmap : bool
///     Whether files are memory-mapped. If True, opening is quick, and the system's cache holds the data. If False, the process reads whole
///     files into its memory when the store is opened or refreshed.
/// profile : Profile, optional
///     The profile that turns texts into fingerprints. Needed if the store records no profile, or if the profile's name refers to files,
///     such as a dictionary.
///
/// Raises
/// ------
/// FileNotFoundError
///     If the path does not exist.
/// NotAStoreError
///     If the path is not a store.
/// CorruptError
///     If the parts read at opening are damaged. Other parts are checked when they are first read, or by `verify`.
///
/// Notes
/// -----
/// simstore never changes a file after writing it. If another program truncates a mapped file (by copying over it, or on a network disk),
/// reading the missing part ends the process with the signal SIGBUS, as for any mapped file. With ``mmap=False``, a truncated file raises
/// an exception when the store is opened, and has no effect later.
///
/// Examples
/// --------
/// >>> import simstore
/// >>> with simstore.Builder("pages") as builder:
/// ...     builder.insert_many([0b1111, 0b1110, 1 << 40], [1, 2, 3])
/// >>> snapshot = simstore.Snapshot("pages")
/// >>> [match.id for match in snapshot.query(0b1111)]
/// [1, 2]
#[pyclass(frozen, module = "simstore", name = "Snapshot")]
pub(crate) struct PySnapshot {
    inner: AnySnapshot,
    /// Whether files are memory-mapped.
    mmap: bool,
    profile: TextProfile,
    /// The profile passed by the caller, if any.
    given_profile: Option<Py<PyAny>>,
}

impl PySnapshot {
    pub(crate) fn new(inner: AnySnapshot) -> PySnapshot {
        let profile = TextProfile::new(inner.profile(), inner.width(), inner.path(), None);
        PySnapshot::with(inner, profile)
    }

    pub(crate) fn with(inner: AnySnapshot, profile: TextProfile) -> PySnapshot {
        PySnapshot { inner, mmap: true, profile, given_profile: None }
    }

    fn fingerprint(&self, object: &Bound<'_, PyAny>) -> PyResult<u128> {
        read_one(object, self.inner.width())
    }

    fn reader(&self, size: usize) -> BatchReader {
        BatchReader::new(&self.inner, size)
    }
}

#[pymethods]
impl PySnapshot {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "a path is made of what it is called with")]
    #[pyo3(signature = (path, *, mmap=true, profile=None))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        mmap: bool,
        profile: Option<&Bound<'_, PyProfile>>,
    ) -> PyResult<PySnapshot> {
        let disk: Arc<dyn Fs> = Arc::new(if mmap { Disk::default() } else { Disk::resident() });
        let inner = call::detached(py, || AnySnapshot::open_retrying_on(&disk, &path))?;
        let given_name = profile.map(|profile| profile.get().name());
        if let Some(given_name) =
            given_name.filter(|given_name| !inner.profile().is_empty() && *given_name != inner.profile())
        {
            let stored = inner.profile();
            return Err(PyValueError::new_err(format!(
                "{}: the store has the profile `{stored}`, not `{given_name}`",
                path.display()
            )));
        }
        let object = profile.map(|profile| profile.as_any());
        let text_profile = TextProfile::new(inner.profile(), inner.width(), inner.path(), object);
        Ok(PySnapshot {
            inner,
            mmap,
            profile: text_profile,
            given_profile: object.map(|profile| profile.clone().unbind()),
        })
    }

    /// Returns the stored fingerprints within a distance of a fingerprint or of a text's fingerprint.
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
        let fingerprint =
            self.profile.fingerprint_or_text(py, fingerprint, text, |one| self.fingerprint(one))?;
        matches::query(py, &self.inner, fingerprint, distance)
    }

    /// Returns the stored fingerprints within a distance of each of many fingerprints or texts, on all cores.
    ///
    /// Parameters
    /// ----------
    /// fingerprints : array_like, shape (n,)
    ///     Numpy array of uint64, or of uint8 with shape (n, 16); Arrow array of uint64 or fixed_size_binary[16]; a list of ints. A null
    ///     matches nothing. Omit it if ``texts`` is given.
    /// distance : int, optional
    ///     In bits. The default is the store's distance.
    /// texts : iterable of str or None
    ///     Texts, as for `Profile.fingerprints`. A text without a fingerprint matches nothing.
    /// progress : bool or callable, optional
    ///     True shows a bar of tqdm. A callable receives a `Progress` several times a second.
    ///
    /// Returns
    /// -------
    /// Table
    ///     A row for each match, with columns query (uint32, position in the array), fingerprint, distance (uint8), id (uint64) and name
    ///     (string). Id and name are null if missing. Rows are sorted by query. The rows of one query are in the order
    ///     of the method `query`.
    #[pyo3(signature = (fingerprints=None, distance=None, *, texts=None, progress=None))]
    pub(crate) fn query_many(
        &self,
        py: Python<'_>,
        fingerprints: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = number_arguments::distance)] distance: Option<u32>,
        texts: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTable> {
        let mut queries = QueryInput::read(fingerprints, texts, self.inner.bits())?;
        let distance = distance.unwrap_or_else(|| self.inner.distance());
        let columns = call::with_progress(py, progress, |call| {
            check_has_fingerprints(&self.inner)?;
            let queries = queries.fingerprints(&self.profile, call)?;
            each_width!(self.inner.as_ref().zip(queries.values.as_ref())?, (one, fingerprints) => {
                let matches = one.batch_query_with(fingerprints, distance, &call.callback("matches"))?;
                call.check()?;
                columns(&self.inner, &matches, |query| queries.position(query))
            })
        })?;
        PyTable::from_columns(columns)
    }

    /// Returns whether a fingerprint is stored; with an id, whether the pair is stored.
    #[pyo3(signature = (fingerprint, id=None))]
    fn contains(
        &self,
        py: Python<'_>,
        fingerprint: &Bound<'_, PyAny>,
        id: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let (fingerprint, id) = (self.fingerprint(fingerprint)?, id.map(read_id).transpose()?);
        call::detached(py, || {
            check_has_fingerprints(&self.inner)?;
            match id {
                Some(id) => self.inner.contains_pair(fingerprint, id),
                None => self.inner.contains(fingerprint),
            }
        })
    }

    /// Returns which of many fingerprints are stored, on all cores.
    ///
    /// Parameters
    /// ----------
    /// fingerprints : array_like, shape (n,)
    ///     As for `query_many`; a null is not stored.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray of bool, shape (n,)
    fn contains_many<'py>(
        &self,
        py: Python<'py>,
        fingerprints: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let queries = FingerprintColumn::read(fingerprints, Some(self.inner.bits()))?;
        let stored = call::interruptible(py, |call| {
            check_has_fingerprints(&self.inner)?;
            each_width!(self.inner.as_ref().zip(queries.values.as_ref())?, (one, fingerprints) => {
                let is_there = |at: usize| queries.valid.as_ref().is_none_or(|valid| valid.is_valid(at));
                let look = |at: usize| Ok(is_there(at) && one.contains(fingerprints[at])?);
                in_parallel(call, fingerprints.len(), LOOKUPS_PER_CANCEL_CHECK, look)
            })
        })?;
        Ok(PyArray1::from_vec(py, stored))
    }

    fn __contains__(&self, py: Python<'_>, fingerprint: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.contains(py, fingerprint, None)
    }

    /// Number of fingerprints. It is an upper bound while some are in several segments, or deleted and not yet compacted.
    fn __len__(&self) -> usize {
        self.inner.len() as usize
    }

    /// Returns the name of a document; None if it has none.
    pub(crate) fn name(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
        let id = read_id(id)?;
        call::detached(py, || self.inner.name(id))
    }

    /// Returns the names of documents.
    ///
    /// Parameters
    /// ----------
    /// ids : array_like of int, shape (n,)
    ///
    /// Returns
    /// -------
    /// Array
    ///     Strings of shape (n,); null for documents without a name.
    pub(crate) fn names(&self, py: Python<'_>, ids: &Bound<'_, PyAny>) -> PyResult<PyArrowArray> {
        let ids: Vec<Option<u64>> = read_ids(ids)?.into_iter().map(Some).collect();
        call::interruptible(py, |_| name_column(&self.inner, &ids)).map(PyArrowArray::new)
    }

    /// Returns the value that a writer stored under a key (see `Batch.set_metadata`); None if it stored no value.
    fn metadata<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Option<Bound<'py, PyBytes>>> {
        Ok(call::detached(py, || self.inner.metadata(key))?.map(|value| PyBytes::new(py, &value)))
    }

    /// Yields all stored pairs in batches, ascending by fingerprint, then id.
    ///
    /// Parameters
    /// ----------
    /// size : int
    ///     Maximum number of rows in a batch.
    ///
    /// Returns
    /// -------
    /// iterator of Table
    ///     With columns fingerprint, id (uint64) and name (string). Id and name are null if missing.
    #[pyo3(signature = (size=65536))]
    fn iter_batches(
        &self,
        #[pyo3(from_py_with = number_arguments::required_size)] size: usize,
    ) -> PyResult<PyBatches> {
        if size == 0 {
            return Err(PyValueError::new_err("size is 0: expected 1 or more"));
        }
        Ok(PyBatches::new(self.reader(size)))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = self.reader(1).schema_ref();
        Ok(pyo3_arrow::ffi::to_schema_pycapsule(py, schema.as_ref())?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        /// Maximum number of rows in a batch of the stream.
        const SIZE: usize = 1 << 16;
        export_stream(py, Box::new(self.reader(SIZE)), requested_schema)
    }

    /// A dict of counts, sizes and settings of the store, as ``simstore inspect --json`` reports them.
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let described = each_width!(&self.inner, one => describe_store(one));
        let json =
            serde_json::to_string(&described).map_err(|error| PyValueError::new_err(error.to_string()))?;
        parse_json(py, &json)
    }

    /// The largest distance of queries, in bits.
    #[getter]
    fn distance(&self) -> u32 {
        self.inner.distance()
    }

    /// Width of the fingerprints, in bits: 64 or 128.
    #[getter]
    fn bits(&self) -> u32 {
        self.inner.bits()
    }

    /// Name of the codec that compresses the fingerprints.
    #[getter]
    fn codec(&self) -> &'static str {
        self.inner.codec().name()
    }

    /// The name of the profile that made fingerprints from texts; None if the store records none.
    #[getter]
    fn profile(&self) -> Option<&str> {
        Some(self.inner.profile()).filter(|profile| !profile.is_empty())
    }

    /// The store's directory.
    #[getter]
    fn path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        path_to_python(py, self.inner.path())
    }

    /// Returns a snapshot of the store's newest state.
    fn refresh(&self, py: Python<'_>) -> PyResult<PySnapshot> {
        let inner = call::detached(py, || self.inner.refresh())?;
        let given_profile = self.given_profile.as_ref().map(|profile| profile.clone_ref(py));
        Ok(PySnapshot { inner, mmap: self.mmap, profile: self.profile.clone(), given_profile })
    }

    /// Reads all files, and checks that they are intact: checksums, sort order, and consistency of tables, ids and names.
    ///
    /// Parameters
    /// ----------
    /// progress : bool or callable, optional
    ///     True shows a bar of tqdm. A callable receives a `Progress` several times a second.
    ///
    /// Returns
    /// -------
    /// list of Exception
    ///     The problems, as `CorruptError`, which has ``path`` and ``offset``, or as OSError. Empty if the store is intact.
    #[pyo3(signature = (*, progress=None))]
    fn verify<'py>(
        &self,
        py: Python<'py>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let problems = call::with_progress(py, progress, |call| {
            let mut problems = Vec::new();
            self.inner.verify_with(&call.callback("fingerprints"), |error| problems.push(error))?;
            Ok(problems)
        })?;
        PyList::new(py, problems.into_iter().map(|error| exception(py, error).into_value(py)))
    }

    fn __repr__(&self) -> String {
        let path = self.inner.path().display();
        format!("Snapshot('{path}', bits={}, distance={})", self.inner.bits(), self.inner.distance())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, this) = (slf.py(), slf.get());
        let path = path_to_python(py, &absolute(this.inner.path()))?;
        if this.mmap && this.given_profile.is_none() {
            return Ok((slf.get_type().into_any(), (path,).into_pyobject(py)?));
        }
        let options = PyDict::new(py);
        options.set_item("mmap", this.mmap)?;
        options.set_item("profile", this.given_profile.as_ref())?;
        let make = py.import("functools")?.getattr("partial")?.call((slf.get_type(),), Some(&options))?;
        Ok((make, (path,).into_pyobject(py)?))
    }
}

/// Returns an absolute path, valid in processes with other working directories.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

/// Returns the columns of the table that `query_many` returns, with their names. `position` maps an index among the
/// queries that are not null to the position of the query in the caller's array.
fn columns<F: Fingerprint>(
    snapshot: &AnySnapshot,
    matches: &[BatchMatch<F>],
    position: impl Fn(usize) -> usize,
) -> Result<Vec<(&'static str, ArrayRef)>> {
    let ids: Vec<Option<u64>> = matches.iter().map(|m| m.found.id).collect();
    let names = name_column(snapshot, &ids)?;
    let query = UInt32Array::from_iter_values(matches.iter().map(|m| position(m.query) as u32));
    let distance = UInt8Array::from_iter_values(matches.iter().map(|m| m.found.distance as u8));
    Ok(vec![
        ("query", Arc::new(query)),
        ("fingerprint", array_of(matches.iter().map(|m| Some(m.found.fingerprint))).values),
        ("distance", Arc::new(distance)),
        ("id", id_column(ids)),
        ("name", names),
    ])
}
