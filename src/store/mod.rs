//! Building, writing and reading stores. The root of the crate exports the types that most callers need.

mod builder;
mod bulk_load;
mod checkpoint;
mod damaged_files;
mod damaged_store;
mod flush;
mod issue;
mod iter;
mod live_store;
mod locked_folder;
mod log_chain;
mod log_tail;
mod lookup;
mod merge;
mod new_store;
mod open;
mod recovery;
mod salvage;
mod shared_state;
mod snapshot;
mod throttled_fs;
mod view;
mod writer;

use std::io;
use std::path::Path;

pub use self::builder::Builder;
pub use self::bulk_load::BulkLoad;
pub use self::damaged_files::find_damaged_files;
pub use self::damaged_store::{salvageable_bits, salvageable_metadata};
pub use self::issue::Issue;
pub use self::iter::Iter;
pub use self::live_store::{CompactOptions, Store};
pub use self::log_chain::LogInfo;
pub use self::lookup::StoredPair;
pub use self::salvage::{SalvageOptions, SalvageReport, salvage, salvage_on};
pub use self::shared_state::WriteStats;
pub use self::snapshot::{Snapshot, stored_bits};
pub use self::writer::{Insertion, Transaction};
use crate::error::{Error, Result};
use crate::fs::{Disk, Fs};
use crate::manifest::{BUILD_MARKER, MANIFEST};

/// Name of the lock file. A process that writes to the store holds a lock on it.
const LOCK_FILE: &str = "LOCK";

/// Whether a path is the folder of a store. A folder with a manifest file counts as a store, even if its files are damaged.
pub fn is_store(path: &Path) -> bool {
    Disk::default().list(path).is_ok_and(|names| names.iter().any(|name| name == MANIFEST))
}

/// Creates the folder of a store. Returns false if it exists already.
fn create_folder(fs: &dyn Fs, path: &Path) -> Result<bool> {
    match fs.create_dir(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(Error::io(path, "create")(error)),
    }
}

/// Returns the path of the folder that contains a file or folder.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether a path is inside the folder of a store. The file or folder at the path may be missing.
fn is_inside(store: &Path, path: &Path) -> bool {
    let Ok(store) = store.canonicalize() else { return path != store && path.starts_with(store) };
    let is_below = |path: &Path| path.canonicalize().is_ok_and(|path| path.starts_with(&store));
    is_below(parent(path)) || path.canonicalize().is_ok_and(|path| path != store) && is_below(path)
}

/// Syncs the parent folder of a new folder, so that the name of the new folder is durable.
fn sync_parent(fs: &dyn Fs, path: &Path) -> Result<()> {
    let parent = parent(path);
    fs.sync_dir(parent).map_err(Error::io(parent, "sync"))
}

/// Removes all segment files, logs and temporary files from the folder of a store, except the files in `keep`. The manifest
/// always stays.
fn remove_unlisted_files(fs: &dyn Fs, path: &Path, keep: &[String]) -> Result<()> {
    for name in fs.list(path).map_err(Error::io(path, "list"))? {
        if crate::manifest::is_store_file(&name) && name != MANIFEST && !keep.contains(&name) {
            let file = path.join(name);
            match fs.remove(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::io(&file, "remove")(error));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Removes the marker file of an unfinished build from the folder of a complete store. With the marker, the next build would
/// remove the store's files if the manifest were lost.
fn remove_build_marker(fs: &dyn Fs, path: &Path) -> Result<()> {
    let marker = path.join(BUILD_MARKER);
    if fs.list(path).map_err(Error::io(path, "list"))?.iter().any(|name| name == BUILD_MARKER) {
        fs.remove(&marker).map_err(Error::io(&marker, "remove"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
