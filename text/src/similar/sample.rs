//! Samples of sets, by which it is estimated how similar these are.

use crate::sketch::sum;

/// What is kept of a set of 64-bit hashes: how many members it has, a sum that tells it from others, and the smallest members,
/// a *bottom-k sample* (E. Cohen, "Size-estimation framework with applications to transitive closure and reachability", 1997;
/// A. Broder, "On the resemblance and containment of documents", 1997).
///
/// ```
/// use simstore_text::Sample;
///
/// let (a, b) = (Sample::new(&[1, 2, 3], 128), Sample::new(&[2, 3, 4], 128));
/// let estimate = a.estimate(&b);
/// assert_eq!((estimate.similarity, estimate.standard_error), (0.5, 0.0));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    members: u32,
    sum: u64,
    smallest: Box<[u64]>,
}

/// How similar two sets are, as far as their samples tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The Jaccard similarity, from 0 to 1.
    pub similarity: f64,
    /// By how much it may be off: one standard deviation; 0 if it is exact.
    pub standard_error: f64,
}

impl Sample {
    /// The sample of a set, ascending, of at least one member: its `size` smallest members, or all.
    pub fn new(set: &[u64], size: usize) -> Self {
        let members = u32::try_from(set.len()).unwrap_or(u32::MAX);
        Sample { members, sum: sum(set), smallest: set[..set.len().min(size)].into() }
    }

    /// How many members the set has.
    pub fn members(&self) -> u32 {
        self.members
    }

    /// Whether all members are in the sample.
    pub fn is_whole(&self) -> bool {
        self.smallest.len() == self.members as usize
    }

    /// The Jaccard similarity of two sets.
    ///
    /// If both samples are whole, or the sets are equal, it is exact. Else it is the share of the k smallest members of both
    /// sets, where k is the size of the smaller sample that is not whole, that are in both samples; but not more than the sizes
    /// of the sets allow. Its standard error is sqrt(J (1 - J) / k), where J is (1 + both) /
    /// (2 + k): that all of a sample is in both does not prove that all of the sets is.
    pub fn estimate(&self, other: &Sample) -> Estimate {
        if (self.members, self.sum) == (other.members, other.sum) && self.smallest == other.smallest {
            return Estimate { similarity: 1.0, standard_error: 0.0 };
        }
        let partial = [self, other].into_iter().filter(|sample| !sample.is_whole());
        let k = partial.map(|sample| sample.smallest.len()).min().unwrap_or(usize::MAX);
        let (a, b) = (&self.smallest, &other.smallest);
        let (mut i, mut j, mut both, mut all) = (0, 0, 0_usize, 0_usize);
        while all < k {
            match (a.get(i), b.get(j)) {
                (Some(x), Some(y)) => {
                    both += usize::from(x == y);
                    i += usize::from(x <= y);
                    j += usize::from(y <= x);
                }
                (Some(_), None) => i += 1,
                (None, Some(_)) => j += 1,
                (None, None) => break,
            }
            all += 1;
        }
        let share = both as f64 / all.max(1) as f64;
        if self.is_whole() && other.is_whole() {
            return Estimate { similarity: share, standard_error: 0.0 };
        }
        let (few, many) = (self.members.min(other.members), self.members.max(other.members));
        let between = (both + 1) as f64 / (all + 2) as f64;
        let standard_error = (between * (1.0 - between) / all.max(1) as f64).sqrt();
        Estimate { similarity: share.min(f64::from(few) / f64::from(many)), standard_error }
    }

    /// The bytes of a sample, as `format-spec/similar.md` says.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(12 + 8 * self.smallest.len());
        bytes.extend_from_slice(&self.members.to_le_bytes());
        bytes.extend_from_slice(&self.sum.to_le_bytes());
        bytes.extend(self.smallest.iter().flat_map(|member| member.to_le_bytes()));
        bytes
    }

    /// The sample of some bytes; `None` if they are not those of one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Sample> {
        let (members, rest) = bytes.split_first_chunk()?;
        let (sum, rest) = rest.split_first_chunk()?;
        let (members, sum) = (u32::from_le_bytes(*members), u64::from_le_bytes(*sum));
        let (smallest, []) = rest.as_chunks::<8>() else { return None };
        let smallest: Box<[u64]> = smallest.iter().map(|member| u64::from_le_bytes(*member)).collect();
        let is_one = !smallest.is_empty()
            && smallest.len() <= members as usize
            && smallest.is_sorted_by(|a, b| a < b)
            && (smallest.len() < members as usize || self::sum(&smallest) == sum);
        is_one.then_some(Sample { members, sum, smallest })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::jaccard;

    fn set(members: impl IntoIterator<Item = u64>) -> Vec<u64> {
        members.into_iter().collect::<BTreeSet<u64>>().into_iter().collect()
    }

    fn hash(number: u64) -> u64 {
        xxhash_rust::xxh3::xxh3_64(&number.to_le_bytes())
    }

    proptest! {
        #[test]
        fn whole_samples_are_exact(a in prop::collection::vec(0_u64..60, 1..40), b in prop::collection::vec(0_u64..60, 1..40)) {
            let (a, b) = (set(a), set(b));
            let estimate = Sample::new(&a, 40).estimate(&Sample::new(&b, 40));
            prop_assert_eq!(estimate, Estimate { similarity: jaccard(&a, &b), standard_error: 0.0 });
        }

        #[test]
        fn bytes_come_back(members in prop::collection::vec(any::<u64>(), 1..50), size in 1_usize..60) {
            let sample = Sample::new(&set(members), size);
            prop_assert_eq!(Sample::from_bytes(&sample.to_bytes()), Some(sample.clone()));
            let bytes = sample.to_bytes();
            for len in 0..bytes.len() {
                // What is left may be a sample of fewer members.
                let is_refused = Sample::from_bytes(&bytes[..len]).is_none_or(|less| !less.is_whole());
                prop_assert!(is_refused, "{} bytes", len);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100), other in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Some(sample) = Sample::from_bytes(&bytes) {
                prop_assert_eq!(sample.to_bytes(), bytes);
                let other = Sample::from_bytes(&other).unwrap_or_else(|| Sample::new(&[7], 1));
                let estimate = sample.estimate(&other);
                prop_assert!((0.0..=1.0).contains(&estimate.similarity) && estimate.standard_error >= 0.0);
                prop_assert_eq!(estimate, other.estimate(&sample));
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
                let a = set((first..first + members).map(hash));
                let start = first + members - both;
                let b = set((start..start + other).map(hash));
                let estimate = Sample::new(&a, 128).estimate(&Sample::new(&b, 128));
                let error = estimate.similarity - jaccard(&a, &b);
                errors += error;
                squares += error * error;
                said += estimate.standard_error.powi(2);
            }
            let trials = trials as f64;
            let (mean, deviation, said) =
                (errors / trials, (squares / trials).sqrt(), (said / trials).sqrt());
            // What the sizes allow takes away from what is too much.
            assert!(
                mean.abs() < 4.0 * said / trials.sqrt() || both == members.min(other),
                "{members} {mean}"
            );
            assert!(deviation < 1.15 * said, "{members} {other} {both}: {deviation}, said {said}");
        }
    }

    #[test]
    fn equal_sets_are_known_and_almost_equal_ones_are_not_taken_for_them() {
        let a = set((0..1000).map(hash));
        let mut b = a.clone();
        *b.last_mut().unwrap() -= 1;
        let [a, b] = [a, b].map(|set| Sample::new(&set, 128));
        assert_eq!(a.estimate(&a), Estimate { similarity: 1.0, standard_error: 0.0 });
        assert!(a.estimate(&b).standard_error > 0.005);
    }
}
