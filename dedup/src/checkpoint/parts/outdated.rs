//! Removing parts whose files have changed.

use std::fs;
use std::path::Path;

use simstore::{Error, Result};

use crate::checkpoint::checksummed_file::SealedLines;
use crate::checkpoint::parts::header::{ENDING, Header};
use simstore_io::document::name_to_path;

/// Removes the parts of a file in a folder, and returns how many there were. A member of an archive belongs to the archive's file.
pub(crate) fn remove_parts_of(folder: &Path, file: &Path) -> Result<u64> {
    let mut removed = 0;
    for entry in fs::read_dir(folder).map_err(Error::io(folder, "list"))? {
        let path = entry.map_err(Error::io(folder, "list"))?.path();
        let is_part =
            path.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(ENDING.as_bytes()));
        if is_part && has_file(&path, file) {
            fs::remove_file(&path).map_err(Error::io(&path, "remove"))?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Whether a part holds documents of a file. A damaged part is made again anyway.
fn has_file(part: &Path, file: &Path) -> bool {
    let Ok(mut lines) = SealedLines::open(part) else { return false };
    let header = lines.next().ok().and_then(|line| serde_json::from_slice::<Header>(line).ok());
    header.is_some_and(|header| {
        header.files.iter().any(|of_part| file.starts_with(name_to_path(&of_part.path)))
    })
}
