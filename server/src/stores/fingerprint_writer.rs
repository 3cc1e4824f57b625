//! Additions and deletions in a store of fingerprints.

use simstore::error::excerpt;
use simstore::{Durability, Fingerprint, Insertion, Match, Snapshot, Store};
use simstore_io::DocumentId;

use super::id_assigner::IdAssigner;
use super::name_lookup::NameLookup;
use super::pair_index::PairIndex;
use super::store_access::HoldsStore;
use super::striped_locks::StripedLocks;
use crate::messages::JsonId;
use crate::service_error::{ServiceError, ServiceResult};

/// What became of a fingerprint, and the id of its document.
pub(super) struct FingerprintAddition<F> {
    /// `None` in a store without ids.
    pub(super) id: Option<DocumentId>,
    pub(super) outcome: AdditionOutcome<F>,
}

pub(super) enum AdditionOutcome<F> {
    Stored,
    Present,
    DuplicateOf(Vec<Match<F>>),
}

/// A store of fingerprints that is open for writing, with indexes of its ids and names.
pub(super) struct FingerprintWriter<F: Fingerprint> {
    store: Store<F>,
    ids: IdAssigner,
    pairs: PairIndex<F>,
    names: NameLookup,
    locks: StripedLocks,
}

impl<F: Fingerprint> HoldsStore<F> for FingerprintWriter<F> {
    fn store(&self) -> &Store<F> {
        &self.store
    }
}

impl<F: Fingerprint> FingerprintWriter<F> {
    pub(super) fn new(store: Store<F>) -> FingerprintWriter<F> {
        let snapshot = store.snapshot();
        FingerprintWriter {
            store,
            ids: IdAssigner::new(&snapshot),
            pairs: PairIndex::new(snapshot.highest_id()),
            names: NameLookup::new(),
            locks: StripedLocks::new(),
        }
    }

    /// Adds a fingerprint with the id of a request. With `if_new`, adds it only if no stored fingerprint is within the store's
    /// distance.
    pub(super) fn add(
        &self,
        fingerprint: F,
        id: Option<&JsonId>,
        if_new: bool,
    ) -> ServiceResult<FingerprintAddition<F>> {
        if !self.store.snapshot().keeps_ids() {
            return self.add_without_id(fingerprint, id, if_new);
        }
        match id.map(|id| self.ids.identify(id)).transpose()? {
            Some(DocumentId::Number(number)) => self.add_numbered(fingerprint, number, if_new),
            Some(DocumentId::Name(name)) => self.add_named(fingerprint, name, if_new),
            None => loop {
                let number = self.ids.next()?;
                if self.ids.has_names() {
                    return self.add_named(fingerprint, number.to_string(), if_new);
                }
                let _lock = self.locks.lock_number(number);
                if self.ids.reserve_next(number) {
                    return self.commit(fingerprint, number, None, if_new);
                }
            },
        }
    }

    fn add_without_id(
        &self,
        fingerprint: F,
        id: Option<&JsonId>,
        if_new: bool,
    ) -> ServiceResult<FingerprintAddition<F>> {
        if id.is_some() {
            let message = "this store keeps no ids: leave `id` out";
            return Err(ServiceError::unusable("no-ids", message));
        }
        if self.store.snapshot().contains(fingerprint)? {
            return Ok(FingerprintAddition { id: None, outcome: AdditionOutcome::Present });
        }
        let added = self.commit(fingerprint, 0, None, if_new)?;
        Ok(FingerprintAddition { id: None, ..added })
    }

    fn add_numbered(
        &self,
        fingerprint: F,
        number: u64,
        if_new: bool,
    ) -> ServiceResult<FingerprintAddition<F>> {
        let _lock = self.locks.lock_number(number);
        if !self.ids.reserve(number).is_fresh {
            if self.store.snapshot().contains_pair(fingerprint, number)? {
                let id = Some(DocumentId::Number(number));
                return Ok(FingerprintAddition { id, outcome: AdditionOutcome::Present });
            }
            let stored = self.pairs.fingerprints(number, || self.store.snapshot())?;
            if let Some(stored) = stored.first() {
                return Err(ServiceError::conflict(format!(
                    "the id {number} already has the fingerprint {}: delete that document first",
                    stored.to_hex()
                )));
            }
        }
        self.commit(fingerprint, number, None, if_new)
    }

    fn add_named(&self, fingerprint: F, name: String, if_new: bool) -> ServiceResult<FingerprintAddition<F>> {
        let _lock = self.locks.lock_name(&name);
        let stored = self.names.ids(&name, || self.store.snapshot())?;
        let snapshot = self.store.snapshot();
        for &number in &stored {
            if snapshot.contains_pair(fingerprint, number)? {
                let id = Some(DocumentId::Name(name));
                return Ok(FingerprintAddition { id, outcome: AdditionOutcome::Present });
            }
        }
        if !stored.is_empty() {
            return Err(ServiceError::conflict(format!(
                "the name `{}` already has another fingerprint: delete that document first",
                excerpt(&name)
            )));
        }
        let number = loop {
            let number = self.ids.next()?;
            if self.ids.reserve_next(number) {
                break number;
            }
        };
        self.commit(fingerprint, number, Some(name), if_new)
    }

    /// Writes a fingerprint with its numeric id and its name, if it has one.
    fn commit(
        &self,
        fingerprint: F,
        number: u64,
        name: Option<String>,
        if_new: bool,
    ) -> ServiceResult<FingerprintAddition<F>> {
        let mut transaction = self.store.transaction();
        match &name {
            Some(name) => transaction.insert_named(fingerprint, number, name)?,
            None => transaction.insert(fingerprint, number),
        }
        let insertion = if if_new {
            transaction.commit_if_new(Durability::Os)?
        } else {
            transaction.commit(Durability::Os)?;
            Insertion::Inserted
        };
        let outcome = match insertion {
            Insertion::DuplicateOf(matches) => AdditionOutcome::DuplicateOf(matches),
            Insertion::Inserted => {
                self.pairs.insert(number, fingerprint);
                name.iter().for_each(|name| self.names.insert(name, number));
                AdditionOutcome::Stored
            }
        };
        Ok(FingerprintAddition {
            id: Some(name.map_or(DocumentId::Number(number), DocumentId::Name)),
            outcome,
        })
    }

    /// Returns the pairs of fingerprint and numeric id of a document, whose id in a request is this text. The text may be the name
    /// of the document or, if the document has no name, its number.
    pub(super) fn pairs(&self, text: &str) -> ServiceResult<Vec<(F, u64)>> {
        let snapshot = || -> Snapshot<F> { self.store.snapshot() };
        let mut numbers = Vec::new();
        if self.ids.has_names() {
            numbers = self.names.ids(text, snapshot)?;
        }
        if let Ok(DocumentId::Number(number)) = DocumentId::from_text(text)
            && snapshot().name(number)?.is_none()
        {
            numbers.push(number);
        }
        let mut pairs = Vec::new();
        for number in numbers {
            let fingerprints = self.pairs.fingerprints(number, snapshot)?;
            pairs.extend(fingerprints.into_iter().map(|fingerprint| (fingerprint, number)));
        }
        Ok(pairs)
    }

    /// Deletes a document with all of its fingerprints. Returns its id, or `None` if it is not stored.
    pub(super) fn delete(&self, text: &str) -> ServiceResult<Option<DocumentId>> {
        let id = self.ids.sought(text);
        let _lock = match &id {
            DocumentId::Number(number) => self.locks.lock_number(*number),
            DocumentId::Name(name) => self.locks.lock_name(name),
        };
        let pairs = self.pairs(text)?;
        let deleted = self.store.delete_all(&pairs, Durability::Os)?;
        pairs.iter().for_each(|&(fingerprint, number)| self.pairs.remove(number, fingerprint));
        Ok(deleted.contains(&true).then_some(id))
    }
}
