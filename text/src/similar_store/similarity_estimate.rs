//! Estimates the similarity of two sets from their signatures. Also encodes signatures as bytes.

use crate::Signature;
use crate::minhash::{BANDS, SIGNATURE_BITS};

/// A Jaccard similarity, exact or estimated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimilarityEstimate {
    /// The Jaccard similarity, from 0 to 1.
    pub similarity: f64,
    /// Standard error of the similarity; 0 if it is exact.
    pub standard_error: f64,
}

impl SimilarityEstimate {
    /// Returns an estimate for a similarity that is known exactly: its standard error is 0.
    pub fn exact(similarity: f64) -> SimilarityEstimate {
        SimilarityEstimate { similarity, standard_error: 0.0 }
    }
}

/// Size in bytes of an encoded signature: see [`Signature::to_bytes`].
pub(super) const SIGNATURE_BYTES: usize = 4 + 8 + 8 * BANDS;

impl Signature {
    /// Estimates the Jaccard similarity of two sets.
    ///
    /// The similarity of equal sets is 1, and exact. If the signatures of different sets differ in d bits, the estimate is 1 -
    /// 2 d / 512, rounded to the nearest possible similarity. Since the sizes of both sets are known, only some similarities are
    /// possible, one for each number of shared members. The standard error is 2 sqrt(p (1 - p) / 512), where p is
    /// (1 + d) / (2 + 512).
    ///
    /// ```
    /// use simstore_text::Signature;
    ///
    /// let [a, b] = [[1, 2, 3], [2, 3, 4]].map(|set| Signature::new(&set).unwrap());
    /// assert_eq!(a.estimate(&b).similarity, 0.5);
    /// ```
    pub fn estimate(&self, other: &Signature) -> SimilarityEstimate {
        if self == other {
            return SimilarityEstimate::exact(1.0);
        }
        let bits = SIGNATURE_BITS as f64;
        let differ = f64::from(self.distance(other));
        let p = (1.0 + differ) / (2.0 + bits);
        let standard_error = 2.0 * (p * (1.0 - p) / bits).sqrt();
        let similarity = (1.0 - 2.0 * differ / bits).max(0.0);
        // J = both / (a + b - both)
        let sizes = f64::from(self.features) + f64::from(other.features);
        let fewer = self.features.min(other.features);
        let most = if self.features == other.features { fewer - 1 } else { fewer };
        let both = (similarity * sizes / (1.0 + similarity)).round().min(f64::from(most));
        SimilarityEstimate { similarity: both / (sizes - both), standard_error }
    }

    /// Returns the signature as 76 bytes, in the format of `format-spec/similar.md`.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SIGNATURE_BYTES);
        bytes.extend_from_slice(&self.features.to_le_bytes());
        for word in [self.sum].iter().chain(&self.bands) {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Decodes the signature at the beginning of `bytes`. Returns the signature and the bytes after it. Returns `None` if `bytes`
    /// has fewer than 76 bytes, or if the number of features is 0.
    pub fn from_bytes(bytes: &[u8]) -> Option<(Signature, &[u8])> {
        let (features, rest) = bytes.split_first_chunk()?;
        let (words, rest) = rest.split_at_checked(SIGNATURE_BYTES - 4)?;
        let mut words = words.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word));
        let (features, sum) = (u32::from_le_bytes(*features), words.next()?);
        let mut bands = [0; BANDS];
        bands.iter_mut().zip(words).for_each(|(band, word)| *band = word);
        (features > 0).then_some((Signature { bands, features, sum }, rest))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hash(number: u64) -> u64 {
        xxhash_rust::xxh3::xxh3_64(&number.to_le_bytes())
    }

    fn set(members: std::ops::Range<u64>) -> Signature {
        Signature::new(&members.map(hash).collect::<Vec<_>>()).unwrap()
    }

    proptest! {
        #[test]
        fn bytes_come_back(count in 1_u64..200, rest in prop::collection::vec(any::<u8>(), 0..20)) {
            let signature = set(0..count);
            let bytes = [signature.to_bytes(), rest.clone()].concat();
            prop_assert_eq!(Signature::from_bytes(&bytes), Some((signature, &rest[..])));
            prop_assert_eq!(Signature::from_bytes(&bytes[..SIGNATURE_BYTES - 1]), None);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 70..100), other in prop::collection::vec(any::<u8>(), 70..100)) {
            if let (Some((a, _)), Some((b, _))) = (Signature::from_bytes(&bytes), Signature::from_bytes(&other)) {
                let estimate = a.estimate(&b);
                prop_assert!((0.0..=1.0).contains(&estimate.similarity) && estimate.standard_error >= 0.0);
                prop_assert_eq!(estimate, b.estimate(&a));
            }
        }
    }

    /// Over many estimates, the mean error is near 0, and the standard deviation of the errors matches the stated standard error.
    #[test]
    fn estimates_are_as_good_as_they_say() {
        for (members, other, both) in
            [(1000_u64, 1000, 889), (300, 500, 250), (100, 300, 100), (2000, 2000, 100)]
        {
            let (mut errors, mut squares, mut said) = (0.0, 0.0, 0.0);
            let trials = 400;
            for trial in 0..trials {
                let first = trial * 1_000_000;
                let start = first + members - both;
                let estimate = set(first..first + members).estimate(&set(start..start + other));
                let error = estimate.similarity - both as f64 / (members + other - both) as f64;
                errors += error;
                squares += error * error;
                said += estimate.standard_error.powi(2);
            }
            let trials = trials as f64;
            let (mean, deviation, said) =
                (errors / trials, (squares / trials).sqrt(), (said / trials).sqrt());
            // If one set contains the other, estimates above the maximum possible similarity are reduced to it.
            let is_bounded = both == members.min(other);
            assert!(mean.abs() < 4.0 * said / trials.sqrt() || is_bounded, "{members} {mean}");
            assert!(deviation < 1.1 * said, "{members} {other} {both}: {deviation}, said {said}");
        }
    }

    /// Two small sets have few possible similarities. So an estimate, which is rounded to the nearest of them, is nearly always
    /// the true similarity.
    #[test]
    fn small_sets_are_nearly_exact() {
        let mut wrong = 0;
        for trial in 0..500 {
            let first = trial * 1_000_000;
            for (members, other, both) in [(1, 2, 1), (4, 5, 4), (8, 8, 7), (2, 2, 1)] {
                let start = first + members - both;
                let estimate = set(first..first + members).estimate(&set(start..start + other));
                wrong += u32::from(estimate.similarity != both as f64 / (members + other - both) as f64);
            }
        }
        assert!(wrong < 20, "{wrong} of 2000");
    }

    #[test]
    fn equal_sets_are_known_and_almost_equal_ones_are_not_taken_for_them() {
        let (a, b) = (set(0..1000), set(0..1001));
        assert_eq!(a.estimate(&a), SimilarityEstimate::exact(1.0));
        assert!(a.estimate(&b).similarity < 1.0 && a.estimate(&b).standard_error > 0.003);
    }
}
