//! Hash maps from the blocks of bits of a fingerprint to the fingerprints that have them: the simplest index.
//!
//! If fewer bits differ than there are blocks, one block is equal. So a query looks up each of its blocks, and compares all
//! fingerprints found with itself.

use std::collections::HashMap;

use anyhow::{Result, ensure};

use super::{HammingIndex, Searcher};
use crate::data::SourceIter;

pub(super) struct BlockMaps {
    /// One map for each block, from its bits to the fingerprints.
    maps: Vec<HashMap<u64, Vec<u64>>>,
    distance: u32,
}

impl BlockMaps {
    pub(super) fn build(fingerprints: SourceIter, blocks: usize, distance: u32) -> Result<BlockMaps> {
        ensure!((1..=64).contains(&blocks), "expected 1 to 64 blocks");
        ensure!(blocks > distance as usize, "that many bits can differ in every one of {blocks} blocks");
        let mut maps = vec![HashMap::<u64, Vec<u64>>::new(); blocks];
        for fingerprint in fingerprints {
            for (block, map) in maps.iter_mut().enumerate() {
                map.entry(bits_of_block(fingerprint, block, blocks)).or_default().push(fingerprint);
            }
        }
        Ok(BlockMaps { maps, distance })
    }

    /// Calls `visitor` with the matches of a query, each once.
    fn visit(&self, query: u64, mut visitor: impl FnMut(u64)) {
        let blocks = self.maps.len();
        for (block, map) in self.maps.iter().enumerate() {
            for &fingerprint in map.get(&bits_of_block(query, block, blocks)).into_iter().flatten() {
                // A match with several equal blocks counts in the first of them.
                let is_equal = |block| bits_of_block(fingerprint ^ query, block, blocks) == 0;
                if (fingerprint ^ query).count_ones() <= self.distance && !(0..block).any(is_equal) {
                    visitor(fingerprint);
                }
            }
        }
    }
}

/// Returns the bits of a block. The widths of the blocks differ by at most one bit.
fn bits_of_block(fingerprint: u64, block: usize, blocks: usize) -> u64 {
    let (start, end) = (block * 64 / blocks, (block + 1) * 64 / blocks);
    fingerprint << start >> (64 - (end - start))
}

/// Estimates the memory in bytes: in each map a vector with its unused capacity for each key, and the slots of the map.
pub(super) fn estimate_bytes(blocks: usize, count: f64) -> f64 {
    let keys = (64.0 / blocks as f64).exp2().min(count);
    blocks as f64 * (12.0 * count + 100.0 * keys)
}

impl HammingIndex for BlockMaps {
    fn searcher(&self) -> Box<dyn Searcher + '_> {
        Box::new(BlockMapsSearcher(self))
    }

    fn id_kind(&self) -> &'static str {
        "no"
    }
}

struct BlockMapsSearcher<'a>(&'a BlockMaps);

impl Searcher for BlockMapsSearcher<'_> {
    fn count(&mut self, query: u64) -> usize {
        let mut count = 0;
        self.0.visit(query, |_| count += 1);
        count
    }

    fn matches(&mut self, query: u64) -> Vec<u64> {
        let mut matches = Vec::new();
        self.0.visit(query, |fingerprint| matches.push(fingerprint));
        matches
    }
}
