//! The manifest: settings, segments and logs of a store.

mod encoding;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::format;
use crate::fs::{Fs, NewFile, TEMPORARY};
use crate::plan::PlanChoice;

/// The name of the manifest in a store's folder.
pub(crate) const MANIFEST: &str = "MANIFEST";

/// The name of the marker of an unfinished build, in a folder that has no manifest. The marker becomes the manifest.
pub(crate) const BUILDING: &str = "BUILDING";

/// Settings of a store, fixed when it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Width of the fingerprints, in bits.
    pub(crate) bits: u32,
    /// Largest distance of a query, in bits.
    pub(crate) distance: u32,
    pub(crate) codec: Codec,
    /// Whether ids are kept.
    pub(crate) ids: bool,
    pub(crate) block_size: Option<u32>,
    pub(crate) span: Option<u16>,
    /// How texts become fingerprints; empty if they do not.
    pub(crate) profile: String,
    /// Of segments that are written.
    pub(crate) plan: PlanChoice,
}

/// Settings and parts of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) settings: Settings,
    /// For the next segment or log.
    pub(crate) next_number: u64,
    /// First log whose operations are not in the segments; 0 without logs.
    pub(crate) first_log: u64,
    /// How many records came before the first log.
    pub(crate) sequence: u64,
    /// The largest id that was ever stored in segments; it never goes down, so that no id is given twice.
    pub(crate) highest_id: Option<u64>,
    /// The oldest first.
    pub(crate) segments: Vec<SegmentEntry>,
}

/// A segment in the manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentEntry {
    /// Its files' names start with this number.
    pub(crate) number: u64,
    /// Distinct fingerprints.
    pub(crate) fingerprints: u64,
    /// Pairs of fingerprint and id; 0 if it has no ids.
    pub(crate) ids: u64,
    /// Names; 0 if it has none.
    pub(crate) names: u64,
    /// Pairs deleted from older segments.
    pub(crate) tombstones: u64,
    /// Marks; 0 if it has none.
    pub(crate) marks: u64,
    /// Notes; 0 if it has none.
    pub(crate) notes: u64,
    pub(crate) tables: u32,
    pub(crate) has_ids: bool,
    /// The footer's checksum of each of its files, in the order of [`SegmentEntry::files`].
    pub(crate) footers: Vec<u32>,
    /// Name of the plan of its tables.
    pub(crate) plan: String,
}

/// Segments and logs have smaller numbers.
const END_OF_NUMBERS: u64 = 1 << 48;

/// The endings of a segment's files beside its tables, in the order of their flags in a manifest.
const ENDINGS: [&str; 5] = ["ids", "names", "tombstones", "marks", "notes"];

impl SegmentEntry {
    pub(crate) fn table_name(&self, table: u32) -> String {
        format!("{:06}-{table:02}.table", self.number)
    }

    /// The name of the file with one of [`ENDINGS`].
    pub(crate) fn file(&self, ending: &str) -> String {
        format!("{:06}.{ending}", self.number)
    }

    /// Whether the segment has a file with each of [`ENDINGS`].
    fn has_files(&self) -> [bool; ENDINGS.len()] {
        [self.has_ids, self.names > 0, self.tombstones > 0, self.marks > 0, self.notes > 0]
    }

    /// The names of all files of the segment.
    pub(crate) fn files(&self) -> Vec<String> {
        let tables = (0..self.tables).map(|table| self.table_name(table));
        let others = ENDINGS.iter().zip(self.has_files()).filter(|(_, has)| *has);
        tables.chain(others.map(|(ending, _)| self.file(ending))).collect()
    }
}

/// The name of a log.
pub(crate) fn log_name(number: u64) -> String {
    format!("{number:06}.log")
}

/// Every number of a segment or log has been given.
fn no_number_left(path: &Path) -> Error {
    let reason = "file numbers are exhausted: `salvage` the store into a new one";
    Error::Exhausted { path: path.to_path_buf(), reason }
}

/// Refuses a number that no log can have: nobody would read it.
pub(crate) fn check_log_number(path: &Path, number: u64) -> Result<()> {
    if number < END_OF_NUMBERS { Ok(()) } else { Err(no_number_left(path)) }
}

/// The number of a log by its name.
pub(crate) fn log_number(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".log")?.parse().ok()?;
    (log_name(number) == name && number < END_OF_NUMBERS).then_some(number)
}

/// A number that none of these files of a store has, nor any that its manifest knows of: segments and logs share their numbers,
/// and a manifest does not know of all logs.
pub(crate) fn free_number(manifest: Option<&Manifest>, names: &[String]) -> u64 {
    let number = |name: &String| {
        let digits = name.bytes().take_while(u8::is_ascii_digit).count();
        is_store_file(name).then(|| name[..digits].parse::<u64>().ok()).flatten()
    };
    let above = names.iter().filter_map(number).max().map_or(1, |highest| highest.saturating_add(1));
    above.max(manifest.map_or(1, |manifest| manifest.next_number))
}

/// Whether a file of a store's folder is one that simstore made: those may be removed when no manifest names
/// them.
pub(crate) fn is_store_file(name: &str) -> bool {
    if name.strip_suffix(TEMPORARY).is_some_and(|name| [MANIFEST, BUILDING].contains(&name)) {
        return true;
    }
    // NNNNNN, perhaps -TT, then the ending; before `.tmp` anything that starts with a dot, or nothing.
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let number = digits(name);
    let rest = &name[number..];
    let (table, ending) = match rest.strip_prefix('-') {
        Some(table) => (digits(table), &table[digits(table)..]),
        None => (0, rest),
    };
    let temporary = ending.starts_with('.') && ending.ends_with(".tmp");
    match table {
        _ if number < 6 => false,
        0 => {
            let endings = [".ids", ".names", ".tombstones", ".marks", ".notes", ".log"];
            rest == ending && (temporary || endings.contains(&ending))
        }
        _ => table == 2 && (temporary || ending == ".table"),
    }
}

/// Whether a store has lost its manifest: its folder holds complete files of a store, but neither a manifest nor the marker
/// of an unfinished build. Such files are never removed.
pub(crate) fn is_manifest_lost(names: &[String]) -> bool {
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    !has(MANIFEST)
        && !has(BUILDING)
        && names.iter().any(|name| is_store_file(name) && !name.ends_with(TEMPORARY))
}

/// Advice for a store that has lost its manifest.
pub(crate) const MANIFEST_LOST: &str =
    "it has store files, but no MANIFEST; `salvage` copies the intact files to a new store";

/// Reason why a folder without a manifest is no store.
fn without_manifest(names: &[String]) -> String {
    if names.iter().any(|name| name == BUILDING) {
        "the build of this store was interrupted; run it again".to_string()
    } else if is_manifest_lost(names) {
        MANIFEST_LOST.to_string()
    } else {
        format!("the directory has no {MANIFEST}: it is not a store, or an interrupted build left it")
    }
}

impl Manifest {
    /// Files of the store beside the manifest: its segments, and the logs among `names` that are not in segments.
    pub(crate) fn files(&self, names: &[String]) -> Vec<String> {
        let mut files: Vec<String> = self.segments.iter().flat_map(SegmentEntry::files).collect();
        let is_needed = |name: &&String| log_number(name).is_some_and(|number| self.has_log(number));
        files.extend(names.iter().filter(is_needed).cloned());
        files
    }

    /// Whether operations of a log of this number are not in segments.
    pub(crate) fn has_log(&self, number: u64) -> bool {
        self.first_log > 0 && number >= self.first_log
    }

    /// Whether a folder's manifest is one of simstore's, sound or not.
    pub(crate) fn is_one(fs: &dyn Fs, store: &Path) -> bool {
        fs.map(&store.join(MANIFEST)).is_ok_and(|bytes| bytes.as_ref().starts_with(&format::MANIFEST_MAGIC))
    }

    /// Reads the manifest of a store.
    pub(crate) fn load(fs: &dyn Fs, store: &Path) -> Result<Manifest> {
        let path = store.join(MANIFEST);
        match fs.map(&path) {
            Ok(bytes) => Manifest::decode(&path, bytes.as_ref()),
            Err(error) => Err(match (error.kind(), fs.list(store)) {
                (std::io::ErrorKind::NotFound, Ok(names)) => {
                    Error::NotAStore { path: store.to_path_buf(), reason: without_manifest(&names) }
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

    /// Replaces the manifest of a store, all or nothing.
    pub(crate) fn save(&self, fs: &Arc<dyn Fs>, store: &Path) -> Result<()> {
        self.write_as(fs, store, MANIFEST)
    }

    /// Makes the store of an unfinished build visible: its marker becomes the manifest, in one step.
    pub(crate) fn save_as_first(&self, fs: &Arc<dyn Fs>, store: &Path) -> Result<()> {
        self.write_as(fs, store, BUILDING)?;
        let path = store.join(MANIFEST);
        fs.rename(&store.join(BUILDING), &path).map_err(Error::io(&path, "rename to"))?;
        fs.sync_dir(store).map_err(Error::io(store, "sync"))
    }

    fn write_as(&self, fs: &Arc<dyn Fs>, store: &Path, name: &str) -> Result<()> {
        let path: PathBuf = store.join(name);
        if self.next_number > END_OF_NUMBERS {
            return Err(no_number_left(&path));
        }
        let mut file = NewFile::create(fs, &path)?;
        file.write_all(&self.encode()).map_err(Error::io(&path, "write"))?;
        file.commit()?;
        fs.sync_dir(store).map_err(Error::io(store, "sync"))
    }
}

#[cfg(test)]
mod tests;
