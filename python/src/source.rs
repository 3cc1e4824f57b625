//! What is deduplicated, as Python has it: paths, frames and Arrow streams, iterables of dicts, arrays of fingerprints.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array as _, ArrayRef, BooleanArray, StructArray, UInt64Array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{ArrowError, DataType, Fields};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use pyo3_arrow::error::PyArrowError;
use pyo3_arrow::ffi::ArrayReader;
use pyo3_arrow::input::AnyArray;
use simstore_corpus::DocumentId;

use crate::documents::{Documents, NO_ID, Row, Rows, dicts, extra_of, id_of, joined, name};
use crate::fingerprints::{Fingerprints, Values};
use crate::gate::Call;
use crate::texts::{StringChunk, Texts, arrow_array};

/// The fields of documents that are handed over.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldNames {
    /// Those that make the text, joined by newlines.
    pub(crate) texts: Vec<String>,
    /// The one that holds the id; `None`: `id`, if it is there.
    pub(crate) id: Option<String>,
    /// The one that decides which is kept.
    pub(crate) extra: Option<String>,
}

/// What is handed over.
pub(crate) enum Given {
    Paths(Vec<PathBuf>),
    Fingerprints(Values),
    Documents(Documents),
}

/// Where columns are in a stream of tables: the path through its structs.
pub(crate) struct Columns {
    texts: Vec<Vec<usize>>,
    id: Option<Vec<usize>>,
    extra: Option<Vec<usize>>,
}

impl Given {
    pub(crate) fn read(source: &Bound<'_, PyAny>, names: &FieldNames, bits: Option<u32>) -> PyResult<Given> {
        if let Ok(path) = path_of(source) {
            return Ok(Given::Paths(vec![path]));
        }
        if is_of(source, "polars", "DataFrame") {
            return Ok(Given::Documents(polars_frame(source, names)?));
        }
        if is_of(source, "polars", "LazyFrame") {
            return Err(PyTypeError::new_err("expected a frame, found a LazyFrame: collect() it first"));
        }
        if is_of(source, "pandas", "DataFrame") {
            return frame(source, names).map(Given::Documents);
        }
        if is_of(source, "pandas", "Series") {
            let kind: String = source.getattr("dtype")?.getattr("kind").and_then(|kind| kind.extract())?;
            return if "iu".contains(&*kind) { fingerprints(source, bits) } else { texts(source) };
        }
        if let Ok(array) = source.cast::<PyUntypedArray>() {
            let is_texts = match array.dtype().kind() {
                b'U' | b'T' => true,
                b'O' => array.len() > 0 && source.get_item(0)?.is_instance_of::<PyString>(),
                _ => false,
            };
            return if is_texts { texts(source) } else { fingerprints(source, bits) };
        }
        if let Some(array) = arrow_array(source)? {
            let field = array.field()?;
            return match field.data_type() {
                DataType::Struct(_) => table(array, names).map(Given::Documents),
                other if StringChunk::takes(other) => {
                    Ok(Given::Documents(stream(array.into_reader()?, None)))
                }
                // It says what is expected, if that is something else.
                _ => fingerprints(source, bits),
            };
        }
        if source.is_instance_of::<PyList>() || source.is_instance_of::<PyTuple>() {
            let all: Vec<Bound<'_, PyAny>> = source.extract()?;
            if let Some(first) = all.first() {
                if path_of(first).is_ok() {
                    let paths = all.iter().map(|path| {
                        path_of(path).map_err(|_| {
                            let name = path
                                .get_type()
                                .name()
                                .map_or_else(|_| String::new(), |name| name.to_string());
                            PyTypeError::new_err(format!("expected a list of paths, found {name} in it"))
                        })
                    });
                    return paths.collect::<PyResult<_>>().map(Given::Paths);
                }
                if first.hasattr("__index__")? {
                    return fingerprints(source, bits);
                }
            }
        }
        match source.try_iter() {
            Ok(iterator) => Ok(Given::Documents(dicts(&iterator, names))),
            Err(_) => Err(PyTypeError::new_err(format!(
                "expected paths, a frame, an Arrow table or stream, an iterable of dicts or an array of fingerprints, found {}",
                source.get_type().name()?
            ))),
        }
    }
}

pub(crate) fn path_of(object: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    object.extract()
}

/// Whether it is of this class of a library, which is not imported for that.
pub(crate) fn is_of(object: &Bound<'_, PyAny>, library: &str, class: &str) -> bool {
    let kind = object.get_type();
    let module = kind.module().map(|module| module.to_string()).unwrap_or_default();
    module.split('.').next() == Some(library) && kind.name().is_ok_and(|name| name == class)
}

fn fingerprints(source: &Bound<'_, PyAny>, bits: Option<u32>) -> PyResult<Given> {
    Fingerprints::read_all(source, bits).map(Given::Fingerprints)
}

fn texts(source: &Bound<'_, PyAny>) -> PyResult<Given> {
    let texts = Texts::read(source)?;
    let rows = (0..texts.len()).map(move |at| Ok(Row { text: joined([texts.get(at)]), ..Row::default() }));
    Ok(Given::Documents(once(Box::new(rows))))
}

/// The error of a column that is not there.
fn no_column<'a>(name: &str, argument: &str, there: impl Iterator<Item = &'a str>) -> PyErr {
    let there: Vec<&str> = there.collect();
    PyValueError::new_err(format!(
        "there is no column `{name}`: the columns are {}; option `{argument}` names another",
        there.join(", ")
    ))
}

/// A table, or a stream of tables.
fn table(array: AnyArray, names: &FieldNames) -> PyResult<Documents> {
    let field = array.field()?;
    let DataType::Struct(fields) = field.data_type() else {
        return Err(PyTypeError::new_err(format!("expected a table, found {}", field.data_type())));
    };
    let columns = Columns::find(fields, names)?;
    Ok(stream(array.into_reader()?, Some(columns)))
}

/// A frame of Polars, of which only the columns that are read are handed over: others may be of types that only Polars knows.
fn polars_frame(frame: &Bound<'_, PyAny>, names: &FieldNames) -> PyResult<Documents> {
    let there: Vec<String> = frame.getattr("columns")?.extract()?;
    let id = names.id.clone().unwrap_or_else(|| "id".to_owned());
    let read: Vec<&String> = names.texts.iter().chain([&id]).chain(&names.extra).collect();
    let is_read = |column: &&String| {
        read.iter().any(|name| {
            name.strip_prefix(column.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    };
    let selected = frame.call_method1("select", (there.iter().filter(is_read).collect::<Vec<_>>(),))?;
    let polars = frame.py().import("polars")?;
    let texts = PyDict::new(frame.py());
    texts.set_item(polars.getattr("Null")?, polars.getattr("String")?)?;
    let selected = selected.call_method1("cast", (texts,))?;
    let missing =
        |name: &&String| !there.iter().any(|column| is_read(&column) && name.starts_with(column.as_str()));
    if let Some(name) = names.texts.iter().find(missing) {
        return Err(no_column(name, "text", there.iter().map(String::as_str)));
    }
    table(selected.extract()?, names)
}

/// The text of a row, if it is at hand: of what is read again at will.
pub(crate) fn text_at(source: &Bound<'_, PyAny>, names: &FieldNames, row: u64) -> Option<String> {
    let name = names.texts.first()?;
    let value = if source.is_instance_of::<PyList>() {
        source.get_item(row).ok()?.get_item(name).ok()?
    } else if is_of(source, "pandas", "DataFrame") {
        source.get_item(name).ok()?.getattr("iloc").ok()?.get_item(row).ok()?
    } else if is_of(source, "polars", "DataFrame") || is_of(source, "pyarrow", "Table") {
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

/// A frame of pandas, column by column: those of objects are not copied, and need no pyarrow.
fn frame(frame: &Bound<'_, PyAny>, names: &FieldNames) -> PyResult<Documents> {
    let there: Vec<String> = frame
        .getattr("columns")?
        .try_iter()?
        .map(|name| Ok(name?.str()?.to_string()))
        .collect::<PyResult<_>>()?;
    let column = |name: &str, argument: &str| {
        if !there.iter().any(|other| other == name) {
            return Err(no_column(name, argument, there.iter().map(String::as_str)));
        }
        frame.get_item(name)
    };
    let texts = names.texts.iter().map(|name| {
        let column = column(name, "text")?;
        if column.getattr("dtype")?.str()? == "object" {
            Texts::of_objects(&column)
        } else {
            Texts::read(&column)
        }
    });
    let texts: Vec<Texts> = texts.collect::<PyResult<_>>()?;
    let ids = match &names.id {
        Some(name) => Some(column(name, "id")?),
        None => there.iter().any(|name| name == "id").then(|| frame.get_item("id")).transpose()?,
    };
    let mut ids = match ids {
        Some(ids) => Some(ids.try_iter()?.map(|id| id_of(&id?)).collect::<PyResult<Vec<_>>>()?.into_iter()),
        None => None,
    };
    let extra = match &names.extra {
        Some(name) => {
            column(name, "keep")?.try_iter()?.map(|value| extra_of(&value?)).collect::<PyResult<_>>()?
        }
        None => Vec::new(),
    };
    let (rows, mut extra) = (frame.len()?, extra.into_iter());
    Ok(once(Box::new((0..rows).map(move |at| {
        let (id, extra) = (ids.as_mut().and_then(Iterator::next).transpose(), extra.next().flatten());
        Ok(Row { id: id?, text: joined(texts.iter().map(|texts| texts.get(at))), extra })
    }))))
}

/// All rows at once.
fn once(rows: Rows) -> Documents {
    let mut rows = Some(rows);
    Box::new(move |_| Ok(rows.take()))
}

/// Arrays of a stream, one after the other.
fn stream(reader: Box<dyn ArrayReader + Send>, columns: Option<Columns>) -> Documents {
    let mut reader = Some(reader);
    Box::new(move |call| {
        let Some(array) = next_array(&mut reader, call)? else { return Ok(None) };
        rows_of(&array, columns.as_ref()).map(Some).map_err(|error| call.raise(raised(error)))
    })
}

/// The next array of a stream. It may be Python that gives it, and it may belong to the thread that called.
pub(crate) fn next_array(
    reader: &mut Option<Box<dyn ArrayReader + Send>>,
    call: &Call,
) -> simstore::Result<Option<ArrayRef>> {
    let Some(mut lent) = reader.take() else { return Ok(None) };
    let (lent, next) = call.in_caller(move |py| {
        let next = py.detach(|| lent.next());
        Ok((lent, next))
    })?;
    *reader = Some(lent);
    next.transpose().map_err(|error| call.raise(raised(error)))
}

/// What an error of a stream stands for. Of an exception of Python there is only its text.
pub(crate) fn raised(error: ArrowError) -> PyErr {
    if error.to_string().contains("KeyboardInterrupt") {
        return PyKeyboardInterrupt::new_err(());
    }
    PyErr::from(PyArrowError::from(error))
}

/// The rows of a table, or of texts alone.
fn rows_of(array: &ArrayRef, columns: Option<&Columns>) -> Result<Rows, ArrowError> {
    let len = array.len();
    let Some(Columns { texts, id, extra }) = columns else {
        let texts = chunk(array)?;
        return Ok(Box::new(
            (0..len).map(move |at| Ok(Row { text: joined([texts.get(at)]), ..Row::default() })),
        ));
    };
    let table = array.as_struct();
    let texts: Vec<StringChunk> =
        texts.iter().map(|path| chunk(&column(table, path)?)).collect::<Result<_, _>>()?;
    let ids = id.as_ref().map(|path| Ids::of(&column(table, path)?)).transpose()?;
    let as_text = |path: &Vec<usize>| chunk(&arrow_cast::cast(&column(table, path)?, &DataType::LargeUtf8)?);
    let extra = extra.as_ref().map(as_text).transpose()?;
    Ok(Box::new((0..len).map(move |at| {
        Ok(Row {
            id: ids.as_ref().map(|ids| ids.get(at)).transpose()?,
            text: joined(texts.iter().map(|texts| texts.get(at))),
            extra: extra.as_ref().and_then(|extra| extra.get(at)).map(str::to_owned),
        })
    })))
}

fn chunk(array: &ArrayRef) -> Result<StringChunk, ArrowError> {
    StringChunk::of(array).map_err(|error| ArrowError::ExternalError(Box::new(error)))
}

/// A column of ids.
enum Ids {
    Numbers(UInt64Array),
    Names(StringChunk),
}

impl Ids {
    fn of(array: &ArrayRef) -> Result<Ids, ArrowError> {
        if array.data_type().is_integer() {
            // What is negative is null then, and is refused as an id.
            return Ok(Ids::Numbers(arrow_cast::cast(array, &DataType::UInt64)?.as_primitive().clone()));
        }
        chunk(array).map(Ids::Names)
    }

    fn get(&self, at: usize) -> Result<DocumentId, String> {
        match self {
            Ids::Numbers(numbers) if numbers.is_valid(at) => Ok(DocumentId::Number(numbers.value(at))),
            Ids::Names(names) => names.get(at).ok_or_else(|| NO_ID.to_owned()).and_then(name),
            Ids::Numbers(_) => Err(NO_ID.to_owned()),
        }
    }
}

impl Columns {
    fn find(fields: &Fields, names: &FieldNames) -> PyResult<Columns> {
        let find = |name: &str, argument: &str| {
            let there = fields.iter().map(|field| field.name().as_str());
            position(fields, name).ok_or_else(|| no_column(name, argument, there))
        };
        let texts: Vec<Vec<usize>> =
            names.texts.iter().map(|name| find(name, "text")).collect::<PyResult<_>>()?;
        for (name, at) in names.texts.iter().zip(&texts) {
            let found = type_at(fields, at);
            if !StringChunk::takes(found) {
                return Err(PyTypeError::new_err(format!("column `{name}`: expected texts, found {found}")));
            }
        }
        let id = match &names.id {
            Some(name) => Some(find(name, "id")?),
            None => position(fields, "id"),
        };
        let extra = names.extra.as_deref().map(|name| find(name, "keep")).transpose()?;
        Ok(Columns { texts, id, extra })
    }
}

/// Where a column is: `a.b` is the field `b` of the struct `a`, unless there is a column `a.b`.
fn position(fields: &Fields, name: &str) -> Option<Vec<usize>> {
    if let Some((at, _)) = fields.find(name) {
        return Some(vec![at]);
    }
    name.match_indices('.').find_map(|(dot, _)| {
        let (at, field) = fields.find(&name[..dot])?;
        let DataType::Struct(inner) = field.data_type() else { return None };
        let mut path = position(inner, &name[dot + 1..])?;
        path.insert(0, at);
        Some(path)
    })
}

fn type_at<'a>(fields: &'a Fields, path: &[usize]) -> &'a DataType {
    let found = fields[path[0]].data_type();
    match found {
        DataType::Struct(inner) if path.len() > 1 => type_at(inner, &path[1..]),
        _ => found,
    }
}

/// A column of a table; what is in a struct that is null is null.
fn column(table: &StructArray, path: &[usize]) -> Result<ArrayRef, ArrowError> {
    let mut column = Arc::clone(table.column(path[0]));
    for &at in &path[1..] {
        let outer = column.as_struct();
        let is_null = outer.nulls().map(|nulls| {
            let is_null: BooleanBuffer = nulls.iter().map(|is_valid| !is_valid).collect();
            BooleanArray::new(is_null, None)
        });
        let inner = Arc::clone(outer.column(at));
        column = match is_null {
            Some(is_null) => arrow_select::nullif::nullif(&inner, &is_null)?,
            None => inner,
        };
    }
    Ok(column)
}
