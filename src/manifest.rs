//! The manifest: the file that lists a store's settings, its segments and its first log. This module also names and
//! recognizes the other files of a store.

mod encoding;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::format;
use crate::fs::{Fs, NewFile, TEMPORARY_SUFFIX};
use crate::plan::PlanChoice;

/// File name of the manifest.
pub(crate) const MANIFEST: &str = "MANIFEST";

/// File name of the marker of an unfinished build. A finished build replaces the marker with the manifest.
pub(crate) const BUILD_MARKER: &str = "BUILDING";

/// Settings of a store. They are fixed when the store is created, except `distance` and `plan`, which a compaction
/// can change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Width of the fingerprints, in bits.
    pub(crate) bits: u32,
    /// Largest Hamming distance that queries may ask for, in bits.
    pub(crate) distance: u32,
    pub(crate) codec: Codec,
    /// Whether the store keeps ids with its fingerprints.
    pub(crate) has_ids: bool,
    /// Block size of new tables in bytes; `None` is the codec's default.
    pub(crate) block_size: Option<u32>,
    /// Number of fingerprints from one restart point (a place in a block where decoding can start) to the next in new
    /// tables; `None` is the codec's default.
    pub(crate) span: Option<u16>,
    /// Text profile, which describes how texts become fingerprints; empty if the fingerprints are not of texts.
    pub(crate) profile: String,
    /// Plan for the tables of new segments: a fixed plan by its name, or an automatic choice.
    pub(crate) plan: PlanChoice,
}

/// The content of a manifest: settings, segments and first log of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) settings: Settings,
    /// Smallest file number that a new segment or log may get. It is greater than the file numbers of all segments. But
    /// newer logs, which the manifest does not list, may already use this number or greater ones.
    pub(crate) next_number: u64,
    /// File number of the oldest log whose operations are not in segments; 0 if there is no such log.
    pub(crate) first_log: u64,
    /// Sequence number of the first record in the log `first_log`: the count of all log records that the store
    /// has ever written before that record.
    pub(crate) first_sequence: u64,
    /// Largest id ever stored, except ids that are still only in logs. It never decreases, even if the id is deleted, so a
    /// program that numbers its documents uses no id twice.
    pub(crate) highest_id: Option<u64>,
    /// Descriptions of the segments, oldest first.
    pub(crate) segments: Vec<SegmentEntry>,
}

/// The manifest's description of one segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentEntry {
    /// File number: the names of all files of the segment start with it.
    pub(crate) number: u64,
    /// Number of distinct fingerprints.
    pub(crate) fingerprints: u64,
    /// Number of pairs of fingerprint and id; 0 if the store has no ids.
    pub(crate) ids: u64,
    /// Number of document names.
    pub(crate) names: u64,
    /// Number of tombstones. Each deletes a pair from older segments.
    pub(crate) tombstones: u64,
    /// Number of metadata values.
    pub(crate) metadata: u64,
    /// Number of notes (bytes stored with a document).
    pub(crate) notes: u64,
    pub(crate) tables: u32,
    pub(crate) has_ids: bool,
    /// Checksum in the footer of each file, in the order of [`SegmentEntry::file_names`].
    pub(crate) footer_crcs: Vec<u32>,
    /// Name of the plan that the segment's tables were built with.
    pub(crate) plan: String,
}

/// File numbers of segments and logs are less than this limit.
const FILE_NUMBER_END: u64 = 1 << 48;

/// File name extensions of a segment's side files (all files except tables), in the order of their flags in the manifest.
const SIDE_FILE_EXTENSIONS: [&str; 5] = ["ids", "names", "tombstones", "metadata", "notes"];

impl SegmentEntry {
    pub(crate) fn table_file_name(&self, table: u32) -> String {
        format!("{:06}-{table:02}.table", self.number)
    }

    /// Returns the name of the segment's side file with this extension, which is one of [`SIDE_FILE_EXTENSIONS`].
    pub(crate) fn side_file_name(&self, extension: &str) -> String {
        format!("{:06}.{extension}", self.number)
    }

    /// Returns for each extension in [`SIDE_FILE_EXTENSIONS`] whether the segment has the side file with this extension.
    fn has_side_files(&self) -> [bool; SIDE_FILE_EXTENSIONS.len()] {
        [self.has_ids, self.names > 0, self.tombstones > 0, self.metadata > 0, self.notes > 0]
    }

    /// Returns the names of all files of the segment: tables, then side files.
    pub(crate) fn file_names(&self) -> Vec<String> {
        let tables = (0..self.tables).map(|table| self.table_file_name(table));
        let others = SIDE_FILE_EXTENSIONS.iter().zip(self.has_side_files()).filter(|(_, has)| *has);
        tables.chain(others.map(|(extension, _)| self.side_file_name(extension))).collect()
    }
}

/// Returns the file name of a log.
pub(crate) fn log_file_name(number: u64) -> String {
    format!("{number:06}.log")
}

/// Returns the [`Error::Exhausted`] for a store that has used all file numbers.
fn numbers_exhausted(path: &Path) -> Error {
    let reason = "file numbers are exhausted: `salvage` the store into a new one";
    Error::Exhausted { path: path.to_path_buf(), reason }
}

/// Returns an error if the file number of a new log is too large, because readers would ignore the log.
pub(crate) fn check_log_number(path: &Path, number: u64) -> Result<()> {
    if number < FILE_NUMBER_END { Ok(()) } else { Err(numbers_exhausted(path)) }
}

/// Returns the number in the file name of a log; `None` if `name` is not the file name of a log.
pub(crate) fn log_number(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".log")?.parse().ok()?;
    (log_file_name(number) == name && number < FILE_NUMBER_END).then_some(number)
}

/// Returns an unused file number for a new segment or log. It is greater than the number of any file in `names`, and
/// at least the manifest's `next_number`. The names are needed because the manifest does not list all logs.
pub(crate) fn next_free_number(manifest: Option<&Manifest>, names: &[String]) -> u64 {
    let number = |name: &String| {
        let digits = name.bytes().take_while(u8::is_ascii_digit).count();
        is_store_file(name).then(|| name[..digits].parse::<u64>().ok()).flatten()
    };
    let above = names.iter().filter_map(number).max().map_or(1, |highest| highest.saturating_add(1));
    above.max(manifest.map_or(1, |manifest| manifest.next_number))
}

/// Whether a file name is the name of a segment file, a log or a temporary file of a store. A file with such a
/// name may be removed if the manifest does not list it. Returns false for the names of the manifest, of the build
/// marker and of the lock file.
pub(crate) fn is_store_file(name: &str) -> bool {
    if name.strip_suffix(TEMPORARY_SUFFIX).is_some_and(|name| [MANIFEST, BUILD_MARKER].contains(&name)) {
        return true;
    }
    // NNNNNN, optionally -TT, then an extension. Temporary files end in `.tmp`, optionally after another extension.
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let number = digits(name);
    let rest = &name[number..];
    let (table, extension) = match rest.strip_prefix('-') {
        Some(table) => (digits(table), &table[digits(table)..]),
        None => (0, rest),
    };
    let is_temporary = extension.starts_with('.') && extension.ends_with(".tmp");
    match table {
        _ if number < 6 => false,
        0 => {
            let extensions = [".ids", ".names", ".tombstones", ".metadata", ".notes", ".log"];
            rest == extension && (is_temporary || extensions.contains(&extension))
        }
        _ => table == 2 && (is_temporary || extension == ".table"),
    }
}

/// Whether a store has lost its manifest: its folder holds complete files of a store, but neither a manifest nor the marker
/// of an unfinished build. Such files are never removed.
pub(crate) fn is_manifest_lost(names: &[String]) -> bool {
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    !has(MANIFEST)
        && !has(BUILD_MARKER)
        && names.iter().any(|name| is_store_file(name) && !name.ends_with(TEMPORARY_SUFFIX))
}

/// Error message for a store that has lost its manifest. It advises to salvage the store.
pub(crate) const MANIFEST_LOST_REASON: &str =
    "it has store files, but no MANIFEST; `salvage` copies the intact files to a new store";

/// Returns the reason why a folder without a manifest is not a store, for an error message.
fn missing_manifest_reason(names: &[String]) -> String {
    if names.iter().any(|name| name == BUILD_MARKER) {
        "the build of this store was interrupted; run it again".to_string()
    } else if is_manifest_lost(names) {
        MANIFEST_LOST_REASON.to_string()
    } else {
        format!("the directory has no {MANIFEST}: it is not a store, or an interrupted build left it")
    }
}

impl Manifest {
    /// Returns the names of the segment files that the manifest lists, and of the logs whose operations are not in segments.
    /// `names` has the names of all files in the folder.
    pub(crate) fn file_names(&self, names: &[String]) -> Vec<String> {
        let mut files: Vec<String> = self.segments.iter().flat_map(SegmentEntry::file_names).collect();
        let is_needed = |name: &&String| log_number(name).is_some_and(|number| self.has_log(number));
        files.extend(names.iter().filter(is_needed).cloned());
        files
    }

    /// Whether the log with this file number is still needed, because its operations are not in segments.
    pub(crate) fn has_log(&self, number: u64) -> bool {
        self.first_log > 0 && number >= self.first_log
    }

    /// Whether the folder has a manifest file that starts with the magic bytes of manifests. Its other bytes may be damaged.
    pub(crate) fn has_magic(fs: &dyn Fs, store: &Path) -> bool {
        fs.map(&store.join(MANIFEST)).is_ok_and(|bytes| bytes.as_ref().starts_with(&format::MANIFEST_MAGIC))
    }

    /// Reads the manifest of a store.
    pub(crate) fn load(fs: &dyn Fs, store: &Path) -> Result<Manifest> {
        let path = store.join(MANIFEST);
        match fs.map(&path) {
            Ok(bytes) => Manifest::decode(&path, bytes.as_ref()),
            Err(error) => Err(match (error.kind(), fs.list(store)) {
                (std::io::ErrorKind::NotFound, Ok(names)) => {
                    Error::NotAStore { path: store.to_path_buf(), reason: missing_manifest_reason(&names) }
                }
                (std::io::ErrorKind::NotADirectory, _) => Error::NotAStore {
                    path: store.to_path_buf(),
                    reason: "a store is a directory, but this is a file".to_string(),
                },
                (std::io::ErrorKind::NotFound, Err(list)) => Error::io(store, "open")(list),
                _ => Error::io(&path, "open")(error),
            }),
        }
    }

    /// Replaces the manifest of a store atomically.
    pub(crate) fn save(&self, fs: &Arc<dyn Fs>, store: &Path) -> Result<()> {
        self.write_as(fs, store, MANIFEST)
    }

    /// Publishes the store of an unfinished build: writes the manifest into the build marker, then renames the marker.
    pub(crate) fn save_over_marker(&self, fs: &Arc<dyn Fs>, store: &Path) -> Result<()> {
        self.write_as(fs, store, BUILD_MARKER)?;
        let path = store.join(MANIFEST);
        fs.rename(&store.join(BUILD_MARKER), &path).map_err(Error::io(&path, "rename to"))?;
        fs.sync_dir(store).map_err(Error::io(store, "sync"))
    }

    fn write_as(&self, fs: &Arc<dyn Fs>, store: &Path, name: &str) -> Result<()> {
        let path: PathBuf = store.join(name);
        if self.next_number > FILE_NUMBER_END {
            return Err(numbers_exhausted(&path));
        }
        let mut file = NewFile::create(fs, &path)?;
        file.write_all(&self.encode()).map_err(Error::io(&path, "write"))?;
        file.commit()?;
        fs.sync_dir(store).map_err(Error::io(store, "sync"))
    }
}

#[cfg(test)]
mod tests;
