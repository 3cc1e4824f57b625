//! Binary columns exchanged between the tasks of a compute cluster: digests, and sets of hashes.

use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array as _, ArrayRef, LargeBinaryArray};
use arrow_schema::DataType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::array_input::arrow_array;
use crate::panics::catch_panic_in_python;

/// A column of bytes, cast from any binary Arrow type.
pub(crate) struct BinaryColumn(LargeBinaryArray);

impl BinaryColumn {
    pub(crate) fn read(object: &Bound<'_, PyAny>) -> PyResult<BinaryColumn> {
        let column = cast_column(object, &DataType::LargeBinary)?;
        Ok(BinaryColumn(column.as_binary::<i64>().clone()))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<&[u8]> {
        self.0.is_valid(at).then(|| self.0.value(at))
    }

    /// Returns the digest in a row: 16 bytes, read as a big-endian number, so that digests sort like their bytes.
    pub(crate) fn digest(&self, at: usize) -> PyResult<u128> {
        let bytes = self.get(at).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u128::from_be_bytes).ok_or_else(|| unexpected_columns("digests of 16 bytes"))
    }

    /// Returns the set of hashes in a row, which are packed as 8 bytes each, little-endian. `None` for null.
    pub(crate) fn hashes(&self, at: usize) -> PyResult<Option<Vec<u64>>> {
        self.get(at).map(unpack_hashes).transpose()
    }
}

fn unpack_hashes(bytes: &[u8]) -> PyResult<Vec<u64>> {
    match bytes.as_chunks() {
        (words, []) => Ok(words.iter().map(|&word| u64::from_le_bytes(word)).collect()),
        _ => Err(unexpected_columns("sets of hashes of 8 bytes each")),
    }
}

/// Returns the error for columns that do not have the form in which the tasks of a distributed search write them.
/// `expected` describes that form.
pub(crate) fn unexpected_columns(expected: &str) -> PyErr {
    PyValueError::new_err(format!("expected {expected}: the columns are not those that a task has made"))
}

/// Casts a column to an Arrow type, and concatenates its chunks.
pub(crate) fn cast_column(object: &Bound<'_, PyAny>, data_type: &DataType) -> PyResult<ArrayRef> {
    catch_panic_in_python(object.py(), || cast(object, data_type))
}

fn cast(object: &Bound<'_, PyAny>, data_type: &DataType) -> PyResult<ArrayRef> {
    let array = arrow_array(object)?.ok_or_else(|| PyTypeError::new_err("expected an Arrow array"))?;
    let chunks = array.into_chunked_array().map_err(PyErr::from)?;
    let refused = |error: arrow_schema::ArrowError| PyTypeError::new_err(error.to_string());
    let chunks: Vec<ArrayRef> = chunks
        .chunks()
        .iter()
        .map(|chunk| arrow_cast::cast(chunk, data_type).map_err(refused))
        .collect::<PyResult<_>>()?;
    match &chunks[..] {
        [] => Ok(arrow_array::new_empty_array(data_type)),
        [chunk] => Ok(Arc::clone(chunk)),
        chunks => {
            let chunks: Vec<&dyn arrow_array::Array> = chunks.iter().map(AsRef::as_ref).collect();
            arrow_select::concat::concat(&chunks).map_err(refused)
        }
    }
}

/// Makes a binary column of digests, 16 bytes each, big-endian.
pub(crate) fn digest_column(digests: impl ExactSizeIterator<Item = Option<u128>>) -> ArrayRef {
    let mut builder = BinaryBuilder::with_capacity(digests.len(), 16 * digests.len());
    for digest in digests {
        builder.append_option(digest.map(u128::to_be_bytes));
    }
    Arc::new(builder.finish())
}

/// Packs hashes: 8 bytes each, little-endian.
pub(crate) fn pack_hashes(members: &[u64]) -> Vec<u8> {
    members.iter().flat_map(|member| member.to_le_bytes()).collect()
}
