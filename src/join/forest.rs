//! What pairs connect, without keeping the pairs.

use super::{Components, NearPair};
use crate::fingerprint::Fingerprint;
use crate::radix;

/// The clusters that pairs of fingerprints make, as they come in: no more is kept than tells what is connected, which is one
/// pair fewer for each cluster than it has members, and as many again on the way. So forests can be made of the parts of a join, and
/// be put together, in any order: the result is the same.
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
    /// So many edges are taken before they are reduced again.
    limit: usize,
}

/// Edges that are not worth reducing.
const FEW: usize = 1 << 16;

impl<F: Fingerprint> Forest<F> {
    /// A forest of no edges.
    pub fn new() -> Self {
        Forest { edges: Vec::new(), limit: FEW }
    }

    /// Connects the clusters of two fingerprints. One that is connected with itself has a cluster, of which it may be the only
    /// member.
    pub fn connect(&mut self, a: F, b: F) {
        if self.edges.len() == self.limit {
            self.reduce();
            self.limit = (self.edges.len() * 2).max(FEW);
        }
        self.edges.push((a, b));
    }

    /// Connects the fingerprints of each pair.
    pub fn connect_pairs(&mut self, pairs: &[NearPair<F>]) {
        pairs.iter().for_each(|pair| self.connect(pair.a, pair.b));
    }

    /// Takes in the edges of another forest.
    pub fn merge(&mut self, edges: &[(F, F)]) {
        edges.iter().for_each(|&(a, b)| self.connect(a, b));
    }

    /// The edges as [`Forest::into_edges`] gives them; they stay in the forest.
    ///
    /// ```
    /// let mut forest = simstore::join::Forest::<u64>::new();
    /// forest.merge(&[(9, 4), (7, 9)]);
    /// assert_eq!(forest.edges(), [(4, 7), (4, 9)]);
    /// forest.connect(1, 4);
    /// assert_eq!(forest.edges(), [(1, 4), (1, 7), (1, 9)]);
    /// ```
    pub fn edges(&mut self) -> &[(F, F)] {
        self.reduce();
        &self.edges
    }

    /// The memory that it takes, in bytes, and while it is reduced.
    pub fn memory(&self) -> u64 {
        // The edges, and of each both ends and their places.
        (self.edges.capacity() * (4 * F::BYTES + 8)) as u64
    }

    /// Each fingerprint that is connected to a smaller one, with the smallest of its cluster before it: ascending by cluster, then
    /// by fingerprint. One that is connected with none but itself is twice in its edge.
    pub fn into_edges(mut self) -> Vec<(F, F)> {
        self.reduce();
        self.edges
    }

    fn reduce(&mut self) {
        let mut members: Vec<F> = self.edges.iter().flat_map(|&(a, b)| [a, b]).collect();
        radix::sort(&mut members, |member| member);
        members.dedup();
        let mut components = Components::new(members.len());
        let place = |member: F| members.partition_point(|&other| other < member);
        for &(a, b) in &self.edges {
            components.connect(place(a), place(b));
        }
        self.edges.clear();
        let mut is_alone = vec![true; members.len()];
        for at in 0..members.len() {
            let first = components.first(at);
            if first != at {
                is_alone[first] = false;
                is_alone[at] = false;
                self.edges.push((members[first], members[at]));
            }
        }
        let alone = members.iter().zip(is_alone).filter(|&(_, is_alone)| is_alone);
        self.edges.extend(alone.map(|(&member, _)| (member, member)));
        self.edges.sort_unstable();
    }
}
