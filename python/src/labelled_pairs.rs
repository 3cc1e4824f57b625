//! Labelled pairs of texts for `evaluate`: paths, frames, Arrow streams, and iterables of dicts or tuples.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array as _, StructArray};
use arrow_schema::{ArrowError, DataType};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyIterator, PyMapping, PySequence, PyString};
use pyo3_arrow::ffi::ArrayReader;
use serde_json::{Map, Value};
use simstore::Error;
use simstore_corpus::evaluate::PairOptions;

use crate::array_input::is_instance_by_name;
use crate::array_input::{StringChunk, arrow_array};
use crate::arrow_tables::{next_array, stream_error};
use crate::call::Call;
use crate::item_source::read_batch;
use crate::source::read_path;
use crate::text_error::TextError;
use crate::texts::{is_missing, read_text};

/// A source of pairs of texts. The label of a pair says whether the texts are near-duplicates.
pub(crate) enum PairSource {
    Paths(Vec<PathBuf>),
    Rows(PairRows),
}

/// The fields of a pair by name, or the reason why the pair is malformed.
type PairRecord = Result<Map<String, Value>, String>;

/// A function that returns the next labelled pairs, or `None` at the end.
pub(crate) type PairRows = Box<dyn FnMut(&Call) -> simstore::Result<Option<Vec<PairRecord>>> + Send>;

impl PairSource {
    pub(crate) fn read(pairs: &Bound<'_, PyAny>, options: &PairOptions) -> PyResult<PairSource> {
        if let Ok(path) = read_path(pairs) {
            return Ok(PairSource::Paths(vec![path]));
        }
        if let Ok(sequence) = pairs.cast::<PySequence>()
            && sequence.len()? > 0
            && read_path(&sequence.get_item(0)?).is_ok()
        {
            return pairs.extract().map(PairSource::Paths);
        }
        if is_instance_by_name(pairs, "pandas", "DataFrame") {
            // Labelled pairs are few, so all records fit in memory.
            let kwargs = PyDict::new(pairs.py());
            kwargs.set_item("orient", "records")?;
            let records = pairs.call_method("to_dict", (), Some(&kwargs))?;
            return Ok(PairSource::Rows(iterable_rows(&records.try_iter()?, options)));
        }
        if let Some(array) = arrow_array(pairs)? {
            if !matches!(array.field()?.data_type(), DataType::Struct(_)) {
                let found = array.field()?.data_type().to_string();
                return Err(PyTypeError::new_err(format!(
                    "expected a table of labelled pairs, found {found}"
                )));
            }
            return Ok(PairSource::Rows(table_rows(array.into_reader()?)));
        }
        match pairs.try_iter() {
            Ok(iterator) => Ok(PairSource::Rows(iterable_rows(&iterator, options))),
            Err(_) => Err(PyTypeError::new_err(format!(
                "expected paths, a frame, an Arrow table or stream, or an iterable of dicts or tuples, found {}",
                pairs.get_type().name()?
            ))),
        }
    }
}

/// Reads pairs from an iterator of dicts, or of tuples of two texts and an optional label.
fn iterable_rows(iterator: &Bound<'_, PyIterator>, options: &PairOptions) -> PairRows {
    let iterator = Arc::new(iterator.clone().unbind());
    let name = |named: &Option<String>, usual: &str| named.clone().unwrap_or_else(|| usual.to_owned());
    let names = [
        name(&options.text_a, "text_a"),
        name(&options.text_b, "text_b"),
        name(&options.label_field, "label"),
    ];
    let mut names = Some(names);
    Box::new(move |call| {
        let Some(lent) = names.take() else { return Ok(None) };
        let read = |names: &mut [String; 3], item: &Bound<'_, PyAny>| read_record(item, names);
        let (lent, rows, is_ended) = read_batch(&iterator, call, lent, read, |_| false)?;
        names = (!is_ended).then_some(lent);
        Ok(Some(rows))
    })
}

fn read_record(item: &Bound<'_, PyAny>, names: &[String; 3]) -> PyResult<PairRecord> {
    let mut fields = Map::new();
    let mut set = |name: String, value: &Bound<'_, PyAny>| -> PyResult<Result<(), String>> {
        let value = match to_json(value)? {
            Ok(value) => value,
            Err(reason) => return Ok(Err(format!("the field `{name}` {reason}"))),
        };
        fields.insert(name, value);
        Ok(Ok(()))
    };
    if let Ok(dict) = item.cast::<PyMapping>() {
        for pair in dict.items()?.iter() {
            let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
            if let Err(reason) = set(name.str()?.to_string(), &value)? {
                return Ok(Err(reason));
            }
        }
        return Ok(Ok(fields));
    }
    match item.cast::<PySequence>() {
        Ok(pair) if !item.is_instance_of::<PyString>() && (2..=3).contains(&pair.len()?) => {
            for (name, value) in names.iter().zip(pair.try_iter()?) {
                if let Err(reason) = set(name.clone(), &value?)? {
                    return Ok(Err(reason));
                }
            }
            Ok(Ok(fields))
        }
        _ => Err(PyTypeError::new_err(format!(
            "expected a dict, or a tuple (text_a, text_b) or (text_a, text_b, label), found {}",
            item.get_type().name()?
        ))),
    }
}

/// Converts a value to JSON: a string, bool, number or null. A value of any other type becomes an array with its
/// string form. No field of a pair accepts an array, so the pair is reported as malformed.
fn to_json(value: &Bound<'_, PyAny>) -> PyResult<Result<Value, TextError>> {
    if value.is_instance_of::<PyString>() {
        let text = read_text(value)?;
        return Ok(text.map(|text| text.map_or(Value::Null, |text| Value::String((*text).to_owned()))));
    }
    if is_missing(value)? {
        return Ok(Ok(Value::Null));
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(Ok(Value::Bool(flag.is_true())));
    }
    if value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>() || value.hasattr("__float__")? {
        // numpy has its own class for bools.
        if value.get_type().name()? == "bool" || value.get_type().name()? == "bool_" {
            return Ok(Ok(Value::Bool(value.is_truthy()?)));
        }
        return Ok(Ok(value.extract::<f64>()?.into()));
    }
    Ok(Ok(Value::Array(vec![Value::String(value.str()?.to_string())])))
}

/// Reads pairs from a stream of Arrow tables.
fn table_rows(reader: Box<dyn ArrayReader + Send>) -> PairRows {
    let mut reader = Some(reader);
    Box::new(move |call| {
        let Some(array) = next_array(&mut reader, call)? else { return Ok(None) };
        records_of_table(array.as_struct()).map(Some).map_err(|error| call.raise(stream_error(error)))
    })
}

fn records_of_table(table: &StructArray) -> Result<Vec<PairRecord>, ArrowError> {
    let mut rows: Vec<PairRecord> = vec![Ok(Map::new()); table.len()];
    for (field, column) in table.fields().iter().zip(table.columns()) {
        let name = field.name();
        let mut set = |value: &dyn Fn(usize) -> Result<Value, TextError>| {
            for (at, row) in rows.iter_mut().enumerate() {
                match (if column.is_valid(at) { value(at) } else { Ok(Value::Null) }, &mut *row) {
                    (Ok(value), Ok(fields)) => drop(fields.insert(name.clone(), value)),
                    (Err(reason), Ok(_)) => *row = Err(format!("the field `{name}` {reason}")),
                    (_, Err(_)) => {}
                }
            }
        };
        match column.data_type() {
            DataType::Boolean => set(&|at| Ok(Value::Bool(column.as_boolean().value(at)))),
            kind if kind.is_numeric() => {
                let numbers = arrow_cast::cast(column, &DataType::Float64)?;
                set(&|at| Ok(numbers.as_primitive::<Float64Type>().value(at).into()));
            }
            kind if StringChunk::is_text_type(kind) => {
                let texts =
                    StringChunk::new(column).map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
                set(&|at| {
                    let text = texts.get(at)?;
                    Ok(text.map_or(Value::Null, |text| Value::String(text.to_owned())))
                });
            }
            // Columns of other types are not used.
            _ => {}
        }
    }
    Ok(rows)
}

/// Returns an iterator over the fields of each pair. If reading fails, the iterator yields the error and ends.
pub(crate) fn flatten_rows<'a>(
    mut rows: PairRows,
    call: &'a Call,
) -> impl Iterator<Item = simstore::Result<Map<String, Value>>> + 'a {
    let mut batch = Vec::new().into_iter();
    let (mut line, mut is_ended) = (0, false);
    std::iter::from_fn(move || {
        loop {
            if let Some(row) = batch.next() {
                line += 1;
                let malformed = |reason| Error::BadInput { path: "-".into(), line, reason };
                return Some(PairRecord::map_err(row, malformed));
            }
            if is_ended {
                return None;
            }
            match rows(call) {
                Ok(Some(more)) => batch = more.into_iter(),
                Ok(None) => is_ended = true,
                Err(error) => {
                    is_ended = true;
                    return Some(Err(error));
                }
            }
        }
    })
}
