//! Iteration over all stored pairs, in Arrow record batches.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use simstore::any::{AnySnapshot, AnyWidth};
use simstore::store::Iter;
use simstore::{Error, Fingerprint, Result, Snapshot, each_width};

use crate::call::{self, Call};
use crate::fingerprints::array_of;
use crate::id_columns::{id_column, name_column};
use crate::panics::catch_panic;
use crate::reentrancy::Exclusive;
use crate::table::PyTable;

/// Rows read between checks for interruption.
const ROWS_PER_CANCEL_CHECK: usize = 1 << 14;

/// Reads all pairs of a store in record batches, ascending by fingerprint, then id.
pub(crate) struct BatchReader {
    snapshot: AnySnapshot,
    entries: StoreEntries,
    /// Maximum number of rows in a batch.
    size: usize,
    schema: SchemaRef,
    /// Whether an earlier read was stopped or failed. The rows of that read are lost, so later reads fail too.
    is_interrupted: bool,
}

type StoreEntries = AnyWidth<Iter<u64>, Iter<u128>>;

impl BatchReader {
    pub(crate) fn new(snapshot: &AnySnapshot, size: usize) -> BatchReader {
        let entries = snapshot.as_ref().map(Snapshot::iter, Snapshot::iter);
        let fingerprint = match entries {
            StoreEntries::Bits64(_) => DataType::UInt64,
            StoreEntries::Bits128(_) => DataType::FixedSizeBinary(16),
        };
        let columns = [("fingerprint", fingerprint), ("id", DataType::UInt64), ("name", DataType::LargeUtf8)];
        let fields =
            columns.into_iter().map(|(name, data_type)| Field::new(name, data_type, name != "fingerprint"));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        BatchReader { snapshot: snapshot.clone(), entries, size, schema, is_interrupted: false }
    }

    pub(crate) fn schema_ref(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Returns the next batch, or `None` at the end. If `call` is stopped, returns an error.
    fn read(&mut self, call: Option<&Call>) -> Result<Option<RecordBatch>> {
        if std::mem::replace(&mut self.is_interrupted, true) {
            return Err(Error::Refused("reading was cut off before: begin again".to_owned()));
        }
        let (fingerprints, ids) =
            each_width!(&mut self.entries, entries => read_columns(entries, self.size, call))?;
        let names = name_column(&self.snapshot, &ids)?;
        self.is_interrupted = false;
        if ids.is_empty() {
            return Ok(None);
        }
        RecordBatch::try_new(self.schema_ref(), vec![fingerprints, id_column(ids), names])
            .map(Some)
            .map_err(|error| Error::Bug(error.to_string()))
    }
}

fn read_columns<F: Fingerprint>(
    entries: &mut Iter<F>,
    size: usize,
    call: Option<&Call>,
) -> Result<(ArrayRef, Vec<Option<u64>>)> {
    let (mut fingerprints, mut ids) = (Vec::new(), Vec::new());
    for entry in entries.take(size) {
        let entry = entry?;
        fingerprints.push(entry.fingerprint);
        ids.push(entry.id);
        if let Some(call) = call.filter(|_| ids.len() % ROWS_PER_CANCEL_CHECK == 0) {
            call.check()?;
        }
    }
    Ok((array_of(fingerprints.into_iter().map(Some)).values, ids))
}

impl Iterator for BatchReader {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        // A panic must not unwind through Arrow's C interface.
        catch_panic(|| self.read(None))
            .map_err(|error| ArrowError::ExternalError(Box::new(error)))
            .transpose()
    }
}

impl RecordBatchReader for BatchReader {
    fn schema(&self) -> SchemaRef {
        self.schema_ref()
    }
}

/// Iterates over the record batches of a store; made by `Snapshot.iter_batches`.
#[pyclass(frozen, module = "simstore", name = "Batches")]
pub(crate) struct PyBatches {
    reader: Exclusive<BatchReader>,
}

impl PyBatches {
    pub(crate) fn new(reader: BatchReader) -> PyBatches {
        PyBatches { reader: Exclusive::new(reader) }
    }
}

#[pymethods]
impl PyBatches {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyTable>> {
        let read = |reader: &mut BatchReader| call::interruptible(py, |call| reader.read(Some(call)));
        Ok(self.reader.with(py, "next", read)?.map(PyTable::from_batch))
    }
}
