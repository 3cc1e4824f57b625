//! Rules for the entries of a folder, and errors for folders that cannot be listed.

use std::io;
use std::path::Path;

use walkdir::DirEntry;

use crate::bytes::open_errors::is_out_of_resources;
use simstore::Error;

/// Given an error from following a link, returns whether the target of the link does not exist, or the link is part of
/// a cycle.
pub(super) fn is_dangling(error: &io::Error) -> bool {
    error.kind() != io::ErrorKind::PermissionDenied && !is_out_of_resources(error)
}

/// Whether an entry of a walk through a folder is visible: its name does not begin with a dot. The folder itself is
/// always visible.
pub(super) fn is_visible(entry: &DirEntry) -> bool {
    entry.depth() == 0 || !entry.file_name().as_encoded_bytes().starts_with(b".")
}

pub(super) fn walk_error(error: walkdir::Error) -> Error {
    let path = error.path().map(Path::to_path_buf).unwrap_or_default();
    cannot_list(&path, error.into_io_error().unwrap_or_else(|| io::Error::other("a cycle of links")))
}

/// Returns the error for a folder that cannot be listed.
pub(super) fn cannot_list(path: &Path, source: io::Error) -> Error {
    let path = path.to_path_buf();
    if is_out_of_resources(&source) {
        return Error::Io { path, action: "list", source };
    }
    Error::BadInput { path, line: 0, reason: format!("cannot list: {source}") }
}
