//! A pass over all fingerprints of a segment, which looks up each fingerprint in the in-memory indexes of the
//! queries.

use std::ops::{ControlFlow, Range};

use rayon::prelude::*;

use super::batch_match::BatchMatch;
use super::batch_plan::CHUNK_FINGERPRINTS;
use super::query_index::{CANCEL_CHECK_PROBES, GroupIndex, QueryIndex};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::progress;
use crate::segment::{Match, Segment};

/// Finds the matches of all queries in a segment, on all threads. Each thread searches one chunk (consecutive
/// blocks) of the segment at a time, and calls `visitor` with the matches of the chunk. During a chunk, it also
/// calls `visitor` with an empty slice from time to time, so that the visitor can cancel.
pub(super) fn stream<F: Fingerprint>(
    segment: &Segment<F>,
    index: &QueryIndex<F>,
    visitor: &(impl Fn(&[BatchMatch<F>]) -> ControlFlow<()> + Sync),
) -> Result<()> {
    let table = &segment.tables()[0];
    let blocks = table.blocks();
    let mean = segment.stats().fingerprints / blocks.max(1) as u64;
    let step = (CHUNK_FINGERPRINTS / (mean as usize).max(1)).max(1);
    (0..blocks.div_ceil(step)).into_par_iter().try_for_each_init(
        || ChunkSearch::new(segment, index),
        |chunk, number| {
            // At a large distance, one chunk may take long.
            let check_cancelled = || progress::break_to_cancelled(visitor(&[]));
            chunk.search(number * step..blocks.min((number + 1) * step), &check_cancelled)?;
            progress::break_to_cancelled(visitor(&chunk.matches))
        },
    )
}

/// Search for matches by one thread. The thread searches chunk by chunk, and reuses the buffers for the next chunk. A
/// chunk consists of the decoded fingerprints of consecutive blocks.
struct ChunkSearch<'a, F> {
    segment: &'a Segment<F>,
    index: &'a QueryIndex<F>,
    fingerprints: Vec<F>,
    /// For each block of the chunk: the index of the block in the table, and the position of its first
    /// fingerprint in `fingerprints`.
    starts: Vec<(usize, usize)>,
    group_index: GroupIndex,
    passed: Vec<u32>,
    pending: Vec<UnresolvedMatch>,
    matches: Vec<BatchMatch<F>>,
}

/// A match of a query and a stored fingerprint. The ids of the fingerprint are not looked up yet.
struct UnresolvedMatch {
    query: u32,
    /// Position of the stored fingerprint in [`ChunkSearch::fingerprints`].
    position: u32,
    distance: u32,
}

impl<'a, F: Fingerprint> ChunkSearch<'a, F> {
    fn new(segment: &'a Segment<F>, index: &'a QueryIndex<F>) -> Self {
        ChunkSearch {
            segment,
            index,
            fingerprints: Vec::new(),
            starts: Vec::new(),
            group_index: GroupIndex::default(),
            passed: Vec::new(),
            pending: Vec::new(),
            matches: Vec::new(),
        }
    }

    /// Finds the matches in a range of blocks, and stores them in `self.matches`. Calls `check_cancelled` from time
    /// to time.
    fn search(&mut self, blocks: Range<usize>, check_cancelled: &impl Fn() -> Result<()>) -> Result<()> {
        self.fingerprints.clear();
        self.starts.clear();
        self.pending.clear();
        self.matches.clear();
        let mut compared = 0;
        self.segment.tables()[0].will_need(blocks.clone());
        for block in blocks {
            let start = self.fingerprints.len();
            self.segment.tables()[0].decode_block(block, &mut self.fingerprints)?;
            self.starts.push((block, start));
            // The tails are searched while the block is in the nearest cache.
            for tail in 0..self.index.tails.len() {
                compared += self.search_tail(tail, start);
                if compared >= CANCEL_CHECK_PROBES {
                    check_cancelled()?;
                    compared = 0;
                }
            }
        }
        self.search_head(check_cancelled)?;
        self.find_ids()
    }

    /// Finds the matches in which the query and the stored fingerprint have the same tail (see
    /// [`TailIndex`](super::query_index::TailIndex)). `number` is the index of the tail. Searches the fingerprints
    /// of the chunk from position `start` on. Returns how many times a fingerprint was compared with a query.
    #[inline(never)]
    fn search_tail(&mut self, number: usize, start: usize) -> usize {
        let (index, fingerprints) = (self.index, &self.fingerprints[start..]);
        let tail = &index.tails[number];
        if self.passed.len() < fingerprints.len() {
            self.passed.resize(fingerprints.len(), 0);
        }
        let mut compared = 0;
        let count = tail.filter(fingerprints, &mut self.passed);
        for &position in &self.passed[..count] {
            let fingerprint = fingerprints[position as usize];
            for (query, query_position) in tail.candidates(fingerprint) {
                compared += 1;
                let difference = fingerprint ^ query;
                let distance = difference.count_ones();
                if distance <= index.distance && index.finds_first(number, difference) {
                    self.pending.push(UnresolvedMatch {
                        query: query_position,
                        position: start as u32 + position,
                        distance,
                    });
                }
            }
        }
        compared
    }

    /// Finds the matches in which few of the leading bits differ between the query and the stored fingerprint (see
    /// [`HeadIndex`](super::query_index::HeadIndex)). Searches group by group. The stored fingerprints with the same
    /// first bits are a group.
    fn search_head(&mut self, check_cancelled: &impl Fn() -> Result<()>) -> Result<()> {
        let head = &self.index.head;
        let mut start = 0;
        for group in self.fingerprints.chunk_by(|&a, &b| head.group(a) == head.group(b)) {
            let pending = &mut self.pending;
            head.search(
                group,
                &mut self.group_index,
                self.index.distance,
                check_cancelled,
                |query, position, distance| {
                    pending.push(UnresolvedMatch { query, position: (start + position) as u32, distance });
                },
            )?;
            start += group.len();
        }
        Ok(())
    }

    /// Looks up the ids of the matches in `pending`, and appends one match per id to `matches`.
    fn find_ids(&mut self) -> Result<()> {
        for &UnresolvedMatch { query, position, distance } in &self.pending {
            let position = position as usize;
            let fingerprint = self.fingerprints[position];
            let (block, start) =
                self.starts[self.starts.partition_point(|&(_, start)| start <= position) - 1];
            let matches = &mut self.matches;
            self.segment.visit_ids(block, position - start, |id| {
                let found = Match { fingerprint, distance, id };
                matches.push(BatchMatch { query: query as usize, found });
            })?;
        }
        Ok(())
    }
}
