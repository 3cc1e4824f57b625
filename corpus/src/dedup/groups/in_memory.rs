//! What is near what, with all fingerprints in memory.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use bitvec::vec::BitVec;
use simstore::join::{self, Components};
use simstore::{Fingerprint, Result};

use super::super::corpus::Corpus;
use super::{LookedFor, Near, stored};
use crate::watch::Step;

pub(super) fn near<F: Fingerprint>(
    corpus: &Corpus<F>,
    LookedFor { distance, with_pairs, stores, .. }: LookedFor<'_, F>,
    step: &Step<'_>,
) -> Result<Near<F>> {
    let mut distinct = Vec::with_capacity(corpus.len() - corpus.empty());
    corpus.visit_fingerprints(|_, some| {
        distinct.extend_from_slice(some);
        step.add(0)
    })?;
    join::sort(&mut distinct);
    let mut repeated: Vec<F> = Vec::new();
    join::collapse(&mut distinct, &mut repeated);
    let near = Mutex::new((Components::new(distinct.len()), Vec::new()));
    join::visit_pairs(&distinct, distance, |batch| {
        if step.add(batch.len() as u64).is_err() {
            return ControlFlow::Break(());
        }
        // A thread that has panicked while it held the lock ends the command anyway.
        let (components, pairs) = &mut *near.lock().unwrap_or_else(PoisonError::into_inner);
        batch.iter().for_each(|pair| components.connect(pair.a, pair.b));
        if with_pairs {
            pairs.extend_from_slice(batch);
        }
        ControlFlow::Continue(())
    })?;
    step.add(0)?;
    let (mut components, mut pairs) = near.into_inner().unwrap_or_else(PoisonError::into_inner);
    let place = |value: F| distinct.partition_point(|&other| other < value);
    let mut stored = stored::look_up(&distinct, distance, stores, step)?;
    stored::connect(&mut stored, |a, b| components.connect(place(a), place(b)));

    // From here on only the few of which there is something to tell.
    let mut told: BitVec = BitVec::repeat(false, distinct.len());
    for place in 0..distinct.len() {
        let first = components.first(place);
        if first != place {
            told.set(place, true);
            told.set(first, true);
        }
    }
    repeated.iter().for_each(|&value| told.set(place(value), true));
    stored.iter().for_each(|&(value, _)| told.set(place(value), true));
    let places: Vec<usize> = told.iter_ones().collect();
    // Each of them is among the places.
    let told_place = |place: usize| places.partition_point(|&other| other < place);
    let firsts = places.iter().map(|&place| told_place(components.first(place))).collect();
    for pair in &mut pairs {
        (pair.a, pair.b) = (told_place(pair.a), told_place(pair.b));
    }
    Ok(Near {
        values: places.iter().map(|&place| distinct[place]).collect(),
        firsts,
        pairs,
        stored: stored::by_place(stored, |value| told_place(place(value))),
        distinct: distinct.len(),
    })
}
