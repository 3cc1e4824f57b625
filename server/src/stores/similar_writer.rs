//! Additions and deletions in a store of similar documents.

use simstore::{Error, Store};
use simstore_io::DocumentId;
use simstore_text::{PreparedText, SimilarAddition, SimilarDocument, SimilarDocuments};

use super::id_assigner::IdAssigner;
use super::name_lookup::NameLookup;
use super::store_access::HoldsStore;
use super::striped_locks::StripedLocks;
use crate::messages::JsonId;
use crate::service_error::{ServiceError, ServiceResult};

/// What became of a text, and the id of its document.
pub(super) struct TextAddition {
    pub(super) id: DocumentId,
    pub(super) outcome: TextOutcome,
}

pub(super) enum TextOutcome {
    Stored,
    Present,
    DuplicateOf(Vec<SimilarDocument>),
}

/// A store of similar documents that is open for writing, with an index of its names.
pub(super) struct SimilarWriter {
    documents: SimilarDocuments,
    ids: IdAssigner,
    names: NameLookup,
    locks: StripedLocks,
}

impl HoldsStore<u64> for SimilarWriter {
    fn store(&self) -> &Store<u64> {
        self.documents.store()
    }
}

impl SimilarWriter {
    pub(super) fn new(documents: SimilarDocuments) -> SimilarWriter {
        let ids = IdAssigner::new(&documents.store().snapshot());
        SimilarWriter { documents, ids, names: NameLookup::new(), locks: StripedLocks::new() }
    }

    /// Adds a text with the id of a request. With `if_new`, adds it only if no stored document is similar. Returns `None` if the text
    /// has no features.
    pub(super) fn add(
        &self,
        text: &str,
        id: Option<&JsonId>,
        if_new: bool,
    ) -> ServiceResult<Option<TextAddition>> {
        let Some(prepared) = self.documents.prepare(text)? else { return Ok(None) };
        let id = match id {
            Some(id) => self.ids.identify(id)?,
            None => self.free_id()?,
        };
        let (number, name) = match &id {
            DocumentId::Number(number) => (self.ids.reserve(*number).number, None),
            DocumentId::Name(name) => (self.free_number()?, Some(name.as_str())),
        };
        let _lock = name.map(|name| self.locks.lock_name(name));
        let outcome = match name {
            Some(name) if self.documents.find_id(&prepared, name)?.is_some() => TextOutcome::Present,
            name => self.commit(&prepared, number, name, if_new)?,
        };
        if let (Some(name), TextOutcome::Stored) = (name, &outcome) {
            self.names.insert(name, number);
        }
        Ok(Some(TextAddition { id, outcome }))
    }

    fn commit(
        &self,
        prepared: &PreparedText,
        number: u64,
        name: Option<&str>,
        if_new: bool,
    ) -> ServiceResult<TextOutcome> {
        // The lengths of the text and of the name were checked before, so a bad argument is an id or a name with another text.
        let conflict = |error: Error| match error {
            Error::BadArgument(message) => ServiceError::conflict(message),
            other => other.into(),
        };
        if !if_new {
            let is_new = self.documents.insert(prepared, number, name).map_err(conflict)?;
            return Ok(if is_new { TextOutcome::Stored } else { TextOutcome::Present });
        }
        match self.documents.add_prepared(prepared, number, name).map_err(conflict)? {
            SimilarAddition::Added => Ok(TextOutcome::Stored),
            // The text has this id already, so it is similar to itself.
            SimilarAddition::SimilarTo(similar) if similar.iter().any(|other| other.id == number) => {
                Ok(TextOutcome::Present)
            }
            SimilarAddition::SimilarTo(similar) => Ok(TextOutcome::DuplicateOf(similar)),
            SimilarAddition::Empty => Err(ServiceError::empty_text()),
        }
    }

    /// Returns the id of a document that comes without one: the next free number.
    fn free_id(&self) -> ServiceResult<DocumentId> {
        let number = self.free_number()?;
        Ok(if self.ids.has_names() {
            DocumentId::Name(number.to_string())
        } else {
            DocumentId::Number(number)
        })
    }

    fn free_number(&self) -> ServiceResult<u64> {
        loop {
            let number = self.ids.next()?;
            if self.ids.reserve_next(number) {
                return Ok(number);
            }
        }
    }

    /// Returns the numeric id of a document, whose id in a request is this text; `None` if it is not stored.
    pub(super) fn number(&self, text: &str) -> ServiceResult<Option<u64>> {
        let snapshot = || self.documents.store().snapshot();
        if self.ids.has_names()
            && let Some(&number) = self.names.ids(text, snapshot)?.first()
        {
            return Ok(Some(number));
        }
        let Ok(DocumentId::Number(number)) = DocumentId::from_text(text) else { return Ok(None) };
        let snapshot = snapshot();
        let is_stored = self.documents.settings().signature(&snapshot, number)?.is_some();
        Ok((is_stored && snapshot.name(number)?.is_none()).then_some(number))
    }

    /// Deletes a document. Returns its id, or `None` if it is not stored.
    pub(super) fn delete(&self, text: &str) -> ServiceResult<Option<DocumentId>> {
        let _lock = self.locks.lock_name(text);
        let Some(number) = self.number(text)? else { return Ok(None) };
        let is_deleted = self.documents.remove(number)?;
        Ok(is_deleted.then(|| self.ids.sought(text)))
    }
}
