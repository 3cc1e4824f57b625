//! The class `Match`, and queries that return matches.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use simstore::Result;
use simstore::any::{AnySnapshot, Width};

use crate::call;
use crate::fingerprints::{read_one, to_python};
use crate::similar_settings::check_has_fingerprints;

/// A stored fingerprint within the distance of a query.
///
/// It can be unpacked: ``fingerprint, distance, id = match``.
///
/// Attributes
/// ----------
/// fingerprint : int, or bytes of length 16 for 128 bits
///     The stored fingerprint.
/// distance : int
///     Number of bits that differ from the query.
/// id : int or None
///     An id of the fingerprint; None in a store without ids.
/// name : str or None
///     The name of the document with this id, or None.
#[pyclass(frozen, eq, hash, module = "simstore", name = "Match")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PyMatch {
    found: simstore::Match<u128>,
    /// The width of the fingerprint, in bits.
    bits: u32,
    name: Option<String>,
}

impl PyMatch {
    fn tuple<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (self.fingerprint(py)?, self.found.distance, self.found.id).into_pyobject(py)
    }
}

#[pymethods]
impl PyMatch {
    #[classattr]
    #[expect(non_upper_case_globals, reason = "as Python names it")]
    const __match_args__: (&'static str, &'static str, &'static str) = ("fingerprint", "distance", "id");

    #[new]
    #[pyo3(signature = (fingerprint, distance, id, name=None))]
    fn new(
        fingerprint: &Bound<'_, PyAny>,
        distance: u32,
        id: Option<u64>,
        name: Option<String>,
    ) -> PyResult<PyMatch> {
        let is_wide = fingerprint.is_instance_of::<PyBytes>();
        let width = if is_wide { Width::Bits128(()) } else { Width::Bits64(()) };
        let fingerprint = read_one(fingerprint, width)?;
        Ok(PyMatch { found: simstore::Match { fingerprint, distance, id }, bits: width.bits(), name })
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

    #[getter]
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.tuple(py)?.call_method0("__iter__")
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, this) = (slf.py(), slf.get());
        let parts = match &this.name {
            None => this.tuple(py)?,
            Some(name) => {
                (this.fingerprint(py)?, this.found.distance, this.found.id, name).into_pyobject(py)?
            }
        };
        Ok((slf.get_type().into_any(), parts))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let simstore::Match { fingerprint, distance, id } = self.found;
        let id = id.map_or_else(|| "None".to_owned(), |id| id.to_string());
        let name = match &self.name {
            Some(name) => format!(", name={}", name.into_pyobject(py)?.repr()?),
            None => String::new(),
        };
        let fingerprint = match self.bits {
            128 => format!("bytes.fromhex('{fingerprint:032x}')"),
            _ => format!("{fingerprint:#x}"),
        };
        Ok(format!("Match(fingerprint={fingerprint}, distance={distance}, id={id}{name})"))
    }
}

/// Returns the matches of a query as a list. If `fingerprint` is `None` (a text without features), the list is
/// empty. Other Python threads may run meanwhile.
pub(crate) fn query<'py>(
    py: Python<'py>,
    snapshot: &AnySnapshot,
    fingerprint: Option<u128>,
    distance: Option<u32>,
) -> PyResult<Bound<'py, PyList>> {
    let found = call::detached(py, || {
        check_has_fingerprints(snapshot)?;
        let distance = distance.unwrap_or_else(|| snapshot.distance());
        let found =
            fingerprint.map_or(Ok(Vec::new()), |fingerprint| snapshot.query(fingerprint, distance))?;
        with_names(snapshot, found)
    })?;
    PyList::new(py, found)
}

/// Adds document names to the matches.
pub(crate) fn with_names(snapshot: &AnySnapshot, found: Vec<simstore::Match<u128>>) -> Result<Vec<PyMatch>> {
    let has_names = !found.is_empty() && snapshot.stats().names > 0;
    let name = |id: Option<u64>| match id.filter(|_| has_names) {
        Some(id) => snapshot.name(id),
        None => Ok(None),
    };
    found
        .into_iter()
        .map(|found| Ok(PyMatch { name: name(found.id)?, bits: snapshot.bits(), found }))
        .collect()
}
