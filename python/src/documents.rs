//! Documents of a Python source, converted for the Rust crates.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyString};
use simstore::Error;
use simstore::error::excerpt;
use simstore_io::{Document, DocumentId, MAX_NAME_BYTES};

use crate::array_input::is_instance_by_name;
use crate::call::Call;
use crate::text_error::{MaybeText, TextError};
use crate::texts::{is_missing, read_text};

/// Reason why a document is malformed if its id is neither a text nor an unsigned integer.
pub(crate) const INVALID_ID: &str = "its id is neither a text nor an integer from 0 to 2**64 - 1";

/// Names of the fields (or columns) that have a document's text, its id, and the value that decides whether it is
/// kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldNames {
    /// Fields that form the text, joined by newlines.
    pub(crate) texts: Vec<String>,
    /// Field of the id. If this is `None`, the id is the value of the field `id`, or the row number if there is no
    /// such field.
    pub(crate) id: Option<String>,
    /// Field with the value that decides which document of a cluster is kept.
    pub(crate) extra: Option<String>,
}

/// A row, or the reason why it is malformed.
pub(crate) type ParsedRow = Result<DocumentRow, String>;

/// The values of a row.
#[derive(Debug, Default)]
pub(crate) struct DocumentRow {
    /// `None` if the id is the row number.
    pub(crate) id: Option<DocumentId>,
    pub(crate) text: String,
    /// Value that decides which document of a cluster is kept.
    pub(crate) extra: Option<String>,
}

/// A batch of rows.
pub(crate) type DocumentRows = Box<dyn Iterator<Item = ParsedRow> + Send>;

/// A source of documents: a function that returns the next batch of rows, or `None` at the end.
pub(crate) type DocumentSource = Box<dyn FnMut(&Call) -> simstore::Result<Option<DocumentRows>> + Send>;

/// Joins the texts of several named fields by newlines. Missing texts are skipped; without texts, the result is empty.
///
/// # Errors
/// If a field is malformed; the error is the reason.
pub(crate) fn join_texts<'a>(
    texts: impl IntoIterator<Item = (&'a str, MaybeText<&'a str>)>,
) -> Result<String, String> {
    let mut joined: Option<String> = None;
    for (name, text) in texts {
        match (text.map_err(|reason| field_error(name, &reason))?, &mut joined) {
            (Some(text), Some(joined)) => joined.extend(["\n", text]),
            (Some(text), None) => joined = Some(text.to_owned()),
            (None, _) => {}
        }
    }
    Ok(joined.unwrap_or_default())
}

/// Describes why a field is not a text.
pub(crate) fn field_error(name: &str, reason: &TextError) -> String {
    format!("the field `{}` {reason}", excerpt(name))
}

/// Makes an id that is a name. If the name is too long, the error is the reason.
pub(crate) fn name_id(name: &str) -> Result<DocumentId, String> {
    if name.len() > MAX_NAME_BYTES {
        return Err(format!("its id has {} bytes: at most {MAX_NAME_BYTES} are allowed", name.len()));
    }
    Ok(DocumentId::Name(name.to_owned()))
}

/// Reads an id from a Python object. If the id is malformed, the inner error is the reason.
pub(crate) fn read_id(object: &Bound<'_, PyAny>) -> PyResult<Result<DocumentId, String>> {
    if object.is_instance_of::<PyString>() {
        return Ok(match read_text(object)? {
            Ok(text) => name_id(text.as_deref().unwrap_or_default()),
            Err(reason) => Err(format!("its id {reason}")),
        });
    }
    // Integers of numpy have `__index__`.
    let number = match object.cast::<PyInt>() {
        Ok(_) if object.is_instance_of::<PyBool>() => None,
        Ok(number) => Some(number.as_any().clone()),
        Err(_) if object.hasattr("__index__")? => Some(object.call_method0("__index__")?),
        Err(_) => None,
    };
    let number = number.and_then(|number| number.extract::<u64>().ok());
    Ok(number.map(DocumentId::Number).ok_or_else(|| INVALID_ID.to_owned()))
}

/// Reads a value that decides which document of a cluster is kept, as text. Dates become ISO 8601. Numbers of all
/// types become decimal text.
pub(crate) fn read_extra(object: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if is_missing(object)? {
        return Ok(None);
    }
    if object.is_instance_of::<PyString>() {
        return Ok(read_text(object)?.ok().flatten().map(|text| text.to_string()));
    }
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(Some(value.is_true().to_string()));
    }
    if object.hasattr("isoformat")? {
        return object.call_method0("isoformat")?.extract().map(Some);
    }
    // For numpy scalars: a date's `str` is ISO 8601; other values are converted to Python by `item`.
    if let Ok(kind) = object.getattr("dtype").and_then(|dtype| dtype.getattr("kind")?.extract::<char>()) {
        if kind == 'M' {
            let date: String = object.str()?.extract()?;
            return Ok((date != "NaT").then_some(date));
        }
        if let Ok(value) = object.call_method0("item")
            && !value.is(object)
            && !value.get_type().is(object.get_type())
        {
            return read_extra(&value);
        }
    }
    // Durations, and integer enumerations, whose text differs from their number.
    for number in ["total_seconds", "__index__"] {
        if let Ok(number) = object.call_method0(number) {
            return number.repr()?.extract().map(Some);
        }
    }
    // The text of a decimal number is exact.
    if is_instance_by_name(object, "decimal", "Decimal") {
        return object.str()?.extract().map(Some);
    }
    match object.call_method0("__float__") {
        Ok(number) => number.repr()?.extract().map(Some),
        Err(_) => object.str()?.extract().map(Some),
    }
}

/// Positions of the malformed rows, ascending, shared with the [`DocumentIter`] that adds them.
pub(crate) type MalformedRows = Arc<Mutex<Vec<u64>>>;

/// Iterates over the documents of a source, and collects the malformed rows.
pub(crate) struct DocumentIter {
    documents: DocumentSource,
    rows: DocumentRows,
    call: Arc<Call>,
    /// Position of the next row in the source.
    row: u64,
    malformed: MalformedRows,
}

impl DocumentIter {
    pub(crate) fn new(documents: DocumentSource, call: &Arc<Call>) -> (DocumentIter, MalformedRows) {
        let malformed = MalformedRows::default();
        let (rows, call) = (Box::new(std::iter::empty()), Arc::clone(call));
        (DocumentIter { documents, rows, call, row: 0, malformed: Arc::clone(&malformed) }, malformed)
    }
}

impl Iterator for DocumentIter {
    type Item = simstore::Result<Document>;

    fn next(&mut self) -> Option<Self::Item> {
        let parsed = loop {
            match self.rows.next() {
                Some(parsed) => break parsed,
                None => match (self.documents)(&self.call) {
                    Ok(Some(rows)) => self.rows = rows,
                    Ok(None) => return None,
                    Err(error) => return Some(Err(error)),
                },
            }
        };
        let row = self.row;
        self.row += 1;
        Some(match parsed {
            Ok(DocumentRow { id, text, extra }) => {
                Ok(Document { extra, ..Document::new(id.unwrap_or(DocumentId::Number(row)), text) })
            }
            Err(reason) => {
                self.malformed.lock().unwrap_or_else(PoisonError::into_inner).push(row);
                let reason = format!("document {}: {reason}", row + 1);
                Err(Error::BadInput { path: "-".into(), line: self.row, reason })
            }
        })
    }
}
