//! Functions on arrays of fingerprints: `self_join`, `clusters` and `distance`.

use std::sync::Arc;

use arrow_array::{UInt8Array, UInt32Array};
use numpy::PyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt};
use simstore::any::AnyFingerprints;
use simstore::join::{join_positions, label_clusters};
use simstore::{Fingerprint, Result, each_width};

use crate::call;
use crate::fingerprints::{FingerprintColumn, read_one, width_of};
use crate::number_arguments;
use crate::table::PyTable;

/// Returns all pairs of elements with fingerprints that differ in at most ``distance`` bits, including equal fingerprints.
///
/// If n elements have the same fingerprint, they form n (n - 1) / 2 pairs. `clusters` needs no memory for pairs.
///
/// Parameters
/// ----------
/// fingerprints : array_like, shape (n,)
///     Numpy array of uint64, or of uint8 with shape (n, 16); Arrow array of uint64 or fixed_size_binary[16]; a list of ints. A null has
///     no pairs.
/// distance : int
///     In bits: up to 16 for fingerprints of 64 bits, up to 32 for 128 bits.
/// bits : {64, 128}, optional
///     Width of the fingerprints. Needed only for a list of ints of 128 bits.
/// progress : bool or callable, optional
///     True shows a bar of tqdm. A callable receives a `Progress` several times a second.
///
/// Returns
/// -------
/// Table
///     With columns a and b (uint32), the positions of both elements with a < b, and distance (uint8). Sorted by a, then b.
///
/// Examples
/// --------
/// >>> import simstore
/// >>> simstore.self_join([0b1111, 1 << 40, 0b0111, 0b1111]).to_pylist()
/// [{'a': 0, 'b': 2, 'distance': 1}, {'a': 0, 'b': 3, 'distance': 0}, {'a': 2, 'b': 3, 'distance': 1}]
#[pyfunction]
#[pyo3(signature = (fingerprints, distance=3, *, bits=None, progress=None))]
pub(crate) fn self_join(
    py: Python<'_>,
    fingerprints: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = number_arguments::required_distance)] distance: u32,
    #[pyo3(from_py_with = number_arguments::bits)] bits: Option<u32>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTable> {
    let present = FingerprintColumn::read(fingerprints, bits)?.present();
    let [a, b, distance] = call::with_progress(py, progress, |call| {
        let callback = call.callback("pairs");
        let pairs =
            each_width!(&present.values, values => join_positions(values, distance, Some(&callback)))?;
        let position = |at| present.position(at) as u32;
        let a = UInt32Array::from_iter_values(pairs.iter().map(|pair| position(pair.a)));
        let b = UInt32Array::from_iter_values(pairs.iter().map(|pair| position(pair.b)));
        let distance = UInt8Array::from_iter_values(pairs.iter().map(|pair| pair.distance as u8));
        Ok([Arc::new(a) as arrow_array::ArrayRef, Arc::new(b), Arc::new(distance)])
    })?;
    PyTable::from_columns(vec![("a", a), ("b", b), ("distance", distance)])
}

/// Returns a label for each element. Elements have the same label if a chain of fingerprints, each within ``distance`` bits of the next,
/// connects them.
///
/// Parameters
/// ----------
/// fingerprints, distance, bits, progress
///     As for `self_join`. A null has a label of its own.
///
/// Returns
/// -------
/// numpy.ndarray of int64, shape (n,)
///     Labels from 1, in the order of the clusters' first members.
///
/// Examples
/// --------
/// >>> import simstore
/// >>> simstore.clusters([0b1111, 1 << 40, 0b0111, None, 0b1111])
/// array([1, 2, 1, 3, 1])
#[pyfunction]
#[pyo3(signature = (fingerprints, distance=3, *, bits=None, progress=None))]
pub(crate) fn clusters<'py>(
    py: Python<'py>,
    fingerprints: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = number_arguments::required_distance)] distance: u32,
    #[pyo3(from_py_with = number_arguments::bits)] bits: Option<u32>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let fingerprints = FingerprintColumn::read(fingerprints, bits)?;
    let (len, present) = (fingerprints.len(), fingerprints.present());
    let labels = call::with_progress(py, progress, |call| {
        let callback = call.callback("pairs");
        let labels =
            each_width!(&present.values, values => label_clusters(values, distance, Some(&callback)))?;
        Ok(with_missing_labels(&labels, len, |at| present.position(at)))
    })?;
    Ok(PyArray1::from_vec(py, labels))
}

/// Returns cluster labels for all `len` elements of an array that may have nulls. `labels` has only the labels of
/// the values that are not null, and `position` maps an index of `labels` to a position in the array. Each null
/// gets a label of its own. The new labels are numbered from 1, in the order of the clusters' first members.
fn with_missing_labels(labels: &[u32], len: usize, position: impl Fn(usize) -> usize) -> Vec<i64> {
    let (mut all, mut next, mut of_label) = (Vec::with_capacity(len), 0_i64, Vec::new());
    let mut take = || {
        next += 1;
        next
    };
    for (at, &label) in labels.iter().enumerate() {
        while all.len() < position(at) {
            all.push(take());
        }
        // Labels come in order of their first members.
        if label as usize == of_label.len() {
            of_label.push(take());
        }
        all.push(of_label[label as usize]);
    }
    all.resize_with(len, take);
    all
}

/// Returns the Hamming distance of fingerprints: the number of differing bits.
///
/// Parameters
/// ----------
/// a, b : int, bytes of length 16, or array_like of shape (n,)
///     Two ints; two arrays of the same length; or an array and an int, which is compared with each element. Arrays must have no nulls.
/// bits : {64, 128}, optional
///     Width of the fingerprints. Needed only for lists of ints of 128 bits.
///
/// Returns
/// -------
/// int, or numpy.ndarray of uint8, shape (n,)
///
/// Examples
/// --------
/// >>> import simstore
/// >>> simstore.distance(0b1111, 0b0110)
/// 2
/// >>> simstore.distance([0b1111, 0b0001], [0b0110, 0b0001])
/// array([2, 0], dtype=uint8)
#[pyfunction]
#[pyo3(signature = (a, b, *, bits=None))]
pub(crate) fn distance<'py>(
    py: Python<'py>,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = number_arguments::bits)] bits: Option<u32>,
) -> PyResult<Bound<'py, PyAny>> {
    let (a, b) = match (is_one_fingerprint(a)?, is_one_fingerprint(b)?) {
        (true, true) => {
            let width = width_of(py, bits.unwrap_or(128))?;
            let (a, b) = (read_one(a, width)?, read_one(b, width)?);
            return Ok(a.distance(b).into_pyobject(py)?.into_any());
        }
        (true, false) => (b, a),
        _ => (a, b),
    };
    let a = FingerprintColumn::read_all(a, bits)?;
    let distances = if is_one_fingerprint(b)? {
        let b = read_one(b, a.width())?;
        call::detached(py, || Ok(each_width!(&a, a => distances_to_one(a, b))))
    } else {
        let b = FingerprintColumn::read_all(b, Some(a.bits()))?;
        if a.len() != b.len() {
            return Err(PyValueError::new_err(format!("arrays of {} and {} fingerprints", a.len(), b.len())));
        }
        call::detached(py, || elementwise_distances(&a, &b))
    }?;
    Ok(PyArray1::from_vec(py, distances).into_any())
}

fn elementwise_distances(a: &AnyFingerprints, b: &AnyFingerprints) -> Result<Vec<u8>> {
    Ok(each_width!(a.as_ref().zip(b.as_ref())?, (a, b) => {
        a.iter().zip(b).map(|(a, b)| a.distance(*b) as u8).collect()
    }))
}

fn distances_to_one<F: Fingerprint>(fingerprints: &[F], one: u128) -> Vec<u8> {
    fingerprints.iter().map(|fingerprint| fingerprint.distance(F::from_u128(one)) as u8).collect()
}

/// Whether the object is a single fingerprint: an int, a numpy integer, or bytes.
fn is_one_fingerprint(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.is_instance_of::<PyInt>() || object.is_instance_of::<PyBytes>() {
        return Ok(true);
    }
    if object.is_none() {
        return Err(PyTypeError::new_err("expected fingerprints, found None"));
    }
    Ok(object.hasattr("__index__")? && !object.hasattr("__len__")?)
}
