//! Cost model of plans. It estimates the size of a plan's tables, the number of blocks that a query reads, and the
//! time of a query. `choice.rs` chooses a plan by these estimates.
//!
//! The estimated time of a query is a sum of counts times constants: probes, decoded fingerprints, and waits
//! for memory. The wait per cache line grows with the size of the tables. The counts follow from the plan and
//! the number of fingerprints, with the algorithm of `table/probe.rs`. The constants are fitted to
//! measurements by `benches/model.rs` with 2^20 and 2^24 fingerprints. The factors for 128 bits are fitted to
//! measurements by `benches/regret.rs`. `benches/history/cost-model.md` reports the accuracy with other numbers
//! of fingerprints; `benches/model.rs` can measure it again.

use std::fmt;
use std::str::FromStr;

use super::table_plan::combinations_up_to;
use super::{Plan, TablePlan, catalogue};
use crate::codec::{Codec, CodecCosts};
use crate::error::{Error, Result, find_by_name};
use crate::fingerprint::Fingerprint;
use crate::prefix_lines::{LineShape, PAGE_LINES};

/// Storage medium from which queries read the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Medium {
    /// Memory: the files fit into the page cache.
    #[default]
    Memory,
    /// A solid-state disk: each block takes a random read of about 80 us.
    Ssd,
    /// A rotating disk: each block takes a seek of about 8 ms.
    Disk,
}

impl Medium {
    const ALL: [(Medium, &'static str); 3] =
        [(Medium::Memory, "memory"), (Medium::Ssd, "ssd"), (Medium::Disk, "disk")];

    /// Additional time of a random read from this medium, compared with memory, in nanoseconds.
    fn random_read(self) -> f64 {
        match self {
            Medium::Memory => 0.0,
            Medium::Ssd => 80e3,
            Medium::Disk => 8e6,
        }
    }

    /// Speed of a sequential read, in bytes per nanosecond. Infinite for memory, where the model counts cache
    /// lines instead.
    fn bandwidth(self) -> f64 {
        match self {
            Medium::Memory => f64::INFINITY,
            Medium::Ssd => 2.0,
            Medium::Disk => 0.2,
        }
    }
}

impl fmt::Display for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Medium::ALL.iter().find(|(medium, _)| medium == self).map_or("", |(_, name)| name))
    }
}

impl FromStr for Medium {
    type Err = Error;

    fn from_str(name: &str) -> Result<Medium> {
        find_by_name("medium", &Medium::ALL, name)
    }
}

/// Fingerprints, format and storage medium of the tables for which the cost of a plan is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Number of distinct fingerprints, assumed to be spread evenly.
    pub fingerprints: u64,
    /// Codec that compresses the blocks of the tables.
    pub codec: Codec,
    /// Block size in bytes; `None` is the codec's default.
    pub block_size: Option<u32>,
    /// Number of fingerprints between two restart points (where decoding can start) in a block; `None` is the
    /// codec's default. Elias-Fano has no restart points.
    pub span: Option<u16>,
    /// Storage medium of the tables.
    pub medium: Medium,
}

/// Estimated cost of a plan: the size of its tables, and the work of a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostEstimate {
    /// Size of all tables in bytes per fingerprint, without ids.
    pub bytes_per_fingerprint: f64,
    /// Number of probes of one query in all tables together. A probe looks up one prefix in one table.
    pub probes: f64,
    /// Number of blocks that one query reads. A block that several probes need counts once.
    pub reads: f64,
    /// Number of fingerprints that are compared with the query.
    pub candidates: f64,
    /// Time of one query, in nanoseconds.
    pub nanoseconds: f64,
}

/// Number of probes (look-ups of one prefix in one table) that a query executes together, step by step, so that
/// it waits for the memory accesses of all these probes at the same time (`table/probe.rs`).
pub(crate) const PROBE_GROUP_LEN: usize = 64;
/// Waiting time of a group of [`PROBE_GROUP_LEN`] probes that run together, as a multiple of [`line_wait_ns`] (the
/// time to load one cache line). The group waits for the block index, then for the block headers, then for the
/// fingerprints in the blocks.
const WAITS_PER_GROUP: f64 = 3.5;
/// Like [`WAITS_PER_GROUP`], for tables that are searched by their prefix lines. The group waits for the lines, then for the
/// other bits of the fingerprints that have the prefix.
const LINE_WAITS_PER_GROUP: f64 = 1.5;
/// A probe reads the range of fingerprints with one prefix. If the range has at least this number of blocks, the
/// probe splits it by the bits after the prefix, into parts of about one block. It skips the parts that differ from
/// the query in too many bits (`table/probe.rs`).
pub(crate) const SPLIT_MIN_BLOCKS: usize = 64;
/// Additional time of a query for each part, in nanoseconds, if a probe splits its range into parts (see
/// [`SPLIT_MIN_BLOCKS`]).
const SPLIT_PROBE_NS: f64 = 110.0;
/// Average waiting time for a prefix line, or for the other bits of the fingerprints that a line has led to, as a multiple of
/// [`line_wait_ns`]. It is short because the waits of a group overlap.
const LINE_PROBE_WAITS: f64 = 0.07;
/// Average waiting time for one of the first [`PREFETCH_MIN_LINES`] cache lines (64 bytes each) that a probe
/// reads in sequence, as a multiple of [`line_wait_ns`].
const LINE_WAITS: f64 = 0.43;
/// Number of cache lines read in sequence after which the processor prefetches the next ones.
const PREFETCH_MIN_LINES: f64 = 16.0;
/// Average waiting time for each further cache line that a probe reads in sequence, after the first
/// [`PREFETCH_MIN_LINES`], as a multiple of [`line_wait_ns`].
const PREFETCHED_LINE_WAITS: f64 = 0.17;

/// Level-2 cache of the machine on which the constants were measured, which has two cores: the total size in bytes,
/// and the additional time to load a cache line that is not in this cache, in nanoseconds.
const L2_CACHE: (f64, f64) = (4e6, 82.0);
/// Level-3 cache of the machine on which the constants were measured: the size in bytes, and the additional time to
/// load a cache line that is not in this cache, in nanoseconds. The size is the measured share of the cache, since
/// other users of the machine take the rest.
const L3_CACHE: (f64, f64) = (390e6, 113.0);

/// Time of a probe in 128-bit fingerprints, without decoding, as a multiple of the time in 64-bit fingerprints.
const WIDE_PROBE_FACTOR: f64 = 1.4;
/// Time to decode and compare a 128-bit fingerprint, as a multiple of the time for a 64-bit fingerprint.
const WIDE_DECODE_FACTOR: f64 = 2.2;

/// Returns the constants of a codec for fingerprints of `bits` bits.
fn codec_costs(codec: Codec, bits: u32) -> CodecCosts {
    let costs = codec.spec().costs;
    if bits <= 64 {
        return costs;
    }
    CodecCosts { probe: costs.probe * WIDE_PROBE_FACTOR, decode: costs.decode * WIDE_DECODE_FACTOR, ..costs }
}

/// Number of fingerprints between two restart points (where decoding can start) in a block; 0 for codecs without
/// restart points.
fn span(workload: &Workload) -> f64 {
    let default = workload.codec.default_span(workload.fingerprints);
    default.map_or(0.0, |default| f64::from(workload.span.unwrap_or(default)))
}

/// Expected time to load a random cache line of tables with a total size of `bytes` bytes, in nanoseconds. The
/// estimate assumes that, with a cache of c bytes, a share of bytes / (bytes + c) of the lines is not in the
/// cache.
fn line_wait_ns(bytes: f64) -> f64 {
    [L2_CACHE, L3_CACHE].iter().map(|(cache, time)| time * bytes / (bytes + cache)).sum()
}

/// Estimates the size of a plan's tables and the cost of a query, for a workload.
pub fn estimate<F: Fingerprint>(plan: &Plan<F>, workload: &Workload) -> CostEstimate {
    let costs = codec_costs(workload.codec, F::BITS);
    let size = TableSize::new(workload, F::BITS);
    let mut all = OperationCounts { by_lines: true, ..OperationCounts::default() };
    for table in plan.tables() {
        all.add(&OperationCounts::from_table(table, plan.distance(), workload, &size));
    }
    let bytes_per_fingerprint = size.bits / 8.0 * plan.tables().len() as f64;
    let wait = line_wait_ns(bytes_per_fingerprint * size.fingerprints);
    let ranges = all.probes + all.parts;
    // Half a span is decoded on average before each range.
    let decoded = ranges * span(workload) / 2.0 + all.candidates;
    let reads = (all.blocks + all.next_blocks).min(size.blocks * plan.tables().len() as f64);
    let computing = ranges * costs.probe + decoded * costs.decode + all.parts * SPLIT_PROBE_NS;
    let waits_per_group = if all.by_lines { LINE_WAITS_PER_GROUP } else { WAITS_PER_GROUP };
    let waiting = (all.probes / PROBE_GROUP_LEN as f64).max(1.0) * waits_per_group
        + all.blocks * costs.miss
        + all.lines;
    let medium = workload.medium;
    let reading = all.blocks * medium.random_read() + reads * size.block_bytes / medium.bandwidth();
    CostEstimate {
        bytes_per_fingerprint,
        probes: all.probes,
        reads,
        candidates: all.candidates,
        nanoseconds: computing + waiting * wait + reading,
    }
}

/// Number of ways to choose `count` of `bits` bits. `bits` may be fractional.
fn exactly(bits: f64, count: u32) -> f64 {
    combinations_up_to(bits, count)
        - count.checked_sub(1).map_or(0.0, |fewer| combinations_up_to(bits, fewer))
}

/// Estimated size of one table.
struct TableSize {
    fingerprints: f64,
    /// Size of the table in bits per fingerprint, with headers, restart points and the block index.
    bits: f64,
    blocks: f64,
    block_bytes: f64,
}

impl TableSize {
    fn new(workload: &Workload, width: u32) -> TableSize {
        let fingerprints = workload.fingerprints.max(1) as f64;
        let codec = workload.codec;
        let block_bytes = f64::from(workload.block_size.unwrap_or(codec.default_block_size(width)));
        let (block_bits, width) = (block_bytes * 8.0, f64::from(width));
        // A block adds its header, an uncompressed first fingerprint, an entry in the block index, and half a
        // fingerprint of unused space. A span adds a restart point.
        let coded = (width - fingerprints.log2() + codec.spec().costs.bits).max(1.0);
        let per_block = 64.0 + width + (width - coded) + coded / 2.0;
        let per_block = per_block.min(fingerprints * coded + per_block);
        let restart = if codec.has_spans() { 24.0 / span(workload) } else { 0.0 };
        let bits = coded + restart + per_block / (block_bits / coded).min(fingerprints);
        TableSize { fingerprints, bits, blocks: (fingerprints * bits / block_bits).max(1.0), block_bytes }
    }
}

/// Expected numbers of operations in one query. A *probe* looks up one prefix in one table: it reads the
/// fingerprints with this prefix, which are the *range* of the probe.
#[derive(Default)]
struct OperationCounts {
    probes: f64,
    /// Number of parts into which the probes split their ranges, see [`SPLIT_MIN_BLOCKS`].
    parts: f64,
    /// Number of different blocks in which the ranges of the probes start. Probes often share such a block, namely if
    /// their prefixes differ only in the last bits.
    blocks: f64,
    /// Number of further blocks that the probes read, after the first block of each range.
    next_blocks: f64,
    /// Number of fingerprints that all probes read.
    candidates: f64,
    /// Waiting time for the cache lines that all probes read, as a multiple of [`line_wait_ns`].
    lines: f64,
    /// Whether all tables so far are searched by their prefix lines.
    by_lines: bool,
}

impl OperationCounts {
    /// Returns the time that a probe waits for the cache lines of `fingerprints` consecutive fingerprints, as a
    /// multiple of [`line_wait_ns`].
    fn lines(fingerprints: f64, size: &TableSize) -> f64 {
        let lines = fingerprints * size.bits / 512.0;
        lines.min(PREFETCH_MIN_LINES) * LINE_WAITS
            + (lines - PREFETCH_MIN_LINES).max(0.0) * PREFETCHED_LINE_WAITS
    }

    fn from_table<F: Fingerprint>(
        table: &TablePlan<F>,
        distance: u32,
        workload: &Workload,
        size: &TableSize,
    ) -> OperationCounts {
        if workload.codec.spec().has_lines
            && let Some(all) = OperationCounts::from_lines(table, distance, size)
        {
            return all;
        }
        let bits = f64::from(table.flipped_bits(workload.fingerprints));
        let mut all = OperationCounts::default();
        for flips in 0..=table.flips {
            let shared = if flips == table.flips { f64::from(table.prefix_bits) } else { bits };
            all.add(&OperationCounts::from_ranges(
                exactly(bits, flips),
                shared,
                distance.saturating_sub(flips),
                size,
            ));
        }
        // Probes that differ late share blocks.
        all.blocks = all.blocks.min(combinations_up_to(bits.min(size.blocks.log2()), table.flips));
        all
    }

    /// Returns the numbers of operations of a query that searches a table by its prefix lines. Returns `None` if the table
    /// would be searched by blocks.
    fn from_lines<F: Fingerprint>(
        table: &TablePlan<F>,
        distance: u32,
        size: &TableSize,
    ) -> Option<OperationCounts> {
        let shape = LineShape::for_table(size.fingerprints as u64, LineShape::MEAN_KEYS, F::BITS);
        let probes = table.line_probes(shape)?;
        let prefix_bits = table.prefix_bits.min(shape.key_bits());
        let (prefix, flips) = (f64::from(prefix_bits), table.flips.min(distance));
        // Low bits after the plan's prefix. A key that differs from the query in too many of them is no candidate.
        let low_bits = (shape.key_bits() - prefix_bits).min(shape.low_bits());
        let low = f64::from(low_bits);
        let is_candidate = |flips: u32| combinations_up_to(low, distance - flips) / low.exp2();
        let each = size.fingerprints / prefix.exp2();
        let candidates: f64 =
            (0..=flips).map(|flips| each * exactly(prefix, flips) * is_candidate(flips)).sum();
        let candidates = candidates.min(size.fingerprints);
        // Probes whose buckets differ in the last bits share a page.
        let pages = (shape.lines() as f64 / PAGE_LINES as f64).max(1.0).log2();
        Some(OperationCounts {
            probes,
            blocks: combinations_up_to(prefix.min(pages), flips) + candidates.min(size.blocks),
            candidates,
            lines: (probes + candidates.min(probes)) * LINE_PROBE_WAITS,
            by_lines: true,
            ..OperationCounts::default()
        })
    }

    /// Returns the numbers of operations for `probes` probes. The fingerprints that one probe reads agree in their
    /// first `shared` bits. In the other bits, a match differs from the query in at most `left` bits.
    fn from_ranges(probes: f64, shared: f64, left: u32, size: &TableSize) -> OperationCounts {
        let blocks_each = size.blocks / shared.exp2();
        let each = size.fingerprints / shared.exp2();
        if blocks_each < SPLIT_MIN_BLOCKS as f64 {
            return OperationCounts {
                probes,
                parts: 0.0,
                blocks: probes,
                next_blocks: probes * blocks_each,
                candidates: (probes * each).min(size.fingerprints),
                lines: probes * OperationCounts::lines(each, size),
                by_lines: false,
            };
        }
        // The range is split down to less than one block, with at most `left` flips of the further bits.
        let depth = blocks_each.log2() + 1.0;
        let parts = probes * combinations_up_to(depth, left);
        let each = each / depth.exp2();
        OperationCounts {
            probes,
            parts,
            blocks: parts.min(size.blocks),
            next_blocks: 0.0,
            candidates: (parts * each).min(size.fingerprints),
            lines: parts * OperationCounts::lines(each, size),
            by_lines: false,
        }
    }

    fn add(&mut self, other: &OperationCounts) {
        self.probes += other.probes;
        self.parts += other.parts;
        self.blocks += other.blocks;
        self.next_blocks += other.next_blocks;
        self.candidates += other.candidates;
        self.lines += other.lines;
        self.by_lines &= other.by_lines;
    }
}

/// Returns all named plans for a distance with their estimated costs, sorted by the size of their tables.
///
/// # Errors
/// [`Error::BadArgument`] if the distance is above [`Fingerprint::MAX_DISTANCE`].
pub fn estimate_all<F: Fingerprint>(
    distance: u32,
    workload: &Workload,
) -> Result<Vec<(Plan<F>, CostEstimate)>> {
    let mut plans = Vec::new();
    for name in catalogue::names::<F>(distance) {
        let plan = Plan::named(&name, distance)?;
        let estimate = estimate(&plan, workload);
        plans.push((plan, estimate));
    }
    plans.sort_by(|a, b| a.1.bytes_per_fingerprint.total_cmp(&b.1.bytes_per_fingerprint));
    Ok(plans)
}

/// Returns the information-theoretic minimum of the bits per fingerprint that a set of `count` distinct random
/// fingerprints of `bits` bits takes: log2 C(2^bits, count) / count.
///
/// The result is computed by Stirling's formula. Its error is far below 0.01 bit. Returns 0 if `count` is 0.
pub fn min_bits_per_fingerprint(bits: u32, count: u64) -> f64 {
    if count == 0 {
        return 0.0;
    }
    let n = count as f64;
    let log2_e = std::f64::consts::LOG2_E;
    let stirling = (std::f64::consts::TAU * n).log2() / 2.0 + log2_e / (12.0 * n);
    f64::from(bits) - n.log2() + log2_e - stirling / n
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(fingerprints: u64) -> Workload {
        Workload {
            fingerprints,
            codec: Codec::default(),
            block_size: None,
            span: None,
            medium: Medium::Memory,
        }
    }

    #[test]
    fn the_floor() {
        // One of 2^64 values: 64 bits. Two of them in any order: half a bit less per value.
        assert!((min_bits_per_fingerprint(64, 1) - 64.0).abs() < 0.01);
        assert!((min_bits_per_fingerprint(64, 2) - 63.5).abs() < 0.01);
        assert!((min_bits_per_fingerprint(64, 1 << 24) - 41.44).abs() < 0.01);
        assert!((min_bits_per_fingerprint(128, 1 << 24) - 105.44).abs() < 0.01);
    }

    #[test]
    fn probes_are_counted() {
        let probes = |plan, codec| {
            let plan = Plan::<u64>::named(plan, 3).unwrap();
            estimate(&plan, &Workload { codec, ..workload(1 << 20) }).probes
        };
        // Two tables with one flip of the first 16 bits; one table with one flip, two with none.
        assert_eq!(probes("probe-2", Codec::FirstDifference), 34.0);
        assert_eq!(probes("probe-2", Codec::EliasFano), 34.0);
        assert_eq!(probes("probe-3", Codec::FirstDifference), 19.0);
        assert_eq!(probes("paper-4", Codec::EliasFano), 4.0);
    }
}
