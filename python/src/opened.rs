//! A store that is open until it is closed or dropped. Closing it waits for the calls that use it.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simstore::Error;

use crate::errors::exception;
use crate::gate;
use crate::under_way::{CallMarker, refuse_reentry};

/// How often a call that waits asks whether to go on.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) struct ClosableStore<T: Send + Sync> {
    /// Locked under the GIL alone, and never for long: so nobody holds it when a process is forked.
    held: Mutex<Option<OpenState<T>>>,
    path: PathBuf,
    process: u32,
}

/// An open store, and a channel that closes when no call uses the store any more.
struct OpenState<T> {
    open: Arc<SharedStore<T>>,
    closed: Receiver<()>,
}

/// Fields are dropped in this order, so the channel closes after the store is dropped.
struct SharedStore<T> {
    store: T,
    _closed: Sender<()>,
}

/// The store during a call. Closing the store waits until this is dropped.
pub(crate) struct StoreGuard<T> {
    open: Arc<SharedStore<T>>,
    _call: CallMarker,
}

impl<T> Deref for StoreGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.open.store
    }
}

impl<T: Send + Sync> ClosableStore<T> {
    pub(crate) fn new(store: T, path: PathBuf) -> Self {
        let (sender, closed) = mpsc::channel();
        let held = OpenState { open: Arc::new(SharedStore { store, _closed: sender }), closed };
        ClosableStore { held: Mutex::new(Some(held)), path, process: std::process::id() }
    }

    /// The store for one call; an error in a process that was forked later, where locks may be held by nobody.
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<StoreGuard<T>> {
        if self.process != std::process::id() {
            return Err(exception(py, Error::Forked { path: self.path.clone() }));
        }
        self.open()
    }

    /// Returns the store for one call. In a process that was forked later, the engine refuses the work.
    pub(crate) fn open(&self) -> PyResult<StoreGuard<T>> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let used = |held: &OpenState<T>| StoreGuard { open: Arc::clone(&held.open), _call: CallMarker::on(self) };
        held.as_ref().map(used).ok_or_else(|| {
            PyValueError::new_err(format!("the store is closed: {}; open it again", self.path.display()))
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Closes it in the call of this name, once the calls of other threads have ended. A closed one is closed again without effect.
    pub(crate) fn close(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let is_forked = self.process != std::process::id();
        if !is_forked {
            refuse_reentry(self, name)?;
        }
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(OpenState { open, closed }) = held else { return Ok(()) };
        if is_forked {
            // It belongs to the other process; nobody here ends the calls that were under way there.
            return Ok(());
        }
        gate::interruptible(py, move |call| {
            drop(open);
            while let Err(RecvTimeoutError::Timeout) = closed.recv_timeout(CANCEL_CHECK_INTERVAL) {
                call.check()?;
            }
            Ok(())
        })
    }
}

impl<T: Send + Sync> Drop for ClosableStore<T> {
    /// A store that nobody has closed: other threads run while it is.
    fn drop(&mut self) {
        if let Some(held) = self.held.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            Python::attach(|py| py.detach(move || drop(held)));
        }
    }
}
