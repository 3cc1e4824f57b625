//! Documents to insert: fingerprints or texts, with ids or names.

use std::collections::HashMap;

use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use simstore::any::{AnyFingerprints, AnySnapshot, AnyTransaction};
use simstore::{Error, Result};
use simstore_io::{DocumentId, IdRef};

use crate::call::Call;
use crate::errors::one_of_two_error;
use crate::fingerprints::FingerprintColumn;
use crate::id_pairs::{read_id, read_ids};
use crate::profile::map_texts;
use crate::text_profile::TextProfile;
use crate::texts::Texts;

/// Reads the id of a document: a number, or a name that gets a number.
pub(crate) fn document_id(id: Option<&Bound<'_, PyAny>>, name: Option<&str>) -> PyResult<DocumentId> {
    let id = id.ok_or_else(|| {
        PyTypeError::new_err("expected an id: an int, or a str that is the document's name")
    })?;
    match id.cast::<PyString>() {
        Ok(_) if name.is_some() => Err(named_twice_error()),
        Ok(id) => Ok(DocumentId::Name(id.to_str()?.to_owned())),
        Err(_) => read_id(id).map(DocumentId::Number),
    }
}

fn named_twice_error() -> PyErr {
    PyTypeError::new_err("an id that is a str is the document's name: leave the other name out")
}

/// A document to insert.
#[derive(Clone)]
pub(crate) struct NewDocument {
    pub(crate) fingerprint: u128,
    pub(crate) id: DocumentId,
    pub(crate) name: Option<String>,
}

impl NewDocument {
    /// Whether the id is a name. If so, an [`IdAllocator`] allocates the number.
    pub(crate) fn has_name_id(&self) -> bool {
        matches!(self.id, DocumentId::Name(_))
    }

    /// Adds the document to a transaction. Returns `false` if it is already stored under its name.
    pub(crate) fn insert(
        &self,
        transaction: &mut AnyTransaction<'_>,
        numbers: &mut Option<IdAllocator>,
    ) -> Result<bool> {
        insert(transaction, numbers, self.fingerprint, IdRef::from(&self.id), self.name.as_deref())
    }
}

fn insert(
    transaction: &mut AnyTransaction<'_>,
    numbers: &mut Option<IdAllocator>,
    fingerprint: u128,
    id: IdRef<'_>,
    name: Option<&str>,
) -> Result<bool> {
    match (id, name) {
        (IdRef::Number(id), None) => transaction.insert(fingerprint, id)?,
        (IdRef::Number(id), Some(name)) => transaction.insert_named(fingerprint, id, name)?,
        (IdRef::Name(name), _) => {
            let numbers = numbers.as_mut().ok_or_else(|| Error::Bug("names are not numbered".to_owned()))?;
            match numbers.allocate(fingerprint, name)? {
                Some(id) => transaction.insert_named(fingerprint, id, name)?,
                None => return Ok(false),
            }
        }
    }
    Ok(true)
}

/// Allocates numeric ids to documents with names, like `simstore add`: each id is one more than the highest id. If
/// a stored document has the same fingerprint and the same name, it counts as the same document. No other thread
/// may insert at the same time.
pub(crate) struct IdAllocator {
    stored: AnySnapshot,
    /// Next free id; `None` if the last id, 2**64 - 1, is in use.
    next: Option<u64>,
    /// Ids allocated so far, by fingerprint and name.
    allocated: HashMap<(u128, String), u64>,
}

impl IdAllocator {
    pub(crate) fn new(stored: AnySnapshot) -> Result<IdAllocator> {
        let refused =
            |reason: &str| Err(Error::BadArgument(format!("{}: {reason}", stored.path().display())));
        if !stored.keeps_ids() {
            return refused("the store has no ids, and so no names: give numbers as ids");
        }
        if !stored.is_empty() && stored.stats().names == 0 {
            return refused(
                "the ids of the store are numbers: give numbers as ids, or name the documents of another store",
            );
        }
        let next = stored.highest_id().map_or(Some(0), |id| id.checked_add(1));
        Ok(IdAllocator { stored, next, allocated: HashMap::new() })
    }

    /// Returns a new number for a document, or `None` if the document is already stored.
    fn allocate(&mut self, fingerprint: u128, name: &str) -> Result<Option<u64>> {
        let document = (fingerprint, name.to_owned());
        if self.allocated.contains_key(&document) || !ids_of_name(&self.stored, fingerprint, name)?.is_empty()
        {
            return Ok(None);
        }
        let id = self.next.ok_or_else(|| {
            Error::BadArgument(
                "the greatest id, 2**64 - 1, is in use, so no other document can be numbered".to_owned(),
            )
        })?;
        self.next = id.checked_add(1);
        self.allocated.insert(document, id);
        Ok(Some(id))
    }
}

/// Returns the ids of the documents with this fingerprint and name.
pub(crate) fn ids_of_name(stored: &AnySnapshot, fingerprint: u128, name: &str) -> Result<Vec<u64>> {
    if !stored.contains(fingerprint)? {
        return Ok(Vec::new());
    }
    let ids: Vec<u64> = stored.query(fingerprint, 0)?.iter().filter_map(|found| found.id).collect();
    let names = stored.names_of(&ids)?;
    Ok(ids
        .into_iter()
        .zip(names)
        .filter(|(_, other)| other.as_deref() == Some(name))
        .map(|(id, _)| id)
        .collect())
}

/// Documents to insert together.
pub(crate) struct NewDocuments {
    fingerprints: FingerprintInput,
    ids: DocumentIds,
    names: Option<Texts>,
}

enum FingerprintInput {
    Fingerprints(AnyFingerprints),
    Texts(Texts),
    /// Fingerprints that were computed from `Texts`; `None` for texts without features.
    FromTexts(Vec<Option<u128>>),
}

pub(crate) enum DocumentIds {
    Numbers(Vec<u64>),
    Names(Texts),
}

impl NewDocuments {
    /// Reads arrays of the same length. Values of `names` and `texts` may be null; fingerprints and ids may not.
    pub(crate) fn read(
        fingerprints: Option<&Bound<'_, PyAny>>,
        ids: Option<&Bound<'_, PyAny>>,
        names: Option<&Bound<'_, PyAny>>,
        texts: Option<&Bound<'_, PyAny>>,
        bits: u32,
    ) -> PyResult<NewDocuments> {
        let (fingerprints, what) = match (fingerprints, texts) {
            (Some(fingerprints), None) => (
                FingerprintInput::Fingerprints(FingerprintColumn::read_all(fingerprints, Some(bits))?),
                "fingerprints",
            ),
            (None, Some(texts)) => (FingerprintInput::Texts(Texts::read(texts, "text")?), "texts"),
            (given, _) => return Err(one_of_two_error("fingerprints", "texts", given.is_some())),
        };
        let ids = ids.ok_or_else(|| PyTypeError::new_err("expected ids: ints, or names of documents"))?;
        let ids = DocumentIds::read(ids)?;
        if matches!(ids, DocumentIds::Names(_)) && names.is_some() {
            return Err(named_twice_error());
        }
        let names = names.map(|names| Texts::read(names, "name")).transpose()?;
        let entries = NewDocuments { fingerprints, ids, names };
        let (count, ids) = (entries.len(), entries.ids.len());
        for (what_else, len) in [("ids", Some(ids)), ("names", entries.names.as_ref().map(Texts::len))] {
            if let Some(len) = len.filter(|&len| len != count) {
                return Err(PyValueError::new_err(format!(
                    "there are {count} {what}, and {len} {what_else}"
                )));
            }
        }
        Ok(entries)
    }

    pub(crate) fn len(&self) -> usize {
        match &self.fingerprints {
            FingerprintInput::Fingerprints(values) => values.len(),
            FingerprintInput::Texts(texts) => texts.len(),
            FingerprintInput::FromTexts(fingerprints) => fingerprints.len(),
        }
    }

    /// Whether the ids are names. If so, an [`IdAllocator`] allocates the numbers.
    pub(crate) fn has_name_ids(&self) -> bool {
        matches!(self.ids, DocumentIds::Names(_))
    }

    /// Computes the fingerprints of texts, and warns about texts without features.
    pub(crate) fn compute_fingerprints(&mut self, profile: &TextProfile, call: &Call) -> Result<()> {
        let FingerprintInput::Texts(texts) = &self.fingerprints else { return Ok(()) };
        let profile = profile.resolve()?;
        let fingerprints = map_texts(texts, call, |text| profile.fingerprint(text))?;
        let missing = fingerprints.iter().filter(|fingerprint| fingerprint.is_none()).count();
        if missing > 0 {
            call.push_warning(format!(
                "{missing} of {} texts are None, or have no letter and no digit, and so no fingerprint: they are left out",
                fingerprints.len()
            ));
        }
        self.fingerprints = FingerprintInput::FromTexts(fingerprints);
        Ok(())
    }

    pub(crate) fn fingerprint(&self, at: usize) -> Option<u128> {
        match &self.fingerprints {
            FingerprintInput::Fingerprints(values) => values.get(at),
            FingerprintInput::Texts(_) => None,
            FingerprintInput::FromTexts(fingerprints) => fingerprints[at],
        }
    }

    pub(crate) fn id(&self, at: usize) -> IdRef<'_> {
        self.ids.get(at)
    }

    pub(crate) fn name(&self, at: usize) -> Option<&str> {
        self.names.as_ref().and_then(|names| names.get(at))
    }

    /// Adds one document to a transaction. Returns `false` if it has no fingerprint or is already stored under its name.
    pub(crate) fn insert(
        &self,
        at: usize,
        transaction: &mut AnyTransaction<'_>,
        numbers: &mut Option<IdAllocator>,
    ) -> Result<bool> {
        let Some(fingerprint) = self.fingerprint(at) else { return Ok(false) };
        insert(transaction, numbers, fingerprint, self.id(at), self.name(at))
    }
}

impl DocumentIds {
    /// Reads numbers or names. Null is an error.
    pub(crate) fn read(ids: &Bound<'_, PyAny>) -> PyResult<DocumentIds> {
        // The ids are read twice, so an iterator is copied to a list.
        let ids = if ids.hasattr("__len__")? {
            ids.clone()
        } else {
            ids.py().get_type::<pyo3::types::PyList>().call1((ids,))?
        };
        let error = match read_ids(&ids) {
            Ok(numbers) => return Ok(DocumentIds::Numbers(numbers)),
            // Exceptions such as Ctrl-C are not about the ids.
            Err(error) if !error.is_instance_of::<PyException>(ids.py()) => return Err(error),
            Err(error) => error,
        };
        let Ok(names) = Texts::read(&ids, "id") else { return Err(error) };
        match (0..names.len()).find(|&at| names.get(at).is_none()) {
            None => Ok(DocumentIds::Names(names)),
            Some(at) if names.len() > 1 => {
                Err(PyValueError::new_err(format!("id {at} is missing: leave the document out")))
            }
            Some(_) => Err(error),
        }
    }

    pub(crate) fn get(&self, at: usize) -> IdRef<'_> {
        match self {
            DocumentIds::Numbers(ids) => IdRef::Number(ids[at]),
            DocumentIds::Names(names) => IdRef::Name(names.get(at).unwrap_or_default()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            DocumentIds::Numbers(ids) => ids.len(),
            DocumentIds::Names(names) => names.len(),
        }
    }
}
