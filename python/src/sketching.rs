//! The similarity search split into cluster tasks, on columns of record batches.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array as _, ArrayRef, BinaryArray, Float64Array, Int32Array, ListArray};
use arrow_schema::DataType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simstore_dedup::{SimilarSearch, SketchedSet, moment_key, number_key};
use simstore_text::{Profile as Features, SKETCHES, SketchSearch, Sketched, Sketcher};

use crate::array::Array;
use crate::blobs::{Blobs, column, digests, packed, unlike};
use crate::gate;
use crate::profile::{Profile, in_parallel};
use crate::table::Table;
use crate::texts::Texts;

fn features_of(profile: Option<&Bound<'_, Profile>>) -> Features {
    profile.map_or_else(Features::shingles, |profile| profile.get().inner.clone())
}

/// Computes the bands of texts from their features: `digest` identifies the set, `features` is its size, and `sketches` are its bands. All
/// are null for a text without features.
#[pyfunction]
#[pyo3(signature = (texts, profile=None))]
pub(crate) fn _sketched(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    profile: Option<&Bound<'_, Profile>>,
) -> PyResult<Table> {
    let texts = Texts::read(texts, "text")?;
    let features = features_of(profile);
    let columns = gate::long(py, |call| {
        let sketcher = Sketcher::new(features);
        let made = in_parallel(&texts, call, |text| sketcher.sketch(text))?;
        Ok(sketched_columns(&made))
    })?;
    Table::of_columns(columns)
}

fn sketched_columns(made: &[Option<Sketched>]) -> Vec<(&'static str, ArrayRef)> {
    let rows = || made.iter().map(Option::as_ref);
    let features = rows().map(|row| Some(i32::try_from(row?.features).unwrap_or(i32::MAX)));
    let sketches = rows().map(|row| Some(row?.sketches.iter().map(|&sketch| Some(sketch as i64))));
    vec![
        ("digest", digests(rows().map(|row| row.map(Sketched::digest)))),
        ("features", Arc::new(features.collect::<Int32Array>())),
        ("sketches", Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(sketches))),
    ]
}

/// Returns the feature sets of texts: `digest` as in [`_sketched`], and `members`, the hashes of the features in ascending order.
#[pyfunction]
#[pyo3(signature = (texts, profile=None))]
pub(crate) fn _feature_sets(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    profile: Option<&Bound<'_, Profile>>,
) -> PyResult<Table> {
    let texts = Texts::read(texts, "text")?;
    let features = features_of(profile);
    let columns = gate::long(py, |call| {
        let make = |text: &str| {
            let set = features.feature_set(text);
            Sketched::new(&set).map(|sketched| (sketched.digest(), packed(&set)))
        };
        let made = in_parallel(&texts, call, make)?;
        let members: BinaryArray = made.iter().map(|set| set.as_ref().map(|(_, members)| members)).collect();
        let digests = digests(made.iter().map(|set| set.as_ref().map(|&(digest, _)| digest)));
        Ok(vec![("digest", digests), ("members", Arc::new(members) as ArrayRef)])
    })?;
    Table::of_columns(columns)
}

/// Chooses how to join the bands of a given number of different sets: the number of bands, the distance for each band, and the distance
/// over all bands together.
#[pyfunction]
pub(crate) fn _choose_sketches(
    py: Python<'_>,
    similar: f64,
    recall: f64,
    distinct: usize,
) -> PyResult<(usize, u32, u32)> {
    let search = gate::quick(py, || SimilarSearch::new(similar)?.choose(recall, distinct))?;
    Ok((search.joined, search.distance, search.total))
}

/// One side of the pairs: digests, numbers of features, and sketches.
struct Side {
    digests: Vec<u128>,
    features: Vec<u32>,
    sketches: Vec<[u64; SKETCHES]>,
}

impl Side {
    fn read((digest, features, sketches): Columns<'_>) -> PyResult<Side> {
        let digest = Blobs::read(&digest)?;
        let features = column(&features, &DataType::Int32)?;
        let features = features.as_primitive::<Int32Type>();
        let lists = column(&sketches, &DataType::new_list(DataType::Int64, true))?;
        let lists = lists.as_list::<i32>();
        let rows = digest.len();
        if features.len() != rows || lists.len() != rows || features.null_count() + lists.null_count() > 0 {
            return Err(unlike("a number of features and sketches of each set"));
        }
        let values = lists.values().as_primitive::<Int64Type>().values();
        let sketches_of = |ends: &[i32]| {
            let sketches = <[i64; SKETCHES]>::try_from(&values[ends[0] as usize..ends[1] as usize]);
            sketches.ok().map(|sketches| sketches.map(|sketch| sketch as u64))
        };
        let sketches: Option<_> = lists.value_offsets().windows(2).map(sketches_of).collect();
        Ok(Side {
            digests: (0..rows).map(|at| digest.digest(at)).collect::<PyResult<_>>()?,
            features: features.values().iter().map(|&features| features as u32).collect(),
            sketches: sketches.ok_or_else(|| unlike("8 sketches of each set"))?,
        })
    }

    fn row(&self, at: usize) -> SketchedSet<'_> {
        SketchedSet { digest: self.digests[at], sketches: &self.sketches[at], features: self.features[at] }
    }
}

type Columns<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Selects the pairs to compare among the pairs found by joining a band, with `digest_a` less than `digest_b`. A pair with equal bands must
/// be given in both orders.
#[pyfunction]
pub(crate) fn _candidates(
    py: Python<'_>,
    a: Columns<'_>,
    b: Columns<'_>,
    similar: f64,
    chosen: (usize, u32, u32),
    sketch: usize,
) -> PyResult<Table> {
    let (a, b) = (Side::read(a)?, Side::read(b)?);
    if a.digests.len() != b.digests.len() || sketch >= SKETCHES {
        return Err(unlike("pairs of sets, and one of their 8 sketches"));
    }
    let (joined, distance, total) = chosen;
    let search = SketchSearch { joined, distance, total };
    let columns = gate::quick(py, || {
        let rule = SimilarSearch::new(similar)?;
        let pairs: Vec<(u128, u128)> = (0..a.digests.len())
            .filter_map(|at| rule.candidate(&search, sketch, a.row(at), b.row(at)))
            .collect();
        Ok(vec![
            ("digest_a", digests(pairs.iter().map(|pair| Some(pair.0)))),
            ("digest_b", digests(pairs.iter().map(|pair| Some(pair.1)))),
        ])
    })?;
    Table::of_columns(columns)
}

/// Returns the similarity of two sets in each row, or null if it is below the threshold.
#[pyfunction]
pub(crate) fn _compared(
    py: Python<'_>,
    members_a: &Bound<'_, PyAny>,
    members_b: &Bound<'_, PyAny>,
    similar: f64,
) -> PyResult<Array> {
    let (a, b) = (Blobs::read(members_a)?, Blobs::read(members_b)?);
    if a.len() != b.len() {
        return Err(unlike("pairs of sets"));
    }
    let rule = gate::quick(py, || SimilarSearch::new(similar))?;
    let similarities = (0..a.len()).map(|at| match (a.members(at)?, b.members(at)?) {
        (Some(x), Some(y)) => Ok(rule.similarity(&x, &y)),
        _ => Err(unlike("pairs of sets of hashes")),
    });
    Ok(Array::new(Arc::new(similarities.collect::<PyResult<Float64Array>>()?)))
}

/// Encodes values as bytes that sort in the rule's order of preference. A missing value sorts like an empty one.
#[pyfunction]
pub(crate) fn _value_keys(values: &Bound<'_, PyAny>, rule: &str) -> PyResult<Array> {
    let key = match rule {
        "newest" => moment_key,
        "largest" => |value: &str| number_key(value, false),
        "smallest" => |value: &str| number_key(value, true),
        _ => {
            let expected = "newest, largest or smallest";
            return Err(PyValueError::new_err(format!("option `rule` is {rule:?}: expected {expected}")));
        }
    };
    let values = Texts::read(values, "value")?;
    let keys = (0..values.len()).map(|at| Some(key(values.get(at).unwrap_or_default())));
    Ok(Array::new(Arc::new(keys.collect::<BinaryArray>())))
}
