//! Errors of the libraries as Python's exceptions.

use std::path::Path;

use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use simstore::Error;

/// The exception that an error becomes.
#[expect(clippy::needless_pass_by_value, reason = "it is handed over by `map_err`")]
pub(crate) fn exception(py: Python<'_>, error: Error) -> PyErr {
    let message = said(&error.to_string());
    let code = error.code().name();
    match &error {
        Error::Io { path, action, source } => os_error(source, &format!("cannot {action}"), Some(path)),
        Error::Thread { source } => os_error(source, "cannot start a thread", None),
        Error::AlreadyExists { path, reason } => {
            // What the operating system calls EEXIST.
            PyOSError::new_err((17, (*reason).to_owned(), path.display().to_string()))
        }
        Error::Corrupt { path, offset, .. } | Error::TornEnd { path, offset, .. } => {
            own(py, "CorruptError", (message, code, path.display().to_string(), *offset))
        }
        Error::BadInput { path, line, .. } => {
            own(py, "BadInputError", (message, code, path.display().to_string(), *line))
        }
        Error::UnsupportedVersion { .. } | Error::NotAStore { .. } => {
            own(py, "NotAStoreError", (message, code))
        }
        Error::Locked { .. } => own(py, "LockedError", (message, code)),
        Error::Setting { .. }
        | Error::Width { .. }
        | Error::Distance { .. }
        | Error::OutOfOrder { .. }
        | Error::IncompletePlan { .. }
        | Error::BadArgument(_) => PyValueError::new_err(message),
        Error::Bug(_) => own(py, "InternalError", (message, code)),
        _ => own(py, "Error", (message, code)),
    }
}

/// A message of a library as Python says it: a few options have other names here.
pub(crate) fn said(message: &str) -> String {
    message.replace("option `text_field`", "option `text`").replace("option `id_field`", "option `id`")
}

/// The error of a call that takes one of two arguments, and got both or none.
pub(crate) fn either(one: &str, other: &str, is_both: bool) -> PyErr {
    let found = if is_both { "both" } else { "neither" };
    PyTypeError::new_err(format!("expected {one} or {other}, found {found}"))
}

/// `OSError` makes itself what its number says: `FileNotFoundError` and the like.
fn os_error(source: &std::io::Error, what: &str, path: Option<&Path>) -> PyErr {
    let path = path.map(|path| path.display().to_string());
    match source.raw_os_error() {
        Some(number) => PyOSError::new_err((number, format!("{what}: {source}"), path)),
        None => PyOSError::new_err(match path {
            Some(path) => format!("{path}: {what}: {source}"),
            None => format!("{what}: {source}"),
        }),
    }
}

/// An exception of `simstore.errors`.
fn own<'py>(py: Python<'py>, class: &str, arguments: impl PyCallArgs<'py>) -> PyErr {
    let make = || py.import("simstore.errors")?.getattr(class)?.call1(arguments);
    make().map_or_else(|error| error, PyErr::from_value)
}
