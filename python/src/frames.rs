//! Frames of pandas and Polars, and datasets of pyarrow, on their way to the library.

use arrow_array::{Array as _, ArrayRef};
use arrow_schema::DataType;
use numpy::PyUntypedArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};
use simstore::error::excerpt;
use simstore_io::DocumentId;

use crate::border::{StringChunk, arrow_array, is_of};
use crate::documents::{DocumentSource, FieldNames, DocumentRow, DocumentRows, extra_of, id_of, joined};
use crate::tables::{IdColumn, no_column, raised, table};
use crate::texts::Texts;

/// The rows of a table; `None` if it is none.
pub(crate) fn table_of(source: &Bound<'_, PyAny>, names: &FieldNames) -> PyResult<Option<DocumentSource>> {
    if is_of(source, "polars", "DataFrame") {
        // What is null in all rows has no type, and is no text.
        let polars = source.py().import("polars")?;
        let texts = PyDict::new(source.py());
        texts.set_item(polars.getattr("Null")?, polars.getattr("String")?)?;
        let frame = selected(source, names)?.call_method1("cast", (texts,))?;
        return table(frame.extract()?, names).map(Some);
    }
    if is_of(source, "pandas", "DataFrame") {
        return frame_of_pandas(source, names).map(Some);
    }
    if is_of(source, "pandas", "Series") {
        return Ok(None);
    }
    match arrow_array(source)? {
        Some(array) if matches!(array.field()?.data_type(), DataType::Struct(_)) => {
            table(array, names).map(Some)
        }
        _ => Ok(None),
    }
}

/// Columns that are read, of those that are there.
fn columns_read(there: &[String], names: &FieldNames) -> PyResult<Vec<String>> {
    let id = names.id.clone().unwrap_or_else(|| "id".to_owned());
    let read: Vec<&String> = names.texts.iter().chain([&id]).chain(&names.extra).collect();
    let holds = |column: &str, name: &str| {
        name.strip_prefix(column).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let mut required = names.texts.iter().map(|name| (name, "text"));
    if let Some((name, argument)) = required.find(|(name, _)| !there.iter().any(|column| holds(column, name)))
    {
        return Err(no_column(name, argument, there.iter().map(String::as_str)));
    }
    Ok(there.iter().filter(|column| read.iter().any(|name| holds(column, name))).cloned().collect())
}

/// A frame of Polars, or a query for one, with the columns alone that are read: others may be of types that only Polars knows.
pub(crate) fn selected<'py>(frame: &Bound<'py, PyAny>, names: &FieldNames) -> PyResult<Bound<'py, PyAny>> {
    let there = if frame.hasattr("collect_schema")? {
        frame.call_method0("collect_schema")?.call_method0("names")?
    } else {
        frame.getattr("columns")?
    };
    frame.call_method1("select", (columns_read(&there.extract::<Vec<String>>()?, names)?,))
}

/// The batches of a dataset of pyarrow.
pub(crate) fn batches_of_dataset<'py>(
    dataset: &Bound<'py, PyAny>,
    names: &FieldNames,
) -> PyResult<Bound<'py, PyAny>> {
    let there: Vec<String> = dataset.getattr("schema")?.getattr("names")?.extract()?;
    let columns = PyDict::new(dataset.py());
    columns.set_item("columns", columns_read(&there, names)?)?;
    dataset.call_method("to_batches", (), Some(&columns))
}

/// A frame of pandas, column by column: those of objects are not copied, and need no pyarrow.
fn frame_of_pandas(frame: &Bound<'_, PyAny>, names: &FieldNames) -> PyResult<DocumentSource> {
    let there: Vec<String> = frame
        .getattr("columns")?
        .try_iter()?
        .map(|name| Ok(name?.str()?.to_string()))
        .collect::<PyResult<_>>()?;
    columns(frame, &there, names, frame.len()?)
}

/// A dict of columns, which are of one length.
pub(crate) fn dict_of_columns(dict: &Bound<'_, PyMapping>, names: &FieldNames) -> PyResult<DocumentSource> {
    let there: Vec<String> =
        dict.keys()?.iter().map(|name| Ok(name.str()?.to_string())).collect::<PyResult<_>>()?;
    let first = names.texts.first().filter(|name| there.contains(name));
    let rows = first.map(|name| dict.get_item(name)?.len()).transpose()?.unwrap_or_default();
    columns(dict, &there, names, rows)
}

/// Columns by their names, each of so many values.
fn columns(
    table: &Bound<'_, PyAny>,
    there: &[String],
    names: &FieldNames,
    rows: usize,
) -> PyResult<DocumentSource> {
    let column = |name: &str, argument: &str| {
        match there.iter().filter(|other| *other == name).count() {
            0 => return Err(no_column(name, argument, there.iter().map(String::as_str))),
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
        let texts = if is_objects { Texts::of_objects(&column) } else { Texts::read_some(&column) };
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
        None => there.iter().any(|name| name == "id").then(|| column("id", "id")).transpose()?,
    };
    let mut ids = ids.map(|ids| ids_of(&ids)).transpose()?.map(Vec::into_iter);
    let extra = match &names.extra {
        Some(name) => extra_values(&column(name, "keep")?)?,
        None => Vec::new(),
    };
    let mut extra = extra.into_iter();
    Ok(once(Box::new((0..rows).map(move |at| {
        let (id, extra) = (ids.as_mut().and_then(Iterator::next).transpose(), extra.next());
        let text = joined(texts.iter().map(|(name, texts)| (&**name, texts.try_get(at))));
        Ok(DocumentRow { id: id?, text: text?, extra: extra.transpose()?.flatten() })
    }))))
}

/// A column as chunks of Arrow; `None` if it is none of these, or of pandas, whose values are read one by one.
fn chunks(column: &Bound<'_, PyAny>) -> PyResult<Option<Vec<ArrayRef>>> {
    if is_of(column, "pandas", "Series") || column.cast::<PyUntypedArray>().is_ok() {
        return Ok(None);
    }
    let Some(array) = arrow_array(column)? else { return Ok(None) };
    Ok(Some(array.into_chunked_array().map_err(PyErr::from)?.chunks().to_vec()))
}

fn ids_of(column: &Bound<'_, PyAny>) -> PyResult<Vec<Result<DocumentId, String>>> {
    let Some(chunks) = chunks(column)? else { return column.try_iter()?.map(|id| id_of(&id?)).collect() };
    let mut all = Vec::new();
    for chunk in chunks {
        let ids = IdColumn::of(&chunk).map_err(raised)?;
        all.extend((0..chunk.len()).map(|at| ids.get(at)));
    }
    Ok(all)
}

/// The values that decide which document is kept.
fn extra_values(column: &Bound<'_, PyAny>) -> PyResult<Vec<Result<Option<String>, String>>> {
    let Some(chunks) = chunks(column)? else {
        return column.try_iter()?.map(|value| extra_of(&value?).map(Ok)).collect();
    };
    let mut all = Vec::new();
    for chunk in chunks {
        let values = StringChunk::as_text(&chunk).map_err(raised)?;
        let value = |at| match values.get(at) {
            Ok(value) => Ok(value.map(str::to_owned)),
            Err(reason) => Err(format!("its value for option `keep` {reason}")),
        };
        all.extend((0..chunk.len()).map(value));
    }
    Ok(all)
}

/// Texts alone.
pub(crate) fn texts(source: &Bound<'_, PyAny>) -> PyResult<DocumentSource> {
    let texts = Texts::read_some(source)?;
    let rows = texts.len();
    let row = move |at| Ok(DocumentRow { text: joined([("text", texts.try_get(at))])?, ..DocumentRow::default() });
    Ok(once(Box::new((0..rows).map(row))))
}

/// All rows at once.
fn once(rows: DocumentRows) -> DocumentSource {
    let mut rows = Some(rows);
    Box::new(move |_| Ok(rows.take()))
}
