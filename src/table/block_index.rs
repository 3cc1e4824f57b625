//! The block index: each block's last fingerprint, and a radix directory over them.

use std::ops::Range;

use crate::fingerprint::Fingerprint;
use crate::kernels;

/// Finds the block of a fingerprint: a directory entry by its leading bits, then a few comparisons.
#[derive(Debug)]
pub(super) struct BlockIndex<F> {
    /// The last fingerprint of each block, strictly ascending.
    last: Vec<F>,
    /// For each value of the leading bits, the first block whose last fingerprint has it or more; one entry
    /// more than values, the number of blocks.
    directory: Vec<u32>,
    shift: u32,
}

impl<F: Fingerprint> BlockIndex<F> {
    pub(super) fn new(last: Vec<F>) -> Self {
        // One entry for two to four blocks, which share a cache line.
        let bits = last.len().checked_ilog2().unwrap_or(0).saturating_sub(1);
        let shift = F::BITS - bits;
        let mut directory = Vec::with_capacity((1 << bits) + 1);
        let mut block = 0;
        for value in 0..1_u64 << bits {
            while block < last.len() && leading(last[block], shift) < value {
                block += 1;
            }
            directory.push(block as u32);
        }
        directory.push(last.len() as u32);
        BlockIndex { last, directory, shift }
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

    /// The first block whose last fingerprint is at least `fingerprint`; the number of blocks if there is none.
    #[inline(always)]
    pub(super) fn find(&self, fingerprint: F) -> usize {
        let bucket = self.bucket(fingerprint);
        self.find_in(bucket, fingerprint)
    }

    /// Asks for what [`BlockIndex::bucket`] reads.
    #[inline(always)]
    pub(super) fn prefetch(&self, fingerprint: F) {
        kernels::prefetch(&self.directory, leading(fingerprint, self.shift) as usize);
    }

    /// The blocks that one of directory's entries leaves to look at; asks for what [`BlockIndex::find_in`] reads.
    #[inline(always)]
    pub(super) fn bucket(&self, fingerprint: F) -> Range<u32> {
        let value = leading(fingerprint, self.shift) as usize;
        let bucket = self.directory[value]..self.directory[value + 1];
        kernels::prefetch(&self.last, bucket.start as usize);
        bucket
    }

    /// [`BlockIndex::find`] in the bucket of the fingerprint.
    #[inline(always)]
    pub(super) fn find_in(&self, bucket: Range<u32>, fingerprint: F) -> usize {
        let from = bucket.start as usize;
        let bucket = &self.last[from..bucket.end as usize];
        if bucket.len() <= 8 {
            from + bucket.iter().map(|&last| usize::from(last < fingerprint)).sum::<usize>()
        } else {
            from + bucket.partition_point(|&last| last < fingerprint)
        }
    }

    /// Bytes in memory.
    pub(super) fn memory(&self) -> usize {
        self.last.len() * F::BYTES + self.directory.len() * 4
    }
}

#[inline(always)]
fn leading<F: Fingerprint>(fingerprint: F, shift: u32) -> u64 {
    // In two steps, since an index of few blocks asks to shift out all bits.
    (fingerprint >> 1 >> (shift - 1)).low_u64()
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
            }
        }
    }
}
