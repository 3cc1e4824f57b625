//! What a query finds, one at a time.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use simstore::{Fingerprint, Result};

use crate::gate;

/// A stored fingerprint within the distance of a query.
///
/// ``fingerprint, distance, id = match`` takes it apart.
///
/// Attributes
/// ----------
/// fingerprint : int
///     The stored fingerprint.
/// distance : int
///     In how many bits it differs from the query.
/// id : int or None
///     An id that was stored with it; None in a store without ids.
#[pyclass(frozen, eq, hash, module = "simstore")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Match {
    found: simstore::Match<u128>,
}

impl Match {
    fn of<F: Fingerprint>(found: simstore::Match<F>) -> Match {
        let simstore::Match { fingerprint, distance, id } = found;
        Match { found: simstore::Match { fingerprint: fingerprint.to_u128(), distance, id } }
    }

    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (int(py, self.found.fingerprint)?, self.found.distance, self.found.id).into_pyobject(py)
    }
}

#[pymethods]
impl Match {
    #[classattr]
    #[expect(non_upper_case_globals, reason = "as Python names it")]
    const __match_args__: (&'static str, &'static str, &'static str) = ("fingerprint", "distance", "id");

    #[new]
    fn new(fingerprint: u128, distance: u32, id: Option<u64>) -> Match {
        Match { found: simstore::Match { fingerprint, distance, id } }
    }

    #[getter]
    fn fingerprint<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        int(py, self.found.fingerprint)
    }

    #[getter]
    fn distance(&self) -> u32 {
        self.found.distance
    }

    #[getter]
    fn id(&self) -> Option<u64> {
        self.found.id
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.parts(py)?.call_method0("__iter__")
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        Ok((slf.get_type().into_any(), slf.get().parts(slf.py())?))
    }

    fn __repr__(&self) -> String {
        let simstore::Match { fingerprint, distance, id } = self.found;
        let id = id.map_or_else(|| "None".to_owned(), |id| id.to_string());
        format!("Match(fingerprint={fingerprint:#x}, distance={distance}, id={id})")
    }
}

/// An int; for most there is a shorter way than for 128 bits.
fn int(py: Python<'_>, value: u128) -> PyResult<Bound<'_, PyAny>> {
    match u64::try_from(value) {
        Ok(narrow) => Ok(narrow.into_pyobject(py)?.into_any()),
        Err(_) => Ok(value.into_pyobject(py)?.into_any()),
    }
}

/// Makes a list of what a query finds, while other threads run.
pub(crate) fn list<'py, F: Fingerprint>(
    py: Python<'py>,
    query: impl FnOnce() -> Result<Vec<simstore::Match<F>>> + Send,
) -> PyResult<Bound<'py, PyList>> {
    list_of(py, gate::quick(py, query)?)
}

pub(crate) fn list_of<F: Fingerprint>(
    py: Python<'_>,
    found: Vec<simstore::Match<F>>,
) -> PyResult<Bound<'_, PyList>> {
    PyList::new(py, found.into_iter().map(Match::of))
}
