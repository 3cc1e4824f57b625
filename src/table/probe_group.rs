//! A group of probes of a query that go through the stages of a look-up together.

use crate::codec::FingerprintRange;
use crate::fingerprint::Fingerprint;
use crate::plan::PROBE_GROUP_LEN;

/// Largest number of entries of a group: its probes, and further blocks of their ranges.
pub(super) const GROUP_CAPACITY: usize = PROBE_GROUP_LEN + 32;
/// Largest number of further blocks for each probe of a group.
pub(super) const MAX_EXTRA_BLOCKS: usize = 4;

/// Probes on their way through the stages, stored field by field. Each stage reads the fields of the previous one.
#[derive(Clone, Copy)]
pub(super) struct ProbeGroup<'a, F> {
    pub(super) len: usize,
    pub(super) table: [u8; GROUP_CAPACITY],
    /// Number of leading bits that the fingerprints of the range share.
    pub(super) shared: [u8; GROUP_CAPACITY],
    pub(super) low: [F; GROUP_CAPACITY],
    pub(super) block: [u32; GROUP_CAPACITY],
    pub(super) bytes: [&'a [u8]; GROUP_CAPACITY],
    pub(super) location: [ProbeLocation; GROUP_CAPACITY],
}

/// The location of a range's fingerprints, as far as the stages have found it.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ProbeLocation {
    /// In the entry's block, if the table has any of them.
    Block,
    /// In more blocks than fit in the group.
    Blocks,
    /// In the entry's block, from this index on, which `BlockCodec::locate` returned.
    Start(u32),
    /// The range is empty.
    Empty,
}

impl<F: Fingerprint> ProbeGroup<'_, F> {
    #[inline(always)]
    pub(super) fn range(&self, i: usize) -> FingerprintRange<F> {
        let low = self.low[i];
        FingerprintRange { low, high: low | !F::prefix_mask(u32::from(self.shared[i])) }
    }

    /// Adds another entry for probe `i`, for another block of its range.
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
