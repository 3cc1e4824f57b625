//! mih-rs: multi-index hashing in memory.
//!
//! A fingerprint is cut into blocks of b bits. Each block has a table that maps all 2^b values of the block to the
//! positions of fingerprints. The table is an array of groups. Each group is for 64 successive values: it has a bitmap of
//! the values that occur, and a vector of positions. With two blocks, the groups alone take 4 GiB, for any number of
//! fingerprints.

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

/// Estimates the memory of the index in bytes: the fingerprints, and a table for each block of their bits. A table has 32
/// bytes for each 64 successive values of the block. If any of these values occurs, the table also allocates a vector of
/// positions of fingerprints for them, with spare capacity.
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

/// Writer that only counts the bytes written to it. Writing an index to it gives the size of the index on disk.
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
