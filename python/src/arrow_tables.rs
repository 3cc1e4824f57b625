//! Documents from Arrow tables and streams of tables.

use simstore::error::did_you_mean;
use simstore::error::excerpt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array as _, ArrayRef, BooleanArray, StructArray, UInt64Array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{ArrowError, DataType, Fields};
use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3_arrow::error::PyArrowError;
use pyo3_arrow::ffi::ArrayReader;
use pyo3_arrow::input::AnyArray;
use simstore_io::DocumentId;

use crate::array_input::StringChunk;
use crate::call::Call;
use crate::documents::{
    DocumentRow, DocumentRows, DocumentSource, FieldNames, INVALID_ID, field_error, join_texts, name_id,
};

/// Positions of the columns in the tables of a stream. A column in a nested struct has one index for each level.
pub(crate) struct ColumnPaths {
    /// For each text column, its name and its indexes: one for each level of nested structs.
    texts: Vec<(String, Vec<usize>)>,
    id: Option<Vec<usize>>,
    extra: Option<(String, Vec<usize>)>,
}

/// Reads a table, or a stream of tables.
pub(crate) fn table_source(array: AnyArray, names: &FieldNames) -> PyResult<DocumentSource> {
    let field = array.field()?;
    let DataType::Struct(fields) = field.data_type() else {
        return Err(PyTypeError::new_err(format!("expected a table, found {}", field.data_type())));
    };
    let columns = ColumnPaths::find(fields, names)?;
    Ok(stream_source(array.into_reader()?, Some(columns)))
}

/// Returns the error for a missing column. `argument` is the Python argument that selects another column.
pub(crate) fn missing_column_error<'a>(
    name: &str,
    argument: &str,
    existing: impl Iterator<Item = &'a str>,
) -> PyErr {
    let existing: Vec<&str> = existing.collect();
    PyValueError::new_err(format!(
        "no column `{}`{}: the columns are {}; select another with option `{argument}`",
        excerpt(name),
        did_you_mean(name, &existing),
        excerpt(&existing.join(", "))
    ))
}

/// Reads the arrays of a stream: tables with these columns, or texts if `columns` is `None`.
pub(crate) fn stream_source(
    reader: Box<dyn ArrayReader + Send>,
    columns: Option<ColumnPaths>,
) -> DocumentSource {
    let mut reader = Some(reader);
    Box::new(move |call| {
        let Some(array) = next_array(&mut reader, call)? else { return Ok(None) };
        read_rows(&array, columns.as_ref()).map(Some).map_err(|error| call.raise(stream_error(error)))
    })
}

/// Returns the next array of a stream, or `None` at the end. Reads the stream in the thread of the Python caller (see
/// [`Call::in_caller`]), because the stream may call Python code or may be bound to that thread.
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
    next.transpose().map_err(|error| call.raise(stream_error(error)))
}

/// Converts an error of a stream to an exception. If the stream raised a Python exception, only its text is available.
pub(crate) fn stream_error(error: ArrowError) -> PyErr {
    if error.to_string().contains("KeyboardInterrupt") {
        return PyKeyboardInterrupt::new_err(());
    }
    PyErr::from(PyArrowError::from(error))
}

/// Returns the rows of a table or of a text array.
fn read_rows(array: &ArrayRef, columns: Option<&ColumnPaths>) -> Result<DocumentRows, ArrowError> {
    let len = array.len();
    let Some(ColumnPaths { texts, id, extra }) = columns else {
        let texts = text_chunk(array)?;
        let row = move |at| {
            Ok(DocumentRow { text: join_texts([("text", texts.get(at))])?, ..DocumentRow::default() })
        };
        return Ok(Box::new((0..len).map(row)));
    };
    let table = array.as_struct();
    let texts: Vec<(String, StringChunk)> = texts
        .iter()
        .map(|(name, path)| Ok((name.clone(), text_chunk(&column_at(table, path)?)?)))
        .collect::<Result<_, ArrowError>>()?;
    let ids = id.as_ref().map(|path| IdColumn::new(&column_at(table, path)?)).transpose()?;
    let as_text = |(name, path): &(String, Vec<usize>)| -> Result<_, ArrowError> {
        Ok((name.clone(), StringChunk::as_text(&column_at(table, path)?)?))
    };
    let extra = extra.as_ref().map(as_text).transpose()?;
    Ok(Box::new((0..len).map(move |at| {
        let extra = match &extra {
            Some((name, values)) => values.get(at).map_err(|reason| field_error(name, &reason))?,
            None => None,
        };
        Ok(DocumentRow {
            id: ids.as_ref().map(|ids| ids.get(at)).transpose()?,
            text: join_texts(texts.iter().map(|(name, texts)| (&**name, texts.get(at))))?,
            extra: extra.map(str::to_owned),
        })
    })))
}

fn text_chunk(array: &ArrayRef) -> Result<StringChunk, ArrowError> {
    StringChunk::new(array).map_err(|error| ArrowError::ExternalError(Box::new(error)))
}

/// A column of document ids: unsigned numbers, or strings that are names.
pub(crate) enum IdColumn {
    Numbers(UInt64Array),
    Names(StringChunk),
}

impl IdColumn {
    pub(crate) fn new(array: &ArrayRef) -> Result<IdColumn, ArrowError> {
        if array.data_type().is_integer() {
            // The cast turns negative numbers into null, which is refused as an id.
            return Ok(IdColumn::Numbers(arrow_cast::cast(array, &DataType::UInt64)?.as_primitive().clone()));
        }
        text_chunk(array).map(IdColumn::Names)
    }

    pub(crate) fn get(&self, at: usize) -> Result<DocumentId, String> {
        match self {
            IdColumn::Numbers(numbers) if numbers.is_valid(at) => Ok(DocumentId::Number(numbers.value(at))),
            IdColumn::Names(names) => match names.get(at) {
                Ok(found) => found.ok_or_else(|| INVALID_ID.to_owned()).and_then(name_id),
                Err(reason) => Err(format!("its id {reason}")),
            },
            IdColumn::Numbers(_) => Err(INVALID_ID.to_owned()),
        }
    }
}

impl ColumnPaths {
    fn find(fields: &Fields, names: &FieldNames) -> PyResult<ColumnPaths> {
        let find = |name: &str, argument: &str| {
            let existing = fields.iter().map(|field| field.name().as_str());
            column_path(fields, name).ok_or_else(|| missing_column_error(name, argument, existing))
        };
        let texts: Vec<(String, Vec<usize>)> = names
            .texts
            .iter()
            .map(|name| Ok((name.clone(), find(name, "text")?)))
            .collect::<PyResult<_>>()?;
        for (name, at) in &texts {
            let found = type_at(fields, at);
            if !StringChunk::is_text_type(found) {
                return Err(PyTypeError::new_err(format!("column `{name}`: expected texts, found {found}")));
            }
        }
        let id = match &names.id {
            Some(name) => Some(find(name, "id")?),
            None => column_path(fields, "id"),
        };
        let extra_column = |name: &String| Ok::<_, PyErr>((name.clone(), find(name, "keep")?));
        let extra = names.extra.as_ref().map(extra_column).transpose()?;
        Ok(ColumnPaths { texts, id, extra })
    }
}

/// Finds a column. `a.b` is the field `b` of the struct `a`, unless a column `a.b` exists.
fn column_path(fields: &Fields, name: &str) -> Option<Vec<usize>> {
    if let Some((at, _)) = fields.find(name) {
        return Some(vec![at]);
    }
    name.match_indices('.').find_map(|(dot, _)| {
        let (at, field) = fields.find(&name[..dot])?;
        let DataType::Struct(inner) = field.data_type() else { return None };
        let mut path = column_path(inner, &name[dot + 1..])?;
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

/// Returns the column of a table at a path of column indexes, as in [`ColumnPaths`]. Fields of a null struct are
/// null.
fn column_at(table: &StructArray, path: &[usize]) -> Result<ArrayRef, ArrowError> {
    let mut column: ArrayRef = Arc::new(table.clone());
    for &at in path {
        let outer = column.as_struct();
        let is_null = outer.nulls().map(|nulls| {
            let is_null: BooleanBuffer = nulls.iter().map(|is_valid| !is_valid).collect();
            BooleanArray::new(is_null, None)
        });
        // Runs cannot contain nulls.
        let inner = match outer.column(at).data_type() {
            DataType::RunEndEncoded(_, values) if is_null.is_some() => {
                arrow_cast::cast(outer.column(at), values.data_type())?
            }
            _ => Arc::clone(outer.column(at)),
        };
        column = match is_null {
            Some(is_null) => arrow_select::nullif::nullif(&inner, &is_null)?,
            None => inner,
        };
    }
    Ok(column)
}
