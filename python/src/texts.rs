//! Texts read from Python: lists, iterables, numpy arrays, and Arrow arrays of strings (from pandas, Polars, pyarrow, DuckDB).

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyFloat, PyString};

use crate::array_input::{NumpyArray, StringChunk, arrow_array, holds_objects};
use crate::panics::catch_panic_in_python;
use crate::text_error::{MaybeText, TextError};

/// A list of texts, which may contain missing values. Arrow strings are not copied.
pub(crate) enum Texts {
    Objects(Vec<MaybeText<PyBackedStr>>),
    /// `starts` has the position of the first text of each chunk, and the number of all texts at the end.
    Arrow {
        chunks: Vec<StringChunk>,
        starts: Vec<usize>,
    },
}

impl Texts {
    /// Reads texts. `what` names a value in errors, such as "text". A single text is refused, although it is iterable.
    ///
    /// # Errors
    /// `ValueError` or `TypeError` for the first malformed value.
    pub(crate) fn read(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Texts> {
        let texts = Texts::read_lenient(object)?;
        let bad = match &texts {
            Texts::Objects(texts) => {
                let reasons = texts.iter().map(|text| text.as_ref().err().cloned());
                reasons.enumerate().find_map(|(at, reason)| Some((at, reason?)))
            }
            Texts::Arrow { chunks, starts } => chunks.iter().zip(starts).find_map(|(chunk, start)| {
                let (row, reason) = chunk.first_bad()?;
                Some((start + row, reason))
            }),
        };
        match bad {
            None => Ok(texts),
            Some((at, reason)) => {
                let message = format!("{what} {at} {reason}");
                Err(match reason {
                    TextError::Type(_) => PyTypeError::new_err(message),
                    TextError::Encoding(_) => PyValueError::new_err(message),
                })
            }
        }
    }

    /// Reads texts like [`Texts::read`], but keeps malformed values. [`Texts::try_get`] returns their errors.
    pub(crate) fn read_lenient(object: &Bound<'_, PyAny>) -> PyResult<Texts> {
        catch_panic_in_python(object.py(), || Texts::read_any(object))
    }

    fn read_any(object: &Bound<'_, PyAny>) -> PyResult<Texts> {
        if object.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("expected several texts, found one: put it in a list"));
        }
        if let Some(numbers) = NumpyArray::read(object)? {
            return Texts::read_iterable(&numbers.objects()?);
        }
        if holds_objects(object) {
            return Texts::read_iterable(object);
        }
        if let Some(array) = arrow_array(object)? {
            let chunks = array.into_chunked_array().map_err(PyErr::from)?;
            let chunks = chunks.chunks().iter().map(StringChunk::new).collect::<PyResult<Vec<_>>>()?;
            let mut starts = vec![0];
            for chunk in &chunks {
                starts.push(starts.last().map_or(0, |start| start + chunk.len()));
            }
            return Ok(Texts::Arrow { chunks, starts });
        }
        Texts::read_iterable(object)
    }

    /// Reads the values of an iterable.
    pub(crate) fn read_iterable(object: &Bound<'_, PyAny>) -> PyResult<Texts> {
        object.try_iter()?.map(|text| read_text(&text?)).collect::<PyResult<_>>().map(Texts::Objects)
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Texts::Objects(texts) => texts.len(),
            Texts::Arrow { starts, .. } => starts.last().copied().unwrap_or_default(),
        }
    }

    /// Returns the text at a position; `None` if it is missing or malformed.
    pub(crate) fn get(&self, at: usize) -> Option<&str> {
        self.try_get(at).unwrap_or_default()
    }

    /// Returns the text at a position; `None` if it is missing.
    ///
    /// # Errors
    /// If the value is malformed; the error is the reason.
    pub(crate) fn try_get(&self, at: usize) -> MaybeText<&str> {
        match self {
            Texts::Objects(texts) => texts[at].as_ref().map(Option::as_deref).map_err(Clone::clone),
            Texts::Arrow { chunks, starts } => {
                let chunk = starts.partition_point(|&start| start <= at) - 1;
                chunks[chunk].get(at - starts[chunk])
            }
        }
    }
}

/// Reads a text. Missing values of Python's libraries, such as `None`, NaN and `pandas.NA`, become `None`.
pub(crate) fn read_text(object: &Bound<'_, PyAny>) -> PyResult<MaybeText<PyBackedStr>> {
    if let Ok(text) = object.cast::<PyString>() {
        // A Python str may contain lone surrogates.
        let reason = |_| TextError::Encoding("is not valid Unicode: it has a lone surrogate".to_owned());
        return Ok(PyBackedStr::try_from(text.clone()).map(Some).map_err(reason));
    }
    if is_missing(object)? {
        return Ok(Ok(None));
    }
    Ok(Err(TextError::Type(object.get_type().name()?.to_string())))
}

/// Whether the object is a missing value: `None`, NaN, or a missing value of pandas or numpy.
pub(crate) fn is_missing(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.is_none() {
        return Ok(true);
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        return Ok(number.value().is_nan());
    }
    // The classes of `pandas.NA`, `pandas.NaT` and `numpy.ma.masked`.
    let name = object.get_type().name()?;
    Ok(["NAType", "NaTType", "MaskedConstant"].iter().any(|missing| name == *missing))
}
