//! Removal of the part files of an input file that has changed.

use std::fs;
use std::path::Path;

use simstore::{Error, Result};

use crate::checkpoint::checksummed_file::ChecksummedReader;
use crate::checkpoint::parts::header::{FILE_SUFFIX, PartHeader};
use simstore_io::document::name_to_path;

/// Removes all part files in `folder` that have documents of the input file `file`. Returns the number of removed
/// part files. If `file` is a member of an archive, removes the part files of the archive.
pub(crate) fn remove_parts_with_file(folder: &Path, file: &Path) -> Result<u64> {
    let mut removed = 0;
    for entry in fs::read_dir(folder).map_err(Error::io(folder, "list"))? {
        let path = entry.map_err(Error::io(folder, "list"))?.path();
        let is_part =
            path.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(FILE_SUFFIX.as_bytes()));
        if is_part && has_file(&path, file) {
            fs::remove_file(&path).map_err(Error::io(&path, "remove"))?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Whether a part file has documents of an input file. Returns `false` for a damaged part file, because the
/// next run replaces it anyway.
fn has_file(part: &Path, file: &Path) -> bool {
    let Ok(mut lines) = ChecksummedReader::open(part) else { return false };
    let header = lines.next_line().ok().and_then(|line| serde_json::from_slice::<PartHeader>(line).ok());
    header.is_some_and(|header| {
        header.files.iter().any(|of_part| file.starts_with(name_to_path(&of_part.path)))
    })
}
