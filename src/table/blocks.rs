//! The blocks of a table file.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bitvec::prelude::*;
use byteorder::{ByteOrder, LittleEndian};

use crate::error::{Damage, Error, Result};
use crate::file_bytes::Bytes;
use crate::format;
use crate::simd;

/// The blocks of a table file, with a bit for each block whose checksum has been verified.
#[derive(Debug)]
pub(super) struct TableBlocks {
    path: PathBuf,
    bytes: Arc<Bytes>,
    /// Byte range of all blocks in the file.
    extent: Range<usize>,
    block_size: usize,
    verified: BitBox<AtomicU64>,
}

impl TableBlocks {
    /// Creates a view of `count` blocks in the byte range `extent` of a file. Each block has `block_size` bytes,
    /// but the last one may be shorter.
    pub(super) fn new(
        path: &Path,
        bytes: Arc<Bytes>,
        extent: Range<usize>,
        block_size: usize,
        count: usize,
    ) -> Self {
        let verified = BitVec::repeat(false, count).into_boxed_bitslice();
        TableBlocks { path: path.to_path_buf(), bytes, extent, block_size, verified }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// All bytes of the file, with the operations of a mapped file.
    pub(super) fn file_bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The whole file.
    #[inline(always)]
    pub(super) fn file(&self) -> &[u8] {
        self.bytes.as_ref().as_ref()
    }

    /// Memory in bytes that this struct takes in addition to the bytes of the file.
    pub(super) fn memory(&self) -> usize {
        self.verified.len() / 8
    }

    pub(super) fn range(&self, block: usize) -> Range<usize> {
        let start = self.extent.start + block * self.block_size;
        start..(start + self.block_size).min(self.extent.end)
    }

    /// Returns the bytes of a block. The first call for a block verifies its checksum.
    #[inline(always)]
    pub(super) fn get(&self, block: usize) -> Result<&[u8]> {
        let bytes = self.unverified(block);
        if !self.is_verified(block) {
            self.verify(block, bytes)?;
        }
        Ok(bytes)
    }

    /// Returns the bytes of a block without verifying them.
    #[inline(always)]
    pub(super) fn unverified(&self, block: usize) -> &[u8] {
        &self.file()[self.range(block)]
    }

    #[inline(always)]
    fn is_verified(&self, block: usize) -> bool {
        self.verified.as_raw_slice()[block / 64].load(Ordering::Relaxed) >> (block % 64) & 1 == 1
    }

    #[cold]
    fn verify(&self, block: usize, bytes: &[u8]) -> Result<()> {
        let (expected, found) = (LittleEndian::read_u32(bytes), format::numbered_crc(block as u64, bytes));
        if expected != found {
            return Err(self.damaged(block, Damage::Checksum { part: "block", expected, found }));
        }
        self.verified.set_aliased(block, true);
        Ok(())
    }

    /// Advises the operating system to read a block ahead, if the block has not been verified before. So the disk
    /// reads the blocks of a query together, not one after the other.
    #[inline(always)]
    pub(super) fn prefetch_from_disk(&self, block: usize) {
        if block < self.verified.len() && !self.is_verified(block) {
            self.will_need(block);
        }
    }

    #[cold]
    fn will_need(&self, block: usize) {
        self.bytes.will_need(self.range(block));
    }

    /// Advises the operating system to read `blocks` ahead, and the same number of blocks after these.
    pub(super) fn read_ahead(&self, blocks: Range<usize>) {
        let start = self.extent.start + blocks.start * self.block_size;
        let end = start + 2 * blocks.len() * self.block_size;
        self.bytes.will_need(start.min(self.extent.end)..end.min(self.extent.end));
    }

    /// Prefetches the cache line with the byte `byte` of a block.
    #[inline(always)]
    pub(super) fn prefetch_byte(&self, block: usize, byte: usize) {
        simd::prefetch(self.file(), self.extent.start + block * self.block_size + byte);
    }

    /// Prefetches the first cache line of a block.
    #[inline(always)]
    pub(super) fn prefetch_head(&self, block: usize) {
        simd::prefetch(self.file(), self.extent.start + block * self.block_size);
    }

    #[cold]
    pub(super) fn damaged(&self, block: usize, damage: Damage) -> Error {
        Error::corrupt(&self.path, self.range(block).start as u64, damage)
    }
}
