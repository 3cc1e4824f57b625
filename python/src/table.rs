//! The class `Table`: tables returned to Python.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{Array as _, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList};
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};

use simstore_io::numbers::format_count_of;

use crate::array::PyArrowArray;
use crate::arrow_values::{pandas_dtype, to_numpy, to_object_array, to_python, type_name};
use crate::html;
use crate::pickle::{pickle, unpickle};

/// A table with named columns: a list of Arrow record batches.
///
/// Iteration yields each row as a dict. Libraries that support the Arrow PyCapsule interface accept a table directly: ``pyarrow.table(t)``,
/// ``polars.DataFrame(t)``, ``duckdb.sql("from t")``, ``pandas.DataFrame.from_arrow(t)``.
#[pyclass(frozen, from_py_object, module = "simstore", name = "Table")]
#[derive(Clone, Debug)]
pub(crate) struct PyTable {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl PyTable {
    /// Makes a table from columns of the same length.
    pub(crate) fn from_columns(columns: Vec<(&str, ArrayRef)>) -> PyResult<PyTable> {
        let field = |(name, column): &(&str, ArrayRef)| Field::new(*name, column.data_type().clone(), true);
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(PyTable { schema, batches: vec![batch] })
    }

    pub(crate) fn from_batch(batch: RecordBatch) -> PyTable {
        PyTable { schema: batch.schema(), batches: vec![batch] }
    }

    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> PyTable {
        PyTable { schema, batches }
    }

    pub(crate) fn pickle<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        pickle(py, &self.schema, &self.batches)
    }

    pub(crate) fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    pub(crate) fn column(&self, at: usize) -> PyResult<PyArrowArray> {
        let chunks: Vec<&dyn arrow_array::Array> =
            self.batches.iter().map(|batch| batch.column(at).as_ref()).collect();
        match &chunks[..] {
            [] => Ok(PyArrowArray::new(arrow_array::new_empty_array(self.schema.field(at).data_type()))),
            chunks => arrow_select::concat::concat(chunks)
                .map(PyArrowArray::new)
                .map_err(|error| PyValueError::new_err(error.to_string())),
        }
    }
}

#[pymethods]
impl PyTable {
    fn __len__(&self) -> usize {
        self.rows()
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyRows {
        PyRows { table: slf.clone().unbind(), at: Mutex::new((0, 0)) }
    }

    /// Number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.rows()
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Returns a column by its name.
    fn __getitem__(&self, name: &str) -> PyResult<PyArrowArray> {
        match self.schema.index_of(name) {
            Ok(at) => self.column(at),
            Err(_) => Err(PyKeyError::new_err(format!(
                "{name}: the columns are {}",
                self.column_names().join(", ")
            ))),
        }
    }

    /// Returns the rows as a list of dicts.
    pub(crate) fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = PyList::empty(py);
        for batch in &self.batches {
            for at in 0..batch.num_rows() {
                rows.append(row(py, batch, at)?)?;
            }
        }
        Ok(rows)
    }

    /// Returns the rows as a JSON array of objects in a str. Bytes become hexadecimal digits.
    fn to_json<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("simstore._json")?.call_method1("dumps", (slf.get().to_pylist(slf.py())?,))
    }

    /// Converts to a pandas frame; needs pandas.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let this = slf.get();
        let columns = PyDict::new(py);
        for (at, field) in this.schema.fields().iter().enumerate() {
            let column = this.column(at)?;
            // pandas has nulls only in columns of objects and of floats.
            let values = match (column.values.null_count(), field.data_type()) {
                (_, DataType::FixedSizeBinary(_)) => to_object_array(py, &column.values)?,
                (0, _) => to_numpy(py, &column.values, None)?,
                (_, DataType::Float64) => {
                    to_numpy(py, &column.values, Some(&f64::NAN.into_pyobject(py)?.into_any()))?
                }
                _ => {
                    let values = column.to_pylist(py)?;
                    let kwargs = PyDict::new(py);
                    kwargs.set_item("dtype", pandas_dtype(field.data_type()))?;
                    py.import("pandas")?.call_method("array", (values,), Some(&kwargs))?
                }
            };
            // pandas columns have one dimension, so rows of a wide array become lists.
            let values = if values.getattr("ndim")?.extract::<usize>()? > 1 {
                values.call_method0("tolist")?
            } else {
                values
            };
            columns.set_item(field.name(), values)?;
        }
        py.import("pandas")?.call_method1("DataFrame", (columns,))
    }

    /// Converts to a Polars frame; needs Polars.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// Converts to a pyarrow table; needs pyarrow.
    fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.schema.as_ref())?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        export_stream(py, Box::new(reader), requested_schema)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let make = py.import("simstore._simstore")?.getattr("_table")?;
        Ok((make, (self.pickle(py)?,)))
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let rows = self.batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |at| (batch, at)));
        let rows = rows.take(html::ROWS_SHOWN_MAX).map(|(batch, at)| {
            batch.columns().iter().map(|column| to_python(py, column, at)).collect::<PyResult<Vec<_>>>()
        });
        let rows = rows.collect::<PyResult<Vec<_>>>()?;
        let names: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        html::table_markup(&names, &rows, &format_count_of(self.rows() as u64, "row"))
    }

    fn __repr__(&self) -> String {
        let columns = self
            .schema
            .fields()
            .iter()
            .map(|field| format!("{}: {}", field.name(), type_name(field.data_type())));
        format!("Table({} rows; {})", self.rows(), columns.collect::<Vec<_>>().join(", "))
    }
}

/// Returns a row as a dict.
fn row<'py>(py: Python<'py>, batch: &RecordBatch, at: usize) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        dict.set_item(field.name(), to_python(py, column, at)?)?;
    }
    Ok(dict)
}

/// Iterates over the rows of a table.
#[pyclass(frozen, module = "simstore", name = "Rows")]
pub(crate) struct PyRows {
    table: Py<PyTable>,
    /// Position of the next row: its batch, and its row in the batch.
    at: Mutex<(usize, usize)>,
}

#[pymethods]
impl PyRows {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(batch) = self.table.get().batches.get(at.0) {
            if at.1 < batch.num_rows() {
                at.1 += 1;
                return row(py, batch, at.1 - 1).map(Some);
            }
            *at = (at.0 + 1, 0);
        }
        Ok(None)
    }
}

/// Exports record batches as an Arrow stream.
pub(crate) fn export_stream<'py>(
    py: Python<'py>,
    reader: Box<dyn RecordBatchReader + Send>,
    requested_schema: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let fields = reader.schema().fields().clone();
    let field = Arc::new(Field::new_struct("", fields, false));
    let arrays = reader.map(|batch| Ok(Arc::new(arrow_array::StructArray::from(batch?)) as ArrayRef));
    Ok(to_stream_pycapsule(py, Box::new(ArrayIterator::new(arrays, field)), requested_schema)?)
}

/// Restores a pickled table.
#[pyfunction]
pub(crate) fn _table(py: Python<'_>, pickled: &[u8]) -> PyResult<PyTable> {
    let (schema, batches) = unpickle(py, pickled)?;
    Ok(PyTable::new(schema, batches))
}

/// Restores a pickled array from a table of one column.
#[pyfunction]
pub(crate) fn _array(py: Python<'_>, pickled: &[u8]) -> PyResult<PyArrowArray> {
    _table(py, pickled)?.column(0)
}
