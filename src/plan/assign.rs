//! Bits to prefixes by a sample: the blocks of a plan get bits that tell as much as can be, where contiguous blocks
//! would leave prefixes that thousands share.

use super::catalogue::Family;
use super::cost::Workload;
use super::expected::{Expected, Prefix};
use super::sample::{Sample, hash};
use super::shape::{self, Blocks, Shape, all_bits, parts};
use super::variation::Variation;
use super::{Plan, TablePlan, flipped_bits};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::permutation::Permutation;

/// What other bits must cost, as a part of what those that follow one another cost, to be taken.
const GAIN: f64 = 0.9;
/// What a step of the search has to bring: less may be chance.
const STEP: f64 = 0.998;
/// Steps in vain after which the search ends.
const PATIENCE: u32 = 400;
/// Fingerprints that the search counts for each one that there is, and how many at least and at most: from a seventh of
/// a second to half a second.
const WORK_EACH: u64 = 512;
const LEAST_WORK: u64 = 1 << 25;
const MOST_WORK: u64 = 1 << 27;

/// The plan with the bits that suit a sample, or as it is if they would gain little.
pub(crate) fn assign<F: Fingerprint>(
    plan: Plan<F>,
    sample: Sample<F>,
    workload: &Workload,
) -> Result<Plan<F>> {
    let Family::Blocks(shape, even) = Family::<F>::named(plan.name(), plan.distance())? else {
        return Ok(plan);
    };
    let Some((searched, judged)) = sample.split() else { return Ok(plan) };
    if shape.leading() == shape.blocks {
        return Ok(plan);
    }
    let contiguous = || (0..shape.tables.len()).map(|i| (shape.prefix(i, &even), shape.tables[i].1));
    let mut expected = Expected::new(&searched, workload);
    let cost = expected.cost(contiguous());
    let least = expected.least_cost(contiguous());
    if least > cost * GAIN {
        return Ok(plan);
    }
    let work = (workload.fingerprints * WORK_EACH).clamp(LEAST_WORK, MOST_WORK);
    let variation = Variation::of(&searched);
    let mut search = Search { shape: &shape, variation: &variation, expected, workload, work, random: 0 };
    let found = search.run(even.clone(), cost);

    // By fingerprints that the search has not seen.
    let prefixes = search.prefixes(&found);
    let mut expected = Expected::new(&judged, workload);
    if expected.cost(prefixes.iter().cloned()) > expected.cost(contiguous()) * GAIN {
        return Ok(plan);
    }
    let tables = prefixes.into_iter().enumerate().map(|(i, (prefix, flips))| {
        if i == 0 {
            return shape::table(&prefix, flips);
        }
        let rest = (0..F::BITS as u8).filter(|bit| !prefix.contains(bit));
        let permutation = Permutation::new([&prefix[..], &variation.quiet_first(rest)].concat())?;
        Ok(TablePlan { permutation, prefix_bits: prefix.len() as u32, flips })
    });
    Plan::new(plan.name(), plan.distance(), tables.collect::<Result<_>>()?)
}

struct Search<'a, F> {
    shape: &'a Shape,
    variation: &'a Variation,
    expected: Expected<'a, F>,
    workload: &'a Workload,
    /// When [`Expected::work`] is this, the search ends.
    work: u64,
    /// Numbers drawn so far, by their count.
    random: u64,
}

impl<F: Fingerprint> Search<'_, F> {
    /// The best blocks found, starting with some that cost `cost`.
    fn run(&mut self, mut best: Blocks, mut cost: f64) -> Blocks {
        let all = all_bits::<F>();
        let (leading, blocks) = (self.shape.leading(), self.shape.blocks);
        let sizes = leading..=all.len() - (blocks - leading);
        for size in sizes.step_by(all.len() / 32) {
            let (first, rest) = all.split_at(size);
            let dealt = |bits, count| self.variation.deal(bits, count);
            let starts = [
                [parts(first, leading), parts(rest, blocks - leading)].concat(),
                [dealt(first, leading), dealt(rest, blocks - leading)].concat(),
            ];
            for start in starts {
                self.try_blocks(start, &mut best, &mut cost);
            }
        }
        let mut in_vain = 0;
        while in_vain < PATIENCE && self.expected.work < self.work {
            let next = self.neighbour(&best);
            in_vain = if self.try_blocks(next, &mut best, &mut cost) { 0 } else { in_vain + 1 };
        }
        best
    }

    /// Takes other blocks if they cost less.
    fn try_blocks(&mut self, next: Blocks, best: &mut Blocks, cost: &mut f64) -> bool {
        if self.expected.work >= self.work {
            return false;
        }
        let prefixes = self.prefixes(&next);
        let next_cost = self.expected.cost(prefixes.into_iter());
        let is_better = next_cost < *cost * STEP;
        if is_better {
            (*best, *cost) = (next, next_cost);
        }
        is_better
    }

    /// The prefixes of the tables: of the first in the order of the bits, of the others what tells most first.
    fn prefixes(&self, blocks: &Blocks) -> Vec<Prefix> {
        let each = self.shape.tables.iter().enumerate().map(|(i, &(_, flips))| {
            let mut prefix = self.shape.prefix(i, blocks);
            if i == 0 {
                prefix.sort_unstable();
                return (prefix, flips);
            }
            let flipped = flipped_bits(prefix.len() as u32, flips, self.workload.fingerprints);
            (self.variation.order(&prefix, flipped as usize), flips)
        });
        each.collect()
    }

    /// The blocks with one change, drawn at random; leading bits stay in leading blocks.
    fn neighbour(&mut self, blocks: &Blocks) -> Blocks {
        let mut next = blocks.clone();
        let leading = self.shape.leading();
        let size: usize = blocks[..leading].iter().map(Vec::len).sum();
        match self.below(3) {
            // The first bit behind the leading ones goes to one of their blocks, or the last of them to another block.
            0 => {
                let joins = self.below(2) == 0;
                let bit = if joins { size } else { size - 1 } as u8;
                let to =
                    if joins { self.below(leading) } else { leading + self.below(blocks.len() - leading) };
                next.iter_mut().for_each(|block| block.retain(|&other| other != bit));
                next[to].push(bit);
            }
            // Two bits change places, or one goes to another block of the same side.
            kind => {
                let side = if self.below(2) == 0 { 0..leading } else { leading..blocks.len() };
                let a = side.start + self.below(side.len());
                let b = side.start + self.below(side.len());
                if a != b && !next[a].is_empty() {
                    let i = self.below(next[a].len());
                    let bit = next[a].swap_remove(i);
                    if kind == 1 && !next[b].is_empty() {
                        let j = self.below(next[b].len());
                        let other = next[b].swap_remove(j);
                        next[a].push(other);
                    }
                    next[b].push(bit);
                }
            }
        }
        // No side without bits: a prefix of none is a scan.
        let kept: usize = next[..leading].iter().map(Vec::len).sum();
        let is_whole = (1..F::BITS as usize).contains(&kept);
        next.iter_mut().for_each(|block| block.sort_unstable());
        if is_whole { next } else { blocks.clone() }
    }

    fn below(&mut self, end: usize) -> usize {
        self.random += 1;
        (hash(self.random) % end as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Codec;
    use crate::plan::{Medium, names};

    fn assigned<F: Fingerprint>(
        name: &str,
        distance: u32,
        codec: Codec,
        fingerprints: impl Iterator<Item = F>,
    ) -> Plan<F> {
        let (mut sample, mut count) = (Sample::new(), 0);
        fingerprints.for_each(|fingerprint| {
            sample.push(fingerprint);
            count += 1;
        });
        let workload =
            Workload { fingerprints: count, codec, block_size: None, span: None, medium: Medium::Memory };
        assign(Plan::named(name, distance).unwrap(), sample, &workload).unwrap()
    }

    fn random<F: Fingerprint>(count: u64) -> impl Iterator<Item = F> {
        (0..count).map(|i| F::from_u128(u128::from(hash(2 * i)) << 64 | u128::from(hash(2 * i + 1))))
    }

    /// Random but for the first bits, which all share.
    fn crowded<F: Fingerprint>(count: u64, bits: u32) -> impl Iterator<Item = F> {
        random::<F>(count).map(move |x| x & F::suffix_mask(F::BITS - bits))
    }

    /// Every plan of a distance keeps its bits.
    fn keeps<F: Fingerprint>(distance: u32, count: u64) {
        for name in names::<F>(distance) {
            for codec in [Codec::FirstDifference, Codec::EliasFano] {
                let plan = assigned(&name, distance, codec, random::<F>(count));
                assert_eq!(plan, Plan::named(&name, distance).unwrap(), "{count}, {codec}");
            }
        }
    }

    #[test]
    fn random_fingerprints_keep_contiguous_bits() {
        for count in [10_000, 100_000, 1_000_000] {
            keeps::<u64>(3, count);
        }
        keeps::<u64>(1, 50_000);
        keeps::<u64>(8, 50_000);
        keeps::<u128>(3, 50_000);
    }

    #[test]
    fn few_fingerprints_keep_contiguous_bits() {
        let plan = assigned("probe-2", 3, Codec::EliasFano, crowded::<u64>(9_000, 40));
        assert_eq!(plan, Plan::named("probe-2", 3).unwrap());
    }

    #[test]
    fn what_all_share_is_left_to_one_prefix() {
        let plan = assigned("probe-2", 3, Codec::EliasFano, crowded::<u64>(1_000_000, 40));
        let [first, second] = plan.tables() else { panic!("two tables") };
        assert!((50..=54).contains(&first.prefix_bits), "{}", first.prefix_bits);
        assert_eq!(second.prefix_bits, 64 - first.prefix_bits);
        // What all share comes before what follows the prefix.
        let sources = second.permutation.sources();
        let rest = &sources[second.prefix_bits as usize..];
        assert!(rest[..40].iter().all(|&bit| bit < 40), "{rest:?}");
    }

    #[test]
    fn the_same_fingerprints_give_the_same_plan() {
        let fingerprints: Vec<u64> = crowded(30_000, 30).collect();
        for name in ["probe-3", "mixed-3-20", "cover-11", "paper-10"] {
            let plan = |turned: bool| {
                let mut fingerprints = fingerprints.clone();
                if turned {
                    fingerprints.reverse();
                }
                assigned(name, 3, Codec::EliasFano, fingerprints.into_iter())
            };
            assert_eq!(plan(false), plan(true));
            assert_ne!(plan(false), Plan::named(name, 3).unwrap(), "{name}");
        }
    }
}
