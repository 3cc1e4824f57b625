//! Errors for files that cannot be opened.

use std::io;
use std::path::Path;

use simstore::{Error, Result};

/// The error for a file that cannot be opened. A missing file, or lack of memory or file handles, gives [`Error::Io`]. Any
/// other failure, such as a dangling link, gives [`Error::BadInput`]: the file may be skipped.
pub fn cannot_open(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_path_buf();
    move |source| {
        let is_link = || path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
        let reason = match source.kind() {
            io::ErrorKind::NotFound if is_link() => "a dangling link".to_owned(),
            io::ErrorKind::NotFound => return Error::Io { path, action: "open", source },
            _ if is_of_process(&source) => return Error::Io { path, action: "open", source },
            _ => format!("cannot open: {source}"),
        };
        Error::BadInput { path, line: 0, reason }
    }
}

/// Whether an error says nothing about a file, but that this process, or the system, has no room for another.
pub(crate) fn is_of_process(error: &io::Error) -> bool {
    // ENOMEM, ENFILE and EMFILE; std has no kinds for the last two.
    cfg!(unix) && matches!(error.raw_os_error(), Some(12 | 23 | 24))
}

/// Whether a path is a folder.
pub fn is_folder(path: &Path) -> Result<bool> {
    Ok(path.metadata().map_err(cannot_open(path))?.is_dir())
}
