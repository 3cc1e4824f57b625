//! Texts as Python has them: lists, iterables, Arrow arrays of strings and what gives them (pandas, Polars, pyarrow, DuckDB).

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyFloat, PyString};

use crate::border::{NumpyArray, StringChunk, arrow_array, holds_objects};
use crate::no_text::{MaybeText, TextError};
use crate::panics::caught_here;

/// Texts, each of them or nothing. Those of Arrow are not copied.
pub(crate) enum Texts {
    Objects(Vec<MaybeText<PyBackedStr>>),
    Arrow { chunks: Vec<StringChunk>, starts: Vec<usize> },
}

impl Texts {
    /// All of them; `what` is what an error calls one. A single text is refused: it is iterable too.
    ///
    /// # Errors
    /// `ValueError` and `TypeError` for the first that is malformed.
    pub(crate) fn read(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Texts> {
        let texts = Texts::read_some(object)?;
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

    /// The same, of which some may be malformed.
    pub(crate) fn read_some(object: &Bound<'_, PyAny>) -> PyResult<Texts> {
        caught_here(object.py(), || Texts::of_any(object))
    }

    fn of_any(object: &Bound<'_, PyAny>) -> PyResult<Texts> {
        if object.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("expected several texts, found one: put it in a list"));
        }
        if let Some(numbers) = NumpyArray::read(object)? {
            return Texts::of_objects(&numbers.objects()?);
        }
        if holds_objects(object) {
            return Texts::of_objects(object);
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

    /// One of them; `None` where there is nothing, or what is malformed.
    pub(crate) fn get(&self, at: usize) -> Option<&str> {
        self.try_get(at).unwrap_or_default()
    }

    /// One of them.
    ///
    /// # Errors
    /// Why it is malformed.
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

/// A text, or what Python's libraries have where there is none: `None`, NaN, `pandas.NA`.
pub(crate) fn text_of(object: &Bound<'_, PyAny>) -> PyResult<MaybeText<PyBackedStr>> {
    if let Ok(text) = object.cast::<PyString>() {
        // Python's texts may hold halves of surrogate pairs.
        let reason = |_| TextError::Encoding("is not valid Unicode: it has a lone surrogate".to_owned());
        return Ok(PyBackedStr::try_from(text.clone()).map(Some).map_err(reason));
    }
    if is_missing(object)? {
        return Ok(Ok(None));
    }
    Ok(Err(TextError::Type(object.get_type().name()?.to_string())))
}

/// Whether it stands for nothing.
pub(crate) fn is_missing(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.is_none() {
        return Ok(true);
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        return Ok(number.value().is_nan());
    }
    // `pandas.NA` and `pandas.NaT`, and `numpy.ma.masked`.
    let name = object.get_type().name()?;
    Ok(["NAType", "NaTType", "MaskedConstant"].iter().any(|missing| name == *missing))
}
