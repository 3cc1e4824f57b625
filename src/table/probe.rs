//! Probes tables, of one segment or of several, for one query.
//!
//! A probe waits for memory three times: for a line of the block index's directory, the head of a block, and the
//! place in the block. So all probes of a query go through these stages together. Each stage prefetches for the next
//! one, and the waits overlap.

use std::iter::Peekable;

use super::filter::{Filter, Spots};
use super::group::{FEW, Found, Group, ROOM};
use super::reader::Table;
use crate::codec::{BlockCodec, Choice, Near, Range, with_codec};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::kernels::{self, Work};
use crate::plan::{MAX_TABLES, TOGETHER, WIDE};

/// A stored fingerprint within the distance of a query, and its location.
pub(crate) struct Hit<F> {
    /// The number of the table, among the probed ones.
    pub(crate) table: usize,
    pub(crate) block: usize,
    /// Its position in the block.
    pub(crate) position: usize,
    /// The fingerprint, permuted.
    pub(crate) value: F,
}

/// Calls `visitor` with each stored fingerprint within `distance` that the probes of each table find. These are at
/// least the ones that the plan promises, and none twice in a table. The tables may belong to any number of segments.
///
/// # Errors
/// [`Error::Corrupt`](crate::Error::Corrupt) if a block is damaged.
pub(crate) fn probe<'a, F: Fingerprint>(
    tables: impl Iterator<Item = &'a Table<F>> + Clone,
    query: F,
    distance: u32,
    mut visitor: impl FnMut(Hit<F>),
) -> Result<()> {
    let (mut rest, mut done) = (tables.peekable(), 0);
    // The tables of a store have one codec. If there were several, each run of tables with the same kind of codec
    // would be probed separately.
    while let Some(first) = rest.peek().copied() {
        let visitor = |hit: Hit<F>| visitor(Hit { table: done + hit.table, ..hit });
        done += with_codec!(&first.codec, codec => {
            probe_alike((first, codec), &mut rest, query, distance, visitor)
        })?;
    }
    Ok(())
}

/// Number of tables of a plan or two.
const FEW_TABLES: usize = 12;

/// A probed table, with its codec's type, and the query permuted for the table.
struct Typed<'a, F, C> {
    table: &'a Table<F>,
    codec: &'a C,
    query: F,
    /// The table's filter and the query's spots in it, if the table has a filter.
    filter: Option<(&'a Filter<F>, Spots)>,
}

impl<F: Copy, C> Clone for Typed<'_, F, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: Copy, C> Copy for Typed<'_, F, C> {}

/// Probes the next tables with the same kind of codec as the first, up to [`MAX_TABLES`]. Returns their number.
fn probe_alike<'a, F: Fingerprint, C: BlockCodec<F> + Choice>(
    (table, codec): (&'a Table<F>, &'a C),
    tables: &mut Peekable<impl Iterator<Item = &'a Table<F>> + Clone>,
    query: F,
    distance: u32,
    visitor: impl FnMut(Hit<F>),
) -> Result<usize> {
    // Most stores have few tables, and filling the long list takes a hundredth of a query.
    let (mut few, mut many);
    let none = Typed { table, codec, query, filter: None };
    let typed = if tables.clone().nth(FEW_TABLES).is_none() {
        few = [none; FEW_TABLES];
        &mut few[..]
    } else {
        many = [none; MAX_TABLES];
        &mut many[..]
    };
    let mut alike = 0;
    for place in &mut *typed {
        let Some(table) = tables.next_if(|table| C::of(&table.codec).is_some()) else { break };
        let Some(codec) = C::of(&table.codec) else { break };
        let query = table.permute(query);
        let filter = table.filter().map(|filter| (filter, filter.spots(query)));
        filter.iter().for_each(|(filter, spots)| filter.prefetch(*spots));
        *place = Typed { table, codec, query, filter };
        alike += 1;
    }
    Search { tables: &typed[..alike], distance, visitor }.run()?;
    Ok(alike)
}

impl<F: Fingerprint> Table<F> {
    /// Calls `visitor` with each stored fingerprint, permuted, within `distance` of the query that the table's probes
    /// find. These are at least the ones that the plan promises, and none twice.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if a block is damaged.
    pub fn probe(&self, query: F, distance: u32, mut visitor: impl FnMut(F)) -> Result<()> {
        probe(std::iter::once(self), query, distance, |hit| visitor(hit.value))
    }
}

struct Search<'a, F, C, V> {
    tables: &'a [Typed<'a, F, C>],
    distance: u32,
    visitor: V,
}

impl<'a, F: Fingerprint, C: BlockCodec<F>, V: FnMut(Hit<F>)> Search<'a, F, C, V> {
    fn run(mut self) -> Result<()> {
        let mut group = Group::EMPTY;
        for (number, &Typed { table, query, filter, .. }) in self.tables.iter().enumerate() {
            let flips = &table.flips;
            let (distance, all) = (self.distance, self.distance >= table.header().plan.flips);
            let (wide, narrow) = flips.masks.split_at(flips.wide);
            let ranges = [(wide, flips.bits, None), (narrow, table.header().plan.prefix_bits, filter)];
            for (masks, shared, filter) in ranges {
                let prefix = F::prefix_mask(shared);
                let asked = masks.iter().enumerate().filter(|(_, mask)| all || mask.count_ones() <= distance);
                for (i, &mask) in asked {
                    if filter.is_some_and(|(filter, spots)| !filter.has(spots, i)) {
                        continue;
                    }
                    let low = (query ^ mask) & prefix;
                    table.index.prefetch(low);
                    let next = group.len % ROOM;
                    (group.table[next], group.shared[next], group.low[next]) =
                        (number as u8, shared as u8, low);
                    group.len += 1;
                    if group.len == TOGETHER {
                        self.finish(&mut group)?;
                    }
                }
            }
        }
        self.finish(&mut group)
    }

    /// Takes a group through all stages. The directory lines have been prefetched.
    fn finish(&mut self, group: &mut Group<'a, F>) -> Result<()> {
        let tables = self.tables;
        kernels::dispatch(FindBlocks { tables, group });
        for i in 0..group.len.min(ROOM) {
            tables[usize::from(group.table[i])].table.blocks.fetch(group.block[i] as usize);
        }
        for i in 0..group.len.min(ROOM) {
            let (Typed { table, codec, .. }, block) =
                (tables[usize::from(group.table[i])], group.block[i] as usize);
            // Without a block, all fingerprints of the table come before the range.
            group.bytes[i] = if block < table.blocks() { table.blocks.get(block)? } else { &[] };
            if C::AIMS && block < table.blocks() {
                let aimed = codec.aim(group.bytes[i], group.low[i], table.index.last(block));
                aimed.map_err(|damage| table.blocks.damaged(block, damage))?;
            }
        }
        kernels::dispatch(Locate { tables, group })?;
        kernels::dispatch(Compare { search: self, group })?;
        group.len = 0;
        Ok(())
    }

    /// Compares the fingerprints of a range with the query. They have the first `depth` bits in common and lie in
    /// several blocks.
    #[inline(never)]
    fn compare_blocks(&mut self, number: usize, near: Near<F>, range: Range<F>, depth: u32) -> Result<()> {
        let table = self.tables[number].table;
        let from = table.index.find(range.low);
        let to = table.index.find(range.high);
        if to - from >= WIDE {
            return self.split(number, near, range, depth);
        }
        let blocks = from..table.blocks().min(to + 1);
        blocks.clone().skip(1).for_each(|block| table.blocks.prefetch_head(block));
        kernels::dispatch(CompareBlocks { search: self, number, near, range, blocks })
    }

    /// Splits a range that very many fingerprints share, bit by bit after the first `depth` bits, as long as the bits
    /// so far can belong to a neighbour. In effect this is a longer prefix, for dense ranges only.
    fn split(&mut self, number: usize, near: Near<F>, range: Range<F>, depth: u32) -> Result<()> {
        let table = self.tables[number].table;
        let from = table.index.find(range.low);
        if depth == F::BITS || from == table.blocks() || table.index.last(from) >= range.high {
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

/// The stage that finds the first block of each range.
struct FindBlocks<'a, 'b, F, C> {
    tables: &'b [Typed<'b, F, C>],
    group: &'a mut Group<'b, F>,
}

impl<F: Fingerprint, C: BlockCodec<F>> Work for FindBlocks<'_, '_, F, C> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let group = self.group;
        for i in 0..group.len.min(ROOM) {
            let table = self.tables[usize::from(group.table[i])].table;
            let index = &table.index;
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
            group.found[i] = if several { Found::Blocks } else { Found::Block };
            let more = if several { 0 } else { more };
            for next in block + 1..=block + more {
                group.repeat(i, next);
            }
            for block in block..=block + more {
                table.blocks.prefetch_head(block);
                if C::AIMS {
                    index.prefetch_last(block);
                }
            }
        }
    }
}

/// The stage that reads the heads of blocks.
struct Locate<'a, 'b, F, C> {
    tables: &'b [Typed<'b, F, C>],
    group: &'a mut Group<'b, F>,
}

impl<F: Fingerprint, C: BlockCodec<F>> Work for Locate<'_, '_, F, C> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let group = self.group;
        for i in 0..group.len.min(ROOM) {
            let (Typed { table, codec, .. }, bytes) =
                (self.tables[usize::from(group.table[i])], group.bytes[i]);
            let range = group.range(i);
            if group.found[i] == Found::Blocks {
                continue;
            }
            group.found[i] = Found::Nothing;
            if bytes.is_empty() {
                continue;
            }
            let last = if C::AIMS { table.index.last(group.block[i] as usize) } else { F::MAX };
            match codec.locate(bytes, range, last) {
                Ok(Some(spot)) => {
                    group.found[i] = Found::Spot(spot.index);
                    for line in (spot.bytes.0 / 64 * 64..=spot.bytes.1).step_by(64) {
                        kernels::prefetch(bytes, line as usize);
                    }
                }
                Ok(None) => {}
                Err(damage) => return Err(table.blocks.damaged(group.block[i] as usize, damage)),
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

impl<F: Fingerprint, C: BlockCodec<F>, V: FnMut(Hit<F>)> Work for Compare<'_, '_, F, C, V> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let (search, group) = (self.search, self.group);
        let distance = search.distance;
        for i in 0..group.len.min(ROOM) {
            let found = group.found[i];
            if found == Found::Nothing {
                continue;
            }
            let number = usize::from(group.table[i]);
            let Typed { table, codec, query, .. } = search.tables[number];
            let near = Near { query, distance };
            let range = group.range(i);
            let Found::Spot(spot) = found else {
                search.compare_blocks(number, near, range, u32::from(group.shared[i]))?;
                continue;
            };
            let block = group.block[i] as usize;
            let visitor = |position, value| (search.visitor)(Hit { table: number, block, position, value });
            if let Err(damage) = codec.visit_from(group.bytes[i], spot, range, near, visitor) {
                return Err(table.blocks.damaged(block, damage));
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

impl<F: Fingerprint, C: BlockCodec<F>, V: FnMut(Hit<F>)> Work for CompareBlocks<'_, '_, F, C, V> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let (number, Typed { table, codec, .. }) = (self.number, self.search.tables[self.number]);
        for block in self.blocks {
            let (bytes, last) = (table.blocks.get(block)?, table.index.last(block));
            let visitor =
                |position, value| (self.search.visitor)(Hit { table: number, block, position, value });
            let visited = match codec.locate(bytes, self.range, last) {
                Ok(Some(spot)) => codec.visit_from(bytes, spot.index, self.range, self.near, visitor),
                Ok(None) => Ok(()),
                Err(damage) => Err(damage),
            };
            visited.map_err(|damage| table.blocks.damaged(block, damage))?;
        }
        Ok(())
    }
}
