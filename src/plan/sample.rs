//! A sample of the fingerprints that a plan is for.

use crate::fingerprint::Fingerprint;

/// The most fingerprints of a sample.
const LIMIT: usize = 1 << 15;
/// Fewer are searched fast under any plan, and say little of which bits go together.
const LEAST: usize = 10_000;
/// The most fingerprints that an assignment is looked for with; it is judged by the others.
const MOST_SEARCHED: usize = 1 << 13;

/// A bounded sample of distinct fingerprints, whose order does not matter: those with the smallest hashes.
pub(crate) struct Sample<F> {
    /// With their hashes.
    kept: Vec<(u64, F)>,
    /// The largest hash that is kept.
    largest: u64,
}

impl<F: Fingerprint> Sample<F> {
    pub(crate) fn new() -> Self {
        Sample { kept: Vec::new(), largest: u64::MAX }
    }

    /// Takes one more fingerprint, different from those before.
    #[inline]
    pub(crate) fn push(&mut self, fingerprint: F) {
        let hash = hash(fingerprint);
        if hash > self.largest {
            return;
        }
        self.kept.push((hash, fingerprint));
        while self.kept.len() > LIMIT {
            self.largest /= 2;
            self.kept.retain(|&(hash, _)| hash <= self.largest);
        }
    }

    /// Two disjoint parts, one to look for an assignment with and one to judge it by; `None` of a small sample.
    pub(super) fn split(mut self) -> Option<(Vec<F>, Vec<F>)> {
        if self.kept.len() < LEAST {
            return None;
        }
        self.kept.sort_unstable();
        let fingerprints: Vec<F> = self.kept.into_iter().map(|(_, fingerprint)| fingerprint).collect();
        let (searched, judged) = fingerprints.split_at(MOST_SEARCHED.min(fingerprints.len() / 2));
        Some((searched.to_vec(), judged.to_vec()))
    }
}

/// A hash all of whose bits depend on all bits of the fingerprint; no two 64-bit fingerprints have the same one.
#[inline]
pub(super) fn hash<F: Fingerprint>(fingerprint: F) -> u64 {
    // 0 for 64 bits, whose halves are the same.
    let other = fingerprint.high_u64() ^ fingerprint.low_u64();
    let z = fingerprint.low_u64() ^ other.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    let z = (z ^ z >> 32).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 29).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same whatever the order.
    #[test]
    fn order_does_not_matter() {
        let parts = |fingerprints: &mut dyn Iterator<Item = u64>| {
            let mut sample = Sample::new();
            fingerprints.for_each(|fingerprint| sample.push(fingerprint));
            sample.split()
        };
        for count in [9_999, 10_000, 40_000, 300_000] {
            let forward = parts(&mut (0..count));
            assert_eq!(forward, parts(&mut (0..count).rev()));
            assert_eq!(forward.is_some(), count >= 10_000);
            if let Some((searched, judged)) = forward {
                let all: std::collections::HashSet<u64> = searched.iter().chain(&judged).copied().collect();
                assert_eq!(all.len(), searched.len() + judged.len());
                assert!((LEAST..=LIMIT).contains(&all.len()), "{}", all.len());
            }
        }
    }

    #[test]
    fn halves_of_128_bits_both_count() {
        let hashes: std::collections::HashSet<u64> =
            (0..1000_u128).flat_map(|i| [hash(i), hash(i << 64), hash(i << 64 | i)]).collect();
        assert_eq!(hashes.len(), 2998);
    }
}
