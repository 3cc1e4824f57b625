//! Pickling of arrays and tables as Arrow IPC streams, which include the schema.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

fn pickle_error(error: &ArrowError) -> PyErr {
    PyValueError::new_err(format!("no pickled table: {error}"))
}

/// Encodes a table as an Arrow IPC stream.
pub(crate) fn pickle<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
    batches: &[RecordBatch],
) -> PyResult<Bound<'py, PyBytes>> {
    let written = py.detach(|| {
        let mut writer = StreamWriter::try_new(Vec::new(), schema)?;
        batches.iter().try_for_each(|batch| writer.write(batch))?;
        writer.into_inner()
    });
    Ok(PyBytes::new(py, &written.map_err(|error| pickle_error(&error))?))
}

/// Encodes an array as a table with one column.
pub(crate) fn pickle_array<'py>(py: Python<'py>, values: &ArrayRef) -> PyResult<Bound<'py, PyBytes>> {
    let field = Field::new("", values.data_type().clone(), true);
    let schema = Arc::new(Schema::new(vec![field]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(values)]);
    pickle(py, &schema, &[batch.map_err(|error| pickle_error(&error))?])
}

/// Decodes a pickled table.
pub(crate) fn unpickle(py: Python<'_>, pickled: &[u8]) -> PyResult<(SchemaRef, Vec<RecordBatch>)> {
    py.detach(|| {
        let reader = StreamReader::try_new(pickled, None)?;
        let schema = reader.schema();
        Ok((schema, reader.collect::<Result<_, ArrowError>>()?))
    })
    .map_err(|error: ArrowError| pickle_error(&error))
}
