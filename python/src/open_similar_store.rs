//! The open store behind the class `SimilarStore`, which finds documents by similarity: adds, deletes and reads
//! texts.

use std::collections::{BTreeSet, HashMap};
use std::sync::{PoisonError, RwLock};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyMapping, PyString};
use rayon::prelude::*;
use simstore::threads::ensure_pool;
use simstore::{Error, Result};
use simstore_io::IdRef;
use simstore_text::{PreparedText, SimilarAddition, SimilarDocument, SimilarDocuments};

use crate::array_input::is_instance_by_name;
use crate::call::{self, Call};
use crate::new_documents::DocumentIds;
use crate::texts::Texts;

/// Number of texts that are processed in parallel before the progress is reported.
const TEXT_BATCH: usize = 1024;

/// An open store that finds documents by the similarity of their texts.
pub(crate) struct OpenSimilarStore {
    pub(crate) documents: SimilarDocuments,
    /// Lock that prevents two threads from allocating the same id. It is held exclusively while an id is allocated
    /// and its document is added, and shared while a document with a given numeric id is added.
    numbering: RwLock<()>,
    /// Whether writes wait until the data is on the disk.
    is_synced: bool,
}

/// Texts to add, and their ids or names.
pub(crate) struct TextInput {
    texts: Texts,
    /// `None` if each text gets the next free number.
    ids: Option<DocumentIds>,
}

impl TextInput {
    /// Reads columns of the same length, or a single text with its id.
    pub(crate) fn read(texts: &Bound<'_, PyAny>, ids: Option<&Bound<'_, PyAny>>) -> PyResult<TextInput> {
        let is_one = texts.is_instance_of::<PyString>();
        let listed =
            |one: &Bound<'_, PyAny>| if is_one { list_of_one(one) } else { Ok(one.clone().unbind()) };
        let (py, ids) = (texts.py(), ids.filter(|ids| !ids.is_none()));
        let input = TextInput {
            texts: read_texts(listed(texts)?.bind(py))?,
            ids: ids.map(|ids| DocumentIds::read(listed(ids)?.bind(py))).transpose()?,
        };
        match input.ids.as_ref().map(DocumentIds::len).filter(|&ids| ids != input.texts.len()) {
            Some(ids) => {
                Err(PyValueError::new_err(format!("there are {} texts, and {ids} ids", input.texts.len())))
            }
            None => Ok(input),
        }
    }
}

/// Reads a Python argument: a column of ids, a column of names, a single id, or a single name.
pub(crate) fn read_ids(ids: &Bound<'_, PyAny>) -> PyResult<DocumentIds> {
    let is_one = ids.is_instance_of::<PyString>() || !ids.hasattr("__iter__")?;
    if is_one { DocumentIds::read(list_of_one(ids)?.bind(ids.py())) } else { DocumentIds::read(ids) }
}

fn list_of_one(one: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    Ok(PyList::new(one.py(), [one])?.into_any().unbind())
}

/// Reads texts. Frames and dicts are refused: iterating over them yields column names.
pub(crate) fn read_texts(object: &Bound<'_, PyAny>) -> PyResult<Texts> {
    let is_frame = is_instance_by_name(object, "pandas", "DataFrame")
        || is_instance_by_name(object, "polars", "DataFrame");
    if is_frame || object.cast::<PyMapping>().is_ok() {
        return Err(PyTypeError::new_err(format!(
            "expected texts, found {}: give the column that holds them",
            object.get_type().name()?
        )));
    }
    Texts::read(object, "text")
}

impl OpenSimilarStore {
    pub(crate) fn new(documents: SimilarDocuments, is_synced: bool) -> OpenSimilarStore {
        OpenSimilarStore { documents, numbering: RwLock::default(), is_synced }
    }

    /// Makes all writes durable, if the store's durability requires it.
    pub(crate) fn sync(&self) -> Result<()> {
        if self.is_synced { self.documents.store().sync() } else { Ok(()) }
    }

    /// Runs `work` with the document's numeric id and its name. If `id` is a name or `None`, allocates the next free
    /// number as the numeric id.
    fn with_number<T>(
        &self,
        id: Option<IdRef<'_>>,
        work: impl FnOnce(u64, Option<&str>) -> Result<T>,
    ) -> Result<T> {
        if let Some(IdRef::Number(id)) = id {
            let _shared = self.numbering.read().unwrap_or_else(PoisonError::into_inner);
            return work(id, None);
        }
        let _alone = self.numbering.write().unwrap_or_else(PoisonError::into_inner);
        let name = id.and_then(|id| if let IdRef::Name(name) = id { Some(name) } else { None });
        work(self.documents.next_id()?, name)
    }

    /// Adds a document, even if a similar one is stored. Returns the id under which the document is stored.
    pub(crate) fn add(&self, prepared: &PreparedText, id: Option<IdRef<'_>>) -> Result<u64> {
        self.with_number(id, |id, name| {
            if let Some(name) = name
                && let Some(stored) = self.documents.find_id(prepared, name)?
            {
                return Ok(stored);
            }
            self.documents.insert(prepared, id, name).map(|_| id)
        })
    }

    /// Adds a document unless a similar one is stored. Returns the id of the added document, or the most similar
    /// stored document. Both are `None` for a text without features.
    pub(crate) fn add_if_new(
        &self,
        prepared: &PreparedText,
        id: Option<IdRef<'_>>,
    ) -> Result<(Option<u64>, Option<SimilarDocument>)> {
        self.with_number(id, |id, name| {
            Ok(match self.documents.add_prepared(prepared, id, name)? {
                SimilarAddition::Added => (Some(id), None),
                SimilarAddition::SimilarTo(similar) => (None, similar.into_iter().next()),
                SimilarAddition::Empty => (None, None),
            })
        })
    }

    /// Returns the numeric ids for each requested id or name: the number itself, or the numbers of all documents with the name, ascending.
    /// For names, reads all names of the store.
    pub(crate) fn resolve_ids(&self, wanted: &DocumentIds) -> Result<Vec<Vec<u64>>> {
        let names = match wanted {
            DocumentIds::Numbers(ids) => return Ok(ids.iter().map(|&id| vec![id]).collect()),
            DocumentIds::Names(names) => (0..names.len()).map(move |at| names.get(at).unwrap_or_default()),
        };
        let mut named: HashMap<String, BTreeSet<u64>> = HashMap::new();
        let wanted = names.clone().map(str::to_owned).collect();
        for pair in self.documents.store().snapshot().pairs_of_names(&wanted)? {
            if let Some(name) = pair.name {
                named.entry(name).or_default().insert(pair.id);
            }
        }
        Ok(names.map(|name| named.get(name).into_iter().flatten().copied().collect()).collect())
    }

    /// Removes documents by ids or names. Returns whether each was stored.
    pub(crate) fn delete(&self, wanted: &DocumentIds, call: &Call) -> Result<Vec<bool>> {
        let one = |(at, ids): (usize, Vec<u64>)| {
            call.check()?;
            call.report_step("documents", at as u64 + 1, wanted.len() as u64);
            let mut was_stored = false;
            for id in ids {
                was_stored |= self.documents.remove(id)?;
            }
            Ok(was_stored)
        };
        let deleted = self.resolve_ids(wanted)?.into_iter().enumerate().map(one).collect();
        self.sync()?;
        deleted
    }

    /// Returns the texts of documents by ids or names; `None` for documents that are not stored.
    pub(crate) fn texts(&self, wanted: &DocumentIds, call: &Call) -> Result<Vec<Option<String>>> {
        let documents = self.resolve_ids(wanted)?;
        map_range(call, documents.len(), |at| match documents[at].first() {
            Some(&id) => self.documents.text(id),
            None => Ok(None),
        })
    }

    /// Returns an error if the ids in `input` are names, but all documents of the store have numbers only.
    fn check_naming(&self, input: &TextInput) -> Result<()> {
        let snapshot = self.documents.store().snapshot();
        if matches!(input.ids, Some(DocumentIds::Names(_)))
            && !snapshot.is_empty()
            && snapshot.stats().names == 0
        {
            return Err(Error::BadArgument(format!(
                "{}: the ids of the store are numbers: give numbers as ids, or name the documents of another store",
                snapshot.path().display()
            )));
        }
        Ok(())
    }

    /// Calls `one` with each text that has features, in order, and returns the results. The result for a text
    /// without features is the default value, and a warning is shown.
    pub(crate) fn for_each_text<T: Default>(
        &self,
        input: &TextInput,
        call: &Call,
        mut one: impl FnMut(&PreparedText, Option<IdRef<'_>>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.check_naming(input)?;
        ensure_pool()?;
        let (len, mut done, mut missing) = (input.texts.len(), Vec::with_capacity(input.texts.len()), 0);
        let mut add_batch = |start: usize| {
            let prepare = |at| {
                let prepared = input.texts.get(at).map(|text| self.documents.prepare(text));
                prepared.transpose().map(Option::flatten).map_err(|error| error_in_text(at, error))
            };
            let end = len.min(start + TEXT_BATCH);
            let prepared: Vec<_> = (start..end).into_par_iter().map(prepare).collect();
            for (at, prepared) in (start..).zip(prepared) {
                call.check()?;
                // If a text fails, the texts before it stay added.
                let prepared = prepared?;
                let id = input.ids.as_ref().map(|ids| ids.get(at));
                missing += usize::from(prepared.is_none());
                let result = prepared.map(|prepared| one(&prepared, id)).transpose();
                done.push(result.map_err(|error| error_in_text(at, error))?.unwrap_or_default());
            }
            call.report_step("texts", end as u64, len as u64);
            Ok(())
        };
        let result = (0..len).step_by(TEXT_BATCH).try_for_each(&mut add_batch);
        self.sync()?;
        if missing > 0 {
            call.push_warning(format!(
                "{missing} of {len} texts are None, or white space alone, and so have nothing to compare: they are not stored"
            ));
        }
        result.map(|()| done)
    }
}

/// Adds the position of a text to its error.
fn error_in_text(at: usize, error: Error) -> Error {
    match error {
        Error::BadArgument(reason) => Error::BadArgument(format!("text {at}: {reason}")),
        error => error,
    }
}

/// Applies a function to the numbers below `count`, on all cores, and reports progress.
pub(crate) fn map_range<T: Default + Send>(
    call: &Call,
    count: usize,
    one: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let mut done = Vec::with_capacity(count);
    for start in (0..count).step_by(TEXT_BATCH) {
        let end = count.min(start + TEXT_BATCH);
        done.extend(call::in_parallel(call, end - start, 1, |at| one(start + at))?);
        call.report_step("texts", end as u64, count as u64);
    }
    Ok(done)
}
