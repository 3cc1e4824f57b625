//! Pairs of sets that may be similar, as they are found.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::marks::Marks;

/// Pairs after which those of crowded sets are left out, if not all are wanted.
const CROWDED_AFTER: usize = 1 << 22;

/// So many partners of a set are kept, the most preferred: of thousands that are all alike, one is enough.
const MOST: usize = 64;

/// A set and one that is preferred to it: sets are numbered by preference.
pub(super) type Partner = (u32, u32);

/// Collects pairs from several threads.
pub(super) struct Partners {
    all: bool,
    /// Of each set, the last partner that is still wanted: so crowds are not paired all with all.
    last: Vec<AtomicU32>,
    /// The sets of all pairs, those that are left out too: any of them may be compared.
    paired: Marks,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    pairs: Vec<Partner>,
    crowded: HashSet<u32>,
    /// When pairs are left out next.
    limit: usize,
}

impl Partners {
    /// All pairs of so many sets, or [`MOST`] of each.
    pub(super) fn new(all: bool, sets: usize) -> Self {
        let last = (0..if all { 0 } else { sets }).map(|_| AtomicU32::new(u32::MAX)).collect();
        let found = Found { limit: CROWDED_AFTER, ..Found::default() };
        Partners { all, last, paired: Marks::new(sets), found: Mutex::new(found) }
    }

    /// The sets of some that ascend, with which a set makes pairs that are wanted: those that are preferred to it, up to the
    /// last of [`MOST`] that were found before. And the others that are preferred to it: pairs with them are to be [left
    /// out](Partners::set_paired).
    pub(super) fn wanted<'a>(&self, worse: u32, sets: &'a [u32]) -> (&'a [u32], &'a [u32]) {
        let last = self.last.get(worse as usize).map_or(u32::MAX, |last| last.load(Ordering::Relaxed));
        let preferred = &sets[..sets.partition_point(|&better| better < worse)];
        preferred.split_at(preferred.partition_point(|&better| better <= last))
    }

    /// Whether the set is known to be in a pair.
    pub(super) fn is_paired(&self, set: u32) -> bool {
        self.paired.has(set)
    }

    /// Takes note of a set that is in a pair which is left out.
    pub(super) fn set_paired(&self, better: u32) {
        self.paired.set(better);
    }

    /// Takes pairs, each in either order.
    pub(super) fn extend(&self, pairs: &[Partner]) {
        pairs.iter().flat_map(|&(a, b)| [a, b]).for_each(|set| self.paired.set(set));
        // A thread that has panicked while it held the lock ends the run anyway.
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.pairs.extend(pairs.iter().map(|&(a, b)| (a.max(b), a.min(b))));
        if !self.all && found.pairs.len() >= found.limit {
            found.leave_out(&self.last);
            found.limit = (found.pairs.len() * 2).max(CROWDED_AFTER);
        }
    }

    /// Leaves out now what is left out after many pairs.
    #[cfg(test)]
    pub(super) fn leave_out(&self) {
        self.found.lock().unwrap().leave_out(&self.last);
    }

    /// The pairs in order, each once; the sets of which some were left out; and the sets of all pairs.
    pub(super) fn finish(self) -> (Vec<Partner>, HashSet<u32>, Marks) {
        let mut found = self.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        if self.all {
            found.sort();
        } else {
            found.leave_out(&self.last);
        }
        (found.pairs, found.crowded, self.paired)
    }
}

impl Found {
    fn sort(&mut self) {
        self.pairs.par_sort_unstable();
        self.pairs.dedup();
    }

    fn leave_out(&mut self, last: &[AtomicU32]) {
        self.sort();
        let (mut set, mut count) = (u32::MAX, 0);
        let crowded = &mut self.crowded;
        self.pairs.retain(|&(worse, better)| {
            if worse != set {
                (set, count) = (worse, 0);
            }
            count += 1;
            if count == MOST {
                // There may be more.
                crowded.insert(worse);
                last[worse as usize].store(better, Ordering::Relaxed);
            }
            count <= MOST
        });
    }
}

#[cfg(test)]
mod tests {
    use rayon::prelude::*;

    use super::*;
    use crate::random::random;

    #[test]
    fn the_most_preferred_of_a_crowd_are_kept() {
        const SETS: u32 = 500;
        let mut state = 1;
        let mut pairs: Vec<Partner> = (0..SETS).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
        pairs.retain(|_| !random(&mut state).is_multiple_of(3));
        let of_set =
            |set: u32| -> Vec<u32> { pairs.iter().filter(|pair| pair.0 == set).map(|pair| pair.1).collect() };
        let partners = Partners::new(false, SETS as usize);
        // Left out every few pairs.
        partners.found.lock().unwrap().limit = 1000;
        (0..SETS).into_par_iter().rev().for_each(|set| {
            let others = of_set(set);
            let (wanted, left_out) = partners.wanted(set, &others);
            partners.extend(&wanted.iter().map(|&other| (other, set)).collect::<Vec<_>>());
            left_out.iter().for_each(|&other| partners.set_paired(other));
            partners.found.lock().unwrap().limit = 1000;
        });
        let (kept, crowded, paired) = partners.finish();
        assert_eq!(paired.count(), SETS as usize);
        for set in 0..SETS {
            let best: Vec<Partner> = of_set(set).into_iter().take(MOST).map(|other| (set, other)).collect();
            let start = kept.partition_point(|pair| pair.0 < set);
            assert_eq!(kept[start..start + best.len()], best[..]);
            assert_eq!(crowded.contains(&set), best.len() == MOST, "{set}");
        }
    }

    #[test]
    fn all_are_kept_if_they_are_wanted() {
        let partners = Partners::new(true, 1001);
        let all: Vec<Partner> = (1..1000).map(|other| (0, other)).collect();
        partners.extend(&all);
        partners.extend(&all[..10]);
        assert_eq!(partners.wanted(1000, &[1, 2, 1000]), (&[1, 2][..], &[][..]));
        let (kept, crowded, paired) = partners.finish();
        assert_eq!((kept.len(), crowded.len(), paired.count()), (999, 0, 1000));
    }
}
