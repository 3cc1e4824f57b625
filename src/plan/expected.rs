//! What the tables of a plan can be expected to cost, judged by a sample of the fingerprints.

use std::collections::BTreeMap;

use super::cost::{TableCosts, WIDE, Workload};
use super::{combinations, flipped_bits, sample};
use crate::fingerprint::Fingerprint;

/// A table as the sample sees it: the bits of the prefix in the order in which probes take them, and the flips.
pub(super) type Prefix = (Vec<u8>, u32);

/// Judges tables by the pairs of sampled fingerprints that share their prefixes.
///
/// Pairs within the distance are counted like others: each has to be found once under any plan, and those that several
/// tables find are compared several times.
pub(super) struct Expected<'a, F> {
    sample: &'a [F],
    workload: &'a Workload,
    costs: TableCosts,
    /// Bits in which not all of the sample agree.
    varying: F,
    /// What is known already, by the bits of the prefix that are looked at first, all of them, and the flips.
    known: BTreeMap<(F, F, u32), f64>,
    /// Fingerprints that have been counted.
    pub(super) work: u64,
}

impl<'a, F: Fingerprint> Expected<'a, F> {
    pub(super) fn new(sample: &'a [F], workload: &'a Workload) -> Self {
        let varying = sample.iter().fold(F::ZERO, |all, &x| all | (x ^ sample[0]));
        let costs = TableCosts::of(workload, F::BITS);
        Expected { sample, workload, costs, varying, known: BTreeMap::new(), work: 0 }
    }

    fn flipped(&self, prefix: &[u8], flips: u32) -> u32 {
        flipped_bits(prefix.len() as u32, flips, self.workload.fingerprints)
    }

    /// Nanoseconds of a query, apart from waits for memory.
    pub(super) fn cost(&mut self, tables: impl Iterator<Item = Prefix>) -> f64 {
        let mut sum = 0.0;
        for (prefix, flips) in tables {
            let flipped = self.flipped(&prefix, flips);
            let key = (mask(&prefix[..flipped as usize]), mask(&prefix), flips);
            sum += match self.known.get(&key) {
                Some(&cost) => cost,
                None => {
                    let candidates = self.candidates(&prefix, flipped as usize, flips);
                    let cost = self.costs.nanoseconds(combinations(f64::from(flipped), flips), candidates);
                    self.known.insert(key, cost);
                    cost
                }
            };
        }
        sum
    }

    /// [`Expected::cost`] if the fingerprints were spread evenly, as which no prefix of so many bits does better.
    pub(super) fn least_cost(&self, tables: impl Iterator<Item = Prefix>) -> f64 {
        let cost = |(prefix, flips): Prefix| {
            let flipped = f64::from(self.flipped(&prefix, flips));
            let wide = flips.checked_sub(1).map_or(0.0, |fewer| combinations(flipped, fewer));
            let narrow = combinations(flipped, flips) - wide;
            let each = wide / flipped.exp2() + narrow / (prefix.len() as f64).exp2();
            self.costs.nanoseconds(wide + narrow, self.workload.fingerprints as f64 * each)
        };
        tables.map(cost).sum()
    }

    /// Fingerprints that the probes of a table compare with a query that is like the stored ones. Those with all flips
    /// read what shares the whole prefix, those with fewer what shares the bits that are flipped.
    fn candidates(&mut self, prefix: &[u8], flipped: usize, flips: u32) -> f64 {
        let n = self.workload.fingerprints as f64;
        let len = self.sample.len() as f64;
        let each = 2.0 * n / (len * len);
        let mut pairs = self.pairs_by_flips(prefix, &prefix[..flipped], flips)[flips as usize];
        if let Some(fewer) = flips.checked_sub(1) {
            let (mut depth, mut flips) = (flipped, fewer);
            // A crowded range is split by further bits of the prefix, see `table/probe.rs`; they may be flipped too.
            if self.equal_pairs(mask(&prefix[..depth])) * each > WIDE as f64 * self.costs.block {
                flips += 1;
                while depth < prefix.len()
                    && self.equal_pairs(mask(&prefix[..depth])) * each > self.costs.block
                {
                    depth += 1;
                }
            }
            pairs += self.pairs_by_flips(&prefix[..depth], &prefix[..depth], flips).iter().sum::<f64>();
        }
        (pairs * each).min(n)
    }

    /// How many pairs of the sample have these bits in common but for none, one, and so on up to `flips` of some of them.
    ///
    /// The pairs that differ in one bit are counted. Those that differ in more follow, if the bits are independent
    /// where the others are equal: sums of products of the odds of single bits.
    fn pairs_by_flips(&mut self, shared: &[u8], flipped: &[u8], flips: u32) -> Vec<f64> {
        let shared = mask::<F>(shared);
        let pairs = self.equal_pairs(shared);
        let base = pairs.max(0.5);
        let mut sums = vec![0.0; flips as usize + 1];
        sums[0] = 1.0;
        for &bit in flipped {
            let bit = F::bit_mask(u32::from(bit));
            if flips > 0 && bit & self.varying != F::ZERO {
                let odds = (self.equal_pairs(shared & !bit) - pairs) / base;
                (1..sums.len()).rev().for_each(|i| sums[i] += sums[i - 1] * odds);
            }
        }
        let mut all: Vec<f64> = sums.iter().map(|sum| sum * base).collect();
        all[0] = pairs;
        all
    }

    /// How many pairs of the sample have equal bits under a mask.
    fn equal_pairs(&mut self, mask: F) -> f64 {
        self.work += self.sample.len() as u64;
        // Open addressing; 32 bits of a hash stand for the value: a false pair in thousands of masks does no harm.
        let bits = (self.sample.len() * 2).next_power_of_two().ilog2();
        let mut slots = vec![(0_u32, 0_u32); 1 << bits];
        let mut pairs = 0_u64;
        for &fingerprint in self.sample {
            let hash = sample::hash(fingerprint & mask);
            let mut at = (hash >> (64 - bits)) as usize;
            let tag = hash as u32;
            while slots[at].1 != 0 && slots[at].0 != tag {
                at = (at + 1) & (slots.len() - 1);
            }
            pairs += u64::from(slots[at].1);
            slots[at] = (tag, slots[at].1 + 1);
        }
        pairs as f64
    }
}

/// A mask of some bits.
pub(super) fn mask<F: Fingerprint>(bits: &[u8]) -> F {
    bits.iter().fold(F::ZERO, |all, &bit| all | F::bit_mask(u32::from(bit)))
}
