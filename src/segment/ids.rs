//! The id file of a segment, in the order of its first table (`format-spec/ids.md`).

use std::collections::VecDeque;
use std::io::Write;
use std::path::Path;

use byteorder::{ByteOrder, LittleEndian};

use super::chunked_file::{ChunkedFile, ChunkedFileWriter};
use crate::bits;
use crate::error::{Damage, Error, Result};
use crate::file_bytes::Bytes;
use crate::format::{self, ids_chunk as field, ids_header as header};

/// Writer of an id file, with one chunk for each block of the first table.
pub(super) struct IdFileWriter<W> {
    chunks: ChunkedFileWriter<W>,
    /// Ids that are not in a chunk yet. The flag of an id is true if it is the first id of its fingerprint.
    pending: VecDeque<(u64, bool)>,
    chunk: Vec<u8>,
}

impl<W: Write> IdFileWriter<W> {
    pub(super) fn new(sink: W, path: &Path, fingerprints: u64, ids: u64) -> Result<Self> {
        let mut bytes = [0; header::LEN];
        bytes[..8].copy_from_slice(&format::IDS_MAGIC);
        LittleEndian::write_u32(&mut bytes[header::VERSION..], format::VERSION);
        LittleEndian::write_u64(&mut bytes[header::FINGERPRINTS..], fingerprints);
        LittleEndian::write_u64(&mut bytes[header::IDS..], ids);
        let chunks = ChunkedFileWriter::new(sink, path, &bytes)?;
        Ok(IdFileWriter { chunks, pending: VecDeque::new(), chunk: Vec::new() })
    }

    /// Adds an id. The id belongs to the next fingerprint if `first` is true, otherwise to the same fingerprint as
    /// the id before.
    pub(super) fn push(&mut self, id: u64, first: bool) {
        self.pending.push_back((id, first));
    }

    /// Writes the chunk with the ids of the next block of fingerprints. The block has `fingerprints` fingerprints, and their
    /// ids must have been pushed.
    pub(super) fn close_chunk(&mut self, fingerprints: usize) -> Result<()> {
        let mut groups = 0;
        let ids = self.pending.iter().take_while(|(_, first)| {
            groups += usize::from(*first);
            groups <= fingerprints
        });
        let count = ids.count();
        let ids = || self.pending.iter().take(count);
        let base = ids().map(|&(id, _)| id).min().unwrap_or(0);
        let width = 64 - ids().map(|&(id, _)| id - base).max().unwrap_or(0).leading_zeros();
        let grouped = count > fingerprints;
        let flags = if grouped { count } else { 0 };
        let len = field::LEN + (flags + count * width as usize).div_ceil(8);
        self.chunk.clear();
        self.chunk.resize(len, 0);
        let count_field = u32::try_from(count).map_err(|_| {
            Error::BadArgument("more than 4 billion ids share a few hundred fingerprints".to_string())
        })?;
        LittleEndian::write_u32(&mut self.chunk[field::COUNT..], count_field);
        LittleEndian::write_u64(&mut self.chunk[field::BASE..], base);
        self.chunk[field::WIDTH] = width as u8;
        self.chunk[field::GROUPED] = u8::from(grouped);
        let body = &mut self.chunk[field::LEN..];
        for (i, (id, first)) in self.pending.drain(..count).enumerate() {
            if grouped && first {
                bits::write_u64(body, i, 1, 1);
            }
            bits::write_u64(body, flags + i * width as usize, width, id - base);
        }
        self.chunks.write(&mut self.chunk, None)
    }

    pub(super) fn finish(self) -> Result<W> {
        self.chunks.finish()
    }
}

/// An open id file.
#[derive(Debug)]
pub(super) struct IdFile {
    pub(super) chunks: ChunkedFile,
    ids: u64,
}

/// A chunk of an id file, with a decoded header. It has the ids of the fingerprints in one block of the first table.
struct IdChunk<'a> {
    /// The packed ids: for each id, its difference from `base`. If `grouped` is true, one bit for each id precedes
    /// the packed ids. The bit is set if the id is the first of its fingerprint.
    body: &'a [u8],
    /// Number of ids.
    count: usize,
    /// Smallest id.
    base: u64,
    /// Width of a packed id in bits.
    width: u32,
    /// Whether a fingerprint may have several ids. If false, each fingerprint has exactly one id.
    grouped: bool,
}

impl IdFile {
    /// Opens an id file without comparing it with the segment's first table.
    pub(super) fn open_alone(path: &Path, bytes: Bytes) -> Result<Self> {
        let chunks = ChunkedFile::open(path, bytes, format::IDS_MAGIC, header::LEN, false)?;
        let ids = LittleEndian::read_u64(&chunks.header()[header::IDS..]);
        Ok(IdFile { chunks, ids })
    }

    /// Opens an id file. `expected` has the numbers of fingerprints and of ids according to the manifest; `blocks` is the
    /// number of blocks of the first table.
    pub(super) fn open(path: &Path, bytes: Bytes, expected: [u64; 2], blocks: usize) -> Result<Self> {
        let IdFile { chunks, ids } = IdFile::open_alone(path, bytes)?;
        let [fingerprints, expected_ids] = expected;
        let mismatch = |offset: usize, what| Error::corrupt(path, offset as u64, Damage::Mismatch { what });
        if LittleEndian::read_u64(&chunks.header()[header::FINGERPRINTS..]) != fingerprints {
            let what = "the numbers of fingerprints of the ids and of the first table";
            return Err(mismatch(header::FINGERPRINTS, what));
        }
        if chunks.len() != blocks {
            return Err(mismatch(0, "the chunks of ids and the blocks of the first table"));
        }
        if ids != expected_ids {
            return Err(mismatch(header::IDS, "the number of ids and the manifest"));
        }
        Ok(IdFile { chunks, ids })
    }

    /// Number of ids.
    pub(super) fn len(&self) -> u64 {
        self.ids
    }

    fn chunk(&self, block: usize) -> Result<IdChunk<'_>> {
        let bytes = self.chunks.get(block, field::LEN)?;
        let (count, width) = (LittleEndian::read_u32(&bytes[field::COUNT..]), u32::from(bytes[field::WIDTH]));
        format::check_reserved(self.chunks.path(), 0, &bytes[field::RESERVED..field::LEN])?;
        let grouped = bytes[field::GROUPED] != 0;
        let body = &bytes[field::LEN..];
        let needed = u64::from(count) * (u64::from(width) + u64::from(grouped));
        // If each fingerprint has one id, the ids may take no bits at all. Then only the block size limits their number.
        if bytes[field::GROUPED] > 1 || (!grouped && count as usize > format::MAX_BLOCK_FINGERPRINTS) {
            let found = u64::from(bytes[field::GROUPED]);
            let expected = "0 with an id for each fingerprint of a block, 1 with more";
            return Err(self.chunks.damaged(block, Damage::Field { name: "grouped", found, expected }));
        }
        if width > 64 || needed.div_ceil(8) != body.len() as u64 {
            let expected = "a width that makes the ids fill their chunk";
            let damage = Damage::Field { name: "width", found: u64::from(width), expected };
            return Err(self.chunks.damaged(block, damage));
        }
        let base = LittleEndian::read_u64(&bytes[field::BASE..]);
        Ok(IdChunk { body, count: count as usize, base, width, grouped })
    }

    /// Calls `visitor` with each id of the fingerprint at a position in a block, ascending.
    #[inline]
    pub(super) fn visit(&self, block: usize, position: usize, mut visitor: impl FnMut(u64)) -> Result<()> {
        let chunk = self.chunk(block)?;
        let range = chunk.group(position).ok_or_else(|| {
            let what = "the number of fingerprints of a chunk of ids and of its block";
            self.chunks.damaged(block, Damage::Mismatch { what })
        })?;
        for i in range {
            visitor(chunk.get(i).ok_or_else(|| self.too_large(block, &chunk))?);
        }
        Ok(())
    }

    /// Calls `visitor` with each id of a block, and whether it is the first id of its fingerprint, until the visitor
    /// returns false.
    pub(super) fn visit_all(&self, block: usize, mut visitor: impl FnMut(u64, bool) -> bool) -> Result<()> {
        let chunk = self.chunk(block)?;
        for i in 0..chunk.count {
            let id = chunk.get(i).ok_or_else(|| self.too_large(block, &chunk))?;
            if !visitor(id, chunk.is_first(i)) {
                break;
            }
        }
        Ok(())
    }

    /// Error for a chunk with an id of 2^64 or more.
    fn too_large(&self, block: usize, chunk: &IdChunk<'_>) -> Error {
        let expected = "a base whose sum with each difference is below 2^64";
        self.chunks.damaged(block, Damage::Field { name: "base", found: chunk.base, expected })
    }

    /// Whether the padding after the last id of a chunk is zero.
    pub(super) fn has_zero_padding(&self, block: usize) -> Result<bool> {
        let chunk = self.chunk(block)?;
        let used = chunk.count * (chunk.width as usize + usize::from(chunk.grouped)) % 8;
        Ok(used == 0 || chunk.body.last().is_none_or(|&last| last >> used == 0))
    }

    /// Number of fingerprints according to the header.
    pub(super) fn fingerprints(&self) -> u64 {
        LittleEndian::read_u64(&self.chunks.header()[header::FINGERPRINTS..])
    }

    /// Appends the (fingerprint, id) pairs of a block to `pairs`. `fingerprints` has all fingerprints of the block. Fails if the
    /// block's chunk has ids for more or fewer fingerprints.
    pub(super) fn pairs<F: Copy>(
        &self,
        block: usize,
        fingerprints: &[F],
        pairs: &mut Vec<(F, u64)>,
    ) -> Result<()> {
        let chunk = self.chunk(block)?;
        if chunk.groups() != fingerprints.len() || (chunk.count > 0 && !chunk.is_first(0)) {
            let what = "the number of fingerprints of a chunk of ids and of its block";
            return Err(self.chunks.damaged(block, Damage::Mismatch { what }));
        }
        let mut rest = fingerprints.iter();
        let mut current = None;
        let start = pairs.len();
        let read = self.visit_all(block, |id, first| {
            if first {
                current = rest.next();
            }
            pairs.extend(current.map(|&fingerprint| (fingerprint, id)));
            true
        });
        if read.is_err() {
            pairs.truncate(start);
        }
        read
    }

    /// Returns the index of each sound chunk, with the positions of the chunk's fingerprints among all `count` fingerprints
    /// of the segment. Leaves out chunks between two damaged ones, because their positions are unknown. Calls `damaged` with
    /// the error of each damaged chunk. Returns no chunks if the file is not for `count` fingerprints.
    pub(super) fn chunks_by_position(
        &self,
        count: u64,
        damaged: &mut dyn FnMut(Error),
    ) -> Vec<(usize, std::ops::Range<u64>)> {
        if self.fingerprints() != count {
            return Vec::new();
        }
        let mut lens = Vec::new();
        for block in 0..self.chunks.len() {
            let chunk = self.chunk(block).map_err(&mut *damaged).ok();
            lens.push(chunk.map(|chunk| chunk.groups() as u64));
        }
        let mut placed = Vec::new();
        let mut at = 0;
        for (block, len) in lens.iter().enumerate().map_while(|(block, len)| len.map(|len| (block, len))) {
            placed.push((block, at..at + len));
            at += len;
        }
        let (sound, mut end, mut behind) = (placed.len(), count, Vec::new());
        for (block, len) in lens.iter().enumerate().skip(sound).rev() {
            let Some(start) = len.and_then(|len| end.checked_sub(len)).filter(|start| *start >= at) else {
                break;
            };
            behind.push((block, start..end));
            end = start;
        }
        placed.extend(behind.into_iter().rev());
        placed
    }
}

impl IdChunk<'_> {
    /// Returns the id at index `i` of the chunk, or `None` if the id would be 2^64 or more.
    #[inline]
    fn get(&self, i: usize) -> Option<u64> {
        let flags = if self.grouped { self.count } else { 0 };
        let at = flags + i * self.width as usize;
        self.base.checked_add(bits::read_u64(self.body, at, self.width))
    }

    /// Number of fingerprints whose ids are in this chunk.
    fn groups(&self) -> usize {
        (0..self.count).filter(|&i| self.is_first(i)).count()
    }

    fn is_first(&self, i: usize) -> bool {
        !self.grouped || bits::read_u64(self.body, i, 1) == 1
    }

    /// Returns the indexes in this chunk of one fingerprint's ids. `position` is the fingerprint's position in the table
    /// block that the chunk belongs to. Returns `None` if the chunk has no ids for this position.
    fn group(&self, position: usize) -> Option<std::ops::Range<usize>> {
        if !self.grouped {
            return (position < self.count).then_some(position..position + 1);
        }
        let start = (0..self.count).filter(|&i| self.is_first(i)).nth(position)?;
        let end = (start + 1..self.count).find(|&i| self.is_first(i)).unwrap_or(self.count);
        Some(start..end)
    }
}

#[cfg(test)]
mod tests;
