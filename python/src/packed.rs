//! Fingerprints side by side in bytes: how tasks of a cluster hand them on, so that what carries them has a value for thousands.

use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array as _, ArrayRef, BinaryArray, UInt32Array};
use arrow_schema::DataType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use simstore::Fingerprint;

use crate::array::Array;
use crate::border::arrow_array;
use crate::table::Table;

/// What was packed: little-endian, one after the other. Nulls are nothing.
pub(crate) fn unpacked<F: Fingerprint>(object: &Bound<'_, PyAny>) -> PyResult<Vec<F>> {
    let Some(array) = arrow_array(object)? else {
        return Err(PyTypeError::new_err("expected an Arrow array of packed fingerprints"));
    };
    let array = array.into_chunked_array().map_err(PyErr::from)?;
    let mut values = Vec::new();
    for chunk in array.chunks() {
        if !matches!(chunk.data_type(), DataType::Binary | DataType::LargeBinary | DataType::BinaryView) {
            let found = chunk.data_type();
            return Err(PyTypeError::new_err(format!("expected packed fingerprints, found {found}")));
        }
        let chunk = arrow_cast::cast(chunk, &DataType::BinaryView)
            .map_err(|error| PyTypeError::new_err(error.to_string()))?;
        for bytes in chunk.as_binary_view().iter().flatten() {
            if bytes.len() % F::BYTES != 0 {
                return Err(PyValueError::new_err(format!(
                    "{} bytes are not packed fingerprints of {} bits",
                    bytes.len(),
                    F::BITS
                )));
            }
            values.extend(bytes.chunks_exact(F::BYTES).map(F::read_le));
        }
    }
    Ok(values)
}

pub(crate) fn packed<F: Fingerprint>(fingerprints: &[F]) -> Vec<u8> {
    let mut bytes = vec![0; fingerprints.len() * F::BYTES];
    bytes.chunks_exact_mut(F::BYTES).zip(fingerprints).for_each(|(bytes, one)| one.write_le(bytes));
    bytes
}

/// Values that are packed together, of many.
const TOGETHER: usize = 1 << 16;

/// An Arrow array of what is packed, in values of half a MiB or so.
pub(crate) fn array_of_packed<F: Fingerprint>(fingerprints: &[F]) -> Array {
    Array::new(Arc::new(BinaryArray::from_iter_values(fingerprints.chunks(TOGETHER).map(packed))))
}

/// Rows of what is sent: to which place, fingerprints, and those of them that were there several times.
#[derive(Default)]
pub(crate) struct Sent {
    places: Vec<u32>,
    fingerprints: BinaryBuilder,
    repeated: BinaryBuilder,
}

impl Sent {
    pub(crate) fn push<F: Fingerprint>(&mut self, place: usize, fingerprints: &[F], repeated: &[F]) {
        self.places.push(place as u32);
        self.fingerprints.append_value(packed(fingerprints));
        if repeated.is_empty() {
            self.repeated.append_null();
        } else {
            self.repeated.append_value(packed(repeated));
        }
    }

    pub(crate) fn finish(mut self) -> PyResult<Table> {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("place", Arc::new(UInt32Array::from(self.places))),
            ("fingerprints", Arc::new(self.fingerprints.finish())),
            ("repeated", Arc::new(self.repeated.finish())),
        ];
        Table::of_columns(columns)
    }
}
