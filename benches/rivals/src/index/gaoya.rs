//! gaoya's simhash index: a hash map for each combination of blocks, as in the paper (Manku, Jain, Das Sarma 2007).
//!
//! The index reports fingerprints that differ in fewer bits than its distance. So to find all fingerprints within k bits,
//! the index is built with the distance k + 1. The keys of each hash map then leave out k + 1 blocks of the fingerprint.

use anyhow::{Result, ensure};
use gaoya::simhash::SimHashIndex;

use super::{HammingIndex, Searcher};
use crate::data::FingerprintSource;

pub(super) struct Gaoya {
    index: SimHashIndex<u64, u32>,
    source: FingerprintSource,
}

impl Gaoya {
    pub(super) fn build(
        source: &FingerprintSource,
        count: usize,
        blocks: usize,
        distance: u32,
    ) -> Result<Gaoya> {
        let distance = distance as usize + 1;
        ensure!(blocks > distance, "that many bits can differ in every one of {blocks} blocks");
        let mut index = SimHashIndex::new(blocks, distance);
        index.par_bulk_insert_pairs((0..).zip(source.iter(count)?).collect());
        Ok(Gaoya { index, source: source.clone() })
    }
}

/// Estimates the memory in bytes for building the index. Each hash map takes memory for its entries, with the usual share
/// of empty slots, and for vectors of ids. The map from ids to fingerprints and the list of inputs take more.
pub(super) fn estimate_bytes(blocks: usize, count: f64, distance: u32) -> f64 {
    let key_blocks = blocks.saturating_sub(distance as usize + 1);
    let maps: f64 = (0..key_blocks).map(|i| (blocks - i) as f64 / (i + 1) as f64).product();
    let keys = (64.0 * key_blocks as f64 / blocks as f64).exp2().min(count);
    maps * (90.0 * keys + 6.0 * count) + 45.0 * count
}

impl HammingIndex for Gaoya {
    fn searcher(&self) -> Box<dyn Searcher + '_> {
        Box::new(GaoyaSearcher(self))
    }

    fn id_kind(&self) -> &'static str {
        "yes (u32)"
    }
}

struct GaoyaSearcher<'a>(&'a Gaoya);

impl Searcher for GaoyaSearcher<'_> {
    fn count(&mut self, query: u64) -> usize {
        self.0.index.query(&query).len()
    }

    fn matches(&mut self, query: u64) -> Vec<u64> {
        // The index has the fingerprints, but no method that returns them.
        let ids = self.0.index.query(&query).into_iter().map(|&id| u64::from(id));
        self.0.source.get_all(ids).expect("a file that could be read before")
    }
}
