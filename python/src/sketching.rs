//! The similarity search split into cluster tasks, on columns of record batches.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array as _, ArrayRef, BinaryArray, Float64Array, Int32Array, ListArray};
use arrow_schema::DataType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simstore_dedup::{SimilarSearch, UniqueDocument, moment_key, number_key};
use simstore_text::{Profile as Features, BANDS, BandSearch, Signature, MinHasher};

use crate::array::PyArrowArray;
use crate::blobs::{BinaryColumn, cast_column, digest_column, pack_hashes, unexpected_columns};
use crate::gate;
use crate::profile::{PyProfile, in_parallel};
use crate::table::PyTable;
use crate::texts::Texts;

fn features_of(profile: Option<&Bound<'_, PyProfile>>) -> Features {
    profile.map_or_else(Features::shingles, |profile| profile.get().inner.clone())
}

/// Computes the bands of texts from their features: `digest` identifies the set, `features` is its size, and `bands` are its bands. All
/// are null for a text without features.
#[pyfunction]
#[pyo3(signature = (texts, profile=None))]
pub(crate) fn _sketched(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    profile: Option<&Bound<'_, PyProfile>>,
) -> PyResult<PyTable> {
    let texts = Texts::read(texts, "text")?;
    let features = features_of(profile);
    let columns = gate::interruptible(py, |call| {
        let sketcher = MinHasher::new(features);
        let made = in_parallel(&texts, call, |text| sketcher.signature(text))?;
        Ok(sketched_columns(&made))
    })?;
    PyTable::of_columns(columns)
}

fn sketched_columns(made: &[Option<Signature>]) -> Vec<(&'static str, ArrayRef)> {
    let rows = || made.iter().map(Option::as_ref);
    let features = rows().map(|row| Some(i32::try_from(row?.features).unwrap_or(i32::MAX)));
    let sketches = rows().map(|row| Some(row?.bands.iter().map(|&sketch| Some(sketch as i64))));
    vec![
        ("digest", digest_column(rows().map(|row| row.map(Signature::digest)))),
        ("features", Arc::new(features.collect::<Int32Array>())),
        ("sketches", Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(sketches))),
    ]
}

/// Returns the feature sets of texts: `digest` as in [`_sketched`], and `hashes`, the hashes of the features in ascending order.
#[pyfunction]
#[pyo3(signature = (texts, profile=None))]
pub(crate) fn _feature_sets(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    profile: Option<&Bound<'_, PyProfile>>,
) -> PyResult<PyTable> {
    let texts = Texts::read(texts, "text")?;
    let features = features_of(profile);
    let columns = gate::interruptible(py, |call| {
        let make = |text: &str| {
            let set = features.feature_set(text);
            Signature::new(&set).map(|sketched| (sketched.digest(), pack_hashes(&set)))
        };
        let made = in_parallel(&texts, call, make)?;
        let members: BinaryArray = made.iter().map(|set| set.as_ref().map(|(_, members)| members)).collect();
        let digests = digest_column(made.iter().map(|set| set.as_ref().map(|&(digest, _)| digest)));
        Ok(vec![("digest", digests), ("members", Arc::new(members) as ArrayRef)])
    })?;
    PyTable::of_columns(columns)
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
    let search = gate::detached(py, || SimilarSearch::new(similar)?.choose(recall, distinct))?;
    Ok((search.bands, search.band_distance, search.signature_distance))
}

/// One side of the pairs: digests, numbers of features, and sketches.
struct CandidateSide {
    digests: Vec<u128>,
    features: Vec<u32>,
    sketches: Vec<[u64; BANDS]>,
}

impl CandidateSide {
    fn read((digest, features, sketches): SignatureColumns<'_>) -> PyResult<CandidateSide> {
        let digest = BinaryColumn::read(&digest)?;
        let features = cast_column(&features, &DataType::Int32)?;
        let features = features.as_primitive::<Int32Type>();
        let lists = cast_column(&sketches, &DataType::new_list(DataType::Int64, true))?;
        let lists = lists.as_list::<i32>();
        let rows = digest.len();
        if features.len() != rows || lists.len() != rows || features.null_count() + lists.null_count() > 0 {
            return Err(unexpected_columns("a number of features and sketches of each set"));
        }
        let values = lists.values().as_primitive::<Int64Type>().values();
        let sketches_of = |ends: &[i32]| {
            let sketches = <[i64; BANDS]>::try_from(&values[ends[0] as usize..ends[1] as usize]);
            sketches.ok().map(|sketches| sketches.map(|sketch| sketch as u64))
        };
        let sketches: Option<_> = lists.value_offsets().windows(2).map(sketches_of).collect();
        Ok(CandidateSide {
            digests: (0..rows).map(|at| digest.digest(at)).collect::<PyResult<_>>()?,
            features: features.values().iter().map(|&features| features as u32).collect(),
            sketches: sketches.ok_or_else(|| unexpected_columns("8 sketches of each set"))?,
        })
    }

    fn row(&self, at: usize) -> UniqueDocument<'_> {
        UniqueDocument { digest: self.digests[at], signature: &self.sketches[at], features: self.features[at] }
    }
}

type SignatureColumns<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Selects the pairs to compare among the pairs found by joining a band, with `digest_a` less than `digest_b`. A pair with equal bands must
/// be given in both orders.
#[pyfunction]
pub(crate) fn _candidates(
    py: Python<'_>,
    a: SignatureColumns<'_>,
    b: SignatureColumns<'_>,
    similar: f64,
    chosen: (usize, u32, u32),
    sketch: usize,
) -> PyResult<PyTable> {
    let (a, b) = (CandidateSide::read(a)?, CandidateSide::read(b)?);
    if a.digests.len() != b.digests.len() || sketch >= BANDS {
        return Err(unexpected_columns("pairs of sets, and one of their 8 sketches"));
    }
    let (bands, band_distance, signature_distance) = chosen;
    let search = BandSearch { bands, band_distance, signature_distance };
    let columns = gate::detached(py, || {
        let rule = SimilarSearch::new(similar)?;
        let pairs: Vec<(u128, u128)> = (0..a.digests.len())
            .filter_map(|at| rule.candidate(&search, sketch, a.row(at), b.row(at)))
            .collect();
        Ok(vec![
            ("digest_a", digest_column(pairs.iter().map(|pair| Some(pair.0)))),
            ("digest_b", digest_column(pairs.iter().map(|pair| Some(pair.1)))),
        ])
    })?;
    PyTable::of_columns(columns)
}

/// Returns the similarity of two sets in each row, or null if it is below the threshold.
#[pyfunction]
pub(crate) fn _compared(
    py: Python<'_>,
    members_a: &Bound<'_, PyAny>,
    members_b: &Bound<'_, PyAny>,
    similar: f64,
) -> PyResult<PyArrowArray> {
    let (a, b) = (BinaryColumn::read(members_a)?, BinaryColumn::read(members_b)?);
    if a.len() != b.len() {
        return Err(unexpected_columns("pairs of sets"));
    }
    let rule = gate::detached(py, || SimilarSearch::new(similar))?;
    let similarities = (0..a.len()).map(|at| match (a.hashes(at)?, b.hashes(at)?) {
        (Some(x), Some(y)) => Ok(rule.similarity(&x, &y)),
        _ => Err(unexpected_columns("pairs of sets of hashes")),
    });
    Ok(PyArrowArray::new(Arc::new(similarities.collect::<PyResult<Float64Array>>()?)))
}

/// Encodes values as bytes that sort in the rule's order of preference. A missing value sorts like an empty one.
#[pyfunction]
pub(crate) fn _value_keys(values: &Bound<'_, PyAny>, rule: &str) -> PyResult<PyArrowArray> {
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
    Ok(PyArrowArray::new(Arc::new(keys.collect::<BinaryArray>())))
}
