//! The class `Summary`: the counts and settings of a `dedup` run.

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList};
use serde_json::Value;

use crate::html;

/// The summary of a `dedup` run: a mapping with the keys of the command line's JSON. ``print(summary)`` prints the summary of the command
/// line.
///
/// Keys are ``documents``, ``fingerprints`` (distinct fingerprints, or distinct texts), ``clusters``, ``clustered``, ``duplicates``,
/// ``kept``, ``largest``, ``seconds``, ``similar`` or ``distance`` (the threshold), and others; ``dict(summary)`` has all of them.
#[pyclass(frozen, mapping, module = "simstore", name = "Summary")]
#[derive(Debug)]
pub(crate) struct PySummary {
    /// A JSON object.
    json: String,
    /// The summary as text, as the command line prints it.
    text: String,
}

impl PySummary {
    /// Makes a summary from its values, a JSON object, and from the text that Python prints for it.
    pub(crate) fn new(values: &Value, text: String) -> PySummary {
        PySummary { json: values.to_string(), text }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the values as a new dict, so that callers may change it.
    pub(crate) fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        parse_json(py, &self.json)
    }
}

#[pymethods]
impl PySummary {
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.dict(py)?.len())
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Bound<'py, PyAny>> {
        let dict = self.dict(py)?;
        if let Some(value) = dict.get_item(key)? {
            return Ok(value);
        }
        let keys: Vec<String> = dict.keys().extract()?;
        Err(PyKeyError::new_err(format!("{key}: the keys are {}", keys.join(", "))))
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        key.extract::<&str>().map_or(Ok(false), |text| self.dict(key.py())?.contains(text))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.keys(py)?.try_iter()
    }

    /// Returns the keys, as a list.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        Ok(self.dict(py)?.keys())
    }

    /// Returns the values, as a list.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        Ok(self.dict(py)?.values())
    }

    /// Returns the pairs of keys and values, as a list.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        Ok(self.dict(py)?.items())
    }

    /// Returns the value of a key, or ``default`` if the key is missing.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.dict(py)?.get_item(key)?.or(default))
    }

    /// Returns the values as a JSON object in a str.
    fn to_json(&self) -> &str {
        &self.json
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&str, &str))> {
        Ok((py.import("simstore._simstore")?.getattr("_summary")?, (&self.json, &self.text)))
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let rows: Vec<_> = self.dict(py)?.iter().map(|(key, value)| vec![key, value]).collect();
        html::table_markup(&["", ""], &rows, "")
    }

    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Summary({})", self.dict(py)?.repr()?))
    }
}

/// Makes a `Summary` from its pickled fields.
#[pyfunction]
pub(crate) fn _summary(values: String, said: String) -> PySummary {
    PySummary { json: values, text: said }
}

/// Parses a JSON object.
pub(crate) fn parse_json<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyDict>> {
    Ok(py.import("json")?.call_method1("loads", (json,))?.cast_into::<PyDict>()?)
}
