//! Readers of integer arguments. The error for a value out of range names the argument.

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use simstore_io::numbers::parse_bytes;

/// Reads a number that fits into `T`, an unsigned type with `bits` bits.
fn read_number<T: TryFrom<u64>>(argument: &str, bits: u32, object: &Bound<'_, PyAny>) -> PyResult<T> {
    let number = match object.extract::<u64>() {
        Ok(number) => T::try_from(number).ok(),
        Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => None,
        Err(error) => return Err(error),
    };
    number.ok_or_else(|| {
        PyValueError::new_err(format!("{argument} is {}: expected 0 to 2**{bits} - 1", shown(object)))
    })
}

fn shown(object: &Bound<'_, PyAny>) -> String {
    object.repr().map_or_else(|_| "no number".to_owned(), |shown| format!("{:.60}", shown.to_string()))
}

/// Reads a number of bytes: an int, or a text like "8G".
pub(crate) fn read_bytes(argument: &str, object: &Bound<'_, PyAny>) -> PyResult<u64> {
    let bytes = match object.cast::<PyString>() {
        Ok(text) => parse_bytes(&text.to_cow()?),
        Err(_) => Some(read_number(argument, u64::BITS, object)?).filter(|&bytes| bytes > 0),
    };
    bytes.ok_or_else(|| {
        let shown = shown(object);
        PyValueError::new_err(format!(
            "{argument} is {shown}: expected a number of bytes, or a text like '8G'"
        ))
    })
}

/// Defines functions that read an optional argument. Each function has the name of its argument, and returns
/// `None` for Python's None.
macro_rules! optional {
    ($($name:ident: $kind:ty),*) => {$(
        pub(crate) fn $name(object: &Bound<'_, PyAny>) -> PyResult<Option<$kind>> {
            if object.is_none() {
                return Ok(None);
            }
            read_number(stringify!($name), <$kind>::BITS, object).map(Some)
        }
    )*};
}

/// Defines functions that read an argument that must not be None.
macro_rules! required {
    ($($function:ident, $name:literal: $kind:ty;)*) => {$(
        pub(crate) fn $function(object: &Bound<'_, PyAny>) -> PyResult<$kind> {
            read_number($name, <$kind>::BITS, object)
        }
    )*};
}

optional! { bits: u32, block_size: u32, distance: u32, limit: usize }

required! {
    required_bits, "bits": u32;
    required_buckets, "buckets": u32;
    required_count, "count": usize;
    required_distance, "distance": u32;
    required_documents, "documents": u64;
    required_parts, "parts": usize;
    required_size, "size": usize;
}

pub(crate) fn memory(object: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    if object.is_none() { Ok(None) } else { required_memory(object).map(Some) }
}

pub(crate) fn required_memory(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    read_bytes("memory", object)
}
