//! Computation of simhash fingerprints with floating-point weights, for several presets.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use crate::simhash::{PrehashedHasher, Simhash};
use simstore::Fingerprint;

/// A keyword of a text, with the weight that the reproduced tool gives to the keyword.
pub(super) struct Keyword<'a> {
    pub(super) word: &'a str,
    pub(super) weight: f64,
}

/// Visits each keyword with its weight, rounded to an integer in units of 2^-20.
pub(super) fn visit_keywords(keywords: &[Keyword<'_>], mut visit: impl FnMut(&str, u32)) {
    for keyword in keywords {
        visit(keyword.word, (keyword.weight * f64::from(1 << 20)).round() as u32);
    }
}

/// Returns the fingerprint of weighted hashes. Each bit has a sum: the weights of the hashes that have the bit set, minus the
/// weights of the others. A bit of the fingerprint is 1 if `is_one` returns true for its sum.
///
/// Sums are computed in floating point, in the order of `hashes`, so that they are rounded as in the tool that the preset
/// reproduces. Sums of integer weights are exact.
pub(super) fn weighted_fingerprint<F: Fingerprint>(
    hashes: impl IntoIterator<Item = (F, f64)>,
    is_one: impl Fn(f64) -> bool,
) -> Simhash<F> {
    // One sum for each bit, from the least significant.
    let mut sums = [0.0; 128];
    let mut distinct = HashSet::<F, BuildHasherDefault<PrehashedHasher>>::default();
    for (hash, weight) in hashes {
        distinct.insert(hash);
        let bits = hash.to_u128();
        for (bit, sum) in sums[..F::BITS as usize].iter_mut().enumerate() {
            *sum += if bits >> bit & 1 == 1 { weight } else { -weight };
        }
    }
    let ones = sums[..F::BITS as usize].iter().enumerate().map(|(bit, &sum)| u128::from(is_one(sum)) << bit);
    let fingerprint = F::from_u128(ones.fold(0, |value, one| value | one));
    Simhash { fingerprint, features: u32::try_from(distinct.len()).unwrap_or(u32::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_are_the_tool_s() {
        let opposite = [(0b01_u64, 1.0), (0b10, 1.0)];
        assert_eq!(weighted_fingerprint(opposite, |sum| sum > 0.0).fingerprint, 0);
        assert_eq!(
            weighted_fingerprint(opposite, |sum| sum >= 0.0),
            Simhash { fingerprint: 0b11, features: 2 }
        );
    }
}
