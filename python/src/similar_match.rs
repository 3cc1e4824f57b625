//! The class `SimilarMatch`.

use std::hash::{Hash, Hasher};

use pyo3::prelude::*;
use simstore_text::SimilarDocument;

/// A stored document that is similar to a text.
///
/// Attributes
/// ----------
/// id : int
///     The number of the document.
/// name : str or None
///     The name of the document, or None.
/// similarity : float
///     The Jaccard similarity, from 0 to 1: exact in a store with texts, otherwise an estimate.
/// error : float
///     The standard error of the similarity; 0 if the similarity is exact.
#[pyclass(frozen, eq, hash, module = "simstore", name = "SimilarMatch")]
#[derive(Clone, Debug)]
pub(crate) struct PySimilarMatch {
    #[pyo3(get)]
    id: u64,
    #[pyo3(get)]
    name: Option<String>,
    #[pyo3(get)]
    similarity: f64,
    #[pyo3(get)]
    error: f64,
}

impl PySimilarMatch {
    /// Returns the fields for comparison and hashing, floats as their bits.
    fn identity(&self) -> (u64, Option<&str>, u64, u64) {
        (self.id, self.name.as_deref(), self.similarity.to_bits(), self.error.to_bits())
    }
}

impl PartialEq for PySimilarMatch {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for PySimilarMatch {}

impl Hash for PySimilarMatch {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl From<SimilarDocument> for PySimilarMatch {
    fn from(document: SimilarDocument) -> Self {
        let SimilarDocument { id, name, estimate } = document;
        PySimilarMatch { id, name, similarity: estimate.similarity, error: estimate.standard_error }
    }
}

#[pymethods]
impl PySimilarMatch {
    #[new]
    #[pyo3(signature = (id, name, similarity, error))]
    fn new(id: u64, name: Option<String>, similarity: f64, error: f64) -> PySimilarMatch {
        PySimilarMatch { id, name, similarity, error }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (u64, Option<String>, f64, f64)) {
        let PySimilarMatch { id, name, similarity, error } = slf.get();
        (slf.get_type().into_any(), (*id, name.clone(), *similarity, *error))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let PySimilarMatch { id, name, similarity, error } = self;
        let name = name.as_deref().into_pyobject(py)?.repr()?;
        Ok(format!("SimilarMatch(id={id}, name={name}, similarity={similarity:?}, error={error:?})"))
    }
}
