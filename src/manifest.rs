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

/// The settings of a store and its segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// Width of the fingerprints, in bits.
    pub(crate) bits: u32,
    /// Largest distance of a query, in bits.
    pub(crate) distance: u32,
    pub(crate) codec: Codec,
    /// How texts become fingerprints; empty if they do not.
    pub(crate) profile: String,
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
/// Magic, checksum, and the fields up to the profile.
const MIN_LEN: usize = 8 + 4 + 4 + 4 + 4 + 4 + 8;

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

    /// The names of all files of the segment.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut files: Vec<String> = (0..self.tables).map(|table| self.table_name(table)).collect();
        files.extend(self.has_ids.then(|| self.ids_name()));
        files.extend(self.has_names.then(|| self.names_name()));
        files
    }
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
        0 => rest == ending && (temporary || ending == ".ids" || ending == ".names"),
        _ => table == 2 && (temporary || ending == ".table"),
    }
}

impl Manifest {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = format::MANIFEST_MAGIC.to_vec();
        bytes.extend_from_slice(&format::VERSION.to_le_bytes());
        bytes.extend_from_slice(&[self.bits as u8, self.distance as u8, self.codec.number(), 0]);
        bytes.extend_from_slice(&(self.segments.len() as u32).to_le_bytes());
        write_string(&mut bytes, &self.profile);
        for segment in &self.segments {
            for field in [segment.number, segment.fingerprints, segment.ids, segment.names] {
                bytes.extend_from_slice(&field.to_le_bytes());
            }
            bytes.extend_from_slice(&segment.tables.to_le_bytes());
            let flags = (u8::from(segment.has_ids) * HAS_IDS) | (u8::from(segment.has_names) * HAS_NAMES);
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
        let number = u64::from(bytes[14]);
        let Some(codec) = Codec::of_number(bytes[14]) else {
            return Err(Error::corrupt(
                path,
                14,
                Damage::Field { name: "codec", found: number, expected: "0, 1 or 2" },
            ));
        };
        format::check_reserved(path, 15, &bytes[15..16])?;
        let count = LittleEndian::read_u32(&bytes[16..]);
        let mut rest = Fields { path, bytes: &bytes[..footer], at: 20 };
        let profile = rest.string()?;
        let mut segments = Vec::new();
        let mut numbers = HashSet::new();
        for _ in 0..count {
            let start = rest.at;
            let (number, fingerprints, ids, names) = (rest.u64()?, rest.u64()?, rest.u64()?, rest.u64()?);
            let (tables, flags) = (rest.u32()?, rest.u32()?);
            let limit = crate::plan::MAX_TABLES as u32;
            field(start + 32, "tables", u64::from(tables), "1 to 64", (1..=limit).contains(&tables))?;
            field(start + 36, "flags", u64::from(flags), "0 to 3", flags <= 3)?;
            let (has_ids, has_names) = (flags as u8 & HAS_IDS != 0, flags as u8 & HAS_NAMES != 0);
            let sound = if has_ids { ids >= fingerprints } else { ids == 0 };
            field(start + 16, "ids", ids, "one a fingerprint at least, or none without an id file", sound)?;
            let expected = "1 at least, or none without a name file";
            field(start + 24, "names", names, expected, has_names == (names > 0))?;
            let expected = "a number below 2^48 that no other segment has";
            field(start, "number", number, expected, number < 1 << 48 && numbers.insert(number))?;
            let files = tables + u32::from(has_ids) + u32::from(has_names);
            let footers = (0..files).map(|_| rest.u32()).collect::<Result<_>>()?;
            segments.push(SegmentEntry {
                number,
                fingerprints,
                ids,
                names,
                tables,
                has_ids,
                has_names,
                footers,
                plan: rest.string()?,
            });
        }
        let left = (footer - rest.at) as u64;
        field(rest.at, "bytes after the last segment", left, "none", left == 0)?;
        Ok(Manifest { bits, distance, codec, profile, segments })
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
mod tests {
    use super::*;

    fn example() -> Manifest {
        let segment = |number, plan: &str| SegmentEntry {
            number,
            fingerprints: 5,
            ids: 7,
            names: u64::from(number == 1),
            tables: 2,
            has_ids: true,
            has_names: number == 1,
            footers: vec![7; 3 + usize::from(number == 1)],
            plan: plan.to_string(),
        };
        Manifest {
            bits: 64,
            distance: 3,
            codec: Codec::Gap,
            profile: "words-2".to_string(),
            segments: vec![segment(1, "probe-2"), segment(9, "é")],
        }
    }

    #[test]
    fn comes_back() {
        let bytes = example().encode();
        assert_eq!(Manifest::decode(Path::new("m"), &bytes).unwrap(), example());
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_is_found() {
        let mut bytes = example().encode();
        for len in 0..bytes.len() {
            assert!(Manifest::decode(Path::new("m"), &bytes[..len]).is_err(), "{len}");
        }
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::decode(Path::new("m"), &bytes).is_err(), "{bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn hostile_manifests_with_a_right_checksum() {
        let sound = example().encode();
        for at in 12..sound.len() - 12 {
            for value in [0, 1, 127, 255] {
                let mut bytes = sound.clone();
                bytes[at] = value;
                let footer = bytes.len() - 12;
                let crc = crc32fast::hash(&bytes[..footer]);
                bytes[footer..footer + 4].copy_from_slice(&crc.to_le_bytes());
                let _ = Manifest::decode(Path::new("m"), &bytes);
            }
        }
    }

    #[test]
    fn only_files_of_a_store_are_ever_removed() {
        let made = ["000001-00.table", "000001.ids", "000012.names", "1000000-63.table", "MANIFEST.tmp"];
        for name in made.into_iter().chain(["000001.ids.tmp", "000001.0.tmp", "000001-01.12.tmp"]) {
            assert!(is_store_file(name), "{name}");
        }
        let others = ["MANIFEST", "LOCK", "notes.txt", "table", "00001.ids", "000001.txt", "my.names"];
        let similar =
            ["20240115-pages.table", "000001-00.ids", "000001.table", "000001-000.table", "000001-.ids"];
        for name in others.into_iter().chain(similar) {
            assert!(!is_store_file(name), "{name}");
        }
    }
}
