//! Finds all files that prevent a store from being opened. Opening the store reports only the first of these files.

use std::path::Path;

use super::recovery::UnflushedLogs;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::fs::Disk;
use crate::manifest::Manifest;
use crate::memtable::Memtable;
use crate::segment::Segment;

/// Finds the files that prevent a store from being opened. Calls `damaged` with an error for each missing or damaged file,
/// and returns the number of these errors. Damage inside files that can be opened is not found; see
/// [`Snapshot::verify`](crate::Snapshot::verify).
///
/// # Errors
/// Errors of [`stored_bits`](super::stored_bits()), if the manifest cannot be read: no other file can be checked without it.
pub fn find_damaged_files<F: Fingerprint>(path: &Path, mut damaged: impl FnMut(Error)) -> Result<u64> {
    let fs = Disk::default();
    let manifest = Manifest::load(&fs, path)?;
    let mut problems = 0;
    let mut report = |error| {
        problems += 1;
        damaged(error);
    };
    let distance = manifest.settings.distance;
    for entry in &manifest.segments {
        // If each file of the segment is sound alone, the files do not fit together: report the segment's own error.
        if let Err(error) = Segment::<F>::open(&fs, path, entry.clone(), distance) {
            let mut has_reported = false;
            Segment::<F>::check_files(&fs, path, entry, |error| {
                has_reported = true;
                report(error);
            });
            if !has_reported {
                report(error);
            }
        }
    }
    match UnflushedLogs::open(&fs, path, &manifest) {
        Ok(logs) => {
            let mut has_reported = false;
            logs.check_each::<F>(path, manifest.settings.has_ids, |error| {
                has_reported = true;
                report(error);
            });
            let memtable = Memtable::<F>::with_expected_pairs(0, logs.insert_count::<F>());
            if !has_reported {
                match logs.replay(path, &manifest, &memtable) {
                    Ok(chain) => chain.logs.iter().filter_map(|log| log.torn_tail(path)).for_each(report),
                    Err(error) => report(error),
                }
            }
        }
        Err(error) => report(error),
    }
    Ok(problems)
}
