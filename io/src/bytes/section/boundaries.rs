//! Chooses the boundaries between the sections of a file of lines. A compressed file can be divided only where a
//! gzip member or a zstd frame begins.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use super::stream::SectionStream;
use crate::bytes::compression::Compression;

/// A file is divided into equal sections. If it is compressed, the start of each section is then moved to the next gzip
/// member or zstd frame. The search for it covers a section's size divided by this number, but at least
/// [`MIN_SEARCH_BYTES`].
const SECTION_SEARCH_DIVISOR: u64 = 16;
/// Minimum number of bytes that are searched for the start of a gzip member or zstd frame.
const MIN_SEARCH_BYTES: u64 = 1 << 20;
/// Number of decompressed bytes that are read to check whether a gzip member or zstd frame starts at an offset.
const PROBE_BYTES: u64 = 1 << 16;
/// Number of bytes that are examined to recognize the start of a gzip member or zstd frame.
const MAGIC_BYTES: usize = 4;

/// Divides a file of `bytes` bytes into about `sections` sections. Returns the ascending offsets at which the second
/// and all later sections begin.
///
/// In a compressed file, the bytes at each returned offset look like the start of a gzip member or zstd frame.
/// Whether one really starts there is known only after the preceding section was read. Returns no offsets if no
/// such start is found.
///
/// # Errors
/// If the file cannot be read.
pub fn section_boundaries(
    path: &Path,
    compression: Compression,
    bytes: u64,
    sections: u64,
) -> io::Result<Vec<u64>> {
    let at = |section: u64| (u128::from(bytes) * u128::from(section) / u128::from(sections)) as u64;
    if compression == Compression::None {
        return Ok((1..sections).map(at).collect());
    }
    let searched = (bytes / sections / SECTION_SEARCH_DIVISOR).max(MIN_SEARCH_BYTES);
    let members = MemberSearch { path, compression, bytes };
    // A file with a single member is not searched further.
    if members.find(1, searched)?.is_none() {
        return Ok(Vec::new());
    }
    let mut boundaries = Vec::new();
    for section in 1..sections {
        let from = at(section);
        if boundaries.last().is_none_or(|&last| last < from) {
            boundaries.extend(members.find(from, searched)?);
        }
    }
    Ok(boundaries)
}

/// Searches a compressed file for the starts of gzip members or zstd frames.
struct MemberSearch<'a> {
    path: &'a Path,
    compression: Compression,
    bytes: u64,
}

impl MemberSearch<'_> {
    /// Returns the first offset at which a gzip member or zstd frame seems to start. Searches `searched` bytes
    /// from the offset `from` on.
    fn find(&self, from: u64, searched: u64) -> io::Result<Option<u64>> {
        let mut file = File::open(self.path)?;
        let end = self.bytes.min(from.saturating_add(searched));
        let window_bytes = (1 << 16) + MAGIC_BYTES - 1;
        let mut buffer = Vec::with_capacity(window_bytes);
        let mut at = from;
        while at < end {
            file.seek(SeekFrom::Start(at))?;
            buffer.clear();
            (&file).take(window_bytes as u64).read_to_end(&mut buffer)?;
            let starts = buffer.windows(MAGIC_BYTES).enumerate();
            for (start, _) in starts.filter(|(_, magic)| self.is_start(magic)) {
                let offset = at + start as u64;
                if offset < end && self.is_member(offset) {
                    return Ok(Some(offset));
                }
            }
            if buffer.len() < window_bytes {
                break;
            }
            at += (window_bytes - MAGIC_BYTES + 1) as u64;
        }
        Ok(None)
    }

    fn is_start(&self, magic: &[u8]) -> bool {
        match self.compression {
            Compression::Gzip => magic[..3] == [0x1f, 0x8b, 8] && magic[3] & 0xe0 == 0,
            _ => *magic == [0x28, 0xb5, 0x2f, 0xfd],
        }
    }

    /// Whether a gzip member or zstd frame starts at an offset: its first [`PROBE_BYTES`] bytes can be decompressed.
    fn is_member(&self, offset: u64) -> bool {
        let stream = SectionStream::open(self.path, self.compression, None, offset, None, &Arc::default());
        stream.is_ok_and(|stream| io::copy(&mut stream.take(PROBE_BYTES), &mut io::sink()).is_ok())
    }
}
