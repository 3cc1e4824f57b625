//! Detection of reentrant calls. A call that would wait for another call of the same thread on the same object would wait forever, so it is
//! an error.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::panics::catch_panic_in_python;

/// Interval at which a waiting call checks for signals.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    /// Addresses of the objects with running calls of this thread; one entry for each call.
    static BUSY_OBJECTS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Marker of a running call of this thread on an object. The call counts as running until its marker is dropped.
/// Until then the object must not move, because its address identifies it.
pub(crate) struct CallMarker {
    object: usize,
    /// Prevents sending the marker to another thread.
    _thread: PhantomData<MutexGuard<'static, ()>>,
}

impl CallMarker {
    pub(crate) fn on<T>(object: &T) -> CallMarker {
        let object = address(object);
        BUSY_OBJECTS.with_borrow_mut(|objects| objects.push(object));
        CallMarker { object, _thread: PhantomData }
    }
}

impl Drop for CallMarker {
    fn drop(&mut self) {
        BUSY_OBJECTS.with_borrow_mut(|objects| {
            if let Some(at) = objects.iter().rposition(|&object| object == self.object) {
                objects.remove(at);
            }
        });
    }
}

/// Refuses a call that would wait for a running call of the same thread on `object`. Such a call comes from a progress callable, a signal
/// handler, a finalizer, or other Python code that runs during the first call. `name` is the Python method's name.
pub(crate) fn refuse_reentry<T>(object: &T, name: &str) -> PyResult<()> {
    if !BUSY_OBJECTS.with_borrow(|objects| objects.contains(&address(object))) {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(format!(
        "{name} was called in the middle of another call of this thread on the same object, and cannot wait for it: call it when \
         that call has returned"
    )))
}

fn address<T>(object: &T) -> usize {
    std::ptr::from_ref(object).addr()
}

/// A value that only one call uses at a time. Other calls wait, and handle signals meanwhile.
pub(crate) struct Exclusive<T> {
    /// The value, or `None` while a call uses it. The mutex is locked only briefly.
    value: Mutex<Option<Box<T>>>,
    /// Notified when the value is available again.
    available: Condvar,
}

impl<T: Send> Exclusive<T> {
    pub(crate) fn new(value: T) -> Self {
        Exclusive { value: Mutex::new(Some(Box::new(value))), available: Condvar::new() }
    }

    /// Runs `work` with the value. `name` is the Python method's name, for the error of a reentrant call.
    pub(crate) fn with<R>(
        &self,
        py: Python<'_>,
        name: &str,
        work: impl FnOnce(&mut T) -> PyResult<R>,
    ) -> PyResult<R> {
        refuse_reentry(self, name)?;
        let mut value = self.value().take();
        let mut value = loop {
            if let Some(value) = value {
                break value;
            }
            py.check_signals()?;
            value = py.detach(|| {
                let waited =
                    self.available
                        .wait_timeout_while(self.value(), SIGNAL_CHECK_INTERVAL, |value| value.is_none());
                waited.unwrap_or_else(PoisonError::into_inner).0.take()
            });
        };
        let call = CallMarker::on(self);
        let done = catch_panic_in_python(py, || work(&mut value));
        drop(call);
        *self.value() = Some(value);
        self.available.notify_one();
        done
    }

    fn value(&self) -> MutexGuard<'_, Option<Box<T>>> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
