//! The block index: each block's last fingerprint, and a radix directory over them.

use crate::fingerprint::Fingerprint;
use crate::kernels;

/// Finds the block of a fingerprint: a line of the directory by its leading bits, then the bits after them.
#[derive(Debug)]
pub(super) struct BlockIndex<F> {
    /// The last fingerprint of each block, strictly ascending.
    last: Vec<F>,
    /// For each value of the leading bits, the blocks whose last fingerprint has it.
    directory: Vec<Line>,
    /// Number of leading bits.
    bits: u32,
}

/// Blocks that a line has room for.
const ROOM: usize = kernels::RANKED;
/// In the place of the number of blocks: more than there is room for.
const CROWDED: u16 = u16::MAX;
/// In the place of keys that are not there: no less than any key.
const NO_KEY: u16 = u16::MAX;

/// What most look-ups need of the index, in one line of the cache: for each block the 16 bits of its last fingerprint
/// that follow the leading ones; their number; and the first block, which is that of the next line if there is none.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u16; ROOM + 3]);

impl Line {
    fn new(first: u32) -> Line {
        let mut line = Line([NO_KEY; ROOM + 3]);
        (line.0[ROOM], line.0[ROOM + 1], line.0[ROOM + 2]) = (0, first as u16, (first >> 16) as u16);
        line
    }

    fn push(&mut self, key: u16) {
        let count = &mut self.0[ROOM];
        if usize::from(*count) < ROOM {
            *count += 1;
            let place = usize::from(*count) - 1;
            self.0[place] = key;
        } else {
            *count = CROWDED;
        }
    }

    #[inline(always)]
    fn is_crowded(&self) -> bool {
        self.0[ROOM] == CROWDED
    }

    #[inline(always)]
    fn first(&self) -> usize {
        usize::from(self.0[ROOM + 1]) | usize::from(self.0[ROOM + 2]) << 16
    }
}

impl<F: Fingerprint> BlockIndex<F> {
    pub(super) fn new(last: Vec<F>) -> Self {
        // Eight to sixteen blocks a line on average: of evenly spread fingerprints hardly one line is crowded.
        let bits = last.len().checked_ilog2().unwrap_or(0).saturating_sub(3);
        let mut directory = Vec::with_capacity(1 << bits);
        let mut block = 0;
        for value in 0..1_u64 << bits {
            let mut line = Line::new(block as u32);
            while block < last.len() && leading(last[block], bits) == value {
                line.push(key(last[block], bits));
                block += 1;
            }
            directory.push(line);
        }
        BlockIndex { last, directory, bits }
    }

    /// Number of blocks.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.last.len()
    }

    /// The last fingerprint of a block.
    #[inline(always)]
    pub(super) fn last(&self, block: usize) -> F {
        self.last[block]
    }

    /// Asks for what [`BlockIndex::last`] reads.
    #[inline(always)]
    pub(super) fn prefetch_last(&self, block: usize) {
        kernels::prefetch(&self.last, block);
    }

    /// Asks for what [`BlockIndex::find_range`] reads.
    #[inline(always)]
    pub(super) fn prefetch(&self, fingerprint: F) {
        kernels::prefetch(&self.directory, leading(fingerprint, self.bits) as usize);
    }

    /// The first block whose last fingerprint is at least `fingerprint`; the number of blocks if there is none.
    #[inline(always)]
    pub(super) fn find(&self, fingerprint: F) -> usize {
        match self.find_range(fingerprint, F::BITS) {
            Some((block, 0)) => block,
            _ => self.find_last(fingerprint),
        }
    }

    /// The first block whose last fingerprint is at least `low`, and the number of blocks after it that the
    /// fingerprints which share the first `shared` bits with `low` can go on to; `low` has zeros after these bits. `None`
    /// if one line of the directory is not enough to tell.
    #[inline(always)]
    pub(super) fn find_range(&self, low: F, shared: u32) -> Option<(usize, usize)> {
        let high = low | !F::prefix_mask(shared);
        let value = leading(low, self.bits);
        let line = &self.directory[value as usize];
        let (before, up_to) = kernels::ranks(&line.0, key(low, self.bits), key(high, self.bits));
        // Places without a key look like the largest ones.
        let up_to = up_to.min(u32::from(line.0[ROOM]));
        // Keys that lie in the range are told from those that do not where it is not narrower than a key; where there
        // are none, all further bits are of no consequence. Behind the last block of a line the next line's first one
        // comes.
        let told = shared <= self.bits + 16 || before == up_to;
        let told = told && !line.is_crowded() && shared >= self.bits;
        told.then_some((line.first() + before as usize, (up_to - before) as usize))
    }

    /// [`BlockIndex::find`] by the fingerprints themselves.
    #[inline(never)]
    pub(super) fn find_last(&self, fingerprint: F) -> usize {
        let value = leading(fingerprint, self.bits) as usize;
        let from = self.directory[value].first();
        let to = self.directory.get(value + 1).map_or(self.last.len(), Line::first);
        from + self.last[from..to].partition_point(|&last| last < fingerprint)
    }

    /// Bytes in memory.
    pub(super) fn memory(&self) -> usize {
        self.last.len() * F::BYTES + self.directory.len() * size_of::<Line>()
    }
}

/// The first `bits` bits.
#[inline(always)]
fn leading<F: Fingerprint>(fingerprint: F, bits: u32) -> u64 {
    // In two steps, since an index of few blocks asks to shift out all bits.
    (fingerprint >> 1 >> (F::BITS - 1 - bits)).low_u64()
}

/// The 16 bits after the first `bits` bits.
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
                prop_assert_eq!(index.find_last(probe), expected);
                for shared in [0, 3, 20, 40, 55, 60, 64] {
                    let low = probe & u64::prefix_mask(shared);
                    let high = low | !u64::prefix_mask(shared);
                    if let Some((block, more)) = index.find_range(low, shared) {
                        prop_assert_eq!(block, index.find_last(low));
                        let to = index.find_last(high);
                        // One more only where the range ends with a block.
                        let ends = last.get(to) == Some(&high);
                        prop_assert!(block + more == to || ends && block + more == to + 1);
                    }
                }
            }
        }
    }
}
