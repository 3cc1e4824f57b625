//! Index of sets of crowds by their rarest features, and the search for those that are similar to a set.
//!
//! A list holds the sets of one size that have a feature among their first ones. A search reads several lists together, a block of sets at
//! a time, oldest first. So it can end at the first similar set. If it continues for more similar sets only, it drops the lists
//! that cannot have any: in a crowd whose members are all equally similar, these are the long lists.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;

use rayon::prelude::*;
use simstore::Result;
use simstore::processor::{Work, dispatch};
use simstore_text::{SKETCHES, shared_members};

use crate::pipeline::dense_groups::{Asked, Crowds, LONG};
use crate::rows::{Near, Nearness, of_similarity, similarity};

/// Bytes of memory for a set of the index and its sketches, and for an entry of a list.
const BYTES_OF_A_MEMBER: u64 = 8 * (LONG + SKETCHES) as u64 + 32;
const BYTES_OF_AN_ENTRY: u64 = 32;
/// Sets that are looked at first, in words of 64 bits, one bit a set; each time twice as many, up to a most.
const FIRST_WORDS: usize = 4;
const MOST_WORDS: usize = 1 << 10;

/// An entry of a list: the place of the set in the index, and the place of the feature in the set.
pub(crate) type Entry = (u32, u32);

/// Least nearness of further sets, for a search that goes on as before.
pub(crate) const UNCHANGED: Nearness = 0;
/// Least nearness of further sets, for a search that ends.
pub(crate) const STOP: Nearness = Nearness::MAX;

/// Visitor of similar sets, which may leave out some.
pub(crate) trait Visitor {
    /// Whether to visit a set, by its place in the index.
    #[inline]
    fn wants(&self, _at: u32) -> bool {
        true
    }

    /// Number of entries at the start of a list whose sets are not wanted.
    #[inline]
    fn unwanted(&self, _list: u64, _entries: &[Entry]) -> usize {
        0
    }

    /// Takes a similar set, by its place in the index. Returns the least nearness of further sets, [`UNCHANGED`] or [`STOP`].
    fn visit(&mut self, at: u32, nearness: Nearness) -> Nearness;
}

impl<V: FnMut(u32, Nearness) -> Nearness> Visitor for V {
    fn visit(&mut self, at: u32, nearness: Nearness) -> Nearness {
        self(at, nearness)
    }
}

/// The least similarity, a little less where rounding could have made it too great.
fn least_similarity(least: Nearness, of_rule: f64) -> f64 {
    (similarity(least) - 1e-6).max(of_rule)
}

/// The least number of features that sets of two sizes share if they are at least this near; `None` if they cannot be.
fn shared_if_near(least: Nearness, a: u32, b: u32, of_rule: f64) -> Option<u32> {
    let are_near = |&both: &u32| of_similarity(f64::from(both) / f64::from(a + b - both)) >= least;
    (shared(a, b, least_similarity(least, of_rule))..=a.min(b)).find(are_near)
}

/// The least number of features that sets of two sizes share if they have this similarity.
fn shared(a: u32, b: u32, least: f64) -> u32 {
    shared_members(a as usize, b as usize, least).max(1) as u32
}

/// Some sets of an index, whose bits are set: those that are compared with one set by their features.
struct Likely<'a> {
    crowds: &'a Crowds<'a>,
    one: (&'a [u64; SKETCHES], &'a [u64; LONG]),
    others: (&'a [[u64; SKETCHES]], &'a [[u64; LONG]]),
    bits: u64,
}

impl Work for Likely<'_> {
    type Output = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        let Likely { crowds, one, others, mut bits } = self;
        let mut likely = 0;
        while bits != 0 {
            let at = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            likely |= u64::from(crowds.may_be_similar(one, (&others.0[at], &others.1[at]))) << at;
        }
        likely
    }
}

/// Sets that are looked for.
pub(crate) struct Index<'a> {
    crowds: &'a Crowds<'a>,
    /// Oldest first.
    sets: Vec<u32>,
    words: Vec<[u64; SKETCHES]>,
    long: Vec<[u64; LONG]>,
    features: Vec<Box<[u64]>>,
    /// Different numbers of features.
    sizes: BTreeSet<u32>,
    /// Lists by a hash of the feature and the size of the sets.
    lists: HashMap<u64, Vec<Entry>>,
    bytes: u64,
}

/// Memory of a search: a bit for each set that is looked at next.
#[derive(Default)]
pub(crate) struct Space {
    seen: Vec<u64>,
}

/// A list on its way through a search.
struct Walked<'i> {
    list: u64,
    entries: &'i [Entry],
    /// Entries of sets that were looked at.
    done: usize,
    /// Place of the feature in the set that is asked for, and number of features of the sets of the list.
    place: u32,
    size: u32,
    /// The greatest place of the feature in a set that is near enough.
    most: u32,
}

impl Walked<'_> {
    /// Sets another least nearness; returns whether the list may have sets that are so near.
    fn limit(&mut self, least: Nearness, size: u32, of_rule: f64) -> bool {
        let Some(shared) = shared_if_near(least, size, self.size, of_rule) else { return false };
        self.most = self.size - shared;
        self.place <= size - shared
    }
}

fn list_of(feature: u64, size: u32) -> u64 {
    feature ^ u64::from(size).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl<'a> Index<'a> {
    /// Empty index.
    pub(crate) fn new(crowds: &'a Crowds<'a>) -> Self {
        Index {
            crowds,
            sets: Vec::new(),
            words: Vec::new(),
            long: Vec::new(),
            features: Vec::new(),
            sizes: BTreeSet::new(),
            lists: HashMap::new(),
            bytes: 0,
        }
    }

    /// Adds a set; calls `visitor` with each list that it was added to.
    pub(crate) fn add(&mut self, asked: &Asked, mut visitor: impl FnMut(u64, &[Entry])) {
        let (at, size) = (self.sets.len() as u32, asked.size());
        self.sets.push(asked.set);
        self.words.push(asked.words);
        self.long.push(asked.long);
        self.features.push(asked.features.as_slice().into());
        self.sizes.insert(size);
        // The smallest set that can be similar has to share the most of its features, and this one the fewest.
        let least = self.crowds.rule.least;
        let smallest = (f64::from(size) * least - 1e-6).ceil().max(1.0) as u32;
        let first = size - shared(size, smallest, least).min(size) + 1;
        for (place, &feature) in (0..first).zip(&asked.ordered) {
            let list = list_of(feature, size);
            let entries = self.lists.entry(list).or_default();
            entries.push((at, place));
            visitor(list, entries);
        }
        self.bytes += BYTES_OF_A_MEMBER + u64::from(first) * BYTES_OF_AN_ENTRY + 8 * u64::from(size);
    }

    /// Whether it takes all the memory that it may.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= self.crowds.memory
    }

    /// The set at a place of the index.
    pub(crate) fn set(&self, at: u32) -> u32 {
        self.sets[at as usize]
    }

    /// Searches for sets that are similar to each of some, which have their least nearness, on all cores. `next` returns the least nearness
    /// of further sets, from the nearness of a set that was found.
    pub(crate) fn search(
        &self,
        sets: Vec<(u32, Nearness)>,
        next: impl Fn(Nearness) -> Nearness + Sync,
    ) -> Result<Vec<(Asked, Vec<Near>)>> {
        let find = |space: &mut Space, (set, least)| {
            let (asked, mut found) = (self.crowds.ask(set)?, Vec::new());
            self.visit_similar(&asked, least, space, &mut |at, nearness| {
                found.push((set, self.set(at), nearness));
                next(nearness)
            });
            Ok((asked, found))
        };
        sets.into_par_iter().map_init(Space::default, find).collect()
    }

    /// Visits the sets that are at least this similar to one, oldest first.
    pub(crate) fn visit_similar(
        &self,
        asked: &Asked,
        least: Nearness,
        space: &mut Space,
        visitor: &mut impl Visitor,
    ) {
        let mut search =
            Search { index: self, asked, least, lists: self.lists_of(asked, least), seen: &mut space.seen };
        let (mut first, mut words) = (0, FIRST_WORDS);
        while first < self.sets.len() && !search.lists.is_empty() {
            let end = self.sets.len().min(first + words * 64);
            if !search.visit_range(first, end, visitor) {
                return;
            }
            (first, words) = (end, MOST_WORDS.min(2 * words));
        }
    }

    /// Lists of features of one set, as far as sets in them may share enough features with it.
    fn lists_of(&self, asked: &Asked, least: Nearness) -> Vec<Walked<'_>> {
        let (size, of_rule) = (asked.size(), self.crowds.rule.least);
        let similarity = least_similarity(least, of_rule);
        let smallest = (f64::from(size) * similarity - 1e-6).ceil().max(1.0) as u32;
        let largest = (f64::from(size) / similarity + 1e-6).floor().min(f64::from(u32::MAX - size)) as u32;
        let mut lists = Vec::new();
        for &other in self.sizes.range(smallest..=largest) {
            let Some(shared) = shared_if_near(least, size, other, of_rule) else { continue };
            for (place, &feature) in (0..=size - shared).zip(&asked.ordered) {
                let list = list_of(feature, other);
                if let Some(entries) = self.lists.get(&list) {
                    lists.push(Walked { list, entries, done: 0, place, size: other, most: other - shared });
                }
            }
        }
        lists
    }
}

/// A search for sets that are similar to one.
struct Search<'s> {
    index: &'s Index<'s>,
    asked: &'s Asked,
    least: Nearness,
    lists: Vec<Walked<'s>>,
    /// A bit for each set of the range that is looked at.
    seen: &'s mut Vec<u64>,
}

impl Search<'_> {
    /// Visits the similar sets of a range; says whether to go on behind it.
    fn visit_range(&mut self, first: usize, end: usize, visitor: &mut impl Visitor) -> bool {
        let mut from = first;
        while let Some((at, least)) = self.visit_until(first, from..end, visitor) {
            if least == STOP {
                return false;
            }
            let (size, of_rule) = (self.asked.size(), self.index.crowds.rule.least);
            self.least = least;
            self.lists.retain_mut(|list| list.limit(least, size, of_rule));
            from = at + 1;
        }
        for list in &mut self.lists {
            list.done += list.entries[list.done..].partition_point(|&(at, _)| (at as usize) < end);
        }
        self.lists.retain(|list| list.done < list.entries.len());
        true
    }

    /// Visits similar sets until the least nearness changes: returns the last set then, and the new least nearness. The sets of the range
    /// are seen as bits from `first` on.
    fn visit_until(
        &mut self,
        first: usize,
        range: std::ops::Range<usize>,
        visitor: &mut impl Visitor,
    ) -> Option<(usize, Nearness)> {
        let &mut Search { index, asked, least, .. } = self;
        self.see(first, &range, visitor);
        let Crowds { compared, looked_at, .. } = index.crowds;
        for (word, &bits) in self.seen.iter().enumerate() {
            let place = first + word * 64;
            let mut bits = wanted(bits, place, visitor);
            if bits == 0 {
                continue;
            }
            looked_at.fetch_add(u64::from(bits.count_ones()), Ordering::Relaxed);
            let others = place..range.end.min(place + 64);
            let others = (&index.words[others.clone()], &index.long[others]);
            let one = (&asked.words, &asked.long);
            bits = dispatch(Likely { crowds: index.crowds, one, others, bits });
            while bits != 0 {
                let at = place + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if index.sets[at] == asked.set || !visitor.wants(at as u32) {
                    continue;
                }
                if let Some(nearness) = compared.similarity_of(&asked.features, &index.features[at])
                    && nearness >= least
                {
                    match visitor.visit(at as u32, nearness) {
                        UNCHANGED => {}
                        next => return Some((at, next)),
                    }
                }
            }
        }
        None
    }

    /// Sets the bits of the sets of a range that are in lists.
    fn see(&mut self, first: usize, range: &std::ops::Range<usize>, visitor: &impl Visitor) {
        self.seen.clear();
        self.seen.resize((range.end - first).div_ceil(64), 0);
        for list in &mut self.lists {
            list.done = list.done.max(visitor.unwanted(list.list, list.entries));
            let entries = list.entries[list.done..].iter();
            for &(at, place) in entries.take_while(|&&(at, _)| (at as usize) < range.end) {
                if let Some(bit) = (at as usize).checked_sub(range.start).filter(|_| place <= list.most) {
                    let bit = bit + range.start - first;
                    self.seen[bit / 64] |= 1 << (bit % 64);
                }
            }
        }
    }
}

/// Those of some bits whose sets are wanted.
fn wanted(bits: u64, place: usize, visitor: &impl Visitor) -> u64 {
    let (mut left, mut wanted) = (bits, 0);
    while left != 0 {
        let at = left.trailing_zeros();
        left &= left - 1;
        wanted |= u64::from(visitor.wants(place as u32 + at)) << at;
    }
    wanted
}
