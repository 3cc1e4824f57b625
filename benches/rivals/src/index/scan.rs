//! Linear scan of all fingerprints, for comparison with the indexes.

use super::{HammingIndex, Searcher};
use crate::data::SourceIter;
use crate::linear_scan;

pub(super) struct Scan {
    fingerprints: Vec<u64>,
    distance: u32,
}

impl Scan {
    pub(super) fn build(fingerprints: SourceIter, distance: u32) -> Scan {
        Scan { fingerprints: fingerprints.collect(), distance }
    }
}

impl HammingIndex for Scan {
    fn searcher(&self) -> Box<dyn Searcher + '_> {
        Box::new(ScanSearcher { scan: self, positions: Vec::new() })
    }

    fn id_kind(&self) -> &'static str {
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
        linear_scan::find_near(&self.scan.fingerprints, query, self.scan.distance, &mut self.positions);
        self.positions.len()
    }

    fn matches(&mut self, query: u64) -> Vec<u64> {
        self.count(query);
        self.positions.iter().map(|&position| self.scan.fingerprints[position]).collect()
    }
}
