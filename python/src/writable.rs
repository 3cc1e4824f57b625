//! A store that calls write to, until it is closed: whoever closes it waits for the calls that use it.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simstore::any::{AnySnapshot, AnyStore, AnyTransaction, Width};
use simstore::{Durability, Error, Result};

use crate::entries::{Entry, Id, Numbers};
use crate::errors::exception;
use crate::fingerprints::one;
use crate::gate;
use crate::similar::{self, refused};
use crate::text_profile::TextProfile;
use crate::under_way::{UnderWay, refuse_inside};

/// How often a call that waits asks whether to go on.
const WAITED: Duration = Duration::from_millis(50);

/// A store, open or closed, and what its calls need.
pub(crate) struct Writable {
    /// Locked under the GIL alone, and never for long: so nobody holds it when a process is forked.
    held: Mutex<Option<Held>>,
    path: PathBuf,
    width: Width,
    durability: Durability,
    process: u32,
    profile: TextProfile,
}

/// An open store; and what tells when the last call that uses it has let it go.
struct Held {
    open: Arc<Open>,
    closed: Receiver<()>,
}

/// An open store. Its fields are dropped in this order: whoever waits for the second waits for the first.
pub(crate) struct Open {
    pub(crate) store: AnyStore,
    /// Held by whoever numbers documents; shared by whoever inserts others.
    numbering: RwLock<()>,
    /// Whether it is of similar documents, and takes no fingerprints.
    is_similar: bool,
    _closed: Sender<()>,
}

/// The store in a call: who closes it waits for the end of this.
pub(crate) struct Use {
    open: Arc<Open>,
    _call: UnderWay,
}

impl Deref for Use {
    type Target = Open;

    fn deref(&self) -> &Open {
        &self.open
    }
}

/// The right to insert: alone, while numbers are given to names, or with others.
pub(crate) struct Inserting<'a> {
    _alone: Option<RwLockWriteGuard<'a, ()>>,
    _shared: Option<RwLockReadGuard<'a, ()>>,
}

impl Open {
    /// A transaction, with numbers for names if there are some; the right to insert is to be kept until it is committed.
    pub(crate) fn inserting(
        &self,
        by_name: bool,
    ) -> Result<(Inserting<'_>, AnyTransaction<'_>, Option<Numbers>)> {
        let alone = by_name.then(|| self.numbering.write().unwrap_or_else(PoisonError::into_inner));
        let shared = (!by_name).then(|| self.numbering.read().unwrap_or_else(PoisonError::into_inner));
        let numbers = by_name.then(|| Numbers::after(self.store.snapshot())).transpose()?;
        let inserting = Inserting { _alone: alone, _shared: shared };
        Ok((inserting, self.store.transaction(), numbers))
    }
}

impl Writable {
    pub(crate) fn new(
        store: AnyStore,
        is_similar: bool,
        durability: Durability,
        profile: TextProfile,
    ) -> Writable {
        let (path, width) = (store.snapshot().path().to_path_buf(), store.width());
        let (sender, closed) = mpsc::channel();
        let open = Arc::new(Open { store, numbering: RwLock::default(), is_similar, _closed: sender });
        let held = Mutex::new(Some(Held { open, closed }));
        Writable { held, path, width, durability, process: std::process::id(), profile }
    }

    /// The store, for one call.
    pub(crate) fn open(&self) -> PyResult<Use> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let used = |held: &Held| Use { open: Arc::clone(&held.open), _call: UnderWay::on(self) };
        held.as_ref().map(used).ok_or_else(|| {
            PyValueError::new_err(format!("the store is closed: {}; open it again", self.path.display()))
        })
    }

    /// The store, for a call that writes fingerprints.
    pub(crate) fn writable(&self, py: Python<'_>) -> PyResult<Use> {
        self.of_fingerprints(py, similar::WRITE)
    }

    pub(crate) fn of_fingerprints(&self, py: Python<'_>, instead: &str) -> PyResult<Use> {
        self.check_process(py)?;
        let open = self.open()?;
        if open.is_similar {
            return Err(exception(py, refused(&self.path, instead)));
        }
        Ok(open)
    }

    pub(crate) fn snapshot_of(&self) -> PyResult<AnySnapshot> {
        Ok(self.open()?.store.snapshot())
    }

    /// The same for a call that asks; in a process that was forked later, locks may be held by nobody.
    pub(crate) fn asked(&self, py: Python<'_>) -> PyResult<AnySnapshot> {
        self.check_process(py)?;
        self.snapshot_of()
    }

    fn check_process(&self, py: Python<'_>) -> PyResult<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        Err(exception(py, Error::Forked { path: self.path.clone() }))
    }

    pub(crate) fn bits(&self) -> u32 {
        self.width.bits()
    }

    pub(crate) fn durability(&self) -> Durability {
        self.durability
    }

    /// How texts become fingerprints.
    pub(crate) fn profile(&self) -> &TextProfile {
        &self.profile
    }

    /// A document that is inserted.
    pub(crate) fn entry<'py>(
        &self,
        py: Python<'py>,
        fingerprint: Option<&Bound<'py, PyAny>>,
        id: Option<&Bound<'py, PyAny>>,
        name: Option<&str>,
        text: Option<&str>,
    ) -> PyResult<Entry> {
        let fingerprint = self.profile.inserted(py, fingerprint, text, |one| self.fingerprint(one))?;
        Ok(Entry { fingerprint, id: Id::of(id, name)?, name: name.map(str::to_owned) })
    }

    /// A single fingerprint of the store's width.
    pub(crate) fn fingerprint(&self, object: &Bound<'_, PyAny>) -> PyResult<u128> {
        one(object, self.width)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Closes it, once calls of other threads have ended. A closed one is closed again without effect.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.process == std::process::id() {
            refuse_inside(self, "Store.close")?;
        }
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Held { open, closed }) = held else { return Ok(()) };
        if self.process != std::process::id() {
            // It belongs to the other process; nobody here ends the calls that were under way there.
            return Ok(());
        }
        gate::long(py, move |call| {
            drop(open);
            while let Err(RecvTimeoutError::Timeout) = closed.recv_timeout(WAITED) {
                call.check()?;
            }
            Ok(())
        })
    }
}

impl Drop for Writable {
    /// A store that nobody has closed: other threads run while it is.
    fn drop(&mut self) {
        if let Some(held) = self.held.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            Python::attach(|py| py.detach(move || drop(held)));
        }
    }
}
