//! Division of a join into parts that are joined separately.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use super::by_index::ByIndex;
use super::engine::{Condition, Join, JoinSet};
use super::pair_output::{ByValue, PairOutput};
use super::{Components, DenseGroupVisitor, FingerprintPair, IndexPair, lock};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::plan::Plan;
use crate::progress::{ProgressCallback, ProgressCounter};
use crate::radix::{self, Digit};
use crate::threads;

/// Division of a self-join into parts. The parts are joined one after the other, or on several machines.
///
/// # Method
///
/// At distance k there are k + 1 *tables*. Each table has some bits of its own, and divides all fingerprints
/// into *parts* by the values of these bits. Two fingerprints within the distance differ in at most k bits.
/// So they agree in the own bits of at least one table, and are in the same part of this table. The first such
/// table reports the pair.
///
/// So a pair that a later table reports differs in at least one own bit of every earlier table. This leaves fewer
/// differences for the other bits. So the join of a later table is less work.
///
/// If k + 1 tables cannot have enough parts, each part is divided again in the same way. Then there are more
/// tables.
///
/// ```
/// use std::ops::ControlFlow;
/// use std::sync::Mutex;
///
/// use simstore::join::JoinParts;
///
/// let fingerprints = [0b0000_u64, 0b0111, 0b1111, u64::MAX];
/// let parts = JoinParts::<u64>::with_parts(3, 16)?;
/// let found = Mutex::new(Vec::new());
/// for table in 0..parts.table_count() {
///     for part in 0..parts.part_count() {
///         let members: Vec<u64> =
///             fingerprints.iter().copied().filter(|&fingerprint| parts.part(table, fingerprint) == part).collect();
///         parts.join(table, &members, |pairs| {
///             found.lock().unwrap().extend_from_slice(pairs);
///             ControlFlow::Continue(())
///         })?;
///     }
/// }
/// assert_eq!(found.into_inner().unwrap().len(), 2);
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Clone)]
pub struct JoinParts<F> {
    distance: u32,
    /// Number of bits whose values select the part of a fingerprint in a table, the same for all tables.
    bits: u32,
    tables: Vec<JoinTable<F>>,
}

/// One table of a join in parts: the bits that select the part of a fingerprint, and the conditions that a pair
/// must meet to be reported by this table. In the fields, an *error* of a pair is a bit in which its two
/// fingerprints differ.
#[derive(Clone, Debug)]
pub(super) struct JoinTable<F> {
    /// Mask of the table's own bits. The table reports only pairs of fingerprints that are equal in these bits.
    shared: F,
    /// The bits whose values select the part of a fingerprint. All of them are in the mask `shared`.
    part: Digit<F>,
    /// For each earlier table, the mask of its own bits. A pair that this table reports differs in at least one bit
    /// of each mask, since otherwise the earlier table reports the pair.
    earlier_masks: Vec<F>,
    /// Those of `earlier_masks` (the bits of earlier tables) that have no bit in the mask `rest`. If two
    /// fingerprints differ in bits of an uncounted mask, these bits do not count towards `max_errors`.
    uncounted_masks: Vec<F>,
    /// Mask of all bits outside `shared` and `uncounted_masks`.
    rest: F,
    /// Maximum number of bits of `rest` in which a pair may differ. It is the distance minus the number of
    /// `uncounted_masks`, because a pair differs in at least one bit of each of these masks.
    max_errors: u32,
}

/// Memory for a join, as a multiple of the total size of its fingerprints. A join holds the fingerprints
/// themselves, a partitioned copy, and (if some differences in the prefix are allowed) a copy sorted by prefix. The
/// fourth copy is a reserve for parts that are larger than average.
const MEMORY_COPIES: u64 = 4;

/// Returns the memory for a join of `count` fingerprints, in bytes.
fn memory_bytes<F: Fingerprint>(count: u64) -> u64 {
    count.saturating_mul(MEMORY_COPIES * F::BYTES as u64)
}

impl<F> fmt::Debug for JoinParts<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tables, parts) = (self.tables.len(), 1 << self.bits);
        write!(f, "JoinParts {{ distance: {}, tables: {tables}, parts: {parts} }}", self.distance)
    }
}

impl<F: Fingerprint> JoinParts<F> {
    /// Maximum number of parts of a table.
    pub const MAX_PARTS: usize = 1 << 12;

    /// Divides a join into as few parts as possible, so that joining one part takes at most `memory` bytes. Fewer
    /// parts mean less work.
    ///
    /// `count` is the total number of fingerprints. The parts are assumed to have about equal sizes.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the distance is above [`Fingerprint::MAX_DISTANCE`]; [`Error::Refused`] if
    /// more than [`JoinParts::MAX_PARTS`] parts would be necessary.
    pub fn choose(count: u64, distance: u32, memory: u64) -> Result<Self> {
        let parts = Self::min_parts(count, memory);
        if parts > Self::MAX_PARTS as u64 {
            return Err(Error::Refused(format!(
                "{count} fingerprints cannot be joined within {memory} bytes of memory: give {} or more",
                memory_bytes::<F>(count).div_ceil(Self::MAX_PARTS as u64)
            )));
        }
        Self::with_parts(distance, parts as usize)
    }

    /// Returns the smallest number of parts into which to divide `count` fingerprints, so that joining one part takes
    /// at most `memory` bytes. The parts are assumed to have equal sizes.
    pub(super) fn min_parts(count: u64, memory: u64) -> u64 {
        memory_bytes::<F>(count).div_ceil(memory.max(1)).max(1)
    }

    /// Divides a join into tables with `parts` parts each, rounded up to a power of two.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the distance is above [`Fingerprint::MAX_DISTANCE`], or the number of parts
    /// is 0 or above [`JoinParts::MAX_PARTS`].
    pub fn with_parts(distance: u32, parts: usize) -> Result<Self> {
        // Fails if the distance is too large.
        Plan::<F>::named("scan", distance)?;
        if !(1..=Self::MAX_PARTS).contains(&parts) {
            let most = Self::MAX_PARTS;
            return Err(Error::BadArgument(format!("{parts} parts: expected from 1 to {most}")));
        }
        let bits = parts.next_power_of_two().ilog2();
        let all = JoinTable {
            shared: F::ZERO,
            part: Digit::new(F::ZERO),
            earlier_masks: Vec::new(),
            uncounted_masks: Vec::new(),
            rest: F::MAX,
            max_errors: distance,
        };
        let mut tables = Vec::new();
        all.divide(bits, &mut tables);
        Ok(JoinParts { distance, bits, tables })
    }

    /// Maximum distance of the pairs that the join reports, in bits.
    pub fn distance(&self) -> u32 {
        self.distance
    }

    /// Number of tables. A fingerprint belongs to one part of each table.
    pub fn table_count(&self) -> usize {
        self.tables.len()
    }

    /// Number of parts of each table, a power of two.
    pub fn part_count(&self) -> usize {
        1 << self.bits
    }

    /// Returns the index, from 0, of the part to which a fingerprint belongs in a table.
    ///
    /// # Panics
    /// If `table` is not below [`JoinParts::table_count`].
    #[inline]
    pub fn part(&self, table: usize, fingerprint: F) -> usize {
        self.tables[table].part.extract(fingerprint)
    }

    /// Iterates over the indexes of all tables, each with the index of the fingerprint's part in that table.
    pub fn parts_of(&self, fingerprint: F) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.tables.iter().map(move |table| table.part.extract(fingerprint)).enumerate()
    }

    /// Divides fingerprints between the parts of a table. Visits the non-empty parts in ascending order, each with
    /// the index of the part and its fingerprints. Inside a part, the fingerprints keep the order of the input.
    ///
    /// ```
    /// let parts = simstore::join::JoinParts::<u64>::with_parts(0, 4)?;
    /// let mut visited = Vec::new();
    /// parts.scatter(0, &[1 << 62, 7, u64::MAX, 5], |part, members| {
    ///     visited.push((part, members.to_vec()));
    ///     Ok(())
    /// })?;
    /// assert_eq!(visited, [(0, vec![7, 5]), (1, vec![1 << 62]), (3, vec![u64::MAX])]);
    /// # Ok::<(), simstore::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the table does not exist, or for 2^32 fingerprints or more; any error of the
    /// visitor.
    pub fn scatter(
        &self,
        table: usize,
        fingerprints: &[F],
        mut visitor: impl FnMut(usize, &[F]) -> Result<()>,
    ) -> Result<()> {
        let part = &self.checked_table(table, fingerprints)?.part;
        let mut scattered = vec![F::ZERO; fingerprints.len()];
        let mut ends = vec![0; part.buckets()];
        part.scatter(fingerprints, &mut scattered, &mut ends);
        let ranges = radix::ranges(&ends).enumerate().filter(|(_, range)| !range.is_empty());
        ranges.into_iter().try_for_each(|(part, range)| visitor(part, &scattered[range]))
    }

    /// Joins the fingerprints of one part of a table, or of several parts. Visits the pairs that the table reports,
    /// each once, in batches and in no particular order.
    ///
    /// `fingerprints` are all fingerprints of these parts. They must be distinct, and may be in any order.
    ///
    /// Several threads of the current rayon pool call the visitor at the same time, at least every tenth of a
    /// second, with an empty batch if there are no new pairs. The visitor returns whether to continue.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the table does not exist, or for 2^32 - 1 fingerprints or more;
    /// [`Error::Cancelled`] if the visitor returns a break. After that, other threads may still call the
    /// visitor a few times.
    pub fn join(
        &self,
        table: usize,
        fingerprints: &[F],
        visitor: impl Fn(&[FingerprintPair<F>]) -> ControlFlow<()> + Sync,
    ) -> Result<()> {
        let table = self.checked_table(table, fingerprints)?;
        threads::ensure_pool()?;
        table.join(fingerprints, self.distance, &mut Vec::new(), &visitor)
    }

    /// Like [`JoinParts::join`], but reports dense groups instead of all pairs inside them, see
    /// [`visit_pairs_except_dense`](super::visit_pairs_except_dense).
    ///
    /// # Errors
    /// The errors of [`JoinParts::join`].
    pub fn join_except_dense(
        &self,
        table: usize,
        fingerprints: &[F],
        dense_groups: DenseGroupVisitor<'_, F>,
        visitor: impl Fn(&[FingerprintPair<F>]) -> ControlFlow<()> + Sync,
    ) -> Result<()> {
        let table = self.checked_table(table, fingerprints)?;
        threads::ensure_pool()?;
        table.join_with_output(
            ByValue,
            fingerprints,
            self.distance,
            &mut Vec::new(),
            &visitor,
            Some(dense_groups),
        )
    }

    /// Joins a part of a table, and returns the clusters that the reported pairs form, as edges.
    ///
    /// An edge (a, b) connects the smallest fingerprint `a` of a cluster with another fingerprint `b` of the
    /// same cluster. Edges are ascending. `fingerprints` are the fingerprints of the part, strictly ascending. The
    /// memory does not depend on the number of pairs. The callback receives the number of pairs found so far.
    ///
    /// ```
    /// let parts = simstore::join::JoinParts::<u64>::with_parts(1, 1)?;
    /// assert_eq!(parts.forest(0, &[0, 1, 3, 0b11 << 60], None)?, [(0, 1), (0, 3)]);
    /// # Ok::<(), simstore::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`JoinParts::join`]; [`Error::OutOfOrder`] if the fingerprints are not strictly
    /// ascending.
    pub fn forest(
        &self,
        table: usize,
        fingerprints: &[F],
        progress: Option<&ProgressCallback>,
    ) -> Result<Vec<(F, F)>> {
        let table = self.checked_table(table, fingerprints)?;
        super::check_order(fingerprints)?;
        threads::ensure_pool()?;
        let counter = ProgressCounter::new(progress, 0);
        let components = Mutex::new(Components::new(fingerprints.len()));
        let connect = |pairs: &[IndexPair]| {
            let mut components = lock(&components);
            pairs.iter().for_each(|pair| components.connect(pair.a, pair.b));
            drop(components);
            match counter.add(pairs.len() as u64) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        };
        table.join_with_output(
            ByIndex::new(fingerprints),
            fingerprints,
            self.distance,
            &mut Vec::new(),
            &connect,
            None,
        )?;
        let mut components = components.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut edges: Vec<(F, F)> = Vec::new();
        for (at, &fingerprint) in fingerprints.iter().enumerate() {
            let first = components.first(at);
            if first != at {
                edges.push((fingerprints[first], fingerprint));
            }
        }
        edges.sort_unstable();
        Ok(edges)
    }

    /// Returns the table with the index `table`. Fails if the table does not exist, or if `fingerprints` are
    /// too many for a join.
    fn checked_table(&self, table: usize, fingerprints: &[F]) -> Result<&JoinTable<F>> {
        let Some(table) = self.tables.get(table) else {
            let tables = self.tables.len();
            return Err(Error::BadArgument(format!("there is no table {table}: there are {tables}")));
        };
        if fingerprints.len() >= u32::MAX as usize {
            let message = "a part has at most 4,294,967,294 fingerprints: take more parts".to_owned();
            return Err(Error::BadArgument(message));
        }
        Ok(table)
    }

    pub(super) fn table(&self, table: usize) -> &JoinTable<F> {
        &self.tables[table]
    }
}

impl<F: Fingerprint> JoinTable<F> {
    /// Divides the pairs of this table between new tables, which are appended to `tables`. Each new table has
    /// `bits` more own bits (bits of `shared`) than this table, taken from `rest`.
    ///
    /// Let `r` be the number of bits of `rest`, `m` be `max_errors`, and `b` be `bits`. The caller must ensure that
    /// `r - b >= m`. The division has several steps. The first step gives each new table at most `(r - b) / m` bits.
    /// With this limit, each new table meets the same condition for the bits that it still needs. The next steps divide
    /// the new tables in the same way, until they have all `b` bits.
    fn divide(&self, bits: u32, tables: &mut Vec<JoinTable<F>>) {
        if bits == 0 {
            return tables.push(self.clone());
        }
        let most = (self.rest.count_ones() - bits).checked_div(self.max_errors);
        let each = most.map_or(bits, |most| most.min(bits));
        let groups = self.max_errors + 1;
        for table in self.split(|number| group(self.rest, number, groups, each)) {
            table.divide(bits - each, tables);
        }
    }

    /// Returns `max_errors + 1` tables that together report the pairs of this table, each pair once. Table i reports
    /// only pairs of fingerprints that are also equal in the bits of the mask `own(i)`. All these bits must be in
    /// `rest`, and the masks must be disjoint.
    fn split(&self, own: impl Fn(u32) -> F) -> Vec<JoinTable<F>> {
        let mut later = self.clone();
        let table = |number| {
            let own = own(number);
            later.rest = later.rest & !own;
            let shared = self.shared | own;
            let table = JoinTable { shared, part: Digit::new(shared), ..later.clone() };
            later.earlier_masks.push(own);
            later.uncounted_masks.push(own);
            later.max_errors = later.max_errors.saturating_sub(1);
            table
        };
        (0..=self.max_errors).map(table).collect()
    }

    /// Returns new tables to use instead of this table for one of its parts. Together, they report the same pairs of
    /// the part as this table. Each new table has up to `bits` more bits of its own than this table.
    ///
    /// `evenness` returns how evenly a bit divides the part's fingerprints: 0 if the bit is the same in all of
    /// them, and the maximum if it is 0 in half of them. The new tables get the bits with the greatest
    /// evenness. Returns `None` if the fingerprints differ in too few bits.
    pub(super) fn divide_by(&self, evenness: impl Fn(u32) -> usize, bits: u32) -> Option<Vec<JoinTable<F>>> {
        let bits_by_evenness = |rest: F| {
            let mut bits: Vec<u32> =
                (0..F::BITS).filter(|&bit| rest & F::bit_mask(bit) != F::ZERO && evenness(bit) > 0).collect();
            bits.sort_by_key(|&bit| std::cmp::Reverse(evenness(bit)));
            bits
        };
        let mut all = self.clone();
        let mut order = bits_by_evenness(all.rest);
        if order.len() <= all.max_errors as usize {
            // Moves the uncounted masks into `rest`. Each adds one error.
            all.max_errors += all.uncounted_masks.len() as u32;
            all.rest = all.uncounted_masks.drain(..).fold(all.rest, |rest, mask| rest | mask);
            order = bits_by_evenness(all.rest);
        }
        let groups = all.max_errors as usize + 1;
        let each = (order.len() / groups).min(bits as usize);
        if each == 0 {
            return None;
        }
        let own = |number: u32| {
            let bits = order.iter().skip(number as usize).step_by(groups).take(each);
            bits.fold(F::ZERO, |own, &bit| own | F::bit_mask(bit))
        };
        let mut tables = all.split(own);
        for (number, table) in (0..).zip(&mut tables) {
            table.part = Digit::new(own(number));
        }
        Some(tables)
    }

    pub(super) fn parts(&self) -> usize {
        self.part.buckets()
    }

    #[inline]
    pub(super) fn part(&self, fingerprint: F) -> usize {
        self.part.extract(fingerprint)
    }

    /// Joins `fingerprints`, the distinct fingerprints of one part of this table, and visits the pairs that the table
    /// reports. `space` is a reusable buffer.
    pub(super) fn join(
        &self,
        fingerprints: &[F],
        distance: u32,
        space: &mut Vec<F>,
        visitor: &(impl Fn(&[FingerprintPair<F>]) -> ControlFlow<()> + Sync),
    ) -> Result<()> {
        self.join_with_output(ByValue, fingerprints, distance, space, visitor, None)
    }

    fn join_with_output<N: PairOutput<F>>(
        &self,
        pair_output: N,
        fingerprints: &[F],
        distance: u32,
        space: &mut Vec<F>,
        visitor: &(impl Fn(&[N::Pair]) -> ControlFlow<()> + Sync),
        dense_groups: Option<DenseGroupVisitor<'_, F>>,
    ) -> Result<()> {
        let is_stopped = AtomicBool::new(false);
        let join = Join { pair_output, distance, visitor, dense_groups, is_stopped };
        join.join(&self.set(fingerprints), space);
        if join.should_continue() { Ok(()) } else { Err(Error::Cancelled) }
    }

    /// Returns the set to join for a part: the fingerprints of the part, with the conditions of this table.
    fn set<'a>(&self, fingerprints: &'a [F]) -> JoinSet<'a, F> {
        let earlier_masks = self.earlier_masks.iter().map(|&mask| Condition { mask, errors: 1..F::BITS + 1 });
        let shared = Condition { mask: self.shared, errors: 0..1 };
        JoinSet {
            values: fingerprints,
            bits: self.rest,
            distance: self.max_errors,
            conditions: earlier_masks.chain([shared]).collect(),
            uncounted_masks: self.uncounted_masks.clone(),
        }
    }
}

/// Divides the set bits of a mask into `groups` consecutive groups with nearly equal numbers of bits. Returns the
/// mask of the first `each` bits of the group with the index `number`.
fn group<F: Fingerprint>(mask: F, number: u32, groups: u32, each: u32) -> F {
    let start = mask.count_ones() * number / groups;
    let (mut left, mut group) = (mask, F::ZERO);
    for at in 0..start + each {
        let bit = F::bit_mask(left.leading_zeros());
        left = left & !bit;
        if at >= start {
            group = group | bit;
        }
    }
    group
}
