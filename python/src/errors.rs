//! Conversion of the Rust crates' errors to Python exceptions.

use std::path::Path;

use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use simstore::Error;

/// Converts an error to an exception: ValueError, an `OSError`, or a class of `simstore.errors`.
#[expect(clippy::needless_pass_by_value, reason = "it is handed over by `map_err`")]
pub(crate) fn exception(py: Python<'_>, error: Error) -> PyErr {
    let message = python_message(&error.to_string());
    let code = error.code().name();
    match &error {
        Error::Io { path, action, source } => os_error(source, &format!("cannot {action}"), Some(path)),
        Error::Thread { source } => os_error(source, "cannot start a thread", None),
        Error::AlreadyExists { path, reason } => {
            // EEXIST, so that Python raises `FileExistsError`.
            PyOSError::new_err((17, (*reason).to_owned(), path.display().to_string()))
        }
        Error::Corrupt { path, offset, .. } | Error::TornTail { path, offset, .. } => {
            simstore_exception(py, "CorruptError", (message, code, path.display().to_string(), *offset))
        }
        Error::BadInput { path, line, .. } => {
            simstore_exception(py, "BadInputError", (message, code, path.display().to_string(), *line))
        }
        Error::UnsupportedVersion { .. } | Error::NotAStore { .. } => {
            simstore_exception(py, "NotAStoreError", (message, code))
        }
        Error::Locked { .. } => simstore_exception(py, "LockedError", (message, code)),
        Error::Setting { .. }
        | Error::Width { .. }
        | Error::Distance { .. }
        | Error::OutOfOrder { .. }
        | Error::IncompletePlan { .. }
        | Error::BadArgument(_) => PyValueError::new_err(message),
        Error::Bug(_) => simstore_exception(py, "InternalError", (message, code)),
        _ => simstore_exception(py, "Error", (message, code)),
    }
}

/// Returns an error message of a Rust crate with the Python names of the options.
pub(crate) fn python_message(message: &str) -> String {
    message.replace("option `text_field`", "option `text`").replace("option `id_field`", "option `id`")
}

/// Returns the error for a call that needs exactly one of two arguments, `one` or `other`. If `is_both` is set, both
/// were given, otherwise none.
pub(crate) fn one_of_two_error(one: &str, other: &str, is_both: bool) -> PyErr {
    let found = if is_both { "both" } else { "neither" };
    PyTypeError::new_err(format!("expected {one} or {other}, found {found}"))
}

/// Makes an `OSError`. Python chooses the subclass by the error number, such as `FileNotFoundError`.
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

/// Makes an exception of a class in `simstore.errors`.
fn simstore_exception<'py>(py: Python<'py>, class: &str, arguments: impl PyCallArgs<'py>) -> PyErr {
    let make = || py.import("simstore.errors")?.getattr(class)?.call1(arguments);
    make().map_or_else(|error| error, PyErr::from_value)
}
