//! Leaders of similar sets, from all similar pairs, one component after the other.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array as _, Float64Array};
use arrow_schema::DataType;
use pyo3::prelude::*;
use simstore_dedup::{ComponentStars, LedSet};

use crate::blobs::{Blobs, column, digests, unlike};
use crate::gate;
use crate::table::Table;

/// Computes the stars of components, given one after the other: first the sets of a component, the most preferred first, then its pairs.
#[pyclass(module = "simstore._simstore", name = "_Stars")]
pub(crate) struct Stars(ComponentStars);

#[pymethods]
impl Stars {
    #[new]
    fn new(most: usize) -> Self {
        Stars(ComponentStars::new(most))
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
    ) -> PyResult<Table> {
        let (roots, sets, others) = (Blobs::read(root)?, Blobs::read(digest)?, Blobs::read(other)?);
        let similarities = column(similarity, &DataType::Float64)?;
        let similarities = similarities.as_primitive::<Float64Type>();
        if [sets.len(), others.len(), similarities.len()] != [roots.len(); 3] {
            return Err(unlike("columns of one length"));
        }
        let near = |at: usize| match (others.get(at), similarities.is_valid(at)) {
            (None, _) => Ok(None),
            (Some(_), true) => Ok(Some((others.digest(at)?, similarities.value(at)))),
            (Some(_), false) => Err(unlike("the similarity of each pair")),
        };
        let row = |at| Ok((roots.digest(at)?, sets.digest(at)?, near(at)?));
        let rows: Vec<_> = (0..roots.len()).map(row).collect::<PyResult<_>>()?;
        let led = gate::quick(py, || {
            let mut led = Vec::new();
            for (root, set, near) in rows {
                led.extend(self.0.push(root, set, near)?);
            }
            Ok(led)
        })?;
        table(&led)
    }

    /// Returns the sets with a leader of the last component, as `push`.
    fn finish(&mut self, py: Python<'_>) -> PyResult<Table> {
        table(&gate::quick(py, || Ok(self.0.finish()))?)
    }
}

fn table(led: &[LedSet]) -> PyResult<Table> {
    let similarities = Float64Array::from_iter_values(led.iter().map(|led| led.similarity));
    Table::of_columns(vec![
        ("digest", digests(led.iter().map(|led| Some(led.set)))),
        ("leader", digests(led.iter().map(|led| Some(led.leader)))),
        ("nearest", digests(led.iter().map(|led| Some(led.nearest)))),
        ("similarity", Arc::new(similarities)),
    ])
}
