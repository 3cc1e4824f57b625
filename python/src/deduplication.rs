//! The class `Deduplication`: the result of `dedup`.

use std::path::PathBuf;

use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use simstore_io::numbers::{format_count, format_count_of};
use simstore_io::output::{Output, UnfinishedOutputs};

use crate::errors::exception;
use crate::html::{escape, table_of_cells};
use crate::result_tables::{LargeCluster, LargeClusterFields, Results, RowLabels};
use crate::summary::PySummary;
use crate::table::PyTable;

/// The result of `dedup`.
///
/// Documents are numbered from 0. In a frame or another source in memory, the number is the row. In files, it is the position of the
/// document; invalid documents are not counted. Ids are uint64 if all ids are numbers, otherwise strings.
///
/// Attributes
/// ----------
/// clusters : Table
///     The documents in clusters of two or more: cluster (from 1), document, id, representative_document, representative (the id of the
///     kept document, or of the first document if none is kept), is_kept, and similarity (from 0 to 1) or distance (in bits) to the
///     representative.
/// kept : Table
///     The kept documents: document, id.
/// removed : Table
///     The removed documents: document, id, duplicate_of_document, duplicate_of (the id of the nearest kept document), similarity or
///     distance to the nearest kept document.
/// summary : Summary
///     The numbers of the run.
///
/// Some runs have more columns. With ``verify_text``, tables have both ``distance`` and ``similarity``. With
/// ``against``, the tables ``clusters``, ``removed`` and ``pairs`` have the column ``stored``: whether the other
/// document of the row is in a store. A stored document has an id, but no number, so its number is null. With
/// several stores, the column ``store`` has the path of its store. If ids repeat, the column ``place`` has the
/// FILE:LINE of the document, and ``representative_place`` or ``duplicate_of_place`` has the FILE:LINE of the
/// other document.
///
/// Iteration yields the rows of ``clusters``. A result can be pickled.
#[pyclass(frozen, module = "simstore", name = "Deduplication")]
pub(crate) struct PyDeduplication {
    /// The tables of clusters, pairs, kept documents and removed documents. If the run made no tables, the reason.
    results: Result<Results, String>,
    summary: Py<PySummary>,
    /// Whether each row is kept: a numpy array, made on first use.
    is_kept: PyOnceLock<Py<PyArray1<bool>>>,
    /// Cluster number of each row, or -1: a numpy array, made on first use.
    labels: PyOnceLock<Py<PyArray1<i64>>>,
}

impl PyDeduplication {
    pub(crate) fn new(results: Result<Results, String>, summary: Py<PySummary>) -> PyDeduplication {
        PyDeduplication { results, summary, is_kept: PyOnceLock::new(), labels: PyOnceLock::new() }
    }

    fn results(&self) -> PyResult<&Results> {
        self.results.as_ref().map_err(|why| PyAttributeError::new_err(why.clone()))
    }

    /// Returns the kept rows of a frame, or the removed rows. `is_wanted` gets whether a row is kept, and returns
    /// whether to select it.
    fn select<'py>(
        &self,
        frame: &Bound<'py, PyAny>,
        is_wanted: impl Fn(bool) -> bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = frame.py();
        let wanted = self.results()?.row_labels.is_kept.iter().map(|&is_kept| is_wanted(is_kept));
        let wanted = PyArray1::from_iter(py, wanted);
        py.import("simstore._select")?.call_method1("select", (frame, wanted))
    }
}

/// Makes an array read-only, because all callers share it.
fn make_read_only<'py, T: numpy::Element>(array: Bound<'py, PyArray1<T>>) -> PyResult<Py<PyArray1<T>>> {
    array.getattr("flags")?.setattr("writeable", false)?;
    Ok(array.unbind())
}

#[pymethods]
impl PyDeduplication {
    #[getter]
    fn clusters(&self) -> PyResult<PyTable> {
        self.results().map(|results| results.clusters.clone())
    }

    /// All pairs of near documents, with columns a_document and b_document (numbers), a and b (ids), and
    /// similarity or distance.
    ///
    /// Raises
    /// ------
    /// AttributeError
    ///     If `dedup` was called without ``pairs=True``. Pairs take memory.
    #[getter]
    fn pairs(&self) -> PyResult<PyTable> {
        self.results()?.pairs.clone().ok_or_else(|| {
            PyAttributeError::new_err(
                "there are no pairs: they take memory, and were not asked for by pairs=True",
            )
        })
    }

    #[getter]
    fn kept(&self) -> PyResult<PyTable> {
        self.results().map(|results| results.kept.clone())
    }

    #[getter]
    fn removed(&self) -> PyResult<PyTable> {
        self.results().map(|results| results.removed.clone())
    }

    /// Whether each document is kept: a read-only numpy array of bool with shape (documents,). Select the kept
    /// rows by ``frame[result.is_kept]`` in pandas, ``frame.filter(result.is_kept)`` in Polars, or `unique` for
    /// any source. An invalid row that was skipped is not kept.
    #[getter]
    fn is_kept<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let row_labels = &self.results()?.row_labels;
        let made = self
            .is_kept
            .get_or_try_init(py, || make_read_only(PyArray1::from_slice(py, &row_labels.is_kept)))?;
        Ok(made.bind(py).clone())
    }

    /// The cluster number of each document, from 1 as in the column ``cluster``, or -1 for a document in no cluster: a read-only numpy
    /// array of int64 with shape (documents,).
    #[getter]
    fn labels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let row_labels = &self.results()?.row_labels;
        let made = self
            .labels
            .get_or_try_init(py, || make_read_only(PyArray1::from_slice(py, &row_labels.labels)))?;
        Ok(made.bind(py).clone())
    }

    /// Returns the kept rows of a frame, table, dataset, list, array or dict of columns.
    ///
    /// Parameters
    /// ----------
    /// frame : the source of `dedup`, or anything with a row for each document
    ///     A generator or a stream that `dedup` has read to its end is empty: make it again.
    ///
    /// Returns
    /// -------
    /// The same type as ``frame``, with fewer rows. The kept rows of a pyarrow dataset are in memory. An iterable dataset of Hugging Face
    /// is read when the result is read. For an Arrow reader or a relation of DuckDB, the result is a pyarrow table; for a set, or another
    /// iterable that is no table, a list.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If there are more rows, or fewer, than documents.
    ///
    /// Examples
    /// --------
    /// >>> import simstore
    /// >>> texts = ["to be or not to be", "something else altogether", "To be, or not to be"]
    /// >>> simstore.dedup(texts).unique(texts)
    /// ['to be or not to be', 'something else altogether']
    fn unique<'py>(&self, frame: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.select(frame, |is_kept| is_kept)
    }

    /// Returns the removed rows of a frame or another source. The parameter and the result are as for `unique`.
    fn duplicates<'py>(&self, frame: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.select(frame, |is_kept| !is_kept)
    }

    /// Writes the page of the run: an HTML file that a browser opens without network. It shows counts, similarities, clusters, and
    /// removed documents beside the kept ones, word by word.
    ///
    /// Parameters
    /// ----------
    /// path : path
    ///     The file to write. An existing file is replaced.
    ///
    /// Raises
    /// ------
    /// AttributeError
    ///     If `dedup` was called without ``report=True``. A page takes up to 20 MiB of memory.
    ///
    /// Examples
    /// --------
    /// >>> import simstore, tempfile, pathlib
    /// >>> result = simstore.dedup(["to be or not to be", "To be, or not to be"], report=True)
    /// >>> page = pathlib.Path(tempfile.mkdtemp()) / "report.html"
    /// >>> result.report(page)
    /// >>> page.read_text(encoding="utf-8").startswith("<!doctype html>")
    /// True
    #[expect(clippy::needless_pass_by_value, reason = "arguments of Python are owned")]
    fn report(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let page = self.results()?.page.as_deref().ok_or_else(|| {
            PyAttributeError::new_err(
                "there is no report: it takes memory and time, and was not asked for by report=True",
            )
        })?;
        py.detach(|| {
            let mut output = Output::create(&path, &UnfinishedOutputs::default())?;
            output.write_bytes(page.as_bytes())?;
            output.finish()
        })
        .map_err(|error| exception(py, error))
    }

    /// Returns the summary, and the rows of ``clusters``, ``kept`` and ``removed``, as JSON text.
    fn to_json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let all = PyDict::new(py);
        all.set_item("summary", self.summary.get().dict(py)?)?;
        let Results { clusters, kept, removed, .. } = self.results()?;
        for (name, table) in [("clusters", clusters), ("kept", kept), ("removed", removed)] {
            all.set_item(name, table.to_pylist(py)?)?;
        }
        py.import("simstore._json")?.call_method1("dumps", (all,))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Bound::new(py, self.clusters()?)?.call_method0("__iter__")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, DeduplicationFields)> {
        let make = py.import("simstore._simstore")?.getattr("_deduplication")?;
        let tables = match &self.results {
            Err(_) => None,
            Ok(Results { clusters, kept, removed, pairs, row_labels, page }) => Some((
                [clusters, kept, removed].map(Clone::clone),
                pairs.clone(),
                self.is_kept(py)?.unbind(),
                self.labels(py)?.unbind(),
                row_labels.largest.iter().map(LargeCluster::to_fields).collect(),
                page.clone(),
            )),
        };
        Ok((make, (tables, self.results.as_ref().err().cloned(), self.summary.clone_ref(py))))
    }

    #[getter]
    fn summary(&self, py: Python<'_>) -> Py<PySummary> {
        self.summary.clone_ref(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let summary = self.summary.get().dict(py)?;
        let count = |key: &str| count_of_key(&summary, key).unwrap_or_default();
        Ok(match &self.results {
            Ok(_) => format!(
                "Deduplication({}, {}, {} kept)",
                format_count_of(count("documents"), "document"),
                format_count_of(count("clusters"), "cluster"),
                count("kept")
            ),
            Err(_) => format!("Deduplication({})", self.summary.get().text()),
        })
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let summary = self.summary.get().dict(py)?;
        let row = |key: &str| {
            let count = count_of_key(&summary, key).filter(|&count| key != "bad" || count > 0)?;
            Some([if key == "fingerprints" { "distinct" } else { key }.to_owned(), format_count(count)])
        };
        let keys = [
            "documents", "fingerprints", "clusters", "clustered", "duplicates", "stored", "added", "kept",
            "bad",
        ];
        let counts = table_of_cells(&[], "th", keys.into_iter().filter_map(row));
        let largest = self.results.as_ref().map_or(&[][..], |results| &results.row_labels.largest);
        if largest.is_empty() {
            return Ok(counts);
        }
        let row = |LargeCluster { documents, id, text, .. }: &LargeCluster| {
            [escape(id), documents.to_string(), text.clone().unwrap_or_default()]
        };
        Ok(counts + &table_of_cells(&["largest clusters", "documents", ""], "td", largest.iter().map(row)))
    }
}

/// Returns a count in a summary; `None` if the key is missing.
fn count_of_key(summary: &Bound<'_, PyDict>, key: &str) -> Option<u64> {
    summary.get_item(key).ok()??.extract().ok()
}

/// Fields of a pickled result: the tables, or `None` and the reason why there are none; and the summary.
type DeduplicationFields = (Option<DeduplicationTables>, Option<String>, Py<PySummary>);
/// The tables `clusters`, `kept` and `removed`; the table `pairs`, if it was collected; `is_kept` and `labels` of
/// all rows; the largest clusters; the report page, if it was requested.
type DeduplicationTables = (
    [PyTable; 3],
    Option<PyTable>,
    Py<PyArray1<bool>>,
    Py<PyArray1<i64>>,
    Vec<LargeClusterFields>,
    Option<String>,
);

/// Restores a pickled result.
#[pyfunction]
pub(crate) fn _deduplication(
    py: Python<'_>,
    tables: Option<DeduplicationTables>,
    why: Option<String>,
    summary: Py<PySummary>,
) -> PyResult<PyDeduplication> {
    let Some((tables, pairs, is_kept, labels, largest, page)) = tables else {
        return Ok(PyDeduplication::new(Err(why.unwrap_or_default()), summary));
    };
    let [clusters, kept, removed] = tables;
    let largest = largest.into_iter().map(LargeCluster::from_fields).collect();
    let (is_kept, labels) = (is_kept.bind(py).to_vec()?, labels.bind(py).to_vec()?);
    let row_labels = RowLabels { is_kept, labels, largest };
    Ok(PyDeduplication::new(Ok(Results { clusters, pairs, kept, removed, row_labels, page }), summary))
}
