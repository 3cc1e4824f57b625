//! Finding the position of a fingerprint.

use super::naming::Naming;
use super::pairs::Pair;
use crate::fingerprint::Fingerprint;

/// Sorted fingerprints, with an index by their first bits that differ.
pub(super) struct Ranks<'a, F> {
    fingerprints: &'a [F],
    /// The first fingerprint: the index counts from it.
    first: F,
    shift: u32,
    /// For each value of the index bits, how many fingerprints come before.
    starts: Vec<u32>,
}

/// Fingerprints for each entry of the index, on average.
const FINGERPRINTS_EACH: usize = 16;

impl<'a, F: Fingerprint> Ranks<'a, F> {
    /// `fingerprints` are ascending, and fewer than 2^32.
    pub(super) fn new(fingerprints: &'a [F]) -> Self {
        let first = fingerprints.first().copied().unwrap_or_default();
        let last = fingerprints.last().copied().unwrap_or_default();
        let span = last.wrapping_sub(first);
        let bits = (fingerprints.len() / FINGERPRINTS_EACH).max(2).ilog2();
        let shift = (F::BITS - span.leading_zeros()).saturating_sub(bits);
        let entries = (span >> shift).low_u64() as usize + 2;
        let mut starts = vec![0; entries];
        for &fingerprint in fingerprints {
            starts[(fingerprint.wrapping_sub(first) >> shift).low_u64() as usize + 1] += 1;
        }
        for i in 1..entries {
            starts[i] += starts[i - 1];
        }
        Ranks { fingerprints, first, shift, starts }
    }

    /// The position of one of the fingerprints.
    fn of(&self, fingerprint: F) -> u32 {
        let entry = (fingerprint.wrapping_sub(self.first) >> self.shift).low_u64() as usize;
        let (start, end) = (self.starts[entry], self.starts[entry + 1]);
        let group = &self.fingerprints[start as usize..end as usize];
        start + group.partition_point(|&other| other < fingerprint) as u32
    }
}

impl<F: Fingerprint> Naming<F> for Ranks<'_, F> {
    type Name = u32;
    type Pair = Pair;

    #[inline]
    fn name(&self, fingerprint: F) -> u32 {
        self.of(fingerprint)
    }

    #[inline]
    fn pair(&self, a: u32, b: u32, distance: u32) -> Pair {
        Pair { a: a.min(b) as usize, b: a.max(b) as usize, distance }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_found() {
        let spread = (0..1000).map(|i| i << 54 | i).collect();
        for fingerprints in [vec![], vec![0], vec![u64::MAX], vec![0, u64::MAX], (5..100).collect(), spread] {
            let ranks = Ranks::new(&fingerprints);
            for (position, &fingerprint) in (0..).zip(&fingerprints) {
                assert_eq!(ranks.of(fingerprint), position);
            }
        }
        let wide: Vec<u128> = (0..300).map(|i| (i * i * i) << 90).collect();
        let ranks = Ranks::new(&wide);
        assert!((0..).zip(&wide).all(|(position, &fingerprint)| ranks.of(fingerprint) == position));
    }
}
