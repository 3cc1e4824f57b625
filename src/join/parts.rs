//! A join as pieces of work of their own.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use super::engine::{Condition, Join, Set};
use super::naming::{Naming, Themselves};
use super::ranks::Ranks;
use super::{Components, Crowds, NearPair, Pair, lock};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::plan::Plan;
use crate::progress::{ProgressCallback, Steps};
use crate::radix::{self, Digit};
use crate::threads;

/// A join of one set in parts: on disk, one after the other, or on several machines.
///
/// # Method
///
/// At distance k there are k + 1 *tables*, each with some bits of its own. Of each table a fingerprint belongs to the *part*
/// that these bits tell. Two fingerprints within the distance differ in at most k bits, so they agree in the bits of some table,
/// and are in one part of it; they count in the first such table. They differ in the bits of every earlier table. Each
/// of these takes an error, so that fewer are left for the rest: the later the table, the less work is its join.
///
/// For more parts than such tables have room for, each part is divided again in the same way, and there are more tables.
///
/// ```
/// use std::ops::ControlFlow;
/// use std::sync::Mutex;
///
/// use simstore::join::Parts;
///
/// let fingerprints = [0b0000_u64, 0b0111, 0b1111, u64::MAX];
/// let parts = Parts::<u64>::with_parts(3, 16)?;
/// let found = Mutex::new(Vec::new());
/// for table in 0..parts.tables() {
///     for part in 0..parts.parts() {
///         let here: Vec<u64> =
///             fingerprints.iter().copied().filter(|&fingerprint| parts.part(table, fingerprint) == part).collect();
///         parts.join(table, &here, |pairs| {
///             found.lock().unwrap().extend_from_slice(pairs);
///             ControlFlow::Continue(())
///         })?;
///     }
/// }
/// assert_eq!(found.into_inner().unwrap().len(), 2);
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Clone)]
pub struct Parts<F> {
    distance: u32,
    /// Bits that tell the part, in each table.
    bits: u32,
    tables: Vec<Table<F>>,
}

/// The pairs that a table finds.
#[derive(Clone, Debug)]
pub(super) struct Table<F> {
    /// Bits that agree.
    shared: F,
    /// Those of them that tell the part.
    part: Digit<F>,
    /// The bits of earlier tables: in each there is an error at least.
    differing: Vec<F>,
    /// Those of them whose errors `left` does not count.
    reserve: Vec<F>,
    /// All bits but those that agree and the reserve, and the most errors among them.
    rest: F,
    left: u32,
}

/// Memory for the join of a fingerprint, in fingerprints: itself, a copy by one digit, and a copy in order of the prefix if few
/// tables with flips are better than many without. The fourth is room for parts that are larger than others.
const MEMORY: u64 = 4;

/// In bytes, for the join of so many.
fn memory_for<F: Fingerprint>(count: u64) -> u64 {
    count.saturating_mul(MEMORY * F::BYTES as u64)
}

impl<F> fmt::Debug for Parts<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tables, parts) = (self.tables.len(), 1 << self.bits);
        write!(f, "Parts {{ distance: {}, tables: {tables}, parts: {parts} }}", self.distance)
    }
}

impl<F: Fingerprint> Parts<F> {
    /// The most parts that a table can have.
    pub const MAX_PARTS: usize = 1 << 12;

    /// As few parts as may be for the join of one of them to take at most so much memory, in bytes, when `count` fingerprints are
    /// about evenly spread. Few parts are less work.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the distance is above [`Fingerprint::MAX_DISTANCE`], [`Error::Refused`] if the memory is too
    /// little for [`Parts::MAX_PARTS`].
    pub fn choose(count: u64, distance: u32, memory: u64) -> Result<Self> {
        let parts = Self::least_parts(count, memory);
        if parts > Self::MAX_PARTS as u64 {
            return Err(Error::Refused(format!(
                "{count} fingerprints cannot be joined within {memory} bytes of memory: give {} or more",
                memory_for::<F>(count).div_ceil(Self::MAX_PARTS as u64)
            )));
        }
        Self::with_parts(distance, parts as usize)
    }

    /// The least number of parts for one of them to fit in so much memory.
    pub(super) fn least_parts(count: u64, memory: u64) -> u64 {
        memory_for::<F>(count).div_ceil(memory.max(1)).max(1)
    }

    /// So many parts of each table, or the next power of two.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the distance is above [`Fingerprint::MAX_DISTANCE`], or for no parts, or more than
    /// [`Parts::MAX_PARTS`].
    pub fn with_parts(distance: u32, parts: usize) -> Result<Self> {
        // Refuses a distance without plans.
        Plan::<F>::named("scan", distance)?;
        if !(1..=Self::MAX_PARTS).contains(&parts) {
            let most = Self::MAX_PARTS;
            return Err(Error::BadArgument(format!("{parts} parts: expected from 1 to {most}")));
        }
        let bits = parts.next_power_of_two().ilog2();
        let all = Table {
            shared: F::ZERO,
            part: Digit::new(F::ZERO),
            differing: Vec::new(),
            reserve: Vec::new(),
            rest: F::MAX,
            left: distance,
        };
        let mut tables = Vec::new();
        all.divide(bits, &mut tables);
        Ok(Parts { distance, bits, tables })
    }

    /// The greatest distance of near fingerprints, in bits.
    pub fn distance(&self) -> u32 {
        self.distance
    }

    /// How many tables there are: to so many parts a fingerprint belongs, one of each.
    pub fn tables(&self) -> usize {
        self.tables.len()
    }

    /// How many parts each table has: a power of two.
    pub fn parts(&self) -> usize {
        1 << self.bits
    }

    /// The part of a table that a fingerprint belongs to, from 0.
    ///
    /// # Panics
    /// If there is no such table.
    #[inline]
    pub fn part(&self, table: usize, fingerprint: F) -> usize {
        self.tables[table].part.of(fingerprint)
    }

    /// The part of a fingerprint in each table, after the number of the table.
    pub fn of(&self, fingerprint: F) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.tables.iter().map(move |table| table.part.of(fingerprint)).enumerate()
    }

    /// Divides fingerprints between the parts of a table, and visits the parts that are not empty, ascending. The fingerprints of a
    /// part keep their order.
    ///
    /// ```
    /// let parts = simstore::join::Parts::<u64>::with_parts(0, 4)?;
    /// let mut sent = Vec::new();
    /// parts.scatter(0, &[1 << 62, 7, u64::MAX, 5], |part, some| {
    ///     sent.push((part, some.to_vec()));
    ///     Ok(())
    /// })?;
    /// assert_eq!(sent, [(0, vec![7, 5]), (1, vec![1 << 62]), (3, vec![u64::MAX])]);
    /// # Ok::<(), simstore::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BadArgument`] for an unknown table, or 2^32 fingerprints or more; any error of the visitor.
    pub fn scatter(
        &self,
        table: usize,
        fingerprints: &[F],
        mut visitor: impl FnMut(usize, &[F]) -> Result<()>,
    ) -> Result<()> {
        let part = &self.checked(table, fingerprints)?.part;
        let mut scattered = vec![F::ZERO; fingerprints.len()];
        let mut ends = vec![0; part.buckets()];
        part.scatter(fingerprints, &mut scattered, &mut ends);
        let ranges = radix::ranges(&ends).enumerate().filter(|(_, range)| !range.is_empty());
        ranges.into_iter().try_for_each(|(part, range)| visitor(part, &scattered[range]))
    }

    /// Visits the pairs of a part that count in its table, each once, some at a time and in no order. `fingerprints` are
    /// all of one part, or of several parts of the table, each once, in any order.
    ///
    /// The visitor is called from several threads of the current rayon pool at a time, at least every tenth of a second, also
    /// with no pairs at all, and says whether to go on.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for an unknown table, or 2^32 - 1 fingerprints or more; [`Error::Cancelled`] if the
    /// visitor said not to go on. It may be called a few times more then, by other threads.
    pub fn join(
        &self,
        table: usize,
        fingerprints: &[F],
        visitor: impl Fn(&[NearPair<F>]) -> ControlFlow<()> + Sync,
    ) -> Result<()> {
        let table = self.checked(table, fingerprints)?;
        threads::ensure_pool()?;
        table.join(fingerprints, self.distance, &mut Vec::new(), &visitor)
    }

    /// The same, but for the pairs of [`Crowds`], as [`visit_pairs_but_crowds`](super::visit_pairs_but_crowds) has it.
    ///
    /// # Errors
    /// As [`Parts::join`].
    pub fn join_but_crowds(
        &self,
        table: usize,
        fingerprints: &[F],
        crowds: Crowds<'_, F>,
        visitor: impl Fn(&[NearPair<F>]) -> ControlFlow<()> + Sync,
    ) -> Result<()> {
        let table = self.checked(table, fingerprints)?;
        threads::ensure_pool()?;
        table.join_named(Themselves, fingerprints, self.distance, &mut Vec::new(), &visitor, Some(crowds))
    }

    /// The clusters of the pairs of a part that count in its table: each fingerprint that is connected to a smaller one, with the
    /// smallest of its cluster before it, ascending by cluster, then by fingerprint. It takes no memory for pairs, however many
    /// there are. The fingerprints ascend, each there once. The callback is told how many pairs have been found.
    ///
    /// ```
    /// let parts = simstore::join::Parts::<u64>::with_parts(1, 1)?;
    /// assert_eq!(parts.forest(0, &[0, 1, 3, 0b11 << 60], None)?, [(0, 1), (0, 3)]);
    /// # Ok::<(), simstore::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Parts::join`]; [`Error::OutOfOrder`] if the fingerprints are not ascending.
    pub fn forest(
        &self,
        table: usize,
        fingerprints: &[F],
        progress: Option<&ProgressCallback>,
    ) -> Result<Vec<(F, F)>> {
        let table = self.checked(table, fingerprints)?;
        super::check_order(fingerprints)?;
        threads::ensure_pool()?;
        let steps = Steps::new(progress, 0);
        let components = Mutex::new(Components::new(fingerprints.len()));
        let connect = |pairs: &[Pair]| {
            let mut components = lock(&components);
            pairs.iter().for_each(|pair| components.connect(pair.a, pair.b));
            drop(components);
            match steps.add(pairs.len() as u64) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        };
        table.join_named(
            Ranks::new(fingerprints),
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

    /// The table of a number, for so many fingerprints.
    fn checked(&self, table: usize, fingerprints: &[F]) -> Result<&Table<F>> {
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

    pub(super) fn table(&self, table: usize) -> &Table<F> {
        &self.tables[table]
    }
}

impl<F: Fingerprint> Table<F> {
    /// Divides the pairs of this table between tables with so many more bits of their own.
    ///
    /// With `r` bits in the rest, `l` errors left and `b` bits to be shared, `r - b >= l`. If each of the tables takes at most
    /// `(r - b) / l` bits, the same holds for the rest of each.
    fn divide(&self, bits: u32, tables: &mut Vec<Table<F>>) {
        if bits == 0 {
            return tables.push(self.clone());
        }
        let most = (self.rest.count_ones() - bits).checked_div(self.left);
        let each = most.map_or(bits, |most| most.min(bits));
        let groups = self.left + 1;
        for table in self.split(|number| group(self.rest, number, groups, each)) {
            table.divide(bits - each, tables);
        }
    }

    /// Divides the pairs of this table between tables that have bits of the rest of their own, each others.
    fn split(&self, own: impl Fn(u32) -> F) -> Vec<Table<F>> {
        let mut later = self.clone();
        let table = |number| {
            let own = own(number);
            later.rest = later.rest & !own;
            let shared = self.shared | own;
            let table = Table { shared, part: Digit::new(shared), ..later.clone() };
            later.differing.push(own);
            later.reserve.push(own);
            later.left = later.left.saturating_sub(1);
            table
        };
        (0..=self.left).map(table).collect()
    }

    /// Divides the pairs of a part between tables with some bits of their own, by the evenness of the bits in its fingerprints: a
    /// bit that is 0 in about half of them comes first. Each table gets at most `bits` bits. Returns `None` if the fingerprints
    /// differ in too few bits.
    pub(super) fn divide_by(&self, evenness: impl Fn(u32) -> usize, bits: u32) -> Option<Vec<Table<F>>> {
        let uneven = |rest: F| {
            let mut bits: Vec<u32> =
                (0..F::BITS).filter(|&bit| rest & F::bit_mask(bit) != F::ZERO && evenness(bit) > 0).collect();
            bits.sort_by_key(|&bit| std::cmp::Reverse(evenness(bit)));
            bits
        };
        let mut all = self.clone();
        let mut order = uneven(all.rest);
        if order.len() <= all.left as usize {
            // Errors are counted in more bits then, and so are more of them.
            all.left += all.reserve.len() as u32;
            all.rest = all.reserve.drain(..).fold(all.rest, |rest, mask| rest | mask);
            order = uneven(all.rest);
        }
        let groups = all.left as usize + 1;
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
        self.part.of(fingerprint)
    }

    /// Joins distinct fingerprints of a part.
    pub(super) fn join(
        &self,
        fingerprints: &[F],
        distance: u32,
        space: &mut Vec<F>,
        visitor: &(impl Fn(&[NearPair<F>]) -> ControlFlow<()> + Sync),
    ) -> Result<()> {
        self.join_named(Themselves, fingerprints, distance, space, visitor, None)
    }

    fn join_named<N: Naming<F>>(
        &self,
        naming: N,
        fingerprints: &[F],
        distance: u32,
        space: &mut Vec<F>,
        visitor: &(impl Fn(&[N::Pair]) -> ControlFlow<()> + Sync),
        crowds: Option<Crowds<'_, F>>,
    ) -> Result<()> {
        let stopped = AtomicBool::new(false);
        let join = Join { naming, distance, visitor, crowds, stopped };
        join.join(&self.set(fingerprints), space);
        if join.goes_on() { Ok(()) } else { Err(Error::Cancelled) }
    }

    /// Fingerprints of a part, with the conditions of their pairs.
    fn set<'a>(&self, fingerprints: &'a [F]) -> Set<'a, F> {
        let differing = self.differing.iter().map(|&mask| Condition { mask, errors: 1..F::BITS + 1 });
        let shared = Condition { mask: self.shared, errors: 0..1 };
        Set {
            values: fingerprints,
            bits: self.rest,
            distance: self.left,
            conditions: differing.chain([shared]).collect(),
            reserve: self.reserve.clone(),
        }
    }
}

/// The first `each` bits of one of some groups into which the bits of a mask are cut, one after the other.
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
