//! What the tables of a plan can be expected to cost, judged by a sample of the fingerprints.

use std::collections::BTreeMap;

use super::cost::{TableCosts, WIDE, Workload};
use super::{combinations, probed_bits, sample};
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

    fn probed(&self, prefix: &[u8], flips: u32) -> u32 {
        probed_bits(prefix.len() as u32, flips, self.workload.fingerprints, self.workload.codec)
    }

    /// Nanoseconds of a query, apart from waits for memory.
    pub(super) fn cost(&mut self, tables: impl Iterator<Item = Prefix>) -> f64 {
        let mut sum = 0.0;
        for (prefix, flips) in tables {
            let probed = self.probed(&prefix, flips);
            let key = (mask(&prefix[..probed as usize]), mask(&prefix), flips);
            sum += match self.known.get(&key) {
                Some(&cost) => cost,
                None => {
                    let candidates = self.candidates(&prefix, probed as usize, flips);
                    let cost = self.costs.nanoseconds(combinations(f64::from(probed), flips), candidates);
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
            let probed = f64::from(self.probed(&prefix, flips));
            let probes = combinations(probed, flips);
            self.costs.nanoseconds(probes, self.workload.fingerprints as f64 * probes / probed.exp2())
        };
        tables.map(cost).sum()
    }

    /// Fingerprints that the probes of a table compare with a query that is like the stored ones.
    fn candidates(&mut self, prefix: &[u8], probed: usize, flips: u32) -> f64 {
        let len = self.sample.len() as f64;
        let each = 2.0 * self.workload.fingerprints as f64 / (len * len);
        let (mut depth, mut looked_at) = (probed, mask::<F>(&prefix[..probed]));
        let mut pairs = self.equal_pairs(looked_at);
        // A crowded range is split by further bits of the prefix, see `table/probe.rs`.
        if pairs * each > WIDE * self.costs.block {
            while depth < prefix.len() && pairs * each > self.costs.block {
                let bit = F::bit_mask(u32::from(prefix[depth]));
                looked_at = looked_at | bit;
                depth += 1;
                if bit & self.varying != F::ZERO {
                    pairs = self.equal_pairs(looked_at);
                }
            }
        }
        if flips == 0 {
            return pairs * each;
        }
        // The pairs that differ in one bit are counted. Those that differ in more follow, if the bits are independent
        // where the others are equal: sums of products of the odds of single bits.
        let base = pairs.max(0.5);
        let mut sums = vec![0.0; flips as usize + 1];
        sums[0] = 1.0;
        for &bit in &prefix[..depth] {
            let bit = F::bit_mask(u32::from(bit));
            if bit & self.varying != F::ZERO {
                let odds = (self.equal_pairs(looked_at & !bit) - pairs) / base;
                (1..sums.len()).rev().for_each(|i| sums[i] += sums[i - 1] * odds);
            }
        }
        let flipped: f64 = sums[1..].iter().sum();
        ((pairs + base * flipped) * each).min(self.workload.fingerprints as f64)
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
