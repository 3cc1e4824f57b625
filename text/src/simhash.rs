//! Charikar's simhash: computes one fingerprint from weighted features.

use std::hash::Hasher;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use simstore::Fingerprint;

/// Minimum number of distinct features for a reliable fingerprint.
///
/// A bit of the fingerprint is a majority vote of the features. If one of m equally weighted features is replaced, a bit may flip
/// if the votes of the other features nearly balance. On average, 4.5 of 64 bits flip at m = 32, 6.3 at m = 16 and 2.5 at m = 100.
/// With fewer than 32 features, texts that differ in one word are usually farther apart than 3 bits, the default distance of
/// queries.
pub const SHORT_TEXT_FEATURES: u32 = 32;

/// A simhash fingerprint, with the number of features that it was computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Simhash<F> {
    /// Fingerprint of the text, as an integer of 64 or 128 bits.
    pub fingerprint: F,
    /// Number of distinct features of the text.
    pub features: u32,
}

impl<F> Simhash<F> {
    /// Whether the text is too short for a reliable fingerprint: fewer than [`SHORT_TEXT_FEATURES`] distinct features.
    pub fn is_short(&self) -> bool {
        self.features < SHORT_TEXT_FEATURES
    }
}

/// Returns the simhash of weighted features; `None` if no feature has a weight above 0.
///
/// Each feature is hashed with xxh3 (seed 0; 64 or 128 bits, as wide as the fingerprint). A bit of the fingerprint is 1 if the
/// features whose hash has this bit set weigh more than half of the total weight (M. Charikar, "Similarity estimation techniques
/// from rounding algorithms", STOC 2002).
///
/// Weights are integers in a unit of the caller's choice. Sums are exact, so the order of the features does not matter. The
/// weights of a repeated feature add up.
///
/// ```
/// use simstore_text::simhash;
///
/// let once = simhash::<u64>([("near", 2), ("duplicate", 1)]).unwrap();
/// let again = simhash::<u64>([("near", 1), ("duplicate", 1), ("near", 1)]).unwrap();
/// assert_eq!(once, again);
/// assert_eq!(once.features, 2);
/// assert_eq!(simhash::<u64>([("weightless", 0)]), None);
/// ```
pub fn simhash<F: Fingerprint>(
    features: impl IntoIterator<Item = (impl AsRef<[u8]>, u32)>,
) -> Option<Simhash<F>> {
    let mut sums = WeightedSums::<F>::new();
    for (feature, weight) in features {
        sums.add(xxh3(feature.as_ref()), weight);
    }
    sums.finish()
}

/// Computes a simhash fingerprint from weighted features. For each bit, sums the weights of the features whose hash has the bit
/// set.
pub(crate) struct WeightedSums<F> {
    /// For each bit, from the least significant: total weight of the features whose hash has the bit set.
    ones: [u64; 128],
    /// Total weight of all features.
    total: u64,
    /// Features of weight 1 are first counted here: for each bit, the number of features whose hash has the bit set. Each `u64`
    /// contains eight one-byte counters. After at most 255 features, the counts are added to `ones`.
    counts: [u64; 16],
    /// Number of features in `counts`. It stays below 255, so that no counter overflows.
    counted: u32,
    /// Hashes of all features with a weight above 0.
    hashes: Vec<F>,
}

/// Spreads the bits of a byte: byte k of `BYTE_LANES[b]` is bit k of `b`, as 0 or 1.
static BYTE_LANES: [u64; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            table[byte] |= ((byte as u64 >> bit) & 1) << (8 * bit);
            bit += 1;
        }
        byte += 1;
    }
    table
};

impl<F: Fingerprint> WeightedSums<F> {
    pub(crate) fn new() -> Self {
        WeightedSums { ones: [0; 128], total: 0, counts: [0; 16], counted: 0, hashes: Vec::new() }
    }

    /// Adds a feature, given by its hash.
    pub(crate) fn add(&mut self, hash: F, weight: u32) {
        if weight == 0 {
            return;
        }
        self.hashes.push(hash);
        self.total += u64::from(weight);
        if weight == 1 {
            self.count(hash);
        } else {
            let bits = hash.to_u128();
            for (bit, one) in self.ones[..F::BITS as usize].iter_mut().enumerate() {
                *one += u64::from(weight) * ((bits >> bit) as u64 & 1);
            }
        }
    }

    /// Adds a feature of weight 1, given by its hash, with one table look-up and one addition for every eight bits.
    fn count(&mut self, hash: F) {
        let mut bytes = [0; 16];
        hash.write_le(&mut bytes);
        for (counters, &byte) in self.counts.iter_mut().zip(&bytes[..F::BYTES]) {
            *counters += BYTE_LANES[usize::from(byte)];
        }
        self.counted += 1;
        if self.counted == 255 {
            self.drain_counts();
        }
    }

    fn drain_counts(&mut self) {
        for (ones, counters) in self.ones.chunks_exact_mut(8).zip(&mut self.counts) {
            for (one, count) in ones.iter_mut().zip(counters.to_le_bytes()) {
                *one += u64::from(count);
            }
            *counters = 0;
        }
        self.counted = 0;
    }

    pub(crate) fn finish(mut self) -> Option<Simhash<F>> {
        self.drain_counts();
        if self.total == 0 {
            return None;
        }
        let mut value = 0;
        for (bit, &one) in self.ones[..F::BITS as usize].iter().enumerate() {
            // The sum of +weight and -weight is one - (total - one).
            value |= u128::from(one > self.total - one) << bit;
        }
        self.hashes.sort_unstable();
        self.hashes.dedup();
        let features = u32::try_from(self.hashes.len()).unwrap_or(u32::MAX);
        Some(Simhash { fingerprint: F::from_u128(value), features })
    }
}

fn xxh3<F: Fingerprint>(feature: &[u8]) -> F {
    if F::BITS == 64 { F::from_u128(u128::from(xxh3_64(feature))) } else { F::from_u128(xxh3_128(feature)) }
}

/// Hasher for hash tables whose keys are hashes already. It only multiplies a key by a constant. If two keys differ only in low
/// bits, their products also differ in high bits, which hash tables need.
#[derive(Default)]
pub(crate) struct PrehashedHasher(u64);

impl Hasher for PrehashedHasher {
    fn finish(&self) -> u64 {
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }

    fn write_u128(&mut self, value: u128) {
        self.0 = value as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Computes a simhash directly from its definition: sums up the weights separately for each bit.
    fn plain<F: Fingerprint>(features: &[(String, u32)]) -> Option<F> {
        let total: u32 = features.iter().map(|&(_, weight)| weight).sum();
        let mut value = F::ZERO;
        for bit in 0..F::BITS {
            let mut sum = 0_i64;
            for (feature, weight) in features {
                let set = xxh3::<F>(feature.as_bytes()) & F::bit_mask(bit) != F::ZERO;
                sum += if set { i64::from(*weight) } else { -i64::from(*weight) };
            }
            if sum > 0 {
                value = value | F::bit_mask(bit);
            }
        }
        (total > 0).then_some(value)
    }

    #[test]
    fn one_feature_is_its_hash() {
        let hash = xxh3_64(b"one");
        assert_eq!(simhash::<u64>([("one", 7)]), Some(Simhash { fingerprint: hash, features: 1 }));
        let hash = xxh3_128(b"one");
        assert_eq!(simhash::<u128>([(b"one", 1)]), Some(Simhash { fingerprint: hash, features: 1 }));
    }

    #[test]
    fn no_weight_no_fingerprint() {
        assert_eq!(simhash::<u64>([("a", 0), ("b", 0)]), None);
        assert_eq!(simhash::<u64>(std::iter::empty::<(&str, u32)>()), None);
    }

    #[test]
    fn counters_of_bytes_do_not_overflow() {
        for repeats in [1, 254, 255, 256, 510, 511, 70_000] {
            let twice = simhash::<u128>((0..repeats).map(|_| ("same", 1))).unwrap();
            assert_eq!(twice.fingerprint, xxh3_128(b"same"), "{repeats}");
        }
        let largest = simhash::<u64>([("a", u32::MAX), ("b", u32::MAX), ("a", u32::MAX)]).unwrap();
        assert_eq!(largest, Simhash { fingerprint: xxh3_64(b"a"), features: 2 });
    }

    #[test]
    fn short_means_few_features() {
        assert!(Simhash { fingerprint: 0_u64, features: SHORT_TEXT_FEATURES - 1 }.is_short());
        assert!(!Simhash { fingerprint: 0_u64, features: SHORT_TEXT_FEATURES }.is_short());
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(features in prop::collection::vec((".{0,3}", 0_u32..4), 0..600)) {
            let borrowed = || features.iter().map(|(feature, weight)| (feature, *weight));
            prop_assert_eq!(simhash::<u64>(borrowed()).map(|s| s.fingerprint), plain(&features));
            prop_assert_eq!(simhash::<u128>(borrowed()).map(|s| s.fingerprint), plain(&features));
        }

        #[test]
        fn order_does_not_matter(
            mut features in prop::collection::vec((".{0,3}", 0_u32..1000), 1..100),
            rotation in 0_usize..100,
        ) {
            let before = simhash::<u64>(features.clone());
            features.reverse();
            let middle = rotation % features.len();
            features.rotate_left(middle);
            prop_assert_eq!(simhash::<u64>(features), before);
        }
    }
}
