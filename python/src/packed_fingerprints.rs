//! Fingerprints packed into binary values. The tasks of a compute cluster exchange thousands of fingerprints in one value.

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
use crate::array_input::arrow_array;
use crate::errors::exception;
use crate::table::PyTable;

/// Unpacks an Arrow array of binary values, each a concatenation of little-endian fingerprints. Nulls are skipped.
pub(crate) fn unpack_all<F: Fingerprint>(object: &Bound<'_, PyAny>) -> PyResult<Vec<F>> {
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

/// Maximum number of fingerprints in one binary value of `edge_array`. Each edge has two fingerprints.
const FINGERPRINTS_PER_VALUE: usize = 1 << 16;

/// Packs edges, which are pairs of fingerprints, into binary values of about half a MiB each.
pub(crate) fn edge_array<F: Fingerprint>(edges: &[(F, F)]) -> PyArrowArray {
    let packed = |edges: &[(F, F)]| {
        let ends: Vec<F> = edges.iter().flat_map(|&(a, b)| [a, b]).collect();
        pack(&ends)
    };
    PyArrowArray::new(Arc::new(BinaryArray::from_iter_values(
        edges.chunks(FINGERPRINTS_PER_VALUE / 2).map(packed),
    )))
}

/// Maximum total size of the values of an Arrow binary array in bytes, because its offsets have 32 bits.
const BINARY_COLUMN_MAX_BYTES: usize = i32::MAX as usize;

/// Builder of the Arrow table that a task sends to other tasks, with one row for each receiving place. A place is
/// a hash bucket or a part of a table of the join; column `place` has its number. `fingerprints` has the
/// fingerprints sent to the place, packed into one value, and `repeated` has the fingerprints that occur several
/// times.
#[derive(Default)]
pub(crate) struct PlaceTableBuilder {
    places: Vec<u32>,
    fingerprints: BinaryBuilder,
    repeated: BinaryBuilder,
}

impl PlaceTableBuilder {
    pub(crate) fn push<F: Fingerprint>(&mut self, batch: &FingerprintBatch<F>) -> Result<()> {
        if self.fingerprints.values_slice().len() + batch.fingerprints.len() * F::BYTES
            > BINARY_COLUMN_MAX_BYTES
        {
            return Err(Error::BadArgument(
                "there are more fingerprints in a bucket than 2 GiB hold: take more buckets".to_owned(),
            ));
        }
        self.places.push(batch.place as u32);
        self.fingerprints.append_value(pack(&batch.fingerprints));
        self.repeated.append_option(
            Some(&batch.repeated).filter(|repeated| !repeated.is_empty()).map(|repeated| pack(repeated)),
        );
        Ok(())
    }

    pub(crate) fn finish(mut self) -> PyResult<PyTable> {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("place", Arc::new(UInt32Array::from(self.places))),
            ("fingerprints", Arc::new(self.fingerprints.finish())),
            ("repeated", Arc::new(self.repeated.finish())),
        ];
        PyTable::from_columns(columns)
    }
}
