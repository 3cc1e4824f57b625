//! The entries of a folder to read, and errors for a folder that cannot be listed.

use std::io;
use std::path::Path;

use walkdir::DirEntry;

use crate::bytes::open_errors::is_of_process;
use simstore::Error;

/// Whether a link cannot be followed since nothing is there, or it leads back to itself.
pub(super) fn leads_nowhere(error: &io::Error) -> bool {
    error.kind() != io::ErrorKind::PermissionDenied && !is_of_process(error)
}

/// Whether an entry of a folder is read: a name that begins with a dot is not, except the folder's own.
pub(super) fn is_shown(entry: &DirEntry) -> bool {
    entry.depth() == 0 || !entry.file_name().as_encoded_bytes().starts_with(b".")
}

pub(super) fn walk_error(error: walkdir::Error) -> Error {
    let path = error.path().map(Path::to_path_buf).unwrap_or_default();
    cannot_list(&path, error.into_io_error().unwrap_or_else(|| io::Error::other("a cycle of links")))
}

/// The error of a folder that cannot be listed.
pub(super) fn cannot_list(path: &Path, source: io::Error) -> Error {
    let path = path.to_path_buf();
    if is_of_process(&source) {
        return Error::Io { path, action: "list", source };
    }
    Error::BadInput { path, line: 0, reason: format!("cannot list: {source}") }
}
