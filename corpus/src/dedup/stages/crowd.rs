//! Sets of crowds, among one another: found by the features that few of them have.
//!
//! The features of all sets are counted; those of a set are in the order of these counts, rarest first. Two sets of a and b features
//! whose similarity is t share at least o = ceil(t (a + b) / (1 + t)) of them, so that one of the first a - o + 1 of the one is among
//! the first b - o + 1 of the other (S. Chaudhuri, V. Ganti, R. Kaushik, ICDE 2006; R. Bayardo, Y. Ma, R. Srikant, WWW 2007; C. Xiao,
//! W. Wang, X. Lin, J. Yu, WWW 2008). Lists say which sets have a feature there. What they bring together is looked at by the sketches,
//! as everything is, then by longer ones, and compared by the features.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use rayon::prelude::*;
use simstore::Result;
use simstore::processor::{Work, dispatch};
use simstore_text::{SKETCHES, Sketched, shared_members};

use super::super::model::{Nearness, SketchRow, similarity};
use super::super::room::Room;
use super::compare::Compared;
use super::marks::Marks;
use super::rule::{Rule, may_be_similar};
use crate::spill::Rows;
use crate::watch::Step;

/// Words of a longer sketch.
const LONG: usize = 4 * SKETCHES;
/// Two similar sets differ in more bits of it with a probability below one in a million: so many standard deviations.
const DEVIATIONS: f64 = 5.0;
/// Bytes of memory for a set that is looked for: its sketches, and what its features take in lists.
const BYTES_OF_A_MEMBER: u64 = 8 * (LONG + SKETCHES) as u64 + 32;
const BYTES_OF_AN_ENTRY: u64 = 32;
/// Sets whose features are counted together.
const COUNTED: usize = 1024;

/// How the sets of crowds are compared.
pub(crate) struct Crowds<'a> {
    pub(crate) compared: &'a Compared<'a>,
    /// Of all documents, in order.
    pub(crate) sketches: &'a Rows<SketchRow>,
    pub(crate) rule: Rule,
    counts: Counts,
    /// Bits in which longer sketches may differ.
    most: u32,
    /// Bytes of memory for those that are looked for.
    memory: u64,
    /// Pairs whose sketches were looked at.
    looked_at: AtomicU64,
}

/// How often features come, about: those of one hash are counted together.
struct Counts(Vec<AtomicU16>);

impl Counts {
    /// For so many sets.
    fn new(sets: usize, memory: u64) -> Counts {
        let most = (memory / 2).min(sets as u64 * 256).clamp(1 << 12, 1 << 25);
        Counts((0..1_u64 << most.ilog2()).map(|_| AtomicU16::new(0)).collect())
    }

    fn of(&self, feature: u64) -> &AtomicU16 {
        &self.0[(mixed(feature, 0) as usize) & (self.0.len() - 1)]
    }

    fn add(&self, feature: u64) {
        let count = self.of(feature);
        if count.load(Ordering::Relaxed) < u16::MAX {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Features in the order in which all sets have theirs.
    fn ordered(&self, features: &[u64]) -> Vec<u64> {
        let key = |&feature: &u64| (self.of(feature).load(Ordering::Relaxed), feature);
        let mut ordered = features.to_vec();
        ordered.sort_unstable_by_key(key);
        ordered
    }
}

/// The finalizer of SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014), for one of several hashes.
fn mixed(feature: u64, number: u64) -> u64 {
    let mut hash = feature.wrapping_add((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// Sketches of the features under other hashes, one after the other.
fn long_sketch(features: &[u64]) -> [u64; LONG] {
    let mut long = [0; LONG];
    let mut hashed = Vec::with_capacity(features.len());
    for (number, words) in (1..).zip(long.as_chunks_mut::<SKETCHES>().0) {
        hashed.clear();
        hashed.extend(features.iter().map(|&feature| mixed(feature, number)));
        hashed.sort_unstable();
        *words = Sketched::new(&hashed).map_or([0; SKETCHES], |sketched| sketched.sketches);
    }
    long
}

/// A set that others are looked for which are similar to it.
pub(crate) struct Asked {
    pub(crate) set: u32,
    words: [u64; SKETCHES],
    long: [u64; LONG],
    /// In the order of [`Counts`].
    ordered: Vec<u64>,
    /// Ascending.
    features: Vec<u64>,
}

impl Asked {
    fn size(&self) -> u32 {
        self.features.len() as u32
    }
}

/// In how many bits two sketches differ.
#[inline(always)]
fn differing<const N: usize>(a: &[u64; N], b: &[u64; N]) -> u32 {
    (0..N).map(|at| (a[at] ^ b[at]).count_ones()).sum()
}

/// The least number of features that sets of so many share, if they have this similarity.
fn shared(a: u32, b: u32, least: f64) -> u32 {
    shared_members(a as usize, b as usize, least).max(1) as u32
}

impl<'a> Crowds<'a> {
    /// Counts the features of the members of crowds.
    pub(crate) fn new(
        compared: &'a Compared<'a>,
        sketches: &'a Rows<SketchRow>,
        rule: Rule,
        crowded: &Marks,
        room: &Room,
        step: &Step<'_>,
    ) -> Result<Self> {
        let counts = Counts::new(crowded.count(), room.share());
        let mut sets = crowded.marked();
        loop {
            let some: Vec<u32> = sets.by_ref().take(COUNTED).collect();
            if some.is_empty() {
                break;
            }
            step.add(0)?;
            some.into_par_iter().try_for_each(|set| {
                compared.features(set)?.into_iter().for_each(|feature| counts.add(feature));
                Ok::<_, simstore::Error>(())
            })?;
        }
        let bits = (64 * LONG) as f64;
        let differing = (1.0 - rule.least) / 2.0;
        let most = bits * differing + DEVIATIONS * (bits * differing * (1.0 - differing)).sqrt();
        Ok(Crowds {
            compared,
            sketches,
            rule,
            counts,
            most: most.ceil() as u32,
            memory: room.share(),
            looked_at: AtomicU64::new(0),
        })
    }

    /// How many pairs had their sketches looked at.
    pub(crate) fn looked_at(&self) -> u64 {
        self.looked_at.load(Ordering::Relaxed)
    }

    /// What is needed of a set to look for others.
    pub(crate) fn ask(&self, set: u32) -> Result<Asked> {
        let features = self.compared.features(set)?;
        let words = self.sketches.get(self.compared.sets.best(set)? as usize)?.words;
        Ok(Asked {
            set,
            words,
            long: long_sketch(&features),
            ordered: self.counts.ordered(&features),
            features,
        })
    }

    /// None yet.
    pub(crate) fn index(&self) -> Index<'_> {
        Index {
            crowds: self,
            sets: Vec::new(),
            words: Vec::new(),
            long: Vec::new(),
            features: Vec::new(),
            sizes: BTreeSet::new(),
            lists: HashMap::new(),
            bytes: 0,
        }
    }

    /// Whether two are to be compared by their features.
    #[inline(always)]
    fn may_be_similar(
        &self,
        a: (&[u64; SKETCHES], &[u64; LONG]),
        b: (&[u64; SKETCHES], &[u64; LONG]),
    ) -> bool {
        differing(a.0, b.0) <= self.rule.search.total
            && differing(a.1, b.1) <= self.most
            && self.rule.holds(a.0, b.0)
    }

    /// How similar two are that were asked for.
    pub(crate) fn alike(&self, a: &Asked, b: &Asked) -> Option<Nearness> {
        let is_likely = may_be_similar(a.size(), b.size(), self.rule.least)
            && self.may_be_similar((&a.words, &a.long), (&b.words, &b.long));
        if is_likely { self.compared.similarity_of(&a.features, &b.features) } else { None }
    }
}

/// Which of some sets are to be compared with one, of those whose bits are set.
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
    /// In the order in which they were added.
    sets: Vec<u32>,
    words: Vec<[u64; SKETCHES]>,
    long: Vec<[u64; LONG]>,
    features: Vec<Box<[u64]>>,
    /// How many features they have.
    sizes: BTreeSet<u32>,
    /// Who has a feature among its first, by a hash of that and the number of its features: the place of the set, and of the feature.
    lists: HashMap<u64, Vec<(u32, u32)>>,
    bytes: u64,
}

/// Space to look for what is similar to one.
#[derive(Default)]
pub(crate) struct Space {
    /// A bit for each set.
    seen: Vec<u64>,
}

fn list_of(feature: u64, size: u32) -> u64 {
    feature ^ u64::from(size).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Index<'_> {
    /// Adds a set.
    pub(crate) fn add(&mut self, asked: &Asked) {
        let (at, size) = (self.sets.len() as u32, asked.size());
        self.sets.push(asked.set);
        self.words.push(asked.words);
        self.long.push(asked.long);
        self.features.push(asked.features.as_slice().into());
        self.sizes.insert(size);
        // The smallest set that can be similar asks for the most.
        let smallest = (f64::from(size) * self.crowds.rule.least - 1e-6).ceil().max(1.0) as u32;
        let first = size - shared(size, smallest, self.crowds.rule.least).min(size) + 1;
        for (place, &feature) in (0..first).zip(&asked.ordered) {
            self.lists.entry(list_of(feature, size)).or_default().push((at, place));
        }
        self.bytes += BYTES_OF_A_MEMBER + u64::from(first) * BYTES_OF_AN_ENTRY + 8 * u64::from(size);
    }

    /// Whether it takes all the memory that it may.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= self.crowds.memory
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// Visits the sets that have this similarity to one, or a greater one, in the order in which they were added. The visitor says
    /// whether to go on.
    pub(crate) fn visit_similar(
        &self,
        asked: &Asked,
        least: Nearness,
        space: &mut Space,
        mut visitor: impl FnMut(u32, Nearness) -> bool,
    ) {
        let least_similarity = similarity(least).max(self.crowds.rule.least);
        self.bring_together(asked, least_similarity, space);
        let Crowds { compared, looked_at, .. } = self.crowds;
        let brought = space.seen.iter().map(|bits| u64::from(bits.count_ones())).sum();
        looked_at.fetch_add(brought, Ordering::Relaxed);
        for (word, bits) in space.seen.iter_mut().enumerate() {
            let bits = std::mem::take(bits);
            if bits == 0 {
                continue;
            }
            let (first, end) = (word * 64, self.sets.len().min(word * 64 + 64));
            let others = (&self.words[first..end], &self.long[first..end]);
            let one = (&asked.words, &asked.long);
            let mut bits = dispatch(Likely { crowds: self.crowds, one, others, bits });
            while bits != 0 {
                let at = first + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if self.sets[at] == asked.set {
                    continue;
                }
                if let Some(nearness) = compared.similarity_of(&asked.features, &self.features[at])
                    && nearness >= least
                    && !visitor(self.sets[at], nearness)
                {
                    space.seen.iter_mut().for_each(|bits| *bits = 0);
                    return;
                }
            }
        }
    }

    /// Marks the sets that have features in common with one where similar ones have them.
    fn bring_together(&self, asked: &Asked, least: f64, space: &mut Space) {
        let size = asked.size();
        space.seen.resize(self.sets.len().div_ceil(64), 0);
        let smallest = (f64::from(size) * least - 1e-6).ceil().max(1.0) as u32;
        let largest = (f64::from(size) / least + 1e-6).floor().min(f64::from(u32::MAX)) as u32;
        for &other in self.sizes.range(smallest..=largest) {
            let shared = shared(size, other, least);
            let (Some(of_one), Some(of_other)) = (size.checked_sub(shared), other.checked_sub(shared)) else {
                continue;
            };
            for &feature in &asked.ordered[..=of_one as usize] {
                let Some(list) = self.lists.get(&list_of(feature, other)) else { continue };
                for &(at, place) in list {
                    space.seen[at as usize / 64] |= u64::from(place <= of_other) << (at % 64);
                }
            }
        }
    }
}
