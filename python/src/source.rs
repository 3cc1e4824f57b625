//! The argument `source` of `dedup`: paths, texts, frames, Arrow streams, iterables, or arrays of fingerprints.

use std::path::{Path, PathBuf};

use pyo3::exceptions::{PyFileNotFoundError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyMapping, PyString, PyTuple};
use simstore::any::AnyFingerprints;
use simstore_io::expand_globs;

use crate::array_input::is_instance_by_name;
use crate::array_input::{NumpyArray, StringChunk, arrow_array};
use crate::arrow_tables::stream_source;
use crate::documents::{DocumentSource, FieldNames};
use crate::fingerprints::FingerprintColumn;
use crate::frames::{read_dict_of_columns, read_texts};
use crate::item_source::{iterator_source, table_source};
use crate::texts::is_missing;

/// A source of documents or fingerprints.
pub(crate) enum Source {
    Paths(Vec<PathBuf>),
    Fingerprints(AnyFingerprints),
    Documents(DocumentSource),
}

impl Source {
    pub(crate) fn read(source: &Bound<'_, PyAny>, names: &FieldNames, bits: Option<u32>) -> PyResult<Source> {
        if source.is_instance_of::<PyString>() || read_path(source).is_ok() {
            let path = read_path(source)?;
            if source.is_instance_of::<PyString>() && !does_match_file(&path) && !looks_like_a_file(&path) {
                return Err(missing_file_error(&path));
            }
            return Ok(Source::Paths(vec![path]));
        }
        if let Some(documents) = table_source(source, names)? {
            return Ok(Source::Documents(documents));
        }
        if is_instance_by_name(source, "pandas", "Series") {
            let kind: String = source.getattr("dtype")?.getattr("kind").and_then(|kind| kind.extract())?;
            let are_fingerprints = match &*kind {
                "i" | "u" => true,
                "O" => first_present(source)?.is_some_and(|first| !first.is_instance_of::<PyString>()),
                _ => false,
            };
            return if are_fingerprints { fingerprint_source(source, bits) } else { text_source(source) };
        }
        if let Some(numbers) = NumpyArray::read(source)? {
            let is_texts = match numbers.kind() {
                b'U' | b'T' => true,
                b'O' => first_present(&numbers.objects()?)?
                    .is_some_and(|first| first.is_instance_of::<PyString>()),
                _ => false,
            };
            return if is_texts { text_source(source) } else { fingerprint_source(source, bits) };
        }
        if let Some(array) = arrow_array(source)? {
            return match array.field()?.data_type() {
                kind if StringChunk::is_text_type(kind) => {
                    Ok(Source::Documents(stream_source(array.into_reader()?, None)))
                }
                // An error names the expected types.
                _ => fingerprint_source(source, bits),
            };
        }
        if let Ok(dict) = source.cast::<PyMapping>() {
            return dict_source(dict, names);
        }
        if source.is_instance_of::<PyList>() || source.is_instance_of::<PyTuple>() {
            let all: Vec<Bound<'_, PyAny>> = source.extract()?;
            if let Some(paths) = read_paths(&all)? {
                return Ok(Source::Paths(paths));
            }
            if let Some(first) = all.first()
                && (first.hasattr("__index__")? || first.is_instance_of::<PyBytes>())
            {
                return fingerprint_source(source, bits);
            }
        }
        match source.try_iter() {
            Ok(iterator) => Ok(Source::Documents(iterator_source(&iterator, names))),
            Err(error) if !error.is_instance_of::<PyTypeError>(source.py()) => Err(error),
            Err(_) => Err(PyTypeError::new_err(format!(
                "expected paths, texts, a frame, an Arrow table or stream, an iterable of dicts or an array of fingerprints, found \
                 {}",
                source.get_type().name()?
            ))),
        }
    }
}

/// Returns the error for a string that names no file. Its message explains how to pass a text.
fn missing_file_error(path: &Path) -> PyErr {
    let name: String = path.to_string_lossy().chars().take(200).collect();
    let reason = "no such file or directory. A single string is a path: give a text in a list";
    // ENOENT.
    PyFileNotFoundError::new_err((2, reason, name))
}

pub(crate) fn read_path(object: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    object.extract()
}

fn fingerprint_source(source: &Bound<'_, PyAny>, bits: Option<u32>) -> PyResult<Source> {
    FingerprintColumn::read_all(source, bits).map(Source::Fingerprints)
}

fn text_source(source: &Bound<'_, PyAny>) -> PyResult<Source> {
    read_texts(source).map(Source::Documents)
}

/// Reads a dict of columns, or of datasets that are read one after the other, such as the splits for training and tests.
fn dict_source(dict: &Bound<'_, PyMapping>, names: &FieldNames) -> PyResult<Source> {
    let values = dict.values()?;
    let has_column = names.texts.iter().any(|name| dict.contains(name).unwrap_or_default());
    let is_table = |value: Bound<'_, PyAny>| Ok::<_, PyErr>(table_source(&value, names)?.is_some());
    if !has_column
        && !values.is_empty()
        && !values.iter().map(is_table).collect::<PyResult<Vec<_>>>()?.contains(&false)
    {
        return Ok(Source::Documents(iterator_source(&values.try_iter()?, names)));
    }
    read_dict_of_columns(dict, names).map(Source::Documents)
}

/// Returns the first item that is not missing.
fn first_present<'py>(items: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    for item in items.try_iter()? {
        let item = item?;
        if !is_missing(&item)? {
            return Ok(Some(item));
        }
    }
    Ok(None)
}

/// Number of strings of a list that are checked for existing files, to decide whether the strings are paths or texts.
const PATH_PROBE_MAX: usize = 64;

/// Returns the paths of a list, or `None` if it has none. Strings are paths if files with these names exist.
///
/// # Errors
/// If only some of the strings are paths, or if none exists but all look like paths.
fn read_paths(all: &[Bound<'_, PyAny>]) -> PyResult<Option<Vec<PathBuf>>> {
    let Some(first) = all.first().filter(|first| read_path(first).is_ok()) else { return Ok(None) };
    if first.is_instance_of::<PyBytes>() {
        return Ok(None);
    }
    let is_string = |one: &Bound<'_, PyAny>| one.is_instance_of::<PyString>();
    let is_path = |one: &Bound<'_, PyAny>| !one.is_instance_of::<PyBytes>() && read_path(one).is_ok();
    if !all.iter().any(|one| !is_string(one) && is_path(one)) {
        let strings = all.iter().filter(|one| is_string(one)).take(PATH_PROBE_MAX);
        let names: Vec<PathBuf> = strings.filter_map(|one| read_path(one).ok()).collect();
        let exists: Vec<bool> = names.iter().map(|name| does_match_file(name)).collect();
        let are_strings = all.iter().all(is_string);
        let Some(first_existing) = exists.iter().position(|exists| *exists) else {
            if are_strings && names.iter().all(|name| looks_like_a_file(name)) {
                return Err(PyFileNotFoundError::new_err(format!(
                    "none of the strings is a file: '{}'. If they are texts, give {{\"text\": [...]}}",
                    names[0].display()
                )));
            }
            return Ok(None);
        };
        let other = match exists.iter().position(|exists| !exists) {
            Some(at) => Some(format!("'{:.60}'", names[at].display().to_string())),
            None => all
                .iter()
                .find(|one| !is_string(one))
                .map(|one| one.repr())
                .transpose()?
                .map(|one| one.to_string()),
        };
        if let Some(other) = other {
            return Err(PyValueError::new_err(format!(
                "'{}' is a file, but {other} is none. For texts, give {{\"text\": [...]}}; for paths, give pathlib.Path",
                names[first_existing].display()
            )));
        }
    }
    let paths = all.iter().map(|path| {
        read_path(path).map_err(|_| {
            let name = path.get_type().name().map_or_else(|_| String::new(), |name| name.to_string());
            PyTypeError::new_err(format!("expected a list of paths, found {name} in it"))
        })
    });
    paths.collect::<PyResult<_>>().map(Some)
}

/// Whether a file or directory with this name exists, or a file that matches the glob.
fn does_match_file(name: &Path) -> bool {
    /// Longest path of any operating system.
    const NAME_MAX_BYTES: usize = 4096;
    let bytes = name.as_os_str().as_encoded_bytes();
    if bytes.is_empty() || bytes.len() > NAME_MAX_BYTES || bytes.contains(&b'\n') || bytes.contains(&0) {
        return false;
    }
    name.exists()
        || looks_like_a_file(name)
            && bytes.iter().any(|byte| b"*?[".contains(byte))
            && expand_globs(&[name.to_path_buf()]).is_ok()
}

/// Whether the name looks like a path: no white space, and a `/` or an extension.
fn looks_like_a_file(name: &Path) -> bool {
    let Some(text) = name.to_str() else { return true };
    let extension = name.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let has_extension =
        (1..=8).contains(&extension.len()) && extension.bytes().all(|byte| byte.is_ascii_alphanumeric());
    !text.is_empty() && !text.contains(char::is_whitespace) && (has_extension || text.contains('/'))
}

/// Returns the text of a row, if the source can be read again.
pub(crate) fn text_at(source: &Bound<'_, PyAny>, names: &FieldNames, row: u64) -> Option<String> {
    let name = names.texts.first()?;
    let value = if source.is_instance_of::<PyList>() {
        let item = source.get_item(row).ok()?;
        if item.is_instance_of::<PyString>() { item } else { item.get_item(name).ok()? }
    } else if is_instance_by_name(source, "pandas", "DataFrame") {
        source.get_item(name).ok()?.getattr("iloc").ok()?.get_item(row).ok()?
    } else if is_instance_by_name(source, "polars", "DataFrame")
        || is_instance_by_name(source, "pyarrow", "Table")
        || source.is_instance_of::<PyDict>()
    {
        source.get_item(name).ok()?.get_item(row).ok()?
    } else {
        return None;
    };
    if value.is_instance_of::<PyString>() {
        value.extract().ok()
    } else {
        value.call_method0("as_py").ok()?.extract().ok()
    }
}
