//! A Bloom filter of the prefixes in a table. A *probe* looks for a prefix of the query with some bits flipped. If
//! the filter shows that the table does not have this prefix, the probe ends before it reads any part of the
//! table.
//!
//! Of the probes that flip as many bits as the plan allows, few find their prefix in the table: one in thousands
//! if the table is small. With eight bits of the filter for each fingerprint, the filter stops nineteen in twenty
//! of the probes that find nothing.
//!
//! The filter sets two bits of one cache line for each prefix in the table. The line is chosen by the bits of the
//! prefix that no probe flips, and in a large table also by a few other bits. So all probes of a query together
//! read one or a few lines, not one line each.
//!
//! B. H. Bloom, "Space/time trade-offs in hash coding with allowable errors", Comm. ACM 13 (1970). With blocks of
//! one cache line as in F. Putze, P. Sanders, J. Singler, "Cache-, hash- and space-efficient Bloom filters", WEA
//! 2007.

use std::marker::PhantomData;

use crate::fingerprint::Fingerprint;
use crate::simd;

/// Approximate number of bits of the filter for each fingerprint.
const BITS_PER_FINGERPRINT: u64 = 8;
/// Binary logarithm of the number of bits in a cache line of the filter.
const LINE_BITS_LOG2: u32 = 9;
/// Binary logarithm of the minimum ratio of possible prefixes to fingerprints. With this value, a table gets a filter only if
/// it has at most one fingerprint for each 2^3 possible prefixes. Filters of denser tables gain nothing.
const MIN_SPARSITY_LOG2: u32 = 3;

/// A Bloom filter of the prefixes in a table.
#[derive(Debug)]
pub(super) struct BloomFilter<F> {
    lines: Vec<FilterLine>,
    shape: FilterShape,
    /// The [`BitPair`] of each probe's mask (the bits that the probe flips in the query's prefix). The XOR of the bit
    /// pairs of a prefix and a mask is the bit pair of the flipped prefix.
    flips: Vec<BitPair>,
    /// The distinct values of [`BitPair::line`] in `flips`, ascending.
    flipped_lines: Vec<u32>,
    fingerprints: PhantomData<F>,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct FilterLine([u64; 1 << (LINE_BITS_LOG2 - 6)]);

/// How a filter finds the cache line of a prefix. The leading bits of the prefix, which probes may flip, are the
/// *flipped bits*. The bits after them, the *fixed bits*, choose a *run* of cache lines in the filter.
#[derive(Clone, Copy, Debug)]
struct FilterShape {
    /// Number of leading bits of the prefix that probes may flip.
    flipped_bits: u32,
    /// Number of bits of the prefix after the flipped bits. No probe flips these bits.
    fixed_bits: u32,
    /// Number of runs (sequences of cache lines) in the filter. Prefixes that have the same fixed bits (those after
    /// the flipped bits) share one run.
    runs: u64,
    /// Binary logarithm of the number of cache lines in a run of the filter.
    run_lines_log2: u32,
}

/// The two bits that a prefix sets in the filter, as a cache line and two bit positions in this line. The number of
/// the line is counted from the start of the prefix's run (a sequence of lines). The mask of a probe has a bit pair,
/// too. The XOR of the bit pairs of a prefix and a mask is the bit pair of the flipped prefix.
#[derive(Clone, Copy, Debug)]
struct BitPair {
    line: u32,
    bits: [u16; 2],
}

impl FilterShape {
    /// Chooses the shape of a filter for a table of `fingerprints` fingerprints. Returns `None` if a filter would
    /// gain nothing.
    fn new(fingerprints: u64, flipped_bits: u32, prefix_bits: u32) -> Option<FilterShape> {
        let fixed_bits = prefix_bits.checked_sub(flipped_bits).filter(|&fixed_bits| fixed_bits > 0)?;
        let is_sparse = prefix_bits >= 60 || fingerprints << MIN_SPARSITY_LOG2 <= 1 << prefix_bits;
        if flipped_bits == 0 || !is_sparse {
            return None;
        }
        let lines = (fingerprints * BITS_PER_FINGERPRINT).div_ceil(1 << LINE_BITS_LOG2).max(1);
        let runs = lines.min(1 << fixed_bits.min(32));
        // The nearest power of two.
        let run_lines_log2 = (lines * 4 / runs / 3).max(1).ilog2();
        Some(FilterShape { flipped_bits, fixed_bits, runs, run_lines_log2 })
    }

    /// Returns the [`BitPair`] of a probe's mask. For a prefix, returns the part of its bit pair that depends on the
    /// leading bits, which probes may flip.
    #[inline(always)]
    fn bit_pair<F: Fingerprint>(&self, permuted: F) -> BitPair {
        const MASK: u64 = (1 << LINE_BITS_LOG2) - 1;
        let leading = (permuted >> (F::BITS - self.flipped_bits)).low_u64();
        let (mut one, mut other) = (0, 0);
        // Each part is rotated for the second position, so that no two bits of the prefix have both positions in common.
        for part in 0..4 {
            let bits = leading >> (part * LINE_BITS_LOG2) & MASK;
            one ^= bits;
            other ^= bits << part | bits >> (LINE_BITS_LOG2 - part);
        }
        let line = leading & ((1 << self.run_lines_log2) - 1);
        BitPair { line: line as u32, bits: [one as u16, (other & MASK) as u16] }
    }
}

/// The location of a query's prefix in the filter, before any bits are flipped: the first cache line of the
/// prefix's run (a sequence of cache lines), and the [`BitPair`] of the prefix.
#[derive(Clone, Copy)]
pub(super) struct QueryBits {
    first_line: usize,
    bits: BitPair,
}

impl<F: Fingerprint> BloomFilter<F> {
    /// Creates an empty filter for a number of fingerprints. Each probe flips the bits of one of `masks`; all
    /// masks lie within the first `flipped_bits` bits of a prefix. Returns `None` if a filter would gain nothing.
    pub(super) fn new(fingerprints: u64, flipped_bits: u32, prefix_bits: u32, masks: &[F]) -> Option<Self> {
        let shape = FilterShape::new(fingerprints, flipped_bits, prefix_bits)?;
        let lines =
            vec![FilterLine([0; 1 << (LINE_BITS_LOG2 - 6)]); (shape.runs << shape.run_lines_log2) as usize];
        let flips: Vec<BitPair> = masks.iter().map(|&mask| shape.bit_pair(mask)).collect();
        let mut flipped_lines: Vec<u32> = flips.iter().map(|flip| flip.line).collect();
        flipped_lines.sort_unstable();
        flipped_lines.dedup();
        Some(BloomFilter { lines, shape, flips, flipped_lines, fingerprints: PhantomData })
    }

    /// Returns the location of a query's prefix in the filter. The run of cache lines depends only on the prefix bits that
    /// no probe flips. The prefix's two bits in a line depend on all bits of the prefix.
    #[inline(always)]
    pub(super) fn query_bits(&self, permuted: F) -> QueryBits {
        let FilterShape { flipped_bits, fixed_bits, runs, run_lines_log2 } = self.shape;
        let fixed = (permuted << flipped_bits >> (F::BITS - fixed_bits)).low_u64();
        let hash = fixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The low bits of the product are a permutation of the fixed bits, so all runs get equally many of their values.
        let spread = hash << (64 - fixed_bits.min(64));
        let run = ((u128::from(spread) * u128::from(runs)) >> 64) as usize;
        let hash = (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let mut bits = self.shape.bit_pair(permuted);
        bits.bits[0] ^= (hash >> 32) as u16 & ((1 << LINE_BITS_LOG2) - 1);
        bits.bits[1] ^= (hash >> 48) as u16 & ((1 << LINE_BITS_LOG2) - 1);
        QueryBits { first_line: run << run_lines_log2, bits }
    }

    pub(super) fn insert(&mut self, permuted: F) {
        let QueryBits { first_line, bits } = self.query_bits(permuted);
        for bit in bits.bits {
            self.lines[first_line + bits.line as usize].0[usize::from(bit >> 6)] |= 1 << (bit & 63);
        }
    }

    /// Prefetches the lines that [`BloomFilter::may_contain`] reads for a query.
    #[inline(always)]
    pub(super) fn prefetch(&self, query: QueryBits) {
        for line in &self.flipped_lines {
            simd::prefetch(&self.lines, query.first_line + (query.bits.line ^ line) as usize);
        }
    }

    /// Whether the table may have the query's prefix after a probe's flips. `mask` is the index of the probe's
    /// mask. Always returns true if the table has the flipped prefix.
    #[inline(always)]
    pub(super) fn may_contain(&self, query: QueryBits, mask: usize) -> bool {
        let flip = self.flips[mask];
        let line = &self.lines[query.first_line + (query.bits.line ^ flip.line) as usize].0;
        let is_set = |i: usize| {
            let bit = query.bits.bits[i] ^ flip.bits[i];
            line[usize::from(bit >> 6) % line.len()] >> (bit & 63) & 1
        };
        is_set(0) & is_set(1) == 1
    }

    /// Memory of the filter in bytes.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&self.lines[..]) + size_of_val(&self.flips[..]) + size_of_val(&self.flipped_lines[..])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all_that_is_there_passes<F: Fingerprint>(
        values: &[F],
        flipped_bits: u32,
        prefix_bits: u32,
        factor: u64,
    ) {
        let one: Vec<F> = (0..flipped_bits).map(F::bit_mask).chain([F::ZERO]).collect();
        let masks: Vec<F> = one.iter().flat_map(|&mask| one.iter().map(move |&other| mask ^ other)).collect();
        let count = values.len() as u64 * factor;
        let Some(mut filter) = BloomFilter::new(count, flipped_bits, prefix_bits, &masks) else { return };
        values.iter().for_each(|&value| filter.insert(value));
        for &value in values {
            for (i, &mask) in masks.iter().enumerate() {
                // A query whose probe with this mask has the prefix of `value`.
                let suffix = F::suffix_mask(F::BITS - prefix_bits);
                assert!(filter.may_contain(filter.query_bits((value ^ mask) | suffix), i));
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_that_is_there_is_missed(
            values in prop::collection::vec(prop_oneof![any::<u128>(), 0_u128..100], 1..60),
            flipped_bits in 1_u32..20,
            fixed_bits in 1_u32..80,
            factor in prop_oneof![Just(1_u64), 1_u64..100_000],
        ) {
            all_that_is_there_passes::<u128>(&values, flipped_bits, flipped_bits + fixed_bits, factor);
            let narrow: Vec<u64> = values.iter().map(|&value| value as u64).collect();
            all_that_is_there_passes::<u64>(&narrow, flipped_bits, flipped_bits + fixed_bits.min(40), factor);
        }
    }

    /// Asserts that fewer than 7% of random prefixes pass the filter. With ten million fingerprints, where the
    /// number of lines in a run is rounded down to a power of two, fewer than 10% may pass.
    #[test]
    fn little_else_passes() {
        for (count, flipped_bits, most) in
            [(1 << 12, 8, 1400), (1 << 17, 13, 1400), (1 << 21, 17, 1400), (10_000_000, 19, 2000)]
        {
            let mut state = 1_u64;
            let mut random = || {
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed ^ mixed >> 27
            };
            let masks: Vec<u64> = (0..flipped_bits).map(u64::bit_mask).collect();
            let mut filter = BloomFilter::<u64>::new(count, flipped_bits, 32, &masks).unwrap();
            (0..count).for_each(|_| filter.insert(random()));
            assert!(filter.memory() as u64 <= 2 * count);
            assert!(filter.flipped_lines.len() <= 7, "{:?}", filter.flipped_lines);
            let passing =
                (0..20_000).filter(|i| filter.may_contain(filter.query_bits(random()), i % masks.len()));
            let passing = passing.count();
            assert!(passing < most, "{count}: {passing} of 20,000");
        }
    }

    #[test]
    fn none_where_it_gains_nothing() {
        assert!(BloomFilter::<u64>::new(1000, 0, 32, &[]).is_none(), "nothing is flipped");
        assert!(BloomFilter::<u64>::new(1000, 16, 16, &[]).is_none(), "all is flipped");
        assert!(BloomFilter::<u64>::new(1 << 20, 16, 20, &[]).is_none(), "all prefixes are there");
        assert!(BloomFilter::<u64>::new(1 << 20, 28, 64, &[]).is_some());
    }
}
