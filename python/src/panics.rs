//! Panics, which are bugs, as errors: whoever called goes on, and is told what has happened and where.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use simstore::{Error, Result};

use crate::errors::exception;

/// So many panics are remembered until somebody asks where they were.
const RECENT_PANICS_MAX: usize = 32;

thread_local! {
    /// Whether a panic of this thread becomes an error, which says it.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// What the last panics said, and where they were: rayon hands on of a panic only what it said.
static RECENT_PANICS: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// Has panics remembered; those that become errors are said by these alone.
pub(crate) fn install_hook() {
    let say = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        let mut last = RECENT_PANICS.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() == RECENT_PANICS_MAX {
            last.remove(0);
        }
        last.push((message(panic.payload()), place));
        drop(last);
        if !IS_CAUGHT.get() && !is_pool_thread() {
            say(panic);
        }
    }));
}

/// Whether this thread is one of rayon's global pool, which hands panics on to the call that it works for.
fn is_pool_thread() -> bool {
    let thread = std::thread::current();
    let number = thread.name().and_then(|name| name.strip_prefix("simstore "));
    number.is_some_and(|number| number.parse::<usize>().is_ok())
}

/// Does something in which a panic is an error.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch(work).unwrap_or_else(Err)
}

/// The same for something with Python.
pub(crate) fn caught_here<T>(py: Python<'_>, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch(work).unwrap_or_else(|error| Err(exception(py, error)))
}

/// The error of a panic of `work`.
fn catch<T>(work: impl FnOnce() -> T) -> Result<T> {
    let before = IS_CAUGHT.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(before);
    done.map_err(|panic| {
        let said = message(&*panic);
        let mut last = RECENT_PANICS.lock().unwrap_or_else(PoisonError::into_inner);
        let at = last.iter().rposition(|(message, _)| *message == said);
        let place = at.map_or_else(|| "an unknown place".to_owned(), |at| last.remove(at).1);
        Error::Bug(format!("panicked at {place}: {said}"))
    })
}

fn message(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().map(ToString::to_string);
    said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
