//! The join: it uses a plan's tables one after the other, and joins groups that are too large by plans of their own.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::compare::{BLOCK, REACH, any_near_pair, find_near, visit_near};
use super::crowds::Crowds;
use super::design::{FEW, Prefix, choose, is_crowd, is_dense, least_work};
use super::naming::Naming;
use crate::fingerprint::Fingerprint;
use crate::radix::{Digit, Partition, first_bits, ranges, room};

/// A join of one set.
pub(super) struct Join<'a, F, N, V> {
    /// Converts fingerprints to the names that pairs are reported with.
    pub(super) naming: N,
    /// The greatest distance of near fingerprints, in bits.
    pub(super) distance: u32,
    /// Takes pairs as they are found, and says whether to continue.
    pub(super) visitor: V,
    /// The handling of crowds; without it, all their pairs are visited.
    pub(super) crowds: Option<Crowds<'a, F>>,
    /// Whether the visitor has asked to stop.
    pub(super) stopped: AtomicBool,
}

/// A required number of errors in some bits of a pair.
#[derive(Clone, Debug)]
pub(super) struct Condition<F> {
    pub(super) mask: F,
    pub(super) errors: Range<u32>,
}

/// Fingerprints to be joined with one another.
pub(super) struct Set<'a, F> {
    pub(super) values: &'a [F],
    /// The bits that may differ between near fingerprints, besides the bits that must differ by a condition.
    pub(super) bits: F,
    /// The most errors among these bits.
    pub(super) distance: u32,
    /// Conditions for the pairs of this set. They keep each pair from being reported twice.
    pub(super) conditions: Vec<Condition<F>>,
    /// Masks outside `bits`; each must contain at least one differing bit, not counted in `distance`.
    pub(super) reserve: Vec<F>,
}

/// A thread's buffers: space for a group, and the pairs found.
struct Work<F, N: Naming<F>> {
    group: Vec<F>,
    space: Vec<F>,
    /// The names of the group's fingerprints, as far as they have been looked up.
    names: Vec<Option<N::Name>>,
    pairs: Vec<N::Pair>,
    /// Blocks with near fingerprints.
    near: Vec<usize>,
}

impl<F, N: Naming<F>> Default for Work<F, N> {
    fn default() -> Self {
        Work { group: Vec::new(), space: Vec::new(), names: Vec::new(), pairs: Vec::new(), near: Vec::new() }
    }
}

/// Sets of up to this size are joined on the thread that finds them.
const SMALL: usize = 1 << 15;
/// Groups of up to this size are compared instead of being partitioned further.
const GROUP: usize = 24;
/// Groups of up to this size are looked at by [`find_near`], all together.
const SMALL_GROUP: usize = REACH + 1;
/// Bits of the digit for the first partition of a set: chunks are read in runs of some hundred.
const FIRST_DIGIT_BITS: u32 = 8;
/// Most bits of the later digits, whose groups fit in the cache.
const DIGIT_BITS: u32 = 11;
/// Pairs that a thread collects before it hands them over.
const BATCH: usize = 4096;
/// Fingerprints or groups of a large set that are compared with others before the visitor is asked again.
const ASKED_AFTER: usize = 1 << 10;

impl<'a, F: Fingerprint> Set<'a, F> {
    /// All pairs of the given fingerprints.
    pub(super) fn all(values: &'a [F], distance: u32) -> Self {
        Set { values, bits: F::MAX, distance, conditions: Vec::new(), reserve: Vec::new() }
    }
}

impl<F: Fingerprint, N: Naming<F>, V: Fn(&[N::Pair]) -> ControlFlow<()> + Sync> Join<'_, F, N, V> {
    /// Joins a set. `space` grows if necessary, and can be used again.
    pub(super) fn join(&self, set: &Set<F>, space: &mut Vec<F>) {
        let Some(&first) = set.values.first() else { return };
        let differing = set.values.iter().fold(F::ZERO, |bits, &value| bits | (value ^ first));
        // No pair has an error in bits that are equal in all fingerprints.
        if set.reserve.iter().any(|&mask| mask & differing == F::ZERO) {
            return;
        }
        let taken = if set.reserve.is_empty() { 0 } else { self.least_reserve(set, differing) };
        let (mask, reserve) = set.reserve.split_at(taken);
        if let Some(crowds) = self.crowds.filter(|crowds| is_dense(set.values, self.distance, crowds.enough))
        {
            (crowds.visitor)(set.values);
            self.ask();
            return;
        }
        let bits = differing & mask.iter().fold(set.bits, |bits, &mask| bits | mask);
        let set = &Set {
            bits,
            distance: set.distance + taken as u32,
            conditions: set.conditions.clone(),
            reserve: reserve.to_vec(),
            ..*set
        };
        let mut conditions = set.conditions.clone();
        let tables = choose(set.values.len(), bits, set.distance);
        let Some(tables) = tables.filter(|tables| !is_crowd(set.values, tables)) else {
            let mut work = Work::default();
            self.compare(set.values, &conditions, &mut work);
            return self.flush(&mut work);
        };
        // One space for all tables: getting new memory takes longer than filling it.
        let space = room(space, set.values.len());
        let mut partition: Option<(F, Partition)> = None;
        for Prefix { mask, flips } in tables {
            if !self.goes_on() {
                return;
            }
            conditions.push(Condition { mask, errors: 0..flips + 1 });
            let reserve = set.reserve.clone();
            let table = Set { conditions: conditions.clone(), bits: bits & !mask, reserve, ..*set };
            if flips == 0 {
                let first = first_bits(mask, FIRST_DIGIT_BITS);
                // Most tables begin with the same bits as the table before.
                let of_first = match partition.take() {
                    Some((bits, of_first)) if bits == first => of_first,
                    _ => Partition::new(set.values, space, &Digit::new(first), |chunk| self.ask_at(chunk)),
                };
                self.join_equal(&table, mask & !first, &of_first, space);
                partition = Some((first, of_first));
            } else {
                partition = None;
                self.join_flipped(&table, mask, flips, space);
            }
            // From now on a pair is new only if this table has not found it.
            conditions.last_mut().expect("just pushed").errors = flips + 1..F::BITS + 1;
        }
    }

    /// Number of reserve masks to add to the join's bits for the least work. Each one adds its bits, and one error.
    fn least_reserve(&self, set: &Set<F>, differing: F) -> usize {
        let mut bits = set.bits;
        let mut least = (f64::INFINITY, 0);
        for taken in 0..=set.reserve.len() {
            if taken > 0 {
                bits = bits | set.reserve[taken - 1];
            }
            let count = (bits & differing).count_ones();
            let (work, _) = least_work::<F>(set.values.len(), count, set.distance + taken as u32);
            if work < least.0 {
                least = (work, taken);
            }
        }
        least.1
    }

    /// Joins fingerprints with equal prefixes. `set.bits` are the bits outside the prefix. The fingerprints are partitioned
    /// by all other bits of the prefix than `left`.
    fn join_equal(&self, set: &Set<F>, left: F, partition: &Partition, partitioned: &[F]) {
        let join_bucket = |work: &mut Work<F, N>, bucket: usize| {
            if !self.goes_on() {
                return;
            }
            let (mut group, mut space) = (std::mem::take(&mut work.group), std::mem::take(&mut work.space));
            partition.read(partitioned, bucket, &mut group);
            space.resize(group.len().max(space.len()), F::ZERO);
            self.split(set, left, &mut group, &mut space, work);
            (work.group, work.space) = (group, space);
            self.hand_over(work, set.values.len());
        };
        for_each(set.values.len(), partition.buckets(), join_bucket);
    }

    /// Joins the `values` that are equal in the bits `left`, the remaining bits of a prefix.
    fn split(&self, set: &Set<F>, left: F, values: &mut [F], space: &mut [F], work: &mut Work<F, N>) {
        if values.len() <= GROUP {
            return self.compare(values, &set.conditions, work);
        }
        if left == F::ZERO {
            return self.join_group(set, values, work);
        }
        if values.len() > SMALL && !self.ask() {
            return;
        }
        // Digits of about equal length, down to groups of about two.
        let bits = left.count_ones().min(values.len().ilog2() - 1);
        let first = first_bits(left, bits.div_ceil(bits.div_ceil(DIGIT_BITS)));
        let digit = Digit::new(first);
        let mut ends = [0; 1 << DIGIT_BITS];
        let ends = &mut ends[..digit.buckets()];
        let space = &mut space[..values.len()];
        digit.scatter(values, space, ends);
        let mut near = std::mem::take(&mut work.near);
        find_near(space, self.distance, &mut near);
        let mut blocks = near.iter().map(|block| block * BLOCK..(block + 1) * BLOCK).peekable();
        for range in ranges(ends).filter(|range| range.len() > 1) {
            if range.len() > GROUP {
                self.split(set, left & !first, &mut space[range.clone()], &mut values[range], work);
                continue;
            }
            while blocks.next_if(|block| block.end <= range.start).is_some() {}
            let group = &space[range.clone()];
            let is_near = match range.len() <= SMALL_GROUP {
                true => blocks.peek().is_some_and(|block| block.start < range.end),
                false => any_near_pair(group, self.distance),
            };
            if is_near {
                self.compare(group, &set.conditions, work);
            }
        }
        work.near = near;
    }

    /// Joins a group of equal prefix.
    fn join_group(&self, set: &Set<F>, values: &[F], work: &mut Work<F, N>) {
        if values.len() <= FEW {
            self.compare(values, &set.conditions, work);
        } else {
            let (conditions, reserve) = (set.conditions.clone(), set.reserve.clone());
            self.join(&Set { values, conditions, reserve, ..*set }, &mut Vec::new());
        }
    }

    /// Joins fingerprints whose prefixes differ in at most `flips` bits. `set.bits` are the bits outside the prefix.
    fn join_flipped(&self, set: &Set<F>, mask: F, flips: u32, space: &mut [F]) {
        let length = mask.count_ones();
        let (sorted, ends) = sort_by_prefix(set.values, mask, space, |chunk| self.ask_at(chunk));
        let group = |number: usize| {
            let start = if number == 0 { 0 } else { ends[number - 1] };
            &sorted[start as usize..ends[number] as usize]
        };
        let patterns: Vec<(usize, F)> = patterns(mask, length, flips);
        let join_one = |work: &mut Work<F, N>, number: usize| {
            let one = group(number);
            let is_due = set.values.len() > SMALL && number.is_multiple_of(ASKED_AFTER);
            if is_due && !self.ask() || !self.goes_on() || one.is_empty() {
                return;
            }
            self.join_group(set, one, work);
            for &(pattern, errors) in patterns.iter().filter(|(pattern, _)| number ^ pattern > number) {
                let other = group(number ^ pattern);
                if !other.is_empty() {
                    self.join_two(set, mask, errors, one, other, work);
                }
            }
            self.flush(work);
        };
        for_each(set.values.len(), ends.len(), join_one);
    }

    /// Joins the fingerprints of two groups. Their prefixes differ by `errors`.
    fn join_two(&self, set: &Set<F>, mask: F, errors: F, one: &[F], other: &[F], work: &mut Work<F, N>) {
        let count = one.len() + other.len();
        if count > FEW {
            let distance = set.distance - errors.count_ones();
            if choose(count, set.bits, distance).is_some() {
                let values = &[one, other].concat();
                let mut conditions = set.conditions.clone();
                let all = errors.count_ones();
                conditions.push(Condition { mask: errors, errors: all..all + 1 });
                conditions.push(Condition { mask: mask & !errors, errors: 0..1 });
                let reserve = set.reserve.clone();
                let set = Set { values, bits: set.bits, distance, conditions, reserve };
                return self.join(&set, &mut Vec::new());
            }
        }
        for &a in one {
            visit_near(a, other, self.distance, |i| {
                if let Some(distance) = agree(a ^ other[i], &set.conditions) {
                    let (a, b) = (self.naming.name(a), self.naming.name(other[i]));
                    work.pairs.push(self.naming.pair(a, b, distance));
                }
            });
        }
        self.flush_if_full(work);
    }

    /// Compares all pairs of `values`.
    fn compare(&self, values: &[F], conditions: &[Condition<F>], work: &mut Work<F, N>) {
        let Work { names, pairs, .. } = work;
        names.clear();
        let enough = self.crowds.map_or(usize::MAX, |crowds| values.len().saturating_mul(crowds.enough));
        let mut near = 0;
        for (i, &a) in values.iter().enumerate() {
            let others = &values[i + 1..];
            visit_near(a, others, self.distance, |j| {
                let b = others[j];
                // Counts pairs of earlier tables too.
                near += 1;
                let Some(distance) = agree(a ^ b, conditions) else { return };
                if names.is_empty() {
                    names.resize(values.len(), None);
                }
                let mut name = |at: usize| *names[at].get_or_insert_with(|| self.naming.name(values[at]));
                pairs.push(self.naming.pair(name(i), name(i + 1 + j), distance));
            });
            if let Some(crowds) = self.crowds.filter(|_| near > enough) {
                (crowds.visitor)(values);
                return;
            }
            if pairs.len() >= BATCH {
                self.give(pairs);
                pairs.clear();
                if !self.goes_on() {
                    return;
                }
            }
            if values.len() > SMALL && i.is_multiple_of(ASKED_AFTER) && !self.ask() {
                return;
            }
        }
    }

    fn flush_if_full(&self, work: &mut Work<F, N>) {
        if work.pairs.len() >= BATCH {
            self.flush(work);
        }
    }

    fn flush(&self, work: &mut Work<F, N>) {
        if !work.pairs.is_empty() {
            self.give(&work.pairs);
            work.pairs.clear();
        }
    }

    /// Hands over the pairs found in a part of a set of `count` fingerprints. For a large set, calls the visitor even
    /// without pairs.
    fn hand_over(&self, work: &mut Work<F, N>, count: usize) {
        if count > SMALL && work.pairs.is_empty() {
            self.ask();
        }
        self.flush(work);
    }

    fn give(&self, pairs: &[N::Pair]) {
        if (self.visitor)(pairs).is_break() {
            self.stopped.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the visitor has not asked to stop yet.
    pub(super) fn goes_on(&self) -> bool {
        !self.stopped.load(Ordering::Relaxed)
    }

    /// Calls the visitor without pairs. Returns whether to continue.
    fn ask(&self) -> bool {
        self.give(&[]);
        self.goes_on()
    }

    /// Like [`Join::ask`], for one in 16 chunks of a partition: each chunk takes a tenth of a millisecond.
    fn ask_at(&self, chunk: usize) -> bool {
        if chunk.is_multiple_of(16) { self.ask() } else { self.goes_on() }
    }
}

/// Number of errors, if they meet the conditions.
fn agree<F: Fingerprint>(errors: F, conditions: &[Condition<F>]) -> Option<u32> {
    let fulfilled =
        |condition: &Condition<F>| condition.errors.contains(&(errors & condition.mask).count_ones());
    conditions.iter().all(fulfilled).then(|| errors.count_ones())
}

/// Runs the parts of the work on a set of `count` fingerprints, on all cores if the set is large.
fn for_each<F: Fingerprint, N: Naming<F>>(
    count: usize,
    parts: usize,
    body: impl Fn(&mut Work<F, N>, usize) + Send + Sync,
) {
    if count <= SMALL {
        let mut work = Work::default();
        (0..parts).for_each(|part| body(&mut work, part));
    } else {
        (0..parts).into_par_iter().for_each_init(Work::default, body);
    }
}

/// All ways to flip at least one and at most `flips` bits of a prefix: as a number, and as bits of the fingerprint.
fn patterns<F: Fingerprint>(mask: F, length: u32, flips: u32) -> Vec<(usize, F)> {
    let mut patterns = vec![(0, F::ZERO)];
    let mut left = mask;
    for place in (0..length).rev() {
        let bit = F::bit_mask(left.leading_zeros());
        left = left & !bit;
        for i in 0..patterns.len() {
            let (pattern, errors) = patterns[i];
            if errors.count_ones() < flips {
                patterns.push((pattern | 1 << place, errors | bit));
            }
        }
    }
    patterns.remove(0);
    patterns
}

/// Sorts the values by their prefix. Also returns where the values of each prefix end.
fn sort_by_prefix<F: Fingerprint>(
    values: &[F],
    mask: F,
    space: &mut [F],
    go_on: impl Fn(usize) -> bool + Send + Sync,
) -> (Vec<F>, Vec<u32>) {
    let first = first_bits(mask, FIRST_DIGIT_BITS);
    let (high, low) = (Digit::new(first), Digit::new(mask & !first));
    let partition = Partition::new(values, space, &high, go_on);
    let (mut sorted, mut ends) = (vec![F::ZERO; values.len()], vec![0; high.buckets() * low.buckets()]);
    let parts: Vec<_> =
        partition.split(&mut sorted).into_iter().zip(ends.chunks_mut(low.buckets())).collect();
    parts.into_par_iter().for_each_init(Vec::new, |group, (part, ends)| {
        partition.read(space, part.bucket, group);
        low.scatter(group, part.values, ends);
        ends.iter_mut().for_each(|end| *end += part.start as u32);
    });
    (sorted, ends)
}
