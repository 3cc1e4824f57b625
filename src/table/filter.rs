//! What tells of most probes of a table that they find nothing, before anything of the table is read.
//!
//! Probes with r flips look for few of the prefixes that there are: one in thousands of a small table. A filter has two bits
//! for each prefix that the table has, in some cache line; that line follows from the bits of the prefix which no probe flips,
//! so that all probes of a query look into the same one. After B. H. Bloom, "Space/time trade-offs in hash coding with
//! allowable errors", Comm. ACM 13 (1970), in blocks of a cache line: F. Putze, P. Sanders, J. Singler, "Cache-, hash- and
//! space-efficient Bloom filters", WEA 2007. With eight bits a fingerprint one probe in twenty passes that finds nothing.

use std::marker::PhantomData;

use crate::fingerprint::Fingerprint;
use crate::kernels;

/// Bits a fingerprint.
const BITS_EACH: u64 = 8;
/// Bits of a line, and the most of a stretch of them, as powers of two.
const LINE_BITS: u32 = 9;
const MOST_STRETCH_BITS: u32 = 12;
/// A table that has more than one in so many of the prefixes that there can be gains nothing.
const SPARSE: u32 = 3;

/// Which prefixes a table has, roughly.
#[derive(Debug)]
pub(super) struct Filter<F> {
    lines: Vec<Line>,
    shape: Shape,
    fingerprints: PhantomData<F>,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u64; 1 << (LINE_BITS - 6)]);

/// Where the bits of a prefix are.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// The leading bits of the prefix, which probes flip, and those after them, which none does.
    flipped: u32,
    kept: u32,
    /// Runs of lines, one of which prefixes with the same kept bits share, and the bits of one as a power of two.
    stretches: u64,
    stretch_bits: u32,
}

impl Shape {
    /// `None` if a filter would not be worth it.
    fn new(fingerprints: u64, flipped: u32, prefix_bits: u32) -> Option<Shape> {
        let kept = prefix_bits.checked_sub(flipped).filter(|&kept| kept > 0)?;
        let is_sparse = prefix_bits >= 64 || fingerprints << SPARSE <= 1 << prefix_bits;
        if flipped == 0 || !is_sparse {
            return None;
        }
        let stretches = (fingerprints * BITS_EACH).div_ceil(1 << LINE_BITS).max(1).min(1 << kept.min(32));
        let stretch_bits = (fingerprints * BITS_EACH).div_ceil(stretches).next_power_of_two().ilog2();
        let stretch_bits = stretch_bits.max(LINE_BITS);
        (stretch_bits <= MOST_STRETCH_BITS).then_some(Shape { flipped, kept, stretches, stretch_bits })
    }
}

/// The two bits of a prefix: the first line of its stretch, and their positions in the stretch.
#[derive(Clone, Copy)]
pub(super) struct Spots {
    line: usize,
    bits: [usize; 2],
}

impl<F: Fingerprint> Filter<F> {
    /// An empty filter for so many fingerprints, of whose prefixes probes flip the first bits; `None` if it would not be
    /// worth it.
    pub(super) fn new(fingerprints: u64, flipped: u32, prefix_bits: u32) -> Option<Self> {
        let shape = Shape::new(fingerprints, flipped, prefix_bits)?;
        let lines = shape.stretches << (shape.stretch_bits - LINE_BITS);
        let lines = vec![Line([0; 1 << (LINE_BITS - 6)]); lines as usize];
        Some(Filter { lines, shape, fingerprints: PhantomData })
    }

    /// Bits that no probe flips choose the stretch, and are mixed into the positions; from bits that are flipped these
    /// follow by xor alone: [`Filter::has`] flips them in the same way.
    #[inline(always)]
    pub(super) fn spots(&self, permuted: F) -> Spots {
        let Shape { flipped, kept, stretches, stretch_bits } = self.shape;
        let kept_bits = (permuted << flipped >> (F::BITS - kept)).low_u64();
        let hash = kept_bits.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The low bits of the product are a permutation of the kept ones: no stretch gets more of them than another.
        let spread = hash << (64 - kept.min(64));
        let stretch = ((u128::from(spread) * u128::from(stretches)) >> 64) as usize;
        let hash = (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32;
        let [one, other] = self.positions(permuted);
        let mask = (1 << stretch_bits) - 1;
        let bits = [(one ^ hash as usize) & mask, (other ^ (hash >> 16) as usize) & mask];
        Spots { line: stretch << (stretch_bits - LINE_BITS), bits }
    }

    /// The last and the first of the bits that are flipped, as many as make a position.
    #[inline(always)]
    fn positions(&self, permuted: F) -> [usize; 2] {
        let Shape { flipped, stretch_bits, .. } = self.shape;
        let leading = (permuted >> (F::BITS - flipped)).low_u64() as usize;
        let mask = (1 << stretch_bits) - 1;
        [leading & mask, leading >> flipped.saturating_sub(stretch_bits) & mask]
    }

    pub(super) fn insert(&mut self, permuted: F) {
        let Spots { line, bits } = self.spots(permuted);
        for bit in bits {
            self.lines[line + (bit >> LINE_BITS)].0[bit >> 6 & 7] |= 1 << (bit & 63);
        }
    }

    /// Asks for what [`Filter::has`] reads.
    #[inline(always)]
    pub(super) fn prefetch(&self, spots: Spots) {
        for line in 0..1 << (self.shape.stretch_bits - LINE_BITS) {
            kernels::prefetch(&self.lines, spots.line + line);
        }
    }

    /// Whether the table may have the prefix of these spots with the bits of a mask flipped. That of one that it has, it may.
    #[inline(always)]
    pub(super) fn has(&self, spots: Spots, mask: F) -> bool {
        let flips = self.positions(mask);
        let is_set = |i: usize| {
            let bit = spots.bits[i] ^ flips[i];
            self.lines[spots.line + (bit >> LINE_BITS)].0[bit >> 6 & 7] >> (bit & 63) & 1
        };
        is_set(0) & is_set(1) == 1
    }

    /// Bytes in memory.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&self.lines[..])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all_that_is_there_passes<F: Fingerprint>(values: &[F], flipped: u32, prefix_bits: u32, factor: u64) {
        let Some(mut filter) = Filter::new(values.len() as u64 * factor, flipped, prefix_bits) else {
            return;
        };
        values.iter().for_each(|&value| filter.insert(value));
        let masks: Vec<F> = (0..flipped).map(F::bit_mask).chain([F::ZERO]).collect();
        for &value in values {
            for &one in &masks {
                for &other in &masks {
                    // A query whose probe with these flips has this prefix.
                    let (mask, suffix) = (one ^ other, F::suffix_mask(F::BITS - prefix_bits));
                    assert!(filter.has(filter.spots((value ^ mask) | suffix), mask));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_that_is_there_is_missed(
            values in prop::collection::vec(prop_oneof![any::<u128>(), 0_u128..100], 1..60),
            flipped in 1_u32..20,
            kept in 1_u32..80,
            factor in prop_oneof![Just(1_u64), 1_u64..100_000],
        ) {
            all_that_is_there_passes::<u128>(&values, flipped, flipped + kept, factor);
            let narrow: Vec<u64> = values.iter().map(|&value| value as u64).collect();
            all_that_is_there_passes::<u64>(&narrow, flipped, flipped + kept.min(40), factor);
        }
    }

    /// One in twenty, as it says above, for stretches of one line and of several.
    #[test]
    fn little_else_passes() {
        for (count, flipped) in [(1 << 12, 8), (1 << 17, 13), (1 << 21, 17)] {
            let mut state = 1_u64;
            let mut random = || {
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed ^ mixed >> 27
            };
            let mut filter = Filter::<u64>::new(count, flipped, 32).unwrap();
            (0..count).for_each(|_| filter.insert(random()));
            assert!(filter.memory() as u64 <= 2 * count);
            let passing = (0..20_000).filter(|i| {
                let mask = u64::bit_mask(i % flipped);
                filter.has(filter.spots(random()), mask)
            });
            let passing = passing.count();
            assert!(passing < 1500, "{count}: {passing} of 20,000");
        }
    }

    #[test]
    fn none_where_it_gains_nothing() {
        assert!(Filter::<u64>::new(1000, 0, 32).is_none(), "nothing is flipped");
        assert!(Filter::<u64>::new(1000, 16, 16).is_none(), "all is flipped");
        assert!(Filter::<u64>::new(1 << 20, 16, 20).is_none(), "all prefixes are there");
        assert!(Filter::<u64>::new(1 << 20, 28, 64).is_some());
    }
}
