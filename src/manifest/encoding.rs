//! Encoding and decoding of manifests (`format-spec/manifest.md`).

use std::collections::HashSet;
use std::path::Path;

use byteorder::{ByteOrder, LittleEndian};

use super::{FILE_NUMBER_END, Manifest, SIDE_FILE_EXTENSIONS, SegmentEntry, Settings};
use crate::codec::Codec;
use crate::error::{Damage, Error, Result};
use crate::format::{self, manifest_footer as footer, manifest_header as header, manifest_segment as entry};
use crate::plan::{MAX_TABLES, PlanChoice};

/// Flag in the manifest's header: the store keeps ids.
const HAS_IDS_FLAG: u8 = 1;
/// Flag in the manifest's header: the field with the highest id has a value.
const HAS_HIGHEST_ID_FLAG: u8 = 2;
/// Smallest size of a manifest, in bytes: the header, the length fields of two empty texts, and the footer.
const MIN_LEN: usize = header::LEN + 4 + 4 + footer::LEN;

impl Manifest {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let settings = &self.settings;
        let mut bytes = vec![0; header::LEN];
        bytes[..header::VERSION].copy_from_slice(&format::MANIFEST_MAGIC);
        LittleEndian::write_u32(&mut bytes[header::VERSION..], format::VERSION);
        bytes[header::BITS] = settings.bits as u8;
        bytes[header::DISTANCE] = settings.distance as u8;
        bytes[header::CODEC] = settings.codec.number();
        let has_highest = u8::from(self.highest_id.is_some()) * HAS_HIGHEST_ID_FLAG;
        bytes[header::FLAGS] = (u8::from(settings.has_ids) * HAS_IDS_FLAG) | has_highest;
        LittleEndian::write_u32(&mut bytes[header::BLOCK_SIZE..], settings.block_size.unwrap_or(0));
        LittleEndian::write_u16(&mut bytes[header::SPAN..], settings.span.unwrap_or(0));
        LittleEndian::write_u64(&mut bytes[header::NEXT_NUMBER..], self.next_number);
        LittleEndian::write_u64(&mut bytes[header::FIRST_LOG..], self.first_log);
        LittleEndian::write_u64(&mut bytes[header::SEQUENCE..], self.first_sequence);
        LittleEndian::write_u64(&mut bytes[header::HIGHEST_ID..], self.highest_id.unwrap_or(0));
        LittleEndian::write_u32(&mut bytes[header::SEGMENTS..], self.segments.len() as u32);
        write_text(&mut bytes, &settings.profile);
        write_text(&mut bytes, settings.plan.as_str());
        self.segments.iter().for_each(|segment| segment.encode(&mut bytes));
        let crc = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes.extend_from_slice(&format::MANIFEST_MAGIC);
        bytes
    }

    pub(crate) fn decode(path: &Path, bytes: &[u8]) -> Result<Manifest> {
        let end = format::check_ends(path, bytes, format::MANIFEST_MAGIC, footer::LEN)?;
        let crc = LittleEndian::read_u32(&bytes[end + footer::CRC..]);
        format::check_crc(path, "manifest", end, &bytes[..end], crc)?;
        if bytes.len() < MIN_LEN {
            let damage = Damage::Truncated { expected: MIN_LEN as u64, found: bytes.len() as u64 };
            return Err(Error::corrupt(path, 0, damage));
        }
        let check = |offset: usize, name, found: u64, expected, is_valid: bool| {
            check_field(path, offset, name, found, expected, is_valid)
        };
        let (bits, distance) = (u32::from(bytes[header::BITS]), u32::from(bytes[header::DISTANCE]));
        check(header::BITS, "bits", u64::from(bits), "64 or 128", bits == 64 || bits == 128)?;
        let expected = "at most a quarter of the bits";
        check(header::DISTANCE, "distance", u64::from(distance), expected, distance <= bits / 4)?;
        let codec = Codec::from_number(bytes[header::CODEC])
            .map_err(|damage| Error::corrupt(path, header::CODEC as u64, damage))?;
        let flags = bytes[header::FLAGS];
        check(header::FLAGS, "flags", u64::from(flags), "0 to 3", flags <= 3)?;
        let [keeps_ids, has_highest] = [HAS_IDS_FLAG, HAS_HIGHEST_ID_FLAG].map(|flag| flags & flag != 0);
        let block_size = LittleEndian::read_u32(&bytes[header::BLOCK_SIZE..]);
        let (found, block_size) = (u64::from(block_size), Some(block_size).filter(|&size| size > 0));
        let is_valid = format::check_block_size(block_size).is_ok();
        check(header::BLOCK_SIZE, "block size", found, "0, or a power of two from 256 to 65536", is_valid)?;
        let span = LittleEndian::read_u16(&bytes[header::SPAN..]);
        check(header::SPAN, "span", u64::from(span), "0 to 256", span <= format::MAX_SPAN)?;
        let reserved = &bytes[header::RESERVED..header::NEXT_NUMBER];
        format::check_reserved(path, header::RESERVED, reserved)?;
        let fields = [header::NEXT_NUMBER, header::FIRST_LOG, header::SEQUENCE, header::HIGHEST_ID];
        let [next_number, first_log, sequence, highest_id] =
            fields.map(|at| LittleEndian::read_u64(&bytes[at..]));
        let (expected, is_valid) = ("no highest id in a store without ids", keeps_ids || !has_highest);
        check(header::FLAGS, "flags", u64::from(flags), expected, is_valid)?;
        let (expected, is_valid) = ("0 where no id was stored", has_highest || highest_id == 0);
        check(header::HIGHEST_ID, "highest id", highest_id, expected, is_valid)?;
        let count = LittleEndian::read_u32(&bytes[header::SEGMENTS..]);
        let reserved = &bytes[header::RESERVED_AT_END..header::LEN];
        format::check_reserved(path, header::RESERVED_AT_END, reserved)?;
        let is_valid = (1..=FILE_NUMBER_END).contains(&next_number);
        check(header::NEXT_NUMBER, "next number", next_number, "1 to 2^48", is_valid)?;
        let is_valid = sequence <= format::MAX_FIRST_SEQUENCE;
        check(header::SEQUENCE, "sequence", sequence, "at most 2^63", is_valid)?;
        let is_valid = first_log < next_number;
        check(header::FIRST_LOG, "first log", first_log, "less than the next number", is_valid)?;

        let mut rest = FieldReader { path, bytes: &bytes[..end], at: header::LEN };
        let (profile, plan) = (rest.text()?, PlanChoice::from_text(rest.text()?));
        let mut segments = Vec::new();
        let mut numbers = HashSet::new();
        for _ in 0..count {
            let at = rest.at;
            let segment = SegmentEntry::decode(&mut rest, keeps_ids)?;
            let is_valid = segment.number < next_number && numbers.insert(segment.number);
            let expected = "a number below the next one that no other segment has";
            check(at + entry::NUMBER, "number", segment.number, expected, is_valid)?;
            segments.push(segment);
        }
        let left = (end - rest.at) as u64;
        check(rest.at, "bytes after the last segment", left, "none", left == 0)?;
        let span = (span > 0).then_some(span);
        let settings =
            Settings { bits, distance, codec, has_ids: keeps_ids, block_size, span, profile, plan };
        let highest_id = has_highest.then_some(highest_id);
        Ok(Manifest { settings, next_number, first_log, first_sequence: sequence, highest_id, segments })
    }
}

impl SegmentEntry {
    fn encode(&self, bytes: &mut Vec<u8>) {
        let mut fields = [0; entry::LEN];
        LittleEndian::write_u64(&mut fields[entry::NUMBER..], self.number);
        LittleEndian::write_u64(&mut fields[entry::FINGERPRINTS..], self.fingerprints);
        LittleEndian::write_u64(&mut fields[entry::IDS..], self.ids);
        LittleEndian::write_u64(&mut fields[entry::NAMES..], self.names);
        LittleEndian::write_u64(&mut fields[entry::TOMBSTONES..], self.tombstones);
        LittleEndian::write_u64(&mut fields[entry::METADATA..], self.metadata);
        LittleEndian::write_u64(&mut fields[entry::NOTES..], self.notes);
        LittleEndian::write_u32(&mut fields[entry::TABLES..], self.tables);
        // The first side file has the lowest bit.
        let flags = self.has_side_files().iter().rev().fold(0, |flags, &has| flags << 1 | u32::from(has));
        LittleEndian::write_u32(&mut fields[entry::FLAGS..], flags);
        bytes.extend_from_slice(&fields);
        self.footer_crcs.iter().for_each(|crc| bytes.extend_from_slice(&crc.to_le_bytes()));
        write_text(bytes, &self.plan);
    }

    fn decode(rest: &mut FieldReader<'_>, keeps_ids: bool) -> Result<SegmentEntry> {
        let (path, start) = (rest.path, rest.at);
        let check = |field: usize, name, found: u64, expected, is_valid: bool| {
            check_field(path, start + field, name, found, expected, is_valid)
        };
        let fields = rest.take(entry::LEN)?;
        let u64_at = |at: usize| LittleEndian::read_u64(&fields[at..]);
        let counts =
            [entry::FINGERPRINTS, entry::IDS, entry::NAMES, entry::TOMBSTONES, entry::METADATA, entry::NOTES];
        let [fingerprints, ids, names, tombstones, metadata, notes] = counts.map(u64_at);
        let flags_end = 1 << SIDE_FILE_EXTENSIONS.len();
        let tables = LittleEndian::read_u32(&fields[entry::TABLES..]);
        let flags = LittleEndian::read_u32(&fields[entry::FLAGS..]);
        let is_valid = (1..=MAX_TABLES as u32).contains(&tables);
        check(entry::TABLES, "tables", u64::from(tables), "1 to 64", is_valid)?;
        check(entry::FLAGS, "flags", u64::from(flags), "0 to 31", flags < flags_end)?;
        let has = |i: usize| flags >> i & 1 == 1;
        let has_ids = has(0);
        let is_valid = if has_ids { ids >= fingerprints } else { ids == 0 };
        check(entry::IDS, "ids", ids, "one a fingerprint at least, or none without an id file", is_valid)?;
        check(entry::FLAGS, "flags", u64::from(flags), "ids as the store has them", has_ids == keeps_ids)?;
        let others = [
            (entry::NAMES, names, "1 at least, or none without a name file"),
            (entry::TOMBSTONES, tombstones, "1 at least, or none without a tombstone file"),
            (entry::METADATA, metadata, "1 at least, or none without a metadata file"),
            (entry::NOTES, notes, "1 at least, or none without a note file"),
        ];
        for (i, (field, count, expected)) in (1..).zip(others) {
            check(field, SIDE_FILE_EXTENSIONS[i], count, expected, has(i) == (count > 0))?;
        }
        for (field, name, count) in [(entry::NAMES, "names", names), (entry::NOTES, "notes", notes)] {
            check(field, name, count, "0 in a store without ids", has_ids || count == 0)?;
        }
        let files = tables + flags.count_ones();
        let footers = (0..files).map(|_| rest.u32()).collect::<Result<_>>()?;
        Ok(SegmentEntry {
            number: u64_at(entry::NUMBER),
            fingerprints,
            ids,
            names,
            tombstones,
            metadata,
            notes,
            tables,
            has_ids,
            footer_crcs: footers,
            plan: rest.text()?,
        })
    }
}

fn check_field(
    path: &Path,
    offset: usize,
    name: &'static str,
    found: u64,
    expected: &'static str,
    is_valid: bool,
) -> Result<()> {
    let damage = Damage::Field { name, found, expected };
    if is_valid { Ok(()) } else { Err(Error::corrupt(path, offset as u64, damage)) }
}

/// Appends a text to `bytes`: its length in bytes as a `u32`, then the text in UTF-8.
fn write_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

/// Reads the fields after the manifest's header one after the other. They have no fixed offsets, because some of them have
/// variable lengths.
struct FieldReader<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> FieldReader<'a> {
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

    fn text(&mut self) -> Result<String> {
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
