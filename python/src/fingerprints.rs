//! Fingerprints read from Python objects (ints, bytes, numpy arrays, Arrow arrays), and converted back.

use std::sync::Arc;

use arrow_array::builder::FixedSizeBinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array as _, ArrayRef, UInt64Array};
use arrow_buffer::NullBuffer;
use arrow_cast::CastOptions;
use arrow_schema::DataType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes};
use simstore::any::{AnyFingerprints, Width};
use simstore::{Fingerprint, each_width};

use crate::array::PyArrowArray;
use crate::array_input::{NumpyArray, arrow_array, holds_objects};
use crate::errors::exception;
use crate::panics::catch_panic_in_python;
use crate::texts::is_missing;

/// A column of fingerprints of one width, which may contain nulls.
pub(crate) struct FingerprintColumn {
    /// The fingerprints; 0 for nulls.
    pub(crate) values: AnyFingerprints,
    /// Which values are not null; `None` if all are valid.
    pub(crate) valid: Option<NullBuffer>,
}

/// Fingerprints of one width without nulls, with their positions in the original column.
pub(crate) struct PresentFingerprints {
    pub(crate) values: AnyFingerprints,
    /// Positions of the fingerprints in the original column; `None` if it had no nulls.
    positions: Option<Vec<u32>>,
}

impl PresentFingerprints {
    /// Returns the position of the fingerprint at index `at` in the original column.
    pub(crate) fn position(&self, at: usize) -> usize {
        self.positions.as_ref().map_or(at, |positions| positions[at] as usize)
    }
}

impl FingerprintColumn {
    /// Reads an array: a numpy array of uint64, or of uint8 with shape (n, 16); an Arrow array of uint64 or fixed_size_binary[16]; or an
    /// iterable of ints, which have 64 bits unless `bits` is 128.
    ///
    /// # Errors
    /// If the width differs from `bits`.
    pub(crate) fn read(object: &Bound<'_, PyAny>, bits: Option<u32>) -> PyResult<FingerprintColumn> {
        let read = catch_panic_in_python(object.py(), || {
            if let Some(numbers) = NumpyArray::read(object)? {
                from_numpy(&numbers, bits)
            } else if holds_objects(object) {
                from_ints(object, bits)
            } else if let Some(array) = arrow_array(object)? {
                let chunks = array.into_chunked_array().map_err(PyErr::from)?;
                from_arrow(chunks.chunks(), chunks.data_type())
            } else {
                from_ints(object, bits)
            }
        })?;
        match bits {
            Some(bits) if bits != read.bits() => Err(PyValueError::new_err(format!(
                "expected fingerprints of {bits} bits, found some of {}",
                read.bits()
            ))),
            _ => Ok(read),
        }
    }

    /// Removes the nulls.
    pub(crate) fn present(self) -> PresentFingerprints {
        let Some(valid) = self.valid else {
            return PresentFingerprints { values: self.values, positions: None };
        };
        let positions: Vec<u32> = valid.valid_indices().map(|at| at as u32).collect();
        let values = each_width!(&self.values, values => {
            positions.iter().map(|&at| values[at as usize]).collect::<Vec<_>>().into()
        });
        PresentFingerprints { values, positions: Some(positions) }
    }

    /// Reads an array like [`FingerprintColumn::read`]. A null is an error.
    pub(crate) fn read_all(object: &Bound<'_, PyAny>, bits: Option<u32>) -> PyResult<AnyFingerprints> {
        let read = FingerprintColumn::read(object, bits)?;
        match read.valid.as_ref().and_then(|valid| (0..valid.len()).find(|&at| valid.is_null(at))) {
            Some(at) => Err(PyValueError::new_err(format!(
                "fingerprint {at} is null, and so {} of {}: leave them out",
                read.valid.as_ref().map_or(0, NullBuffer::null_count),
                read.len()
            ))),
            None => Ok(read.values),
        }
    }

    pub(crate) fn bits(&self) -> u32 {
        self.values.bits()
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }
}

fn from_numpy(numbers: &NumpyArray<'_>, bits: Option<u32>) -> PyResult<FingerprintColumn> {
    let shape = numbers.shape();
    let all = |mut values: AnyFingerprints| {
        for at in numbers.valid.iter().flat_map(|valid| (0..valid.len()).filter(|&at| valid.is_null(at))) {
            each_width!(&mut values, values => values[at] = Default::default());
        }
        Ok(FingerprintColumn { values, valid: numbers.valid.clone() })
    };
    if let Some(values) = numbers.values::<u64>(1)? {
        return all(AnyFingerprints::Bits64(values));
    }
    if let (Some(bytes), [_, 16]) = (numbers.values::<u8>(2)?, shape) {
        return all(AnyFingerprints::Bits128(bytes.chunks_exact(16).map(u128_from_bytes).collect()));
    }
    // Elements of 16 bytes: dtypes S16 and V16.
    if let (b'S' | b'V', [_], Some(rows)) = (numbers.kind(), shape, numbers.rows_of_bytes(16)?) {
        return all(AnyFingerprints::Bits128(rows.chunks_exact(16).map(u128_from_bytes).collect()));
    }
    // Other integer types are read as objects, which checks the range.
    match (numbers.kind(), shape) {
        (b'i' | b'u' | b'O', [_]) => from_ints(&numbers.objects()?, bits),
        _ => Err(PyTypeError::new_err(format!(
            "expected an array of uint64 of shape (n,), or of uint8 of shape (n, 16), found {} of shape {shape:?}",
            numbers.type_name()
        ))),
    }
}

fn from_arrow(chunks: &[ArrayRef], data_type: &DataType) -> PyResult<FingerprintColumn> {
    let len = chunks.iter().map(|chunk| chunk.len()).sum();
    let has_nulls = chunks.iter().any(|chunk| chunk.null_count() > 0);
    let is_valid = || chunks.iter().flat_map(|chunk| (0..chunk.len()).map(|at| chunk.is_valid(at)));
    let valid = has_nulls.then(|| is_valid().collect());
    let values = match data_type {
        DataType::UInt64 => {
            let mut values = Vec::with_capacity(len);
            for chunk in chunks.iter().map(|chunk| chunk.as_primitive::<UInt64Type>()) {
                match chunk.nulls() {
                    None => values.extend_from_slice(chunk.values()),
                    Some(_) => values.extend(chunk.iter().map(Option::unwrap_or_default)),
                }
            }
            AnyFingerprints::Bits64(values)
        }
        DataType::FixedSizeBinary(16) => {
            let of_chunk = |chunk: &ArrayRef| {
                let chunk = chunk.as_fixed_size_binary().clone();
                (0..chunk.len())
                    .map(move |at| if chunk.is_valid(at) { u128_from_bytes(chunk.value(at)) } else { 0 })
            };
            AnyFingerprints::Bits128(chunks.iter().flat_map(of_chunk).collect())
        }
        // Other integer types; negative values are refused.
        kind if kind.is_integer() => {
            let strict = CastOptions { safe: false, ..CastOptions::default() };
            let cast = |chunk: &ArrayRef| arrow_cast::cast_with_options(chunk, &DataType::UInt64, &strict);
            let cast: Vec<ArrayRef> = chunks.iter().map(cast).collect::<Result<_, _>>().map_err(|error| {
                PyValueError::new_err(format!("fingerprints of 64 bits are 0 to 2**64 - 1: {error}"))
            })?;
            return from_arrow(&cast, &DataType::UInt64);
        }
        // Polars has no fixed-size binary type.
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let mut values = Vec::with_capacity(len);
            for chunk in chunks {
                let chunk = arrow_cast::cast(chunk, &DataType::BinaryView)
                    .map_err(|error| PyTypeError::new_err(error.to_string()))?;
                for bytes in chunk.as_binary_view() {
                    if let Some(bytes) = bytes.filter(|bytes| bytes.len() != 16) {
                        let (at, len) = (values.len(), bytes.len());
                        return Err(PyValueError::new_err(format!(
                            "fingerprint {at} has {len} bytes: expected 16"
                        )));
                    }
                    values.push(bytes.map_or(0, u128_from_bytes));
                }
            }
            AnyFingerprints::Bits128(values)
        }
        _ => {
            return Err(PyTypeError::new_err(format!(
                "expected an Arrow array of uint64, or of fixed_size_binary[16], found {data_type}"
            )));
        }
    };
    Ok(FingerprintColumn { values, valid })
}

fn from_ints(object: &Bound<'_, PyAny>, bits: Option<u32>) -> PyResult<FingerprintColumn> {
    let (mut narrow, mut wide, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    let mut is_wide = bits == Some(128);
    for item in object.try_iter()? {
        let item = item?;
        // Only fingerprints of 128 bits are bytes. Nulls before the first value have either width.
        if bits.is_none() && item.is_instance_of::<PyBytes>() && !valid.contains(&true) {
            is_wide = true;
            wide = vec![0; valid.len()];
        }
        let is_present = !is_missing(&item)?;
        match (is_present, is_wide) {
            (true, false) => narrow.push(read_fingerprint::<u64>(&item)?),
            (true, true) => wide.push(read_fingerprint::<u128>(&item)?),
            (false, false) => narrow.push(0),
            (false, true) => wide.push(0),
        }
        valid.push(is_present);
    }
    let values = if is_wide { AnyFingerprints::Bits128(wide) } else { AnyFingerprints::Bits64(narrow) };
    let valid = valid.contains(&false).then(|| NullBuffer::from(valid));
    Ok(FingerprintColumn { values, valid })
}

/// Reads a single fingerprint: an int that fits the width, or, for 128 bits, also bytes of length 16, the most significant first.
fn read_fingerprint<F: Fingerprint>(object: &Bound<'_, PyAny>) -> PyResult<F> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        let bytes = bytes.as_bytes();
        if F::BITS == 128 && bytes.len() == F::BYTES {
            return Ok(F::from_u128(u128_from_bytes(bytes)));
        }
        let expected = if F::BITS == 128 { "an int, or bytes of length 16" } else { "an int" };
        return Err(PyValueError::new_err(format!(
            "found bytes of length {}: expected a fingerprint of {} bits, {expected}",
            bytes.len(),
            F::BITS
        )));
    }
    if object.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err("a fingerprint is an int, not bool"));
    }
    if let Ok(narrow) = object.extract::<u64>() {
        return Ok(F::from_u128(narrow.into()));
    }
    // Integers of numpy have `__index__`.
    let number = object.call_method0("__index__").map_err(|_| {
        PyTypeError::new_err(format!(
            "a fingerprint is an int, not {}",
            object.get_type().name().map_or_else(|_| "something else".to_owned(), |name| name.to_string())
        ))
    })?;
    let value = number.extract::<u128>().ok().filter(|&value| F::from_u128(value).to_u128() == value);
    value.map(F::from_u128).ok_or_else(|| {
        PyValueError::new_err(format!(
            "{number} is no fingerprint of {} bits: expected 0 to 2**{0} - 1",
            F::BITS
        ))
    })
}

/// Reads a single fingerprint of a width.
pub(crate) fn read_one(object: &Bound<'_, PyAny>, width: Width) -> PyResult<u128> {
    each_width!(width, type F => read_fingerprint::<F>(object).map(Fingerprint::to_u128))
}

/// Converts a number of bits to a [`Width`]. An unsupported number is an error.
pub(crate) fn width_of(py: Python<'_>, bits: u32) -> PyResult<Width> {
    Width::from_bits(bits).map_err(|error| exception(py, error))
}

/// Converts a fingerprint to a Python object: an int, or bytes of length 16 if `bits` is 128.
pub(crate) fn to_python(py: Python<'_>, fingerprint: u128, bits: u32) -> PyResult<Bound<'_, PyAny>> {
    if bits == 128 {
        return Ok(PyBytes::new(py, &fingerprint.to_be_bytes()).into_any());
    }
    Ok((fingerprint as u64).into_pyobject(py)?.into_any())
}

/// Reads a 128-bit fingerprint from 16 bytes, big-endian. The bytes are in the order of the hexadecimal digits, and sort like the value.
pub(crate) fn u128_from_bytes(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |value, &byte| value << 8 | u128::from(byte))
}

/// Makes an Arrow array of fingerprints: uint64, or fixed_size_binary[16] for 128 bits.
pub(crate) fn array_of<F: Fingerprint>(
    fingerprints: impl ExactSizeIterator<Item = Option<F>>,
) -> PyArrowArray {
    if F::BITS == 64 {
        let numbers = fingerprints.map(|fingerprint| fingerprint.map(Fingerprint::low_u64));
        return PyArrowArray::new(Arc::new(numbers.collect::<UInt64Array>()));
    }
    let mut bytes = FixedSizeBinaryBuilder::with_capacity(fingerprints.len(), 16);
    for fingerprint in fingerprints {
        match fingerprint {
            // Appending fails only for values of another length than 16 bytes.
            Some(fingerprint) => drop(bytes.append_value(fingerprint.to_u128().to_be_bytes())),
            None => bytes.append_null(),
        }
    }
    PyArrowArray::new(Arc::new(bytes.finish()))
}
