//! Small sets, which are joined by their rarest features, as the tasks of a cluster do it.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{Float64Builder, Int32Builder, Int64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array as _, PrimitiveArray};
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use simstore_corpus::dedup::{Rarity, SimilarSearch};

use crate::blobs::{Blobs, column, digests, unlike};
use crate::gate;
use crate::table::Table;

/// How often features come, about: in counters that are added up.
#[pyclass(module = "simstore._simstore", name = "_Rarity")]
pub(crate) struct CountedFeatures(Rarity);

#[pymethods]
impl CountedFeatures {
    /// That of nothing yet, with counters for about so many sets; or of what `to_bytes` has made.
    #[new]
    #[pyo3(signature = (counted=None, *, sets=0))]
    fn new(counted: Option<&[u8]>, sets: u64) -> PyResult<Self> {
        match counted {
            None => Ok(CountedFeatures(Rarity::of(sets))),
            Some(counted) => {
                Rarity::from_bytes(counted).map(CountedFeatures).ok_or_else(|| unlike("counters"))
            }
        }
    }

    /// Counts the features of sets; a null has none.
    fn add(&mut self, members: &Bound<'_, PyAny>) -> PyResult<()> {
        let members = Blobs::read(members)?;
        for at in 0..members.len() {
            if let Some(members) = members.members(at)? {
                self.0.add(&members);
            }
        }
        Ok(())
    }

    /// Adds what others have counted.
    fn merge(&mut self, py: Python<'_>, counted: &Bound<'_, PyAny>) -> PyResult<()> {
        let counted = Blobs::read(counted)?;
        let rarity = &mut self.0;
        for at in 0..counted.len() {
            let other = counted.get(at).and_then(Rarity::from_bytes).ok_or_else(|| unlike("counters"))?;
            gate::quick(py, || rarity.merge(&other))?;
        }
        Ok(())
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    /// The features by which sets are found: `feature`, and `position`, which is that of the set.
    fn rarest(&self, py: Python<'_>, members: &Bound<'_, PyAny>, similar: f64) -> PyResult<Table> {
        let members = Blobs::read(members)?;
        let search = gate::quick(py, || SimilarSearch::new(similar))?;
        let (mut features, mut positions) = (Int64Builder::new(), Int32Builder::new());
        for at in 0..members.len() {
            for feature in search.rarest(&self.0, &members.members(at)?.unwrap_or_default()) {
                features.append_value(feature as i64);
                positions.append_value(at as i32);
            }
        }
        Table::of_columns(vec![
            ("feature", Arc::new(features.finish()) as ArrayRef),
            ("position", Arc::new(positions.finish())),
        ])
    }
}

/// Finds similar sets, of which one is small, among those that come together by a feature: rows in the order of these.
#[pyclass(module = "simstore._simstore", name = "_SmallSets")]
pub(crate) struct SmallSets {
    rarity: Rarity,
    search: SimilarSearch,
    /// The feature of the sets that are held, which may go on.
    feature: Option<u64>,
    sets: Vec<(u128, Vec<u64>)>,
}

#[pymethods]
impl SmallSets {
    #[new]
    fn new(py: Python<'_>, rarity: &CountedFeatures, similar: f64) -> PyResult<Self> {
        let search = gate::quick(py, || SimilarSearch::new(similar))?;
        Ok(SmallSets { rarity: rarity.0.clone(), search, feature: None, sets: Vec::new() })
    }

    /// Takes sets, and gives the pairs that are complete: `digest_a` less than `digest_b`, and `similarity`.
    fn push(
        &mut self,
        py: Python<'_>,
        feature: &Bound<'_, PyAny>,
        digest: &Bound<'_, PyAny>,
        members: &Bound<'_, PyAny>,
    ) -> PyResult<Table> {
        let features: PrimitiveArray<Int64Type> = column(feature, &DataType::Int64)?.as_primitive().clone();
        let (digests, members) = (Blobs::read(digest)?, Blobs::read(members)?);
        if features.len() != digests.len() || features.len() != members.len() || features.null_count() > 0 {
            return Err(unlike("a feature, a digest and the features of each set"));
        }
        let mut pairs = Vec::new();
        for (at, &feature) in features.values().iter().enumerate() {
            if self.feature != Some(feature as u64) {
                pairs.extend(self.pair_up(py)?);
                self.feature = Some(feature as u64);
            }
            let members = members.members(at)?.ok_or_else(|| unlike("the features of each set"))?;
            self.sets.push((digests.digest(at)?, members));
        }
        table(&pairs)
    }

    /// Gives the pairs that are left.
    fn finish(&mut self, py: Python<'_>) -> PyResult<Table> {
        table(&self.pair_up(py)?)
    }
}

type SimilarPair = (u128, u128, f32);

impl SmallSets {
    fn pair_up(&mut self, py: Python<'_>) -> PyResult<Vec<SimilarPair>> {
        let sets = std::mem::take(&mut self.sets);
        let Some(feature) = self.feature.take().filter(|_| sets.len() > 1) else { return Ok(Vec::new()) };
        let (rarity, search) = (&self.rarity, &self.search);
        gate::long(py, |_| {
            let members: Vec<&[u64]> = sets.iter().map(|(_, members)| &members[..]).collect();
            let pairs = search.pair_small(rarity, feature, &members);
            let digests = |(a, b, similarity): (usize, usize, f32)| {
                let (a, b) = (sets[a].0, sets[b].0);
                (a.min(b), a.max(b), similarity)
            };
            Ok(pairs.into_iter().map(digests).collect())
        })
    }
}

fn table(pairs: &[SimilarPair]) -> PyResult<Table> {
    let mut similarities = Float64Builder::with_capacity(pairs.len());
    pairs.iter().for_each(|pair| similarities.append_value(pair.2.into()));
    Table::of_columns(vec![
        ("digest_a", digests(pairs.iter().map(|pair| Some(pair.0)))),
        ("digest_b", digests(pairs.iter().map(|pair| Some(pair.1)))),
        ("similarity", Arc::new(similarities.finish())),
    ])
}
