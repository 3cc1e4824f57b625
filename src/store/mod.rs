//! Stores: building, writing, reading. The root of the crate has the types that most callers need.

mod builder;
mod damage;
mod finding;
mod flush;
mod following;
mod iter;
mod live;
mod load;
mod locked_folder;
mod merge;
mod open;
mod pairs;
mod reading;
mod recovery;
mod remains;
mod salvage;
mod shared;
mod snapshot;
mod throttle;
mod view;
mod writer;

use std::io;
use std::path::Path;

pub use self::builder::Builder;
pub use self::damage::damage;
pub use self::finding::Finding;
pub use self::iter::Iter;
pub use self::live::{CompactOptions, Store};
pub use self::load::Load;
pub use self::pairs::StoredPair;
pub use self::reading::LogInfo;
pub use self::remains::{salvageable_bits, salvageable_marks};
pub use self::salvage::{SalvageOptions, Salvaged, salvage, salvage_on};
pub use self::shared::Written;
pub use self::snapshot::{Snapshot, stored_bits};
pub use self::writer::{Insertion, Transaction};
use crate::error::{Error, Result};
use crate::fs::{Disk, Fs};
use crate::manifest::{BUILDING, MANIFEST};

/// The file whose lock a writer holds.
const LOCK: &str = "LOCK";

/// Whether there is a store at a path, sound or not: a folder with a manifest.
pub fn is_store(path: &Path) -> bool {
    Disk::default().list(path).is_ok_and(|names| names.iter().any(|name| name == MANIFEST))
}

/// Makes the folder of a store. Returns false if it exists already.
fn make_folder(fs: &dyn Fs, path: &Path) -> Result<bool> {
    match fs.create_dir(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(Error::io(path, "create")(error)),
    }
}

/// Makes the name of a new folder durable.
fn sync_parent(fs: &dyn Fs, path: &Path) -> Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs.sync_dir(parent).map_err(Error::io(parent, "sync"))
}

/// Removes files that simstore made and that the manifest does not name.
fn remove_litter(fs: &dyn Fs, path: &Path, keep: &[String]) -> Result<()> {
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

/// Removes the marker of an unfinished build from the folder of a store: with a manifest it says nothing, and without one it
/// would permit a later build to remove the store's files.
fn remove_marker(fs: &dyn Fs, path: &Path) -> Result<()> {
    let marker = path.join(BUILDING);
    if fs.list(path).map_err(Error::io(path, "list"))?.iter().any(|name| name == BUILDING) {
        fs.remove(&marker).map_err(Error::io(&marker, "remove"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
