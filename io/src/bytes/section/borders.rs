//! Where sections of a file of lines may end.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use super::stream::Stream;
use crate::bytes::compression::Compression;

/// A member that begins so far behind where a section should end is looked for: a part of the size of a section, and
/// no less than this.
const SEARCHED: u64 = 16;
const LEAST_SEARCHED_BYTES: u64 = 1 << 20;
/// Bytes of a member that are decompressed to see whether it is one.
const TRIED_BYTES: u64 = 1 << 16;
/// Bytes of the start of a member that are looked at first.
const MAGIC_BYTES: usize = 4;

/// The places of a file between sections, ascending: about as many as are asked for, if it can be divided there. Of a compressed
/// file, a member or frame seems to begin at each; whether one does is known when the section before is read.
pub fn borders(path: &Path, compression: Compression, bytes: u64, sections: u64) -> io::Result<Vec<u64>> {
    let at = |section: u64| (u128::from(bytes) * u128::from(section) / u128::from(sections)) as u64;
    if compression == Compression::None {
        return Ok((1..sections).map(at).collect());
    }
    let searched = (bytes / sections / SEARCHED).max(LEAST_SEARCHED_BYTES);
    let members = Members { path, compression, bytes };
    // A file of one member is not searched further.
    if members.find(1, searched)?.is_none() {
        return Ok(Vec::new());
    }
    let mut borders = Vec::new();
    for section in 1..sections {
        let from = at(section);
        if borders.last().is_none_or(|&last| last < from) {
            borders.extend(members.find(from, searched)?);
        }
    }
    Ok(borders)
}

/// The members of a gzip file, or the frames of Zstandard.
struct Members<'a> {
    path: &'a Path,
    compression: Compression,
    bytes: u64,
}

impl Members<'_> {
    /// The first place from here on, not further than so many bytes, where one seems to begin.
    fn find(&self, from: u64, searched: u64) -> io::Result<Option<u64>> {
        let mut file = File::open(self.path)?;
        let end = self.bytes.min(from.saturating_add(searched));
        let most = (1 << 16) + MAGIC_BYTES - 1;
        let mut buffer = Vec::with_capacity(most);
        let mut at = from;
        while at < end {
            file.seek(SeekFrom::Start(at))?;
            buffer.clear();
            (&file).take(most as u64).read_to_end(&mut buffer)?;
            let starts = buffer.windows(MAGIC_BYTES).enumerate();
            for (start, _) in starts.filter(|(_, magic)| self.is_start(magic)) {
                let place = at + start as u64;
                if place < end && self.is_member(place) {
                    return Ok(Some(place));
                }
            }
            if buffer.len() < most {
                break;
            }
            at += (most - MAGIC_BYTES + 1) as u64;
        }
        Ok(None)
    }

    fn is_start(&self, magic: &[u8]) -> bool {
        match self.compression {
            Compression::Gzip => magic[..3] == [0x1f, 0x8b, 8] && magic[3] & 0xe0 == 0,
            _ => *magic == [0x28, 0xb5, 0x2f, 0xfd],
        }
    }

    /// Whether what is here can be decompressed.
    fn is_member(&self, place: u64) -> bool {
        let stream = Stream::open(self.path, self.compression, None, place, None, &Arc::default());
        stream.is_ok_and(|stream| io::copy(&mut stream.take(TRIED_BYTES), &mut io::sink()).is_ok())
    }
}
