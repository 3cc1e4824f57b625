//! Connected components of the similar pairs of crowds.
//!
//! Sets that are connected already are not compared: in a crowd whose members are all similar, each is compared with one other.

use std::collections::HashMap;

use rayon::prelude::*;
use simstore::Result;

use crate::pipeline::dense_groups::{Asked, Crowds, batches};
use crate::pipeline::prefix_filter::{Entry, Index, Space, UNCHANGED, Visitor};
use crate::rows::{Nearness, of_similarity};
use simstore_corpus::Step;

/// Sets that are looked at together.
const SETS: usize = 64;
/// A list with as many entries is long: its connected entries are counted.
const LONG_LIST: usize = 64;

/// Visits some similar pairs of members of crowds, which connect the same sets as all similar pairs. `members` are ascending.
pub(crate) fn visit_edges<I: Iterator<Item = u32>>(
    crowds: &Crowds<'_>,
    members: impl Fn() -> I,
    step: &Step<'_>,
    mut visitor: impl FnMut(u32, u32) -> Result<()>,
) -> Result<()> {
    let mut connected = Connected::new(crowds);
    for some in batches(members(), SETS, step) {
        let some = some?;
        let last = some.last().copied();
        let found = connected.find(some)?;
        for (at, (asked, similar)) in found.iter().enumerate() {
            let mut similar = similar.clone();
            let node = connected.forest.add();
            similar.iter().for_each(|&other| connected.forest.connect(node, other));
            // The sets of this round are not looked up: they are the last ones of the index.
            let first = node - at as u32;
            for (other, (earlier, _)) in (first..).zip(&found[..at]) {
                if connected.forest.root(other) != connected.forest.root(node)
                    && crowds.alike(asked, earlier).is_some()
                {
                    connected.forest.connect(node, other);
                    similar.push(other);
                }
            }
            connected.add(asked);
            similar.iter().try_for_each(|&other| visitor(asked.set, connected.index.set(other)))?;
        }
        if connected.index.is_full() {
            for some in batches(members().skip_while(|&set| Some(set) <= last), SETS, step) {
                for (asked, similar) in connected.find(some?)? {
                    similar.windows(2).for_each(|pair| connected.forest.connect(pair[0], pair[1]));
                    similar.iter().try_for_each(|&other| visitor(asked.set, connected.index.set(other)))?;
                }
            }
            connected = Connected::new(crowds);
        }
    }
    Ok(())
}

/// Sets of an index, and which of them are connected.
struct Connected<'a> {
    crowds: &'a Crowds<'a>,
    index: Index<'a>,
    /// The sets by their places in the index.
    forest: Forest,
    /// Number of sets at the start of each long list that are connected with one another.
    starts: HashMap<u64, usize>,
}

impl<'a> Connected<'a> {
    fn new(crowds: &'a Crowds<'a>) -> Self {
        let forest = Forest { parents: Vec::new(), sizes: Vec::new() };
        Connected { crowds, index: Index::new(crowds), forest, starts: HashMap::new() }
    }

    /// For each of some sets, one similar set of each component that has any, by its place in the index.
    fn find(&self, sets: Vec<u32>) -> Result<Vec<(Asked, Vec<u32>)>> {
        let least = of_similarity(self.crowds.rule.least);
        let find = |space: &mut Space, set: u32| {
            let asked = self.crowds.ask(set)?;
            let mut unconnected = Unconnected { connected: self, roots: Vec::new(), similar: Vec::new() };
            self.index.visit_similar(&asked, least, space, &mut unconnected);
            Ok((asked, unconnected.similar))
        };
        sets.into_par_iter().map_init(Space::default, find).collect()
    }

    /// Adds a set, whose node was added before.
    fn add(&mut self, asked: &Asked) {
        let Connected { index, forest, starts, .. } = self;
        index.add(asked, |list, entries| {
            if entries.len() < LONG_LIST {
                return;
            }
            let (start, root) = (starts.entry(list).or_insert(1), forest.root(entries[0].0));
            while *start < entries.len() && forest.root(entries[*start].0) == root {
                *start += 1;
            }
        });
    }
}

/// Visitor of sets that are not connected with one yet.
struct Unconnected<'a> {
    connected: &'a Connected<'a>,
    /// Roots of components that have a similar set.
    roots: Vec<u32>,
    /// One similar set of each of these.
    similar: Vec<u32>,
}

impl Visitor for Unconnected<'_> {
    #[inline]
    fn wants(&self, at: u32) -> bool {
        self.roots.is_empty() || !self.roots.contains(&self.connected.forest.root(at))
    }

    fn unwanted(&self, list: u64, entries: &[Entry]) -> usize {
        match entries.first() {
            Some(&(first, _)) if !self.wants(first) => {
                self.connected.starts.get(&list).copied().unwrap_or_default()
            }
            _ => 0,
        }
    }

    fn visit(&mut self, at: u32, _: Nearness) -> Nearness {
        self.roots.push(self.connected.forest.root(at));
        self.similar.push(at);
        UNCHANGED
    }
}

/// Union-find that is also read by several threads: a smaller tree is put below a larger one.
struct Forest {
    parents: Vec<u32>,
    sizes: Vec<u32>,
}

impl Forest {
    /// Adds a node by itself.
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
