//! Arrays returned to Python. Other libraries read them by the Arrow PyCapsule interface (without a copy), as numpy arrays, or as
//! sequences.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::{Array as _, ArrayRef, UInt64Array};
use arrow_schema::{DataType, Field, FieldRef};
use numpy::PyArray1;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList, PySlice, PyTuple};
use pyo3_arrow::ffi::{to_array_pycapsules, to_schema_pycapsule};

use simstore_io::numbers::format_count_of;

use crate::arrow_values::{to_numpy, to_object_array, to_python, type_name};
use crate::html;
use crate::pickle::pickle_array;

/// An Arrow array: a column of values that may include nulls.
///
/// An array is a sequence: ``frame["fingerprint"] = a`` in pandas, ``list(a)``, ``a[3]``, ``a[::2]``. Libraries that support the Arrow
/// PyCapsule interface accept an array directly: ``pyarrow.array(a)``, ``polars.Series(a)``. A fingerprint of 128 bits is bytes of length
/// 16, the most significant first.
#[pyclass(frozen, sequence, module = "simstore", name = "Array")]
#[derive(Clone, Debug)]
pub(crate) struct PyArrowArray {
    pub(crate) values: ArrayRef,
}

impl PyArrowArray {
    pub(crate) fn new(values: ArrayRef) -> Self {
        PyArrowArray { values }
    }

    fn field(&self) -> FieldRef {
        Arc::new(Field::new("", self.values.data_type().clone(), self.values.null_count() > 0))
    }

    fn value<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.values, at)
    }
}

#[pymethods]
impl PyArrowArray {
    fn __len__(&self) -> usize {
        self.values.len()
    }

    fn __iter__(&self) -> PyArrayValues {
        PyArrayValues { values: Arc::clone(&self.values), at: AtomicUsize::new(0) }
    }

    fn __getitem__<'py>(&self, py: Python<'py>, at: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let len = self.values.len();
        if let Ok(slice) = at.cast::<PySlice>() {
            let indices = slice.indices(len as isize)?;
            if indices.step != 1 {
                let at = (0..indices.slicelength as isize).map(|at| indices.start + at * indices.step);
                let at = UInt64Array::from_iter_values(at.map(|at| at as u64));
                let selected = arrow_select::take::take(&self.values, &at, None);
                let selected = selected.map_err(|error| PyValueError::new_err(error.to_string()))?;
                return Ok(Bound::new(py, PyArrowArray::new(selected))?.into_any());
            }
            let values = self.values.slice(indices.start as usize, indices.slicelength);
            return Ok(Bound::new(py, PyArrowArray::new(values))?.into_any());
        }
        let at = at.extract::<isize>()?;
        let at = if at < 0 { at + len as isize } else { at };
        match usize::try_from(at) {
            Ok(at) if at < len => self.value(py, at),
            _ => Err(PyIndexError::new_err(format!("there are {len} values"))),
        }
    }

    /// Number of null values.
    #[getter]
    fn null_count(&self) -> usize {
        self.values.null_count()
    }

    /// The Arrow type of the values: "uint64", "fixed_size_binary[16]", ...
    #[getter]
    fn r#type(&self) -> String {
        type_name(self.values.data_type())
    }

    /// Returns which values are not null: a numpy array of bool with shape (n,).
    fn is_valid<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<bool>> {
        PyArray1::from_iter(py, (0..self.values.len()).map(|at| self.values.is_valid(at)))
    }

    /// Returns the values as a list of Python objects: int, float, str, bytes, list, None.
    pub(crate) fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let values = (0..self.values.len()).map(|at| self.value(py, at)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, values)
    }

    /// Copies the values to a numpy array. ``numpy.asarray(a)`` differs in two cases: if a value is null, and for
    /// fingerprints of 128 bits. In these cases ``numpy.asarray`` returns an array of objects, with None for nulls and
    /// bytes for fingerprints.
    ///
    /// Parameters
    /// ----------
    /// fill : number, optional
    ///     The value for nulls. Without it, a null raises ValueError.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray
    ///     With shape (n,). Fingerprints of 128 bits: uint8 with shape (n, 16), the most significant byte first.
    ///     Bands of `bands`: uint64 with shape (n, count). Texts: dtype object.
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
        // `__array__` returns one dimension with one value per row, so wide values become objects.
        let is_wide =
            matches!(self.values.data_type(), DataType::FixedSizeBinary(_) | DataType::FixedSizeList(..));
        let array = if is_wide || self.values.null_count() > 0 {
            to_object_array(py, &self.values)?
        } else {
            to_numpy(py, &self.values, None)?
        };
        match dtype.filter(|dtype| !dtype.is_none()) {
            Some(dtype) => array.call_method1("astype", (dtype,)),
            None => Ok(array),
        }
    }

    /// Converts to a pyarrow array; needs pyarrow.
    fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("array", (slf,))
    }

    /// Converts to a Polars series; needs Polars.
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

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let make = py.import("simstore._simstore")?.getattr("_array")?;
        Ok((make, (pickle_array(py, &self.values)?,)))
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let rows = (0..self.values.len().min(html::ROWS_SHOWN_MAX)).map(|at| Ok(vec![self.value(py, at)?]));
        let (rows, kind) = (rows.collect::<PyResult<Vec<_>>>()?, self.r#type());
        html::table_markup(&[&kind], &rows, &format_count_of(self.values.len() as u64, "value"))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        const VALUES_SHOWN_MAX: usize = html::ROWS_SHOWN_MAX;
        let len = self.values.len();
        let shown = (0..len.min(VALUES_SHOWN_MAX))
            .map(|at| Ok(self.value(py, at)?.repr()?.to_string()))
            .collect::<PyResult<Vec<_>>>()?;
        let more = if len > VALUES_SHOWN_MAX { ", ..." } else { "" };
        Ok(format!("Array({}: [{}{more}], {len} values)", self.r#type(), shown.join(", ")))
    }
}

/// Iterates over the values of an array.
#[pyclass(frozen, module = "simstore", name = "Values")]
pub(crate) struct PyArrayValues {
    values: ArrayRef,
    at: AtomicUsize,
}

#[pymethods]
impl PyArrayValues {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let at = self.at.fetch_add(1, Ordering::Relaxed);
        (at < self.values.len()).then(|| to_python(py, &self.values, at)).transpose()
    }
}
