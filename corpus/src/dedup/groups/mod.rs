//! The fingerprints of a corpus: equal ones grouped, near groups joined.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use bitvec::vec::BitVec;
use rayon::prelude::*;
use simstore::join::{self, Pair};
use simstore::{Error, Fingerprint, Result};

use super::against::{Against, Stored};
use super::corpus::Corpus;
use crate::Watch;
use crate::output::Unfinished;
use crate::watch::Step;

mod in_memory;
mod joined;
mod on_disk;
mod stored;

/// What is looked for.
#[derive(Clone, Copy)]
struct LookedFor<'a, F: Fingerprint> {
    distance: u32,
    /// Whether all pairs are to be known.
    with_pairs: bool,
    stores: &'a [Against<F>],
    resume: Option<Resume<'a>>,
}

/// Where what has been joined is kept, so that a run carries on.
#[derive(Clone, Copy)]
pub(super) struct Resume<'a> {
    pub(super) folder: &'a Path,
    pub(super) unfinished: &'a Unfinished,
}

/// The fingerprints of which there is something to tell: those of several documents, and those that are near others.
struct Near<F> {
    /// The fingerprints, ascending.
    values: Vec<F>,
    /// Of each, the place of the first of its cluster.
    firsts: Vec<usize>,
    /// Near ones, by their places, if they are asked for.
    pairs: Vec<Pair>,
    /// What is near in stores: the place, and what is; by place, then the nearest first.
    stored: Vec<(usize, Stored<F>)>,
    /// Number of distinct fingerprints.
    distinct: usize,
}

/// Which documents are near which: the groups of equal fingerprints that have several documents, or a near group, or
/// something near in a store.
#[derive(Debug)]
pub(super) struct Groups<F> {
    /// Documents, those of equal fingerprints together and in order of input.
    documents: Vec<usize>,
    /// Where each group starts in `documents`, and the end.
    starts: Vec<usize>,
    /// The first group of each group's cluster.
    firsts: Vec<usize>,
    /// Near groups, if they were asked for.
    pairs: Vec<Pair>,
    /// What is near in stores: the group, and what is; by group, then the nearest first.
    stored: Vec<(usize, Stored<F>)>,
    /// Number of distinct fingerprints.
    distinct: usize,
    /// The distance within which groups are near.
    distance: u32,
    has_pairs: bool,
}

impl<F: Fingerprint> Groups<F> {
    /// Compares all documents that have a fingerprint with one another, and with those of stores.
    pub(super) fn new(
        corpus: &Corpus<F>,
        distance: u32,
        with_pairs: bool,
        stores: &[Against<F>],
        resume: Option<Resume<'_>>,
        watch: &dyn Watch,
    ) -> Result<Self> {
        let looked_for = LookedFor { distance, with_pairs, stores, resume };
        let step = Step::new(watch, "pairs found");
        step.add(0)?;
        let Near { values, firsts, pairs, stored, distinct } = match corpus.spilled() {
            None => in_memory::near(corpus, looked_for, &step)?,
            Some(spilled) => on_disk::near(corpus, &spilled.room, looked_for, watch, &step)?,
        };
        step.add(0)?;
        drop(step);
        let (documents, starts) = documents_of(&values, corpus)?;
        let mut told = documents.clone();
        told.par_sort_unstable();
        corpus.recall(told, watch)?;
        Ok(Groups { documents, starts, firsts, pairs, stored, distinct, distance, has_pairs: with_pairs })
    }

    /// Number of distinct fingerprints.
    pub(super) fn distinct(&self) -> usize {
        self.distinct
    }

    /// The documents of a group, in order.
    pub(super) fn members(&self, group: usize) -> &[usize] {
        &self.documents[self.starts[group]..self.starts[group + 1]]
    }

    /// Number of groups.
    pub(super) fn len(&self) -> usize {
        self.firsts.len()
    }

    /// The first group of a group's cluster.
    pub(super) fn first(&self, group: usize) -> usize {
        self.firsts[group]
    }

    /// What is near a group in stores, the nearest first; among those, by store and id.
    pub(super) fn stored(&self, group: usize) -> &[(usize, Stored<F>)] {
        let start = self.stored.partition_point(|(of, _)| *of < group);
        let length = self.stored[start..].partition_point(|(of, _)| *of == group);
        &self.stored[start..start + length]
    }

    /// All documents of all groups, ascending, with their groups.
    pub(super) fn documents(&self) -> Vec<(usize, usize)> {
        let mut documents: Vec<(usize, usize)> = (0..self.len())
            .flat_map(|group| self.members(group).iter().map(move |&document| (document, group)))
            .collect();
        documents.par_sort_unstable();
        documents
    }

    /// Whether near groups were asked for.
    pub(super) fn has_pairs(&self) -> bool {
        self.has_pairs
    }

    /// Of each group itself and the one that is nearest to it, of several the one with the first document: `(group, near, distance)`,
    /// sorted. The groups are joined for that, without keeping all pairs.
    pub(super) fn nearest(&self, corpus: &Corpus<F>, step: &Step<'_>) -> Result<Vec<(usize, usize, u32)>> {
        let values: Vec<F> =
            (0..self.len()).map(|group| corpus.fingerprint(self.members(group)[0])).collect();
        let nearest: Mutex<Vec<Option<(u32, usize, usize)>>> = Mutex::new(vec![None; values.len()]);
        join::visit_pairs(&values, self.distance, |batch| {
            // A thread that has panicked while it held the lock ends the command anyway.
            let mut nearest = nearest.lock().unwrap_or_else(PoisonError::into_inner);
            for &Pair { a, b, distance } in batch {
                for (group, other) in [(a, b), (b, a)] {
                    let found = (distance, self.members(other)[0], other);
                    nearest[group] = Some(nearest[group].map_or(found, |nearest| nearest.min(found)));
                }
            }
            if step.add(batch.len() as u64).is_ok() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        let nearest = nearest.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().enumerate();
        let of_group = |(group, nearest): (usize, Option<(u32, usize, usize)>)| {
            let other = nearest.map(|(distance, _, other)| (group, other, distance));
            std::iter::once((group, group, 0)).chain(other)
        };
        Ok(nearest.flat_map(of_group).collect())
    }

    /// All pairs of near groups in both directions, each group with itself too, sorted: `(group, near, distance)`.
    /// There are only those of each with itself if near groups were not asked for.
    pub(super) fn near(&self) -> Vec<(usize, usize, u32)> {
        let mut near = Vec::with_capacity(self.pairs.len() * 2 + self.len());
        near.extend((0..self.len()).map(|group| (group, group, 0)));
        for pair in &self.pairs {
            near.push((pair.a, pair.b, pair.distance));
            near.push((pair.b, pair.a, pair.distance));
        }
        near.par_sort_unstable();
        near
    }

    /// Visits all pairs of near documents `a` < `b` with their distance, in order of `a`, then of `b`. There are
    /// only those of equal ones if near groups were not asked for.
    pub(super) fn visit_pairs(&self, visitor: impl FnMut(usize, usize, u32) -> Result<()>) -> Result<()> {
        let members = |group, members: &mut Vec<usize>| members.extend_from_slice(self.members(group));
        visit_in_order(&self.documents(), &self.near(), members, visitor)
    }
}

/// Visits pairs of documents `a` < `b`, in order of `a`, then of `b`: `documents` ascend, each with its group; `near` says of
/// each group, ascending, which groups are near it; `members` collects the documents of a group.
pub(super) fn visit_in_order<T: Copy>(
    documents: &[(usize, usize)],
    near: &[(usize, usize, T)],
    members: impl Fn(usize, &mut Vec<usize>),
    mut visitor: impl FnMut(usize, usize, T) -> Result<()>,
) -> Result<()> {
    let (mut partners, mut of_group) = (Vec::new(), Vec::new());
    for &(document, group) in documents {
        let first = near.partition_point(|&(of, ..)| of < group);
        for &(_, other, how) in near[first..].iter().take_while(|&&(of, ..)| of == group) {
            of_group.clear();
            members(other, &mut of_group);
            let later = of_group.iter().filter(|&&member| member > document);
            partners.extend(later.map(|&member| (member, how)));
        }
        partners.sort_unstable_by_key(|&(partner, _)| partner);
        for (partner, how) in partners.drain(..) {
            visitor(document, partner, how)?;
        }
    }
    Ok(())
}

/// Fingerprints that are looked up by one thread, at least.
const MIN_LOOKED_UP: usize = 1 << 12;

/// Ascending fingerprints in which others are looked up.
struct Places<'v, F> {
    values: &'v [F],
    /// Most documents have no such fingerprint: a bit for each of many hashes tells so at once.
    hashes: BitVec,
}

impl<'v, F: Fingerprint> Places<'v, F> {
    fn of(values: &'v [F]) -> Self {
        let bits = (values.len() * 16).max(64).ilog2();
        let mut places = Places { values, hashes: BitVec::repeat(false, 1 << bits) };
        for &value in values {
            let hash = places.hash(value);
            places.hashes.set(hash, true);
        }
        places
    }

    fn hash(&self, value: F) -> usize {
        let folded = value.low_u64() ^ value.high_u64().rotate_left(32);
        (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - self.hashes.len().ilog2())) as usize
    }

    /// The documents of a corpus that have one of the values, some at a time: the place of the value, and the document.
    fn visit(&self, corpus: &Corpus<F>, mut visitor: impl FnMut(Vec<(usize, usize)>)) -> Result<()> {
        corpus.visit_fingerprints(|first, some| {
            visitor(
                (some.par_iter().with_min_len(MIN_LOOKED_UP).enumerate())
                    .filter(|&(_, &value)| self.hashes[self.hash(value)])
                    .filter_map(|(at, value)| Some((self.values.binary_search(value).ok()?, first + at)))
                    .collect(),
            );
            Ok(())
        })
    }

    /// A value that no document has.
    fn missing(&self, corpus: &Corpus<F>) -> Result<Option<F>> {
        let mut is_there: BitVec = BitVec::repeat(false, self.values.len());
        self.visit(corpus, |found| found.into_iter().for_each(|(place, _)| is_there.set(place, true)))?;
        Ok(is_there.first_zero().map(|place| self.values[place]))
    }
}

/// The documents of each of some ascending fingerprints, and where those of each start, and the end.
///
/// # Errors
/// [`Error::Bug`] if no document has one of them: what comes from files was looked up before.
fn documents_of<F: Fingerprint>(values: &[F], corpus: &Corpus<F>) -> Result<(Vec<usize>, Vec<usize>)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    Places::of(values).visit(corpus, |more| found.extend(more))?;
    found.par_sort_unstable();
    let mut starts: Vec<usize> = Vec::with_capacity(values.len() + 1);
    for (at, &(group, _)) in found.iter().enumerate() {
        if starts.len() == group {
            starts.push(at);
        }
    }
    if starts.len() != values.len() {
        return Err(Error::Bug("a fingerprint that no document has".to_owned()));
    }
    starts.push(found.len());
    Ok((found.into_iter().map(|(_, document)| document).collect(), starts))
}

#[cfg(test)]
mod tests {
    use super::super::preference::Keep;
    use super::*;
    use crate::Item;

    #[test]
    fn pairs_are_those_of_the_plain_loop() {
        // A few values, often equal or near.
        let mut state = 1_u64;
        let fingerprints: Vec<Option<u64>> = (0..300)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let value = state >> 59 << 40 | 1 << (state >> 40 & 7);
                (value & 0xff != 1).then_some(value)
            })
            .collect();
        let mut corpus = Corpus::new(&Keep::First, false, None);
        for (position, &fingerprint) in (0..).zip(&fingerprints) {
            corpus.push(&Item::new(position, fingerprint));
        }
        let groups = Groups::new(&corpus, 2, true, &[], None, &()).unwrap();
        let mut expected = Vec::new();
        for (a, x) in fingerprints.iter().enumerate() {
            for (b, y) in fingerprints.iter().enumerate().skip(a + 1) {
                if let (Some(x), Some(y)) = (x, y)
                    && x.distance(*y) <= 2
                {
                    expected.push((a, b, x.distance(*y)));
                }
            }
        }
        let mut found = Vec::new();
        groups
            .visit_pairs(|a, b, distance| {
                found.push((a, b, distance));
                Ok(())
            })
            .unwrap();
        assert!(!expected.is_empty());
        assert_eq!(found, expected);
    }
}
