//! Documents from frames of pandas and Polars, datasets of pyarrow, and dicts of columns.

use arrow_array::{Array as _, ArrayRef};
use arrow_schema::DataType;
use numpy::PyUntypedArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};
use simstore::error::excerpt;
use simstore_io::DocumentId;

use crate::array_input::{StringChunk, arrow_array, is_instance_by_name};
use crate::arrow_tables::{IdColumn, missing_column_error, stream_error, table_source};
use crate::documents::{
    DocumentRow, DocumentRows, DocumentSource, FieldNames, join_texts, read_extra, read_id,
};
use crate::texts::Texts;

/// Returns the rows of a table, or `None` if the source is no table.
pub(crate) fn read_table(source: &Bound<'_, PyAny>, names: &FieldNames) -> PyResult<Option<DocumentSource>> {
    if is_instance_by_name(source, "polars", "DataFrame") {
        // A column of nulls alone has the type `Null`, which is not accepted as text.
        let polars = source.py().import("polars")?;
        let texts = PyDict::new(source.py());
        texts.set_item(polars.getattr("Null")?, polars.getattr("String")?)?;
        let frame = select_columns(source, names)?.call_method1("cast", (texts,))?;
        return table_source(frame.extract()?, names).map(Some);
    }
    if is_instance_by_name(source, "pandas", "DataFrame") {
        return read_pandas_frame(source, names).map(Some);
    }
    if is_instance_by_name(source, "pandas", "Series") {
        return Ok(None);
    }
    match arrow_array(source)? {
        Some(array) if matches!(array.field()?.data_type(), DataType::Struct(_)) => {
            table_source(array, names).map(Some)
        }
        _ => Ok(None),
    }
}

/// Returns the columns that need to be read.
///
/// # Errors
/// If a text column is missing.
fn needed_columns(existing: &[String], names: &FieldNames) -> PyResult<Vec<String>> {
    let id = names.id.clone().unwrap_or_else(|| "id".to_owned());
    let read: Vec<&String> = names.texts.iter().chain([&id]).chain(&names.extra).collect();
    let holds = |column: &str, name: &str| {
        name.strip_prefix(column).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let mut required = names.texts.iter().map(|name| (name, "text"));
    if let Some((name, argument)) =
        required.find(|(name, _)| !existing.iter().any(|column| holds(column, name)))
    {
        return Err(missing_column_error(name, argument, existing.iter().map(String::as_str)));
    }
    Ok(existing.iter().filter(|column| read.iter().any(|name| holds(column, name))).cloned().collect())
}

/// Returns a Polars frame or lazy query with only the columns that need to be read. The other columns may have
/// types that Arrow lacks.
pub(crate) fn select_columns<'py>(
    frame: &Bound<'py, PyAny>,
    names: &FieldNames,
) -> PyResult<Bound<'py, PyAny>> {
    let existing = if frame.hasattr("collect_schema")? {
        frame.call_method0("collect_schema")?.call_method0("names")?
    } else {
        frame.getattr("columns")?
    };
    frame.call_method1("select", (needed_columns(&existing.extract::<Vec<String>>()?, names)?,))
}

/// Returns the batches of a pyarrow dataset, with only the columns that need to be read.
pub(crate) fn batches_of_dataset<'py>(
    dataset: &Bound<'py, PyAny>,
    names: &FieldNames,
) -> PyResult<Bound<'py, PyAny>> {
    let existing: Vec<String> = dataset.getattr("schema")?.getattr("names")?.extract()?;
    let columns = PyDict::new(dataset.py());
    columns.set_item("columns", needed_columns(&existing, names)?)?;
    dataset.call_method("to_batches", (), Some(&columns))
}

/// Reads a pandas frame column by column. Columns of objects are not copied, and need no pyarrow.
fn read_pandas_frame(frame: &Bound<'_, PyAny>, names: &FieldNames) -> PyResult<DocumentSource> {
    let existing: Vec<String> = frame
        .getattr("columns")?
        .try_iter()?
        .map(|name| Ok(name?.str()?.to_string()))
        .collect::<PyResult<_>>()?;
    read_columns(frame, &existing, names, frame.len()?)
}

/// Reads a dict of columns of the same length.
pub(crate) fn read_dict_of_columns(
    dict: &Bound<'_, PyMapping>,
    names: &FieldNames,
) -> PyResult<DocumentSource> {
    let existing: Vec<String> =
        dict.keys()?.iter().map(|name| Ok(name.str()?.to_string())).collect::<PyResult<_>>()?;
    let first = names.texts.first().filter(|name| existing.contains(name));
    let rows = first.map(|name| dict.get_item(name)?.len()).transpose()?.unwrap_or_default();
    read_columns(dict, &existing, names, rows)
}

/// Reads the columns `names` of `table`, a mapping or a pandas frame with the columns `existing`. Each column has
/// `rows` values.
fn read_columns(
    table: &Bound<'_, PyAny>,
    existing: &[String],
    names: &FieldNames,
    rows: usize,
) -> PyResult<DocumentSource> {
    let column = |name: &str, argument: &str| {
        match existing.iter().filter(|other| *other == name).count() {
            0 => return Err(missing_column_error(name, argument, existing.iter().map(String::as_str))),
            1 => {}
            count => {
                return Err(PyValueError::new_err(format!(
                    "{count} columns are called `{}`: rename all but one",
                    excerpt(name)
                )));
            }
        }
        let column = table.get_item(name)?;
        match column.len()? {
            len if len == rows => Ok(column),
            len => Err(PyValueError::new_err(format!(
                "column `{}` has {len} values, column `{}` {rows}",
                excerpt(name),
                excerpt(names.texts.first().map_or("", String::as_str))
            ))),
        }
    };
    let texts = names.texts.iter().map(|name| {
        let column = column(name, "text")?;
        let is_objects =
            column.getattr("dtype").is_ok_and(|dtype| dtype.str().is_ok_and(|name| name == "object"));
        let texts = if is_objects { Texts::read_iterable(&column) } else { Texts::read_lenient(&column) };
        match texts? {
            texts if texts.len() == rows => Ok((name.clone(), texts)),
            texts => {
                let len = texts.len();
                Err(PyValueError::new_err(format!(
                    "column `{}` says that it has {rows} values, and gives {len}",
                    excerpt(name)
                )))
            }
        }
    });
    let texts: Vec<(String, Texts)> = texts.collect::<PyResult<_>>()?;
    let ids = match &names.id {
        Some(name) => Some(column(name, "id")?),
        None => existing.iter().any(|name| name == "id").then(|| column("id", "id")).transpose()?,
    };
    let mut ids = ids.map(|ids| read_ids(&ids)).transpose()?.map(Vec::into_iter);
    let extra = match &names.extra {
        Some(name) => read_extra_values(&column(name, "keep")?)?,
        None => Vec::new(),
    };
    let mut extra = extra.into_iter();
    Ok(single_batch(Box::new((0..rows).map(move |at| {
        let (id, extra) = (ids.as_mut().and_then(Iterator::next).transpose(), extra.next());
        let text = join_texts(texts.iter().map(|(name, texts)| (&**name, texts.try_get(at))));
        Ok(DocumentRow { id: id?, text: text?, extra: extra.transpose()?.flatten() })
    }))))
}

/// Returns the Arrow chunks of a column. Returns `None` for pandas and numpy columns, and for objects without an Arrow export: their values
/// are read one by one.
fn arrow_chunks(column: &Bound<'_, PyAny>) -> PyResult<Option<Vec<ArrayRef>>> {
    if is_instance_by_name(column, "pandas", "Series") || column.cast::<PyUntypedArray>().is_ok() {
        return Ok(None);
    }
    let Some(array) = arrow_array(column)? else { return Ok(None) };
    Ok(Some(array.into_chunked_array().map_err(PyErr::from)?.chunks().to_vec()))
}

fn read_ids(column: &Bound<'_, PyAny>) -> PyResult<Vec<Result<DocumentId, String>>> {
    let Some(chunks) = arrow_chunks(column)? else {
        return column.try_iter()?.map(|id| read_id(&id?)).collect();
    };
    let mut all = Vec::new();
    for chunk in chunks {
        let ids = IdColumn::new(&chunk).map_err(stream_error)?;
        all.extend((0..chunk.len()).map(|at| ids.get(at)));
    }
    Ok(all)
}

/// Reads the column of values that decide which document of a cluster is kept.
fn read_extra_values(column: &Bound<'_, PyAny>) -> PyResult<Vec<Result<Option<String>, String>>> {
    let Some(chunks) = arrow_chunks(column)? else {
        return column.try_iter()?.map(|value| read_extra(&value?).map(Ok)).collect();
    };
    let mut all = Vec::new();
    for chunk in chunks {
        let values = StringChunk::as_text(&chunk).map_err(stream_error)?;
        let value = |at| match values.get(at) {
            Ok(value) => Ok(value.map(str::to_owned)),
            Err(reason) => Err(format!("its value for option `keep` {reason}")),
        };
        all.extend((0..chunk.len()).map(value));
    }
    Ok(all)
}

/// Reads a list, series or array of texts as documents without ids.
pub(crate) fn read_texts(source: &Bound<'_, PyAny>) -> PyResult<DocumentSource> {
    let texts = Texts::read_lenient(source)?;
    let rows = texts.len();
    let row = move |at| {
        Ok(DocumentRow { text: join_texts([("text", texts.try_get(at))])?, ..DocumentRow::default() })
    };
    Ok(single_batch(Box::new((0..rows).map(row))))
}

/// Returns a source with a single batch of rows.
fn single_batch(rows: DocumentRows) -> DocumentSource {
    let mut rows = Some(rows);
    Box::new(move |_| Ok(rows.take()))
}
