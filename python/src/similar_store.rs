//! The class `SimilarStore`.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, LargeStringArray, UInt32Array, UInt64Array};
use numpy::PyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use simstore::{Durability, StoreOptions};
use simstore_text::{Resources, SimilarDocument, SimilarDocuments, SimilarSettings};

use crate::array::PyArrowArray;
use crate::call;
use crate::closable_store::ClosableStore;
use crate::number_arguments;
use crate::open_similar_store::{OpenSimilarStore, TextInput, map_range, read_ids, read_texts};
use crate::profile::PyProfile;
use crate::settings::path_to_python;
use crate::similar_match::PySimilarMatch;
use crate::similar_settings::resolve_settings;
use crate::table::PyTable;

/// A store that finds documents by the similarity of their texts. It accepts texts, and finds stored documents
/// that are similar to a text.
///
/// ``simstore add --similar`` makes such a store, too. Only one process at a time may have a store open; any
/// number of its threads may use it. Use it as a context manager, or call `close()`.
///
/// Parameters
/// ----------
/// path : str or os.PathLike
///     The store's directory, which is created if it is missing.
/// similar : float, optional
///     The smallest similarity that queries find, up to 1: 0.8 for a new store. At least 0.43 with the default ``recall``; lower values
///     need a smaller ``recall``. An existing store refuses other settings than its own.
/// recall : float, optional
///     The smallest probability of finding a text whose similarity is exactly ``similar``: 0.95 for a new store.
///     More similar texts are found more often, equal texts always.
/// with_texts : bool, optional
///     Whether the store keeps compressed texts. With texts, similarities are exact. Without, they are estimates, each with its standard
///     error. False for a new store.
/// profile : Profile or str, optional
///     The profile that turns texts into features: shingles for a new store.
/// durability : {"os", "group", "sync"}
///     When a write returns. "os": when the operating system has the data, which then survives the end of this process. "group" and
///     "sync": when the data is on the disk.
/// create : bool
///     Whether a missing store is created. If False, a missing store raises FileNotFoundError.
///
/// Raises
/// ------
/// LockedError
///     If another writer has the store open.
/// ValueError
///     If a given setting differs from the store's setting, or if the store holds fingerprints.
///
/// Examples
/// --------
/// >>> import simstore
/// >>> with simstore.SimilarStore("pages", with_texts=True) as store:
/// ...     store.add(["the quick brown fox jumps over the lazy dog, and over the cat"], ["https://example.org/fox"]).to_pylist()
/// ...     store.query("the quick brown fox jumps over the lazy dog, and over the cats")
/// ...     store.texts([0]).to_pylist()
/// [0]
/// [SimilarMatch(id=0, name='https://example.org/fox', similarity=0.8333333333333334, error=0.0)]
/// ['the quick brown fox jumps over the lazy dog, and over the cat']
#[pyclass(frozen, module = "simstore", name = "SimilarStore")]
pub(crate) struct PySimilarStore {
    opened: ClosableStore<OpenSimilarStore>,
    settings: SimilarSettings,
    profile: String,
}

#[pymethods]
impl PySimilarStore {
    #[new]
    #[pyo3(signature = (path, similar=None, recall=None, *, with_texts=None, profile=None, durability="os", create=true))]
    #[expect(
        clippy::too_many_arguments,
        clippy::needless_pass_by_value,
        reason = "settings, by name; a path is made"
    )]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        similar: Option<f64>,
        recall: Option<f64>,
        with_texts: Option<bool>,
        profile: Option<&Bound<'_, PyAny>>,
        durability: &str,
        create: bool,
    ) -> PyResult<PySimilarStore> {
        if !["os", "group", "sync"].contains(&durability) {
            return Err(PyValueError::new_err(format!(
                "unknown durability `{durability}`; expected os, group or sync"
            )));
        }
        let (given, name) = match profile.filter(|profile| !profile.is_none()) {
            None => (None, None),
            Some(profile) => match profile.cast::<PyProfile>() {
                Ok(profile) => (Some(profile.get().inner.clone()), None),
                Err(_) => match profile.cast::<PyString>() {
                    Ok(name) => (None, Some(name.to_str()?.to_owned())),
                    Err(_) => {
                        return Err(PyTypeError::new_err("profile: expected a Profile, or the name of one"));
                    }
                },
            },
        };
        let documents = call::detached(py, || {
            let (settings, stored) = resolve_settings(&path, similar, recall, with_texts)?;
            let profile = match (given, name.or(stored)) {
                (Some(profile), _) => profile,
                (None, Some(name)) => simstore_text::Profile::with_resources(&name, &Resources::default())?,
                (None, None) => simstore_text::Profile::shingles(),
            };
            let options = StoreOptions { create, durability: Durability::Os, ..StoreOptions::default() };
            SimilarDocuments::open(&path, options, profile, settings)
        })?;
        if let Some(torn) = documents.store().torn_tail() {
            call::issue_warning(py, &torn.to_string())?;
        }
        let (settings, profile) = (*documents.settings(), documents.profile().to_string());
        let path = documents.store().snapshot().path().to_path_buf();
        let opened = ClosableStore::new(OpenSimilarStore::new(documents, durability != "os"), path);
        Ok(PySimilarStore { opened, settings, profile })
    }

    /// Adds texts, including texts that are similar to stored ones. All texts and ids are read before the first text is added. If reading
    /// fails, nothing is added. If the call fails later or is interrupted, the texts before that point are added.
    ///
    /// Parameters
    /// ----------
    /// texts : str, or iterable of str or None
    ///     A list, series or array, as for `Profile.fingerprints`; or a single text. None and white space are skipped with a warning.
    /// ids : int or str, or iterable of these, optional
    ///     Numbers, or names. With names, or without ids, each text gets the number after the highest id. Adding
    ///     the same text with the same number or name again changes nothing. A different text with a stored number
    ///     or name is refused.
    /// progress : bool or callable, optional
    ///     True shows a bar of tqdm. A callable receives a `Progress` several times a second.
    ///
    /// Returns
    /// -------
    /// Array
    ///     The ids, uint64 of shape (n,); null for skipped texts.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If a number or name is already stored with another text: delete the stored document first. The message
    ///     has the position of the refused text in ``texts``. The texts before it are added.
    #[pyo3(signature = (texts, ids=None, *, progress=None))]
    fn add(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        ids: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyArrowArray> {
        let (live, input) = (self.opened.acquire(py)?, TextInput::read(texts, ids)?);
        let ids = call::with_progress(py, progress, |call| {
            live.for_each_text(&input, call, |prepared, id| live.add(prepared, id).map(Some))
        })?;
        Ok(PyArrowArray::new(Arc::new(UInt64Array::from(ids))))
    }

    /// Adds texts, in order. A text is skipped if a stored text is similar, including texts added earlier in this call. The check and the
    /// insertion of a text are atomic with respect to other threads.
    ///
    /// Parameters
    /// ----------
    /// texts, ids, progress
    ///     As for `add`.
    ///
    /// Returns
    /// -------
    /// Table
    ///     A row for each text. Column added (bool) is True for an added text; id (uint64) is then its id. For a
    ///     skipped text, duplicate_of (uint64) and name (string) are the id and the name of the most similar
    ///     stored text, similarity (float64) is the similarity to it, and error (float64) is the standard error of
    ///     the similarity. Columns that do not apply are null.
    #[pyo3(signature = (texts, ids=None, *, progress=None))]
    fn add_if_new(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        ids: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTable> {
        let (live, input) = (self.opened.acquire(py)?, TextInput::read(texts, ids)?);
        let outcomes = call::with_progress(py, progress, |call| {
            live.for_each_text(&input, call, |prepared, id| live.add_if_new(prepared, id))
        })?;
        let added: BooleanArray = outcomes.iter().map(|(id, _)| Some(id.is_some())).collect();
        let ids: UInt64Array = outcomes.iter().map(|(id, _)| *id).collect();
        let [duplicate_of, name, similarity, error] =
            document_columns("duplicate_of", outcomes.iter().map(|(_, similar)| similar.as_ref()));
        let (added, ids) = (Arc::new(added), Arc::new(ids));
        PyTable::from_columns(vec![("added", added), ("id", ids), duplicate_of, name, similarity, error])
    }

    /// Returns the stored documents that are similar to a text, the most similar first. A text of white space
    /// matches no document.
    ///
    /// Parameters
    /// ----------
    /// text : str
    /// limit : int, optional
    ///     Maximum number of matches: the most similar ones are returned.
    ///
    /// Returns
    /// -------
    /// list of SimilarMatch
    #[pyo3(signature = (text, limit=None))]
    fn query<'py>(
        &self,
        py: Python<'py>,
        text: &str,
        #[pyo3(from_py_with = number_arguments::limit)] limit: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let live = self.opened.acquire(py)?;
        let found = call::detached(py, || live.documents.find(text))?;
        let found = found.into_iter().take(limit.unwrap_or(usize::MAX)).map(PySimilarMatch::from);
        PyList::new(py, found.collect::<Vec<_>>())
    }

    /// Returns the stored documents that are similar to each of many texts, on all cores.
    ///
    /// Parameters
    /// ----------
    /// texts : iterable of str or None
    ///     As for `add`.
    /// limit : int, optional
    ///     Maximum number of matches for each text.
    /// progress : bool or callable, optional
    ///     As for `add`.
    ///
    /// Returns
    /// -------
    /// Table
    ///     A row for each match, with columns query (uint32, the position of the text), id (uint64), name (string, null without a
    ///     name), similarity and error (float64), sorted by query. The rows of one query are in the order of the method `query`.
    #[pyo3(signature = (texts, limit=None, *, progress=None))]
    fn query_many(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = number_arguments::limit)] limit: Option<usize>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTable> {
        let (live, texts) = (self.opened.acquire(py)?, read_texts(texts)?);
        let found = call::with_progress(py, progress, |call| {
            map_range(call, texts.len(), |at| {
                let mut found = texts.get(at).map_or(Ok(Vec::new()), |text| live.documents.find(text))?;
                found.truncate(limit.unwrap_or(usize::MAX));
                Ok(found)
            })
        })?;
        let queries = found.iter().zip(0..).flat_map(|(matches, query)| matches.iter().map(move |_| query));
        let queries = Arc::new(UInt32Array::from_iter_values(queries));
        let [id, name, similarity, error] = document_columns("id", found.iter().flatten().map(Some));
        PyTable::from_columns(vec![("query", queries), id, name, similarity, error])
    }

    /// Removes documents by their ids or names.
    ///
    /// Parameters
    /// ----------
    /// ids : int or str, or iterable of these
    ///     Numbers, or names. A name removes all documents with that name. A call with names reads all names of
    ///     the store once.
    /// progress : bool or callable, optional
    ///     As for `add`.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray of bool, shape (n,)
    ///     Which documents were stored. If an id occurs twice in ``ids``, the value of the second is False.
    #[pyo3(signature = (ids, *, progress=None))]
    fn delete<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let (live, wanted) = (self.opened.acquire(py)?, read_ids(ids)?);
        let deleted = call::with_progress(py, progress, |call| live.delete(&wanted, call))?;
        Ok(PyArray1::from_vec(py, deleted))
    }

    /// Returns the texts of documents by their ids or names, exactly as added.
    ///
    /// Parameters
    /// ----------
    /// ids : int or str, or iterable of these
    ///     As for `delete`.
    ///
    /// Returns
    /// -------
    /// Array
    ///     Strings of shape (n,); null for documents that are not stored.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the store keeps no texts.
    fn texts(&self, py: Python<'_>, ids: &Bound<'_, PyAny>) -> PyResult<PyArrowArray> {
        let (live, wanted) = (self.opened.acquire(py)?, read_ids(ids)?);
        if !self.settings.has_texts() {
            return Err(PyValueError::new_err(format!(
                "{}: the store has no texts: create another one with with_texts=True",
                self.opened.path().display()
            )));
        }
        let texts = call::interruptible(py, |call| live.texts(&wanted, call))?;
        Ok(PyArrowArray::new(Arc::new(LargeStringArray::from(texts))))
    }

    /// Writes the log's contents to a segment, and waits until that is done. The next opening is then faster.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let live = self.opened.acquire(py)?;
        call::detached(py, || live.documents.store().flush())
    }

    /// Closes the store, like `Store.close`.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.opened.close(py, "SimilarStore.close")
    }

    /// Whether the store has been closed.
    #[getter]
    fn closed(&self) -> bool {
        self.opened.is_closed()
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        slf.get().opened.acquire(slf.py())?;
        Ok(slf.clone())
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        let _ = exception;
        self.close(py)
    }

    /// Number of documents. It is an upper bound while deleted documents are still in the store's files.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.opened.acquire(py)?.documents.count() as usize)
    }

    /// The store's directory.
    #[getter]
    fn path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        path_to_python(py, self.opened.path())
    }

    /// The smallest similarity that queries find.
    #[getter]
    fn similar(&self) -> f64 {
        self.settings.min_similarity()
    }

    /// The probability, at least, that a query finds a text whose similarity is exactly the store's minimum, ``similar``. More similar
    /// texts are found more often.
    #[getter]
    fn recall(&self) -> f64 {
        self.settings.recall()
    }

    /// Whether the store keeps texts.
    #[getter]
    fn has_texts(&self) -> bool {
        self.settings.has_texts()
    }

    /// Name of the profile that turns texts into features.
    #[getter]
    fn profile(&self) -> &str {
        &self.profile
    }

    fn __repr__(&self) -> String {
        let (similar, closed) = (self.settings.min_similarity(), if self.closed() { ", closed" } else { "" });
        let texts = if self.settings.has_texts() { ", with texts" } else { "" };
        format!("SimilarStore('{}', similar={similar}{texts}{closed})", self.opened.path().display())
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(format!(
            "a SimilarStore cannot be pickled: one process at a time writes to a store; send the path '{}'",
            self.opened.path().display()
        )))
    }
}

/// Makes the columns of similar documents: id, name, similarity, error. `id` is the name of the first column.
fn document_columns<'a>(
    id: &'static str,
    found: impl Iterator<Item = Option<&'a SimilarDocument>> + Clone,
) -> [(&'static str, ArrayRef); 4] {
    let names = found.clone().map(|found| found?.name.as_deref());
    let similarities = found.clone().map(|found| Some(found?.estimate.similarity));
    let errors = found.clone().map(|found| Some(found?.estimate.standard_error));
    [
        (id, Arc::new(found.map(|found| Some(found?.id)).collect::<UInt64Array>())),
        ("name", Arc::new(names.collect::<LargeStringArray>())),
        ("similarity", Arc::new(similarities.collect::<Float64Array>())),
        ("error", Arc::new(errors.collect::<Float64Array>())),
    ]
}
