//! Clusters of fingerprints as a spanning forest, without a list of all pairs.

use super::{Components, FingerprintPair};
use crate::fingerprint::Fingerprint;
use crate::radix;

/// Clusters of fingerprints, updated with each pair.
///
/// For a cluster of n fingerprints, a forest keeps n - 1 edges. Further edges inside a cluster are superfluous. The
/// forest collects superfluous edges, and removes many at a time. It holds at most 65,536 superfluous edges, or as
/// many as it has other edges, whichever number is greater. Forests of the parts of a join can be merged in any
/// order, with the same result.
///
/// ```
/// use simstore::join::Forest;
///
/// let mut forest = Forest::<u64>::new();
/// [(9, 4), (1, 2), (7, 9), (4, 7)].into_iter().for_each(|(a, b)| forest.connect(a, b));
/// forest.connect(5, 5);
/// forest.connect(2, 2);
/// assert_eq!(forest.into_edges(), [(1, 2), (4, 7), (4, 9), (5, 5)]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Forest<F> {
    edges: Vec<(F, F)>,
    /// Number of buffered edges at which superfluous edges (between members of the same cluster) are removed.
    limit: usize,
}

/// Minimum of [`Forest::limit`].
const MIN_EDGE_LIMIT: usize = 1 << 16;

impl<F: Fingerprint> Forest<F> {
    /// Creates an empty forest.
    pub fn new() -> Self {
        Forest { edges: Vec::new(), limit: MIN_EDGE_LIMIT }
    }

    /// Connects the clusters of two fingerprints. If `a` equals `b`, and this fingerprint is in no cluster yet,
    /// it becomes a cluster of one member.
    pub fn connect(&mut self, a: F, b: F) {
        if self.edges.len() == self.limit {
            self.compact();
            self.limit = (self.edges.len() * 2).max(MIN_EDGE_LIMIT);
        }
        self.edges.push((a, b));
    }

    /// Connects the clusters of the two fingerprints of a pair, for each pair.
    pub fn connect_pairs(&mut self, pairs: &[FingerprintPair<F>]) {
        pairs.iter().for_each(|pair| self.connect(pair.a, pair.b));
    }

    /// Adds the edges of another forest (see [`Forest::into_edges`]).
    pub fn merge(&mut self, edges: &[(F, F)]) {
        edges.iter().for_each(|&(a, b)| self.connect(a, b));
    }

    /// Returns the edges in the form of [`Forest::into_edges`], without consuming the forest.
    ///
    /// ```
    /// let mut forest = simstore::join::Forest::<u64>::new();
    /// forest.merge(&[(9, 4), (7, 9)]);
    /// assert_eq!(forest.edges(), [(4, 7), (4, 9)]);
    /// forest.connect(1, 4);
    /// assert_eq!(forest.edges(), [(1, 4), (1, 7), (1, 9)]);
    /// ```
    pub fn edges(&mut self) -> &[(F, F)] {
        self.compact();
        &self.edges
    }

    /// Peak memory of the forest, in bytes. The peak is reached when edges between members of the same cluster are
    /// removed, which is done for many edges at a time.
    pub fn memory(&self) -> u64 {
        // Each edge, and its two members with their positions.
        (self.edges.capacity() * (4 * F::BYTES + 8)) as u64
    }

    /// Returns the edges of the forest, ascending. An edge (a, b) connects the smallest member `a` of a cluster
    /// with another member `b` of it. A cluster of one member has one edge, from the member to itself.
    pub fn into_edges(mut self) -> Vec<(F, F)> {
        self.compact();
        self.edges
    }

    /// Replaces the edges by the smallest set of edges with the same clusters, as [`Forest::into_edges`] returns it.
    fn compact(&mut self) {
        let mut members: Vec<F> = self.edges.iter().flat_map(|&(a, b)| [a, b]).collect();
        radix::sort(&mut members, |member| member);
        members.dedup();
        let mut components = Components::new(members.len());
        let position = |member: F| members.partition_point(|&other| other < member);
        for &(a, b) in &self.edges {
            components.connect(position(a), position(b));
        }
        self.edges.clear();
        let mut is_alone = vec![true; members.len()];
        for index in 0..members.len() {
            let first = components.first(index);
            if first != index {
                is_alone[first] = false;
                is_alone[index] = false;
                self.edges.push((members[first], members[index]));
            }
        }
        let alone = members.iter().zip(is_alone).filter(|&(_, is_alone)| is_alone);
        self.edges.extend(alone.map(|(&member, _)| (member, member)));
        self.edges.sort_unstable();
    }
}
