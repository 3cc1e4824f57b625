//! A group of probes of a query that go through the stages together.

use crate::codec::Range;
use crate::fingerprint::Fingerprint;
use crate::plan::TOGETHER;

/// Entries of a group: its probes, and further blocks of their ranges, at most [`FEW`] for each probe.
pub(super) const ROOM: usize = TOGETHER + 32;
pub(super) const FEW: usize = 4;

/// Probes on their way through the stages, stored field by field. Each stage reads the fields of the previous one.
#[derive(Clone, Copy)]
pub(super) struct Group<'a, F> {
    pub(super) len: usize,
    pub(super) table: [u8; ROOM],
    /// Number of leading bits that the range's fingerprints have in common.
    pub(super) shared: [u8; ROOM],
    pub(super) low: [F; ROOM],
    pub(super) block: [u32; ROOM],
    pub(super) bytes: [&'a [u8]; ROOM],
    pub(super) found: [Found; ROOM],
}

/// The known location of a range's fingerprints.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Found {
    /// In this block, or nowhere.
    Block,
    /// In more blocks than the group has room for.
    Blocks,
    /// From this place of the block on: the index returned by `BlockCodec::locate`.
    Spot(u32),
    /// The range is empty.
    Nothing,
}

impl<F: Fingerprint> Group<'_, F> {
    #[inline(always)]
    pub(super) fn range(&self, i: usize) -> Range<F> {
        let low = self.low[i];
        Range { low, high: low | !F::prefix_mask(u32::from(self.shared[i])) }
    }

    /// Adds another entry for probe `i`, for another block of its range.
    #[inline(always)]
    pub(super) fn repeat(&mut self, i: usize, block: usize) {
        let next = self.len % ROOM;
        (self.table[next], self.shared[next], self.low[next]) = (self.table[i], self.shared[i], self.low[i]);
        (self.block[next], self.found[next]) = (block as u32, Found::Block);
        self.len += 1;
    }

    pub(super) const EMPTY: Self = Group {
        len: 0,
        table: [0; ROOM],
        shared: [0; ROOM],
        low: [F::ZERO; ROOM],
        block: [0; ROOM],
        bytes: [&[]; ROOM],
        found: [Found::Nothing; ROOM],
    };
}
