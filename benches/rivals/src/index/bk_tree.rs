//! bk-tree: a Burkhard-Keller tree. A node has a fingerprint, and one child for each distance from this fingerprint.

use bk_tree::{BKTree, Metric};

use super::{HammingIndex, Searcher};
use crate::data::SourceIter;

pub(super) struct BkTree {
    tree: BKTree<u64, Hamming>,
    distance: u32,
}

struct Hamming;

impl Metric<u64> for Hamming {
    fn distance(&self, a: &u64, b: &u64) -> u32 {
        (a ^ b).count_ones()
    }

    fn threshold_distance(&self, a: &u64, b: &u64, threshold: u32) -> Option<u32> {
        Some(self.distance(a, b)).filter(|distance| *distance <= threshold)
    }
}

impl BkTree {
    pub(super) fn build(fingerprints: SourceIter, distance: u32) -> BkTree {
        let mut tree = BKTree::new(Hamming);
        tree.extend(fingerprints);
        BkTree { tree, distance }
    }
}

/// Estimates the memory of the tree in bytes: one node per fingerprint, and a hash map of children for most nodes.
pub(super) fn estimate_bytes(count: f64) -> f64 {
    130.0 * count
}

impl HammingIndex for BkTree {
    fn searcher(&self) -> Box<dyn Searcher + '_> {
        Box::new(BkTreeSearcher(self))
    }

    fn id_kind(&self) -> &'static str {
        "no"
    }
}

struct BkTreeSearcher<'a>(&'a BkTree);

impl Searcher for BkTreeSearcher<'_> {
    fn count(&mut self, query: u64) -> usize {
        self.0.tree.find(&query, self.0.distance).count()
    }

    fn matches(&mut self, query: u64) -> Vec<u64> {
        self.0.tree.find(&query, self.0.distance).map(|(_, &fingerprint)| fingerprint).collect()
    }
}
