//! Leaders of similar sets, from all similar pairs, one component after the other.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array as _, Float64Array};
use arrow_schema::DataType;
use pyo3::prelude::*;
use simstore_dedup::{ComponentStars, Assignment};

use crate::blobs::{BinaryColumn, cast_column, digest_column, unexpected_columns};
use crate::gate;
use crate::table::PyTable;

/// Computes the stars of components, given one after the other: first the sets of a component, the most preferred first, then its pairs.
#[pyclass(module = "simstore._simstore", name = "_Stars")]
pub(crate) struct PyStars(ComponentStars);

#[pymethods]
impl PyStars {
    #[new]
    fn new(most: usize) -> Self {
        PyStars(ComponentStars::new(most))
    }

    /// Adds rows of a component, a set, and the other set of a pair with its similarity. The last two are null in a row for a set. Returns
    /// the sets with a leader, of complete components: `digest`, `leader`, `nearest` (the most similar leader) and `similarity` to the
    /// nearest.
    fn push(
        &mut self,
        py: Python<'_>,
        root: &Bound<'_, PyAny>,
        digest: &Bound<'_, PyAny>,
        other: &Bound<'_, PyAny>,
        similarity: &Bound<'_, PyAny>,
    ) -> PyResult<PyTable> {
        let (roots, sets, others) = (BinaryColumn::read(root)?, BinaryColumn::read(digest)?, BinaryColumn::read(other)?);
        let similarities = cast_column(similarity, &DataType::Float64)?;
        let similarities = similarities.as_primitive::<Float64Type>();
        if [sets.len(), others.len(), similarities.len()] != [roots.len(); 3] {
            return Err(unexpected_columns("columns of one length"));
        }
        let near = |at: usize| match (others.get(at), similarities.is_valid(at)) {
            (None, _) => Ok(None),
            (Some(_), true) => Ok(Some((others.digest(at)?, similarities.value(at)))),
            (Some(_), false) => Err(unexpected_columns("the similarity of each pair")),
        };
        let row = |at| Ok((roots.digest(at)?, sets.digest(at)?, near(at)?));
        let rows: Vec<_> = (0..roots.len()).map(row).collect::<PyResult<_>>()?;
        let led = gate::detached(py, || {
            let mut led = Vec::new();
            for (root, set, near) in rows {
                led.extend(self.0.push(root, set, near)?);
            }
            Ok(led)
        })?;
        table(&led)
    }

    /// Returns the sets with a leader of the last component, as `push`.
    fn finish(&mut self, py: Python<'_>) -> PyResult<PyTable> {
        table(&gate::detached(py, || Ok(self.0.finish()))?)
    }
}

fn table(led: &[Assignment]) -> PyResult<PyTable> {
    let similarities = Float64Array::from_iter_values(led.iter().map(|led| led.similarity));
    PyTable::of_columns(vec![
        ("digest", digest_column(led.iter().map(|led| Some(led.member)))),
        ("leader", digest_column(led.iter().map(|led| Some(led.representative)))),
        ("nearest", digest_column(led.iter().map(|led| Some(led.nearest)))),
        ("similarity", Arc::new(similarities)),
    ])
}
