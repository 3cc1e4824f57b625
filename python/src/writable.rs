//! A store that calls write to.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pyo3::prelude::*;
use simstore::any::{AnySnapshot, AnyStore, AnyTransaction, Width};
use simstore::{Durability, Result};

use crate::entries::{NewDocument, IdAllocator, document_id};
use crate::errors::exception;
use crate::fingerprints::one;
use crate::opened::{ClosableStore, StoreGuard};
use crate::similar::{self, refused};
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
    /// Locked to number documents; shared to insert documents that have numbers.
    numbering: RwLock<()>,
    /// Whether the store holds similar documents, and takes no fingerprints.
    is_similar: bool,
}

/// The right to insert: alone, while names get numbers, or with others.
type InsertLock<'a> = (Option<RwLockWriteGuard<'a, ()>>, Option<RwLockReadGuard<'a, ()>>);

impl OpenStore {
    /// Returns a transaction; if documents have names, also their numbers. Keep the right to insert until the commit.
    pub(crate) fn inserting(
        &self,
        by_name: bool,
    ) -> Result<(InsertLock<'_>, AnyTransaction<'_>, Option<IdAllocator>)> {
        let alone = by_name.then(|| self.numbering.write().unwrap_or_else(PoisonError::into_inner));
        let shared = (!by_name).then(|| self.numbering.read().unwrap_or_else(PoisonError::into_inner));
        let numbers = by_name.then(|| IdAllocator::after(self.store.snapshot())).transpose()?;
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

    /// Returns the store for a call that writes fingerprints.
    pub(crate) fn writable(&self, py: Python<'_>) -> PyResult<StoreGuard<OpenStore>> {
        self.of_fingerprints(py, similar::WRITE)
    }

    pub(crate) fn of_fingerprints(&self, py: Python<'_>, instead: &str) -> PyResult<StoreGuard<OpenStore>> {
        let live = self.opened.get(py)?;
        if live.is_similar {
            return Err(exception(py, refused(self.opened.path(), instead)));
        }
        Ok(live)
    }

    pub(crate) fn snapshot_of(&self) -> PyResult<AnySnapshot> {
        Ok(self.opened.open()?.store.snapshot())
    }

    /// Returns a snapshot for a query; an error in a process that was forked later, where locks may be held by nobody.
    pub(crate) fn asked(&self, py: Python<'_>) -> PyResult<AnySnapshot> {
        Ok(self.opened.get(py)?.store.snapshot())
    }

    /// Reads a document to insert.
    pub(crate) fn entry<'py>(
        &self,
        py: Python<'py>,
        fingerprint: Option<&Bound<'py, PyAny>>,
        id: Option<&Bound<'py, PyAny>>,
        name: Option<&str>,
        text: Option<&str>,
    ) -> PyResult<NewDocument> {
        let fingerprint = self.profile.inserted(py, fingerprint, text, |one| self.fingerprint(one))?;
        Ok(NewDocument { fingerprint, id: document_id(id, name)?, name: name.map(str::to_owned) })
    }

    /// Reads a single fingerprint of the store's width.
    pub(crate) fn fingerprint(&self, object: &Bound<'_, PyAny>) -> PyResult<u128> {
        one(object, self.width)
    }
}
