//! The manifest: what a store consists of (`format-spec/manifest.md`).

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use byteorder::{ByteOrder, LittleEndian};

use crate::codec::Codec;
use crate::error::{Damage, Error, Result};
use crate::format;
use crate::fs::{Fs, NewFile};

/// The name of the manifest in a store's folder.
pub(crate) const MANIFEST: &str = "MANIFEST";

/// What is the same in all of a store, and settled when it is made.
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
    /// The name of the plan of each segment, or `auto`.
    pub(crate) plan: String,
}

/// The settings of a store and what it consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) settings: Settings,
    /// For the next segment or log.
    pub(crate) next_number: u64,
    /// Operations from this log on are not in the segments; 0 if there are no logs.
    pub(crate) first_log: u64,
    /// How many records came before the first log.
    pub(crate) sequence: u64,
    /// The largest id that was ever stored in segments; it never goes down, so that no id is given twice.
    pub(crate) highest_id: Option<u64>,
    /// The oldest first.
    pub(crate) segments: Vec<SegmentEntry>,
}

/// A segment in the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    pub(crate) tables: u32,
    pub(crate) has_ids: bool,
    pub(crate) has_names: bool,
    /// The footer's checksum of each of its files, in the order of [`SegmentEntry::files`].
    pub(crate) footers: Vec<u32>,
    /// Name of the plan of its tables.
    pub(crate) plan: String,
}

const HAS_IDS: u8 = 1;
const HAS_NAMES: u8 = 2;
const HAS_TOMBSTONES: u8 = 4;
const HAS_MARKS: u8 = 8;
/// In the flags of the store.
const KEEPS_IDS: u8 = 1;
const HAS_HIGHEST_ID: u8 = 2;
/// Segments and logs have smaller numbers.
const END_OF_NUMBERS: u64 = 1 << 48;
/// The fields up to the profile.
const FIXED_LEN: usize = 64;
/// These, the lengths of two texts, checksum and magic.
const MIN_LEN: usize = FIXED_LEN + 4 + 4 + 4 + 8;

impl SegmentEntry {
    pub(crate) fn table_name(&self, table: u32) -> String {
        format!("{:06}-{table:02}.table", self.number)
    }

    pub(crate) fn ids_name(&self) -> String {
        format!("{:06}.ids", self.number)
    }

    pub(crate) fn names_name(&self) -> String {
        format!("{:06}.names", self.number)
    }

    pub(crate) fn tombstones_name(&self) -> String {
        format!("{:06}.tombstones", self.number)
    }

    pub(crate) fn marks_name(&self) -> String {
        format!("{:06}.marks", self.number)
    }

    /// The names of all files of the segment.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut files: Vec<String> = (0..self.tables).map(|table| self.table_name(table)).collect();
        files.extend(self.has_ids.then(|| self.ids_name()));
        files.extend(self.has_names.then(|| self.names_name()));
        files.extend((self.tombstones > 0).then(|| self.tombstones_name()));
        files.extend((self.marks > 0).then(|| self.marks_name()));
        files
    }
}

/// The name of a log.
pub(crate) fn log_name(number: u64) -> String {
    format!("{number:06}.log")
}

/// Every number of a segment or log has been given.
fn no_number_left(path: &Path) -> Error {
    let why =
        "no number is left for another file of the store: make another store of it with `simstore salvage`";
    Error::BadArgument(format!("{}: {why}", path.display()))
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

/// Whether a file of a store's folder is one that simstore made: those may be removed when no manifest names
/// them.
pub(crate) fn is_store_file(name: &str) -> bool {
    if name == "MANIFEST.tmp" {
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
            let endings = [".ids", ".names", ".tombstones", ".marks", ".log"];
            rest == ending && (temporary || endings.contains(&ending))
        }
        _ => table == 2 && (temporary || ending == ".table"),
    }
}

impl Manifest {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = format::MANIFEST_MAGIC.to_vec();
        bytes.extend_from_slice(&format::VERSION.to_le_bytes());
        let settings = &self.settings;
        let has_highest = u8::from(self.highest_id.is_some()) * HAS_HIGHEST_ID;
        let flags = (u8::from(settings.ids) * KEEPS_IDS) | has_highest;
        bytes.extend_from_slice(&[
            settings.bits as u8,
            settings.distance as u8,
            settings.codec.number(),
            flags,
        ]);
        bytes.extend_from_slice(&settings.block_size.unwrap_or(0).to_le_bytes());
        bytes.extend_from_slice(&u32::from(settings.span.unwrap_or(0)).to_le_bytes());
        for field in [self.next_number, self.first_log, self.sequence, self.highest_id.unwrap_or(0)] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        bytes.extend_from_slice(&(self.segments.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        write_string(&mut bytes, &settings.profile);
        write_string(&mut bytes, &settings.plan);
        for segment in &self.segments {
            let counts = [segment.ids, segment.names, segment.tombstones, segment.marks];
            for field in [segment.number, segment.fingerprints].iter().chain(&counts) {
                bytes.extend_from_slice(&field.to_le_bytes());
            }
            bytes.extend_from_slice(&segment.tables.to_le_bytes());
            let flags = (u8::from(segment.has_ids) * HAS_IDS)
                | (u8::from(segment.has_names) * HAS_NAMES)
                | (u8::from(segment.tombstones > 0) * HAS_TOMBSTONES)
                | (u8::from(segment.marks > 0) * HAS_MARKS);
            bytes.extend_from_slice(&u32::from(flags).to_le_bytes());
            segment.footers.iter().for_each(|crc| bytes.extend_from_slice(&crc.to_le_bytes()));
            write_string(&mut bytes, &segment.plan);
        }
        let crc = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes.extend_from_slice(&format::MANIFEST_MAGIC);
        bytes
    }

    pub(crate) fn decode(path: &Path, bytes: &[u8]) -> Result<Manifest> {
        let footer = format::check_ends(path, bytes, format::MANIFEST_MAGIC, 12)?;
        let (expected, found) = (LittleEndian::read_u32(&bytes[footer..]), crc32fast::hash(&bytes[..footer]));
        if expected != found {
            let damage = Damage::Checksum { part: "manifest", expected, found };
            return Err(Error::corrupt(path, footer as u64, damage));
        }
        if bytes.len() < MIN_LEN {
            let damage = Damage::Truncated { expected: MIN_LEN as u64, found: bytes.len() as u64 };
            return Err(Error::corrupt(path, 0, damage));
        }
        let field = |offset: usize, name, found: u64, expected, sound: bool| {
            let damage = Damage::Field { name, found, expected };
            if sound { Ok(()) } else { Err(Error::corrupt(path, offset as u64, damage)) }
        };
        let (bits, distance) = (u32::from(bytes[12]), u32::from(bytes[13]));
        field(12, "bits", u64::from(bits), "64 or 128", bits == 64 || bits == 128)?;
        field(13, "distance", u64::from(distance), "at most a quarter of the bits", distance <= bits / 4)?;
        let codec = Codec::of_number(bytes[14]).map_err(|damage| Error::corrupt(path, 14, damage))?;
        let flags = u64::from(bytes[15]);
        field(15, "flags", flags, "0 to 3", flags <= 3)?;
        let [keeps_ids, has_highest] = [KEEPS_IDS, HAS_HIGHEST_ID].map(|flag| bytes[15] & flag != 0);
        let block_size = LittleEndian::read_u32(&bytes[16..]);
        let block_size = (block_size > 0).then_some(block_size);
        let expected = "0, or a power of two from 256 to 65536";
        let found = u64::from(block_size.unwrap_or(0));
        field(16, "block size", found, expected, format::check_block_size(block_size).is_ok())?;
        let span = LittleEndian::read_u16(&bytes[20..]);
        field(20, "span", u64::from(span), "0 to 256", span <= format::MAX_SPAN)?;
        format::check_reserved(path, 22, &bytes[22..24])?;
        let [next_number, first_log, sequence, highest_id] =
            [24, 32, 40, 48].map(|at| LittleEndian::read_u64(&bytes[at..]));
        field(48, "highest id", highest_id, "0 where no id was stored", has_highest || highest_id == 0)?;
        let highest_id = has_highest.then_some(highest_id);
        let count = LittleEndian::read_u32(&bytes[56..]);
        format::check_reserved(path, 60, &bytes[60..FIXED_LEN])?;
        field(24, "next number", next_number, "1 to 2^48", (1..=END_OF_NUMBERS).contains(&next_number))?;
        field(32, "first log", first_log, "less than the next number", first_log < next_number)?;
        let mut rest = Fields { path, bytes: &bytes[..footer], at: FIXED_LEN };
        let (profile, plan) = (rest.string()?, rest.string()?);
        let mut segments = Vec::new();
        let mut numbers = HashSet::new();
        for _ in 0..count {
            let start = rest.at;
            let (number, fingerprints, ids) = (rest.u64()?, rest.u64()?, rest.u64()?);
            let (names, tombstones, marks) = (rest.u64()?, rest.u64()?, rest.u64()?);
            let (tables, flags) = (rest.u32()?, rest.u32()?);
            let limit = crate::plan::MAX_TABLES as u32;
            field(start + 48, "tables", u64::from(tables), "1 to 64", (1..=limit).contains(&tables))?;
            field(start + 52, "flags", u64::from(flags), "0 to 15", flags <= 15)?;
            let has = |flag| flags as u8 & flag != 0;
            let (has_ids, has_names) = (has(HAS_IDS), has(HAS_NAMES));
            let sound = if has_ids { ids >= fingerprints } else { ids == 0 };
            field(start + 16, "ids", ids, "one a fingerprint at least, or none without an id file", sound)?;
            field(start + 52, "flags", u64::from(flags), "ids as the store has them", has_ids == keeps_ids)?;
            let expected = "1 at least, or none without a name file";
            field(start + 24, "names", names, expected, has_names == (names > 0))?;
            let expected = "1 at least, or none without a tombstone file";
            field(start + 32, "tombstones", tombstones, expected, has(HAS_TOMBSTONES) == (tombstones > 0))?;
            let expected = "1 at least, or none without a mark file";
            field(start + 40, "marks", marks, expected, has(HAS_MARKS) == (marks > 0))?;
            let expected = "a number below the next one that no other segment has";
            field(start, "number", number, expected, number < next_number && numbers.insert(number))?;
            let files = tables + flags.count_ones();
            let footers = (0..files).map(|_| rest.u32()).collect::<Result<_>>()?;
            segments.push(SegmentEntry {
                number,
                fingerprints,
                ids,
                names,
                tombstones,
                marks,
                tables,
                has_ids,
                has_names,
                footers,
                plan: rest.string()?,
            });
        }
        let left = (footer - rest.at) as u64;
        field(rest.at, "bytes after the last segment", left, "none", left == 0)?;
        let span = (span > 0).then_some(span);
        let settings = Settings { bits, distance, codec, ids: keeps_ids, block_size, span, profile, plan };
        Ok(Manifest { settings, next_number, first_log, sequence, highest_id, segments })
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
                (std::io::ErrorKind::NotFound, Ok(_)) => Error::NotAStore {
                    path: store.to_path_buf(),
                    reason: format!("the folder has no {MANIFEST}; if a build was cut off, run it again"),
                },
                (std::io::ErrorKind::NotADirectory, _) => Error::NotAStore {
                    path: store.to_path_buf(),
                    reason: "a store is a folder, this is a file".to_string(),
                },
                (std::io::ErrorKind::NotFound, Err(list)) => Error::io(store, "open")(list),
                _ => Error::io(&path, "open")(error),
            }),
        }
    }

    /// Replaces the manifest of a store, all or nothing.
    pub(crate) fn save(&self, fs: &Arc<dyn Fs>, store: &Path) -> Result<()> {
        let path: PathBuf = store.join(MANIFEST);
        if self.next_number > END_OF_NUMBERS {
            return Err(no_number_left(&path));
        }
        let mut file = NewFile::create(fs, &path)?;
        file.write_all(&self.encode()).map_err(Error::io(&path, "write"))?;
        file.commit()?;
        fs.sync_dir(store).map_err(Error::io(store, "sync"))
    }
}

/// A length of 4 bytes, then UTF-8.
fn write_string(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

/// Reads one field after the other.
struct Fields<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        if rest.len() < len {
            let damage = Damage::Truncated { expected: len as u64, found: rest.len() as u64 };
            return Err(Error::corrupt(self.path, self.at as u64, damage));
        }
        self.at += len;
        Ok(&rest[..len])
    }

    fn u32(&mut self) -> Result<u32> {
        self.take(4).map(LittleEndian::read_u32)
    }

    fn u64(&mut self) -> Result<u64> {
        self.take(8).map(LittleEndian::read_u64)
    }

    fn string(&mut self) -> Result<String> {
        let at = self.at as u64;
        let len = self.u32()? as usize;
        let bytes = self.take(len)?.to_vec();
        String::from_utf8(bytes).map_err(|error| {
            let found = error.utf8_error().valid_up_to() as u64;
            let damage = Damage::Field { name: "text", found, expected: "UTF-8" };
            Error::corrupt(self.path, at, damage)
        })
    }
}

#[cfg(test)]
mod tests;
