//! What is near what, with the fingerprints on disk: the join goes through files, one table after the other.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;
use simstore::fs::{Disk, Fs};
use simstore::join::{Components, DistinctOnDisk, Forest, JoinOnDisk, NearPair, Pair};
use simstore::{Error, Fingerprint, Result};

use super::super::corpus::{Corpus, Room};
use super::stored::NearStored;
use super::{LookedFor, Near, stored};
use crate::numbers::bytes;
use crate::watch::Step;

/// One of so many shares of the memory is for the queries of a batch, or what is found; the others are for the join.
const SHARES: u64 = 4;

/// What the pairs of a join come to.
struct Found<F> {
    forest: Forest<F>,
    pairs: Vec<NearPair<F>>,
}

pub(super) fn near<F: Fingerprint>(
    corpus: &Corpus<F>,
    room: &Room,
    LookedFor { distance, with_pairs, stores }: LookedFor<'_, F>,
    step: &Step<'_>,
) -> Result<Near<F>> {
    let explain = |error| room.temporary.explain(error);
    let memory = room.budget.bytes;
    let folder = room.temporary.folder()?.join("join");
    std::fs::create_dir_all(&folder).map_err(|error| room.temporary.failed(&error))?;
    let fs: Arc<dyn Fs> = Arc::new(Disk::default());
    let count = (corpus.len() - corpus.empty()) as u64;
    // Those of the first table, and those of another one.
    room.temporary.expect(room.temporary.held() + 2 * count * F::BYTES as u64);
    let mut join = JoinOnDisk::<F>::create(&fs, &folder, count, distance, memory / SHARES * (SHARES - 1))
        .map_err(explain)?;
    corpus.visit_fingerprints(|_, some| {
        step.add(0)?;
        join.push(some).map_err(explain)
    })?;
    let mut repeated: Vec<F> = Vec::new();
    let mut distinct = join
        .collapse(|_, some| {
            repeated.extend_from_slice(some);
            check(repeated.len() as u64 * F::BYTES as u64, room)?;
            step.add(0)
        })
        .map_err(explain)?;
    let mut stored = look_up(&distinct, distance, stores, memory / SHARES, step).map_err(explain)?;
    let found = join_tables(&mut distinct, with_pairs, room, step).map_err(explain)?;
    let moved = distinct.moved();
    room.temporary.moved(moved.written, moved.most);
    let count = distinct.count() as usize;
    drop(distinct);

    let Found { forest, pairs } = found;
    let edges = forest.into_edges();
    let mut values = repeated;
    values.extend(edges.iter().flat_map(|&(first, other)| [first, other]));
    values.extend(stored.iter().map(|&(value, _)| value));
    values.par_sort_unstable();
    values.dedup();
    let place = |value: F| values.partition_point(|&other| other < value);
    let mut components = Components::new(values.len());
    edges.iter().for_each(|&(first, other)| components.connect(place(first), place(other)));
    stored::connect(&mut stored, |a, b| components.connect(place(a), place(b)));
    Ok(Near {
        firsts: (0..values.len()).map(|place| components.first(place)).collect(),
        pairs: pairs
            .into_iter()
            .map(|NearPair { a, b, distance }| Pair { a: place(a), b: place(b), distance })
            .collect(),
        stored: stored::by_place(stored, place),
        distinct: count,
        values,
    })
}

/// Looks distinct fingerprints up in stores, as many at a time as there is memory for.
fn look_up<F: Fingerprint>(
    distinct: &DistinctOnDisk<F>,
    distance: u32,
    stores: &[super::Against<F>],
    memory: u64,
    step: &Step<'_>,
) -> Result<Vec<NearStored<F>>> {
    /// What a batch takes for a query and each bit of the distance, at most.
    const BYTES_OF_A_QUERY: u64 = 30;
    let mut stored = Vec::new();
    if stores.is_empty() {
        return Ok(stored);
    }
    let most = (memory / (BYTES_OF_A_QUERY * u64::from(distance.max(1)))).max(1 << 16) as usize;
    let mut queries = Vec::new();
    distinct.visit(|some| {
        queries.extend_from_slice(some);
        if queries.len() >= most {
            stored.append(&mut stored::look_up(&queries, distance, stores, step)?);
            queries.clear();
        }
        Ok(())
    })?;
    stored.append(&mut stored::look_up(&queries, distance, stores, step)?);
    Ok(stored)
}

/// Joins one table after the other.
fn join_tables<F: Fingerprint>(
    distinct: &mut DistinctOnDisk<F>,
    with_pairs: bool,
    room: &Room,
    step: &Step<'_>,
) -> Result<Found<F>> {
    let found = Mutex::new(Found { forest: Forest::new(), pairs: Vec::new() });
    let failed = Mutex::new(None);
    for table in 0..distinct.parts().tables() {
        let joined = distinct.join(table, |some| {
            // A thread that has panicked while it held a lock ends the command anyway.
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.forest.connect_pairs(some);
            if with_pairs {
                found.pairs.extend_from_slice(some);
            }
            let memory = found.forest.memory() + (found.pairs.len() * size_of::<NearPair<F>>()) as u64;
            match step.add(some.len() as u64).and_then(|()| check(memory, room)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    ControlFlow::Break(())
                }
            }
        });
        // Why it was stopped says more than that it was.
        if let Some(error) = failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error);
        }
        joined?;
    }
    Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Refuses what leaves too little memory for the join.
fn check(memory: u64, room: &Room) -> Result<()> {
    let most = room.budget.bytes / 2;
    if memory <= most {
        return Ok(());
    }
    Err(Error::Refused(format!(
        "what is near takes {} so far, more than a half of {}: give a greater option `memory`, or a smaller option `distance`",
        bytes(memory),
        bytes(room.budget.of)
    )))
}
