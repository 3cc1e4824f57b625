//! What stands for what, by all pairs of similar sets, one component after the other.

use std::sync::Arc;

use arrow_array::Array as _;
use arrow_array::builder::Float64Builder;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_schema::DataType;
use pyo3::prelude::*;
use simstore_corpus::dedup::ComponentStars;

use crate::blobs::{Blobs, column, digests, unlike};
use crate::gate;
use crate::table::Table;

/// Takes components one after the other: of each its sets, the most preferred first, then its pairs.
#[pyclass(module = "simstore._simstore", name = "_Stars")]
pub(crate) struct Stars(ComponentStars);

#[pymethods]
impl Stars {
    #[new]
    fn new(most: usize) -> Self {
        Stars(ComponentStars::new(most))
    }

    /// Takes rows: a component, a set, and the other of a pair with its similarity, which are null where a set is told. Gives what
    /// another stands for of the components that are complete: `digest`, `leader` and `similarity`.
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

    /// Gives the last component.
    fn finish(&mut self, py: Python<'_>) -> PyResult<Table> {
        table(&gate::quick(py, || Ok(self.0.finish()))?)
    }
}

fn table(led: &[(u128, u128, f64)]) -> PyResult<Table> {
    let mut similarities = Float64Builder::with_capacity(led.len());
    led.iter().for_each(|led| similarities.append_value(led.2));
    Table::of_columns(vec![
        ("digest", digests(led.iter().map(|led| Some(led.0)))),
        ("leader", digests(led.iter().map(|led| Some(led.1)))),
        ("similarity", Arc::new(similarities.finish())),
    ])
}
