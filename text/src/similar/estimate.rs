//! How similar two sets are, by what is kept of them.

use crate::Sketched;
use crate::sketch::{POSITIONS, SKETCHES};

/// How similar two sets are, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The Jaccard similarity, from 0 to 1.
    pub similarity: f64,
    /// By how much it may be off: one standard deviation; 0 if it is exact.
    pub standard_error: f64,
}

impl Estimate {
    /// A similarity that is known.
    pub fn exact(similarity: f64) -> Estimate {
        Estimate { similarity, standard_error: 0.0 }
    }
}

/// Bytes of [`Sketched::to_bytes`].
pub(super) const BYTES: usize = 4 + 8 + 8 * SKETCHES;

impl Sketched {
    /// The Jaccard similarity of two sets.
    ///
    /// 1 for equal sets. Else 1 - 2 d / 512, where the sketches differ in d bits, brought to the nearest similarity that sets of
    /// these sizes can have: (members in both) / (members in any), a whole number each. Its standard error is
    /// 2 sqrt(p (1 - p) / 512), where p is (1 + d) / (2 + 512).
    ///
    /// ```
    /// use simstore_text::Sketched;
    ///
    /// let [a, b] = [[1, 2, 3], [2, 3, 4]].map(|set| Sketched::new(&set).unwrap());
    /// assert_eq!(a.estimate(&b).similarity, 0.5);
    /// ```
    pub fn estimate(&self, other: &Sketched) -> Estimate {
        if self == other {
            return Estimate::exact(1.0);
        }
        let bits = POSITIONS as f64;
        let differ = f64::from(self.distance(other));
        let p = (1.0 + differ) / (2.0 + bits);
        let standard_error = 2.0 * (p * (1.0 - p) / bits).sqrt();
        let similarity = (1.0 - 2.0 * differ / bits).max(0.0);
        // J = both / (a + b - both)
        let sizes = f64::from(self.features) + f64::from(other.features);
        let fewer = self.features.min(other.features);
        let most = if self.features == other.features { fewer - 1 } else { fewer };
        let both = (similarity * sizes / (1.0 + similarity)).round().min(f64::from(most));
        Estimate { similarity: both / (sizes - both), standard_error }
    }

    /// The bytes that a store keeps, as `format-spec/similar.md` says.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.extend_from_slice(&self.features.to_le_bytes());
        for word in [self.sum].iter().chain(&self.sketches) {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// What some bytes begin with, and the rest of them; `None` if they are not those of a set.
    pub fn from_bytes(bytes: &[u8]) -> Option<(Sketched, &[u8])> {
        let (features, rest) = bytes.split_first_chunk()?;
        let (words, rest) = rest.split_at_checked(BYTES - 4)?;
        let mut words = words.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word));
        let (features, sum) = (u32::from_le_bytes(*features), words.next()?);
        let mut sketches = [0; SKETCHES];
        sketches.iter_mut().zip(words).for_each(|(sketch, word)| *sketch = word);
        (features > 0).then_some((Sketched { sketches, features, sum }, rest))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hash(number: u64) -> u64 {
        xxhash_rust::xxh3::xxh3_64(&number.to_le_bytes())
    }

    fn set(members: std::ops::Range<u64>) -> Sketched {
        Sketched::new(&members.map(hash).collect::<Vec<_>>()).unwrap()
    }

    proptest! {
        #[test]
        fn bytes_come_back(count in 1_u64..200, rest in prop::collection::vec(any::<u8>(), 0..20)) {
            let sketched = set(0..count);
            let bytes = [sketched.to_bytes(), rest.clone()].concat();
            prop_assert_eq!(Sketched::from_bytes(&bytes), Some((sketched, &rest[..])));
            prop_assert_eq!(Sketched::from_bytes(&bytes[..BYTES - 1]), None);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 70..100), other in prop::collection::vec(any::<u8>(), 70..100)) {
            if let (Some((a, _)), Some((b, _))) = (Sketched::from_bytes(&bytes), Sketched::from_bytes(&other)) {
                let estimate = a.estimate(&b);
                prop_assert!((0.0..=1.0).contains(&estimate.similarity) && estimate.standard_error >= 0.0);
                prop_assert_eq!(estimate, b.estimate(&a));
            }
        }
    }

    /// Estimates are off by as much as they say: their mean not at all, their squares by the standard error.
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
            // What the sizes allow takes away from what is too much.
            let is_bounded = both == members.min(other);
            assert!(mean.abs() < 4.0 * said / trials.sqrt() || is_bounded, "{members} {mean}");
            assert!(deviation < 1.1 * said, "{members} {other} {both}: {deviation}, said {said}");
        }
    }

    /// Small sets have few similarities, of which the right one is nearly always the nearest.
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
        assert_eq!(a.estimate(&a), Estimate::exact(1.0));
        assert!(a.estimate(&b).similarity < 1.0 && a.estimate(&b).standard_error > 0.003);
    }
}
