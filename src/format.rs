//! The constants of a store's files. `format-spec/` specifies their meaning.

use std::ops::RangeInclusive;
use std::path::Path;

use byteorder::{ByteOrder, LittleEndian};

use crate::error::{Damage, Error, Result};

/// Format version of all files of a store.
pub(crate) const VERSION: u32 = 1;

/// First and last bytes of a table file.
pub(crate) const TABLE_MAGIC: [u8; 8] = *b"simtable";
/// First and last bytes of an id file.
pub(crate) const IDS_MAGIC: [u8; 8] = *b"simst-id";
/// First and last bytes of a name file.
pub(crate) const NAMES_MAGIC: [u8; 8] = *b"simnames";
/// First and last bytes of a note file.
pub(crate) const NOTES_MAGIC: [u8; 8] = *b"simnotes";
/// First and last bytes of a metadata file.
pub(crate) const METADATA_MAGIC: [u8; 8] = *b"sim-meta";
/// First and last bytes of a tombstone file.
pub(crate) const TOMBSTONES_MAGIC: [u8; 8] = *b"simstomb";
/// First and last bytes of a manifest.
pub(crate) const MANIFEST_MAGIC: [u8; 8] = *b"simstore";
/// First bytes of a log.
pub(crate) const LOG_MAGIC: [u8; 8] = *b"simstlog";

/// Smallest and largest block of a table, in bytes; sizes are powers of two.
pub(crate) const BLOCK_SIZES: RangeInclusive<u32> = 256..=65536;
/// Byte offset in a block of the field with the number of fingerprints.
pub(crate) const BLOCK_COUNT: usize = 4;
/// Byte offset in a block of the field "width". The codec defines the meaning of this field.
pub(crate) const BLOCK_WIDTH: usize = 6;
/// Byte offset in a block of its first fingerprint.
pub(crate) const BLOCK_FIRST: usize = 8;
/// Largest number of fingerprints in a block.
pub(crate) const MAX_BLOCK_FINGERPRINTS: usize = u16::MAX as usize;
/// Largest number of fingerprints from one restart point (a place in a block where decoding can start) to the next.
pub(crate) const MAX_SPAN: u16 = 256;
/// Default numbers of fingerprints from one restart point (a place in a block where decoding can start) to the next.
/// The first number applies to tables with fewer than [`LARGE_TABLE_FINGERPRINTS`] fingerprints, the second to larger
/// tables. Smaller numbers make look-ups shorter and tables larger. Measured in `benches/history/block-size.md`.
pub(crate) const DEFAULT_SPANS: [u16; 2] = [64, 28];
/// Number of fingerprints from which a table counts as large, that is, larger than the processor's cache.
pub(crate) const LARGE_TABLE_FINGERPRINTS: u64 = 1 << 20;

/// Size of a page in bytes. Blocks of up to this size do not straddle pages. The header of a table takes at most one page,
/// so the first block starts at an offset of at most this number of bytes.
pub(crate) const PAGE_BYTES: u32 = 4096;
/// Minimum offset of the first block of a table, in bytes.
pub(crate) const MIN_BLOCKS_OFFSET: u32 = 256;

/// Minimum number of bits of a prefix in the prefix lines of a table.
pub(crate) const MIN_KEY_BITS: u32 = 8;

/// Offsets of the fields in the header of a table file (`format-spec/table.md`, "Header").
pub(crate) mod table_header {
    pub(crate) const VERSION: usize = 8;
    pub(crate) const BITS: usize = 12;
    pub(crate) const CODEC: usize = 13;
    pub(crate) const PREFIX_BITS: usize = 14;
    pub(crate) const FLIPS: usize = 15;
    pub(crate) const BLOCK_SIZE: usize = 16;
    pub(crate) const SPAN: usize = 20;
    /// Offset of the field "key bits": the number of bits of a prefix in the prefix lines; 0 in a table without lines.
    pub(crate) const KEY_BITS: usize = 22;
    pub(crate) const RESERVED: usize = 23;
    pub(crate) const BLOCKS_OFFSET: usize = 24;
    pub(crate) const RESERVED_AFTER_BLOCKS_OFFSET: usize = 28;
    pub(crate) const FINGERPRINTS: usize = 32;
    /// Offset of the field "lines": the number of main prefix lines; 0 in a table without lines.
    pub(crate) const LINES: usize = 40;
    pub(crate) const PERMUTATION: usize = 48;

    /// Returns the byte offsets at which the code lengths, the last field of the header, start and end. Fingerprints have
    /// `bits` bits, and the Huffman code has `symbols` symbols.
    pub(crate) const fn code_lengths(bits: u32, symbols: usize) -> (usize, usize) {
        let start = PERMUTATION + bits as usize;
        (start, start + symbols / 2)
    }
}

/// Offsets of the fields in the footer of a table file (`format-spec/table.md`, "Footer").
pub(crate) mod table_footer {
    pub(crate) const BLOCKS: usize = 0;
    pub(crate) const BLOCKS_LEN: usize = 8;
    pub(crate) const DIVIDING_LINES: usize = 16;
    pub(crate) const HEADER_CRC: usize = 24;
    pub(crate) const BLOCKS_CRC: usize = 28;
    pub(crate) const INDEX_CRC: usize = 32;
    pub(crate) const PAGES_CRC: usize = 36;
    pub(crate) const FOOTER_CRC: usize = 40;
    pub(crate) const MAGIC: usize = 44;
    pub(crate) const LEN: usize = 52;
}

/// Offsets of the fields in the header of an id file (`format-spec/ids.md`).
pub(crate) mod ids_header {
    pub(crate) const VERSION: usize = 8;
    pub(crate) const RESERVED: usize = 12;
    pub(crate) const FINGERPRINTS: usize = 16;
    pub(crate) const IDS: usize = 24;
    pub(crate) const LEN: usize = 32;
}

/// Offsets of the fields at the start of a chunk of an id file. A chunk has the ids of the fingerprints of one block
/// of the first table.
pub(crate) mod ids_chunk {
    pub(crate) const COUNT: usize = 4;
    pub(crate) const BASE: usize = 8;
    pub(crate) const WIDTH: usize = 16;
    pub(crate) const GROUPED: usize = 17;
    pub(crate) const RESERVED: usize = 18;
    pub(crate) const LEN: usize = 20;
}

/// Offsets of the fields in the header of a file of names, notes or metadata (`format-spec/names.md`, `notes.md`,
/// `metadata.md`).
pub(crate) mod entries_header {
    pub(crate) const VERSION: usize = 8;
    pub(crate) const LEN: usize = 16;
}

/// Offsets of the fields at the start of a chunk of a name, note or metadata file: checksum, number of entries.
pub(crate) mod entries_chunk {
    pub(crate) const COUNT: usize = 4;
    pub(crate) const LEN: usize = 8;
}

/// Offsets of the fields in the footer of id, name, note and metadata files: number of chunks, checksums, magic.
pub(crate) mod chunks_footer {
    pub(crate) const CHUNKS: usize = 0;
    pub(crate) const HEADER_CRC: usize = 8;
    pub(crate) const CHUNKS_CRC: usize = 12;
    pub(crate) const DIRECTORY_CRC: usize = 16;
    pub(crate) const FOOTER_CRC: usize = 20;
    pub(crate) const LEN: usize = 32;
}

/// Offsets of the fields in the header of a tombstone file (`format-spec/tombstones.md`).
pub(crate) mod tombstones_header {
    pub(crate) const VERSION: usize = 8;
    pub(crate) const BITS: usize = 12;
    pub(crate) const RESERVED: usize = 13;
    pub(crate) const COUNT: usize = 16;
    pub(crate) const LEN: usize = 24;
}

/// Offsets of the fields in the footer of a tombstone file.
pub(crate) mod tombstones_footer {
    pub(crate) const CRC: usize = 0;
    pub(crate) const LEN: usize = 12;
}

/// Offsets of the fields in the header of a manifest (`format-spec/manifest.md`). After the header come the store's
/// settings `profile` and `plan`, as two texts, and then an entry for each segment.
pub(crate) mod manifest_header {
    pub(crate) const VERSION: usize = 8;
    pub(crate) const BITS: usize = 12;
    pub(crate) const DISTANCE: usize = 13;
    pub(crate) const CODEC: usize = 14;
    pub(crate) const FLAGS: usize = 15;
    pub(crate) const BLOCK_SIZE: usize = 16;
    pub(crate) const SPAN: usize = 20;
    pub(crate) const RESERVED: usize = 22;
    pub(crate) const NEXT_NUMBER: usize = 24;
    pub(crate) const FIRST_LOG: usize = 32;
    pub(crate) const SEQUENCE: usize = 40;
    pub(crate) const HIGHEST_ID: usize = 48;
    pub(crate) const SEGMENTS: usize = 56;
    pub(crate) const RESERVED_AT_END: usize = 60;
    pub(crate) const LEN: usize = 64;
}

/// Offsets of the fields in a manifest's entry of a segment. After these fields come the footer checksums of the
/// segment's files, and the name of the plan of its tables.
pub(crate) mod manifest_segment {
    pub(crate) const NUMBER: usize = 0;
    pub(crate) const FINGERPRINTS: usize = 8;
    pub(crate) const IDS: usize = 16;
    pub(crate) const NAMES: usize = 24;
    pub(crate) const TOMBSTONES: usize = 32;
    pub(crate) const METADATA: usize = 40;
    pub(crate) const NOTES: usize = 48;
    pub(crate) const TABLES: usize = 56;
    pub(crate) const FLAGS: usize = 60;
    /// Total length of the fields before the checksums.
    pub(crate) const LEN: usize = 64;
}

/// Offsets of the fields at the end of a manifest: its checksum, then the magic bytes.
pub(crate) mod manifest_footer {
    pub(crate) const CRC: usize = 0;
    pub(crate) const LEN: usize = 12;
}

/// Offsets of the fields in the header of a log (`format-spec/log.md`).
pub(crate) mod log_header {
    pub(crate) const VERSION: usize = 8;
    pub(crate) const BITS: usize = 12;
    pub(crate) const NUMBER: usize = 16;
    pub(crate) const FIRST_SEQUENCE: usize = 24;
    pub(crate) const PREVIOUS: usize = 32;
    pub(crate) const PREVIOUS_LEN: usize = 40;
    pub(crate) const RESERVED: usize = 48;
    pub(crate) const CRC: usize = 52;
    pub(crate) const LEN: usize = 56;
}

/// Offsets of the fields at the start of a log record, before its payload.
pub(crate) mod log_record {
    /// First bytes of a log record. The byte 0xf7 never occurs in UTF-8, so no text contains this magic.
    pub(crate) const MAGIC: [u8; 4] = *b"\xf7rec";
    pub(crate) const CRC: usize = 4;
    pub(crate) const PAYLOAD_LEN: usize = 8;
    pub(crate) const RESERVED: usize = 12;
    pub(crate) const SEQUENCE: usize = 16;
    pub(crate) const DURABLE: usize = 24;
    pub(crate) const LEN: usize = 32;
    /// Records start at multiples of this number of bytes.
    pub(crate) const ALIGNMENT: usize = 8;
}

/// Length of the longest payload of a log record, in bytes.
pub(crate) const MAX_PAYLOAD_BYTES: usize = 1 << 30;
/// Length of the longest metadata key, in bytes.
pub(crate) const MAX_METADATA_KEY_BYTES: usize = 1 << 12;
/// Length of the longest metadata value, in bytes.
pub(crate) const MAX_METADATA_VALUE_BYTES: usize = 1 << 12;
/// Largest sequence number that a log may start with, so that counting up never overflows.
pub(crate) const MAX_FIRST_SEQUENCE: u64 = 1 << 63;

/// Length of the longest document name, in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 1 << 16;
/// Length of a chunk of names, in bytes, at which the chunk is complete: no more names are added to it.
pub(crate) const NAMES_CHUNK_BYTES: usize = 1 << 14;
/// Length of the longest chunk of names, in bytes: a chunk shorter than [`NAMES_CHUNK_BYTES`] may still get a name of
/// the maximum length.
pub(crate) const MAX_NAMES_CHUNK_BYTES: usize = 1 << 17;
const _: () = assert!(NAMES_CHUNK_BYTES + MAX_NAME_BYTES + 30 <= MAX_NAMES_CHUNK_BYTES);

/// Length of the longest note of a document, in bytes.
pub(crate) const MAX_NOTE_BYTES: usize = 1 << 24;
/// Length of a chunk of notes, in bytes, at which the chunk is complete: no more notes are added to it.
pub(crate) const NOTES_CHUNK_BYTES: usize = 1 << 14;
/// Length of the longest chunk of notes, in bytes: a chunk shorter than [`NOTES_CHUNK_BYTES`] may still get a note of
/// the maximum length.
pub(crate) const MAX_NOTES_CHUNK_BYTES: usize = (1 << 24) + (1 << 16);
const _: () = assert!(NOTES_CHUNK_BYTES + MAX_NOTE_BYTES + 20 <= MAX_NOTES_CHUNK_BYTES);

/// Length of a chunk of metadata, in bytes, at which the chunk is complete: no more entries are added to it.
pub(crate) const METADATA_CHUNK_BYTES: usize = 1 << 12;
/// Length of the longest chunk of metadata, in bytes: a chunk shorter than [`METADATA_CHUNK_BYTES`] may still get an
/// entry of the maximum length.
pub(crate) const MAX_METADATA_CHUNK_BYTES: usize = 1 << 14;
const _: () = assert!(
    METADATA_CHUNK_BYTES + MAX_METADATA_KEY_BYTES + MAX_METADATA_VALUE_BYTES + 4 <= MAX_METADATA_CHUNK_BYTES
);

/// Returns the checksum of `part`, a block or chunk whose index in its file is `number`. The checksum covers the index
/// and all bytes except the first four, where the checksum itself is stored. Because it covers the index, it also
/// detects blocks or chunks that were swapped.
pub(crate) fn numbered_crc(number: u64, part: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&number.to_le_bytes());
    crc.update(part.get(4..).unwrap_or_default());
    crc.finalize()
}

/// Returns the checksum in the footer of a table, id, name, note or metadata file. The caller has checked the
/// magic bytes at both ends of the file. This checksum covers the other checksums in the footer, and so
/// indirectly every byte of the file. The manifest has a copy of it.
pub(crate) fn footer_crc(file: &[u8]) -> u32 {
    file.len().checked_sub(12).map_or(0, |at| LittleEndian::read_u32(&file[at..]))
}

/// Checks that reserved bytes, which have no meaning in this version, are zero.
pub(crate) fn check_reserved(path: &Path, offset: usize, reserved: &[u8]) -> Result<()> {
    match reserved.iter().position(|&byte| byte != 0) {
        None => Ok(()),
        Some(at) => {
            let damage = Damage::Field { name: "reserved", found: u64::from(reserved[at]), expected: "zero" };
            Err(Error::corrupt(path, (offset + at) as u64, damage))
        }
    }
}

/// Fails if the bytes of a text are not UTF-8, since all texts in a store must be readable. `what` is the noun for
/// the text in the error. A Rust `str` always passes; the check is for texts from callers in other languages.
pub(crate) fn check_text(what: &str, bytes: &[u8]) -> Result<()> {
    std::str::from_utf8(bytes).map(|_| ()).map_err(|error| {
        Error::BadArgument(format!(
            "a {what} that is no UTF-8 from byte {} on: decode it before it is handed over",
            error.valid_up_to()
        ))
    })
}

/// Fails in a store without ids, where documents have neither a name nor a note: both belong to an id. `what` is the noun for
/// the name or the note in the error.
pub(crate) fn check_keeps_ids(keeps_ids: bool, what: &str) -> Result<()> {
    let message = || format!("a {what} in a store without ids: create the store with ids to keep {what}s");
    if keeps_ids { Ok(()) } else { Err(Error::BadArgument(message())) }
}

/// Fails if tables cannot have this block size in bytes. `None`, which means the codec's default, is valid.
pub(crate) fn check_block_size(block_size: Option<u32>) -> Result<()> {
    match block_size {
        Some(size) if !size.is_power_of_two() || !BLOCK_SIZES.contains(&size) => {
            let (least, most) = (BLOCK_SIZES.start(), BLOCK_SIZES.end());
            let message = format!("a block size of {size} is not a power of two from {least} to {most}");
            Err(Error::BadArgument(message))
        }
        _ => Ok(()),
    }
}

/// Checks that `bytes`, which start at `offset` of a file, have the checksum `expected`, which the file stores. `part` is
/// the name of this part of the file in the error.
pub(crate) fn check_crc(
    path: &Path,
    part: &'static str,
    offset: usize,
    bytes: &[u8],
    expected: u32,
) -> Result<()> {
    let found = crc32fast::hash(bytes);
    let damage = Damage::Checksum { part, expected, found };
    if expected == found { Ok(()) } else { Err(Error::corrupt(path, offset as u64, damage)) }
}

/// Checks that this program can read the format version of a file.
pub(crate) fn check_version(path: &Path, found: u32) -> Result<()> {
    let (path, supported) = (path.to_path_buf(), VERSION);
    if found == VERSION { Ok(()) } else { Err(Error::UnsupportedVersion { path, found, supported }) }
}

/// Checks the version of a file, and the magic bytes at its start and end. Returns the offset of its footer.
pub(crate) fn check_ends(path: &Path, file: &[u8], magic: [u8; 8], footer_len: usize) -> Result<usize> {
    let truncated = |expected: usize| {
        let damage = Damage::Truncated { expected: expected as u64, found: file.len() as u64 };
        Error::corrupt(path, file.len() as u64, damage)
    };
    let magic_at = |offset: usize| -> [u8; 8] { file[offset..][..8].try_into().unwrap_or_default() };
    if file.len() < 12 {
        return Err(truncated(12 + footer_len));
    }
    let found = magic_at(0);
    if found != magic {
        return Err(Error::corrupt(path, 0, Damage::Magic { expected: magic, found }));
    }
    let version = LittleEndian::read_u32(&file[8..]);
    check_version(path, version)?;
    if file.len() < 12 + footer_len {
        return Err(truncated(12 + footer_len));
    }
    let end = file.len() - 8;
    let found = magic_at(end);
    if found != magic {
        return Err(Error::corrupt(path, end as u64, Damage::Ending { expected: magic, found }));
    }
    Ok(file.len() - footer_len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_no_utf8_is_refused_where_it_breaks() {
        assert!(check_text("name", "naïve 一".as_bytes()).is_ok() && check_text("name", b"").is_ok());
        for (bytes, at) in
            [(&b"caf\xe9"[..], 3), (b"\xff", 0), (b"a\xc3\xa9\xed\xa0\x80", 3), (b"ab\xe4\xb8", 2)]
        {
            let error = check_text("name", bytes).unwrap_err();
            let expected = format!("a name that is no UTF-8 from byte {at} on");
            assert!(matches!(&error, Error::BadArgument(reason) if reason.starts_with(&expected)), "{error}");
        }
    }
}
