//! All files of a store that cannot be opened, not the first alone.

use std::path::Path;

use super::recovery::Logs;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::fs::Disk;
use crate::manifest::Manifest;
use crate::memtable::Memtable;
use crate::segment::Segment;

/// What keeps a store from being opened: calls `damaged` with a problem of each file that is missing or damaged, and
/// returns their number. In files that can be opened, only [`Snapshot::verify`](crate::Snapshot::verify) looks for more.
///
/// # Errors
/// As [`stored_bits`](super::stored_bits()), if the manifest cannot be read: no other file can be judged without it.
pub fn damage<F: Fingerprint>(path: &Path, mut damaged: impl FnMut(Error)) -> Result<u64> {
    let fs = Disk::default();
    let manifest = Manifest::load(&fs, path)?;
    let mut problems = 0;
    let mut report = |error| {
        problems += 1;
        damaged(error);
    };
    let distance = manifest.settings.distance;
    for entry in &manifest.segments {
        // The problem of the segment as a whole counts if each of its files is sound by itself.
        if let Err(error) = Segment::<F>::open(&fs, path, entry.clone(), distance) {
            let mut found = false;
            Segment::<F>::check_files(&fs, path, entry, |error| {
                found = true;
                report(error);
            });
            if !found {
                report(error);
            }
        }
    }
    match Logs::find(&fs, path, &manifest) {
        Ok(logs) => {
            let mut found = false;
            logs.check::<F>(path, |error| {
                found = true;
                report(error);
            });
            let memtable = Memtable::<F>::for_pairs(0, logs.pairs::<F>());
            if !found {
                match logs.replay(path, &manifest, &memtable) {
                    Ok(found) => found.logs.iter().filter_map(|log| log.torn_end(path)).for_each(report),
                    Err(error) => report(error),
                }
            }
        }
        Err(error) => report(error),
    }
    Ok(problems)
}
