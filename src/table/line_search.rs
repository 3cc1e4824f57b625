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

use super::line_probes::LineProbes;
use super::probe_hit::ProbeHit;
use super::reader::Table;
use crate::codec::{AnyCodec, HammingBall, PrefixLinesCodec};
use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::plan::MAX_TABLES;
use crate::prefix_lines::{MAX_LOW_BITS, PrefixLine, PrefixLines, SlotKeys};
use crate::simd::{self, Kernel, Level};

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

    /// Returns the bucket of the probe with the index `i` in a run.
    #[inline(always)]
    fn bucket(&self, run: ProbeRun, i: usize) -> u64 {
        let mask = self.probes.masks(u32::from(run.flips))[run.first_mask as usize + i];
        self.key >> MAX_LOW_BITS ^ u64::from(mask)
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
/// Maximum number of runs in a group.
const MAX_RUNS: usize = 16;
/// Maximum number of candidates that wait for their blocks.
const MAX_CANDIDATES: usize = 32;

/// Probes whose lines are being loaded.
#[derive(Clone, Copy)]
struct LineProbeGroup {
    len: usize,
    places: [ProbePlace; GROUP_CAPACITY],
    runs: [ProbeRun; MAX_RUNS],
    run_count: usize,
}

/// Line and slot of the bucket that a probe looks for: the number of the line in the bits from 8 on, the slot in the lowest 8.
#[derive(Clone, Copy)]
struct ProbePlace(u64);

impl ProbePlace {
    #[inline(always)]
    fn line(self) -> u64 {
        self.0 >> 8
    }

    #[inline(always)]
    fn slot(self) -> u32 {
        (self.0 & 0xff) as u32
    }
}

/// Adjacent probes in a group that belong to one table and flip the same number of bits.
#[derive(Clone, Copy)]
struct ProbeRun {
    /// Index of the table.
    table: u8,
    /// Number of bits of the plan's prefix that the probes flip in the bucket.
    flips: u8,
    /// Maximum number of differing bits in the low byte, as far as it belongs to the plan's prefix.
    low_distance: u8,
    /// End of the probes in the group.
    end: u8,
    /// Index of the first probe's mask in [`LineProbes::masks`].
    first_mask: u32,
}

impl LineProbeGroup {
    const EMPTY: Self = LineProbeGroup {
        len: 0,
        places: [ProbePlace(0); GROUP_CAPACITY],
        runs: [ProbeRun { table: 0, flips: 0, low_distance: 0, end: 0, first_mask: 0 }; MAX_RUNS],
        run_count: 0,
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
            let max_flips = table.probes.flips().min(self.distance);
            for flips in 0..=max_flips {
                let masks = table.probes.masks(flips);
                let mut done = 0;
                while done < masks.len() {
                    let group = &mut groups[filled % 2];
                    let (start, count) = (group.len, (masks.len() - done).min(GROUP_CAPACITY - group.len));
                    let places = &mut group.places[start..start + count];
                    let masks = &masks[done..done + count];
                    let (lines, bucket) = (table.lines, table.key >> MAX_LOW_BITS);
                    simd::dispatch(FillPlaces { lines, bucket, masks, places })
                        .map_err(|damage| table.damaged(damage))?;
                    group.len += count;
                    group.runs[group.run_count] = ProbeRun {
                        table: number as u8,
                        flips: flips as u8,
                        low_distance: (max_flips - flips) as u8,
                        end: group.len as u8,
                        first_mask: done as u32,
                    };
                    group.run_count += 1;
                    done += count;
                    if group.len == GROUP_CAPACITY || group.run_count == MAX_RUNS {
                        filled += 1;
                        self.test(&groups[filled % 2])?;
                        (groups[filled % 2].len, groups[filled % 2].run_count) = (0, 0);
                    }
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
        for &run in &group.runs[..group.run_count] {
            let places = &group.places[start..usize::from(run.end)];
            simd::dispatch(TestPlaces { run, places, search: self })?;
            start = usize::from(run.end);
        }
        Ok(())
    }

    /// Tests one probe whose line is divided or a run.
    #[cold]
    #[inline(never)]
    fn test_special_line(&mut self, run: ProbeRun, line: u64, bucket: u64) -> Result<()> {
        let number = usize::from(run.table);
        let table = self.tables[number];
        let low = bucket << MAX_LOW_BITS;
        let (low_mask, low_distance) = (table.probes.low_mask, u32::from(run.low_distance));
        let mut failed = Ok(());
        let visited = table.lines.visit_special_line(line, low, low | 0xff, |run| {
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

/// Finds the lines and slots of probes of one table, and prefetches the lines.
struct FillPlaces<'a> {
    lines: &'a PrefixLines,
    /// Bucket of the query.
    bucket: u64,
    /// Mask of each probe.
    masks: &'a [u32],
    places: &'a mut [ProbePlace],
}

impl Kernel for FillPlaces<'_> {
    type Output = Result<(), Damage>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        let FillPlaces { lines, bucket, masks, places } = self;
        let (shape, all_lines, verified) = (lines.shape(), lines.as_lines(), lines.verified_pages());
        for (&mask, place) in masks.iter().zip(&mut *places) {
            let address = shape.address(bucket ^ u64::from(mask));
            simd::prefetch(all_lines, address.line as usize);
            *place = ProbePlace(address.line << 8 | u64::from(address.slot));
        }
        if verified.are_all() || places.iter().all(|place| verified.is_verified(place.line())) {
            return Ok(());
        }
        verify_lines(lines, places)
    }
}

/// Verifies the pages of the lines that probes will read. The disk reads these pages together, not one after the other.
#[cold]
#[inline(never)]
fn verify_lines(lines: &PrefixLines, places: &[ProbePlace]) -> Result<(), Damage> {
    places.iter().for_each(|place| lines.prefetch_from_disk(place.line()));
    places.iter().try_for_each(|place| lines.line(place.line()).map(drop))
}

/// Looks for the prefixes of the probes of a run in their lines, whose pages have been verified.
struct TestPlaces<'a, 'b, F, V> {
    run: ProbeRun,
    places: &'a [ProbePlace],
    search: &'a mut LineSearch<'b, F, V>,
}

impl<F: Fingerprint, V: FnMut(ProbeHit<F>)> Kernel for TestPlaces<'_, '_, F, V> {
    type Output = Result<()>;

    fn run(self) -> Result<()> {
        self.run_at(Level::ANY)
    }

    #[inline(always)]
    fn run_at(self, level: Level) -> Result<()> {
        // Constant distances make faster loops.
        match self.run.low_distance {
            0 => self.test(level, 0),
            1 => self.test(level, 1),
            more => self.test(level, u32::from(more)),
        }
    }
}

impl<F: Fingerprint, V: FnMut(ProbeHit<F>)> TestPlaces<'_, '_, F, V> {
    #[inline(always)]
    fn test(self, level: Level, low_distance: u32) -> Result<()> {
        let TestPlaces { run, places, search } = self;
        let table = search.tables[usize::from(run.table)];
        let (lines, low_mask, low_byte) = (table.lines.as_lines(), table.probes.low_mask, table.key as u8);
        for (i, place) in places.iter().enumerate() {
            let line = PrefixLine(&lines[place.line() as usize]);
            let Some(counts) = line.key_counts() else {
                search.test_special_line(run, place.line(), table.bucket(run, i))?;
                continue;
            };
            let keys = SlotKeys::of_slot(level, counts, place.slot());
            let mut matches = line.matching_keys(level, low_byte, low_mask, low_distance) & keys.mask();
            while matches != 0 {
                let index = matches.trailing_zeros();
                matches &= matches - 1;
                let key = table.bucket(run, i) << MAX_LOW_BITS | u64::from(line.low_byte(index));
                search.add_candidate(usize::from(run.table), line.rank() + u64::from(index), key)?;
            }
        }
        Ok(())
    }
}
