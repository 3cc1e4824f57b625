//! Arrays and tables as they go to Python: by the Arrow PyCapsule interface, so that every library that knows it takes them as
//! they are, and by numpy.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{Array as _, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use numpy::PyArray1;
use pyo3::exceptions::{PyIndexError, PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PySlice, PyTuple};
use pyo3_arrow::ffi::{ArrayIterator, to_array_pycapsules, to_schema_pycapsule, to_stream_pycapsule};

use crate::panics::caught_here;

/// A column of values, some of which may be null: an Arrow array.
///
/// Libraries that know the Arrow PyCapsule interface take it as it is: ``pyarrow.array(a)``, ``polars.Series(a)``,
/// ``pandas.Series(a.to_numpy())``; ``numpy.asarray(a)`` works where nothing is null.
#[pyclass(frozen, sequence, module = "simstore")]
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) values: ArrayRef,
}

impl Array {
    pub(crate) fn new(values: ArrayRef) -> Self {
        Array { values }
    }

    fn field(&self) -> FieldRef {
        Arc::new(Field::new("", self.values.data_type().clone(), self.values.null_count() > 0))
    }

    fn value<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyAny>> {
        value(py, &self.values, at)
    }
}

#[pymethods]
impl Array {
    fn __len__(&self) -> usize {
        self.values.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, at: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let len = self.values.len();
        if let Ok(slice) = at.cast::<PySlice>() {
            let indices = slice.indices(len as isize)?;
            if indices.step != 1 {
                return Err(PyValueError::new_err("slices have a step of 1; use to_numpy()"));
            }
            let values = self.values.slice(indices.start as usize, indices.slicelength);
            return Ok(Bound::new(py, Array::new(values))?.into_any());
        }
        let at = at.extract::<isize>()?;
        let at = if at < 0 { at + len as isize } else { at };
        match usize::try_from(at) {
            Ok(at) if at < len => self.value(py, at),
            _ => Err(PyIndexError::new_err(format!("there are {len} values"))),
        }
    }

    /// How many values are null.
    #[getter]
    fn null_count(&self) -> usize {
        self.values.null_count()
    }

    /// The Arrow type of the values: "uint64", "fixed_size_binary[16]", ...
    #[getter]
    fn r#type(&self) -> String {
        type_name(self.values.data_type())
    }

    /// Which values are not null: a numpy array of bool, of shape (n,).
    fn is_valid<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<bool>> {
        PyArray1::from_iter(py, (0..self.values.len()).map(|at| self.values.is_valid(at)))
    }

    /// The values as a list of Python's: int, float, str, bytes, None.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let values = (0..self.values.len()).map(|at| self.value(py, at)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, values)
    }

    /// The values as a numpy array, copied.
    ///
    /// Parameters
    /// ----------
    /// fill : number, optional
    ///     What stands where a value is null. Without it, nulls are a ValueError.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray
    ///     Of shape (n,); for 128-bit fingerprints uint8 of shape (n, 16), the most significant byte first; for sketches
    ///     uint64 of shape (n, count); for texts of dtype object.
    #[pyo3(signature = (fill=None))]
    fn to_numpy<'py>(
        &self,
        py: Python<'py>,
        fill: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        to_numpy(py, &self.values, fill)
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(PyValueError::new_err("an array of Arrow becomes one of numpy by a copy"));
        }
        let array = to_numpy(py, &self.values, None)?;
        match dtype.filter(|dtype| !dtype.is_none()) {
            Some(dtype) => array.call_method1("astype", (dtype,)),
            None => Ok(array),
        }
    }

    /// As a pyarrow array; needs pyarrow.
    fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("array", (slf,))
    }

    /// As a Polars series; needs Polars.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("Series", (slf,))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.field().as_ref())?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        Ok(to_array_pycapsules(py, self.field(), &self.values, requested_schema)?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        const SHOWN: usize = 10;
        let len = self.values.len();
        let shown = (0..len.min(SHOWN))
            .map(|at| Ok(self.value(py, at)?.repr()?.to_string()))
            .collect::<PyResult<Vec<_>>>()?;
        let more = if len > SHOWN { ", ..." } else { "" };
        Ok(format!("Array({}: [{}{more}], {len} values)", self.r#type(), shown.join(", ")))
    }
}

/// A table with named columns: a list of Arrow record batches.
///
/// Libraries that know the Arrow PyCapsule interface take it as it is: ``pyarrow.table(t)``, ``polars.DataFrame(t)``,
/// ``duckdb.sql("from t")``, ``pandas.DataFrame.from_arrow(t)``.
#[pyclass(frozen, module = "simstore")]
#[derive(Clone, Debug)]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// A table of columns of one length.
    pub(crate) fn of_columns(columns: Vec<(&str, ArrayRef)>) -> PyResult<Table> {
        let field = |(name, column): &(&str, ArrayRef)| Field::new(*name, column.data_type().clone(), true);
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Table { schema, batches: vec![batch] })
    }

    pub(crate) fn of_batch(batch: RecordBatch) -> Table {
        Table { schema: batch.schema(), batches: vec![batch] }
    }

    pub(crate) fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn column(&self, at: usize) -> PyResult<Array> {
        let chunks: Vec<&dyn arrow_array::Array> =
            self.batches.iter().map(|batch| batch.column(at).as_ref()).collect();
        match &chunks[..] {
            [] => Ok(Array::new(arrow_array::new_empty_array(self.schema.field(at).data_type()))),
            chunks => arrow_select::concat::concat(chunks)
                .map(Array::new)
                .map_err(|error| PyValueError::new_err(error.to_string())),
        }
    }
}

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.rows()
    }

    /// How many rows there are.
    #[getter]
    fn num_rows(&self) -> usize {
        self.rows()
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// A column by its name.
    fn __getitem__(&self, name: &str) -> PyResult<Array> {
        match self.schema.index_of(name) {
            Ok(at) => self.column(at),
            Err(_) => Err(PyKeyError::new_err(format!(
                "{name}: the columns are {}",
                self.column_names().join(", ")
            ))),
        }
    }

    /// The rows as a list of dicts.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = PyList::empty(py);
        for batch in &self.batches {
            for row in 0..batch.num_rows() {
                let dict = PyDict::new(py);
                for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
                    dict.set_item(field.name(), value(py, column, row)?)?;
                }
                rows.append(dict)?;
            }
        }
        Ok(rows)
    }

    /// As a pandas frame; needs pandas.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let this = slf.get();
        let columns = PyDict::new(py);
        for (at, field) in this.schema.fields().iter().enumerate() {
            let column = this.column(at)?;
            // pandas has no null but in columns of objects and of floats.
            let values = match (column.values.null_count(), field.data_type()) {
                (0, _) => to_numpy(py, &column.values, None)?,
                (_, DataType::Float32 | DataType::Float64) => {
                    to_numpy(py, &column.values, Some(&f64::NAN.into_pyobject(py)?.into_any()))?
                }
                _ => {
                    let values = column.to_pylist(py)?;
                    let kwargs = PyDict::new(py);
                    kwargs.set_item("dtype", pandas_type(field.data_type()))?;
                    py.import("pandas")?.call_method("array", (values,), Some(&kwargs))?
                }
            };
            let values = if values.getattr("ndim")?.extract::<usize>()? > 1 {
                values.call_method0("tolist")?
            } else {
                values
            };
            columns.set_item(field.name(), values)?;
        }
        py.import("pandas")?.call_method1("DataFrame", (columns,))
    }

    /// As a Polars frame; needs Polars.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// As a pyarrow table; needs pyarrow.
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
        stream(py, Box::new(reader), requested_schema)
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

/// Record batches as a stream for whoever takes it.
pub(crate) fn stream<'py>(
    py: Python<'py>,
    reader: Box<dyn RecordBatchReader + Send>,
    requested_schema: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let fields = reader.schema().fields().clone();
    let field = Arc::new(Field::new_struct("", fields, false));
    let arrays = reader.map(|batch| Ok(Arc::new(arrow_array::StructArray::from(batch?)) as ArrayRef));
    Ok(to_stream_pycapsule(py, Box::new(ArrayIterator::new(arrays, field)), requested_schema)?)
}

/// A value as Python has it.
fn value<'py>(py: Python<'py>, values: &ArrayRef, at: usize) -> PyResult<Bound<'py, PyAny>> {
    caught_here(py, || value_of(py, values, at))
}

fn value_of<'py>(py: Python<'py>, values: &ArrayRef, at: usize) -> PyResult<Bound<'py, PyAny>> {
    if values.is_null(at) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match values.data_type() {
        DataType::UInt64 => values.as_primitive::<UInt64Type>().value(at).into_pyobject(py)?.into_any(),
        DataType::UInt32 => values.as_primitive::<UInt32Type>().value(at).into_pyobject(py)?.into_any(),
        DataType::UInt8 => values.as_primitive::<UInt8Type>().value(at).into_pyobject(py)?.into_any(),
        DataType::Float32 => values.as_primitive::<Float32Type>().value(at).into_pyobject(py)?.into_any(),
        DataType::Float64 => values.as_primitive::<Float64Type>().value(at).into_pyobject(py)?.into_any(),
        DataType::Boolean => values.as_boolean().value(at).into_pyobject(py)?.to_owned().into_any(),
        DataType::Utf8 => values.as_string::<i32>().value(at).into_pyobject(py)?.into_any(),
        DataType::LargeUtf8 => values.as_string::<i64>().value(at).into_pyobject(py)?.into_any(),
        DataType::Binary => values.as_binary::<i32>().value(at).into_pyobject(py)?.into_any(),
        // A fingerprint of 128 bits.
        DataType::FixedSizeBinary(16) => {
            crate::fingerprints::wide(values.as_fixed_size_binary().value(at)).into_pyobject(py)?.into_any()
        }
        DataType::FixedSizeList(_, _) | DataType::List(_) => {
            let list = match values.as_list_opt::<i32>() {
                Some(lists) => lists.value(at),
                None => values.as_fixed_size_list().value(at),
            };
            let items = (0..list.len()).map(|at| value(py, &list, at)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        other => return Err(PyTypeError::new_err(format!("values of {other} are not known here"))),
    })
}

fn to_numpy<'py>(
    py: Python<'py>,
    values: &ArrayRef,
    fill: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    caught_here(py, || array_of(py, values, fill))
}

fn array_of<'py>(
    py: Python<'py>,
    values: &ArrayRef,
    fill: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    /// The values without their nulls' places being looked at.
    macro_rules! primitive {
        ($kind:ty) => {
            PyArray1::from_slice(py, values.as_primitive::<$kind>().values()).into_any()
        };
    }
    let is_text = matches!(values.data_type(), DataType::Utf8 | DataType::LargeUtf8);
    if values.null_count() > 0 && fill.is_none() && !is_text {
        return Err(PyValueError::new_err(format!(
            "{} of {} values are null: give `fill`, or look at is_valid()",
            values.null_count(),
            values.len()
        )));
    }
    let array = match values.data_type() {
        DataType::UInt64 => primitive!(UInt64Type),
        DataType::UInt32 => primitive!(UInt32Type),
        DataType::UInt8 => primitive!(UInt8Type),
        DataType::Float32 => primitive!(Float32Type),
        DataType::Float64 => primitive!(Float64Type),
        DataType::Boolean => {
            PyArray1::from_iter(py, (0..values.len()).map(|at| values.as_boolean().value(at))).into_any()
        }
        DataType::FixedSizeBinary(16) => {
            let binary = values.as_fixed_size_binary();
            let bytes = PyArray1::<u8>::from_iter(
                py,
                (0..values.len()).flat_map(|at| binary.value(at).iter().copied()),
            );
            bytes.call_method1("reshape", (values.len(), 16))?
        }
        DataType::FixedSizeList(_, count) => {
            let lists = values.as_fixed_size_list();
            let first = lists.value_offset(0) as usize;
            let items = lists.values().slice(first, values.len() * *count as usize);
            let items = PyArray1::from_slice(py, items.as_primitive::<UInt64Type>().values());
            items.call_method1("reshape", (values.len(), *count))?
        }
        _ => {
            let objects = PyArray1::<Py<PyAny>>::from_vec(
                py,
                (0..values.len())
                    .map(|at| Ok(value(py, values, at)?.unbind()))
                    .collect::<PyResult<Vec<_>>>()?,
            );
            objects.into_any()
        }
    };
    let Some(fill) = fill.filter(|_| values.null_count() > 0) else { return Ok(array) };
    let is_null = PyArray1::from_iter(py, (0..values.len()).map(|at| values.is_null(at)));
    array.set_item(&is_null, fill)?;
    Ok(array)
}

/// The type of pandas that has nulls.
fn pandas_type(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::UInt64 => "UInt64",
        DataType::UInt32 => "UInt32",
        DataType::UInt8 => "UInt8",
        DataType::Boolean => "boolean",
        _ => "object",
    }
}

/// A type as pyarrow writes it.
fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::FixedSizeBinary(bytes) => format!("fixed_size_binary[{bytes}]"),
        DataType::FixedSizeList(item, count) => {
            format!("fixed_size_list<{}>[{count}]", type_name(item.data_type()))
        }
        DataType::Utf8 => "string".to_owned(),
        DataType::LargeUtf8 => "large_string".to_owned(),
        DataType::Boolean => "bool".to_owned(),
        DataType::Float32 => "float".to_owned(),
        DataType::Float64 => "double".to_owned(),
        other => other.to_string().to_lowercase(),
    }
}
