//! Values of Arrow as Python and numpy have them.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{Array as _, ArrayRef};
use arrow_schema::DataType;
use numpy::PyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::panics::caught_here;

/// A value as Python has it.
pub(crate) fn value<'py>(py: Python<'py>, values: &ArrayRef, at: usize) -> PyResult<Bound<'py, PyAny>> {
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
        DataType::Float64 => values.as_primitive::<Float64Type>().value(at).into_pyobject(py)?.into_any(),
        DataType::Boolean => values.as_boolean().value(at).into_pyobject(py)?.to_owned().into_any(),
        DataType::Utf8 => values.as_string::<i32>().value(at).into_pyobject(py)?.into_any(),
        DataType::LargeUtf8 => values.as_string::<i64>().value(at).into_pyobject(py)?.into_any(),
        DataType::Binary => PyBytes::new(py, values.as_binary::<i32>().value(at)).into_any(),
        // A fingerprint of 128 bits.
        DataType::FixedSizeBinary(_) => PyBytes::new(py, values.as_fixed_size_binary().value(at)).into_any(),
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

pub(crate) fn to_numpy<'py>(
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
        _ => objects(py, values)?,
    };
    let Some(fill) = fill.filter(|_| values.null_count() > 0) else { return Ok(array) };
    // What stands there has to be what was given, and not another number.
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

/// The values as Python has them, as a numpy array of objects; None where one is null.
pub(crate) fn objects<'py>(py: Python<'py>, values: &ArrayRef) -> PyResult<Bound<'py, PyAny>> {
    let objects = (0..values.len()).map(|at| Ok(value(py, values, at)?.unbind()));
    Ok(PyArray1::<Py<PyAny>>::from_vec(py, objects.collect::<PyResult<Vec<_>>>()?).into_any())
}

/// The type of pandas that has nulls.
pub(crate) fn pandas_type(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::UInt64 => "UInt64",
        DataType::UInt32 => "UInt32",
        DataType::UInt8 => "UInt8",
        DataType::Boolean => "boolean",
        _ => "object",
    }
}

/// A type as pyarrow writes it.
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
