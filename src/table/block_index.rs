//! The block index: each block's last fingerprint, and a radix directory over them.

use crate::fingerprint::Fingerprint;
use crate::simd;

/// An index that finds the block of a fingerprint. The leading bits of the fingerprint choose a line of the
/// directory. This line has a 16-bit key for each of its blocks. The next 16 bits of the fingerprint are compared
/// with the keys.
#[derive(Debug)]
pub(super) struct BlockIndex<F> {
    /// The last fingerprint of each block, strictly ascending.
    last: Vec<F>,
    /// One line for each value of the leading bits. A line has the blocks whose last fingerprint has these leading bits.
    directory: Vec<DirectoryLine>,
    /// Number of leading bits of a fingerprint that choose a line of the directory.
    leading_bits: u32,
}

/// Maximum number of blocks in a [`DirectoryLine`].
const LINE_BLOCKS: usize = simd::RANKED_NUMBERS;
/// Value stored in place of a line's number of blocks if the line has more than [`LINE_BLOCKS`].
const OVERFULL: u16 = u16::MAX;
/// Value of the unused keys in a line of the index's directory: the largest possible key.
const NO_KEY: u16 = u16::MAX;

/// A line of the index's directory, which fills a cache line. It has the blocks whose last fingerprints have the same
/// leading bits. Its elements, in this order:
///
/// - a key for each block of the line: the 16 bits after the leading bits of the block's last fingerprint
/// - the number of keys
/// - the index of the line's first block, in two elements; if the line has no block, the index of the next block
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct DirectoryLine([u16; LINE_BLOCKS + 3]);

impl DirectoryLine {
    fn new(first: u32) -> DirectoryLine {
        let mut line = DirectoryLine([NO_KEY; LINE_BLOCKS + 3]);
        (line.0[LINE_BLOCKS], line.0[LINE_BLOCKS + 1], line.0[LINE_BLOCKS + 2]) =
            (0, first as u16, (first >> 16) as u16);
        line
    }

    fn push(&mut self, key: u16) {
        let count = &mut self.0[LINE_BLOCKS];
        if usize::from(*count) < LINE_BLOCKS {
            *count += 1;
            let place = usize::from(*count) - 1;
            self.0[place] = key;
        } else {
            *count = OVERFULL;
        }
    }

    #[inline(always)]
    fn is_overfull(&self) -> bool {
        self.0[LINE_BLOCKS] == OVERFULL
    }

    #[inline(always)]
    fn first(&self) -> usize {
        usize::from(self.0[LINE_BLOCKS + 1]) | usize::from(self.0[LINE_BLOCKS + 2]) << 16
    }
}

impl<F: Fingerprint> BlockIndex<F> {
    pub(super) fn new(last: Vec<F>) -> Self {
        // Eight to sixteen blocks for each line on average. If fingerprints are spread evenly, hardly any line is overfull.
        let leading_bits = last.len().checked_ilog2().unwrap_or(0).saturating_sub(3);
        let mut directory = Vec::with_capacity(1 << leading_bits);
        let mut block = 0;
        for value in 0..1_u64 << leading_bits {
            let mut line = DirectoryLine::new(block as u32);
            while block < last.len() && leading(last[block], leading_bits) == value {
                line.push(key(last[block], leading_bits));
                block += 1;
            }
            directory.push(line);
        }
        BlockIndex { last, directory, leading_bits }
    }

    /// Number of blocks.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.last.len()
    }

    /// Last fingerprint of a block.
    #[inline(always)]
    pub(super) fn last(&self, block: usize) -> F {
        self.last[block]
    }

    /// Prefetches the memory that [`BlockIndex::last`] reads.
    #[inline(always)]
    pub(super) fn prefetch_last(&self, block: usize) {
        simd::prefetch(&self.last, block);
    }

    /// Prefetches the memory that [`BlockIndex::find_range`] reads.
    #[inline(always)]
    pub(super) fn prefetch(&self, fingerprint: F) {
        simd::prefetch(&self.directory, leading(fingerprint, self.leading_bits) as usize);
    }

    /// Returns the index of the first block whose last fingerprint is at least `fingerprint`. If there is no such block,
    /// returns the number of blocks.
    #[inline(always)]
    pub(super) fn find(&self, fingerprint: F) -> usize {
        match self.find_range(fingerprint, F::BITS) {
            Some((block, 0)) => block,
            _ => self.find_by_search(fingerprint),
        }
    }

    /// Finds the blocks that may contain the fingerprints of a range. `low` is the start of the range. All fingerprints of
    /// the range have the first `shared` bits of `low`; the other bits of `low` are zeros. Returns the index of the first
    /// block whose last fingerprint is at least `low`, and the number of further blocks. Returns `None` if only a binary
    /// search can find these blocks.
    #[inline(always)]
    pub(super) fn find_range(&self, low: F, shared: u32) -> Option<(usize, usize)> {
        let high = low | !F::prefix_mask(shared);
        let value = leading(low, self.leading_bits);
        let line = &self.directory[value as usize];
        let (before, up_to) = simd::ranks(&line.0, key(low, self.leading_bits), key(high, self.leading_bits));
        // Unused places look like the largest key.
        let up_to = up_to.min(u32::from(line.0[LINE_BLOCKS]));
        // The keys decide exactly which blocks end in the range if the range is at least as wide as a key, or if no key lies in
        // it. After the last block of a line comes the first block of the next line.
        let is_exact = shared <= self.leading_bits + 16 || before == up_to;
        let is_exact = is_exact && !line.is_overfull() && shared >= self.leading_bits;
        is_exact.then_some((line.first() + before as usize, (up_to - before) as usize))
    }

    /// Like [`BlockIndex::find`], by a binary search of the last fingerprints.
    #[inline(never)]
    pub(super) fn find_by_search(&self, fingerprint: F) -> usize {
        let value = leading(fingerprint, self.leading_bits) as usize;
        let from = self.directory[value].first();
        let to = self.directory.get(value + 1).map_or(self.last.len(), DirectoryLine::first);
        from + self.last[from..to].partition_point(|&last| last < fingerprint)
    }

    /// Memory of the index in bytes.
    pub(super) fn memory(&self) -> usize {
        self.last.len() * F::BYTES + self.directory.len() * size_of::<DirectoryLine>()
    }
}

/// Returns the first `bits` bits of a fingerprint, as a number.
#[inline(always)]
fn leading<F: Fingerprint>(fingerprint: F, bits: u32) -> u64 {
    // Shifts in two steps, because an index with few blocks has no leading bits and shifts out all bits.
    (fingerprint >> 1 >> (F::BITS - 1 - bits)).low_u64()
}

/// Returns the 16 bits after the first `bits` bits of a fingerprint. They are its key in a line of the directory.
#[inline(always)]
fn key<F: Fingerprint>(fingerprint: F, bits: u32) -> u16 {
    (fingerprint << bits >> (F::BITS - 16)).low_u64() as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn finds_what_a_scan_finds(
            mut last in prop::collection::vec(prop_oneof![any::<u64>(), 0_u64..300], 0..200),
            probes in prop::collection::vec(prop_oneof![any::<u64>(), 0_u64..300], 1..50),
        ) {
            last.sort_unstable();
            last.dedup();
            let index = BlockIndex::new(last.clone());
            for probe in probes.into_iter().chain(last.clone()).chain([0, u64::MAX]) {
                let expected = last.iter().position(|&l| l >= probe).unwrap_or(last.len());
                prop_assert_eq!(index.find(probe), expected);
                prop_assert_eq!(index.find_by_search(probe), expected);
                for shared in [0, 3, 20, 40, 55, 60, 64] {
                    let low = probe & u64::prefix_mask(shared);
                    let high = low | !u64::prefix_mask(shared);
                    if let Some((block, more)) = index.find_range(low, shared) {
                        prop_assert_eq!(block, index.find_by_search(low));
                        let to = index.find_by_search(high);
                        // One more block is allowed only if the range ends with a block.
                        let ends = last.get(to) == Some(&high);
                        prop_assert!(block + more == to || ends && block + more == to + 1);
                    }
                }
            }
        }
    }
}
