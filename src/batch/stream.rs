//! Streaming the stored fingerprints past the queries.

use std::ops::{ControlFlow, Range};

use rayon::prelude::*;

use super::batch_match::BatchMatch;
use super::design::CHUNK;
use super::index::{GroupIndex, PROBES, QueryIndex};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::progress;
use crate::segment::{Match, Segment};

/// Calls `visitor` with the matches of a segment, some or none at a time, from all threads.
pub(super) fn stream<F: Fingerprint>(
    segment: &Segment<F>,
    index: &QueryIndex<F>,
    visitor: &(impl Fn(&[BatchMatch<F>]) -> ControlFlow<()> + Sync),
) -> Result<()> {
    let table = &segment.tables()[0];
    let blocks = table.blocks();
    let mean = segment.stats().fingerprints / blocks.max(1) as u64;
    let step = (CHUNK / (mean as usize).max(1)).max(1);
    (0..blocks.div_ceil(step)).into_par_iter().try_for_each_init(
        || Chunk::new(segment, index),
        |chunk, number| {
            // At a large distance one chunk may take long.
            let ask = || progress::go_on(visitor(&[]));
            chunk.search(number * step..blocks.min((number + 1) * step), &ask)?;
            progress::go_on(visitor(&chunk.matches))
        },
    )
}

/// The fingerprints of some blocks that follow one another, decoded. Kept from one to the next for its memory.
struct Chunk<'a, F> {
    segment: &'a Segment<F>,
    index: &'a QueryIndex<F>,
    fingerprints: Vec<F>,
    /// Each block, and where its fingerprints start.
    starts: Vec<(usize, usize)>,
    group_index: GroupIndex,
    passed: Vec<u32>,
    hits: Vec<Hit>,
    matches: Vec<BatchMatch<F>>,
}

/// A match whose id is not known yet.
struct Hit {
    query: u32,
    /// Place in the chunk.
    place: u32,
    distance: u32,
}

impl<'a, F: Fingerprint> Chunk<'a, F> {
    fn new(segment: &'a Segment<F>, index: &'a QueryIndex<F>) -> Self {
        Chunk {
            segment,
            index,
            fingerprints: Vec::new(),
            starts: Vec::new(),
            group_index: GroupIndex::default(),
            passed: Vec::new(),
            hits: Vec::new(),
            matches: Vec::new(),
        }
    }

    /// Finds the matches in some blocks. Asks now and then whether to go on.
    fn search(&mut self, blocks: Range<usize>, ask: &impl Fn() -> Result<()>) -> Result<()> {
        self.fingerprints.clear();
        self.starts.clear();
        self.hits.clear();
        self.matches.clear();
        let mut compared = 0;
        self.segment.tables()[0].will_need(blocks.clone());
        for block in blocks {
            let start = self.fingerprints.len();
            self.segment.tables()[0].decode_block(block, &mut self.fingerprints)?;
            self.starts.push((block, start));
            // While the block is in the nearest cache.
            for tail in 0..self.index.tails.len() {
                compared += self.search_tail(tail, start);
                if compared >= PROBES {
                    ask()?;
                    compared = 0;
                }
            }
        }
        self.search_head(ask)?;
        self.find_ids()
    }

    /// The search by one tail, from a place in the chunk on; returns how many queries it has compared.
    #[inline(never)]
    fn search_tail(&mut self, number: usize, start: usize) -> usize {
        let (index, fingerprints) = (self.index, &self.fingerprints[start..]);
        let tail = &index.tails[number];
        if self.passed.len() < fingerprints.len() {
            self.passed.resize(fingerprints.len(), 0);
        }
        let mut compared = 0;
        let count = tail.filter(fingerprints, &mut self.passed);
        for &place in &self.passed[..count] {
            let fingerprint = fingerprints[place as usize];
            for (query, position) in tail.candidates(fingerprint) {
                compared += 1;
                let difference = fingerprint ^ query;
                let distance = difference.count_ones();
                if distance <= index.distance && index.finds_first(number, difference) {
                    self.hits.push(Hit { query: position, place: start as u32 + place, distance });
                }
            }
        }
        compared
    }

    /// The search by the head, group by group.
    fn search_head(&mut self, ask: &impl Fn() -> Result<()>) -> Result<()> {
        let head = &self.index.head;
        let mut start = 0;
        for group in self.fingerprints.chunk_by(|&a, &b| head.group(a) == head.group(b)) {
            let hits = &mut self.hits;
            head.search(group, &mut self.group_index, self.index.distance, ask, |query, place, distance| {
                hits.push(Hit { query, place: (start + place) as u32, distance });
            })?;
            start += group.len();
        }
        Ok(())
    }

    /// Makes matches of the hits.
    fn find_ids(&mut self) -> Result<()> {
        for &Hit { query, place, distance } in &self.hits {
            let place = place as usize;
            let fingerprint = self.fingerprints[place];
            let (block, start) = self.starts[self.starts.partition_point(|&(_, start)| start <= place) - 1];
            let matches = &mut self.matches;
            self.segment.visit_ids(block, place - start, |id| {
                let found = Match { fingerprint, distance, id };
                matches.push(BatchMatch { query: query as usize, found });
            })?;
        }
        Ok(())
    }
}
