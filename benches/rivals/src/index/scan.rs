//! No index: all fingerprints, one after the other.

use super::{Index, Searcher};
use crate::data::Fingerprints;
use crate::popcount;

pub(super) struct Scan {
    fingerprints: Vec<u64>,
    distance: u32,
}

impl Scan {
    pub(super) fn build(fingerprints: Fingerprints, distance: u32) -> Scan {
        Scan { fingerprints: fingerprints.collect(), distance }
    }
}

impl Index for Scan {
    fn searcher(&self) -> Box<dyn Searcher + '_> {
        Box::new(ScanSearcher { scan: self, positions: Vec::new() })
    }

    fn ids(&self) -> &'static str {
        "position"
    }
}

struct ScanSearcher<'a> {
    scan: &'a Scan,
    positions: Vec<usize>,
}

impl Searcher for ScanSearcher<'_> {
    fn count(&mut self, query: u64) -> usize {
        self.positions.clear();
        popcount::near(&self.scan.fingerprints, query, self.scan.distance, &mut self.positions);
        self.positions.len()
    }

    fn matches(&mut self, query: u64) -> Vec<u64> {
        self.count(query);
        self.positions.iter().map(|&position| self.scan.fingerprints[position]).collect()
    }
}
