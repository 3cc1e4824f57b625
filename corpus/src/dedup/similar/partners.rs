//! Pairs of sets that may be similar, as they are found.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

/// Pairs after which those of crowded sets are left out, if not all are wanted.
const CROWDED_AFTER: usize = 1 << 22;

/// So many partners of a set are kept, the most preferred: of thousands that are all alike, one is enough.
const MOST: usize = 64;

/// A set and one that is preferred to it: sets are numbered by preference.
pub(super) type Partner = (u32, u32);

/// Collects pairs from several threads.
pub(super) struct Partners {
    all: bool,
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
    /// All pairs, or [`MOST`] of each set.
    pub(super) fn new(all: bool) -> Self {
        Partners { all, found: Mutex::new(Found { limit: CROWDED_AFTER, ..Found::default() }) }
    }

    /// Takes pairs, each in either order.
    pub(super) fn extend(&self, pairs: &[Partner]) {
        // A thread that has panicked while it held the lock ends the run anyway.
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.pairs.extend(pairs.iter().map(|&(a, b)| (a.max(b), a.min(b))));
        if !self.all && found.pairs.len() >= found.limit {
            found.leave_out();
            found.limit = (found.pairs.len() * 2).max(CROWDED_AFTER);
        }
    }

    /// The pairs in order, each once; and the sets of which some were left out.
    pub(super) fn finish(self) -> (Vec<Partner>, HashSet<u32>) {
        let mut found = self.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        if self.all {
            found.sort();
        } else {
            found.leave_out();
        }
        (found.pairs, found.crowded)
    }
}

impl Found {
    fn sort(&mut self) {
        self.pairs.par_sort_unstable();
        self.pairs.dedup();
    }

    fn leave_out(&mut self) {
        self.sort();
        let (mut set, mut count) = (u32::MAX, 0);
        let crowded = &mut self.crowded;
        self.pairs.retain(|&(worse, _)| {
            if worse != set {
                (set, count) = (worse, 0);
            }
            count += 1;
            if count > MOST {
                crowded.insert(worse);
            }
            count <= MOST
        });
    }
}
