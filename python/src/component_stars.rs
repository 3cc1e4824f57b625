//! Star clustering of similar sets, for tasks such as those of Spark: chooses the representatives of one connected
//! component after the other.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array as _, Float64Array};
use arrow_schema::DataType;
use pyo3::prelude::*;
use simstore_dedup::{Assignment, ComponentStars};

use crate::binary_column::{BinaryColumn, cast_column, digest_column, unexpected_columns};
use crate::call;
use crate::table::PyTable;

/// Computes the stars of connected components of similar feature sets, one component after the other. A star is a
/// representative and sets that are similar to it. The rows of a component are its sets, the most preferred first,
/// then its pairs of similar sets.
#[pyclass(module = "simstore._simstore", name = "_ComponentStars")]
pub(crate) struct PyStars(ComponentStars);

#[pymethods]
impl PyStars {
    #[new]
    fn new(most: usize) -> Self {
        PyStars(ComponentStars::new(most))
    }

    /// Adds rows. A row is a feature set or a pair of similar feature sets. `root` identifies its connected
    /// component. The row of a set has the set's `digest`; `other` and `similarity` are null. The row of a pair
    /// has the digests of both sets, `digest` and `other`, and their `similarity`.
    ///
    /// A component ends before the first row of another component. Returns the sets of ended components that are
    /// not representatives, with columns `digest`, `leader` (the representative of the set's star), `nearest` (the
    /// most similar representative), and `similarity` (to `nearest`).
    fn push(
        &mut self,
        py: Python<'_>,
        root: &Bound<'_, PyAny>,
        digest: &Bound<'_, PyAny>,
        other: &Bound<'_, PyAny>,
        similarity: &Bound<'_, PyAny>,
    ) -> PyResult<PyTable> {
        let (roots, sets, others) =
            (BinaryColumn::read(root)?, BinaryColumn::read(digest)?, BinaryColumn::read(other)?);
        let similarities = cast_column(similarity, &DataType::Float64)?;
        let similarities = similarities.as_primitive::<Float64Type>();
        if [sets.len(), others.len(), similarities.len()] != [roots.len(); 3] {
            return Err(unexpected_columns("columns of one length"));
        }
        let pair = |at: usize| match (others.get(at), similarities.is_valid(at)) {
            (None, _) => Ok(None),
            (Some(_), true) => Ok(Some((others.digest(at)?, similarities.value(at)))),
            (Some(_), false) => Err(unexpected_columns("the similarity of each pair")),
        };
        let row = |at| Ok((roots.digest(at)?, sets.digest(at)?, pair(at)?));
        let rows: Vec<_> = (0..roots.len()).map(row).collect::<PyResult<_>>()?;
        let assignments = call::detached(py, || {
            let mut assignments = Vec::new();
            for (root, set, pair) in rows {
                assignments.extend(self.0.push(root, set, pair)?);
            }
            Ok(assignments)
        })?;
        assignment_table(&assignments)
    }

    /// Ends the last component. Returns a row for each of its sets that is not a representative, with the columns
    /// that `push` returns.
    fn finish(&mut self, py: Python<'_>) -> PyResult<PyTable> {
        assignment_table(&call::detached(py, || Ok(self.0.finish()))?)
    }
}

fn assignment_table(assignments: &[Assignment]) -> PyResult<PyTable> {
    let similarities =
        Float64Array::from_iter_values(assignments.iter().map(|assignment| assignment.similarity));
    PyTable::from_columns(vec![
        ("digest", digest_column(assignments.iter().map(|assignment| Some(assignment.member)))),
        ("leader", digest_column(assignments.iter().map(|assignment| Some(assignment.representative)))),
        ("nearest", digest_column(assignments.iter().map(|assignment| Some(assignment.nearest)))),
        ("similarity", Arc::new(similarities)),
    ])
}
