//! Calls that are under way on an object. One that would wait for another of the same thread would wait for ever: it is an error.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::panics::caught_here;

/// How often a call that waits asks for signals.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    /// The objects that calls of this thread are under way on, by address; one that has several calls several times.
    static BUSY_OBJECTS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// A call of this thread on an object, for as long as this is there. The object stays where it is meanwhile.
pub(crate) struct CallMarker {
    object: usize,
    /// It ends in the thread that began it.
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

/// Refuses a call that would wait for one of the same thread: it comes from a callable of progress, a signal handler, a finalizer, or
/// whatever else of Python runs in the middle of that one.
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

/// A value that one call uses at a time. Others wait; signals are handled meanwhile.
pub(crate) struct Exclusive<T> {
    /// `None` while a call uses it. Locked for a moment alone.
    value: Mutex<Option<Box<T>>>,
    is_back: Condvar,
}

impl<T: Send> Exclusive<T> {
    pub(crate) fn new(value: T) -> Self {
        Exclusive { value: Mutex::new(Some(Box::new(value))), is_back: Condvar::new() }
    }

    /// Uses the value in the call of this name.
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
                    self.is_back.wait_timeout_while(self.value(), SIGNAL_CHECK_INTERVAL, |value| value.is_none());
                waited.unwrap_or_else(PoisonError::into_inner).0.take()
            });
        };
        let call = CallMarker::on(self);
        let done = caught_here(py, || work(&mut value));
        drop(call);
        *self.value() = Some(value);
        self.is_back.notify_one();
        done
    }

    fn value(&self) -> MutexGuard<'_, Option<Box<T>>> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
