//! The fingerprints of a corpus: equal ones grouped, near groups joined.

use std::sync::{Mutex, PoisonError};

use bitvec::vec::BitVec;
use rayon::prelude::*;
use simstore::Fingerprint;
use simstore::join::{self, Components, Pair};

use crate::corpus::Corpus;
use crate::failure::Outcome;

/// Which documents are near which: the groups of equal fingerprints that have several documents or a near group.
#[derive(Debug)]
pub(crate) struct Groups {
    /// Documents, those of equal fingerprints together and in order of input.
    documents: Vec<usize>,
    /// Where each group starts in `documents`, and the end.
    starts: Vec<usize>,
    /// The first group of each group's cluster.
    firsts: Vec<usize>,
    /// Near groups, if they were asked for.
    pairs: Vec<Pair>,
    /// Number of distinct fingerprints.
    distinct: usize,
}

impl Groups {
    /// Compares all documents that have a fingerprint.
    pub(crate) fn new<F: Fingerprint>(corpus: &Corpus<F>, distance: u32, with_pairs: bool) -> Outcome<Self> {
        let mut sorted = corpus.all();
        join::sort(&mut sorted);
        // All but one of each are moved to the end.
        let mut repeated: Vec<F> = Vec::new();
        let distinct = {
            let mut last = 0;
            for at in 1..sorted.len() {
                if sorted[at] == sorted[last] {
                    if repeated.last() != Some(&sorted[at]) {
                        repeated.push(sorted[at]);
                    }
                } else {
                    last += 1;
                    sorted[last] = sorted[at];
                }
            }
            sorted.truncate(last + 1);
            sorted
        };
        let near = Mutex::new((Components::new(distinct.len()), Vec::new()));
        join::visit_pairs(&distinct, distance, |batch| {
            // A thread that has panicked while it held the lock ends the command anyway.
            let (components, pairs) = &mut *near.lock().unwrap_or_else(PoisonError::into_inner);
            batch.iter().for_each(|pair| components.connect(pair.a, pair.b));
            if with_pairs {
                pairs.extend_from_slice(batch);
            }
        })?;
        let (mut components, mut pairs) = near.into_inner().unwrap_or_else(PoisonError::into_inner);

        // From here on only the few of which there is something to tell.
        let mut told: BitVec = BitVec::repeat(false, distinct.len());
        for place in 0..distinct.len() {
            let first = components.first(place);
            if first != place {
                told.set(place, true);
                told.set(first, true);
            }
        }
        repeated
            .iter()
            .filter_map(|value| distinct.binary_search(value).ok())
            .for_each(|at| told.set(at, true));
        let places: Vec<usize> = told.iter_ones().collect();
        let values: Vec<F> = places.iter().map(|&place| distinct[place]).collect();
        // Each of them is among the places.
        let group_of = |place: usize| places.partition_point(|&other| other < place);
        let firsts = places.iter().map(|&place| group_of(components.first(place))).collect();
        for pair in &mut pairs {
            (pair.a, pair.b) = (group_of(pair.a), group_of(pair.b));
        }
        let (count, _) = (distinct.len(), drop(distinct));
        let (documents, starts) = documents_of(&values, corpus);
        Ok(Groups { documents, starts, firsts, pairs, distinct: count })
    }

    /// Number of distinct fingerprints.
    pub(crate) fn distinct(&self) -> usize {
        self.distinct
    }

    /// The documents of a group, in order.
    fn members(&self, group: usize) -> &[usize] {
        &self.documents[self.starts[group]..self.starts[group + 1]]
    }

    /// Documents that are joined by a chain of near ones; members and clusters in order of input.
    pub(crate) fn clusters(&self) -> Vec<Vec<usize>> {
        let mut members: Vec<(usize, usize)> = (0..self.firsts.len())
            .flat_map(|group| self.members(group).iter().map(move |&document| (self.firsts[group], document)))
            .collect();
        members.par_sort_unstable();
        let mut clusters: Vec<Vec<usize>> = members
            .chunk_by(|a, b| a.0 == b.0)
            .map(|cluster| cluster.iter().map(|&(_, document)| document).collect())
            .collect();
        clusters.sort_unstable();
        clusters
    }

    /// Visits all pairs of near documents `a` < `b` with their distance, in order of `a`, then of `b`. There are
    /// only those of equal ones if near groups were not asked for.
    pub(crate) fn visit_pairs(&self, mut visitor: impl FnMut(usize, usize, u32) -> Outcome) -> Outcome {
        let groups = self.firsts.len();
        let mut near: Vec<(usize, usize, u32)> = Vec::with_capacity(self.pairs.len() * 2 + groups);
        near.extend((0..groups).map(|group| (group, group, 0)));
        for pair in &self.pairs {
            near.push((pair.a, pair.b, pair.distance));
            near.push((pair.b, pair.a, pair.distance));
        }
        near.par_sort_unstable();
        let mut documents: Vec<(usize, usize)> = (0..groups)
            .flat_map(|group| self.members(group).iter().map(move |&document| (document, group)))
            .collect();
        documents.par_sort_unstable();
        let mut partners = Vec::new();
        for (document, group) in documents {
            let first = near.partition_point(|&(of, ..)| of < group);
            for &(_, other, distance) in near[first..].iter().take_while(|&&(of, ..)| of == group) {
                let members = self.members(other);
                let later = &members[members.partition_point(|&member| member <= document)..];
                partners.extend(later.iter().map(|&member| (member, distance)));
            }
            partners.sort_unstable();
            for (partner, distance) in partners.drain(..) {
                visitor(document, partner, distance)?;
            }
        }
        Ok(())
    }
}

/// The documents of each of some ascending fingerprints, and where those of each start, and the end.
fn documents_of<F: Fingerprint>(values: &[F], corpus: &Corpus<F>) -> (Vec<usize>, Vec<usize>) {
    // Most documents have no such fingerprint: a bit for each of many hashes tells so at once.
    let bits = (values.len() * 16).max(64).ilog2();
    let hash = |value: F| {
        let folded = value.low_u64() ^ value.high_u64().rotate_left(32);
        (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize
    };
    let mut hashes: BitVec = BitVec::repeat(false, 1 << bits);
    values.iter().for_each(|&value| hashes.set(hash(value), true));
    let mut found: Vec<(usize, usize)> = (corpus.fingerprints.par_iter().enumerate())
        .filter(|&(_, &value)| hashes[hash(value)])
        .filter_map(|(document, value)| Some((values.binary_search(value).ok()?, document)))
        .filter(|&(_, document)| corpus.fingerprint(document).is_some())
        .collect();
    found.par_sort_unstable();
    let mut starts: Vec<usize> = Vec::with_capacity(values.len() + 1);
    for (at, &(group, _)) in found.iter().enumerate() {
        if starts.len() == group {
            starts.push(at);
        }
    }
    starts.push(found.len());
    (found.into_iter().map(|(_, document)| document).collect(), starts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::Item;

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
        let mut corpus = Corpus::default();
        for (position, &fingerprint) in (0..).zip(&fingerprints) {
            corpus.push(Item::new(position, fingerprint));
        }
        let groups = Groups::new(&corpus, 2, true).unwrap();
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
        let clusters = groups.clusters();
        assert_eq!(clusters, join::clusters(300, expected.iter().map(|&(a, b, _)| (a, b))));
    }
}
