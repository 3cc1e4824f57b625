//! Probing the tables of a segment for one query.
//!
//! A probe waits for memory three times: for a line of the block index's directory, the head of a block, and the place
//! in the block. So all probes of a query go through these stages together, each asking for what the next one
//! reads, and the waits overlap.

use std::marker::PhantomData;

use super::header::TableHeader;
use super::reader::{CodecOf, Table};
use crate::codec::{Codec, Difference, EliasFano, FirstDifference, Gap, Near, Range};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::kernels::{self, Work};

/// The probes of a table: all ways to flip at most r of the first bits. With r flipped, no other bit of the prefix
/// may differ, and the probe reads the fingerprints that share all of it; with fewer, those that share the first bits.
#[derive(Debug)]
pub(super) struct Flips<F> {
    /// How many first bits may be flipped.
    bits: u32,
    /// Those with fewer than r bits flipped, then those with r: both ascending, so that probes that share a block
    /// follow one another.
    masks: Vec<F>,
    /// The number of masks with fewer than r bits.
    wide: usize,
}

impl<F: Fingerprint> Flips<F> {
    pub(super) fn new(header: &TableHeader<F>) -> Self {
        let (bits, most) = (header.plan.flipped_bits(header.fingerprints), header.plan.flips);
        let mut masks = vec![F::ZERO];
        for _ in 0..most {
            // Each mask with one more bit, after those that it has.
            let fewer = masks.clone();
            masks.extend(fewer.iter().flat_map(|&mask| (0..bits).map(move |bit| mask | F::bit_mask(bit))));
            masks.sort_unstable();
            masks.dedup();
        }
        masks.sort_by_key(|mask| mask.count_ones() == most);
        let wide = masks.partition_point(|mask| mask.count_ones() < most);
        Flips { bits, masks, wide }
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

/// Probes that start through the stages together.
const TOGETHER: usize = 64;
/// For them and for the further blocks of their ranges, of at most [`FEW`] each.
const ROOM: usize = 96;
const FEW: usize = 4;

/// Probes on their way through the stages, field by field: what one stage writes, the next reads as it is.
#[derive(Clone, Copy)]
struct Group<'a, F> {
    len: usize,
    table: [u8; ROOM],
    /// How many of the first bits the range's fingerprints have in common.
    shared: [u8; ROOM],
    low: [F; ROOM],
    block: [u32; ROOM],
    bytes: [&'a [u8]; ROOM],
    spot: [u32; ROOM],
}

impl<F: Fingerprint> Group<'_, F> {
    #[inline(always)]
    fn range(&self, i: usize) -> Range<F> {
        let low = self.low[i];
        Range { low, high: low | !F::prefix_mask(u32::from(self.shared[i])) }
    }

    /// Adds probe `i` once more, for another block of its range.
    #[inline(always)]
    fn repeat(&mut self, i: usize, block: usize) {
        let next = self.len % ROOM;
        (self.table[next], self.shared[next], self.low[next]) = (self.table[i], self.shared[i], self.low[i]);
        (self.block[next], self.spot[next]) = (block as u32, ONE_BLOCK);
        self.len += 1;
    }

    const EMPTY: Self = Group {
        len: 0,
        table: [0; ROOM],
        shared: [0; ROOM],
        low: [F::ZERO; ROOM],
        block: [0; ROOM],
        bytes: [&[]; ROOM],
        spot: [0; ROOM],
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
            let (wide, narrow) = flips.masks.split_at(flips.wide);
            for (masks, shared) in [(wide, flips.bits), (narrow, table.header().plan.prefix_bits)] {
                let prefix = F::prefix_mask(shared);
                for &mask in masks.iter().filter(|mask| all || mask.count_ones() <= distance) {
                    let low = (query ^ mask) & prefix;
                    table.index().prefetch(low);
                    let i = group.len % ROOM;
                    (group.table[i], group.shared[i], group.low[i]) = (number as u8, shared as u8, low);
                    group.len += 1;
                    if group.len == TOGETHER {
                        self.finish(&mut group)?;
                    }
                }
            }
        }
        self.finish(&mut group)
    }

    /// Takes a group, whose lines of the directory have been asked for, through all stages.
    fn finish(&mut self, group: &mut Group<'a, F>) -> Result<()> {
        let tables = self.tables;
        kernels::dispatch(FindBlocks::<F, C> { tables, group, codec: PhantomData });
        for i in 0..group.len.min(ROOM) {
            tables[usize::from(group.table[i])].fetch(group.block[i] as usize);
        }
        for i in 0..group.len.min(ROOM) {
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

/// The stage that finds the blocks in which the ranges start.
struct FindBlocks<'a, 'b, F, C> {
    tables: &'b [Table<F>],
    group: &'a mut Group<'b, F>,
    codec: PhantomData<C>,
}

impl<F: Fingerprint, C: CodecOf<F>> Work for FindBlocks<'_, '_, F, C> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let group = self.group;
        for i in 0..group.len.min(ROOM) {
            let table = &self.tables[usize::from(group.table[i])];
            let index = table.index();
            let (block, more) = match index.find_range(group.low[i], u32::from(group.shared[i])) {
                Some(found) => found,
                None => {
                    let Range { low, high } = group.range(i);
                    let block = index.find_last(low);
                    let one = block == table.blocks() || index.last(block) >= high;
                    (block, if one { 0 } else { usize::MAX })
                }
            };
            let several = more > FEW || group.len + more > ROOM;
            group.block[i] = block as u32;
            group.spot[i] = if several { SEVERAL_BLOCKS } else { ONE_BLOCK };
            let more = if several { 0 } else { more };
            for next in block + 1..=block + more {
                group.repeat(i, next);
            }
            for block in block..=block + more {
                table.prefetch_head(block);
                if C::AIMS {
                    index.prefetch_last(block);
                }
            }
        }
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
        for i in 0..group.len.min(ROOM) {
            let (table, bytes) = (&self.tables[usize::from(group.table[i])], group.bytes[i]);
            let range = group.range(i);
            if group.spot[i] == SEVERAL_BLOCKS {
                continue;
            }
            group.spot[i] = NOTHING;
            if bytes.is_empty() {
                continue;
            }
            let last = if C::AIMS { table.index().last(group.block[i] as usize) } else { F::MAX };
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
        for i in 0..group.len.min(ROOM) {
            if group.spot[i] == NOTHING {
                continue;
            }
            let number = usize::from(group.table[i]);
            let table = &search.tables[number];
            if permuted.0 != number {
                permuted = (number, table.permute(search.query));
            }
            let near = Near { query: permuted.1, distance };
            let range = group.range(i);
            if group.spot[i] == SEVERAL_BLOCKS {
                search.compare_blocks(number, near, range, u32::from(group.shared[i]))?;
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
/// In the place of a spot, until there is one: this block of the range is looked at.
const ONE_BLOCK: u32 = u32::MAX - 2;
/// In the place of a spot: the range goes on to more blocks than the group has room for.
const SEVERAL_BLOCKS: u32 = u32::MAX - 1;
