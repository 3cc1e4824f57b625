//! mih-rs: multi-index hashing in memory.
//!
//! A fingerprint is cut into blocks. Each block has a hash table with a place for each value of its b bits. The table
//! has 2^b / 64 groups of 64 values, each with a bitmap and a vector. With two blocks, the groups alone take 4 GiB,
//! for any number of fingerprints.

use std::io::{self, Write};

use anyhow::Result;
use mih_rs::Index as MihIndex;
use mih_rs::index::RangeSearcher;

use super::{HammingIndex, Searcher};
use crate::data::SourceIter;

pub(super) struct Mih {
    index: MihIndex<u64>,
    distance: usize,
}

impl Mih {
    pub(super) fn build(fingerprints: SourceIter, blocks: usize, distance: u32) -> Result<Mih> {
        let index = MihIndex::with_blocks(fingerprints.collect(), blocks)?;
        Ok(Mih { index, distance: distance as usize })
    }
}

/// Estimates the memory of the index in bytes: the fingerprints, and three parts for each block. These are groups of 32
/// bytes, an allocation for each group that is not empty, and the positions, in vectors with spare capacity.
pub(super) fn estimate_bytes(blocks: usize, count: f64) -> f64 {
    let groups = (64.0 / blocks as f64).ceil().exp2() / 64.0;
    8.0 * count + blocks as f64 * (32.0 * groups + 24.0 * groups.min(count) + 10.0 * count)
}

impl HammingIndex for Mih {
    fn searcher(&self) -> Box<dyn Searcher + '_> {
        Box::new(MihSearcher { mih: self, searcher: self.index.range_searcher() })
    }

    fn id_kind(&self) -> &'static str {
        "yes (position, u32)"
    }

    fn disk_bytes(&self) -> Result<Option<u64>> {
        let mut counter = CountingWriter(0);
        self.index.serialize_into(&mut counter)?;
        Ok(Some(counter.0))
    }
}

struct MihSearcher<'a> {
    mih: &'a Mih,
    searcher: RangeSearcher<'a, u64>,
}

impl Searcher for MihSearcher<'_> {
    fn count(&mut self, query: u64) -> usize {
        self.searcher.run(query, self.mih.distance).len()
    }

    fn matches(&mut self, query: u64) -> Vec<u64> {
        let positions = self.searcher.run(query, self.mih.distance);
        positions.iter().map(|&position| self.mih.index.codes()[position as usize]).collect()
    }
}

/// Counts written bytes and discards them.
struct CountingWriter(u64);

impl Write for CountingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
