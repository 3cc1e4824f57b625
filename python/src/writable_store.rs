//! The shared state of the class `Store` and its batches.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pyo3::prelude::*;
use simstore::any::{AnySnapshot, AnyStore, AnyTransaction, Width};
use simstore::{Durability, Result};

use crate::closable_store::{ClosableStore, StoreGuard};
use crate::errors::exception;
use crate::fingerprints::read_one;
use crate::new_documents::{IdAllocator, NewDocument, document_id};
use crate::similar_settings::{self, refusal};
use crate::text_profile::TextProfile;

/// A store, open or closed, and its settings.
pub(crate) struct WritableStore {
    pub(crate) opened: ClosableStore<OpenStore>,
    pub(crate) width: Width,
    pub(crate) durability: Durability,
    /// Turns texts into fingerprints.
    pub(crate) profile: TextProfile,
}

/// An open store.
pub(crate) struct OpenStore {
    pub(crate) store: AnyStore,
    /// Lock that prevents two threads from allocating the same id. It is held exclusively while documents with names
    /// as ids are inserted, because these get new numbers, and shared while documents with numeric ids are inserted.
    numbering: RwLock<()>,
    /// Whether the store finds documents by the similarity of texts. It then accepts no fingerprints.
    is_similar: bool,
}

/// The lock that an insertion holds on `numbering` of [`OpenStore`]: exclusive (first) if ids are names, otherwise
/// shared (second).
type InsertLock<'a> = (Option<RwLockWriteGuard<'a, ()>>, Option<RwLockReadGuard<'a, ()>>);

impl OpenStore {
    /// Begins a transaction. If ids are names, also returns an [`IdAllocator`]. The caller keeps the returned lock until
    /// the transaction is committed.
    pub(crate) fn begin_insert(
        &self,
        by_name: bool,
    ) -> Result<(InsertLock<'_>, AnyTransaction<'_>, Option<IdAllocator>)> {
        let alone = by_name.then(|| self.numbering.write().unwrap_or_else(PoisonError::into_inner));
        let shared = (!by_name).then(|| self.numbering.read().unwrap_or_else(PoisonError::into_inner));
        let numbers = by_name.then(|| IdAllocator::new(self.store.snapshot())).transpose()?;
        Ok(((alone, shared), self.store.transaction(), numbers))
    }
}

impl WritableStore {
    pub(crate) fn new(
        store: AnyStore,
        is_similar: bool,
        durability: Durability,
        profile: TextProfile,
    ) -> WritableStore {
        let (path, width) = (store.snapshot().path().to_path_buf(), store.width());
        let opened = ClosableStore::new(OpenStore { store, numbering: RwLock::default(), is_similar }, path);
        WritableStore { opened, width, durability, profile }
    }

    /// Returns the store for a call that writes fingerprints, or an error if the store finds documents by similarity.
    pub(crate) fn writable(&self, py: Python<'_>) -> PyResult<StoreGuard<OpenStore>> {
        self.fingerprint_store(py, similar_settings::WRITE_ADVICE)
    }

    /// Returns the store, or an error with the advice `instead` if the store finds documents by similarity, not by
    /// fingerprints.
    pub(crate) fn fingerprint_store(&self, py: Python<'_>, instead: &str) -> PyResult<StoreGuard<OpenStore>> {
        let live = self.opened.acquire(py)?;
        if live.is_similar {
            return Err(exception(py, refusal(self.opened.path(), instead)));
        }
        Ok(live)
    }

    pub(crate) fn current_snapshot(&self) -> PyResult<AnySnapshot> {
        Ok(self.opened.acquire_in_any_process()?.store.snapshot())
    }

    /// Returns a snapshot for a query, or an error in a process that was forked after the store was opened.
    pub(crate) fn query_snapshot(&self, py: Python<'_>) -> PyResult<AnySnapshot> {
        Ok(self.opened.acquire(py)?.store.snapshot())
    }

    /// Makes a document to insert from the arguments of a Python call.
    pub(crate) fn read_document<'py>(
        &self,
        py: Python<'py>,
        fingerprint: Option<&Bound<'py, PyAny>>,
        id: Option<&Bound<'py, PyAny>>,
        name: Option<&str>,
        text: Option<&str>,
    ) -> PyResult<NewDocument> {
        let fingerprint =
            self.profile.fingerprint_to_insert(py, fingerprint, text, |one| self.fingerprint(one))?;
        Ok(NewDocument { fingerprint, id: document_id(id, name)?, name: name.map(str::to_owned) })
    }

    /// Reads a single fingerprint of the store's width.
    pub(crate) fn fingerprint(&self, object: &Bound<'_, PyAny>) -> PyResult<u128> {
        read_one(object, self.width)
    }
}
