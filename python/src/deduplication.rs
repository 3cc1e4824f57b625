//! What was found, as an object of Python.

use numpy::PyArray1;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use simstore_corpus::numbers::{count_of, grouped};

use crate::arrow::Table;
use crate::results::{Large, Results};
use crate::summary::Summary;

/// What `dedup` has found.
///
/// Documents are told apart by their numbers from 0: of a frame or another thing that was handed over, the rows; of files, the
/// documents in order, malformed ones not counted. Ids are uint64 if all are numbers, else strings.
///
/// Attributes
/// ----------
/// clusters : Table
///     The documents of the clusters of two and more: cluster (from 1), document, id, representative_document, representative
///     (the id of what stands for the cluster), is_kept, and similarity (from 0 to 1) or distance (in bits) to it. With a store,
///     also stored; where ids repeat, also place and representative_place, FILE:LINE.
/// kept : Table
///     What is kept: document, id.
/// removed : Table
///     What is not: document, id, duplicate_of_document, duplicate_of (an id), similarity or distance to that.
/// summary : Summary
///     The numbers of the whole.
#[pyclass(frozen, module = "simstore")]
pub(crate) struct Deduplication {
    /// Or why nothing is known.
    pub(crate) results: Result<Results, &'static str>,
    pub(crate) summary: Py<Summary>,
}

impl Deduplication {
    fn results(&self) -> PyResult<&Results> {
        self.results.as_ref().map_err(|&why| PyAttributeError::new_err(why))
    }
}

#[pymethods]
impl Deduplication {
    #[getter]
    fn clusters(&self) -> PyResult<Table> {
        self.results().map(|results| results.clusters.clone())
    }

    /// All pairs of near documents: a_document, a (an id), b_document, b, similarity or distance.
    ///
    /// Raises
    /// ------
    /// AttributeError
    ///     If they were not asked for by ``pairs=True``: they take memory.
    #[getter]
    fn pairs(&self) -> PyResult<Table> {
        self.results()?.pairs.clone().ok_or_else(|| {
            PyAttributeError::new_err(
                "there are no pairs: they take memory, and were not asked for by pairs=True",
            )
        })
    }

    #[getter]
    fn kept(&self) -> PyResult<Table> {
        self.results().map(|results| results.kept.clone())
    }

    #[getter]
    fn removed(&self) -> PyResult<Table> {
        self.results().map(|results| results.removed.clone())
    }

    /// Whether each document is kept: a numpy array of bool, of shape (documents,). ``frame[result.is_kept]`` in pandas,
    /// ``frame.filter(result.is_kept)`` in Polars. A row that is malformed, and was skipped, is not kept.
    #[getter]
    fn is_kept<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        self.results().map(|results| PyArray1::from_slice(py, &results.marks.is_kept))
    }

    /// The cluster of each document, from 1, or -1: a numpy array of int64, of shape (documents,).
    #[getter]
    fn labels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        self.results().map(|results| PyArray1::from_slice(py, &results.marks.labels))
    }

    #[getter]
    fn summary(&self, py: Python<'_>) -> Py<Summary> {
        self.summary.clone_ref(py)
    }

    fn __repr__(&self) -> String {
        let summary = self.summary.get();
        let count = |key: &str| summary.values().get(key).and_then(serde_json::Value::as_u64).unwrap_or(0);
        match &self.results {
            Ok(_) => format!(
                "Deduplication({}, {}, {} kept)",
                count_of(count("documents"), "document"),
                count_of(count("clusters"), "cluster"),
                count("kept")
            ),
            Err(_) => format!("Deduplication({})", self.summary.get().said()),
        }
    }

    fn _repr_html_(&self) -> String {
        let summary = self.summary.get();
        let mut html = String::from("<table><tbody>");
        for key in [
            "documents",
            "fingerprints",
            "clusters",
            "clustered",
            "duplicates",
            "stored",
            "added",
            "kept",
            "bad",
        ] {
            if let Some(count) = summary.values().get(key).and_then(serde_json::Value::as_u64)
                && (key != "bad" || count > 0)
            {
                let distinct = if key == "fingerprints" { "distinct" } else { key };
                let count = grouped(count);
                html += &format!("<tr><th>{distinct}</th><td>{count}</td></tr>");
            }
        }
        html += "</tbody></table>";
        if let Ok(results) = &self.results
            && !results.marks.largest.is_empty()
        {
            html +=
                "<table><thead><tr><th>largest clusters</th><th>documents</th><th></th></tr></thead><tbody>";
            for Large { documents, id, text, .. } in &results.marks.largest {
                let text = text.as_deref().unwrap_or_default();
                html += &format!("<tr><td>{}</td><td>{documents}</td><td>{text}</td></tr>", escaped(id));
            }
            html += "</tbody></table>";
        }
        html
    }
}

/// A text as HTML shows it, cut where it is long.
pub(crate) fn escaped(text: &str) -> String {
    const SHOWN: usize = 80;
    let mut shown: String = text.chars().take(SHOWN).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
