//! Arrays and tables as they are pickled: a stream of Arrow's IPC format, with its schema.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

fn refused(error: &ArrowError) -> PyErr {
    PyValueError::new_err(format!("no pickled table: {error}"))
}

/// The bytes of a table.
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
    Ok(PyBytes::new(py, &written.map_err(|error| refused(&error))?))
}

/// The bytes of an array: those of a table of this one column.
pub(crate) fn pickle_array<'py>(py: Python<'py>, values: &ArrayRef) -> PyResult<Bound<'py, PyBytes>> {
    let field = Field::new("", values.data_type().clone(), true);
    let schema = Arc::new(Schema::new(vec![field]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(values)]);
    pickle(py, &schema, &[batch.map_err(|error| refused(&error))?])
}

/// The table that bytes were made of.
pub(crate) fn unpickled(py: Python<'_>, pickled: &[u8]) -> PyResult<(SchemaRef, Vec<RecordBatch>)> {
    py.detach(|| {
        let reader = StreamReader::try_new(pickled, None)?;
        let schema = reader.schema();
        Ok((schema, reader.collect::<Result<_, ArrowError>>()?))
    })
    .map_err(|error: ArrowError| refused(&error))
}
