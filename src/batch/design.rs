//! Chooses the query tables of a batch, and estimates the cost of streaming with them.
//!
//! The stored fingerprints are sorted, so fingerprints with the same leading bits are adjacent. Let the *head* be the leading
//! bits of a fingerprint. A stored fingerprint and a query within k bits differ in at most r bits of the head, or in at most
//! k - r - 1 of the other bits. These are cut into k - r *tails*; in the second case, one tail is the same in both. So a batch
//! takes one search by the head with r flips, which is local in the order of the stream, and one exact search for each tail.

use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::permutation::Permutation;
use crate::plan::{Plan, TablePlan};

// The constants are fitted by hand to batches of a thousand to a million queries against 100 million fingerprints
// (`benches/history/batch-and-join.md`) and to how their time was spread over the searches.

/// Decoding a stored fingerprint, in nanoseconds.
const DECODE: f64 = 4.0;
/// Entering a stored fingerprint into the index of its group, in nanoseconds.
const MARK: f64 = 4.0;
/// Finding the queries whose group bits are given, in nanoseconds.
const SLICE: f64 = 5.0;
/// Looking up a query in a group's index, once for each way to flip its bits, in nanoseconds.
const PROBE: f64 = 2.6;
/// Clearing 64 bits of a group's index, in nanoseconds.
const CLEAR: f64 = 0.5;
/// Passing by a stored fingerprint on the way to those that are looked for, in nanoseconds.
const SKIP: f64 = 1.0;
/// Comparing a stored fingerprint with a query, in nanoseconds.
const COMPARE: f64 = 4.0;
/// Testing the filter of a tail that the nearest cache holds, in nanoseconds; for each doubling from
/// [`FILTER_CACHE`] bytes on, [`FILTER_MISS`] more.
const FILTER: f64 = 5.0;
const FILTER_MISS: f64 = 2.5;
const FILTER_CACHE: f64 = 1e6;
/// Looking for the queries with a given tail after its filter has let it pass, in nanoseconds.
const CHECK: f64 = 50.0;
/// How many stored fingerprints a filter lets pass in error.
const FALSE_PASS: f64 = 0.05;
/// Entering a query into the head's table or a tail's, in nanoseconds.
const ENTER: f64 = 40.0;

/// Stored fingerprints that one task decodes and holds at once.
pub(super) const CHUNK: usize = 1 << 16;
/// Longest list of flips: beyond it, another design is cheaper in any case.
const MAX_FLIPS: f64 = 32768.0;
const MAX_GROUP_BITS: u32 = 24;
const MAX_INDEX_BITS: u32 = 18;

/// The query tables of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Design {
    /// Stored fingerprints that share so many leading bits make a group, which is searched together.
    pub(super) group_bits: u32,
    /// The bits that follow these; a group is indexed by them. Group and index bits are the head.
    pub(super) index_bits: u32,
    /// Flips of the search by the head, r.
    pub(super) flips: u32,
    /// Number of tails, k - r.
    pub(super) tails: u32,
}

impl Design {
    /// Compares every query with every stored fingerprint.
    pub(super) fn direct(distance: u32) -> Self {
        Design { group_bits: 0, index_bits: 0, flips: distance, tails: 0 }
    }

    /// The cheapest design, and its cost in nanoseconds on one core.
    pub(super) fn choose<F: Fingerprint>(queries: usize, stored: u64, distance: u32) -> (Self, f64) {
        let mut best = Design::direct(distance);
        let mut least = best.cost::<F>(queries, stored);
        // Groups of less than one, and an index of nearly nothing but gaps, are no use.
        let most = stored.max(1).ilog2();
        for group_bits in 0..=MAX_GROUP_BITS.min(most) {
            for index_bits in 1..=MAX_INDEX_BITS.min(most + 6) {
                for flips in 0..=distance {
                    let design = Design { group_bits, index_bits, flips, tails: distance - flips };
                    if ways(group_bits, flips) > MAX_FLIPS || ways(index_bits, flips) > MAX_FLIPS {
                        break;
                    }
                    let cost = design.cost::<F>(queries, stored);
                    if cost < least {
                        (best, least) = (design, cost);
                    }
                }
            }
        }
        (best, least)
    }

    /// Nanoseconds on one core.
    fn cost<F: Fingerprint>(&self, queries: usize, stored: u64) -> f64 {
        let (q, n) = (queries as f64, stored as f64);
        let head = self.group_bits + self.index_bits;
        let each_value = f64::from(self.group_bits).exp2();
        // A group that two tasks share is searched by both.
        let groups = each_value.min(n) + n / CHUNK as f64;
        let probes: f64 = (0..=self.flips.min(self.group_bits))
            .map(|d| choices(self.group_bits, d) * ways(self.index_bits, self.flips - d))
            .sum();
        let per_group = ways(self.group_bits, self.flips) * SLICE
            + probes * q / each_value * PROBE
            + f64::from(self.index_bits).exp2() / 64.0 * CLEAR;
        // Fingerprints with the same index bits are compared. Earlier ones in the same word are skipped first.
        let same = n / f64::from(head).exp2();
        let skipped = same.min(1.0) * same * f64::from(self.index_bits).exp2().min(64.0) / 2.0;
        let found = probes * q * (same * COMPARE + skipped * SKIP);
        let mut total = n * (DECODE + MARK) + q * ENTER + groups * per_group + found;
        if let Some(bits) = (F::BITS - head).checked_div(self.tails) {
            let same = q / f64::from(bits).exp2();
            let miss = (q / FILTER_CACHE).log2().max(0.0) * FILTER_MISS;
            let each = FILTER + miss + (FALSE_PASS + same.min(1.0)) * CHECK + same * COMPARE;
            total += f64::from(self.tails) * (n * each + q * ENTER);
        }
        total
    }

    /// The head and the tails as a plan of tables, which shows that they miss nothing.
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

/// Number of ways to choose `chosen` out of `bits` bits.
fn choices(bits: u32, chosen: u32) -> f64 {
    (0..chosen).map(|i| (f64::from(bits) - f64::from(i)).max(0.0) / f64::from(i + 1)).product()
}

/// Number of ways to flip at most `flips` out of `bits` bits.
fn ways(bits: u32, flips: u32) -> f64 {
    (0..=flips.min(bits)).map(|chosen| choices(bits, chosen)).sum()
}

/// All masks with at most a number of bits set, out of some low bits; masks with fewer bits come first.
#[derive(Debug)]
pub(super) struct Flips {
    masks: Vec<u32>,
    /// Where the masks of each number of bits end.
    ends: Vec<usize>,
}

impl Flips {
    pub(super) fn new(bits: u32, most: u32) -> Self {
        let (mut masks, mut ends) = (vec![0], vec![1]);
        let mut start = 0;
        for _ in 1..=most.min(bits) {
            // Each mask of one bit more, once: by a bit above its highest.
            for i in start..masks.len() {
                let mask: u32 = masks[i];
                let above = u32::BITS - mask.leading_zeros();
                masks.extend((above..bits).map(|bit| mask | 1 << bit));
            }
            start = ends[ends.len() - 1];
            ends.push(masks.len());
        }
        Flips { masks, ends }
    }

    /// The masks of at most `most` bits.
    pub(super) fn within(&self, most: u32) -> &[u32] {
        &self.masks[..self.ends[(most as usize).min(self.ends.len() - 1)]]
    }

    /// The masks by their number of bits, from 0 on.
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
                        let (design, cost) = Design::choose::<F>(queries, stored, distance);
                        assert!(cost.is_finite() && cost >= 0.0);
                        design.tables::<F>(distance).unwrap();
                    }
                }
            }
        }
        check::<u64>();
        check::<u128>();
    }

    #[test]
    fn what_is_chosen() {
        assert_eq!(Design::choose::<u64>(1, 1, 3).0, Design::direct(3));
        let shape = |queries, stored| {
            let (design, _) = Design::choose::<u64>(queries, stored, 3);
            (design.flips, design.tails)
        };
        assert_eq!(shape(1000, 1_000_000_000), (3, 0));
        assert_eq!(shape(1_000_000, 1_000_000_000), (2, 1));
        // With few stored fingerprints for each query, flips dominate the cost.
        assert_eq!(shape(1_000_000, 100_000), (1, 2));
    }

    #[test]
    fn masks_of_few_bits() {
        let flips = Flips::new(5, 3);
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
        assert_eq!(Flips::new(0, 3).within(3), [0]);
    }
}
