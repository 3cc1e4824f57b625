//! A store that can be closed while other threads use it. Closing waits until their calls have ended.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simstore::Error;

use crate::call;
use crate::errors::exception;
use crate::reentrancy::{CallMarker, refuse_reentry};

/// Interval at which a waiting `close` checks for interruption.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A store that Python code can close. It is also closed when it is dropped.
pub(crate) struct ClosableStore<T: Send + Sync> {
    /// `None` after closing. Locked only while holding the GIL. Python code that forks holds the GIL, so no other thread
    /// holds this lock during the fork.
    state: Mutex<Option<OpenState<T>>>,
    path: PathBuf,
    /// Id of the process that opened the store.
    process: u32,
}

/// An open store, and a channel that disconnects when the store is dropped, after its last call has ended.
struct OpenState<T> {
    open: Arc<SharedStore<T>>,
    closed: Receiver<()>,
}

/// The store, shared by running calls, and the sender of a channel that disconnects when the store has been
/// dropped. Rust drops fields in the order of declaration, so the sender comes last.
struct SharedStore<T> {
    store: T,
    _closed: Sender<()>,
}

/// Access to the store during a call. Closing the store waits until all guards are dropped.
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
        let state = OpenState { open: Arc::new(SharedStore { store, _closed: sender }), closed };
        ClosableStore { state: Mutex::new(Some(state)), path, process: std::process::id() }
    }

    /// Returns the store for one call.
    ///
    /// # Errors
    /// If the store is closed, or if this process was forked after the store was opened. In a forked process, locks of the store
    /// may stay locked forever, because the threads that hold them do not exist there.
    pub(crate) fn acquire(&self, py: Python<'_>) -> PyResult<StoreGuard<T>> {
        if self.process != std::process::id() {
            return Err(exception(py, Error::Forked { path: self.path.clone() }));
        }
        self.acquire_in_any_process()
    }

    /// Like [`ClosableStore::acquire`], but also returns the store in a process that was forked after the store
    /// was opened. Safe only for work that the engine itself refuses in such a process, and for work that waits
    /// for no lock, because a lock may be held forever by a thread that does not exist after the fork.
    pub(crate) fn acquire_in_any_process(&self) -> PyResult<StoreGuard<T>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let guard =
            |state: &OpenState<T>| StoreGuard { open: Arc::clone(&state.open), _call: CallMarker::on(self) };
        state.as_ref().map(guard).ok_or_else(|| {
            PyValueError::new_err(format!("the store is closed: {}; open it again", self.path.display()))
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Closes the store after the calls of other threads have ended. If it is already closed, does nothing. `name` is the name of the
    /// Python method, for errors.
    pub(crate) fn close(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let is_forked = self.process != std::process::id();
        if !is_forked {
            refuse_reentry(self, name)?;
        }
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(OpenState { open, closed }) = state else { return Ok(()) };
        if is_forked {
            // The store belongs to the parent process. Calls that ran there during the fork never end in this process.
            return Ok(());
        }
        call::interruptible(py, move |call| {
            drop(open);
            while let Err(RecvTimeoutError::Timeout) = closed.recv_timeout(CANCEL_CHECK_INTERVAL) {
                call.check()?;
            }
            Ok(())
        })
    }
}

impl<T: Send + Sync> Drop for ClosableStore<T> {
    /// Closes a store that was not closed explicitly, without the GIL.
    fn drop(&mut self) {
        if let Some(state) = self.state.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            Python::attach(|py| py.detach(move || drop(state)));
        }
    }
}
