//! Arrays of other libraries as they come in: aligned and in order, those of numpy; with strings that are checked, those of Arrow.

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

use crate::no_text::{MaybeText, TextError};

/// Whether it is of this class of a library, or of one below it; the library is not imported for that.
pub(crate) fn is_of(object: &Bound<'_, PyAny>, library: &str, class: &str) -> bool {
    object.get_type().mro().iter().any(|kind| {
        let module = kind.getattr("__module__").and_then(|module| module.extract::<String>());
        let name = kind.getattr("__name__").and_then(|name| name.extract::<String>());
        module.is_ok_and(|module| module.trim_start_matches('_').split('.').next() == Some(library))
            && name.is_ok_and(|name| name == class)
    })
}

/// What gives itself as an Arrow array or stream; `None` if it does not, or needs a library for it that is not there.
pub(crate) fn arrow_array(object: &Bound<'_, PyAny>) -> PyResult<Option<AnyArray>> {
    if !object.hasattr("__arrow_c_stream__")? && !object.hasattr("__arrow_c_array__")? {
        return Ok(None);
    }
    // A series of Polars that holds nulls alone has a type that is not handed over.
    if object.getattr("dtype").and_then(|dtype| dtype.str()).is_ok_and(|dtype| dtype == "Null") {
        let text = object.py().import("polars")?.getattr("String")?;
        return object.call_method1("cast", (text,))?.extract().map(Some);
    }
    match object.extract::<AnyArray>() {
        Ok(array) => Ok(Some(array)),
        // pandas asks for pyarrow.
        Err(error) if error.is_instance_of::<PyImportError>(object.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether it is a series of pandas that holds objects of Python: these are read one by one, each as what it is.
pub(crate) fn holds_objects(object: &Bound<'_, PyAny>) -> bool {
    let is_series = object.hasattr("iloc").unwrap_or_default();
    is_series && object.getattr("dtype").and_then(|dtype| dtype.str()).is_ok_and(|dtype| dtype == "object")
}

/// An array of numpy, and where it has a mask.
pub(crate) struct NumpyArray<'py> {
    array: Bound<'py, PyUntypedArray>,
    /// Which of its elements are there; `None`: all.
    pub(crate) valid: Option<NullBuffer>,
}

impl<'py> NumpyArray<'py> {
    /// An array of numpy: aligned, in the order of C, and in the byte order of the machine; a copy where it was not. `None` if it is
    /// none of numpy.
    pub(crate) fn read(object: &Bound<'py, PyAny>) -> PyResult<Option<NumpyArray<'py>>> {
        let Ok(array) = object.cast::<PyUntypedArray>() else { return Ok(None) };
        if array.ndim() == 0 {
            return Err(PyTypeError::new_err(
                "expected an array of shape (n,), found one of shape (): put it in a list",
            ));
        }
        let valid = mask_of(object)?;
        let (numpy, mut array) = (object.py().import("numpy")?, object.clone());
        // Not for `bool`, objects and texts, which know no byte order.
        if "iu".contains(&*array.getattr("dtype")?.getattr("kind")?.extract::<String>()?) {
            let native = array.getattr("dtype")?.call_method1("newbyteorder", ("=",))?;
            array = numpy.call_method1("asarray", (array, native))?;
        }
        let array = numpy.call_method1("require", (array, numpy.py().None(), ["C", "A"]))?;
        Ok(Some(NumpyArray { array: array.cast_into::<PyUntypedArray>()?, valid }))
    }

    /// The values, if they are of this type and in so many dimensions.
    pub(crate) fn of<T: Element + Copy>(&self, dimensions: usize) -> PyResult<Option<Vec<T>>> {
        match self.array.cast::<PyArrayDyn<T>>() {
            Ok(array) if array.ndim() == dimensions => Ok(Some(array.to_vec()?)),
            _ => Ok(None),
        }
    }

    /// The bytes of elements that have so many each; `None` if they have other ones, or fields.
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

    /// The letter for the kind of type that numpy has: `u`, `i`, `O`, `U`, ...
    pub(crate) fn kind(&self) -> u8 {
        self.array.dtype().kind()
    }

    /// The type as numpy writes it.
    pub(crate) fn type_name(&self) -> String {
        self.array.dtype().to_string()
    }

    /// The elements as Python has them; `None` where the mask hides one.
    pub(crate) fn objects(&self) -> PyResult<Bound<'py, PyAny>> {
        let list = self.array.call_method0("tolist")?;
        for at in self.valid.iter().flat_map(|valid| (0..valid.len()).filter(|&at| valid.is_null(at))) {
            list.set_item(at, list.py().None())?;
        }
        Ok(list)
    }
}

/// Which elements of a masked array are there, if some are not. A masked row is missing as a whole.
fn mask_of(object: &Bound<'_, PyAny>) -> PyResult<Option<NullBuffer>> {
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

/// A chunk of an Arrow array of strings, each of which is UTF-8: nobody checks that before.
pub(crate) struct StringChunk {
    strings: StringStorage,
    /// Rows that are no UTF-8, ascending, and the byte of each that is none.
    bad: Vec<(usize, usize)>,
}

enum StringStorage {
    Small(StringArray),
    Large(LargeStringArray),
    View(StringViewArray),
}

impl StringChunk {
    /// A chunk of strings, or of what stands for them: dictionaries, runs, nulls.
    pub(crate) fn of(array: &ArrayRef) -> PyResult<StringChunk> {
        // A column of nulls alone may be of any type.
        if array.null_count() < array.len() && !StringChunk::takes(array.data_type()) {
            return Err(PyTypeError::new_err(format!(
                "expected texts, found an Arrow array of {}",
                array.data_type()
            )));
        }
        StringChunk::as_text(array).map_err(|error| PyTypeError::new_err(error.to_string()))
    }

    /// The same of values of any type, by how they are written.
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

    /// The strings, if they all are that; or else a copy of those that are.
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

    /// Whether values of this type are strings, or stand for them.
    pub(crate) fn takes(data_type: &DataType) -> bool {
        match data_type {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => true,
            DataType::Dictionary(_, values) => StringChunk::takes(values),
            DataType::RunEndEncoded(_, values) => StringChunk::takes(values.data_type()),
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

    /// A string; `None` where there is none.
    ///
    /// # Errors
    /// Why it is malformed.
    pub(crate) fn get(&self, at: usize) -> MaybeText<&str> {
        if !self.bad.is_empty()
            && let Ok(found) = self.bad.binary_search_by_key(&at, |&(row, _)| row)
        {
            return Err(no_utf8(self.bad[found].1));
        }
        Ok(match &self.strings {
            StringStorage::Small(strings) => strings.is_valid(at).then(|| strings.value(at)),
            StringStorage::Large(strings) => strings.is_valid(at).then(|| strings.value(at)),
            StringStorage::View(strings) => strings.is_valid(at).then(|| strings.value(at)),
        })
    }

    /// The first row that is malformed, and why.
    pub(crate) fn first_bad(&self) -> Option<(usize, TextError)> {
        self.bad.first().map(|&(row, byte)| (row, no_utf8(byte)))
    }
}

/// Why bytes are no text.
fn no_utf8(byte: usize) -> TextError {
    TextError::Encoding(format!("is not valid UTF-8 from byte {byte} on"))
}
