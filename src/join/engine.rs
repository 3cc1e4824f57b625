//! Self-join of one set of fingerprints in memory, by one table of a plan after the other. For each table, the
//! fingerprints are partitioned into groups with the same prefix, and the fingerprints of each group are
//! compared with one another. For a large group, a new plan is chosen, and the group is joined by its tables.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::choose_tables::{
    COMPARE_ALL_MAX, JoinPrefix, choose_tables, is_dense, is_hard_to_split, min_work,
};
use super::compare::{BLOCK_LEN, LOOKAHEAD, any_near_pair, find_near, visit_near};
use super::dense_groups::DenseGroupVisitor;
use super::pair_output::PairOutput;
use crate::fingerprint::Fingerprint;
use crate::radix::{Digit, Partition, first_bits, ranges, scratch};

/// A running join: the options and the state that are common to all sets and groups that it joins.
pub(super) struct Join<'a, F, N, V> {
    /// Converts two fingerprints to the pair that the visitor receives.
    pub(super) pair_output: N,
    /// Maximum distance of the two fingerprints of a reported pair, in bits.
    pub(super) distance: u32,
    /// Function that receives pairs as they are found, and returns whether to continue.
    pub(super) visitor: V,
    /// Visitor of dense groups, which have very many near pairs. If it is `None`, these pairs are reported one by
    /// one.
    pub(super) dense_groups: Option<DenseGroupVisitor<'a, F>>,
    /// Whether the visitor has returned a break.
    pub(super) is_stopped: AtomicBool,
}

/// Condition on a pair of fingerprints: how many bits of a mask may differ between the two fingerprints. A bit that
/// differs is called an *error*.
#[derive(Clone, Debug)]
pub(super) struct Condition<F> {
    pub(super) mask: F,
    /// Allowed numbers of errors (bits that differ between the two fingerprints) in the mask `mask`.
    pub(super) errors: Range<u32>,
}

/// Set of fingerprints to join with one another, with the conditions that the reported pairs must meet. In the
/// fields, an *error* of a pair is a bit that differs between its two fingerprints.
///
/// If another table reports all pairs that have no error in a certain mask, each pair to report here has at least
/// one error in that mask. Such a mask can be in `uncounted_masks`. Its errors do not count towards `distance`, which
/// is then smaller than the distance of the join.
pub(super) struct JoinSet<'a, F> {
    pub(super) values: &'a [F],
    /// Mask of the bits whose errors count towards `distance`. It has no bit of `uncounted_masks`.
    pub(super) bits: F,
    /// Maximum number of errors (differing bits) of a pair in the mask `bits`.
    pub(super) distance: u32,
    /// Conditions that a pair must meet to be reported. They exclude the pairs that another table or another part
    /// of the join reports, so that each pair is reported once.
    pub(super) conditions: Vec<Condition<F>>,
    /// Masks with a known difference: the two fingerprints of each reported pair differ in at least one bit per mask.
    /// No mask has a bit of `bits`, so the differing bits in these masks do not count towards `distance`.
    pub(super) uncounted_masks: Vec<F>,
}

/// Reusable buffers of one thread of a join.
struct JoinBuffers<F, N: PairOutput<F>> {
    group: Vec<F>,
    space: Vec<F>,
    /// For each fingerprint of the group that is being compared, its form in pairs: its value or its index (see
    /// [`PairOutput::Member`]). `None` if the fingerprint is not converted yet.
    members: Vec<Option<N::Member>>,
    /// Found pairs that the visitor has not received yet.
    pairs: Vec<N::Pair>,
    /// Indexes of the blocks of [`BLOCK_LEN`] fingerprints in which [`find_near`] has found near fingerprints.
    near: Vec<usize>,
}

impl<F, N: PairOutput<F>> Default for JoinBuffers<F, N> {
    fn default() -> Self {
        JoinBuffers {
            group: Vec::new(),
            space: Vec::new(),
            members: Vec::new(),
            pairs: Vec::new(),
            near: Vec::new(),
        }
    }
}

/// Sets of at most this number of fingerprints are joined on the current thread alone.
const SERIAL_MAX: usize = 1 << 15;
/// In groups of at most this number of fingerprints, all pairs are compared. Larger groups are partitioned
/// further.
const COMPARE_GROUP_MAX: usize = 24;
/// In groups of at most this number of fingerprints, [`find_near`] compares all pairs.
const WINDOW_GROUP_MAX: usize = LOOKAHEAD + 1;
/// Number of leading prefix bits that the first partition step uses to divide a set into buckets. The step handles one
/// chunk of the set at a time. With 8 bits, each of the 256 buckets gets some hundred fingerprints of a chunk.
const FIRST_DIGIT_BITS: u32 = 8;
/// Maximum number of prefix bits that a later partition step uses to divide a bucket. It is greater than
/// [`FIRST_DIGIT_BITS`], because the fingerprints of a bucket fit in the cache.
const DIGIT_BITS: u32 = 11;
/// Number of pairs that a thread collects before it calls the visitor.
const PAIR_BATCH: usize = 4096;
/// In a large set, the visitor is called after this number of fingerprints or groups, even without new pairs, so that
/// it can cancel the join.
const CANCEL_CHECK_INTERVAL: usize = 1 << 10;

impl<'a, F: Fingerprint> JoinSet<'a, F> {
    /// Creates a set without conditions: all pairs of `values` within `distance` bits are reported.
    pub(super) fn all(values: &'a [F], distance: u32) -> Self {
        JoinSet { values, bits: F::MAX, distance, conditions: Vec::new(), uncounted_masks: Vec::new() }
    }
}

impl<F: Fingerprint, N: PairOutput<F>, V: Fn(&[N::Pair]) -> ControlFlow<()> + Sync> Join<'_, F, N, V> {
    /// Reports the near pairs (within the distance) of a set that meet the conditions of the set. `space` is a
    /// reusable buffer, which grows if necessary.
    pub(super) fn join(&self, set: &JoinSet<F>, space: &mut Vec<F>) {
        let Some(&first) = set.values.first() else { return };
        let differing = set.values.iter().fold(F::ZERO, |bits, &value| bits | (value ^ first));
        // No pair has an error in bits that are equal in all fingerprints.
        if set.uncounted_masks.iter().any(|&mask| mask & differing == F::ZERO) {
            return;
        }
        let taken =
            if set.uncounted_masks.is_empty() { 0 } else { self.mask_count_for_least_work(set, differing) };
        let (mask, uncounted_masks) = set.uncounted_masks.split_at(taken);
        if let Some(dense_groups) = self
            .dense_groups
            .filter(|dense_groups| is_dense(set.values, self.distance, dense_groups.pairs_per_member))
        {
            (dense_groups.visitor)(set.values);
            self.poll_visitor();
            return;
        }
        let bits = differing & mask.iter().fold(set.bits, |bits, &mask| bits | mask);
        let set = &JoinSet {
            bits,
            distance: set.distance + taken as u32,
            conditions: set.conditions.clone(),
            uncounted_masks: uncounted_masks.to_vec(),
            ..*set
        };
        let mut conditions = set.conditions.clone();
        let tables = choose_tables(set.values.len(), bits, set.distance);
        let Some(tables) = tables.filter(|tables| !is_hard_to_split(set.values, tables)) else {
            let mut buffers = JoinBuffers::default();
            self.compare(set.values, &conditions, &mut buffers);
            return self.flush(&mut buffers);
        };
        // All tables share one buffer, since allocating new memory takes longer than filling it.
        let space = scratch(space, set.values.len());
        let mut partition: Option<(F, Partition)> = None;
        for JoinPrefix { mask, flips } in tables {
            if !self.should_continue() {
                return;
            }
            conditions.push(Condition { mask, errors: 0..flips + 1 });
            let uncounted_masks = set.uncounted_masks.clone();
            let table =
                JoinSet { conditions: conditions.clone(), bits: bits & !mask, uncounted_masks, ..*set };
            if flips == 0 {
                let first = first_bits(mask, FIRST_DIGIT_BITS);
                // Most tables begin with the same bits as the table before.
                let first_partition = match partition.take() {
                    Some((bits, first_partition)) if bits == first => first_partition,
                    _ => Partition::new(set.values, space, &Digit::new(first), |chunk| {
                        self.poll_at_chunk(chunk)
                    }),
                };
                self.join_equal(&table, mask & !first, &first_partition, space);
                partition = Some((first, first_partition));
            } else {
                partition = None;
                self.join_flipped(&table, mask, flips, space);
            }
            // Later tables report a pair only if this table has not found it.
            conditions.last_mut().expect("just pushed").errors = flips + 1..F::BITS + 1;
        }
    }

    /// Returns how many masks the join should move from the start of `set.uncounted_masks` into `set.bits`, to have
    /// the least estimated work (see [`JoinSet`]). With a moved mask, there are more bits to choose prefixes from, so
    /// groups are smaller. But `set.distance` grows by 1 for each moved mask, so more tables are needed. `differing` is
    /// the mask of the bits that are not equal in all fingerprints of the set.
    fn mask_count_for_least_work(&self, set: &JoinSet<F>, differing: F) -> usize {
        let mut bits = set.bits;
        let mut least = (f64::INFINITY, 0);
        for taken in 0..=set.uncounted_masks.len() {
            if taken > 0 {
                bits = bits | set.uncounted_masks[taken - 1];
            }
            let count = (bits & differing).count_ones();
            let (work, _) = min_work::<F>(set.values.len(), count, set.distance + taken as u32);
            if work < least.0 {
                least = (work, taken);
            }
        }
        least.1
    }

    /// Reports the near pairs of fingerprints with equal prefixes. `partitioned` has the fingerprints of the set,
    /// divided into buckets by the first bits of the prefix, and `partition` tells where each bucket is. `left` is
    /// the mask of the other bits of the prefix. `set.bits` are the bits outside the prefix.
    fn join_equal(&self, set: &JoinSet<F>, left: F, partition: &Partition, partitioned: &[F]) {
        let join_bucket = |buffers: &mut JoinBuffers<F, N>, bucket: usize| {
            if !self.should_continue() {
                return;
            }
            let (mut group, mut space) =
                (std::mem::take(&mut buffers.group), std::mem::take(&mut buffers.space));
            partition.read(partitioned, bucket, &mut group);
            space.resize(group.len().max(space.len()), F::ZERO);
            self.split(set, left, &mut group, &mut space, buffers);
            (buffers.group, buffers.space) = (group, space);
            self.report_bucket(buffers, set.values.len());
        };
        for_each(set.values.len(), partition.buckets(), join_bucket);
    }

    /// Partitions `values` into groups with the same prefix, and joins each group. All `values` are already equal in
    /// some bits of the prefix, and `left` is the mask of the other bits of the prefix. `space` is a buffer that is
    /// at least as long as `values`.
    fn split(
        &self,
        set: &JoinSet<F>,
        left: F,
        values: &mut [F],
        space: &mut [F],
        buffers: &mut JoinBuffers<F, N>,
    ) {
        if values.len() <= COMPARE_GROUP_MAX {
            return self.compare(values, &set.conditions, buffers);
        }
        if left == F::ZERO {
            return self.join_group(set, values, buffers);
        }
        if values.len() > SERIAL_MAX && !self.poll_visitor() {
            return;
        }
        // Digits have about equal lengths. The last one leads to groups of about two.
        let bits = left.count_ones().min(values.len().ilog2() - 1);
        let first = first_bits(left, bits.div_ceil(bits.div_ceil(DIGIT_BITS)));
        let digit = Digit::new(first);
        let mut ends = [0; 1 << DIGIT_BITS];
        let ends = &mut ends[..digit.buckets()];
        let space = &mut space[..values.len()];
        digit.scatter(values, space, ends);
        let mut near = std::mem::take(&mut buffers.near);
        find_near(space, self.distance, &mut near);
        let mut blocks = near.iter().map(|block| block * BLOCK_LEN..(block + 1) * BLOCK_LEN).peekable();
        for range in ranges(ends).filter(|range| range.len() > 1) {
            if range.len() > COMPARE_GROUP_MAX {
                self.split(set, left & !first, &mut space[range.clone()], &mut values[range], buffers);
                continue;
            }
            while blocks.next_if(|block| block.end <= range.start).is_some() {}
            let group = &space[range.clone()];
            let is_near = match range.len() <= WINDOW_GROUP_MAX {
                true => blocks.peek().is_some_and(|block| block.start < range.end),
                false => any_near_pair(group, self.distance),
            };
            if is_near {
                self.compare(group, &set.conditions, buffers);
            }
        }
        buffers.near = near;
    }

    /// Joins a group of fingerprints with the same prefix. If the group is small, compares all its pairs. Otherwise
    /// joins it as a new [`JoinSet`], with tables that are chosen for this group.
    fn join_group(&self, set: &JoinSet<F>, values: &[F], buffers: &mut JoinBuffers<F, N>) {
        if values.len() <= COMPARE_ALL_MAX {
            self.compare(values, &set.conditions, buffers);
        } else {
            let (conditions, uncounted_masks) = (set.conditions.clone(), set.uncounted_masks.clone());
            self.join(&JoinSet { values, conditions, uncounted_masks, ..*set }, &mut Vec::new());
        }
    }

    /// Reports the near pairs of fingerprints whose prefixes differ in at most `flips` bits. `mask` is the mask of
    /// the prefix, and `set.bits` are the bits outside the prefix.
    fn join_flipped(&self, set: &JoinSet<F>, mask: F, flips: u32, space: &mut [F]) {
        let length = mask.count_ones();
        let (sorted, ends) = sort_by_prefix(set.values, mask, space, |chunk| self.poll_at_chunk(chunk));
        let group = |number: usize| {
            let start = if number == 0 { 0 } else { ends[number - 1] };
            &sorted[start as usize..ends[number] as usize]
        };
        let patterns: Vec<(usize, F)> = flip_patterns(mask, length, flips);
        let join_one = |buffers: &mut JoinBuffers<F, N>, number: usize| {
            let one = group(number);
            let is_due = set.values.len() > SERIAL_MAX && number.is_multiple_of(CANCEL_CHECK_INTERVAL);
            if is_due && !self.poll_visitor() || !self.should_continue() || one.is_empty() {
                return;
            }
            self.join_group(set, one, buffers);
            for &(pattern, errors) in patterns.iter().filter(|(pattern, _)| number ^ pattern > number) {
                let other = group(number ^ pattern);
                if !other.is_empty() {
                    self.join_two(set, mask, errors, one, other, buffers);
                }
            }
            self.flush(buffers);
        };
        for_each(set.values.len(), ends.len(), join_one);
    }

    /// Reports the near pairs between two groups: one fingerprint of each pair is in `one`, and the other is in
    /// `other`. The fingerprints of a group have the same prefix. `mask` is the mask of the prefix, and `errors` is
    /// the mask of the bits that differ between the prefixes of the two groups.
    fn join_two(
        &self,
        set: &JoinSet<F>,
        mask: F,
        errors: F,
        one: &[F],
        other: &[F],
        buffers: &mut JoinBuffers<F, N>,
    ) {
        let count = one.len() + other.len();
        if count > COMPARE_ALL_MAX {
            let distance = set.distance - errors.count_ones();
            if choose_tables(count, set.bits, distance).is_some() {
                let values = &[one, other].concat();
                let mut conditions = set.conditions.clone();
                let all = errors.count_ones();
                conditions.push(Condition { mask: errors, errors: all..all + 1 });
                conditions.push(Condition { mask: mask & !errors, errors: 0..1 });
                let uncounted_masks = set.uncounted_masks.clone();
                let set = JoinSet { values, bits: set.bits, distance, conditions, uncounted_masks };
                return self.join(&set, &mut Vec::new());
            }
        }
        for &a in one {
            visit_near(a, other, self.distance, |i| {
                if let Some(distance) = matching_distance(a ^ other[i], &set.conditions) {
                    let (a, b) = (self.pair_output.member(a), self.pair_output.member(other[i]));
                    buffers.pairs.push(self.pair_output.pair(a, b, distance));
                }
            });
        }
        self.flush_if_full(buffers);
    }

    /// Compares all pairs of `values`, and reports the pairs within the distance that meet the conditions. If the join
    /// has a visitor of dense groups, and very many pairs are within the distance, passes `values` to this visitor
    /// instead of the remaining pairs.
    fn compare(&self, values: &[F], conditions: &[Condition<F>], buffers: &mut JoinBuffers<F, N>) {
        let JoinBuffers { members, pairs, .. } = buffers;
        members.clear();
        let dense_pairs = self
            .dense_groups
            .map_or(usize::MAX, |dense_groups| values.len().saturating_mul(dense_groups.pairs_per_member));
        let mut near = 0;
        for (i, &a) in values.iter().enumerate() {
            let others = &values[i + 1..];
            visit_near(a, others, self.distance, |j| {
                let b = others[j];
                // Pairs that an earlier table has reported also count for dense groups.
                near += 1;
                let Some(distance) = matching_distance(a ^ b, conditions) else { return };
                if members.is_empty() {
                    members.resize(values.len(), None);
                }
                let mut member =
                    |at: usize| *members[at].get_or_insert_with(|| self.pair_output.member(values[at]));
                pairs.push(self.pair_output.pair(member(i), member(i + 1 + j), distance));
            });
            if let Some(dense_groups) = self.dense_groups.filter(|_| near > dense_pairs) {
                (dense_groups.visitor)(values);
                return;
            }
            if pairs.len() >= PAIR_BATCH {
                self.report(pairs);
                pairs.clear();
                if !self.should_continue() {
                    return;
                }
            }
            if values.len() > SERIAL_MAX && i.is_multiple_of(CANCEL_CHECK_INTERVAL) && !self.poll_visitor() {
                return;
            }
        }
    }

    fn flush_if_full(&self, buffers: &mut JoinBuffers<F, N>) {
        if buffers.pairs.len() >= PAIR_BATCH {
            self.flush(buffers);
        }
    }

    fn flush(&self, buffers: &mut JoinBuffers<F, N>) {
        if !buffers.pairs.is_empty() {
            self.report(&buffers.pairs);
            buffers.pairs.clear();
        }
    }

    /// Passes the buffered pairs to the visitor after the join of a bucket (a part of the set). If the set is large,
    /// calls the visitor even without pairs, so that it can cancel. `count` is the number of fingerprints in
    /// the whole set.
    fn report_bucket(&self, buffers: &mut JoinBuffers<F, N>, count: usize) {
        if count > SERIAL_MAX && buffers.pairs.is_empty() {
            self.poll_visitor();
        }
        self.flush(buffers);
    }

    fn report(&self, pairs: &[N::Pair]) {
        if (self.visitor)(pairs).is_break() {
            self.is_stopped.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the join should continue: `false` after the visitor has returned a break.
    pub(super) fn should_continue(&self) -> bool {
        !self.is_stopped.load(Ordering::Relaxed)
    }

    /// Calls the visitor without pairs, and returns whether to continue.
    fn poll_visitor(&self) -> bool {
        self.report(&[]);
        self.should_continue()
    }

    /// Like [`Join::poll_visitor`], but calls the visitor only before every 16th chunk of a set that is being
    /// partitioned, since one chunk takes only a tenth of a millisecond. `chunk` is the index of the chunk.
    fn poll_at_chunk(&self, chunk: usize) -> bool {
        if chunk.is_multiple_of(16) { self.poll_visitor() } else { self.should_continue() }
    }
}

/// Returns the distance of two fingerprints if the pair meets all conditions, else `None`. `errors` is the XOR of
/// the two fingerprints.
fn matching_distance<F: Fingerprint>(errors: F, conditions: &[Condition<F>]) -> Option<u32> {
    let fulfilled =
        |condition: &Condition<F>| condition.errors.contains(&(errors & condition.mask).count_ones());
    conditions.iter().all(fulfilled).then(|| errors.count_ones())
}

/// Calls `body` with each index below `parts`. Uses all cores if `count`, the number of fingerprints of the set to
/// join, is above [`SERIAL_MAX`].
fn for_each<F: Fingerprint, N: PairOutput<F>>(
    count: usize,
    parts: usize,
    body: impl Fn(&mut JoinBuffers<F, N>, usize) + Send + Sync,
) {
    if count <= SERIAL_MAX {
        let mut buffers = JoinBuffers::default();
        (0..parts).for_each(|part| body(&mut buffers, part));
    } else {
        (0..parts).into_par_iter().for_each_init(JoinBuffers::default, body);
    }
}

/// Returns all ways to flip 1 to `flips` bits of the prefix whose mask is `mask`. Each way is returned as two XOR
/// masks: one for the prefix as a number of `length` bits, and one for the whole fingerprint.
fn flip_patterns<F: Fingerprint>(mask: F, length: u32, flips: u32) -> Vec<(usize, F)> {
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

/// Sorts `values` by the prefix whose mask is `mask`. Returns the sorted list and, for each possible value of the
/// prefix, the index in this list at which the fingerprints with this prefix end. `space` is a buffer as long as
/// `values`.
///
/// The first step of the sort divides `values` into chunks and sorts each by the first bits of the prefix. It calls
/// `go_on` with the index of each chunk. If `go_on` returns `false`, because the join was stopped, the chunk is skipped.
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
