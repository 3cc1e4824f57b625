//! Which set stands for which: each is similar enough to the one that does.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use simstore::Result;

use super::candidates::Rule;
use super::compared::{Compared, TOGETHER};
use super::partners::Partner;
use super::sets::Sets;
use crate::watch::Step;

/// Sets that are looked at together.
const SETS: usize = 512;

/// A set, what stands for it, and how similar they are.
pub(super) type Led = (u32, u32, f32);

/// What is done so far.
struct Stars<'a> {
    pairs: &'a [Partner],
    rule: &'a Rule<'a>,
    compared: &'a Compared<'a>,
    step: &'a Step<'a>,
    /// The sets that another stands for.
    led: HashSet<u32>,
    /// The similarity of pairs that were compared before it is known whether it is needed: on all cores.
    known: HashMap<Partner, Option<f32>>,
}

/// Goes through the sets from the most preferred on: each stands for itself, unless one that does is similar enough. Of
/// several, it is the most preferred. Returns the sets that another stands for, ascending.
///
/// `crowded` are the sets of which not all partners are among the pairs: they are looked for, if need be, among all that stand
/// for themselves.
pub(super) fn stars(
    pairs: &[Partner],
    crowded: &HashSet<u32>,
    rule: &Rule<'_>,
    compared: &Compared<'_>,
    step: &Step<'_>,
) -> Result<Vec<Led>> {
    let mut stars = Stars { pairs, rule, compared, step, led: HashSet::new(), known: HashMap::new() };
    // The pairs of each set that is not preferred to all its partners.
    let (mut sets, mut start) = (Vec::new(), 0);
    for same in pairs.chunk_by(|a, b| a.0 == b.0) {
        sets.push(start..start + same.len());
        start += same.len();
    }
    let mut led = Vec::new();
    for some in sets.chunks(SETS) {
        stars.compare_likely(some)?;
        for set in some {
            if let Some(found) = stars.leader(set.clone(), crowded)? {
                stars.led.insert(found.0);
                led.push(found);
            }
        }
    }
    Ok(led)
}

/// What each set that another stands for is most similar to, of all that stand for themselves, where that is not the one that
/// stands for it; ascending. Of several, it is the one with the first document. `pairs` are similar.
pub(super) fn nearest(pairs: &[Led], led: &[Led], sets: &Sets) -> Vec<Led> {
    let leaders = Leaders::new(led);
    let mut nearest: BTreeMap<u32, Led> = BTreeMap::new();
    for &(worse, better, similarity) in pairs {
        let Some((set, other)) = leaders.set_and_other((worse, better)) else { continue };
        let (_, best, greatest) = nearest.get(&set).copied().unwrap_or(leaders.0[&set]);
        let key = |similarity: f32, other: u32| (similarity, Reverse(sets.first(other)));
        if key(similarity, other) > key(greatest, best) {
            nearest.insert(set, (set, other, similarity));
        }
    }
    nearest.into_values().collect()
}

/// Compares sets that another stands for with others that stand for themselves and may be more similar. Returns those that are as
/// similar as is asked for.
pub(super) fn similar_to_others(
    pairs: &[Partner],
    led: &[Led],
    compared: &Compared<'_>,
    step: &Step<'_>,
) -> Result<Vec<Led>> {
    let leaders = Leaders::new(led);
    let may_be_nearer = |&(set, other): &Partner| {
        let (_, leader, similarity) = leaders.0[&set];
        other != leader && compared.may_be_similar(set, other, similarity)
    };
    let likely = pairs.iter().filter_map(|&pair| leaders.set_and_other(pair)).filter(may_be_nearer);
    let likely: Vec<Partner> = likely.collect();
    let mut similar = Vec::new();
    for some in likely.chunks(TOGETHER) {
        step.add(some.len() as u64)?;
        let found = some.iter().zip(compared.alike_each(some)?);
        similar.extend(found.filter_map(|(&(set, other), similarity)| Some((set, other, similarity?))));
    }
    Ok(similar)
}

/// The sets that another stands for.
struct Leaders(HashMap<u32, Led>);

impl Leaders {
    fn new(led: &[Led]) -> Leaders {
        Leaders(led.iter().map(|&led| (led.0, led)).collect())
    }

    /// A set that another stands for and one that stands for itself, if a pair is of such.
    fn set_and_other(&self, (a, b): Partner) -> Option<Partner> {
        match (self.0.contains_key(&a), self.0.contains_key(&b)) {
            (true, false) => Some((a, b)),
            (false, true) => Some((b, a)),
            _ => None,
        }
    }
}

impl Stars<'_> {
    /// Compares some sets with what may stand for them: first with the most preferred, which often does, then with all others.
    fn compare_likely(&mut self, sets: &[Range<usize>]) -> Result<()> {
        self.known.clear();
        let firsts: Vec<Partner> = sets.iter().filter_map(|set| self.open(set.clone()).next()).collect();
        self.compare(&firsts)?;
        let is_found = |set: &&Range<usize>| {
            self.open((*set).clone()).next().is_some_and(|first| self.known[&first].is_some())
        };
        let left = sets.iter().filter(|set| !is_found(set));
        let others: Vec<Partner> = left.flat_map(|set| self.open(set.clone()).skip(1)).collect();
        self.compare(&others)
    }

    /// The pairs of a set with those that nothing stands for, so far.
    fn open(&self, set: Range<usize>) -> impl Iterator<Item = Partner> {
        self.pairs[set].iter().copied().filter(|(_, better)| !self.led.contains(better))
    }

    fn compare(&mut self, pairs: &[Partner]) -> Result<()> {
        for some in pairs.chunks(TOGETHER) {
            self.step.add(some.len() as u64)?;
            self.known.extend(some.iter().copied().zip(self.compared.alike_each(some)?));
        }
        Ok(())
    }

    /// What stands for a set, if another does.
    fn leader(&self, set: Range<usize>, crowded: &HashSet<u32>) -> Result<Option<Led>> {
        let (worse, last) = (self.pairs[set.start].0, self.pairs[set.end - 1].1);
        for pair in self.open(set) {
            let similarity = match self.known.get(&pair) {
                Some(&similarity) => similarity,
                None => {
                    self.step.add(1)?;
                    self.compared.alike(pair.0, pair.1)?
                }
            };
            if let Some(similarity) = similarity {
                return Ok(Some((worse, pair.1, similarity)));
            }
        }
        if !crowded.contains(&worse) {
            return Ok(None);
        }
        for better in last + 1..worse {
            if !self.led.contains(&better) && self.rule.holds(better, worse) {
                self.step.add(1)?;
                if let Some(similarity) = self.compared.alike(worse, better)? {
                    return Ok(Some((worse, better, similarity)));
                }
            }
        }
        Ok(None)
    }
}
