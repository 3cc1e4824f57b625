//! What is wrong with a damaged store.

use std::path::PathBuf;

use crate::error::Error;

/// Something that is wrong with a damaged store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub path: PathBuf,
    /// Offset in the file, in bytes, where it is a matter of a place.
    pub offset: Option<u64>,
    /// What is wrong, and what it means.
    pub what: String,
    /// Whether something of the store is lost, or may be; otherwise all of it could be had from elsewhere.
    pub lost: bool,
}

impl Finding {
    /// What an error of the library says of a file.
    pub(super) fn of(error: &Error, lost: bool) -> Finding {
        let (path, offset, what) = match error {
            Error::Corrupt { path, offset, damage } => (path.clone(), Some(*offset), damage.to_string()),
            Error::Io { path, action, source } => (path.clone(), None, format!("cannot {action}: {source}")),
            Error::UnsupportedVersion { path, .. } | Error::Width { path, .. } => {
                (path.clone(), None, error.to_string())
            }
            other => (PathBuf::new(), None, other.to_string()),
        };
        Finding { path, offset, what, lost }
    }
}
