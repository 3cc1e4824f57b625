//! Arrays passed in from other libraries: numpy arrays, made aligned and contiguous, and Arrow arrays of strings, checked to be UTF-8.

use arrow_array::builder::LargeStringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, LargeBinaryArray, LargeStringArray, StringArray, StringViewArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType};
use numpy::{
    Element, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyImportError, PyTypeError};
use pyo3::prelude::*;
use pyo3_arrow::input::AnyArray;

use crate::text_error::{MaybeText, TextError};

/// Whether the object is an instance of a library's class, or of a subclass. Compares names, so the library is not imported.
pub(crate) fn is_instance_by_name(object: &Bound<'_, PyAny>, library: &str, class: &str) -> bool {
    object.get_type().mro().iter().any(|kind| {
        let module = kind.getattr("__module__").and_then(|module| module.extract::<String>());
        let name = kind.getattr("__name__").and_then(|name| name.extract::<String>());
        module.is_ok_and(|module| module.trim_start_matches('_').split('.').next() == Some(library))
            && name.is_ok_and(|name| name == class)
    })
}

/// Reads an object that exports an Arrow array or stream. Returns `None` if the object has no such export, or if the export needs a
/// library that is not installed.
pub(crate) fn arrow_array(object: &Bound<'_, PyAny>) -> PyResult<Option<AnyArray>> {
    if !object.hasattr("__arrow_c_stream__")? && !object.hasattr("__arrow_c_array__")? {
        return Ok(None);
    }
    // A Polars series with only nulls has the type `Null`, which Polars does not export.
    if object.getattr("dtype").and_then(|dtype| dtype.str()).is_ok_and(|dtype| dtype == "Null") {
        let text = object.py().import("polars")?.getattr("String")?;
        return object.call_method1("cast", (text,))?.extract().map(Some);
    }
    match object.extract::<AnyArray>() {
        Ok(array) => Ok(Some(array)),
        // pandas needs pyarrow for the export.
        Err(error) if error.is_instance_of::<PyImportError>(object.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the object is a pandas series of dtype `object`. Its values can have different types, so callers read them one by one.
pub(crate) fn holds_objects(object: &Bound<'_, PyAny>) -> bool {
    let is_series = object.hasattr("iloc").unwrap_or_default();
    is_series && object.getattr("dtype").and_then(|dtype| dtype.str()).is_ok_and(|dtype| dtype == "object")
}

/// A numpy array with the validity of its elements.
pub(crate) struct NumpyArray<'py> {
    array: Bound<'py, PyUntypedArray>,
    /// Which elements are not masked; `None` if all are valid.
    pub(crate) valid: Option<NullBuffer>,
}

impl<'py> NumpyArray<'py> {
    /// Reads a numpy array, or returns `None` for other objects. The result is aligned, in C order and in native byte
    /// order; an array with another layout is copied.
    pub(crate) fn read(object: &Bound<'py, PyAny>) -> PyResult<Option<NumpyArray<'py>>> {
        let Ok(array) = object.cast::<PyUntypedArray>() else { return Ok(None) };
        if array.ndim() == 0 {
            return Err(PyTypeError::new_err(
                "expected an array of shape (n,), found one of shape (): put it in a list",
            ));
        }
        let valid = validity_of_mask(object)?;
        let (numpy, mut array) = (object.py().import("numpy")?, object.clone());
        // Only integers: bools, objects and texts have no byte order.
        if "iu".contains(&*array.getattr("dtype")?.getattr("kind")?.extract::<String>()?) {
            let native = array.getattr("dtype")?.call_method1("newbyteorder", ("=",))?;
            array = numpy.call_method1("asarray", (array, native))?;
        }
        let array = numpy.call_method1("require", (array, numpy.py().None(), ["C", "A"]))?;
        Ok(Some(NumpyArray { array: array.cast_into::<PyUntypedArray>()?, valid }))
    }

    /// Returns the values if the array has elements of type `T` and this number of dimensions, otherwise `None`.
    pub(crate) fn values<T: Element + Copy>(&self, dimensions: usize) -> PyResult<Option<Vec<T>>> {
        match self.array.cast::<PyArrayDyn<T>>() {
            Ok(array) if array.ndim() == dimensions => Ok(Some(array.to_vec()?)),
            _ => Ok(None),
        }
    }

    /// Returns the bytes of all elements, concatenated, if each element has `size` bytes. Returns `None` for other sizes and for
    /// structured arrays.
    pub(crate) fn rows_of_bytes(&self, size: usize) -> PyResult<Option<Vec<u8>>> {
        let dtype = self.array.dtype();
        if dtype.itemsize() != size || dtype.has_fields() {
            return Ok(None);
        }
        let bytes = self.array.call_method1("view", ("u1",))?;
        Ok(Some(bytes.cast_into::<PyArrayDyn<u8>>()?.to_vec()?))
    }

    pub(crate) fn shape(&self) -> &[usize] {
        self.array.shape()
    }

    /// numpy's letter for the kind of the dtype: `u`, `i`, `O`, `U`, ...
    pub(crate) fn kind(&self) -> u8 {
        self.array.dtype().kind()
    }

    /// Name of the dtype, as numpy prints it.
    pub(crate) fn type_name(&self) -> String {
        self.array.dtype().to_string()
    }

    /// Returns the elements as a list of Python objects, with `None` for masked elements.
    pub(crate) fn objects(&self) -> PyResult<Bound<'py, PyAny>> {
        let list = self.array.call_method0("tolist")?;
        for at in self.valid.iter().flat_map(|valid| (0..valid.len()).filter(|&at| valid.is_null(at))) {
            list.set_item(at, list.py().None())?;
        }
        Ok(list)
    }
}

/// Returns the validity of a masked array, or `None` if nothing is masked. If an array has several dimensions, a row with any masked value
/// is invalid.
fn validity_of_mask(object: &Bound<'_, PyAny>) -> PyResult<Option<NullBuffer>> {
    let masked = object.py().import("numpy")?.getattr("ma")?;
    if !object.is_instance(&masked.getattr("MaskedArray")?)? {
        return Ok(None);
    }
    let mut mask = masked.call_method1("getmaskarray", (object,))?;
    while mask.getattr("ndim")?.extract::<usize>()? > 1 {
        mask = mask.call_method1("any", (-1,))?;
    }
    let mask: Vec<bool> = mask.call_method0("tolist")?.extract()?;
    Ok(mask.contains(&true).then(|| NullBuffer::new(mask.iter().map(|hidden| !hidden).collect())))
}

/// A chunk of an Arrow array of strings, checked to be UTF-8. The Arrow import does not check this.
pub(crate) struct StringChunk {
    strings: StringStorage,
    /// Rows that are not UTF-8, ascending, each with the offset of its first invalid byte.
    bad: Vec<(usize, usize)>,
}

enum StringStorage {
    Small(StringArray),
    Large(LargeStringArray),
    View(StringViewArray),
}

impl StringChunk {
    /// Reads a chunk of strings: plain, dictionary-encoded, run-end encoded, or all null.
    pub(crate) fn new(array: &ArrayRef) -> PyResult<StringChunk> {
        // A column of nulls alone may be of any type.
        if array.null_count() < array.len() && !StringChunk::is_text_type(array.data_type()) {
            return Err(PyTypeError::new_err(format!(
                "expected texts, found an Arrow array of {}",
                array.data_type()
            )));
        }
        StringChunk::as_text(array).map_err(|error| PyTypeError::new_err(error.to_string()))
    }

    /// Reads a chunk of any type. Values that are not strings are formatted as text.
    pub(crate) fn as_text(array: &ArrayRef) -> Result<StringChunk, ArrowError> {
        match array.data_type() {
            DataType::Utf8 => {
                Ok(StringChunk::checked(&BinaryArray::from(array.as_string::<i32>().clone()), || {
                    StringStorage::Small(array.as_string().clone())
                }))
            }
            DataType::LargeUtf8 => {
                Ok(StringChunk::checked(&LargeBinaryArray::from(array.as_string::<i64>().clone()), || {
                    StringStorage::Large(array.as_string().clone())
                }))
            }
            DataType::Utf8View => {
                let strings = array.as_string_view().clone();
                Ok(StringChunk::checked(&strings.clone().to_binary_view(), || StringStorage::View(strings)))
            }
            _ if array.null_count() == array.len() => Ok(StringChunk {
                strings: StringStorage::Large(LargeStringArray::new_null(array.len())),
                bad: Vec::new(),
            }),
            _ => StringChunk::as_text(&arrow_cast::cast(array, &DataType::LargeUtf8)?),
        }
    }

    /// Makes a chunk from `bytes`, the bytes of each string. If all strings are UTF-8, the chunk has the array
    /// that `strings` returns, without a copy. Otherwise it has copies of the valid strings.
    fn checked<'a, B>(bytes: &'a B, strings: impl FnOnce() -> StringStorage) -> StringChunk
    where
        &'a B: IntoIterator<Item = Option<&'a [u8]>>,
    {
        let bad = |(row, value): (usize, Option<&[u8]>)| {
            std::str::from_utf8(value?).err().map(|error| (row, error.valid_up_to()))
        };
        let bad: Vec<(usize, usize)> = bytes.into_iter().enumerate().filter_map(bad).collect();
        if bad.is_empty() {
            return StringChunk { strings: strings(), bad };
        }
        let mut good = LargeStringBuilder::new();
        for value in bytes {
            good.append_option(value.and_then(|value| std::str::from_utf8(value).ok()));
        }
        StringChunk { strings: StringStorage::Large(good.finish()), bad }
    }

    /// Whether values of this Arrow type are strings: plain, dictionary-encoded or run-end encoded. An array of
    /// type null counts as strings.
    pub(crate) fn is_text_type(data_type: &DataType) -> bool {
        match data_type {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => true,
            DataType::Dictionary(_, values) => StringChunk::is_text_type(values),
            DataType::RunEndEncoded(_, values) => StringChunk::is_text_type(values.data_type()),
            _ => false,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.strings {
            StringStorage::Small(strings) => strings.len(),
            StringStorage::Large(strings) => strings.len(),
            StringStorage::View(strings) => strings.len(),
        }
    }

    /// Returns a string, or `None` for null.
    ///
    /// # Errors
    /// If the value is not UTF-8.
    pub(crate) fn get(&self, at: usize) -> MaybeText<&str> {
        if !self.bad.is_empty()
            && let Ok(found) = self.bad.binary_search_by_key(&at, |&(row, _)| row)
        {
            return Err(invalid_utf8(self.bad[found].1));
        }
        Ok(match &self.strings {
            StringStorage::Small(strings) => strings.is_valid(at).then(|| strings.value(at)),
            StringStorage::Large(strings) => strings.is_valid(at).then(|| strings.value(at)),
            StringStorage::View(strings) => strings.is_valid(at).then(|| strings.value(at)),
        })
    }

    /// Returns the first malformed row and the reason.
    pub(crate) fn first_bad(&self) -> Option<(usize, TextError)> {
        self.bad.first().map(|&(row, byte)| (row, invalid_utf8(byte)))
    }
}

fn invalid_utf8(byte: usize) -> TextError {
    TextError::Encoding(format!("is not valid UTF-8 from byte {byte} on"))
}
