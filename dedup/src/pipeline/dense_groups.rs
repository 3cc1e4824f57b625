//! Sets of crowds, among one another: found by the features that few of them have.
//!
//! The features of all sets are counted, and each set has its features in the order of these counts, rarest first. Two sets of a and b
//! features with similarity t share at least o = ceil(t (a + b) / (1 + t)) features. So one of the first a - o + 1 features of one set is
//! among the first b - o + 1 of the other (S. Chaudhuri, V. Ganti, R. Kaushik, ICDE 2006; R. Bayardo, Y. Ma, R. Srikant, WWW 2007; C. Xiao,
//! W. Wang, X. Lin, J. Yu, WWW 2008). Lists hold the sets that have a feature there. For the pairs that the lists find, sketches are compared,
//! then longer sketches, then the features.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use simstore::Result;
use simstore_text::{SKETCHES, Sketched};

use crate::pipeline::bit_set::Marks;
use crate::pipeline::candidate_rule::{Rule, may_be_similar};
use crate::pipeline::counter::Counter;
use crate::pipeline::verify::Compared;
use crate::rows::{Nearness, SketchRow};
use crate::workspace::Workspace;
use simstore_corpus::Step;
use simstore_corpus::spill::Rows;

/// Words of a longer sketch.
pub(crate) const LONG: usize = 4 * SKETCHES;
/// Two similar sets differ in more bits of it with a probability below one in a million: so many standard deviations.
const DEVIATIONS: f64 = 5.0;
/// Sets whose features are counted together.
const COUNTED: usize = 1024;

/// How the sets of crowds are compared.
pub(crate) struct Crowds<'a> {
    pub(crate) compared: &'a Compared<'a>,
    /// Of all documents, in order.
    pub(crate) sketches: &'a Rows<SketchRow>,
    pub(crate) rule: Rule,
    counts: Counts,
    /// The most bits by which longer sketches of similar sets differ.
    most: u32,
    /// Bytes of memory for an index.
    pub(crate) memory: u64,
    /// Pairs whose sketches were looked at.
    pub(crate) looked_at: AtomicU64,
}

/// Number of sets that have a feature, up to 65,535: an upper bound, since features of one hash share a counter.
struct Counts(Vec<Counter>);

impl Counts {
    /// For so many sets.
    fn new(sets: usize, memory: u64) -> Counts {
        let most = (memory / 2).min(sets as u64 * 256).clamp(1 << 12, 1 << 25);
        Counts((0..1_u64 << most.ilog2()).map(|_| Counter::default()).collect())
    }

    fn of(&self, feature: u64) -> &Counter {
        &self.0[(mixed(feature, 0) as usize) & (self.0.len() - 1)]
    }

    fn add(&self, feature: u64) {
        self.of(feature).add(u16::MAX);
    }

    /// Features, rarest first.
    fn ordered(&self, features: &[u64]) -> Vec<u64> {
        let key = |&feature: &u64| (self.of(feature).get(), feature);
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

/// A set whose similar sets are searched.
pub(crate) struct Asked {
    pub(crate) set: u32,
    pub(crate) words: [u64; SKETCHES],
    pub(crate) long: [u64; LONG],
    /// In the order of [`Counts`].
    pub(crate) ordered: Vec<u64>,
    /// Ascending.
    pub(crate) features: Vec<u64>,
}

impl Asked {
    /// Number of features.
    pub(crate) fn size(&self) -> u32 {
        self.features.len() as u32
    }
}

/// In how many bits two sketches differ.
#[inline(always)]
pub(crate) fn differing<const N: usize>(a: &[u64; N], b: &[u64; N]) -> u32 {
    (0..N).map(|at| (a[at] ^ b[at]).count_ones()).sum()
}

impl<'a> Crowds<'a> {
    /// Counts the features of the members of crowds.
    pub(crate) fn new(
        compared: &'a Compared<'a>,
        sketches: &'a Rows<SketchRow>,
        rule: Rule,
        crowded: &Marks,
        workspace: &Workspace,
        step: &Step<'_>,
    ) -> Result<Self> {
        let counts = Counts::new(crowded.count(), workspace.share());
        for some in batches(crowded.marked(), COUNTED, step) {
            some?.into_par_iter().try_for_each(|set| {
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
            memory: workspace.share(),
            looked_at: AtomicU64::new(0),
        })
    }

    /// How many pairs had their sketches looked at.
    pub(crate) fn looked_at(&self) -> u64 {
        self.looked_at.load(Ordering::Relaxed)
    }

    /// Reads a set, to search its similar sets.
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

    /// Whether the features of two sets have to be compared.
    #[inline(always)]
    pub(crate) fn may_be_similar(
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

/// Batches of sets that are compared in parallel. An item is an error if the run is cancelled.
pub(crate) fn batches<T>(
    mut sets: impl Iterator<Item = T>,
    count: usize,
    step: &Step<'_>,
) -> impl Iterator<Item = Result<Vec<T>>> {
    std::iter::from_fn(move || {
        let some: Vec<T> = sets.by_ref().take(count).collect();
        if some.is_empty() { None } else { Some(step.add(0).map(|()| some)) }
    })
}
