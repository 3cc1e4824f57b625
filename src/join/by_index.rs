//! Conversion of the pairs that a self-join finds to pairs of indexes in its list of fingerprints.

use super::pair_output::PairOutput;
use super::pairs::IndexPair;
use crate::fingerprint::Fingerprint;

/// Converts pairs of fingerprints to pairs of their indexes in the sorted list of all fingerprints of a self-join.
///
/// The index of a fingerprint is found by a binary search in a short range of the list: `starts[i]..starts[i + 1]`,
/// with `i = (fingerprint - first) >> shift`.
pub(super) struct ByIndex<'a, F> {
    fingerprints: &'a [F],
    /// Smallest fingerprint of the list, which is the first one.
    first: F,
    /// Number of bits by which `fingerprint - first` is shifted right, to get an index of `starts`.
    shift: u32,
    /// `starts[i]` is the number of fingerprints for which `(fingerprint - first) >> shift` is less than `i`.
    starts: Vec<u32>,
}

/// Approximate number of fingerprints for each entry of [`ByIndex::starts`].
const FINGERPRINTS_PER_ENTRY: usize = 16;

impl<'a, F: Fingerprint> ByIndex<'a, F> {
    /// Creates the converter for pairs of `fingerprints`, which must be strictly ascending and fewer than 2^32.
    pub(super) fn new(fingerprints: &'a [F]) -> Self {
        let first = fingerprints.first().copied().unwrap_or_default();
        let last = fingerprints.last().copied().unwrap_or_default();
        let span = last.wrapping_sub(first);
        let bits = (fingerprints.len() / FINGERPRINTS_PER_ENTRY).max(2).ilog2();
        let shift = (F::BITS - span.leading_zeros()).saturating_sub(bits);
        let entries = (span >> shift).low_u64() as usize + 2;
        let mut starts = vec![0; entries];
        for &fingerprint in fingerprints {
            starts[(fingerprint.wrapping_sub(first) >> shift).low_u64() as usize + 1] += 1;
        }
        for i in 1..entries {
            starts[i] += starts[i - 1];
        }
        ByIndex { fingerprints, first, shift, starts }
    }

    /// Returns the index of a fingerprint in the list `fingerprints`, which must contain the fingerprint.
    fn index_of(&self, fingerprint: F) -> u32 {
        let entry = (fingerprint.wrapping_sub(self.first) >> self.shift).low_u64() as usize;
        let (start, end) = (self.starts[entry], self.starts[entry + 1]);
        let group = &self.fingerprints[start as usize..end as usize];
        start + group.partition_point(|&other| other < fingerprint) as u32
    }
}

impl<F: Fingerprint> PairOutput<F> for ByIndex<'_, F> {
    type Member = u32;
    type Pair = IndexPair;

    #[inline]
    fn member(&self, fingerprint: F) -> u32 {
        self.index_of(fingerprint)
    }

    #[inline]
    fn pair(&self, a: u32, b: u32, distance: u32) -> IndexPair {
        IndexPair { a: a.min(b) as usize, b: a.max(b) as usize, distance }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_found() {
        let spread = (0..1000).map(|i| i << 54 | i).collect();
        for fingerprints in [vec![], vec![0], vec![u64::MAX], vec![0, u64::MAX], (5..100).collect(), spread] {
            let by_index = ByIndex::new(&fingerprints);
            for (position, &fingerprint) in (0..).zip(&fingerprints) {
                assert_eq!(by_index.index_of(fingerprint), position);
            }
        }
        let wide: Vec<u128> = (0..300).map(|i| (i * i * i) << 90).collect();
        let by_index = ByIndex::new(&wide);
        assert!((0..).zip(&wide).all(|(position, &fingerprint)| by_index.index_of(fingerprint) == position));
    }
}
