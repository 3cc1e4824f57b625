//! Probes tables of one or several segments for one query.
//!
//! A *probe* looks for the fingerprints with one prefix: the query's prefix with some bits flipped. It waits for memory three
//! times: for a line of the block index's directory, for the start of a block, and for the fingerprints in the block. So the
//! probes of a query go through these three stages in groups. Each stage prefetches the memory that the next stage reads, for
//! all probes of the group, and the waits overlap.

use std::iter::Peekable;

use super::bloom_filter::{BloomFilter, QueryBits};
use super::line_search::probe_lines;
use super::probe_group::{GROUP_CAPACITY, MAX_EXTRA_BLOCKS, ProbeGroup, ProbeLocation};
use super::probe_hit::ProbeHit;
use super::reader::Table;
use crate::codec::{Block, BlockCodec, CodecVariant, FingerprintRange, HammingBall, with_codec};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::plan::{MAX_TABLES, PROBE_GROUP_LEN, SPLIT_MIN_BLOCKS};
use crate::simd::{self, Kernel};

/// Probes `tables`, which may belong to several segments. Calls `visitor` with the fingerprints found within
/// `distance` of `query`. In each table, these include at least the fingerprints whose prefix differs from the
/// query's prefix in at most as many bits as the table's plan may flip. A table reports no fingerprint twice, but
/// several tables may report the same one.
///
/// # Errors
/// [`Error::Corrupt`](crate::Error::Corrupt) if a block is damaged.
pub(crate) fn probe<'a, F: Fingerprint>(
    tables: impl Iterator<Item = &'a Table<F>> + Clone,
    query: F,
    distance: u32,
    mut visitor: impl FnMut(ProbeHit<F>),
) -> Result<()> {
    let (mut rest, mut done) = (tables.peekable(), 0);
    // The tables of a store have one codec. If there were several, each run of tables with the same kind of codec
    // would be probed separately.
    while let Some(first) = rest.peek().copied() {
        let visitor = |hit: ProbeHit<F>| visitor(ProbeHit { table: done + hit.table, ..hit });
        if first.line_probes.is_some() {
            done += probe_lines(&mut rest, query, distance, visitor)?;
            continue;
        }
        done += with_codec!(&first.codec, codec => {
            probe_same_codec((first, codec), &mut rest, query, distance, visitor)
        })?;
    }
    Ok(())
}

/// Length of the array that holds the probed tables if there are few. The tables of one segment fit in it, and
/// mostly those of two segments.
const SHORT_LIST_LEN: usize = 12;

/// A table to probe, with its codec as a concrete type, and the query permuted for the table.
struct ProbedTable<'a, F, C> {
    table: &'a Table<F>,
    codec: &'a C,
    query: F,
    /// Bloom filter of the table, and the location of the query's prefix in it. `None` if the table has no filter.
    filter: Option<(&'a BloomFilter<F>, QueryBits)>,
}

impl<F: Copy, C> Clone for ProbedTable<'_, F, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: Copy, C> Copy for ProbedTable<'_, F, C> {}

/// Takes tables from `tables` as long as they have the codec type `C`, but at most [`MAX_TABLES`], and probes them
/// together. `table` must be the next item of `tables`, and `codec` its codec. Returns the number of probed tables.
fn probe_same_codec<'a, F: Fingerprint, C: BlockCodec<F> + CodecVariant>(
    (table, codec): (&'a Table<F>, &'a C),
    tables: &mut Peekable<impl Iterator<Item = &'a Table<F>> + Clone>,
    query: F,
    distance: u32,
    visitor: impl FnMut(ProbeHit<F>),
) -> Result<usize> {
    // Most stores have few tables, and filling the long list takes a hundredth of a query's time.
    let (mut few, mut many);
    let none = ProbedTable { table, codec, query, filter: None };
    let probed = if tables.clone().nth(SHORT_LIST_LEN).is_none() {
        few = [none; SHORT_LIST_LEN];
        &mut few[..]
    } else {
        many = [none; MAX_TABLES];
        &mut many[..]
    };
    let mut count = 0;
    for place in &mut *probed {
        let is_next = |table: &&Table<F>| C::from_any(&table.codec).is_some() && table.line_probes.is_none();
        let Some(table) = tables.next_if(is_next) else { break };
        let Some(codec) = C::from_any(&table.codec) else { break };
        let query = table.permute(query);
        let filter = table.filter().map(|filter| (filter, filter.query_bits(query)));
        filter.iter().for_each(|(filter, query_bits)| filter.prefetch(*query_bits));
        *place = ProbedTable { table, codec, query, filter };
        count += 1;
    }
    TableSearch { tables: &probed[..count], distance, visitor }.run()?;
    Ok(count)
}

impl<F: Fingerprint> Table<F> {
    /// Probes this table alone. Calls `visitor` with the permuted fingerprints found within `distance` of `query`.
    /// They include at least the fingerprints whose prefix differs from the query's prefix in at most as many bits
    /// as the plan may flip. No fingerprint is reported twice.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if a block is damaged.
    pub fn probe(&self, query: F, distance: u32, mut visitor: impl FnMut(F)) -> Result<()> {
        probe(std::iter::once(self), query, distance, |hit| visitor(hit.value))
    }
}

/// The search of one query in tables with the same codec.
struct TableSearch<'a, F, C, V> {
    tables: &'a [ProbedTable<'a, F, C>],
    distance: u32,
    visitor: V,
}

impl<'a, F: Fingerprint, C: BlockCodec<F>, V: FnMut(ProbeHit<F>)> TableSearch<'a, F, C, V> {
    fn run(mut self) -> Result<()> {
        let mut group = ProbeGroup::EMPTY;
        for (number, &ProbedTable { table, query, filter, .. }) in self.tables.iter().enumerate() {
            let probe_masks = &table.probe_masks;
            let (distance, all) = (self.distance, self.distance >= table.header().plan.flips);
            let (partial, full) = probe_masks.masks.split_at(probe_masks.partial_len);
            let ranges =
                [(partial, probe_masks.flipped_bits, None), (full, table.header().plan.prefix_bits, filter)];
            for (masks, shared, filter) in ranges {
                let prefix = F::prefix_mask(shared);
                let usable =
                    masks.iter().enumerate().filter(|(_, mask)| all || mask.count_ones() <= distance);
                for (i, &mask) in usable {
                    if filter.is_some_and(|(filter, query_bits)| !filter.may_contain(query_bits, i)) {
                        continue;
                    }
                    let low = (query ^ mask) & prefix;
                    table.index.prefetch(low);
                    let next = group.len % GROUP_CAPACITY;
                    (group.table[next], group.shared[next], group.low[next]) =
                        (number as u8, shared as u8, low);
                    group.len += 1;
                    if group.len == PROBE_GROUP_LEN {
                        self.run_stages(&mut group)?;
                    }
                }
            }
        }
        self.run_stages(&mut group)
    }

    /// Runs a group of probes in three stages: finds the block that each probe needs, finds where decoding of the block
    /// must start, and compares the fingerprints from there on with the query. Then empties the group. The caller has
    /// prefetched, for each probe, the cache line of the block index that the first stage reads.
    fn run_stages(&mut self, group: &mut ProbeGroup<'a, F>) -> Result<()> {
        let tables = self.tables;
        simd::dispatch(FindBlocksStage { tables, group });
        for i in 0..group.len.min(GROUP_CAPACITY) {
            tables[usize::from(group.table[i])].table.blocks.prefetch_from_disk(group.block[i] as usize);
        }
        for i in 0..group.len.min(GROUP_CAPACITY) {
            let (ProbedTable { table, codec, .. }, block) =
                (tables[usize::from(group.table[i])], group.block[i] as usize);
            // If the range has no block, all fingerprints of the table come before the range.
            group.bytes[i] = if block < table.blocks() { table.blocks.get(block)? } else { &[] };
            if C::PREFETCHES_FOR_LOCATE && block < table.blocks() {
                let aimed =
                    codec.prefetch_for_locate(group.block_bytes(i), group.low[i], table.index.last(block));
                aimed.map_err(|damage| table.blocks.damaged(block, damage))?;
            }
        }
        simd::dispatch(LocateStage { tables, group })?;
        simd::dispatch(CompareStage { search: self, group })?;
        group.len = 0;
        Ok(())
    }

    /// Compares the fingerprints of a range with the query. `number` is the table's index in `tables`. The range may lie
    /// in several blocks; its fingerprints share the first `depth` bits.
    #[inline(never)]
    fn compare_blocks(
        &mut self,
        number: usize,
        ball: HammingBall<F>,
        range: FingerprintRange<F>,
        depth: u32,
    ) -> Result<()> {
        let table = self.tables[number].table;
        let from = table.index.find(range.low);
        let to = table.index.find(range.high);
        if to - from >= SPLIT_MIN_BLOCKS {
            return self.split_range(number, ball, range, depth);
        }
        let blocks = from..table.blocks().min(to + 1);
        blocks.clone().skip(1).for_each(|block| table.blocks.prefetch_head(block));
        simd::dispatch(RangeComparison { search: self, number, ball, range, blocks })
    }

    /// Searches a range that lies in very many blocks of the table `tables[number]`. Splits the range in two by the
    /// bit after the first `depth` bits, and so on, until each part lies in one block. Drops the parts whose leading
    /// bits differ from the query in too many bits. In effect, a dense range is probed with a longer prefix.
    fn split_range(
        &mut self,
        number: usize,
        ball: HammingBall<F>,
        range: FingerprintRange<F>,
        depth: u32,
    ) -> Result<()> {
        let table = self.tables[number].table;
        let from = table.index.find(range.low);
        if depth == F::BITS || from == table.blocks() || table.index.last(from) >= range.high {
            return self.compare_blocks(number, ball, range, depth);
        }
        let plan = &table.header().plan;
        for low in [range.low, range.low | F::bit_mask(depth)] {
            let flipped = (low ^ ball.query) & F::prefix_mask(depth + 1);
            let in_prefix = flipped & F::prefix_mask(plan.prefix_bits);
            if flipped.count_ones() <= ball.distance && in_prefix.count_ones() <= plan.flips {
                let range = FingerprintRange { low, high: low | !F::prefix_mask(depth + 1) };
                self.split_range(number, ball, range, depth + 1)?;
            }
        }
        Ok(())
    }
}

/// The first stage of a look-up: finds, in the block index, the blocks that may have fingerprints with a probe's prefix.
struct FindBlocksStage<'a, 'b, F, C> {
    tables: &'b [ProbedTable<'b, F, C>],
    group: &'a mut ProbeGroup<'b, F>,
}

impl<F: Fingerprint, C: BlockCodec<F>> Kernel for FindBlocksStage<'_, '_, F, C> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let group = self.group;
        for i in 0..group.len.min(GROUP_CAPACITY) {
            let table = self.tables[usize::from(group.table[i])].table;
            let index = &table.index;
            let (block, more) = match index.find_range(group.low[i], u32::from(group.shared[i])) {
                Some(blocks) => blocks,
                None => {
                    let FingerprintRange { low, high } = group.range(i);
                    let block = index.find_by_search(low);
                    let one = block == table.blocks() || index.last(block) >= high;
                    (block, if one { 0 } else { usize::MAX })
                }
            };
            let several = more > MAX_EXTRA_BLOCKS || group.len + more > GROUP_CAPACITY;
            group.block[i] = block as u32;
            group.location[i] = if several { ProbeLocation::Blocks } else { ProbeLocation::Block };
            let more = if several { 0 } else { more };
            for next in block + 1..=block + more {
                group.push_block(i, next);
            }
            for block in block..=block + more {
                table.blocks.prefetch_head(block);
                if C::PREFETCHES_FOR_LOCATE {
                    index.prefetch_last(block);
                }
            }
        }
    }
}

/// The second stage of a look-up: reads the start of each block, to find the position where decoding starts.
struct LocateStage<'a, 'b, F, C> {
    tables: &'b [ProbedTable<'b, F, C>],
    group: &'a mut ProbeGroup<'b, F>,
}

impl<F: Fingerprint, C: BlockCodec<F>> Kernel for LocateStage<'_, '_, F, C> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let group = self.group;
        for i in 0..group.len.min(GROUP_CAPACITY) {
            let (ProbedTable { table, codec, .. }, block) =
                (self.tables[usize::from(group.table[i])], group.block_bytes(i));
            let bytes = block.bytes;
            let range = group.range(i);
            if group.location[i] == ProbeLocation::Blocks {
                continue;
            }
            group.location[i] = ProbeLocation::Empty;
            if bytes.is_empty() {
                continue;
            }
            let last =
                if C::PREFETCHES_FOR_LOCATE { table.index.last(group.block[i] as usize) } else { F::MAX };
            match codec.locate(block, range, last) {
                Ok(Some(start)) => {
                    group.location[i] = ProbeLocation::Start(start.index);
                    for line in (start.bytes.0 / 64 * 64..=start.bytes.1).step_by(64) {
                        simd::prefetch(bytes, line as usize);
                    }
                }
                Ok(None) => {}
                Err(damage) => return Err(table.blocks.damaged(group.block[i] as usize, damage)),
            }
        }
        Ok(())
    }
}

/// The third stage of a look-up: decodes the fingerprints with each probe's prefix, and compares them with the query.
struct CompareStage<'a, 'b, F, C, V> {
    search: &'a mut TableSearch<'b, F, C, V>,
    group: &'a ProbeGroup<'b, F>,
}

impl<F: Fingerprint, C: BlockCodec<F>, V: FnMut(ProbeHit<F>)> Kernel for CompareStage<'_, '_, F, C, V> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let (search, group) = (self.search, self.group);
        let distance = search.distance;
        for i in 0..group.len.min(GROUP_CAPACITY) {
            let location = group.location[i];
            if location == ProbeLocation::Empty {
                continue;
            }
            let number = usize::from(group.table[i]);
            let ProbedTable { table, codec, query, .. } = search.tables[number];
            let ball = HammingBall { query, distance };
            let range = group.range(i);
            let ProbeLocation::Start(start_index) = location else {
                search.compare_blocks(number, ball, range, u32::from(group.shared[i]))?;
                continue;
            };
            let block = group.block[i] as usize;
            let visitor =
                |position, value| (search.visitor)(ProbeHit { table: number, block, position, value });
            if let Err(damage) = codec.visit_from(group.block_bytes(i), start_index, range, ball, visitor) {
                return Err(table.blocks.damaged(block, damage));
            }
        }
        Ok(())
    }
}

/// A kernel that compares the fingerprints of one range with the query. The range may lie in several blocks.
struct RangeComparison<'a, 'b, F, C, V> {
    search: &'a mut TableSearch<'b, F, C, V>,
    number: usize,
    ball: HammingBall<F>,
    range: FingerprintRange<F>,
    blocks: std::ops::Range<usize>,
}

impl<F: Fingerprint, C: BlockCodec<F>, V: FnMut(ProbeHit<F>)> Kernel for RangeComparison<'_, '_, F, C, V> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let (number, ProbedTable { table, codec, .. }) = (self.number, self.search.tables[self.number]);
        for block in self.blocks {
            let (bytes, last) = (table.blocks.get(block)?, table.index.last(block));
            let bytes = Block { number: block, bytes };
            let visitor =
                |position, value| (self.search.visitor)(ProbeHit { table: number, block, position, value });
            let visited = match codec.locate(bytes, self.range, last) {
                Ok(Some(start)) => codec.visit_from(bytes, start.index, self.range, self.ball, visitor),
                Ok(None) => Ok(()),
                Err(damage) => Err(damage),
            };
            visited.map_err(|damage| table.blocks.damaged(block, damage))?;
        }
        Ok(())
    }
}
