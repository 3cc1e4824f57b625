//! Probing the tables of a segment for one query.
//!
//! A probe waits for memory four times: for the directory of the block index, the index itself, the head of a
//! block, and the place in the block. So all probes of a query go through these stages together, each
//! asking for what the next one reads, and the waits overlap.

use std::marker::PhantomData;

use super::header::TableHeader;
use super::reader::{CodecOf, Table};
use crate::codec::{Codec, Difference, EliasFano, FirstDifference, Gap, Near, Range};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::kernels::{self, Work};

/// The probes of a table: all ways to flip at most r of the first bits.
#[derive(Debug)]
pub(super) struct Flips<F> {
    /// The first bits of the prefix, [`TablePlan::probed_bits`](crate::plan::TablePlan).
    bits: u32,
    /// A mask of the bits after them.
    rest: F,
    /// Ascending, so that those that share a block follow one another.
    masks: Vec<F>,
}

impl<F: Fingerprint> Flips<F> {
    pub(super) fn new(header: &TableHeader<F>) -> Self {
        let bits = header.plan.probed_bits(header.fingerprints, header.codec);
        let mut masks = vec![F::ZERO];
        for _ in 0..header.plan.flips {
            // Each mask with one more bit, after those that it has.
            let fewer = masks.clone();
            masks.extend(fewer.iter().flat_map(|&mask| (0..bits).map(move |bit| mask | F::bit_mask(bit))));
            masks.sort_unstable();
            masks.dedup();
        }
        Flips { bits, rest: !F::prefix_mask(bits), masks }
    }

    /// The fingerprints that start with the bits of `low`.
    #[inline(always)]
    pub(super) fn range(&self, low: F) -> Range<F> {
        Range { low, high: low | self.rest }
    }

    /// Bytes in memory.
    pub(super) fn memory(&self) -> usize {
        self.masks.len() * F::BYTES
    }
}

/// Calls `visitor` with the number of a table and a permuted fingerprint for each stored fingerprint within
/// `distance` that the probes of that table come across: at least those that its plan says, none twice.
///
/// # Errors
/// [`Error::Corrupt`](crate::Error::Corrupt) if a block is damaged.
pub(crate) fn probe<F: Fingerprint>(
    tables: &[Table<F>],
    query: F,
    distance: u32,
    mut visitor: impl FnMut(usize, F),
) -> Result<()> {
    let mut done = 0;
    // The tables of a segment have one codec; were it otherwise, each kind would be probed by itself.
    for tables in tables.chunk_by(|a, b| a.header().codec == b.header().codec) {
        let visitor = |number: usize, value| visitor(done + number, value);
        match tables[0].header().codec {
            Codec::FirstDifference => {
                search::<F, Difference<FirstDifference>>(tables, query, distance, visitor)
            }
            Codec::Gap => search::<F, Difference<Gap>>(tables, query, distance, visitor),
            Codec::EliasFano => search::<F, EliasFano>(tables, query, distance, visitor),
        }?;
        done += tables.len();
    }
    Ok(())
}

fn search<F: Fingerprint, C: CodecOf<F>>(
    tables: &[Table<F>],
    query: F,
    distance: u32,
    visitor: impl FnMut(usize, F),
) -> Result<()> {
    Search { tables, query, distance, visitor, codec: PhantomData::<C> }.run()
}

/// From this number of blocks on, a range is worth being split by more bits than the prefix has.
const WIDE: usize = 64;

/// Probes that go through a stage together.
const TOGETHER: usize = 64;

/// Probes on their way through the stages, field by field: what one stage writes, the next reads as it is.
#[derive(Clone, Copy)]
struct Group<'a, F> {
    len: usize,
    table: [u8; TOGETHER],
    low: [F; TOGETHER],
    /// First where the bucket of the block index starts, then the block.
    block: [u32; TOGETHER],
    /// Where the bucket ends.
    end: [u32; TOGETHER],
    bytes: [&'a [u8]; TOGETHER],
    spot: [u32; TOGETHER],
}

impl<F: Fingerprint> Group<'_, F> {
    const EMPTY: Self = Group {
        len: 0,
        table: [0; TOGETHER],
        low: [F::ZERO; TOGETHER],
        block: [0; TOGETHER],
        end: [0; TOGETHER],
        bytes: [&[]; TOGETHER],
        spot: [0; TOGETHER],
    };
}

struct Search<'a, F, C, V> {
    tables: &'a [Table<F>],
    query: F,
    distance: u32,
    visitor: V,
    codec: PhantomData<C>,
}

impl<'a, F: Fingerprint, C: CodecOf<F>, V: FnMut(usize, F)> Search<'a, F, C, V> {
    fn run(mut self) -> Result<()> {
        let mut group = Group::EMPTY;
        for (number, table) in self.tables.iter().enumerate() {
            let (query, flips) = (table.permute(self.query), table.flips());
            let (distance, all) = (self.distance, self.distance >= table.header().plan.flips);
            for &mask in flips.masks.iter().filter(|mask| all || mask.count_ones() <= distance) {
                let low = (query ^ mask) & !flips.rest;
                table.index().prefetch(low);
                let i = group.len % TOGETHER;
                (group.table[i], group.low[i]) = (number as u8, low);
                group.len += 1;
                if group.len == TOGETHER {
                    self.finish(&mut group)?;
                }
            }
        }
        self.finish(&mut group)
    }

    /// Takes a group, whose lines of the directory have been asked for, through all stages.
    fn finish(&mut self, group: &mut Group<'a, F>) -> Result<()> {
        let tables = self.tables;
        let len = group.len.min(TOGETHER);
        for i in 0..len {
            let bucket = tables[usize::from(group.table[i])].index().bucket(group.low[i]);
            (group.block[i], group.end[i]) = (bucket.start, bucket.end);
        }
        for i in 0..len {
            let table = &tables[usize::from(group.table[i])];
            let block = table.index().find_in(group.block[i]..group.end[i], group.low[i]);
            table.prefetch_head(block);
            group.block[i] = block as u32;
        }
        for i in 0..len {
            let (table, block) = (&tables[usize::from(group.table[i])], group.block[i] as usize);
            // No block: all fingerprints of the table come before the range.
            group.bytes[i] = if block < table.blocks() { table.block(block)? } else { &[] };
            if C::AIMS && block < table.blocks() {
                let aim = C::of(table).aim(group.bytes[i], group.low[i], table.index().last(block));
                kernels::prefetch(group.bytes[i], aim.map_err(|damage| table.damaged(block, damage))?);
            }
        }
        kernels::dispatch(Locate::<F, C> { tables, group, codec: PhantomData })?;
        kernels::dispatch(Compare { search: self, group })?;
        group.len = 0;
        Ok(())
    }

    /// Compares the fingerprints of a range, which has the first `depth` bits in common and lies in several blocks,
    /// with the query.
    #[inline(never)]
    fn compare_blocks(&mut self, number: usize, near: Near<F>, range: Range<F>, depth: u32) -> Result<()> {
        let table = &self.tables[number];
        let from = table.index().find(range.low);
        let to = table.index().find(range.high);
        if to - from >= WIDE {
            return self.split(number, near, range, depth);
        }
        let blocks = from..table.blocks().min(to + 1);
        blocks.clone().skip(1).for_each(|block| table.prefetch_head(block));
        kernels::dispatch(CompareBlocks { search: self, number, near, range, blocks })
    }

    /// Goes down bit by bit from the first `depth` bits of a range, where very many fingerprints share them, as
    /// long as the bits so far can belong to a neighbour: in effect a longer prefix, for crowded places only.
    fn split(&mut self, number: usize, near: Near<F>, range: Range<F>, depth: u32) -> Result<()> {
        let table = &self.tables[number];
        let from = table.index().find(range.low);
        if depth == F::BITS || from == table.blocks() || table.index().last(from) >= range.high {
            return self.compare_blocks(number, near, range, depth);
        }
        let plan = &table.header().plan;
        for low in [range.low, range.low | F::bit_mask(depth)] {
            let flipped = (low ^ near.query) & F::prefix_mask(depth + 1);
            let in_prefix = flipped & F::prefix_mask(plan.prefix_bits);
            if flipped.count_ones() <= near.distance && in_prefix.count_ones() <= plan.flips {
                let range = Range { low, high: low | !F::prefix_mask(depth + 1) };
                self.split(number, near, range, depth + 1)?;
            }
        }
        Ok(())
    }
}

/// The stage that reads the heads of blocks.
struct Locate<'a, 'b, F, C> {
    tables: &'b [Table<F>],
    group: &'a mut Group<'b, F>,
    codec: PhantomData<C>,
}

impl<F: Fingerprint, C: CodecOf<F>> Work for Locate<'_, '_, F, C> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let group = self.group;
        for i in 0..group.len.min(TOGETHER) {
            let (table, bytes) = (&self.tables[usize::from(group.table[i])], group.bytes[i]);
            let range = table.flips().range(group.low[i]);
            group.spot[i] = NOTHING;
            if bytes.is_empty() {
                continue;
            }
            let last = table.index().last(group.block[i] as usize);
            if last < range.high {
                group.spot[i] = SEVERAL_BLOCKS;
                continue;
            }
            match C::of(table).locate(bytes, range, last) {
                Ok(Some(found)) => {
                    group.spot[i] = found.index;
                    for line in (found.bytes.0..=found.bytes.1).step_by(64) {
                        kernels::prefetch(bytes, line as usize);
                    }
                }
                Ok(None) => {}
                Err(damage) => return Err(table.damaged(group.block[i] as usize, damage)),
            }
        }
        Ok(())
    }
}

/// The stage that compares fingerprints with the query.
struct Compare<'a, 'b, F, C, V> {
    search: &'a mut Search<'b, F, C, V>,
    group: &'a Group<'b, F>,
}

impl<F: Fingerprint, C: CodecOf<F>, V: FnMut(usize, F)> Work for Compare<'_, '_, F, C, V> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let (search, group) = (self.search, self.group);
        let distance = search.distance;
        // The probes of a table follow one another: the query is permuted once for them.
        let mut permuted = (usize::MAX, search.query);
        for i in 0..group.len.min(TOGETHER) {
            if group.spot[i] == NOTHING {
                continue;
            }
            let number = usize::from(group.table[i]);
            let table = &search.tables[number];
            if permuted.0 != number {
                permuted = (number, table.permute(search.query));
            }
            let near = Near { query: permuted.1, distance };
            let range = table.flips().range(group.low[i]);
            if group.spot[i] == SEVERAL_BLOCKS {
                search.compare_blocks(number, near, range, table.flips().bits)?;
                continue;
            }
            let visitor = |_, value| (search.visitor)(number, value);
            if let Err(damage) = C::of(table).visit_from(group.bytes[i], group.spot[i], range, near, visitor)
            {
                return Err(table.damaged(group.block[i] as usize, damage));
            }
        }
        Ok(())
    }
}

/// The comparison of a range that lies in several blocks.
struct CompareBlocks<'a, 'b, F, C, V> {
    search: &'a mut Search<'b, F, C, V>,
    number: usize,
    near: Near<F>,
    range: Range<F>,
    blocks: std::ops::Range<usize>,
}

impl<F: Fingerprint, C: CodecOf<F>, V: FnMut(usize, F)> Work for CompareBlocks<'_, '_, F, C, V> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let table = &self.search.tables[self.number];
        for block in self.blocks {
            let (bytes, last) = (table.block(block)?, table.index().last(block));
            let visitor = |_, value| (self.search.visitor)(self.number, value);
            let visited = match C::of(table).locate(bytes, self.range, last) {
                Ok(Some(spot)) => C::of(table).visit_from(bytes, spot.index, self.range, self.near, visitor),
                Ok(None) => Ok(()),
                Err(damage) => Err(damage),
            };
            visited.map_err(|damage| table.damaged(block, damage))?;
        }
        Ok(())
    }
}

/// In the place of a spot: no fingerprint lies in the range.
const NOTHING: u32 = u32::MAX;
/// In the place of a spot: the range does not end in the block in which it starts.
const SEVERAL_BLOCKS: u32 = u32::MAX - 1;
