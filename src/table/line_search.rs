//! Probes tables with prefix lines for one query.
//!
//! A prefix line tells whether the table has a prefix, and the ranks of the fingerprints that have it. So a probe for a prefix
//! that no fingerprint has waits for memory once, for the line. A probe that finds the prefix waits once more, for
//! the other bits of the fingerprint. All probes of a group prefetch their lines before the first line is read.
//!
//! Prefixes that differ only in their low 8 bits lie in one line. So one probe looks for all of them with one comparison: it
//! flips the bits of the *bucket*, the prefix without the low bits, and compares the low bits with as many differences as
//! the plan still allows.

use std::iter::Peekable;
use std::ops::ControlFlow;

use super::line_probes::{BucketMask, LineProbes};
use super::probe_hit::ProbeHit;
use super::reader::Table;
use crate::codec::{AnyCodec, HammingBall, PrefixLinesCodec};
use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::plan::MAX_TABLES;
use crate::prefix_lines::{MAX_LOW_BITS, PrefixLine, PrefixLines, SlotKeys};

use crate::simd::{self, Kernel};

/// A table to probe, with the query permuted for it.
struct LineTable<'a, F> {
    table: &'a Table<F>,
    lines: &'a PrefixLines,
    codec: &'a PrefixLinesCodec,
    probes: &'a LineProbes,
    query: F,
    /// Prefix of the query.
    key: u64,
    /// Number of fingerprints in a block.
    block_fingerprints: u64,
}

impl<F: Copy> Clone for LineTable<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: Copy> Copy for LineTable<'_, F> {}

impl<'a, F: Fingerprint> LineTable<'a, F> {
    /// Returns `None` if the table is not searched by its lines.
    fn new(table: &'a Table<F>, query: F) -> Option<Self> {
        let probes = table.line_probes.as_ref()?;
        let (AnyCodec::PrefixLines(codec), Some(lines)) = (&table.codec, table.lines.as_deref()) else {
            return None;
        };
        let query = table.permute(query);
        let (key, block_fingerprints) = (codec.key(query), codec.block_fingerprints::<F>());
        Some(LineTable { table, lines, codec, probes, query, key, block_fingerprints })
    }

    #[cold]
    fn damaged(&self, damage: Damage) -> Error {
        let at = match damage {
            Damage::LinePage { offset, .. } => offset,
            _ => self.lines.offset(0) as u64,
        };
        Error::corrupt(self.table.path(), at, damage)
    }
}

/// Length of the array for few probed tables.
const SHORT_LIST_LEN: usize = 4;

/// Takes tables from `tables` as long as they are searched by their prefix lines, but at most [`MAX_TABLES`], and probes
/// them together, as [`probe`](super::probe::probe) does. Returns the number of probed tables, 0 if the next table is
/// searched by blocks.
pub(super) fn probe_lines<'a, F: Fingerprint>(
    tables: &mut Peekable<impl Iterator<Item = &'a Table<F>> + Clone>,
    query: F,
    distance: u32,
    visitor: impl FnMut(ProbeHit<F>),
) -> Result<usize> {
    let Some(first) = tables.peek().and_then(|table| LineTable::new(table, query)) else { return Ok(0) };
    let (mut few, mut many);
    let probed = if tables.clone().nth(SHORT_LIST_LEN).is_none() {
        few = [first; SHORT_LIST_LEN];
        &mut few[..]
    } else {
        many = [first; MAX_TABLES];
        &mut many[..]
    };
    let mut count = 0;
    for place in &mut *probed {
        let Some(table) = tables.next_if(|table| table.line_probes.is_some()) else { break };
        let Some(table) = LineTable::new(table, query) else { break };
        *place = table;
        count += 1;
    }
    let candidates = [Candidate::NONE; MAX_CANDIDATES];
    LineSearch { tables: &probed[..count], distance, visitor, candidates, candidate_count: 0 }.run()?;
    Ok(count)
}

/// Maximum number of probes in a group.
const GROUP_CAPACITY: usize = 64;
/// Maximum number of candidates that wait for their blocks.
const MAX_CANDIDATES: usize = 64;

/// Probes whose lines are being loaded. The probes of one table are adjacent.
#[derive(Clone, Copy)]
struct LineProbeGroup {
    len: usize,
    probes: [LineProbe; GROUP_CAPACITY],
    /// For each table that has probes in the group: its index, and the end of its probes.
    tables: [(u8, u8); GROUP_CAPACITY],
    table_count: usize,
}

/// A probe of one bucket of a table.
#[derive(Clone, Copy)]
struct LineProbe {
    bucket: u32,
    line: u32,
    slot: u8,
    /// Maximum number of differing bits in the low byte, as far as it belongs to the plan's prefix.
    low_distance: u8,
}

impl LineProbeGroup {
    const EMPTY: Self = LineProbeGroup {
        len: 0,
        probes: [LineProbe { bucket: 0, line: 0, slot: 0, low_distance: 0 }; GROUP_CAPACITY],
        tables: [(0, 0); GROUP_CAPACITY],
        table_count: 0,
    };
}

/// A fingerprint with a prefix that a probe looks for. Its block is being loaded.
#[derive(Clone, Copy)]
struct Candidate {
    /// Prefix of the fingerprint.
    key: u64,
    block: u32,
    position: u16,
    table: u8,
}

impl Candidate {
    const NONE: Self = Candidate { key: 0, block: 0, position: 0, table: 0 };
}

/// The search of one query in tables with prefix lines.
struct LineSearch<'a, F, V> {
    tables: &'a [LineTable<'a, F>],
    distance: u32,
    visitor: V,
    candidates: [Candidate; MAX_CANDIDATES],
    candidate_count: usize,
}

impl<F: Fingerprint, V: FnMut(ProbeHit<F>)> LineSearch<'_, F, V> {
    fn run(mut self) -> Result<()> {
        // While the lines of one group are loaded, the other group is tested.
        let mut groups = [LineProbeGroup::EMPTY; 2];
        let mut filled = 0;
        for (number, table) in self.tables.iter().enumerate() {
            let flips = table.probes.flips.min(self.distance);
            let mut masks = table.probes.masks_up_to(flips);
            while !masks.is_empty() {
                let group = &mut groups[filled % 2];
                let (now, later) = masks.split_at(masks.len().min(GROUP_CAPACITY - group.len));
                simd::dispatch(FillGroup { table, number, masks: now, flips, group })
                    .map_err(|damage| table.damaged(damage))?;
                masks = later;
                if group.len == GROUP_CAPACITY {
                    filled += 1;
                    self.test(&groups[filled % 2])?;
                    (groups[filled % 2].len, groups[filled % 2].table_count) = (0, 0);
                }
            }
        }
        if filled > 0 {
            self.test(&groups[(filled + 1) % 2])?;
        }
        self.test(&groups[filled % 2])?;
        self.compare_candidates()
    }

    /// Looks for the prefixes of a group of probes in their lines.
    fn test(&mut self, group: &LineProbeGroup) -> Result<()> {
        let mut start = 0;
        for &(number, end) in &group.tables[..group.table_count] {
            let probes = &group.probes[start..usize::from(end)];
            simd::dispatch(TestProbes { number: usize::from(number), probes, search: self })?;
            start = usize::from(end);
        }
        Ok(())
    }

    /// Tests one probe whose line is divided or a run.
    #[cold]
    #[inline(never)]
    fn test_special_line(&mut self, number: usize, probe: LineProbe) -> Result<()> {
        let table = self.tables[number];
        let low = u64::from(probe.bucket) << MAX_LOW_BITS;
        let (low_mask, low_distance) = (table.probes.low_mask, u32::from(probe.low_distance));
        let mut failed = Ok(());
        let visited = table.lines.visit_special_line(u64::from(probe.line), low, low | 0xff, |run| {
            if ((run.key ^ table.key) as u8 & low_mask).count_ones() > low_distance {
                return ControlFlow::Continue(());
            }
            // A damaged line may count more keys than there are fingerprints: their blocks do not exist.
            failed = (0..run.count)
                .try_for_each(|next| self.add_candidate(number, run.rank.saturating_add(next), run.key));
            if failed.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        visited.map_err(|damage| table.damaged(damage))?;
        failed
    }

    /// Adds a fingerprint whose prefix a probe looks for, and prefetches its other bits.
    #[inline(never)]
    fn add_candidate(&mut self, number: usize, rank: u64, key: u64) -> Result<()> {
        let table = self.tables[number];
        let (block, position) = (rank / table.block_fingerprints, rank % table.block_fingerprints);
        if block >= table.table.blocks() as u64 {
            let what = "the keys of the prefix lines and the number of fingerprints";
            return Err(table.damaged(Damage::Mismatch { what }));
        }
        table.table.blocks.prefetch_byte(block as usize, table.codec.suffix_byte::<F>(position as usize));
        table.table.blocks.prefetch_from_disk(block as usize);
        if self.candidate_count == MAX_CANDIDATES {
            self.compare_candidates()?;
        }
        self.candidates[self.candidate_count % MAX_CANDIDATES] =
            Candidate { key, block: block as u32, position: position as u16, table: number as u8 };
        self.candidate_count += 1;
        Ok(())
    }

    /// Compares all candidates with the query.
    fn compare_candidates(&mut self) -> Result<()> {
        for i in 0..self.candidate_count.min(MAX_CANDIDATES) {
            let Candidate { key, block, position, table: number } = self.candidates[i];
            let LineTable { table, codec, query, .. } = self.tables[usize::from(number)];
            let (block, position) = (block as usize, usize::from(position));
            let value: F = codec.fingerprint(key, table.blocks.get(block)?, position);
            if (HammingBall { query, distance: self.distance }).contains(value) {
                (self.visitor)(ProbeHit { table: usize::from(number), block, position, value });
            }
        }
        self.candidate_count = 0;
        Ok(())
    }
}

/// Adds probes of one table to a group, and prefetches their lines.
struct FillGroup<'a, F> {
    table: &'a LineTable<'a, F>,
    /// Index of the table.
    number: usize,
    /// Masks of the probes. The group has room for all of them.
    masks: &'a [BucketMask],
    /// Maximum number of differing bits in the plan's prefix.
    flips: u32,
    group: &'a mut LineProbeGroup,
}

impl<F> Kernel for FillGroup<'_, F> {
    type Output = Result<(), Damage>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        let FillGroup { table, group, .. } = self;
        let (shape, bucket) = (table.lines.shape(), table.key >> MAX_LOW_BITS);
        let (lines, verified) = (table.lines.as_lines(), table.lines.verified_pages());
        let start = group.len;
        let mut all_verified = true;
        for (mask, probe) in self.masks.iter().zip(&mut group.probes[start..]) {
            let bucket = bucket ^ u64::from(mask.bits);
            let address = shape.address(bucket);
            simd::prefetch(lines, address.line as usize);
            all_verified &= verified.is_verified(address.line);
            *probe = LineProbe {
                bucket: bucket as u32,
                line: address.line as u32,
                slot: address.slot as u8,
                low_distance: (self.flips - mask.flips) as u8,
            };
        }
        group.len = start + self.masks.len();
        group.tables[group.table_count % GROUP_CAPACITY] = (self.number as u8, group.len as u8);
        group.table_count += 1;
        if all_verified {
            return Ok(());
        }
        verify_lines(table.lines, &group.probes[start..group.len])
    }
}

/// Verifies the pages of the lines that probes will read. The disk reads these pages together, not one after the other.
#[cold]
#[inline(never)]
fn verify_lines(lines: &PrefixLines, probes: &[LineProbe]) -> Result<(), Damage> {
    probes.iter().for_each(|probe| lines.prefetch_from_disk(u64::from(probe.line)));
    probes.iter().try_for_each(|probe| lines.line(u64::from(probe.line)).map(drop))
}

/// Looks for the prefixes of probes of one table in their lines, whose pages have been verified.
struct TestProbes<'a, 'b, F, V> {
    /// Index of the table.
    number: usize,
    probes: &'a [LineProbe],
    search: &'a mut LineSearch<'b, F, V>,
}

impl<F: Fingerprint, V: FnMut(ProbeHit<F>)> Kernel for TestProbes<'_, '_, F, V> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let TestProbes { number, search, .. } = self;
        let table = search.tables[number];
        let (lines, low_mask, low_byte) = (table.lines.as_lines(), table.probes.low_mask, table.key as u8);
        for &probe in self.probes {
            let line = PrefixLine(&lines[probe.line as usize]);
            let Some(counts) = line.key_counts() else {
                search.test_special_line(number, probe)?;
                continue;
            };
            let keys = SlotKeys::of_slot(counts, u32::from(probe.slot));
            let near = line.matching_keys(low_byte, low_mask, u32::from(probe.low_distance));
            let mut matches = near & keys.mask();
            while matches != 0 {
                let index = matches.trailing_zeros();
                matches &= matches - 1;
                let key = u64::from(probe.bucket) << MAX_LOW_BITS | u64::from(line.low_byte(index));
                search.add_candidate(number, line.rank() + u64::from(index), key)?;
            }
        }
        Ok(())
    }
}
