//! Texts that are added to a store of similar documents.

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

use crate::border::is_of;
use crate::entries::DocumentIds;
use crate::gate::{self, Call};
use crate::texts::Texts;

/// Texts between two questions whether to go on.
const TEXT_BATCH: usize = 1024;

/// An open store.
pub(crate) struct OpenSimilarStore {
    pub(crate) documents: SimilarDocuments,
    /// Locked to number documents; shared to add documents that have numbers.
    numbering: RwLock<()>,
    /// Whether calls that write wait for the disk.
    is_synced: bool,
}

/// Texts to add, and their ids or names.
pub(crate) struct TextInput {
    texts: Texts,
    /// `None`: by the next numbers.
    ids: Option<DocumentIds>,
}

impl TextInput {
    /// Reads columns of one length, or a single text with its id.
    pub(crate) fn read(texts: &Bound<'_, PyAny>, ids: Option<&Bound<'_, PyAny>>) -> PyResult<TextInput> {
        let is_one = texts.is_instance_of::<PyString>();
        let listed = |one: &Bound<'_, PyAny>| if is_one { in_list(one) } else { Ok(one.clone().unbind()) };
        let (py, ids) = (texts.py(), ids.filter(|ids| !ids.is_none()));
        let given = TextInput {
            texts: texts_of(listed(texts)?.bind(py))?,
            ids: ids.map(|ids| DocumentIds::read(listed(ids)?.bind(py))).transpose()?,
        };
        match given.ids.as_ref().map(DocumentIds::len).filter(|&ids| ids != given.texts.len()) {
            Some(ids) => {
                Err(PyValueError::new_err(format!("there are {} texts, and {ids} ids", given.texts.len())))
            }
            None => Ok(given),
        }
    }
}

/// Reads the ids or names that are asked for: a column, or a single one.
pub(crate) fn asked(ids: &Bound<'_, PyAny>) -> PyResult<DocumentIds> {
    let is_one = ids.is_instance_of::<PyString>() || !ids.hasattr("__iter__")?;
    if is_one { DocumentIds::read(in_list(ids)?.bind(ids.py())) } else { DocumentIds::read(ids) }
}

fn in_list(one: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    Ok(PyList::new(one.py(), [one])?.into_any().unbind())
}

/// Texts, but no frames: to iterate these gives the names of their columns.
pub(crate) fn texts_of(object: &Bound<'_, PyAny>) -> PyResult<Texts> {
    let is_frame = is_of(object, "pandas", "DataFrame") || is_of(object, "polars", "DataFrame");
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

    /// Makes what was written durable, if that is asked for.
    pub(crate) fn sync(&self) -> Result<()> {
        if self.is_synced { self.documents.store().sync() } else { Ok(()) }
    }

    /// Does something with the document under the number that it has, or gets, and its name.
    fn called<T>(
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

    /// Adds a document, also if a similar one is stored. Returns the id under which it is stored.
    pub(crate) fn add(&self, prepared: &PreparedText, id: Option<IdRef<'_>>) -> Result<u64> {
        self.called(id, |id, name| {
            if let Some(name) = name
                && let Some(stored) = self.documents.find_id(prepared, name)?
            {
                return Ok(stored);
            }
            self.documents.insert(prepared, id, name).map(|_| id)
        })
    }

    /// Adds a document unless a similar one is stored. Returns its id, or the similar document.
    pub(crate) fn add_if_new(
        &self,
        prepared: &PreparedText,
        id: Option<IdRef<'_>>,
    ) -> Result<(Option<u64>, Option<SimilarDocument>)> {
        self.called(id, |id, name| {
            Ok(match self.documents.add_prepared(prepared, id, name)? {
                SimilarAddition::Added => (Some(id), None),
                SimilarAddition::SimilarTo(similar) => (None, similar.into_iter().next()),
                SimilarAddition::Empty => (None, None),
            })
        })
    }

    /// The documents that ids or names mean: of each its number, or the numbers of all documents of its name, ascending. All names of
    /// the store are read for this.
    pub(crate) fn documents_of(&self, asked: &DocumentIds) -> Result<Vec<Vec<u64>>> {
        let names = match asked {
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
    pub(crate) fn delete(&self, asked: &DocumentIds, call: &Call) -> Result<Vec<bool>> {
        let one = |(at, ids): (usize, Vec<u64>)| {
            call.check()?;
            call.step("documents", at as u64 + 1, asked.len() as u64);
            let mut is_there = false;
            for id in ids {
                is_there |= self.documents.remove(id)?;
            }
            Ok(is_there)
        };
        let deleted = self.documents_of(asked)?.into_iter().enumerate().map(one).collect();
        self.sync()?;
        deleted
    }

    /// The texts of the documents that ids or names mean.
    pub(crate) fn texts(&self, asked: &DocumentIds, call: &Call) -> Result<Vec<Option<String>>> {
        let documents = self.documents_of(asked)?;
        in_parallel(call, documents.len(), |at| match documents[at].first() {
            Some(&id) => self.documents.text(id),
            None => Ok(None),
        })
    }

    /// Names are for stores that have begun with names.
    fn check_naming(&self, given: &TextInput) -> Result<()> {
        let snapshot = self.documents.store().snapshot();
        if matches!(given.ids, Some(DocumentIds::Names(_))) && !snapshot.is_empty() && snapshot.stats().names == 0 {
            return Err(Error::BadArgument(format!(
                "{}: the ids of the store are numbers: give numbers as ids, or name the documents of another store",
                snapshot.path().display()
            )));
        }
        Ok(())
    }

    /// Does something with each text that has features, in order.
    pub(crate) fn each<T: Default>(
        &self,
        given: &TextInput,
        call: &Call,
        mut one: impl FnMut(&PreparedText, Option<IdRef<'_>>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.check_naming(given)?;
        ensure_pool()?;
        let (len, mut done, mut missing) = (given.texts.len(), Vec::with_capacity(given.texts.len()), 0);
        let mut some = |start: usize| {
            let prepare = |at| {
                let prepared = given.texts.get(at).map(|text| self.documents.prepare(text));
                prepared.transpose().map(Option::flatten).map_err(|error| of_text(at, error))
            };
            let end = len.min(start + TEXT_BATCH);
            let prepared: Vec<_> = (start..end).into_par_iter().map(prepare).collect();
            for (at, prepared) in (start..).zip(prepared) {
                call.check()?;
                // The texts before one that fails are added.
                let prepared = prepared?;
                let id = given.ids.as_ref().map(|ids| ids.get(at));
                missing += usize::from(prepared.is_none());
                let made = prepared.map(|prepared| one(&prepared, id)).transpose();
                done.push(made.map_err(|error| of_text(at, error))?.unwrap_or_default());
            }
            call.step("texts", end as u64, len as u64);
            Ok(())
        };
        let result = (0..len).step_by(TEXT_BATCH).try_for_each(&mut some);
        self.sync()?;
        if missing > 0 {
            call.warn_of(format!(
                "{missing} of {len} texts are None, or white space alone, and so have nothing to compare: they are not stored"
            ));
        }
        result.map(|()| done)
    }
}

/// The error of a text among others.
fn of_text(at: usize, error: Error) -> Error {
    match error {
        Error::BadArgument(reason) => Error::BadArgument(format!("text {at}: {reason}")),
        error => error,
    }
}

/// Does something for each of so many, on all cores.
pub(crate) fn in_parallel<T: Default + Send>(
    call: &Call,
    count: usize,
    one: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let mut done = Vec::with_capacity(count);
    for start in (0..count).step_by(TEXT_BATCH) {
        let end = count.min(start + TEXT_BATCH);
        done.extend(gate::in_parallel(call, end - start, 1, |at| one(start + at))?);
        call.step("texts", end as u64, count as u64);
    }
    Ok(done)
}
