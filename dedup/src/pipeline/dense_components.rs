//! Connected components of similar documents in dense groups. In a *dense group*, each document (*member*) is near
//! many others.
//!
//! Two members that are already in the same component are not compared. So if all members of a group are similar,
//! each member is compared with only one other.

use std::collections::HashMap;

use rayon::prelude::*;
use simstore::Result;

use crate::pipeline::dense_groups::{DenseGroups, DenseMember, batches};
use crate::pipeline::prefix_filter::{Posting, PrefixIndex, SearchBuffer, SimilarVisitor, UNCHANGED};
use crate::rows::{PairScore, score_from_similarity};
use simstore_corpus::Stage;

/// Number of members whose similar documents are searched at the same time, on all cores.
const MEMBER_BATCH: usize = 64;
/// Least length of a posting list that has an entry in [`ConnectedIndex::connected_prefixes`].
const MIN_TRACKED_LIST: usize = 64;

/// Visits some of the similar pairs of `members`: enough pairs to connect the same components as all similar pairs.
/// `members` are unique documents in [dense groups](DenseGroups), in ascending order.
pub(crate) fn visit_edges<I: Iterator<Item = u32>>(
    groups: &DenseGroups<'_>,
    members: impl Fn() -> I,
    stage: &Stage<'_>,
    mut visitor: impl FnMut(u32, u32) -> Result<()>,
) -> Result<()> {
    let mut connected = ConnectedIndex::new(groups);
    for batch in batches(members(), MEMBER_BATCH, stage) {
        let batch = batch?;
        let last = batch.last().copied();
        let found = connected.find(batch)?;
        for (at, (member, similar)) in found.iter().enumerate() {
            let mut similar = similar.clone();
            let node = connected.forest.add();
            similar.iter().for_each(|&other| connected.forest.connect(node, other));
            // The search did not see the earlier members of this batch, which are the last ones in the index by now.
            let first = node - at as u32;
            for (other, (earlier, _)) in (first..).zip(&found[..at]) {
                if connected.forest.root(other) != connected.forest.root(node)
                    && groups.verify(member, earlier).is_some()
                {
                    connected.forest.connect(node, other);
                    similar.push(other);
                }
            }
            connected.add(member);
            similar.iter().try_for_each(|&other| visitor(member.unique, connected.index.member(other)))?;
        }
        if connected.index.is_full() {
            for batch in batches(members().skip_while(|&unique| Some(unique) <= last), MEMBER_BATCH, stage) {
                for (member, similar) in connected.find(batch?)? {
                    similar.windows(2).for_each(|pair| connected.forest.connect(pair[0], pair[1]));
                    similar
                        .iter()
                        .try_for_each(|&other| visitor(member.unique, connected.index.member(other)))?;
                }
            }
            connected = ConnectedIndex::new(groups);
        }
    }
    Ok(())
}

/// Index of documents in [dense groups](DenseGroups), called *members*, and the connected components of the
/// members in the index.
struct ConnectedIndex<'a> {
    groups: &'a DenseGroups<'a>,
    index: PrefixIndex<'a>,
    /// Connected components of the members. The number of a node is the position of the member in the index.
    forest: UnionFind,
    /// For the key of each long posting list: number of postings at the start of the list whose members are all in
    /// the same component.
    connected_prefixes: HashMap<u64, usize>,
}

impl<'a> ConnectedIndex<'a> {
    fn new(groups: &'a DenseGroups<'a>) -> Self {
        let forest = UnionFind { parents: Vec::new(), sizes: Vec::new() };
        ConnectedIndex { groups, index: PrefixIndex::new(groups), forest, connected_prefixes: HashMap::new() }
    }

    /// Searches the index for documents similar to each document in `uniques`. Finds one similar document in each
    /// component that has any. Returns each document of `uniques`, with the similar documents found for it (their
    /// positions in the index).
    fn find(&self, uniques: Vec<u32>) -> Result<Vec<(DenseMember, Vec<u32>)>> {
        let min_score = score_from_similarity(self.groups.rule.min_similarity);
        let find = |buffer: &mut SearchBuffer, unique: u32| {
            let member = self.groups.read_member(unique)?;
            let mut unconnected =
                UnconnectedVisitor { connected: self, roots: Vec::new(), similar: Vec::new() };
            self.index.visit_similar(&member, min_score, buffer, &mut unconnected);
            Ok((member, unconnected.similar))
        };
        uniques.into_par_iter().map_init(SearchBuffer::default, find).collect()
    }

    /// Adds a member to the index. The union-find `forest` must already have a node for the member.
    fn add(&mut self, member: &DenseMember) {
        let ConnectedIndex { index, forest, connected_prefixes, .. } = self;
        index.add(member, |list, postings| {
            if postings.len() < MIN_TRACKED_LIST {
                return;
            }
            let (start, root) = (connected_prefixes.entry(list).or_insert(1), forest.root(postings[0].0));
            while *start < postings.len() && forest.root(postings[*start].0) == root {
                *start += 1;
            }
        });
    }
}

/// Visitor of a search in a [`ConnectedIndex`]. Finds one similar member in each component, and skips the other
/// members of that component.
struct UnconnectedVisitor<'a> {
    connected: &'a ConnectedIndex<'a>,
    /// Root nodes of the components with a similar member.
    roots: Vec<u32>,
    /// Similar member that was found in each component of `roots`, as the position of the member in the index.
    similar: Vec<u32>,
}

impl SimilarVisitor for UnconnectedVisitor<'_> {
    #[inline]
    fn wants(&self, at: u32) -> bool {
        self.roots.is_empty() || !self.roots.contains(&self.connected.forest.root(at))
    }

    fn skippable_prefix(&self, list: u64, postings: &[Posting]) -> usize {
        match postings.first() {
            Some(&(first, _)) if !self.wants(first) => {
                self.connected.connected_prefixes.get(&list).copied().unwrap_or_default()
            }
            _ => 0,
        }
    }

    fn visit(&mut self, at: u32, _: PairScore) -> PairScore {
        self.roots.push(self.connected.forest.root(at));
        self.similar.push(at);
        UNCHANGED
    }
}

/// Union-find by size. A look-up does not compress paths, so several threads can look up roots at the same time.
struct UnionFind {
    parents: Vec<u32>,
    sizes: Vec<u32>,
}

impl UnionFind {
    /// Adds a node that is not connected to others, and returns its number.
    fn add(&mut self) -> u32 {
        let node = self.parents.len() as u32;
        self.parents.push(node);
        self.sizes.push(1);
        node
    }

    fn root(&self, mut node: u32) -> u32 {
        while self.parents[node as usize] != node {
            node = self.parents[node as usize];
        }
        node
    }

    fn connect(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        if a != b {
            let (large, small) =
                if self.sizes[a as usize] >= self.sizes[b as usize] { (a, b) } else { (b, a) };
            self.parents[small as usize] = large;
            self.sizes[large as usize] += self.sizes[small as usize];
        }
    }
}
