//! Errors for files that cannot be opened.

use std::io;
use std::path::Path;

use simstore::{Error, Result};

/// Returns the error for a file that cannot be opened. A missing file, or a lack of memory or file handles,
/// gives [`Error::Io`]. Any other failure, such as a dangling link, gives [`Error::BadInput`]: the caller may
/// skip the file.
pub fn cannot_open(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_path_buf();
    move |source| {
        let is_link = || path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
        let reason = match source.kind() {
            io::ErrorKind::NotFound if is_link() => "a dangling link".to_owned(),
            io::ErrorKind::NotFound => return Error::Io { path, action: "open", source },
            _ if is_out_of_resources(&source) => return Error::Io { path, action: "open", source },
            _ => format!("cannot open: {source}"),
        };
        Error::BadInput { path, line: 0, reason }
    }
}

/// Whether an error means that the process or the system lacks memory or file handles, so that it says
/// nothing about the file.
pub(crate) fn is_out_of_resources(error: &io::Error) -> bool {
    // ENOMEM, ENFILE and EMFILE; std has no kinds for the last two.
    cfg!(unix) && matches!(error.raw_os_error(), Some(12 | 23 | 24))
}

/// Whether a path leads to a folder.
///
/// # Errors
/// See [`cannot_open`].
pub fn is_folder(path: &Path) -> Result<bool> {
    Ok(path.metadata().map_err(cannot_open(path))?.is_dir())
}
