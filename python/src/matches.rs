//! What a query finds, one at a time.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use simstore::{Fingerprint, Result};

use crate::fingerprints::{one, to_python};
use crate::gate;

/// A stored fingerprint within the distance of a query.
///
/// ``fingerprint, distance, id = match`` takes it apart.
///
/// Attributes
/// ----------
/// fingerprint : int, or bytes of length 16 for 128 bits
///     The stored fingerprint.
/// distance : int
///     In how many bits it differs from the query.
/// id : int or None
///     An id that was stored with it; None in a store without ids.
#[pyclass(frozen, eq, hash, module = "simstore")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Match {
    found: simstore::Match<u128>,
    /// The width of the fingerprint.
    bits: u32,
}

impl Match {
    fn of<F: Fingerprint>(found: simstore::Match<F>, bits: u32) -> Match {
        let simstore::Match { fingerprint, distance, id } = found;
        Match { found: simstore::Match { fingerprint: fingerprint.to_u128(), distance, id }, bits }
    }

    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (self.fingerprint(py)?, self.found.distance, self.found.id).into_pyobject(py)
    }
}

#[pymethods]
impl Match {
    #[classattr]
    #[expect(non_upper_case_globals, reason = "as Python names it")]
    const __match_args__: (&'static str, &'static str, &'static str) = ("fingerprint", "distance", "id");

    #[new]
    fn new(fingerprint: &Bound<'_, PyAny>, distance: u32, id: Option<u64>) -> PyResult<Match> {
        let bits = if fingerprint.is_instance_of::<PyBytes>() { 128 } else { 64 };
        let fingerprint = one(fingerprint, bits)?;
        Ok(Match { found: simstore::Match { fingerprint, distance, id }, bits })
    }

    #[getter]
    fn fingerprint<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self.found.fingerprint, self.bits)
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
        if self.bits == 128 {
            return format!(
                "Match(fingerprint=bytes.fromhex('{fingerprint:032x}'), distance={distance}, id={id})"
            );
        }
        format!("Match(fingerprint={fingerprint:#x}, distance={distance}, id={id})")
    }
}

/// Makes a list of what a query finds in a store of this width, while other threads run.
pub(crate) fn list<'py, F: Fingerprint>(
    py: Python<'py>,
    bits: u32,
    query: impl FnOnce() -> Result<Vec<simstore::Match<F>>> + Send,
) -> PyResult<Bound<'py, PyList>> {
    list_of(py, bits, gate::quick(py, query)?)
}

pub(crate) fn list_of<F: Fingerprint>(
    py: Python<'_>,
    bits: u32,
    found: Vec<simstore::Match<F>>,
) -> PyResult<Bound<'_, PyList>> {
    PyList::new(py, found.into_iter().map(|found| Match::of(found, bits)))
}
