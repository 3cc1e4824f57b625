//! Similarity search split into tasks for several machines, such as Spark tasks. Each function takes and returns columns
//! of record batches.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array as _, ArrayRef, BinaryArray, Float64Array, Int32Array, ListArray};
use arrow_schema::DataType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simstore_dedup::{SimilarSearch, UniqueDocument, moment_key, number_key};
use simstore_text::{BANDS, BandSearch, MinHasher, Profile as Features, Signature};

use crate::array::PyArrowArray;
use crate::binary_column::{BinaryColumn, cast_column, digest_column, pack_hashes, unexpected_columns};
use crate::call;
use crate::profile::{PyProfile, map_texts};
use crate::table::PyTable;
use crate::texts::Texts;

fn feature_profile(profile: Option<&Bound<'_, PyProfile>>) -> Features {
    profile.map_or_else(Features::shingles, |profile| profile.get().inner.clone())
}

/// Computes the MinHash signatures of texts. Column `digest` identifies the feature set, `features` is its size, and `sketches` are the 8
/// bands of the signature. All are null for a text without features.
#[pyfunction]
#[pyo3(signature = (texts, profile=None))]
pub(crate) fn _minhash_bands(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    profile: Option<&Bound<'_, PyProfile>>,
) -> PyResult<PyTable> {
    let texts = Texts::read(texts, "text")?;
    let features = feature_profile(profile);
    let columns = call::interruptible(py, |call| {
        let hasher = MinHasher::new(features);
        let signatures = map_texts(&texts, call, |text| hasher.signature(text))?;
        Ok(signature_columns(&signatures))
    })?;
    PyTable::from_columns(columns)
}

fn signature_columns(signatures: &[Option<Signature>]) -> Vec<(&'static str, ArrayRef)> {
    let rows = || signatures.iter().map(Option::as_ref);
    let features = rows().map(|row| Some(i32::try_from(row?.features).unwrap_or(i32::MAX)));
    let bands = rows().map(|row| Some(row?.bands.iter().map(|&band| Some(band as i64))));
    vec![
        ("digest", digest_column(rows().map(|row| row.map(Signature::digest)))),
        ("features", Arc::new(features.collect::<Int32Array>())),
        ("sketches", Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(bands))),
    ]
}

/// Returns a table of the feature sets of texts. Column `digest` identifies the set, as in [`_minhash_bands`], and
/// `members` has the hashes of its features, ascending.
#[pyfunction]
#[pyo3(signature = (texts, profile=None))]
pub(crate) fn _feature_sets(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    profile: Option<&Bound<'_, PyProfile>>,
) -> PyResult<PyTable> {
    let texts = Texts::read(texts, "text")?;
    let features = feature_profile(profile);
    let columns = call::interruptible(py, |call| {
        let make = |text: &str| {
            let set = features.feature_set(text);
            Signature::new(&set).map(|signature| (signature.digest(), pack_hashes(&set)))
        };
        let sets = map_texts(&texts, call, make)?;
        let members: BinaryArray = sets.iter().map(|set| set.as_ref().map(|(_, members)| members)).collect();
        let digests = digest_column(sets.iter().map(|set| set.as_ref().map(|&(digest, _)| digest)));
        Ok(vec![("digest", digests), ("members", Arc::new(members) as ArrayRef)])
    })?;
    PyTable::from_columns(columns)
}

/// Chooses the parameters of a search for similar pairs among `distinct` different feature sets: the number of
/// MinHash bands to join, the maximum distance in one band, and the maximum distance in all bands together, in
/// bits.
#[pyfunction]
pub(crate) fn _choose_bands(
    py: Python<'_>,
    similar: f64,
    recall: f64,
    distinct: usize,
) -> PyResult<(usize, u32, u32)> {
    let search = call::detached(py, || SimilarSearch::new(similar)?.choose(recall, distinct))?;
    Ok((search.bands, search.band_distance, search.signature_distance))
}

/// One side of all pairs of sets: either the first set of each pair, or the second. For each set: digest, number of
/// features, and signature.
struct CandidateSide {
    digests: Vec<u128>,
    features: Vec<u32>,
    bands: Vec<[u64; BANDS]>,
}

impl CandidateSide {
    fn read((digest, features, bands): SignatureColumns<'_>) -> PyResult<CandidateSide> {
        let digest = BinaryColumn::read(&digest)?;
        let features = cast_column(&features, &DataType::Int32)?;
        let features = features.as_primitive::<Int32Type>();
        let lists = cast_column(&bands, &DataType::new_list(DataType::Int64, true))?;
        let lists = lists.as_list::<i32>();
        let rows = digest.len();
        if features.len() != rows || lists.len() != rows || features.null_count() + lists.null_count() > 0 {
            return Err(unexpected_columns("a number of features and sketches of each set"));
        }
        let values = lists.values().as_primitive::<Int64Type>().values();
        let bands_of = |ends: &[i32]| {
            let bands = <[i64; BANDS]>::try_from(&values[ends[0] as usize..ends[1] as usize]);
            bands.ok().map(|bands| bands.map(|band| band as u64))
        };
        let bands: Option<_> = lists.value_offsets().windows(2).map(bands_of).collect();
        Ok(CandidateSide {
            digests: (0..rows).map(|at| digest.digest(at)).collect::<PyResult<_>>()?,
            features: features.values().iter().map(|&features| features as u32).collect(),
            bands: bands.ok_or_else(|| unexpected_columns("8 sketches of each set"))?,
        })
    }

    fn row(&self, at: usize) -> UniqueDocument<'_> {
        UniqueDocument { digest: self.digests[at], signature: &self.bands[at], features: self.features[at] }
    }
}

/// The columns digest, features and sketches.
type SignatureColumns<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Selects the candidate pairs of feature sets from the pairs that the join of one MinHash band found. `a` and `b`
/// are the two sides of these pairs, `sketch` is the index of the band, and `chosen` is the result of
/// [`_choose_bands`]. If both sets of a pair have the same value of the band, the caller must pass the pair in
/// both orders. In the result, `digest_a` is less than `digest_b`.
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
    let columns = call::detached(py, || {
        let rule = SimilarSearch::new(similar)?;
        let pairs: Vec<(u128, u128)> = (0..a.digests.len())
            .filter_map(|at| rule.candidate(&search, sketch, a.row(at), b.row(at)))
            .collect();
        Ok(vec![
            ("digest_a", digest_column(pairs.iter().map(|pair| Some(pair.0)))),
            ("digest_b", digest_column(pairs.iter().map(|pair| Some(pair.1)))),
        ])
    })?;
    PyTable::from_columns(columns)
}

/// Returns for each row the Jaccard similarity of its two sets of feature hashes, or null if the similarity is
/// below `similar`.
#[pyfunction]
pub(crate) fn _candidate_similarities(
    py: Python<'_>,
    members_a: &Bound<'_, PyAny>,
    members_b: &Bound<'_, PyAny>,
    similar: f64,
) -> PyResult<PyArrowArray> {
    let (a, b) = (BinaryColumn::read(members_a)?, BinaryColumn::read(members_b)?);
    if a.len() != b.len() {
        return Err(unexpected_columns("pairs of sets"));
    }
    let rule = call::detached(py, || SimilarSearch::new(similar))?;
    let similarities = (0..a.len()).map(|at| match (a.hashes(at)?, b.hashes(at)?) {
        (Some(x), Some(y)) => Ok(rule.similarity(&x, &y)),
        _ => Err(unexpected_columns("pairs of sets of hashes")),
    });
    Ok(PyArrowArray::new(Arc::new(similarities.collect::<PyResult<Float64Array>>()?)))
}

/// Encodes values as bytes that sort in the order of preference of `rule`, such as "newest". A missing value sorts
/// like an empty text.
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
