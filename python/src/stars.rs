//! What stands for what, by all pairs of similar sets, one component after the other.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::Array as _;
use arrow_array::builder::Float64Builder;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_schema::DataType;
use pyo3::prelude::*;
use simstore::Error;
use simstore_corpus::dedup::SimilarSearch;

use crate::blobs::{Blobs, column, digests, unlike};
use crate::gate;
use crate::table::Table;

/// Takes components one after the other: of each its sets, the most preferred first, then its pairs.
#[pyclass(module = "simstore._simstore", name = "_Stars")]
pub(crate) struct Stars {
    /// The most pairs of a component.
    most: usize,
    root: Option<u128>,
    sets: Vec<u128>,
    /// Where each of them is.
    places: HashMap<u128, u32>,
    pairs: Vec<(u32, u32, f32)>,
}

type Led = (u128, u128, f32);

#[pymethods]
impl Stars {
    #[new]
    fn new(most: usize) -> Self {
        Stars { most, root: None, sets: Vec::new(), places: HashMap::new(), pairs: Vec::new() }
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
        let mut led = Vec::new();
        for at in 0..roots.len() {
            let root = roots.digest(at)?;
            if self.root != Some(root) {
                led.extend(self.complete(py)?);
                self.root = Some(root);
            }
            let set = sets.digest(at)?;
            if others.get(at).is_none() {
                self.places.insert(set, self.sets.len() as u32);
                self.sets.push(set);
                continue;
            }
            let place =
                |set: u128| self.places.get(&set).copied().ok_or_else(|| unlike("sets before their pairs"));
            let (a, b) = (place(set)?, place(others.digest(at)?)?);
            if similarities.is_null(at) {
                return Err(unlike("the similarity of each pair"));
            }
            self.pairs.push((a.max(b), a.min(b), similarities.value(at) as f32));
            if self.pairs.len() > self.most {
                let sets = self.sets.len();
                let most = self.most;
                return gate::quick(py, || {
                    Err(Error::Refused(format!(
                        "{sets} different texts are connected by more than {most} similar pairs, more than one task takes: ask for a \
                         greater `similar`, or take out by `distance` first what is nearly equal"
                    )))
                });
            }
        }
        table(&led)
    }

    /// Gives the last component.
    fn finish(&mut self, py: Python<'_>) -> PyResult<Table> {
        table(&self.complete(py)?)
    }
}

impl Stars {
    fn complete(&mut self, py: Python<'_>) -> PyResult<Vec<Led>> {
        let (sets, mut pairs) = (std::mem::take(&mut self.sets), std::mem::take(&mut self.pairs));
        self.places.clear();
        gate::quick(py, || {
            pairs.sort_unstable_by_key(|&(worse, better, _)| (worse, better));
            let led = SimilarSearch::stars(&pairs).into_iter();
            Ok(led
                .map(|(set, leader, similarity)| (sets[set as usize], sets[leader as usize], similarity))
                .collect())
        })
    }
}

fn table(led: &[Led]) -> PyResult<Table> {
    let mut similarities = Float64Builder::with_capacity(led.len());
    led.iter().for_each(|led| similarities.append_value(led.2.into()));
    Table::of_columns(vec![
        ("digest", digests(led.iter().map(|led| Some(led.0)))),
        ("leader", digests(led.iter().map(|led| Some(led.1)))),
        ("similarity", Arc::new(similarities.finish())),
    ])
}
