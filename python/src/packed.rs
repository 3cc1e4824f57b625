//! Fingerprints side by side in bytes: how tasks of a cluster hand them on, so that what carries them has a value for thousands.

use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array as _, ArrayRef, BinaryArray, UInt32Array};
use arrow_schema::DataType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use simstore::join::{FingerprintBatch, pack, unpack};
use simstore::{Error, Fingerprint, Result};

use crate::array::PyArrowArray;
use crate::border::arrow_array;
use crate::errors::exception;
use crate::table::PyTable;

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
            values.extend(unpack::<F>(bytes).map_err(|error| exception(object.py(), error))?);
        }
    }
    Ok(values)
}

/// Values that are packed together, of many.
const FINGERPRINTS_PER_VALUE: usize = 1 << 16;

/// An Arrow array of packed edges, in values of half a MiB or so.
pub(crate) fn array_of_edges<F: Fingerprint>(edges: &[(F, F)]) -> PyArrowArray {
    let packed = |edges: &[(F, F)]| {
        let ends: Vec<F> = edges.iter().flat_map(|&(a, b)| [a, b]).collect();
        pack(&ends)
    };
    PyArrowArray::new(Arc::new(BinaryArray::from_iter_values(edges.chunks(FINGERPRINTS_PER_VALUE / 2).map(packed))))
}

/// Bytes that an Arrow array of binary can hold.
const BINARY_COLUMN_MAX_BYTES: usize = i32::MAX as usize;

/// Rows of what is sent: to which place, fingerprints, and those of them that were there several times.
#[derive(Default)]
pub(crate) struct PackedRows {
    places: Vec<u32>,
    fingerprints: BinaryBuilder,
    repeated: BinaryBuilder,
}

impl PackedRows {
    pub(crate) fn push<F: Fingerprint>(&mut self, sent: &FingerprintBatch<F>) -> Result<()> {
        if self.fingerprints.values_slice().len() + sent.fingerprints.len() * F::BYTES > BINARY_COLUMN_MAX_BYTES {
            return Err(Error::BadArgument(
                "there are more fingerprints in a bucket than 2 GiB hold: take more buckets".to_owned(),
            ));
        }
        self.places.push(sent.place as u32);
        self.fingerprints.append_value(pack(&sent.fingerprints));
        self.repeated
            .append_option(Some(&sent.repeated).filter(|some| !some.is_empty()).map(|some| pack(some)));
        Ok(())
    }

    pub(crate) fn finish(mut self) -> PyResult<PyTable> {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("place", Arc::new(UInt32Array::from(self.places))),
            ("fingerprints", Arc::new(self.fingerprints.finish())),
            ("repeated", Arc::new(self.repeated.finish())),
        ];
        PyTable::of_columns(columns)
    }
}
