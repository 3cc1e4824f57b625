//! Bitmaps of feature sets. Comparing bitmaps is fast, and rejects most pairs that are not similar. Only for
//! the other pairs, features are compared.

use simstore::simd::{Kernel, dispatch};
use simstore_text::min_shared_members;

use crate::pipeline::dense_groups::hamming_distance;

/// Number of 64-bit words in a bitmap.
const WORDS: usize = 32;

/// Bitmap of a feature set. A bit is set if an odd number of features hashes to it.
///
/// Two feature sets differ in at least as many features as their bitmaps differ in bits (E. Sandes, G.
/// Teodoro, A. Melo, "Bitmap filter: Speeding up exact set similarity joins with bitwise operations",
/// Information Systems 88, 2020).
#[derive(Clone, Debug)]
pub(crate) struct FeatureBitmap {
    bands: [u64; WORDS],
    features: usize,
}

impl FeatureBitmap {
    /// Size of a bitmap in memory, in bytes.
    pub(crate) const BYTES: u64 = size_of::<FeatureBitmap>() as u64;

    /// Creates the bitmap of a feature set. `features` must be distinct.
    pub(crate) fn new(features: &[u64]) -> FeatureBitmap {
        let mut bands = [0; WORDS];
        for feature in features {
            let bit = (feature >> 32) as usize % (64 * WORDS);
            bands[bit / 64] ^= 1 << (bit % 64);
        }
        FeatureBitmap { bands, features: features.len() }
    }

    /// Whether the feature sets of two bitmaps may have a Jaccard similarity of at least `min_similarity`.
    /// False only if their similarity is certainly lower.
    pub(crate) fn may_be_similar(&self, other: &FeatureBitmap, min_similarity: f64) -> bool {
        let differing = dispatch(BitmapDistance(&self.bands, &other.bands)) as usize;
        // At least `differing` features are in only one of the sets; the others may be in both.
        let shared = (self.features + other.features).saturating_sub(differing) / 2;
        shared >= min_shared_members(self.features, other.features, min_similarity)
    }
}

/// Kernel that computes the Hamming distance of two bitmaps.
struct BitmapDistance<'a>(&'a [u64; WORDS], &'a [u64; WORDS]);

impl Kernel for BitmapDistance<'_> {
    type Output = u32;

    #[inline(always)]
    fn run(self) -> u32 {
        hamming_distance(self.0, self.1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::btree_set;
    use proptest::prelude::*;
    use simstore_text::jaccard;

    use super::*;

    fn hash(number: u64) -> u64 {
        xxhash_rust::xxh3::xxh3_64(&number.to_le_bytes())
    }

    proptest! {
        #[test]
        fn no_similar_pair_is_rejected(
            both in btree_set(any::<u64>(), 0..300),
            one in btree_set(any::<u64>(), 0..60),
            other in btree_set(any::<u64>(), 0..60),
        ) {
            let uniques = [&one, &other].map(|own| both.union(own).copied().collect::<Vec<u64>>());
            let similarity = jaccard(&uniques[0], &uniques[1]);
            let [a, b] = uniques.map(|unique| FeatureBitmap::new(&unique));
            prop_assert!(a.may_be_similar(&b, similarity) && b.may_be_similar(&a, similarity));
        }
    }

    #[test]
    fn most_pairs_below_the_threshold_are_rejected() {
        let page = |number: u64| {
            let own = (0..42).map(|at| hash(1000 + number * 1000 + at));
            FeatureBitmap::new(&(0..298).map(hash).chain(own).collect::<Vec<_>>())
        };
        let pages: Vec<FeatureBitmap> = (0..100).map(page).collect();
        let pairs = (0..100).flat_map(|a| (0..a).map(move |b| (a, b)));
        let kept = |min_similarity| {
            pairs.clone().filter(|&(a, b)| pages[a].may_be_similar(&pages[b], min_similarity)).count()
        };
        // 298 of 382 features are in both: 0.780.
        assert_eq!(kept(0.78), 4950);
        assert!(kept(0.8) < 100, "{}", kept(0.8));
    }
}
