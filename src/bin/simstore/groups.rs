//! The fingerprints of a corpus: equal ones grouped, near groups joined.

use rayon::prelude::*;
use simstore::Fingerprint;
use simstore::join::{self, Pair};

use crate::failure::Outcome;

/// Which documents are near which.
#[derive(Debug)]
pub(crate) struct Groups {
    /// Documents, those of equal fingerprints together and in order of input.
    documents: Vec<usize>,
    /// Where each group starts in `documents`, and the end.
    starts: Vec<usize>,
    /// Near groups.
    pairs: Vec<Pair>,
    /// Number of documents, those without a fingerprint included.
    count: usize,
}

impl Groups {
    /// Compares all documents that have a fingerprint.
    pub(crate) fn new<F: Fingerprint>(fingerprints: &[Option<F>], distance: u32) -> Outcome<Self> {
        let mut sorted: Vec<(F, usize)> =
            (0..).zip(fingerprints).filter_map(|(at, value)| Some(((*value)?, at))).collect();
        sorted.par_sort_unstable();
        let mut distinct: Vec<F> = Vec::new();
        let mut starts = Vec::new();
        for (at, &(fingerprint, _)) in sorted.iter().enumerate() {
            if distinct.last() != Some(&fingerprint) {
                distinct.push(fingerprint);
                starts.push(at);
            }
        }
        starts.push(sorted.len());
        let documents = sorted.iter().map(|&(_, document)| document).collect();
        drop(sorted);
        let pairs = join::self_join(&distinct, distance)?;
        Ok(Groups { documents, starts, pairs, count: fingerprints.len() })
    }

    /// Number of groups: of distinct fingerprints.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The documents of a group, in order.
    fn members(&self, group: usize) -> &[usize] {
        &self.documents[self.starts[group]..self.starts[group + 1]]
    }

    /// Documents that are joined by a chain of near ones; members and clusters in order of input.
    pub(crate) fn clusters(&self) -> Vec<Vec<usize>> {
        let equal = (0..self.len()).flat_map(|group| {
            let (first, rest) = self.members(group).split_at(1);
            rest.iter().map(move |&document| (first[0], document))
        });
        let near = self.pairs.iter().map(|pair| (self.members(pair.a)[0], self.members(pair.b)[0]));
        join::clusters(self.count, equal.chain(near))
    }

    /// Visits all pairs of near documents `a` < `b` with their distance, in order of `a`, then of `b`.
    pub(crate) fn visit_pairs(&self, mut visitor: impl FnMut(usize, usize, u32) -> Outcome) -> Outcome {
        let mut near: Vec<(usize, usize, u32)> = Vec::with_capacity(self.pairs.len() * 2 + self.len());
        near.extend((0..self.len()).map(|group| (group, group, 0)));
        for pair in &self.pairs {
            near.push((pair.a, pair.b, pair.distance));
            near.push((pair.b, pair.a, pair.distance));
        }
        near.par_sort_unstable();
        let mut group_of = vec![usize::MAX; self.count];
        for group in 0..self.len() {
            self.members(group).iter().for_each(|&document| group_of[document] = group);
        }
        let mut partners = Vec::new();
        for (document, &group) in group_of.iter().enumerate().filter(|&(_, &group)| group != usize::MAX) {
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let groups = Groups::new(&fingerprints, 2).unwrap();
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
