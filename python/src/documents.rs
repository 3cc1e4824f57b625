//! Documents that are handed over, on their way to the library.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyIterator, PyMapping, PyString};
use simstore::Error;
use simstore_corpus::dedup::Text;
use simstore_corpus::{DocumentId, MAX_NAME_BYTES};

use crate::gate::Call;
use crate::source::FieldNames;
use crate::texts::{is_missing, text_of};

/// Dicts that are taken from an iterator at a time, and how long that may take if there is one.
const TAKEN: usize = 256;
const TAKEN_WITHIN: Duration = Duration::from_millis(20);
/// Dicts in which a text is looked for before all are given up, as in files.
const SEARCHED: u64 = 1000;

/// Why a missing id is none.
pub(crate) const NO_ID: &str = "its id is neither a text nor an integer from 0 to 2**64 - 1";

/// A document, or why it is none.
pub(crate) type Pulled = Result<Row, String>;

/// What a row says.
#[derive(Debug, Default)]
pub(crate) struct Row {
    /// `None`: its number.
    pub(crate) id: Option<DocumentId>,
    pub(crate) text: String,
    pub(crate) extra: Option<String>,
}

/// Some rows that are there.
pub(crate) type Rows = Box<dyn Iterator<Item = Pulled> + Send>;

/// Gives some rows after the other; `None` at the end.
pub(crate) type Documents = Box<dyn FnMut(&Call) -> simstore::Result<Option<Rows>> + Send>;

/// The texts of several fields as one; an empty one if there are none.
pub(crate) fn joined<'a>(texts: impl IntoIterator<Item = Option<&'a str>>) -> String {
    let mut texts = texts.into_iter().flatten();
    let mut joined = texts.next().unwrap_or_default().to_owned();
    texts.for_each(|text| joined.extend(["\n", text]));
    joined
}

/// An id that is a text.
pub(crate) fn name(name: &str) -> Result<DocumentId, String> {
    if name.len() > MAX_NAME_BYTES {
        return Err(format!("its id has {} bytes: at most {MAX_NAME_BYTES} are allowed", name.len()));
    }
    Ok(DocumentId::Name(name.to_owned()))
}

/// An id as Python has it.
pub(crate) fn id_of(object: &Bound<'_, PyAny>) -> PyResult<Result<DocumentId, String>> {
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(name(&text.to_cow()?));
    }
    // An integer of numpy is one by `__index__`.
    let number = match object.cast::<PyInt>() {
        Ok(_) if object.is_instance_of::<PyBool>() => None,
        Ok(number) => Some(number.as_any().clone()),
        Err(_) if object.hasattr("__index__")? => Some(object.call_method0("__index__")?),
        Err(_) => None,
    };
    let number = number.and_then(|number| number.extract::<u64>().ok());
    Ok(number.map(DocumentId::Number).ok_or_else(|| NO_ID.to_owned()))
}

/// A value that decides which document is kept: dates as ISO 8601, numbers as they are.
pub(crate) fn extra_of(object: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if is_missing(object)? {
        return Ok(None);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Some(text.to_cow()?.into_owned()));
    }
    if object.hasattr("isoformat")? {
        return object.call_method0("isoformat")?.extract().map(Some);
    }
    if object.is_instance_of::<PyInt>() || object.is_instance_of::<PyFloat>() {
        return object.repr()?.extract().map(Some);
    }
    object.str()?.extract().map(Some)
}

/// Some of what an iterator gives, and whether it is at its end. It is asked in the thread that called: it may belong to that, and
/// signals come there.
pub(crate) fn pull<S: Send + 'static, T: Send + 'static>(
    iterator: &Arc<Py<PyIterator>>,
    call: &Call,
    mut lent: S,
    read: impl Fn(&mut S, &Bound<'_, PyAny>) -> PyResult<T> + Send + 'static,
) -> simstore::Result<(S, Vec<T>, bool)> {
    let iterator = Arc::clone(iterator);
    call.in_caller(move |py| {
        let started = Instant::now();
        let mut iterator = iterator.bind(py).clone();
        let mut taken = Vec::new();
        while taken.len() < TAKEN && (taken.is_empty() || started.elapsed() < TAKEN_WITHIN) {
            match iterator.next() {
                Some(item) => taken.push(read(&mut lent, &item?)?),
                None => return Ok((lent, taken, true)),
            }
        }
        Ok((lent, taken, false))
    })
}

/// Dicts that an iterator gives.
pub(crate) fn dicts(iterator: &Bound<'_, PyIterator>, names: &FieldNames) -> Documents {
    let iterator = Arc::new(iterator.clone().unbind());
    let mut seen = Some(Seen { names: Arc::new(names.clone()), ..Seen::default() });
    Box::new(move |call| {
        // At its end, or after an exception.
        let Some(lent) = seen.take() else { return Ok(None) };
        let (lent, rows, is_ended) = pull(&iterator, call, lent, Seen::read)?;
        lent.check(is_ended).map_err(|error| call.raise(error))?;
        seen = (!is_ended).then_some(lent);
        Ok(Some(Box::new(rows.into_iter())))
    })
}

/// What has been seen of dicts.
#[derive(Default)]
struct Seen {
    names: Arc<FieldNames>,
    rows: u64,
    has_text: bool,
    /// The fields of the first.
    first: Vec<String>,
}

impl Seen {
    /// Reads a dict: a reason if it is malformed.
    fn read(&mut self, item: &Bound<'_, PyAny>) -> PyResult<Pulled> {
        let Ok(dict) = item.cast::<PyMapping>() else {
            let found = item.get_type().name()?;
            let put =
                if item.is_instance_of::<PyString>() { ": put it in a dict, {\"text\": ...}" } else { "" };
            return Err(PyTypeError::new_err(format!(
                "document {}: expected a dict with a field `{}`, found {found}{put}",
                self.rows + 1,
                self.names.texts.join("`, `")
            )));
        };
        if self.rows == 0 {
            self.first =
                dict.keys()?.iter().map(|key| Ok(key.str()?.to_string())).collect::<PyResult<_>>()?;
        }
        self.rows += 1;
        let names = Arc::clone(&self.names);
        let mut texts = Vec::with_capacity(names.texts.len());
        for name in &names.texts {
            let Some(value) = look_up(item, name)? else { continue };
            self.has_text = true;
            match text_of(&value) {
                Ok(text) => texts.push(text),
                Err(_) => {
                    return Ok(Err(format!(
                        "the field `{name}` is {}, not a text",
                        value.get_type().name()?
                    )));
                }
            }
        }
        let id = match look_up(item, names.id.as_deref().unwrap_or("id"))? {
            Some(id) => match id_of(&id)? {
                Ok(id) => Some(id),
                Err(reason) => return Ok(Err(reason)),
            },
            None => match &names.id {
                Some(name) => return Ok(Err(format!("there is no field `{name}`, which holds the id"))),
                None => None,
            },
        };
        let extra = match &names.extra {
            Some(name) => look_up(item, name)?.map(|value| extra_of(&value)).transpose()?.flatten(),
            None => None,
        };
        let text = joined(texts.iter().map(|text| text.as_deref()));
        Ok(Ok(Row { id, text, extra }))
    }

    /// Refuses documents of which none has a text field.
    fn check(&self, is_ended: bool) -> PyResult<()> {
        if self.has_text || self.rows == 0 || !is_ended && self.rows < SEARCHED {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "no document has a field `{}`: the first has {}; option `text` names another",
            self.names.texts.join("` or `"),
            self.first.join(", ")
        )))
    }
}

/// The value of a field, if it is there: `a.b` is the field `b` of the dict `a`, unless there is a field `a.b`.
fn look_up<'py>(dict: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Ok(dict) = dict.cast_exact::<PyDict>() {
        if let Some(value) = dict.get_item(name)? {
            return Ok(Some(value));
        }
    } else if dict.contains(name)? {
        return dict.get_item(name).map(Some);
    }
    for (dot, _) in name.match_indices('.') {
        if let Some(inner) = look_up(dict, &name[..dot])?.filter(|inner| inner.cast::<PyMapping>().is_ok())
            && let Some(value) = look_up(&inner, &name[dot + 1..])?
        {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// The rows that are malformed, ascending.
pub(crate) type Malformed = Arc<Mutex<Vec<u64>>>;

/// Documents as the library takes them, one after the other.
pub(crate) struct Handed {
    documents: Documents,
    rows: Rows,
    call: Arc<Call>,
    /// Rows that have been read.
    row: u64,
    malformed: Malformed,
}

impl Handed {
    pub(crate) fn new(documents: Documents, call: &Arc<Call>) -> (Handed, Malformed) {
        let malformed = Malformed::default();
        let (rows, call) = (Box::new(std::iter::empty()), Arc::clone(call));
        (Handed { documents, rows, call, row: 0, malformed: Arc::clone(&malformed) }, malformed)
    }
}

impl Iterator for Handed {
    type Item = simstore::Result<Text>;

    fn next(&mut self) -> Option<Self::Item> {
        let pulled = loop {
            match self.rows.next() {
                Some(pulled) => break pulled,
                None => match (self.documents)(&self.call) {
                    Ok(Some(rows)) => self.rows = rows,
                    Ok(None) => return None,
                    Err(error) => return Some(Err(error)),
                },
            }
        };
        let row = self.row;
        self.row += 1;
        Some(match pulled {
            Ok(Row { id, text, extra }) => {
                Ok(Text { id: id.unwrap_or(DocumentId::Number(row)), text, extra })
            }
            Err(reason) => {
                self.malformed.lock().unwrap_or_else(PoisonError::into_inner).push(row);
                let reason = format!("document {}: {reason}", row + 1);
                Err(Error::BadInput { path: "-".into(), line: self.row, reason })
            }
        })
    }
}
