//! Queries in several stores that find documents by the similarity of texts, for tasks such as those of Spark.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{Float64Array, Int32Array, StringArray, UInt64Array};
use pyo3::prelude::*;
use simstore::any::Width;
use simstore::threads::ensure_pool;
use simstore_dedup::SimilarStores;
use simstore_text::Resources;

use crate::call;
use crate::profile::PyProfile;
use crate::table::PyTable;
use crate::texts::Texts;

/// Texts looked up between checks for interruption.
const TEXTS_PER_CANCEL_CHECK: usize = 4096;

/// Stores that find documents by similarity, opened to compare texts with all of them.
#[pyclass(frozen, module = "simstore._simstore", name = "_SimilarStores")]
pub(crate) struct PySimilarStores(SimilarStores);

#[pymethods]
impl PySimilarStores {
    #[new]
    #[pyo3(signature = (paths, similar=None))]
    fn new(py: Python<'_>, paths: Vec<PathBuf>, similar: Option<f64>) -> PyResult<Self> {
        call::detached(py, move || SimilarStores::open(&paths, similar).map(PySimilarStores))
    }

    /// The similarity threshold of the search, from 0 to 1.
    #[getter]
    fn similar(&self) -> f64 {
        self.0.similar()
    }

    /// The profile that turns the texts of the stores into features.
    #[getter]
    fn profile(&self) -> PyProfile {
        PyProfile {
            inner: self.0.profile().clone(),
            width: Width::Bits64(()),
            resources: Resources::default(),
        }
    }

    /// Returns the most similar stored document of each text, with columns `store`, `id`, `name` and `similarity`.
    /// They are null for a text without a similar stored document.
    fn most_similar(&self, py: Python<'_>, texts: &Bound<'_, PyAny>) -> PyResult<PyTable> {
        let texts = Texts::read(texts, "text")?;
        let found = call::interruptible(py, |call| {
            ensure_pool()?;
            let all: Vec<Option<&str>> = (0..texts.len()).map(|at| texts.get(at)).collect();
            let mut found = Vec::with_capacity(all.len());
            for batch in all.chunks(TEXTS_PER_CANCEL_CHECK) {
                call.check()?;
                found.extend(self.0.most_similar(batch)?);
            }
            Ok(found)
        })?;
        let documents = || found.iter().map(|found| found.as_ref().map(|(_, document)| document));
        let stores = found.iter().map(|found| found.as_ref().map(|&(store, _)| store as i32));
        let names = documents().map(|document| document?.name.as_deref());
        let similarities = documents().map(|document| Some(document?.estimate.similarity));
        PyTable::from_columns(vec![
            ("store", Arc::new(stores.collect::<Int32Array>())),
            ("id", Arc::new(documents().map(|document| Some(document?.id)).collect::<UInt64Array>())),
            ("name", Arc::new(names.collect::<StringArray>())),
            ("similarity", Arc::new(similarities.collect::<Float64Array>())),
        ])
    }
}
