//! Issues: descriptions of damage in a store, for the report of a salvage.

use std::path::PathBuf;

use crate::error::Error;

/// One problem of a damaged store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Path of the damaged or missing file.
    pub path: PathBuf,
    /// Offset of the damage in the file, in bytes; `None` if the problem has no single position.
    pub offset: Option<u64>,
    /// Description of the problem and its consequences.
    pub description: String,
    /// Whether this problem means that content of the store is lost, or may be lost. False if other files have the
    /// content, or if another issue reports the loss.
    pub is_loss: bool,
}

impl Issue {
    /// Converts an error of the library to an issue with the error's path, offset and description. `is_loss` is the
    /// value of [`Issue::is_loss`].
    pub(super) fn from_error(error: &Error, is_loss: bool) -> Issue {
        let (path, offset, description) = match error {
            Error::Corrupt { path, offset, damage } => (path.clone(), Some(*offset), damage.to_string()),
            Error::Io { path, action, source } => (path.clone(), None, format!("cannot {action}: {source}")),
            Error::UnsupportedVersion { path, .. } | Error::Width { path, .. } => {
                (path.clone(), None, error.to_string())
            }
            other => (PathBuf::new(), None, other.to_string()),
        };
        Issue { path, offset, description, is_loss }
    }
}
