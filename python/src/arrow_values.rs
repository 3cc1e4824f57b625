//! Conversion of Arrow values to Python objects and numpy arrays.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{Array as _, ArrayRef};
use arrow_schema::DataType;
use numpy::PyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::panics::catch_panic_in_python;

/// Converts a value to a Python object; null becomes None.
pub(crate) fn to_python<'py>(py: Python<'py>, values: &ArrayRef, at: usize) -> PyResult<Bound<'py, PyAny>> {
    catch_panic_in_python(py, || to_python_unchecked(py, values, at))
}

fn to_python_unchecked<'py>(py: Python<'py>, values: &ArrayRef, at: usize) -> PyResult<Bound<'py, PyAny>> {
    if values.is_null(at) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match values.data_type() {
        DataType::UInt64 => values.as_primitive::<UInt64Type>().value(at).into_pyobject(py)?.into_any(),
        DataType::UInt32 => values.as_primitive::<UInt32Type>().value(at).into_pyobject(py)?.into_any(),
        DataType::UInt8 => values.as_primitive::<UInt8Type>().value(at).into_pyobject(py)?.into_any(),
        DataType::Float64 => values.as_primitive::<Float64Type>().value(at).into_pyobject(py)?.into_any(),
        DataType::Boolean => values.as_boolean().value(at).into_pyobject(py)?.to_owned().into_any(),
        DataType::Utf8 => values.as_string::<i32>().value(at).into_pyobject(py)?.into_any(),
        DataType::LargeUtf8 => values.as_string::<i64>().value(at).into_pyobject(py)?.into_any(),
        DataType::Binary => PyBytes::new(py, values.as_binary::<i32>().value(at)).into_any(),
        // Fingerprints of 128 bits.
        DataType::FixedSizeBinary(_) => PyBytes::new(py, values.as_fixed_size_binary().value(at)).into_any(),
        DataType::FixedSizeList(_, _) | DataType::List(_) => {
            let list = match values.as_list_opt::<i32>() {
                Some(lists) => lists.value(at),
                None => values.as_fixed_size_list().value(at),
            };
            let items = (0..list.len()).map(|at| to_python(py, &list, at)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        other => return Err(PyTypeError::new_err(format!("values of {other} are not known here"))),
    })
}

/// Copies the values to a numpy array. Nulls become `fill`; without it, a null is an error unless the values are texts.
pub(crate) fn to_numpy<'py>(
    py: Python<'py>,
    values: &ArrayRef,
    fill: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    catch_panic_in_python(py, || to_numpy_unchecked(py, values, fill))
}

fn to_numpy_unchecked<'py>(
    py: Python<'py>,
    values: &ArrayRef,
    fill: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    /// Copies a primitive array; values at nulls are arbitrary.
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
        _ => to_object_array(py, values)?,
    };
    let Some(fill) = fill.filter(|_| values.null_count() > 0) else { return Ok(array) };
    // `fill` must be representable in the dtype: numpy would convert it silently, for example -1 to 2**64 - 1.
    if !matches!(values.data_type(), DataType::FixedSizeBinary(_) | DataType::FixedSizeList(..)) {
        let as_stored = array.getattr("dtype")?.getattr("type")?.call1((fill,))?;
        let is_nan = fill.extract::<f64>().is_ok_and(f64::is_nan);
        if !is_nan && !as_stored.eq(fill)? {
            return Err(PyValueError::new_err(format!(
                "fill is {}: no {}",
                fill.repr()?,
                array.getattr("dtype")?
            )));
        }
    }
    let is_null = PyArray1::from_iter(py, (0..values.len()).map(|at| values.is_null(at)));
    array.set_item(&is_null, fill)?;
    Ok(array)
}

/// Converts the values to a numpy array of Python objects; null becomes None.
pub(crate) fn to_object_array<'py>(py: Python<'py>, values: &ArrayRef) -> PyResult<Bound<'py, PyAny>> {
    let objects = (0..values.len()).map(|at| Ok(to_python(py, values, at)?.unbind()));
    Ok(PyArray1::<Py<PyAny>>::from_vec(py, objects.collect::<PyResult<Vec<_>>>()?).into_any())
}

/// Returns the name of the nullable pandas dtype for an Arrow type.
pub(crate) fn pandas_dtype(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::UInt64 => "UInt64",
        DataType::UInt32 => "UInt32",
        DataType::UInt8 => "UInt8",
        DataType::Boolean => "boolean",
        _ => "object",
    }
}

/// Returns the name of a type, as pyarrow prints it.
pub(crate) fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::FixedSizeBinary(bytes) => format!("fixed_size_binary[{bytes}]"),
        DataType::FixedSizeList(item, count) => {
            format!("fixed_size_list<{}>[{count}]", type_name(item.data_type()))
        }
        DataType::Utf8 => "string".to_owned(),
        DataType::LargeUtf8 => "large_string".to_owned(),
        DataType::Boolean => "bool".to_owned(),
        DataType::Float64 => "double".to_owned(),
        other => other.to_string().to_lowercase(),
    }
}
