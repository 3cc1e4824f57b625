//! Conversion of panics, which are bugs, to errors with the message and the source location. The Python process goes on.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use simstore::{Error, Result};

use crate::errors::exception;

/// Maximum number of panics whose location is stored.
const RECENT_PANICS_MAX: usize = 32;

thread_local! {
    /// Whether a panic of this thread becomes an error. The default hook does not print such panics.
    static IS_CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// Messages and locations of recent panics, oldest first. rayon forwards only the payload of a panic, not the location.
static RECENT_PANICS: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// Installs a panic hook that stores the location. Panics that become errors are not printed.
pub(crate) fn install_hook() {
    let default_hook = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        let mut recent = RECENT_PANICS.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() == RECENT_PANICS_MAX {
            recent.remove(0);
        }
        recent.push((panic_message(panic.payload()), place));
        drop(recent);
        if !IS_CATCHING.get() && !is_pool_thread() {
            default_hook(panic);
        }
    }));
}

/// Whether this thread belongs to the global rayon pool. rayon forwards a panic of such a thread to the thread that
/// waits for the work.
fn is_pool_thread() -> bool {
    let thread = std::thread::current();
    let number = thread.name().and_then(|name| name.strip_prefix("simstore "));
    number.is_some_and(|number| number.parse::<usize>().is_ok())
}

/// Runs `work`; a panic becomes an error.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(work).unwrap_or_else(Err)
}

/// Runs `work`, which uses Python; a panic becomes an exception.
pub(crate) fn catch_panic_in_python<T>(py: Python<'_>, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(work).unwrap_or_else(|error| Err(exception(py, error)))
}

/// Runs `work`. If it panics, returns [`Error::Bug`] with the message and the location.
fn catch_unwind<T>(work: impl FnOnce() -> T) -> Result<T> {
    let before = IS_CATCHING.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    IS_CATCHING.set(before);
    done.map_err(|panic| {
        let message = panic_message(&*panic);
        let mut recent = RECENT_PANICS.lock().unwrap_or_else(PoisonError::into_inner);
        let at = recent.iter().rposition(|(other, _)| *other == message);
        let place = at.map_or_else(|| "an unknown place".to_owned(), |at| recent.remove(at).1);
        Error::Bug(format!("panicked at {place}: {message}"))
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
