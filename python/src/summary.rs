//! The numbers of a run.

use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList};
use serde_json::{Map, Value};

use crate::html;

/// The summary of a `dedup` run: a mapping with the keys of the command line's JSON. ``print(summary)`` prints the summary of the command
/// line.
///
/// Keys are ``documents``, ``fingerprints`` (distinct fingerprints, or distinct texts), ``clusters``, ``clustered``, ``duplicates``,
/// ``kept``, ``largest``, ``seconds``, ``similar`` or ``distance`` (the threshold), and others; ``dict(summary)`` has all of them.
#[pyclass(frozen, mapping, module = "simstore")]
#[derive(Debug)]
pub(crate) struct Summary {
    values: Map<String, Value>,
    said: String,
}

impl Summary {
    /// Makes a summary from a JSON object and the text that it prints.
    pub(crate) fn new(values: Value, said: String) -> Summary {
        let values = match values {
            Value::Object(values) => values,
            _ => Map::new(),
        };
        Summary { values, said }
    }

    pub(crate) fn said(&self) -> &str {
        &self.said
    }

    pub(crate) fn values(&self) -> &Map<String, Value> {
        &self.values
    }
}

#[pymethods]
impl Summary {
    fn __len__(&self) -> usize {
        self.values.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Bound<'py, PyAny>> {
        match self.values.get(key) {
            Some(value) => value_of(py, value),
            None => {
                let keys: Vec<&str> = self.values.keys().map(String::as_str).collect();
                Err(PyKeyError::new_err(format!("{key}: the keys are {}", keys.join(", "))))
            }
        }
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> bool {
        key.extract::<&str>().is_ok_and(|key| self.values.contains_key(key))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.keys(py)?.try_iter()
    }

    /// Returns the keys, as a list.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.values.keys())
    }

    /// Returns the values, as a list.
    #[pyo3(name = "values")]
    fn list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.values.values().map(|value| value_of(py, value)).collect::<PyResult<Vec<_>>>()?)
    }

    /// Returns the pairs of keys and values, as a list.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let items = self.values.iter().map(|(key, value)| Ok((key, value_of(py, value)?)));
        PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)
    }

    /// Returns the value of a key, or ``default`` if the key is missing.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.values.get(key) {
            Some(value) => value_of(py, value),
            None => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    /// Returns the values as a JSON object in a str.
    fn to_json(&self) -> String {
        Value::Object(self.values.clone()).to_string()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String, String))> {
        let make = py.import("simstore._simstore")?.getattr("_summary")?;
        Ok((make, (self.to_json(), self.said.clone())))
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let row = |(key, value): (&String, &Value)| {
            Ok(vec![key.into_pyobject(py)?.into_any(), value_of(py, value)?])
        };
        let rows = self.values.iter().map(row).collect::<PyResult<Vec<_>>>()?;
        html::table(&["", ""], &rows, "")
    }

    fn __str__(&self) -> &str {
        &self.said
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let dict = PyDict::new(py);
        for (key, value) in &self.values {
            dict.set_item(key, value_of(py, value)?)?;
        }
        Ok(format!("Summary({})", dict.repr()?))
    }
}

/// Makes a `Summary` from its pickled fields.
#[pyfunction]
pub(crate) fn _summary(values: &str, said: String) -> PyResult<Summary> {
    let values = serde_json::from_str(values).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(Summary::new(values, said))
}

/// A value of JSON as Python has it.
pub(crate) fn value_of<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(number) => match number.as_u64() {
            Some(count) => count.into_pyobject(py)?.into_any(),
            None => number.as_f64().into_pyobject(py)?.into_any(),
        },
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        Value::Array(values) => {
            PyList::new(py, values.iter().map(|value| value_of(py, value)).collect::<PyResult<Vec<_>>>()?)?
                .into_any()
        }
        Value::Object(values) => {
            let dict = PyDict::new(py);
            for (key, value) in values {
                dict.set_item(key, value_of(py, value)?)?;
            }
            dict.into_any()
        }
    })
}
