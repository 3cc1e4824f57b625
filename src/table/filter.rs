//! What tells of most probes of a table that they find nothing, before anything of the table is read.
//!
//! Probes with r flips look for few of the prefixes that there are: one in thousands of a small table. A filter has two bits
//! for each prefix that the table has, in some cache line. That line follows from the bits of the prefix which no probe flips,
//! and in a large table from a few more: so all probes of a query look into one line or some, not into one each. After
//! B. H. Bloom, "Space/time trade-offs in hash coding with allowable errors", Comm. ACM 13 (1970), in blocks of a cache line:
//! F. Putze, P. Sanders, J. Singler, "Cache-, hash- and space-efficient Bloom filters", WEA 2007. With eight bits a
//! fingerprint one probe in twenty passes that finds nothing.

use std::marker::PhantomData;

use crate::fingerprint::Fingerprint;
use crate::kernels;

/// Bits a fingerprint, about.
const BITS_EACH: u64 = 8;
/// Bits of a line, as a power of two.
const LINE_BITS: u32 = 9;
/// A table that has more than one in 2^3 of the prefixes that there can be gains nothing.
const SPARSE: u32 = 3;

/// Which prefixes a table has, roughly.
#[derive(Debug)]
pub(super) struct Filter<F> {
    lines: Vec<Line>,
    shape: Shape,
    /// What each probe flips in [`Place`].
    flips: Vec<Place>,
    /// The lines of these, each once.
    flipped_lines: Vec<u32>,
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
    /// Runs of lines, one of which prefixes with the same kept bits share, and the lines of one as a power of two.
    stretches: u64,
    stretch_lines: u32,
}

/// A line of a stretch, and two bits of it. It follows by xor alone from the bits that are flipped: if some of them are flipped
/// the place is that of these, by xor.
#[derive(Clone, Copy, Debug)]
struct Place {
    line: u32,
    bits: [u16; 2],
}

impl Shape {
    /// `None` if a filter would not be worth it.
    fn new(fingerprints: u64, flipped: u32, prefix_bits: u32) -> Option<Shape> {
        let kept = prefix_bits.checked_sub(flipped).filter(|&kept| kept > 0)?;
        let is_sparse = prefix_bits >= 60 || fingerprints << SPARSE <= 1 << prefix_bits;
        if flipped == 0 || !is_sparse {
            return None;
        }
        let lines = (fingerprints * BITS_EACH).div_ceil(1 << LINE_BITS).max(1);
        let stretches = lines.min(1 << kept.min(32));
        // The nearest power of two.
        let stretch_lines = (lines * 4 / stretches / 3).max(1).ilog2();
        Some(Shape { flipped, kept, stretches, stretch_lines })
    }

    /// The place of a prefix, or of a mask.
    #[inline(always)]
    fn place<F: Fingerprint>(&self, permuted: F) -> Place {
        const MASK: u64 = (1 << LINE_BITS) - 1;
        let leading = (permuted >> (F::BITS - self.flipped)).low_u64();
        let (mut one, mut other) = (0, 0);
        // The second time each part is rotated, so that no two bits have both positions in common.
        for part in 0..4 {
            let bits = leading >> (part * LINE_BITS) & MASK;
            one ^= bits;
            other ^= bits << part | bits >> (LINE_BITS - part);
        }
        let line = leading & ((1 << self.stretch_lines) - 1);
        Place { line: line as u32, bits: [one as u16, (other & MASK) as u16] }
    }
}

/// The first line of a stretch, and a place in it.
#[derive(Clone, Copy)]
pub(super) struct Spots {
    stretch: usize,
    place: Place,
}

impl<F: Fingerprint> Filter<F> {
    /// An empty filter for so many fingerprints, of whose prefixes probes flip some of the first bits as the masks say; `None`
    /// if it would not be worth it.
    pub(super) fn new(fingerprints: u64, flipped: u32, prefix_bits: u32, masks: &[F]) -> Option<Self> {
        let shape = Shape::new(fingerprints, flipped, prefix_bits)?;
        let lines = vec![Line([0; 1 << (LINE_BITS - 6)]); (shape.stretches << shape.stretch_lines) as usize];
        let flips: Vec<Place> = masks.iter().map(|&mask| shape.place(mask)).collect();
        let mut flipped_lines: Vec<u32> = flips.iter().map(|flip| flip.line).collect();
        flipped_lines.sort_unstable();
        flipped_lines.dedup();
        Some(Filter { lines, shape, flips, flipped_lines, fingerprints: PhantomData })
    }

    /// Bits that no probe flips choose the stretch, and are mixed into the place.
    #[inline(always)]
    pub(super) fn spots(&self, permuted: F) -> Spots {
        let Shape { flipped, kept, stretches, stretch_lines } = self.shape;
        let kept_bits = (permuted << flipped >> (F::BITS - kept)).low_u64();
        let hash = kept_bits.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The low bits of the product are a permutation of the kept ones: no stretch gets more of them than another.
        let spread = hash << (64 - kept.min(64));
        let stretch = ((u128::from(spread) * u128::from(stretches)) >> 64) as usize;
        let hash = (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let mut place = self.shape.place(permuted);
        place.bits[0] ^= (hash >> 32) as u16 & ((1 << LINE_BITS) - 1);
        place.bits[1] ^= (hash >> 48) as u16 & ((1 << LINE_BITS) - 1);
        Spots { stretch: stretch << stretch_lines, place }
    }

    pub(super) fn insert(&mut self, permuted: F) {
        let Spots { stretch, place } = self.spots(permuted);
        for bit in place.bits {
            self.lines[stretch + place.line as usize].0[usize::from(bit >> 6)] |= 1 << (bit & 63);
        }
    }

    /// Asks for what [`Filter::has`] reads.
    #[inline(always)]
    pub(super) fn prefetch(&self, spots: Spots) {
        for line in &self.flipped_lines {
            kernels::prefetch(&self.lines, spots.stretch + (spots.place.line ^ line) as usize);
        }
    }

    /// Whether the table may have what the probe with the mask of this number looks for; where it has it, it may.
    #[inline(always)]
    pub(super) fn has(&self, spots: Spots, mask: usize) -> bool {
        let flip = self.flips[mask];
        let line = &self.lines[spots.stretch + (spots.place.line ^ flip.line) as usize].0;
        let is_set = |i: usize| {
            let bit = spots.place.bits[i] ^ flip.bits[i];
            line[usize::from(bit >> 6) % line.len()] >> (bit & 63) & 1
        };
        is_set(0) & is_set(1) == 1
    }

    /// Bytes in memory.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&self.lines[..]) + size_of_val(&self.flips[..]) + size_of_val(&self.flipped_lines[..])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all_that_is_there_passes<F: Fingerprint>(values: &[F], flipped: u32, prefix_bits: u32, factor: u64) {
        let one: Vec<F> = (0..flipped).map(F::bit_mask).chain([F::ZERO]).collect();
        let masks: Vec<F> = one.iter().flat_map(|&mask| one.iter().map(move |&other| mask ^ other)).collect();
        let count = values.len() as u64 * factor;
        let Some(mut filter) = Filter::new(count, flipped, prefix_bits, &masks) else { return };
        values.iter().for_each(|&value| filter.insert(value));
        for &value in values {
            for (i, &mask) in masks.iter().enumerate() {
                // A query whose probe with these flips has this prefix.
                let suffix = F::suffix_mask(F::BITS - prefix_bits);
                assert!(filter.has(filter.spots((value ^ mask) | suffix), i));
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

    /// As it says above, for stretches of one line and of several; their number is a power of two, and so it may be one in ten.
    #[test]
    fn little_else_passes() {
        for (count, flipped, most) in
            [(1 << 12, 8, 1400), (1 << 17, 13, 1400), (1 << 21, 17, 1400), (10_000_000, 19, 2000)]
        {
            let mut state = 1_u64;
            let mut random = || {
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed ^ mixed >> 27
            };
            let masks: Vec<u64> = (0..flipped).map(u64::bit_mask).collect();
            let mut filter = Filter::<u64>::new(count, flipped, 32, &masks).unwrap();
            (0..count).for_each(|_| filter.insert(random()));
            assert!(filter.memory() as u64 <= 2 * count);
            assert!(filter.flipped_lines.len() <= 7, "{:?}", filter.flipped_lines);
            let passing = (0..20_000).filter(|i| filter.has(filter.spots(random()), i % masks.len()));
            let passing = passing.count();
            assert!(passing < most, "{count}: {passing} of 20,000");
        }
    }

    #[test]
    fn none_where_it_gains_nothing() {
        assert!(Filter::<u64>::new(1000, 0, 32, &[]).is_none(), "nothing is flipped");
        assert!(Filter::<u64>::new(1000, 16, 16, &[]).is_none(), "all is flipped");
        assert!(Filter::<u64>::new(1 << 20, 16, 20, &[]).is_none(), "all prefixes are there");
        assert!(Filter::<u64>::new(1 << 20, 28, 64, &[]).is_some());
    }
}
