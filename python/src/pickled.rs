//! Arrays and tables as they are pickled: a stream of Arrow's IPC format, with its schema.

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::array::Array;
use crate::table::Table;

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

/// What a pickled table is made from.
#[pyfunction]
pub(crate) fn _table(py: Python<'_>, pickled: &[u8]) -> PyResult<Table> {
    py.detach(|| {
        let reader = StreamReader::try_new(pickled, None)?;
        let schema = reader.schema();
        Ok(Table::new(schema, reader.collect::<Result<_, ArrowError>>()?))
    })
    .map_err(|error: ArrowError| refused(&error))
}

/// What a pickled array is made from: a table of one column.
#[pyfunction]
pub(crate) fn _array(py: Python<'_>, pickled: &[u8]) -> PyResult<Array> {
    _table(py, pickled)?.column(0)
}
