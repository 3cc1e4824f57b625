//! Arrays of fingerprints and numeric ids, as input of a store.

use std::fmt::Display;
use std::ops::Range;

use arrow_array::Array as _;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_buffer::NullBuffer;
use arrow_cast::CastOptions;
use arrow_schema::DataType;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;
use simstore::any::AnyFingerprints;

use crate::array_input::{NumpyArray, arrow_array, holds_objects};
use crate::fingerprints::FingerprintColumn;
use crate::panics::catch_panic_in_python;

/// Pairs of fingerprint and id.
pub(crate) struct IdPairs {
    fingerprints: AnyFingerprints,
    ids: Vec<u64>,
}

impl IdPairs {
    /// Reads two arrays of the same length.
    pub(crate) fn read(
        fingerprints: &Bound<'_, PyAny>,
        ids: &Bound<'_, PyAny>,
        bits: u32,
    ) -> PyResult<IdPairs> {
        let fingerprints = FingerprintColumn::read_all(fingerprints, Some(bits))?;
        let ids = read_ids(ids)?;
        let (count, len) = (fingerprints.len(), ids.len());
        if count != len {
            return Err(PyValueError::new_err(format!("there are {count} fingerprints, and {len} ids")));
        }
        Ok(IdPairs { fingerprints, ids })
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns the pairs in a range of positions.
    pub(crate) fn pairs(&self, range: Range<usize>) -> impl Iterator<Item = (u128, u64)> {
        range.filter_map(|at| Some((self.fingerprints.get(at)?, *self.ids.get(at)?)))
    }
}

/// Reads ids: an array or an iterable of ints from 0 to 2**64 - 1, without nulls.
pub(crate) fn read_ids(object: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    catch_panic_in_python(object.py(), || read_any_ids(object))
}

fn read_any_ids(object: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    if let Some(numbers) = NumpyArray::read(object)? {
        return ids_from_numpy(&numbers);
    }
    if !holds_objects(object)
        && let Some(array) = arrow_array(object)?
    {
        let chunks = array.into_chunked_array().map_err(PyErr::from)?;
        if !chunks.data_type().is_integer() {
            return Err(PyTypeError::new_err(format!("expected ids of ints, found {}", chunks.data_type())));
        }
        let mut ids = Vec::new();
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let missing = chunks.chunks().iter().map(|chunk| chunk.null_count()).sum();
        check_none_missing(missing)?;
        for chunk in chunks.chunks() {
            let chunk = arrow_cast::cast_with_options(chunk, &DataType::UInt64, &strict)
                .map_err(|error| PyValueError::new_err(format!("ids are 0 to 2**64 - 1: {error}")))?;
            ids.extend_from_slice(chunk.as_primitive::<UInt64Type>().values());
        }
        return Ok(ids);
    }
    object.try_iter()?.map(|id| read_id(&id?)).collect()
}

fn ids_from_numpy(numbers: &NumpyArray<'_>) -> PyResult<Vec<u64>> {
    let shape = numbers.shape();
    let [_] = shape else {
        return Err(PyTypeError::new_err(format!("expected ids of shape (n,), found {shape:?}")));
    };
    check_none_missing(numbers.valid.as_ref().map_or(0, NullBuffer::null_count))?;
    if let Some(ids) = numbers.values::<u64>(1)? {
        return Ok(ids);
    }
    if let Some(ids) = numbers.values::<i64>(1)? {
        return ids.into_iter().map(|id| u64::try_from(id).map_err(|_| id_error(id))).collect();
    }
    match numbers.kind() {
        b'i' | b'u' | b'O' => numbers.objects()?.try_iter()?.map(|id| read_id(&id?)).collect(),
        _ => Err(PyTypeError::new_err(format!(
            "expected an array of ints as ids, found {}",
            numbers.type_name()
        ))),
    }
}

fn check_none_missing(missing: usize) -> PyResult<()> {
    match missing {
        0 => Ok(()),
        missing => Err(PyValueError::new_err(format!("{missing} ids are null: leave them out"))),
    }
}

/// Reads a single id.
pub(crate) fn read_id(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    if object.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err("an id is an int, not bool"));
    }
    object.extract::<u64>().map_err(|error| {
        if error.is_instance_of::<PyOverflowError>(object.py()) { id_error(object) } else { error }
    })
}

fn id_error(id: impl Display) -> PyErr {
    PyValueError::new_err(format!("{id} is no id: expected 0 to 2**64 - 1"))
}
