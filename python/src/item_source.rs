//! Documents from a Python iterable of dicts, texts, or tables of any library.

use simstore::error::did_you_mean;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyMapping, PyString};

use crate::array_input::is_instance_by_name;
use crate::call::Call;
use crate::documents::{DocumentRow, DocumentSource, FieldNames, ParsedRow, join_texts, read_extra, read_id};
use crate::frames::read_table;
use crate::texts::{is_missing, read_text};

/// Maximum number of items in a batch from an iterator.
const ITEM_BATCH_MAX: usize = 256;
/// Time after which a batch ends if it has at least one item.
const ITEM_BATCH_TIME: Duration = Duration::from_millis(20);
/// Number of documents after which a source without any text is refused. Files have the same limit.
const TEXT_SEARCH_ROWS: u64 = 1000;

/// Rows of a Hugging Face dataset that are read at a time.
const DATASET_BATCH_ROWS: usize = 1000;

/// An item of an iterator: a document (one row), or a table of documents.
enum SourceItem {
    Row(ParsedRow),
    Table(DocumentSource),
}

/// Reads a batch of items in the thread of the Python caller (see [`Call::in_caller`]), because the iterator may be
/// bound to this thread, and because this thread handles signals. The batch ends early after an item that `is_last`
/// accepts.
///
/// The closure `read` reads one item, and may change the state `lent`. Returns this state, the items, and whether
/// the iterator has ended.
pub(crate) fn read_batch<S: Send + 'static, T: Send + 'static>(
    iterator: &Arc<Py<PyIterator>>,
    call: &Call,
    mut lent: S,
    read: impl Fn(&mut S, &Bound<'_, PyAny>) -> PyResult<T> + Send + 'static,
    is_last: impl Fn(&T) -> bool + Send + 'static,
) -> simstore::Result<(S, Vec<T>, bool)> {
    let iterator = Arc::clone(iterator);
    call.in_caller(move |py| {
        let started = Instant::now();
        let mut iterator = iterator.bind(py).clone();
        let mut batch: Vec<T> = Vec::new();
        while batch.len() < ITEM_BATCH_MAX && (batch.is_empty() || started.elapsed() < ITEM_BATCH_TIME) {
            match iterator.next() {
                Some(item) => batch.push(read(&mut lent, &item?)?),
                None => return Ok((lent, batch, true)),
            }
            if batch.last().is_some_and(&is_last) {
                break;
            }
        }
        Ok((lent, batch, false))
    })
}

/// Returns the rows of a table, or of a source that yields tables: a dataset, or a lazy query. Returns `None` for other objects.
pub(crate) fn table_source(
    source: &Bound<'_, PyAny>,
    names: &FieldNames,
) -> PyResult<Option<DocumentSource>> {
    let each = |tables: Bound<'_, PyAny>| Ok(Some(iterator_source(&tables.try_iter()?, names)));
    if is_instance_by_name(source, "polars", "LazyFrame") {
        let query = crate::frames::select_columns(source, names)?;
        if query.hasattr("collect_batches")? {
            return each(query.call_method0("collect_batches")?);
        }
        // Older versions of Polars cannot read a query in batches.
        return read_table(&query.call_method0("collect")?, names);
    }
    if is_instance_by_name(source, "datasets", "Dataset")
        || is_instance_by_name(source, "datasets", "IterableDataset")
    {
        let tables = source.call_method1("with_format", ("arrow",))?;
        return each(tables.call_method1("iter", (DATASET_BATCH_ROWS,))?);
    }
    // A dataset of files reads only the columns that are needed.
    if is_instance_by_name(source, "pyarrow", "Dataset") {
        return each(crate::frames::batches_of_dataset(source, names)?);
    }
    read_table(source, names)
}

/// Returns the documents of an iterator, in order.
pub(crate) fn iterator_source(iterator: &Bound<'_, PyIterator>, names: &FieldNames) -> DocumentSource {
    let iterator = Arc::new(iterator.clone().unbind());
    let mut reader = Some(ItemReader { names: Arc::new(names.clone()), ..ItemReader::default() });
    let mut pending: VecDeque<SourceItem> = VecDeque::new();
    Box::new(move |call| {
        loop {
            if let Some(SourceItem::Table(table)) = pending.front_mut() {
                match table(call)? {
                    Some(rows) => return Ok(Some(rows)),
                    None => pending.pop_front(),
                };
                continue;
            }
            let mut rows = Vec::new();
            while let Some(SourceItem::Row(_)) = pending.front() {
                if let Some(SourceItem::Row(row)) = pending.pop_front() {
                    rows.push(row);
                }
            }
            if !rows.is_empty() {
                return Ok(Some(Box::new(rows.into_iter())));
            }
            if !pending.is_empty() {
                continue;
            }
            // No reader: the iterator has ended, or raised an exception.
            let Some(lent) = reader.take() else { return Ok(None) };
            let is_table = |item: &SourceItem| matches!(item, SourceItem::Table(_));
            let (lent, batch, is_ended) = read_batch(&iterator, call, lent, ItemReader::read, is_table)?;
            lent.check(is_ended).map_err(|error| call.raise(error))?;
            reader = (!is_ended).then_some(lent);
            pending = batch.into();
        }
    })
}

/// Reads documents from the items of a Python iterable, and checks that some of them have a text.
#[derive(Default)]
struct ItemReader {
    names: Arc<FieldNames>,
    /// Number of items read, including malformed ones.
    rows: u64,
    /// Whether any item had a text.
    has_text: bool,
    /// Names of the fields of the first dict, for error messages.
    first: Vec<String>,
}

impl ItemReader {
    fn read(&mut self, item: &Bound<'_, PyAny>) -> PyResult<SourceItem> {
        self.rows += 1;
        if is_missing(item)? {
            return Ok(SourceItem::Row(Ok(DocumentRow::default())));
        }
        if item.is_instance_of::<PyString>() {
            self.has_text = true;
            let text = read_text(item)?;
            let row = match text {
                Ok(text) => Ok(DocumentRow {
                    text: text.as_deref().unwrap_or_default().to_owned(),
                    ..DocumentRow::default()
                }),
                Err(reason) => Err(format!("the text {reason}")),
            };
            return Ok(SourceItem::Row(row));
        }
        if item.cast::<PyMapping>().is_ok() {
            return self.read_dict(item).map(SourceItem::Row);
        }
        if let Some(table) = table_source(item, &self.names)? {
            self.has_text = true;
            return Ok(SourceItem::Table(table));
        }
        let put = if item.hasattr("__fspath__")? {
            ": put paths in a list"
        } else if item.is_instance_of::<PyBytes>() {
            ": decode it first"
        } else {
            ""
        };
        Err(PyTypeError::new_err(format!(
            "item {}: expected a text, a dict with a field `{}`, or a table, found {}{put}",
            self.rows,
            self.names.texts.join("`, `"),
            item.get_type().name()?
        )))
    }

    /// Reads a dict. If it is malformed, the inner error is the reason.
    fn read_dict(&mut self, item: &Bound<'_, PyAny>) -> PyResult<ParsedRow> {
        if self.first.is_empty() {
            let keys = item.cast::<PyMapping>()?.keys()?;
            self.first = keys.iter().map(|key| Ok(key.str()?.to_string())).collect::<PyResult<_>>()?;
        }
        let names = Arc::clone(&self.names);
        let mut texts = Vec::with_capacity(names.texts.len());
        for name in &names.texts {
            let Some(value) = find_field(item, name)? else { continue };
            self.has_text = true;
            texts.push((name, read_text(&value)?));
        }
        let id = match find_field(item, names.id.as_deref().unwrap_or("id"))? {
            Some(id) => match read_id(&id)? {
                Ok(id) => Some(id),
                Err(reason) => return Ok(Err(reason)),
            },
            None => match &names.id {
                Some(name) => return Ok(Err(format!("no id field `{name}`"))),
                None => None,
            },
        };
        let extra = match &names.extra {
            Some(name) => find_field(item, name)?.map(|value| read_extra(&value)).transpose()?.flatten(),
            None => None,
        };
        let texts = texts
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_ref().map(Option::as_deref).map_err(Clone::clone)));
        Ok(join_texts(texts).map(|text| DocumentRow { id, text, extra }))
    }

    /// Returns an error if no document so far has a text, and the source has ended or [`TEXT_SEARCH_ROWS`] documents
    /// were read.
    fn check(&self, is_ended: bool) -> PyResult<()> {
        if self.has_text || self.rows == 0 || !is_ended && self.rows < TEXT_SEARCH_ROWS {
            return Ok(());
        }
        if self.first.is_empty() {
            return Err(PyValueError::new_err("all items are missing: expected texts, dicts or tables"));
        }
        let first = self.first.join(", ");
        Err(PyValueError::new_err(format!(
            "no document has a field `{}`{}: the first has {first}; select another with option `text`",
            self.names.texts.join("` or `"),
            did_you_mean(&self.names.texts[0], &self.first),
        )))
    }
}

/// Returns the value of a field, or `None` if it is missing. `a.b` is the field `b` of the dict `a`, unless a field `a.b` exists.
fn find_field<'py>(dict: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Ok(dict) = dict.cast_exact::<PyDict>() {
        if let Some(value) = dict.get_item(name)? {
            return Ok(Some(value));
        }
    } else if dict.contains(name)? {
        return dict.get_item(name).map(Some);
    }
    for (dot, _) in name.match_indices('.') {
        if let Some(inner) = find_field(dict, &name[..dot])?.filter(|inner| inner.cast::<PyMapping>().is_ok())
            && let Some(value) = find_field(&inner, &name[dot + 1..])?
        {
            return Ok(Some(value));
        }
    }
    Ok(None)
}
