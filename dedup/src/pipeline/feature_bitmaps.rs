//! Bitmaps of sets of features, to reject pairs whose features need not be compared.

use simstore::processor::{Work, dispatch};
use simstore_text::shared_members;

use crate::pipeline::dense_groups::differing;

/// Words of 64 bits.
const WORDS: usize = 32;

/// Bitmap of a set: a bit tells whether the number of features that hash to it is odd.
///
/// Two sets differ in at least as many features as their bitmaps in bits (E. Sandes, G. Teodoro, A. Melo, "Bitmap filter: Speeding up exact
/// set similarity joins with bitwise operations", Information Systems 88, 2020).
#[derive(Clone, Debug)]
pub(crate) struct Bitmap {
    words: [u64; WORDS],
    features: usize,
}

impl Bitmap {
    /// Bytes of memory.
    pub(crate) const BYTES: u64 = size_of::<Bitmap>() as u64;

    /// Bitmap of different features, which are hashes.
    pub(crate) fn new(features: &[u64]) -> Bitmap {
        let mut words = [0; WORDS];
        for feature in features {
            let bit = (feature >> 32) as usize % (64 * WORDS);
            words[bit / 64] ^= 1 << (bit % 64);
        }
        Bitmap { words, features: features.len() }
    }

    /// Whether the sets may have this Jaccard similarity.
    pub(crate) fn may_be_similar(&self, other: &Bitmap, least: f64) -> bool {
        let differing = dispatch(Differing(&self.words, &other.words)) as usize;
        // What differs in bits is in one set alone, and the rest may be in both.
        let shared = (self.features + other.features).saturating_sub(differing) / 2;
        shared >= shared_members(self.features, other.features, least)
    }
}

/// Number of bits in which two bitmaps differ.
struct Differing<'a>(&'a [u64; WORDS], &'a [u64; WORDS]);

impl Work for Differing<'_> {
    type Output = u32;

    #[inline(always)]
    fn run(self) -> u32 {
        differing(self.0, self.1)
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
            let sets = [&one, &other].map(|own| both.union(own).copied().collect::<Vec<u64>>());
            let similarity = jaccard(&sets[0], &sets[1]);
            let [a, b] = sets.map(|set| Bitmap::new(&set));
            prop_assert!(a.may_be_similar(&b, similarity) && b.may_be_similar(&a, similarity));
        }
    }

    #[test]
    fn most_pairs_below_the_threshold_are_rejected() {
        let page = |number: u64| {
            let own = (0..42).map(|at| hash(1000 + number * 1000 + at));
            Bitmap::new(&(0..298).map(hash).chain(own).collect::<Vec<_>>())
        };
        let pages: Vec<Bitmap> = (0..100).map(page).collect();
        let pairs = (0..100).flat_map(|a| (0..a).map(move |b| (a, b)));
        let kept = |least| pairs.clone().filter(|&(a, b)| pages[a].may_be_similar(&pages[b], least)).count();
        // 298 of 382 features are in both: 0.780.
        assert_eq!(kept(0.78), 4950);
        assert!(kept(0.8) < 100, "{}", kept(0.8));
    }
}
