//! The smallest estimate that counts as similar, for a document with many candidates.

use super::Estimate;
use crate::Sketched;
use crate::similarity::{at_most_each, differs};
use crate::sketch::POSITIONS;

/// A candidate is near the threshold down to this many standard deviations below it. A similar set is farther away with a probability below
/// one in 30,000.
const DEVIATIONS: f64 = 4.0;

/// The smallest estimate that counts as similar, for a document with several candidates near the threshold.
///
/// An estimate has a standard error, so the greatest of many estimates tends to be too large. With m candidates near the threshold, the
/// limit is high enough that a set just below the threshold reaches it with a probability of at most 1 / (2 m²). So a document without
/// similar candidates is wrongly judged similar to one with a probability of at most 1 / (2 m) (C. E. Bonferroni, 1936). With one
/// candidate, the limit is the threshold itself.
///
/// ```
/// use simstore_text::{EstimateLimit, Sketched};
///
/// let [a, b] = [[1, 2, 3], [2, 3, 4]].map(|set| Sketched::new(&set).unwrap());
/// assert!(EstimateLimit::new(0.5, 1).holds(&a, &b) && a.is_near(&b, 0.5));
/// assert!(!EstimateLimit::new(0.5, 1000).holds(&a, &b) && EstimateLimit::new(0.5, 1000).holds(&a, &a));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct EstimateLimit {
    least: f64,
    /// Greatest number of differing bits, or `None` if no estimate counts.
    bits: Option<u32>,
}

impl EstimateLimit {
    /// Returns the limit for a threshold and a number of [near](Sketched::is_near) candidates.
    pub fn new(least: f64, candidates: u64) -> Self {
        let bits = match candidates {
            0 | 1 => Some(POSITIONS as u32),
            _ => {
                let most = 0.5 / (candidates as f64).powi(2);
                let counted =
                    at_most_each(POSITIONS as u32, differs(least)).take_while(|&found| found <= most);
                (counted.count() as u32).checked_sub(1)
            }
        };
        EstimateLimit { least, bits }
    }

    /// Whether two sets count as similar. Equal sets always count.
    pub fn holds(&self, a: &Sketched, b: &Sketched) -> bool {
        self.counts(a.estimate(b), a.distance(b))
    }

    /// Whether an estimate from sketches with `bits` differing bits counts. An exact similarity counts if it reaches the threshold.
    pub fn counts(&self, estimate: Estimate, bits: u32) -> bool {
        let is_within = estimate.standard_error == 0.0 || self.bits.is_some_and(|most| bits <= most);
        is_within && estimate.similarity >= self.least
    }
}

impl Sketched {
    /// Whether the estimated similarity to another set is near this threshold or above it. Returns `false` for equal sets, since their
    /// similarity is known exactly.
    pub fn is_near(&self, other: &Sketched, least: f64) -> bool {
        let (bits, differs) = (POSITIONS as f64, differs(least));
        let most = bits * differs + DEVIATIONS * (bits * differs * (1.0 - differs)).sqrt();
        self != other && f64::from(self.distance(other)) <= most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a set of `members` members. Two such sets differ in `others` members each, so their similarity is (members - others) /
    /// (members + others).
    fn sketched(members: u64, others: u64, number: u64) -> Sketched {
        let hash = |member: u64| xxhash_rust::xxh3::xxh3_64(&member.to_le_bytes());
        let own = (0..others).map(|at| hash(1_000_000 + number * 1000 + at));
        Sketched::new(&(0..members - others).map(hash).chain(own).collect::<Vec<_>>()).unwrap()
    }

    /// A store has 200 pages of one template, with similarity 0.786 to each other. Without a limit, nearly every new page would count as
    /// similar to some of them.
    #[test]
    fn few_of_many_that_are_just_below_are_taken_for_similar() {
        const STORED: u64 = 200;
        let (least, page) = (0.8, |number| sketched(100, 12, number));
        let stored: Vec<Sketched> = (0..STORED).map(page).collect();
        let (mut reached, mut wrong) = (0, 0);
        for new in (STORED..2 * STORED).map(page) {
            let near = stored.iter().filter(|stored| new.is_near(stored, least)).count() as u64;
            assert!(near > STORED * 9 / 10);
            let limit = EstimateLimit::new(least, near);
            reached += usize::from(stored.iter().any(|stored| new.estimate(stored).similarity >= least));
            wrong += usize::from(stored.iter().any(|stored| limit.holds(&new, stored)));
        }
        assert!(reached > 190 && wrong <= 2, "{reached} reach the threshold, {wrong} count");
    }

    #[test]
    fn alone_a_candidate_counts_from_the_threshold_on_and_equal_ones_always_do() {
        for number in 0..300 {
            let (a, b) = (sketched(100, 12, number), sketched(100, 12, number + 300));
            let alone = EstimateLimit::new(0.8, 1);
            assert_eq!(alone.holds(&a, &b), a.estimate(&b).similarity >= 0.8);
            for candidates in [2, 10, 1_000_000] {
                let limit = EstimateLimit::new(0.8, candidates);
                assert!(limit.holds(&a, &a) && !a.is_near(&a, 0.8));
                assert!(alone.holds(&a, &b) || !limit.holds(&a, &b));
            }
        }
    }

    /// More candidates never make the limit easier to reach, and nearly equal sets count even with a million candidates.
    #[test]
    fn the_limit_falls_with_the_number_of_candidates() {
        let bits = |candidates| EstimateLimit::new(0.8, candidates).bits;
        let all = [1, 2, 3, 10, 100, 3000, 1_000_000].map(bits);
        assert!(all.is_sorted_by(|a, b| a >= b) && all[6].is_some_and(|bits| bits > 5), "{all:?}");
    }
}
