//! Texts as Python has them: lists, iterables, Arrow arrays of strings and what gives them (pandas, Polars, pyarrow, DuckDB).

use arrow_array::{Array, ArrayRef, LargeStringArray, StringArray, StringViewArray};
use arrow_schema::DataType;
use pyo3::exceptions::{PyImportError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyFloat, PyString};
use pyo3_arrow::input::AnyArray;

/// Texts, each of them or nothing. Those of Arrow are not copied.
pub(crate) enum Texts {
    Objects(Vec<Option<PyBackedStr>>),
    Arrow { chunks: Vec<StringChunk>, starts: Vec<usize> },
}

/// A chunk of an Arrow array of strings.
pub(crate) enum StringChunk {
    Small(StringArray),
    Large(LargeStringArray),
    View(StringViewArray),
}

impl StringChunk {
    /// A chunk of strings, or of what stands for them: dictionaries, nulls.
    pub(crate) fn of(array: &ArrayRef) -> PyResult<StringChunk> {
        let any = array.as_any();
        if let Some(strings) = any.downcast_ref::<StringArray>() {
            return Ok(StringChunk::Small(strings.clone()));
        }
        if let Some(strings) = any.downcast_ref::<LargeStringArray>() {
            return Ok(StringChunk::Large(strings.clone()));
        }
        if let Some(strings) = any.downcast_ref::<StringViewArray>() {
            return Ok(StringChunk::View(strings.clone()));
        }
        if !StringChunk::takes(array.data_type()) {
            return Err(PyTypeError::new_err(format!(
                "expected texts, found an Arrow array of {}",
                array.data_type()
            )));
        }
        let strings = arrow_cast::cast(array, &DataType::LargeUtf8)
            .map_err(|error| PyTypeError::new_err(error.to_string()))?;
        StringChunk::of(&strings)
    }

    /// Whether values of this type are strings, or stand for them.
    pub(crate) fn takes(data_type: &DataType) -> bool {
        match data_type {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => true,
            DataType::Dictionary(_, values) => StringChunk::takes(values),
            _ => false,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            StringChunk::Small(strings) => strings.len(),
            StringChunk::Large(strings) => strings.len(),
            StringChunk::View(strings) => strings.len(),
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<&str> {
        match self {
            StringChunk::Small(strings) => strings.is_valid(at).then(|| strings.value(at)),
            StringChunk::Large(strings) => strings.is_valid(at).then(|| strings.value(at)),
            StringChunk::View(strings) => strings.is_valid(at).then(|| strings.value(at)),
        }
    }
}

impl Texts {
    /// All of them. A single text is refused: it is iterable too.
    pub(crate) fn read(object: &Bound<'_, PyAny>) -> PyResult<Texts> {
        if object.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("expected several texts, found one: put it in a list"));
        }
        if let Some(array) = arrow_array(object)? {
            let chunks = array.into_chunked_array().map_err(PyErr::from)?;
            let chunks = chunks.chunks().iter().map(StringChunk::of).collect::<PyResult<Vec<_>>>()?;
            let mut starts = vec![0];
            for chunk in &chunks {
                starts.push(starts.last().map_or(0, |start| start + chunk.len()));
            }
            return Ok(Texts::Arrow { chunks, starts });
        }
        Texts::of_objects(object)
    }

    /// All that an iterable gives, one by one.
    pub(crate) fn of_objects(object: &Bound<'_, PyAny>) -> PyResult<Texts> {
        object.try_iter()?.map(|text| text_of(&text?)).collect::<PyResult<_>>().map(Texts::Objects)
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Texts::Objects(texts) => texts.len(),
            Texts::Arrow { starts, .. } => starts.last().copied().unwrap_or_default(),
        }
    }

    /// One of them; `None` where there is nothing.
    pub(crate) fn get(&self, at: usize) -> Option<&str> {
        match self {
            Texts::Objects(texts) => texts[at].as_deref(),
            Texts::Arrow { chunks, starts } => {
                let chunk = starts.partition_point(|&start| start <= at) - 1;
                chunks[chunk].get(at - starts[chunk])
            }
        }
    }
}

/// What gives itself as an Arrow array or stream; `None` if it does not, or needs a library for it that is not there.
pub(crate) fn arrow_array(object: &Bound<'_, PyAny>) -> PyResult<Option<AnyArray>> {
    if !object.hasattr("__arrow_c_stream__")? && !object.hasattr("__arrow_c_array__")? {
        return Ok(None);
    }
    match object.extract::<AnyArray>() {
        Ok(array) => Ok(Some(array)),
        // pandas asks for pyarrow.
        Err(error) if error.is_instance_of::<PyImportError>(object.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A text, or what Python's libraries have where there is none: `None`, NaN, `pandas.NA`.
pub(crate) fn text_of(object: &Bound<'_, PyAny>) -> PyResult<Option<PyBackedStr>> {
    if let Ok(text) = object.cast::<PyString>() {
        return PyBackedStr::try_from(text.clone()).map(Some);
    }
    if is_missing(object)? {
        return Ok(None);
    }
    Err(PyTypeError::new_err(format!("expected a text or None, found {}", object.get_type().name()?)))
}

/// Whether it stands for nothing.
pub(crate) fn is_missing(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.is_none() {
        return Ok(true);
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        return Ok(number.value().is_nan());
    }
    // `pandas.NA` and `pandas.NaT`.
    Ok(["NAType", "NaTType"].iter().any(|name| object.get_type().name().is_ok_and(|of| of == *name)))
}
