//! Writes prefix lines.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use super::line::{LINE_BYTES, PrefixLine};
use super::shape::LineShape;
use super::{PAGE_LINES, page_crc};
use crate::error::{Error, Result};
use crate::spill::{SpillLocation, SpillWriter};

/// Number of bytes of main lines that are kept in memory while the other parts of a table are written. More lines go to
/// a temporary file.
const MEMORY_BYTES: usize = 4 << 20;

/// A buffer for the main lines of a table, in memory or in a temporary file.
pub(crate) struct LineBuffer {
    memory: Vec<u8>,
    location: Option<Arc<dyn SpillLocation>>,
    file: Option<SpillWriter>,
}

impl LineBuffer {
    /// Creates a buffer. Without a location for a temporary file, all lines stay in memory.
    pub(crate) fn new(location: Option<Arc<dyn SpillLocation>>) -> LineBuffer {
        LineBuffer { memory: Vec::new(), location, file: None }
    }

    fn push(&mut self, line: &[u8; LINE_BYTES]) -> Result<()> {
        if self.memory.len() >= MEMORY_BYTES
            && let Some(location) = &self.location
        {
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(SpillWriter::create(location.clone())?),
            };
            file.push(&self.memory)?;
            self.memory.clear();
        }
        self.memory.extend_from_slice(line);
        Ok(())
    }

    /// Calls `visitor` with all bytes in order, in pieces whose lengths are multiples of a line's.
    fn finish(self, mut visitor: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if let Some(file) = self.file {
            let mut lines = file.finish()?.open()?;
            let mut batch: Vec<LineRecord> = Vec::new();
            let mut bytes = Vec::new();
            while lines.read_batch(&mut batch)? {
                bytes.clear();
                batch.iter().for_each(|line| bytes.extend_from_slice(&line.0));
                visitor(&bytes)?;
            }
        }
        visitor(&self.memory)
    }
}

/// A line in a temporary file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LineRecord([u8; LINE_BYTES]);

impl crate::spill::FixedSize for LineRecord {
    const BYTES: usize = LINE_BYTES;

    fn write(self, bytes: &mut [u8]) {
        bytes[..LINE_BYTES].copy_from_slice(&self.0);
    }

    fn read(bytes: &[u8]) -> Self {
        let mut line = [0; LINE_BYTES];
        line.copy_from_slice(&bytes[..LINE_BYTES]);
        LineRecord(line)
    }
}

/// A writer of prefix lines. The keys come in ascending order.
pub(crate) struct LineWriter {
    shape: LineShape,
    main: LineBuffer,
    /// Number of main lines that are complete.
    complete: u64,
    /// The keys of the next main line, each with the number of times that it was pushed.
    keys: Vec<(u64, u64)>,
    /// Rank of the first of these keys.
    rank: u64,
    /// The lines that divide others.
    dividing: Vec<[u8; LINE_BYTES]>,
}

impl LineWriter {
    pub(crate) fn new(shape: LineShape, buffer: LineBuffer) -> LineWriter {
        LineWriter { shape, main: buffer, complete: 0, keys: Vec::new(), rank: 0, dividing: Vec::new() }
    }

    /// Adds the prefix of the next fingerprint. It must not be less than the previous one.
    pub(crate) fn push(&mut self, key: u64) -> Result<()> {
        let line = self.shape.address(key >> self.shape.low_bits()).line;
        while self.complete < line {
            self.complete_line()?;
        }
        match self.keys.last_mut() {
            Some((last, count)) if *last == key => *count += 1,
            _ => self.keys.push((key, 1)),
        }
        Ok(())
    }

    fn complete_line(&mut self) -> Result<()> {
        let next_line = self.shape.lines();
        let line =
            encode_line(self.shape, self.complete, &self.keys, 0, self.rank, next_line, &mut self.dividing);
        self.main.push(&line)?;
        self.rank += key_count(&self.keys);
        self.keys.clear();
        self.complete += 1;
        Ok(())
    }

    /// Completes the lines.
    pub(crate) fn finish(mut self) -> Result<FinishedLines> {
        while self.complete < self.shape.lines() {
            self.complete_line()?;
        }
        Ok(FinishedLines { main: self.main, dividing: self.dividing })
    }
}

fn key_count(keys: &[(u64, u64)]) -> u64 {
    keys.iter().map(|&(_, count)| count).sum()
}

/// Encodes a line and, if its keys do not fit, the lines that divide it.
///
/// `number` is the index of the line in its group. `keys` are its keys, each with its count. `base` is the prefix of the
/// group's key 0, and `rank` the rank of the line's first key. Dividing lines are appended to `dividing`, which
/// `main_lines` lines precede.
fn encode_line(
    shape: LineShape,
    number: u64,
    keys: &[(u64, u64)],
    base: u64,
    rank: u64,
    main_lines: u64,
    dividing: &mut Vec<[u8; LINE_BYTES]>,
) -> [u8; LINE_BYTES] {
    let count = key_count(keys);
    let low_mask = (1_u64 << shape.low_bits()) - 1;
    if count <= shape.max_keys() {
        let keys = keys.iter().flat_map(|&(key, count)| {
            let relative = key - base;
            let slot = shape.address(relative >> shape.low_bits()).slot;
            std::iter::repeat_n((slot, (relative & low_mask) as u8), count as usize)
        });
        return PrefixLine::encode_keys(rank, keys);
    }
    let first = base + shape.first_key(number);
    if let [(key, count)] = *keys {
        return PrefixLine::encode_run(rank, key - first, count);
    }
    let weight = keys.iter().map(|&(_, count)| count.min(shape.max_keys())).sum();
    let divided = shape.to_divide(number, weight);
    let start = dividing.len();
    dividing.resize(start + divided.lines() as usize, [0; LINE_BYTES]);
    let (mut rest, mut next_rank) = (keys, rank);
    for line in 0..divided.lines() {
        let is_here =
            |&(key, _): &(u64, u64)| divided.address((key - first) >> divided.low_bits()).line == line;
        let (here, after) = rest.split_at(rest.iter().position(|key| !is_here(key)).unwrap_or(rest.len()));
        let encoded = encode_line(divided, line, here, first, next_rank, main_lines, dividing);
        dividing[start + line as usize] = encoded;
        next_rank += key_count(here);
        rest = after;
    }
    PrefixLine::encode_divided(rank, main_lines + start as u64, divided)
}

/// Complete lines, ready to be written behind the other parts of a table.
pub(crate) struct FinishedLines {
    main: LineBuffer,
    dividing: Vec<[u8; LINE_BYTES]>,
}

impl FinishedLines {
    /// Number of lines that divide others.
    pub(crate) fn dividing(&self) -> u64 {
        self.dividing.len() as u64
    }

    /// Writes the lines, then the checksums of their pages. Returns the number of bytes and the checksum of the checksums.
    /// `path` appears only in messages.
    pub(crate) fn write(self, sink: &mut impl Write, path: &Path) -> Result<(u64, u32)> {
        let mut pages = PageWriter { sink, path, page: Vec::new(), crcs: Vec::new(), written: 0 };
        self.main.finish(|lines| pages.push(lines))?;
        for line in &self.dividing {
            pages.push(line)?;
        }
        pages.finish()
    }
}

/// A writer of pages, which computes their checksums.
struct PageWriter<'a, W> {
    sink: &'a mut W,
    path: &'a Path,
    page: Vec<u8>,
    crcs: Vec<u8>,
    written: u64,
}

impl<W: Write> PageWriter<'_, W> {
    const PAGE_BYTES: usize = PAGE_LINES as usize * LINE_BYTES;

    fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(Self::PAGE_BYTES - self.page.len()));
            self.page.extend_from_slice(now);
            if self.page.len() == Self::PAGE_BYTES {
                self.flush()?;
            }
            bytes = later;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let number = (self.crcs.len() / 4) as u64;
        self.crcs.extend_from_slice(&page_crc(number, &self.page).to_le_bytes());
        self.sink.write_all(&self.page).map_err(Error::io(self.path, "write"))?;
        self.written += self.page.len() as u64;
        self.page.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<(u64, u32)> {
        if !self.page.is_empty() {
            self.flush()?;
        }
        self.sink.write_all(&self.crcs).map_err(Error::io(self.path, "write"))?;
        Ok((self.written + self.crcs.len() as u64, crc32fast::hash(&self.crcs)))
    }
}
