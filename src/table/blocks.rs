//! The blocks of a table file.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bitvec::prelude::*;
use byteorder::{ByteOrder, LittleEndian};

use crate::error::{Damage, Error, Result};
use crate::format;
use crate::kernels;
use crate::map::Bytes;

/// The blocks of a table file, and which of them have been found sound.
#[derive(Debug)]
pub(super) struct Blocks {
    path: PathBuf,
    bytes: Bytes,
    /// Where the first block starts, and the last one ends.
    all: Range<usize>,
    size: usize,
    sound: BitBox<AtomicU64>,
}

impl Blocks {
    /// `count` blocks of `size` bytes, the last of which may be shorter, in a part of a file.
    pub(super) fn new(path: &Path, bytes: Bytes, all: Range<usize>, size: usize, count: usize) -> Self {
        let sound = BitVec::repeat(false, count).into_boxed_bitslice();
        Blocks { path: path.to_path_buf(), bytes, all, size, sound }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The whole file.
    pub(super) fn file(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Bytes in memory besides the map.
    pub(super) fn memory(&self) -> usize {
        self.sound.len() / 8
    }

    pub(super) fn range(&self, block: usize) -> Range<usize> {
        let start = self.all.start + block * self.size;
        start..(start + self.size).min(self.all.end)
    }

    /// The bytes of a block, after its checksum has been verified once.
    #[inline(always)]
    pub(super) fn get(&self, block: usize) -> Result<&[u8]> {
        let bytes = self.unverified(block);
        if !self.is_verified(block) {
            self.verify(block, bytes)?;
        }
        Ok(bytes)
    }

    /// The bytes of a block, whatever they are.
    #[inline(always)]
    pub(super) fn unverified(&self, block: usize) -> &[u8] {
        &self.bytes.as_ref()[self.range(block)]
    }

    #[inline(always)]
    fn is_verified(&self, block: usize) -> bool {
        self.sound.as_raw_slice()[block / 64].load(Ordering::Relaxed) >> (block % 64) & 1 == 1
    }

    #[cold]
    fn verify(&self, block: usize, bytes: &[u8]) -> Result<()> {
        let (expected, found) = (LittleEndian::read_u32(bytes), format::numbered_crc(block as u64, bytes));
        if expected != found {
            return Err(self.damaged(block, Damage::Checksum { part: "block", expected, found }));
        }
        self.sound.set_aliased(block, true);
        Ok(())
    }

    /// Has the operating system read a block, unless it has been read before: the blocks of a query then come from
    /// the disk together instead of one after the other.
    #[inline(always)]
    pub(super) fn fetch(&self, block: usize) {
        if block < self.sound.len() && !self.is_verified(block) {
            self.will_need(block);
        }
    }

    #[cold]
    fn will_need(&self, block: usize) {
        self.bytes.will_need(self.range(block));
    }

    /// Says that these blocks, and as many after them, will be read one after the other.
    pub(super) fn read_ahead(&self, blocks: Range<usize>) {
        let start = self.all.start + blocks.start * self.size;
        let end = start + 2 * blocks.len() * self.size;
        self.bytes.will_need(start.min(self.all.end)..end.min(self.all.end));
    }

    /// Asks for the first line of a block.
    #[inline(always)]
    pub(super) fn prefetch_head(&self, block: usize) {
        kernels::prefetch(self.bytes.as_ref(), self.all.start + block * self.size);
    }

    #[cold]
    pub(super) fn damaged(&self, block: usize, damage: Damage) -> Error {
        Error::corrupt(&self.path, self.range(block).start as u64, damage)
    }
}
