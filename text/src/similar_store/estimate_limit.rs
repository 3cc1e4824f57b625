//! Raises the similarity threshold for a document with many candidates, as a correction for multiple comparisons.

use super::SimilarityEstimate;
use crate::Signature;
use crate::band_search::{binomial_cdfs, bit_difference_probability};
use crate::minhash::SIGNATURE_BITS;

/// A candidate is *near* the similarity threshold if its estimated similarity is above the threshold, or at most this number of
/// standard deviations below it. If the true similarity of a candidate equals the threshold, the probability that the candidate
/// is not near is below 1 in 30,000.
const NEAR_STANDARD_DEVIATIONS: f64 = 4.0;

/// The smallest estimated similarity at which a document and a candidate count as similar. It depends on the number of candidates
/// near the similarity threshold.
///
/// An estimate has a standard error, so the greatest of many estimates tends to be too large. With m candidates near the
/// threshold, the limit is so high that the estimate of a candidate just below the threshold reaches the limit with a probability
/// of at most 1 / (2 m²). So a document without similar candidates is wrongly judged similar to some candidate with a probability
/// of at most 1 / (2 m) (C. E. Bonferroni, 1936). With one candidate, the limit is the threshold itself.
///
/// ```
/// use simstore_text::{EstimateLimit, Signature};
///
/// let [a, b] = [[1, 2, 3], [2, 3, 4]].map(|set| Signature::new(&set).unwrap());
/// assert!(EstimateLimit::new(0.5, 1).accepts(&a, &b) && a.is_near(&b, 0.5));
/// assert!(!EstimateLimit::new(0.5, 1000).accepts(&a, &b) && EstimateLimit::new(0.5, 1000).accepts(&a, &a));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct EstimateLimit {
    threshold: f64,
    /// Maximum number of differing bits in two signatures that are accepted as similar; `None` if only equal sets are accepted.
    bits: Option<u32>,
}

impl EstimateLimit {
    /// Returns the limit for a similarity `threshold` and a number of candidates that are [near](Signature::is_near) the threshold.
    pub fn new(threshold: f64, candidates: u64) -> Self {
        let bits = match candidates {
            0 | 1 => Some(SIGNATURE_BITS as u32),
            _ => {
                let max_probability = 0.5 / (candidates as f64).powi(2);
                let counted = binomial_cdfs(SIGNATURE_BITS as u32, bit_difference_probability(threshold))
                    .take_while(|&found| found <= max_probability);
                (counted.count() as u32).checked_sub(1)
            }
        };
        EstimateLimit { threshold, bits }
    }

    /// Whether two sets with these signatures count as similar. Equal sets always do.
    pub fn accepts(&self, a: &Signature, b: &Signature) -> bool {
        self.accepts_estimate(a.estimate(b), a.distance(b))
    }

    /// Whether two sets with this estimated similarity count as similar. `bits` is the number of bits in which their signatures
    /// differ. If the similarity is exact, it only needs to reach the threshold, and `bits` is ignored.
    pub fn accepts_estimate(&self, estimate: SimilarityEstimate, bits: u32) -> bool {
        let is_within = estimate.standard_error == 0.0 || self.bits.is_some_and(|max_bits| bits <= max_bits);
        is_within && estimate.similarity >= self.threshold
    }
}

impl Signature {
    /// Whether the estimated similarity to another set is above `threshold`, or at most 4 standard deviations below it. Returns
    /// `false` for equal sets, because their similarity is exact.
    pub fn is_near(&self, other: &Signature, threshold: f64) -> bool {
        let (bits, differs) = (SIGNATURE_BITS as f64, bit_difference_probability(threshold));
        let max_distance =
            bits * differs + NEAR_STANDARD_DEVIATIONS * (bits * differs * (1.0 - differs)).sqrt();
        self != other && f64::from(self.distance(other)) <= max_distance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the signature of a set of `members` members. The last `others` of them depend on `number`. So two sets with
    /// different numbers share `members - others` members, and their similarity is (members - others) / (members + others).
    fn signature(members: u64, others: u64, number: u64) -> Signature {
        let hash = |member: u64| xxhash_rust::xxh3::xxh3_64(&member.to_le_bytes());
        let own = (0..others).map(|at| hash(1_000_000 + number * 1000 + at));
        Signature::new(&(0..members - others).map(hash).chain(own).collect::<Vec<_>>()).unwrap()
    }

    /// 200 stored pages and 200 new pages have a similarity of 0.786 to each other, just below the threshold of 0.8. If estimates
    /// only had to reach the threshold, more than 190 new pages would count as similar to a stored page. With [`EstimateLimit`],
    /// at most 2 do.
    #[test]
    fn few_of_many_that_are_just_below_are_taken_for_similar() {
        const STORED: u64 = 200;
        let (threshold, page) = (0.8, |number| signature(100, 12, number));
        let stored: Vec<Signature> = (0..STORED).map(page).collect();
        let (mut reached, mut wrong) = (0, 0);
        for new in (STORED..2 * STORED).map(page) {
            let near = stored.iter().filter(|stored| new.is_near(stored, threshold)).count() as u64;
            assert!(near > STORED * 9 / 10);
            let limit = EstimateLimit::new(threshold, near);
            reached += usize::from(stored.iter().any(|stored| new.estimate(stored).similarity >= threshold));
            wrong += usize::from(stored.iter().any(|stored| limit.accepts(&new, stored)));
        }
        assert!(reached > 190 && wrong <= 2, "{reached} reach the threshold, {wrong} count");
    }

    #[test]
    fn alone_a_candidate_counts_from_the_threshold_on_and_equal_ones_always_do() {
        for number in 0..300 {
            let (a, b) = (signature(100, 12, number), signature(100, 12, number + 300));
            let alone = EstimateLimit::new(0.8, 1);
            assert_eq!(alone.accepts(&a, &b), a.estimate(&b).similarity >= 0.8);
            for candidates in [2, 10, 1_000_000] {
                let limit = EstimateLimit::new(0.8, candidates);
                assert!(limit.accepts(&a, &a) && !a.is_near(&a, 0.8));
                assert!(alone.accepts(&a, &b) || !limit.accepts(&a, &b));
            }
        }
    }

    /// Asserts that the limit, in differing bits of two signatures, never grows with the number of candidates, and is more than 5
    /// bits even for a million candidates.
    #[test]
    fn the_limit_falls_with_the_number_of_candidates() {
        let bits = |candidates| EstimateLimit::new(0.8, candidates).bits;
        let all = [1, 2, 3, 10, 100, 3000, 1_000_000].map(bits);
        assert!(all.is_sorted_by(|a, b| a >= b) && all[6].is_some_and(|bits| bits > 5), "{all:?}");
    }
}
