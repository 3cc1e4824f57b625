//! What is near fingerprints in stores.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use simstore::batch::{BatchMatch, BatchMethod};
use simstore::{Fingerprint, Result};

use super::super::against::{Against, Stored};
use crate::watch::Step;

/// A fingerprint of the corpus, and something near it.
pub(super) type NearStored<F> = (F, Stored<F>);

/// Looks distinct fingerprints up in stores.
pub(super) fn look_up<F: Fingerprint>(
    distinct: &[F],
    distance: u32,
    stores: &[Against<F>],
    step: &Step<'_>,
) -> Result<Vec<NearStored<F>>> {
    let all = Mutex::new(Vec::new());
    for (store, against) in stores.iter().enumerate() {
        let Some(snapshot) = against.snapshot() else { continue };
        snapshot.batch_visit(distinct, distance, BatchMethod::Auto, |some| {
            let near = |near: &BatchMatch<F>| (distinct[near.query], Stored { store, found: near.found });
            // A thread that has panicked while it held the lock ends the command anyway.
            all.lock().unwrap_or_else(PoisonError::into_inner).extend(some.iter().map(near));
            if step.add(0).is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    }
    step.add(0)?;
    Ok(all.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Calls `connect` with fingerprints that are near the same one of a store: they are connected. Keeps one of each that was found
/// in several segments.
pub(super) fn connect<F: Fingerprint>(stored: &mut Vec<NearStored<F>>, mut connect: impl FnMut(F, F)) {
    let key = |(_, near): &NearStored<F>| (near.store, near.found.fingerprint, near.found.id);
    stored.sort_unstable_by_key(|near| (key(near), near.0));
    stored.dedup();
    for near in stored.chunk_by(|a, b| key(a) == key(b)) {
        near.iter().for_each(|other| connect(near[0].0, other.0));
    }
}

/// The same by the places of the fingerprints, then the nearest first.
pub(super) fn by_place<F: Fingerprint>(
    stored: Vec<NearStored<F>>,
    place: impl Fn(F) -> usize,
) -> Vec<(usize, Stored<F>)> {
    let mut stored: Vec<(usize, Stored<F>)> =
        stored.into_iter().map(|(fingerprint, near)| (place(fingerprint), near)).collect();
    stored.sort_unstable_by_key(|(place, near)| (*place, near.order()));
    stored
}
