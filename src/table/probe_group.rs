//! A group of probes of a query that go through the stages of a look-up together. A *probe* looks for the
//! fingerprints with one prefix. These fingerprints form the *range* of the probe.

use crate::codec::{Block, FingerprintRange};
use crate::fingerprint::Fingerprint;
use crate::plan::PROBE_GROUP_LEN;

/// Maximum number of entries in a group. A probe has one entry for each block that may have fingerprints with its
/// prefix; if there are many such blocks, only for the first one.
pub(super) const GROUP_CAPACITY: usize = PROBE_GROUP_LEN + 32;
/// If more than this number of blocks after the first one may have fingerprints with a probe's prefix, only the first
/// block gets an entry in the group.
pub(super) const MAX_EXTRA_BLOCKS: usize = 4;

/// Probes on their way through the stages of a look-up. An *entry* of the group is a probe and one of the blocks that may have
/// fingerprints with its prefix. Each array has one value for each entry. Each stage reads the arrays that the previous stage
/// has written.
#[derive(Clone, Copy)]
pub(super) struct ProbeGroup<'a, F> {
    pub(super) len: usize,
    pub(super) table: [u8; GROUP_CAPACITY],
    /// Length in bits of the prefix that the probe looks for.
    pub(super) shared: [u8; GROUP_CAPACITY],
    pub(super) low: [F; GROUP_CAPACITY],
    pub(super) block: [u32; GROUP_CAPACITY],
    pub(super) bytes: [&'a [u8]; GROUP_CAPACITY],
    pub(super) location: [ProbeLocation; GROUP_CAPACITY],
}

/// Where a table has fingerprints with the prefix that a probe looks for. Each stage of the look-up finds out more.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ProbeLocation {
    /// In the block that [`ProbeGroup::block`] has for the probe, if the table has any fingerprint with the prefix.
    Block,
    /// In several blocks: too many for each block to get its own entry in the group.
    Blocks,
    /// In the block that [`ProbeGroup::block`] has for the probe. Decoding starts at this position of the block: the
    /// `index` in the `ScanStart` that `BlockCodec::locate` returned.
    Start(u32),
    /// Nowhere: the block has no fingerprint with the prefix.
    Empty,
}

impl<'a, F: Fingerprint> ProbeGroup<'a, F> {
    /// The block of an entry, whose bytes the group must have.
    #[inline(always)]
    pub(super) fn block_bytes(&self, i: usize) -> Block<'a> {
        Block { number: self.block[i] as usize, bytes: self.bytes[i] }
    }

    #[inline(always)]
    pub(super) fn range(&self, i: usize) -> FingerprintRange<F> {
        let low = self.low[i];
        FingerprintRange { low, high: low | !F::prefix_mask(u32::from(self.shared[i])) }
    }

    /// Adds an entry for the same probe as entry `i`, but for another block of the table.
    #[inline(always)]
    pub(super) fn push_block(&mut self, i: usize, block: usize) {
        let next = self.len % GROUP_CAPACITY;
        (self.table[next], self.shared[next], self.low[next]) = (self.table[i], self.shared[i], self.low[i]);
        (self.block[next], self.location[next]) = (block as u32, ProbeLocation::Block);
        self.len += 1;
    }

    pub(super) const EMPTY: Self = ProbeGroup {
        len: 0,
        table: [0; GROUP_CAPACITY],
        shared: [0; GROUP_CAPACITY],
        low: [F::ZERO; GROUP_CAPACITY],
        block: [0; GROUP_CAPACITY],
        bytes: [&[]; GROUP_CAPACITY],
        location: [ProbeLocation::Empty; GROUP_CAPACITY],
    };
}
