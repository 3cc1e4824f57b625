//! What is near what, with the fingerprints on disk: the join goes through files, one table after the other.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;
use simstore::fs::{Disk, Fs};
use simstore::join::{Components, DistinctOnDisk, Forest, JoinOnDisk, NearPair, Pair};
use simstore::{Error, Fingerprint, Result};

use super::super::corpus::{Corpus, Room};
use super::joined::Joined;
use super::stored::NearStored;
use super::{LookedFor, Near, Resume, stored};
use crate::numbers::{bytes, bytes_apart, count_of};
use crate::watch::Step;
use crate::{Notice, Watch};

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
    LookedFor { distance, with_pairs, stores, resume }: LookedFor<'_, F>,
    watch: &dyn Watch,
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
    let of_join = memory / SHARES * (SHARES - 1);
    let parts = JoinOnDisk::choose_parts(count, distance, of_join)?;
    let (joined, parts) = match resume {
        None => (None, parts),
        Some(Resume { folder, unfinished }) => {
            let joined = Joined::new(folder, unfinished, corpus, count, distance, with_pairs, step)?;
            let (joined, parts) = joined.with_parts(parts, JoinOnDisk::<F>::MAX_PARTS)?;
            (Some(joined), parts)
        }
    };
    let mut join = JoinOnDisk::create(&fs, &folder, parts, of_join).map_err(explain)?;
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
    let joining = Joining { with_pairs, joined, corpus, room, watch, step };
    let found = joining.all(&mut distinct).map_err(explain)?;
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
struct Joining<'a, F> {
    with_pairs: bool,
    corpus: &'a Corpus<F>,
    /// Where what tables have found is kept.
    joined: Option<Joined<'a>>,
    room: &'a Room,
    watch: &'a dyn Watch,
    step: &'a Step<'a>,
}

impl<F: Fingerprint> Joining<'_, F> {
    fn all(&self, distinct: &mut DistinctOnDisk<F>) -> Result<Found<F>> {
        let mut all = Found { forest: Forest::new(), pairs: Vec::new() };
        let mut found_there = 0;
        for table in 0..distinct.parts().tables() {
            if self.read(table, &mut all)? {
                found_there += 1;
                continue;
            }
            // Asked before each table, however short the one before was.
            Step::new(self.watch, "pairs found").add(0)?;
            let Found { forest, mut pairs } = self.table(table, distinct)?;
            let edges = forest.into_edges();
            if let Some(joined) = &self.joined {
                if self.with_pairs {
                    pairs.par_sort_unstable();
                    joined.write(table, &pairs)?;
                } else {
                    let edge = |&(a, b): &(F, F)| NearPair { a, b, distance: 0 };
                    joined.write(table, &edges.iter().map(edge).collect::<Vec<_>>())?;
                }
            }
            edges.into_iter().for_each(|(first, other)| all.forest.connect(first, other));
            all.pairs.append(&mut pairs);
        }
        if self.joined.is_some() {
            let tables = distinct.parts().tables();
            self.watch.notice(&Notice::Remark(&format!(
                "of {} of the join, {found_there} had been joined before",
                count_of(tables as u64, "table")
            )));
        }
        Ok(all)
    }

    /// Takes what a table has found before, if it is there.
    fn read(&self, table: usize, all: &mut Found<F>) -> Result<bool> {
        let Some(joined) = &self.joined else { return Ok(false) };
        let read = joined.read(table, self.corpus, |pair| {
            all.forest.connect(pair.a, pair.b);
            if self.with_pairs {
                all.pairs.push(pair);
            }
            self.step.add(1)?;
            all.check(self.room)
        })?;
        match read {
            None => Ok(false),
            Some(Ok(())) => Ok(true),
            Some(Err(reason)) => {
                self.watch.notice(&Notice::Warning(&format!("{reason}; the table is joined again")));
                Ok(false)
            }
        }
    }

    fn table(&self, table: usize, distinct: &mut DistinctOnDisk<F>) -> Result<Found<F>> {
        let found = Mutex::new(Found { forest: Forest::new(), pairs: Vec::new() });
        let failed = Mutex::new(None);
        let joined = distinct.join(table, |some| {
            // A thread that has panicked while it held a lock ends the command anyway.
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.forest.connect_pairs(some);
            if self.with_pairs {
                found.pairs.extend_from_slice(some);
            }
            match self.step.add(some.len() as u64).and_then(|()| found.check(self.room)) {
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
        Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<F: Fingerprint> Found<F> {
    fn check(&self, room: &Room) -> Result<()> {
        check(self.forest.memory() + (self.pairs.len() * size_of::<NearPair<F>>()) as u64, room)
    }
}

/// Refuses what leaves too little memory for the join.
fn check(memory: u64, room: &Room) -> Result<()> {
    let most = room.budget.bytes / 2;
    if memory <= most {
        return Ok(());
    }
    let [memory, most] = bytes_apart(memory, most);
    Err(Error::Refused(format!(
        "near fingerprints take {memory} so far, more than {most}, half of what {} leave for documents: give a greater option \
         `memory`, or a smaller option `distance`",
        bytes(room.budget.of)
    )))
}
