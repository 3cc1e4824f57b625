//! Probes tables with prefix lines for one query.
//!
//! A prefix line tells whether the table has a prefix, and the ranks of the fingerprints that have it. So a probe for a prefix
//! that no fingerprint has waits for memory once, for the line. A probe that finds the prefix waits once more, for
//! the other bits of the fingerprint. All probes of a group prefetch their lines before the first line is read.
//!
//! Prefixes that differ only in their low 8 bits lie in one line. So one probe looks for all of them with one comparison: it
//! flips the bits of the *bucket*, the prefix without the low bits, and compares the low bits with as many differences as
//! the plan still allows.
//!
//! A line whose keys do not fit is divided: other lines have its keys. They are prefetched as soon as the divided line is
//! read, and tested when the lines of the other probes have been read.

use std::iter::Peekable;
use std::ops::ControlFlow;

use super::line_candidates::{CandidateBuffer, LineCandidate};
use super::line_table::LineTable;
use super::probe_hit::ProbeHit;
use super::reader::Table;
use crate::error::{Damage, Result};
use crate::fingerprint::Fingerprint;
use crate::plan::MAX_TABLES;
use crate::prefix_lines::{KeyRun, LinePlace, MAX_LOW_BITS, PrefixLine, PrefixLines, SlotKeys};
use crate::simd::{self, Kernel, Level};

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
    let mut search = LineSearch {
        tables: &probed[..count],
        distance,
        visitor,
        candidates: CandidateBuffer::new(),
        pending: [PendingLine::NONE; MAX_PENDING],
        pending_lines: 0,
        tested_lines: 0,
    };
    search.run()?;
    Ok(count)
}

/// Maximum number of probes in a group.
const GROUP_CAPACITY: usize = 64;
/// Maximum number of runs in a group.
const MAX_RUNS: usize = 16;
/// Maximum number of lines that wait in [`LineSearch::pending`].
const MAX_PENDING: usize = 16;

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
    /// Maximum number of differing bits in the whole low byte, at most 8.
    key_distance: u8,
    /// End of the probes in the group.
    end: u8,
    /// Index of the first probe's mask in [`LineProbes::masks`](super::line_probes::LineProbes::masks).
    first_mask: u32,
}

impl ProbeRun {
    const NONE: Self =
        ProbeRun { table: 0, flips: 0, low_distance: 0, key_distance: 0, end: 0, first_mask: 0 };

    /// Returns the bucket of the probe with the index `i` in this run.
    #[inline(always)]
    fn bucket<F: Fingerprint>(self, table: &LineTable<'_, F>, i: usize) -> u64 {
        table.bucket(u32::from(self.flips), self.first_mask as usize + i)
    }
}

impl LineProbeGroup {
    const EMPTY: Self = LineProbeGroup {
        len: 0,
        places: [ProbePlace(0); GROUP_CAPACITY],
        runs: [ProbeRun::NONE; MAX_RUNS],
        run_count: 0,
    };
}

/// The search of one query in tables with prefix lines.
struct LineSearch<'a, F, V> {
    tables: &'a [LineTable<'a, F>],
    distance: u32,
    visitor: V,
    candidates: CandidateBuffer<'a>,
    /// Lines that divide others, and are being loaded. A ring: the line with the number i is at index i modulo the length.
    pending: [PendingLine; MAX_PENDING],
    /// Number of lines that have waited so far.
    pending_lines: usize,
    /// How many of these lines have been tested.
    tested_lines: usize,
}

impl<'a, F: Fingerprint, V: FnMut(ProbeHit<F>)> LineSearch<'a, F, V> {
    fn run(&mut self) -> Result<()> {
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
                        key_distance: (self.distance - flips).min(MAX_LOW_BITS) as u8,
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
        self.test_pending()?;
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
        if self.pending_lines - self.tested_lines < MAX_PENDING / 2 { Ok(()) } else { self.test_pending() }
    }

    /// Tests one probe whose line is divided or a run.
    #[cold]
    #[inline(never)]
    fn test_special_line(&mut self, run: ProbeRun, line: u64, bucket: u64) -> Result<()> {
        let place = self.tables[usize::from(run.table)].lines.main_line(line);
        self.test_place(PendingLine { run, low: bucket << MAX_LOW_BITS, place })
    }

    /// Tests the lines that wait, and the lines that divide them.
    #[inline(never)]
    fn test_pending(&mut self) -> Result<()> {
        while self.tested_lines < self.pending_lines {
            let line = self.pending[self.tested_lines % MAX_PENDING];
            self.tested_lines += 1;
            self.test_place(line)?;
        }
        Ok(())
    }

    /// Looks for prefixes in one line. If it is divided, the lines that divide it are prefetched, and tested later.
    fn test_place(&mut self, pending: PendingLine) -> Result<()> {
        let PendingLine { run, low, place } = pending;
        let table = self.tables[usize::from(run.table)];
        let high = low | 0xff;
        let dividing =
            table.lines.dividing_lines(place, low, high).map_err(|damage| table.damaged(damage))?;
        let Some(dividing) = dividing else { return self.test_keys(pending) };
        for place in dividing {
            let line = PendingLine { run, low, place };
            if self.pending_lines - self.tested_lines < MAX_PENDING {
                self.pending[self.pending_lines % MAX_PENDING] = line;
                self.pending_lines += 1;
            } else {
                self.test_keys(line)?;
            }
        }
        Ok(())
    }

    /// Looks for prefixes in one line and in the lines that divide it.
    fn test_keys(&mut self, PendingLine { run, low, place }: PendingLine) -> Result<()> {
        let table = self.tables[usize::from(run.table)];
        let (low_mask, low_distance) = (table.probes.low_mask, u32::from(run.low_distance));
        let key_distance = u32::from(run.key_distance);
        let mut failed = Ok(());
        let mut start = self.candidates.listed_len();
        let visited = table.lines.visit_place(place, low, low | 0xff, |keys| {
            let different = (keys.key ^ table.key) as u8;
            if different.count_ones() > key_distance || (different & low_mask).count_ones() > low_distance {
                return ControlFlow::Continue(());
            }
            if keys.count == 1 && self.candidates.list(keys.rank, keys.key) {
                return ControlFlow::Continue(());
            }
            failed = self.add_run(run.table, start, keys);
            start = self.candidates.listed_len();
            if failed.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        visited.map_err(|damage| table.damaged(damage))?;
        failed?;
        self.add_listed(run.table, start)
    }

    /// Adds the listed keys from the index `start` on, and equal keys.
    #[inline(never)]
    fn add_run(&mut self, table: u8, start: usize, run: KeyRun) -> Result<()> {
        self.add_listed(table, start)?;
        self.add_candidate(run.rank, run.count, LineCandidate::Run { table, run })?;
        if self.candidates.has_full_list() { self.compare_candidates() } else { Ok(()) }
    }

    /// Adds the listed keys from the index `start` on.
    fn add_listed(&mut self, number: u8, start: usize) -> Result<()> {
        let listed = self.candidates.listed_from(start);
        let Some(&(first, _)) = listed.first() else { return Ok(()) };
        let table = self.tables[usize::from(number)];
        let mut prefetched = first;
        for &(rank, _) in listed {
            if rank.wrapping_sub(prefetched) >= table.suffixes_per_line / 2 {
                table.prefetch_suffixes(rank, 1)?;
                prefetched = rank;
            }
        }
        let end = self.candidates.listed_len() as u8;
        self.add_candidate(first, 1, LineCandidate::Listed { table: number, start: start as u8, end })
    }

    /// Adds the candidate `candidate`, and prefetches the other bits of its fingerprints. They have `count` ranks from `rank` on.
    #[inline(always)]
    fn add_candidate(&mut self, rank: u64, count: u64, candidate: LineCandidate<'a>) -> Result<()> {
        self.tables[usize::from(candidate.table())].prefetch_suffixes(rank, count)?;
        if self.candidates.push(candidate) { self.compare_candidates() } else { Ok(()) }
    }

    /// Compares all candidates with the query.
    #[inline(never)]
    fn compare_candidates(&mut self) -> Result<()> {
        let LineSearch { tables, distance, visitor, candidates, .. } = self;
        candidates.compare(tables, *distance, visitor)
    }
}

/// A line that is being loaded, to look for the prefixes of a bucket in it.
#[derive(Clone, Copy)]
struct PendingLine {
    run: ProbeRun,
    /// The lowest prefix of the bucket.
    low: u64,
    place: LinePlace,
}

impl PendingLine {
    const NONE: Self = PendingLine { run: ProbeRun::NONE, low: 0, place: LinePlace::NONE };
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
        let ProbeRun { table, low_distance, key_distance, .. } = self.run;
        let low_mask = self.search.tables[usize::from(table)].probes.low_mask;
        // If the plan's prefix has none of the low bits, the distance of the whole low byte is still limited.
        let (mask, distance) = if low_mask == 0 { (0xff, key_distance) } else { (low_mask, low_distance) };
        // Constant distances make faster loops.
        match distance {
            0 => self.test(level, mask, 0),
            1 => self.test(level, mask, 1),
            more => self.test(level, mask, u32::from(more)),
        }
    }
}

impl<F: Fingerprint, V: FnMut(ProbeHit<F>)> TestPlaces<'_, '_, F, V> {
    /// Adds the keys whose low byte differs from the query in at most `distance` of the bits of `mask` to the candidates.
    #[inline(always)]
    fn test(self, level: Level, mask: u8, distance: u32) -> Result<()> {
        let TestPlaces { run, places, search } = self;
        let number = usize::from(run.table);
        let table = search.tables[number];
        let (lines, low_byte, key_distance) = (table.lines.as_lines(), table.key as u8, run.key_distance);
        for (i, place) in places.iter().enumerate() {
            let line = PrefixLine(&lines[place.line() as usize]);
            let Some(counts) = line.key_counts() else {
                search.test_special_line(run, place.line(), run.bucket(&table, i))?;
                continue;
            };
            let keys = SlotKeys::of_slot(level, counts, place.slot());
            let mut matches = line.matching_keys(level, low_byte, mask, distance) & keys.mask();
            if matches != 0 && mask != 0xff {
                matches &= line.matching_keys(level, low_byte, 0xff, u32::from(key_distance));
            }
            if matches != 0 {
                let (first, end) = (matches.trailing_zeros(), 64 - matches.leading_zeros());
                let rank = line.rank() + u64::from(first);
                let bucket = run.bucket(&table, i);
                let candidate = LineCandidate::Keys { table: run.table, line, matches, bucket };
                search.add_candidate(rank, u64::from(end - first), candidate)?;
            }
        }
        Ok(())
    }
}
