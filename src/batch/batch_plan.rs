//! Plans of batch queries. A plan determines by which bits the queries are indexed in memory. The plan with the
//! lowest estimated time is chosen.
//!
//! Let k be the distance, and r a number from 0 to k. A fingerprint is cut into the *head*, which consists of the
//! leading bits, and k - r *tails*, which are nearly equal parts of the other bits. If a stored fingerprint and a
//! query are within k bits, they differ in at most r bits of the head, or in at most k - r - 1 of the other bits.
//! In the second case, at least one tail is equal in both. So a batch needs one search by the head, which finds
//! heads with up to r differing bits, and one exact search by each tail.
//!
//! The first bits of the head are the *group bits*, and its other bits are the *index bits*. Stored fingerprints
//! with the same group bits are a *group*. They are adjacent, since stored fingerprints are sorted. The search by
//! the head handles one group after the other: it indexes the group's fingerprints by their index bits, and takes
//! the queries whose group bits differ in at most r bits from the group bits of the group. Each of these queries
//! is looked up in the index once for each *flip mask*, a mask of index bits that are flipped in the query.

use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::permutation::Permutation;
use crate::plan::{Plan, TablePlan};

// The constants are fitted by hand to batches of a thousand to a million queries against 100 million
// fingerprints (`benches/history/batch-and-join.md`), and to the share of each search in their time.

/// Time to decode a stored fingerprint, in nanoseconds.
const DECODE_NS: f64 = 4.0;
/// Time to insert a stored fingerprint into a [`GroupIndex`](super::query_index::GroupIndex), in nanoseconds.
const INDEX_NS: f64 = 4.0;
/// Time to find the queries whose leading bits (see [`BatchPlan::group_bits`]) have a given value, in nanoseconds.
const GROUP_QUERIES_NS: f64 = 5.0;
/// Time of one look-up in a [`GroupIndex`](super::query_index::GroupIndex), in nanoseconds. A query is looked up
/// once for each choice of bits to flip in it.
const PROBE_NS: f64 = 2.6;
/// Time to clear 64 bits of the bit set in a [`GroupIndex`](super::query_index::GroupIndex), in nanoseconds.
const CLEAR_NS: f64 = 0.5;
/// Time to skip a stored fingerprint, in nanoseconds. A [`GroupIndex`](super::query_index::GroupIndex) points to a
/// fingerprint shortly before the wanted fingerprints, so the fingerprints between are skipped.
const SKIP_NS: f64 = 1.0;
/// Time to compare a stored fingerprint with a query, in nanoseconds.
const COMPARE_NS: f64 = 4.0;
/// Time to look up a stored fingerprint in the Bloom filter of a [`TailIndex`](super::query_index::TailIndex), if
/// the filter fits in the cache, in nanoseconds.
const FILTER_NS: f64 = 5.0;
/// Additional time of a look-up in a Bloom filter that does not fit in the cache: nanoseconds for each doubling of
/// the filter's size above [`FILTER_CACHE_BYTES`].
const FILTER_MISS_NS: f64 = 2.5;
/// Size of the largest Bloom filter that is assumed to fit in the cache, in bytes.
const FILTER_CACHE_BYTES: f64 = 1e6;
/// Time to find the queries with the same tail as a stored fingerprint, in nanoseconds, if the fingerprint has
/// passed the Bloom filter of the [`TailIndex`](super::query_index::TailIndex).
const TAIL_LOOK_UP_NS: f64 = 50.0;
/// False positive rate of the Bloom filter of a [`TailIndex`](super::query_index::TailIndex): if no query has the
/// same tail as a stored fingerprint, the fingerprint passes the filter with this probability.
const FALSE_POSITIVE_RATE: f64 = 0.05;
/// Time to insert a query into one of the indexes in a [`QueryIndex`](super::query_index::QueryIndex), in
/// nanoseconds.
const INSERT_NS: f64 = 40.0;

/// Approximate number of stored fingerprints that one task decodes at a time, and holds in memory.
pub(super) const CHUNK_FINGERPRINTS: usize = 1 << 16;
/// Maximum number of flip masks (choices of bits to flip) for the group bits of a [`BatchPlan`], and also for its
/// index bits. Plans with more flip masks are not tried, since another plan is always cheaper.
const MAX_FLIP_MASKS: f64 = 32768.0;
/// Maximum value that is tried for [`BatchPlan::group_bits`].
const MAX_GROUP_BITS: u32 = 24;
/// Maximum value that is tried for [`BatchPlan::index_bits`].
const MAX_INDEX_BITS: u32 = 18;

/// Plan of a batch of queries. It cuts a fingerprint into the head (the leading bits) and tails (parts of the
/// other bits). For each stored fingerprint, one search finds the queries whose head differs in at most `flips`
/// bits, and one search for each tail finds the queries with the same tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchPlan {
    /// Number of group bits: the first bits of the head. Stored fingerprints with the same group bits are a group,
    /// which is searched separately.
    pub(super) group_bits: u32,
    /// Number of index bits: the bits of the head after the group bits. The fingerprints of a group are indexed by
    /// these bits.
    pub(super) index_bits: u32,
    /// The search by the head (the leading bits) finds a query and a stored fingerprint if their heads differ in at
    /// most this number of bits.
    pub(super) flips: u32,
    /// Number of tails, the parts into which the bits after the head are cut. It is the distance minus `flips`.
    pub(super) tails: u32,
}

impl BatchPlan {
    /// Returns the plan that compares every query with every stored fingerprint.
    pub(super) fn direct(distance: u32) -> Self {
        BatchPlan { group_bits: 0, index_bits: 0, flips: distance, tails: 0 }
    }

    /// Returns the cheapest plan for `queries` queries and `stored` stored fingerprints, and the estimated time of
    /// this plan in nanoseconds on one core.
    pub(super) fn choose<F: Fingerprint>(queries: usize, stored: u64, distance: u32) -> (Self, f64) {
        let mut best = BatchPlan::direct(distance);
        let mut least = best.cost::<F>(queries, stored);
        // Groups of less than one fingerprint, and nearly empty indexes, cannot be cheaper.
        let most = stored.max(1).ilog2();
        for group_bits in 0..=MAX_GROUP_BITS.min(most) {
            for index_bits in 1..=MAX_INDEX_BITS.min(most + 6) {
                for flips in 0..=distance {
                    let plan = BatchPlan { group_bits, index_bits, flips, tails: distance - flips };
                    if flip_count(group_bits, flips) > MAX_FLIP_MASKS
                        || flip_count(index_bits, flips) > MAX_FLIP_MASKS
                    {
                        break;
                    }
                    let cost = plan.cost::<F>(queries, stored);
                    if cost < least {
                        (best, least) = (plan, cost);
                    }
                }
            }
        }
        (best, least)
    }

    /// Estimates the time of a batch by this plan, in nanoseconds on one core. `queries` and `stored` are the
    /// numbers of queries and of stored fingerprints.
    fn cost<F: Fingerprint>(&self, queries: usize, stored: u64) -> f64 {
        let (q, n) = (queries as f64, stored as f64);
        let head = self.group_bits + self.index_bits;
        let each_value = f64::from(self.group_bits).exp2();
        // A group that two tasks share is searched by both.
        let groups = each_value.min(n) + n / CHUNK_FINGERPRINTS as f64;
        let probes: f64 = (0..=self.flips.min(self.group_bits))
            .map(|d| binomial(self.group_bits, d) * flip_count(self.index_bits, self.flips - d))
            .sum();
        let per_group = flip_count(self.group_bits, self.flips) * GROUP_QUERIES_NS
            + probes * q / each_value * PROBE_NS
            + f64::from(self.index_bits).exp2() / 64.0 * CLEAR_NS;
        // Fingerprints with the same index bits are compared. Earlier ones in the same word are skipped
        // first.
        let same = n / f64::from(head).exp2();
        let skipped = same.min(1.0) * same * f64::from(self.index_bits).exp2().min(64.0) / 2.0;
        let found = probes * q * (same * COMPARE_NS + skipped * SKIP_NS);
        let mut total = n * (DECODE_NS + INDEX_NS) + q * INSERT_NS + groups * per_group + found;
        if let Some(bits) = (F::BITS - head).checked_div(self.tails) {
            let same = q / f64::from(bits).exp2();
            let miss = (q / FILTER_CACHE_BYTES).log2().max(0.0) * FILTER_MISS_NS;
            let each = FILTER_NS
                + miss
                + (FALSE_POSITIVE_RATE + same.min(1.0)) * TAIL_LOOK_UP_NS
                + same * COMPARE_NS;
            total += f64::from(self.tails) * (n * each + q * INSERT_NS);
        }
        total
    }

    /// Converts this plan to a [`Plan`]. Fails if the plan could miss a match within the distance. The first table has
    /// the head (the first bits of a fingerprint) as its prefix. Each other table has one tail (a part of the other
    /// bits) as its prefix.
    pub(super) fn tables<F: Fingerprint>(&self, distance: u32) -> Result<Plan<F>> {
        let head = self.group_bits + self.index_bits;
        let rest = F::BITS - head;
        let mut tables =
            vec![TablePlan { permutation: Permutation::identity(), prefix_bits: head, flips: self.flips }];
        for tail in 0..self.tails {
            let start = head + tail * rest / self.tails;
            let end = head + (tail + 1) * rest / self.tails;
            let all = 0..F::BITS as u8;
            let in_tail = |bit: &u8| (start..end).contains(&u32::from(*bit));
            let order = all.clone().filter(in_tail).chain(all.filter(|bit| !in_tail(bit)));
            let permutation = Permutation::new(order)?;
            tables.push(TablePlan { permutation, prefix_bits: end - start, flips: 0 });
        }
        Plan::new("batch", distance, tables)
    }
}

/// Binomial coefficient: the number of ways to choose `chosen` of `bits` bits.
fn binomial(bits: u32, chosen: u32) -> f64 {
    (0..chosen).map(|i| (f64::from(bits) - f64::from(i)).max(0.0) / f64::from(i + 1)).product()
}

/// Number of ways to flip at most `flips` of `bits` bits.
fn flip_count(bits: u32, flips: u32) -> f64 {
    (0..=flips.min(bits)).map(|chosen| binomial(bits, chosen)).sum()
}

/// All masks of a given length with at most a given number of set bits, which are the bits to flip. Masks with
/// fewer set bits come first.
#[derive(Debug)]
pub(super) struct BatchFlips {
    masks: Vec<u32>,
    /// `ends[n]` is the number of masks with at most `n` set bits.
    ends: Vec<usize>,
}

impl BatchFlips {
    pub(super) fn new(bits: u32, most: u32) -> Self {
        let (mut masks, mut ends) = (vec![0], vec![1]);
        let mut start = 0;
        for _ in 1..=most.min(bits) {
            // Adds a bit above the highest set bit only, so that each mask occurs once.
            for i in start..masks.len() {
                let mask: u32 = masks[i];
                let above = u32::BITS - mask.leading_zeros();
                masks.extend((above..bits).map(|bit| mask | 1 << bit));
            }
            start = ends[ends.len() - 1];
            ends.push(masks.len());
        }
        BatchFlips { masks, ends }
    }

    /// Returns the masks with at most `most` set bits.
    pub(super) fn within(&self, most: u32) -> &[u32] {
        &self.masks[..self.ends[(most as usize).min(self.ends.len() - 1)]]
    }

    /// Groups the masks by their number of set bits. Returns pairs of this number and the masks, in the order 0, 1,
    /// 2, ...
    pub(super) fn by_count(&self) -> impl Iterator<Item = (u32, &[u32])> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        (0..).zip(starts.zip(&self.ends).map(|(start, &end)| &self.masks[start..end]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_design_is_complete() {
        fn check<F: Fingerprint>() {
            for distance in 0..=F::MAX_DISTANCE {
                for queries in [0, 1, 100, 10_000, 1_000_000, 100_000_000] {
                    for stored in [0, 1, 1000, 1_000_000, 1 << 33] {
                        let (plan, cost) = BatchPlan::choose::<F>(queries, stored, distance);
                        assert!(cost.is_finite() && cost >= 0.0);
                        plan.tables::<F>(distance).unwrap();
                    }
                }
            }
        }
        check::<u64>();
        check::<u128>();
    }

    #[test]
    fn plans_by_numbers_of_queries_and_stored() {
        assert_eq!(BatchPlan::choose::<u64>(1, 1, 3).0, BatchPlan::direct(3));
        let shape = |queries, stored| {
            let (plan, _) = BatchPlan::choose::<u64>(queries, stored, 3);
            (plan.flips, plan.tails)
        };
        assert_eq!(shape(1000, 1_000_000_000), (3, 0));
        assert_eq!(shape(1_000_000, 1_000_000_000), (2, 1));
        // With few stored fingerprints for each query, flips dominate the cost.
        assert_eq!(shape(1_000_000, 100_000), (1, 2));
    }

    #[test]
    fn masks_of_few_bits() {
        let flips = BatchFlips::new(5, 3);
        assert_eq!(flips.within(0), [0]);
        assert_eq!(flips.within(1).len(), 6);
        assert_eq!(flips.within(9).len(), 26);
        for (count, masks) in flips.by_count() {
            assert!(masks.iter().all(|mask| mask.count_ones() == count && *mask < 32));
        }
        let mut all = flips.within(3).to_vec();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 26);
        assert_eq!(BatchFlips::new(0, 3).within(3), [0]);
    }
}
