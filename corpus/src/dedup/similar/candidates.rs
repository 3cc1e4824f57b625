//! Pairs that sketches bring together.

use std::ops::ControlFlow;

use rayon::prelude::*;
use simstore::Result;
use simstore::join::{self, Pair};
use simstore_text::{SKETCHES, SketchSearch};

use super::super::sketches::Sketches;
use super::partners::{Partner, Partners};
use super::sets::Sets;
use crate::watch::Step;

/// What two sets must be like, by their sketches, for their features to be compared.
pub(super) struct Rule<'a> {
    pub(super) sets: &'a Sets,
    pub(super) sketches: &'a Sketches,
    pub(super) search: SketchSearch,
    /// The similarity that is asked for.
    pub(super) least: f64,
}

impl Rule<'_> {
    fn words(&self, set: u32) -> &[u64; SKETCHES] {
        self.sketches.of(self.sets.best(set as usize))
    }

    fn features(&self, set: u32) -> u32 {
        self.sketches.features(self.sets.best(set as usize))
    }

    /// Whether two sets are to be compared that a sketch has brought together, and none of those before it.
    #[inline]
    fn is_new(&self, a: u32, b: u32, sketch: usize) -> bool {
        are_brought_together(&self.search, self.words(a), self.words(b), sketch)
            && may_be_similar(self.features(a), self.features(b), self.least)
    }

    /// Whether two sets are to be compared: some sketch brings them together.
    pub(super) fn holds(&self, a: u32, b: u32) -> bool {
        let (x, y) = (self.words(a), self.words(b));
        (0..self.search.joined)
            .find(|&sketch| (x[sketch] ^ y[sketch]).count_ones() <= self.search.distance)
            .is_some_and(|first| self.is_new(a, b, first))
    }
}

/// Whether none of the sketches before one brings two sets together, and all are near enough.
#[inline]
pub(super) fn are_brought_together(
    search: &SketchSearch,
    x: &[u64; SKETCHES],
    y: &[u64; SKETCHES],
    sketch: usize,
) -> bool {
    let distance = |at: usize| (x[at] ^ y[at]).count_ones();
    (0..sketch).all(|earlier| distance(earlier) > search.distance)
        && (0..SKETCHES).map(distance).sum::<u32>() <= search.total
}

/// Whether sets of so many features can have a similarity: what is in both is at most the smaller of them.
pub(super) fn may_be_similar(a: u32, b: u32, least: f64) -> bool {
    f64::from(a.min(b)) >= f64::from(a.max(b)) * least - 1e-9
}

/// Joins each sketch of all sets.
pub(super) fn join(rule: &Rule<'_>, partners: &Partners, step: &Step<'_>) -> Result<()> {
    for sketch in 0..rule.search.joined {
        join_one(rule, sketch, partners, step)?;
    }
    Ok(())
}

fn join_one(rule: &Rule<'_>, sketch: usize, partners: &Partners, step: &Step<'_>) -> Result<()> {
    step.add(0)?;
    let sets = 0..rule.sets.len() as u32;
    let mut ordered: Vec<(u64, u32)> =
        sets.into_par_iter().map(|set| (rule.words(set)[sketch], set)).collect();
    ordered.par_sort_unstable();
    let (mut values, mut starts) = (Vec::new(), Vec::new());
    for (at, &(value, _)) in ordered.iter().enumerate() {
        if values.last() != Some(&value) {
            values.push(value);
            starts.push(at as u32);
        }
    }
    starts.push(ordered.len() as u32);
    let ordered: Vec<u32> = ordered.into_iter().map(|(_, set)| set).collect();
    let sets_of = |value: usize| &ordered[starts[value] as usize..starts[value + 1] as usize];

    let several: Vec<usize> = (0..values.len()).filter(|&value| sets_of(value).len() > 1).collect();
    several.into_par_iter().try_for_each(|value| {
        let mut found = Vec::new();
        pair_up(rule, sketch, sets_of(value), sets_of(value), partners, &mut found, step)?;
        hand_over(&mut found, partners, step, true)
    })?;
    join::visit_pairs(&values, rule.search.distance, |pairs| {
        let mut found = Vec::new();
        let paired = pairs.iter().try_for_each(|&Pair { a, b, .. }| {
            pair_up(rule, sketch, sets_of(a), sets_of(b), partners, &mut found, step)?;
            pair_up(rule, sketch, sets_of(b), sets_of(a), partners, &mut found, step)
        });
        match paired.and_then(|()| hand_over(&mut found, partners, step, true)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })
}

/// Finds, for each of some sets, those of others that are preferred to it and are to be compared with it.
fn pair_up(
    rule: &Rule<'_>,
    sketch: usize,
    sets: &[u32],
    others: &[u32],
    partners: &Partners,
    found: &mut Vec<Partner>,
    step: &Step<'_>,
) -> Result<()> {
    // Of a crowd, those that may be in no pair but such as are left out: soon none.
    let mut unpaired: Option<Vec<u32>> = None;
    for &set in sets {
        let (wanted, left_out) = partners.wanted(set, others);
        let is_new = |other: u32| rule.is_new(set, other, sketch);
        found.extend(wanted.iter().filter(|&&other| is_new(other)).map(|&other| (set, other)));
        if let Some(&first) = left_out.first() {
            let not_yet = || others.iter().copied().filter(|&other| !partners.is_paired(other)).collect();
            unpaired.get_or_insert_with(not_yet).retain(|&other| {
                let is_paired = (first..set).contains(&other) && is_new(other);
                if is_paired {
                    partners.set_paired(other);
                }
                !is_paired
            });
        }
        hand_over(found, partners, step, false)?;
    }
    Ok(())
}

/// Hands over what was found, if it is much or all.
fn hand_over(found: &mut Vec<Partner>, partners: &Partners, step: &Step<'_>, is_all: bool) -> Result<()> {
    /// Pairs that are handed over together.
    const MUCH: usize = 4096;
    if !is_all && found.len() < MUCH {
        return Ok(());
    }
    partners.extend(found);
    let count = found.len() as u64;
    found.clear();
    step.add(count)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use simstore_text::Sketched;

    use super::*;
    use crate::dedup::names::Names;
    use crate::dedup::preference::{Keep, Preference, Values};

    /// Of a set with enough partners no more pairs are made; but what it would be in a pair with is known.
    #[test]
    fn what_is_left_out_is_known_to_be_paired() {
        const CROWD: u32 = 100;
        let mut sketches = Sketches::default();
        let mut push = |sum: u64, [first, second]: [u64; 2]| {
            let words = [first, second, 0, 0, 0, 0, 0, 0];
            sketches.push(Some(&Sketched { sketches: words, features: 100, sum }));
        };
        (0..CROWD).for_each(|at| push(at.into(), [0, 0]));
        let [brought_together, too_far, last] = [CROWD, CROWD + 1, CROWD + 2];
        push(brought_together.into(), [0b111, 0]);
        push(too_far.into(), [0, u64::MAX]);
        push(last.into(), [0, 0]);
        let (keep, values, names) = (Keep::First, Values::None, Names::default());
        let preference = Preference { keep: &keep, values: &values, names: &names, told: None };
        let sets = Sets::new(&sketches, &HashSet::new(), &preference);
        let search = SketchSearch { joined: 1, distance: 3, total: 5 };
        let rule = Rule { sets: &sets, sketches: &sketches, search, least: 0.8 };
        let partners = Partners::new(false, sets.len());
        let step = Step::new(&(), "sets");
        let all: Vec<u32> = (0..=last).collect();
        let pair_up_last = || {
            let mut found = Vec::new();
            pair_up(&rule, 0, &[last], &all, &partners, &mut found, &step).unwrap();
            found
        };
        assert_eq!(pair_up_last().len() as u32, CROWD + 1);
        partners.extend(&(0..CROWD).map(|other| (last, other)).collect::<Vec<_>>());
        assert!(!partners.is_paired(brought_together));
        partners.leave_out();
        assert!(pair_up_last().iter().all(|&(_, other)| other < CROWD));
        assert!(partners.is_paired(brought_together) && !partners.is_paired(too_far));
    }
}
