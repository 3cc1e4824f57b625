//! The cost model: bytes, blocks read and time of a plan, and the choice among plans.
//!
//! A query's time is the sum of its parts, each a count times a constant: probes, fingerprints decoded, and waits for
//! memory, which grow with the tables. The counts follow from the plan and the size, as `table/probe.rs` probes. The
//! constants are fitted to measurements by `benches/model.rs` at n = 2^20 and 2^24. `benches/history/cost-model.md`
//! has their accuracy at other sizes, and the same bench can test it again.

use std::fmt;
use std::str::FromStr;

use super::table_plan::combinations;
use super::{Plan, TablePlan, catalogue};
use crate::codec::Codec;
use crate::error::{Error, Result, one_of};
use crate::fingerprint::Fingerprint;

/// The storage medium of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Medium {
    /// Memory: the files fit into the page cache.
    #[default]
    Memory,
    /// A solid-state disk: each block is a random read of about 80 us.
    Ssd,
    /// A rotating disk: each block is a seek of about 8 ms.
    Disk,
}

impl Medium {
    const ALL: [(Medium, &'static str); 3] =
        [(Medium::Memory, "memory"), (Medium::Ssd, "ssd"), (Medium::Disk, "disk")];

    /// Additional time of a random read, in nanoseconds.
    fn random_read(self) -> f64 {
        match self {
            Medium::Memory => 0.0,
            Medium::Ssd => 80e3,
            Medium::Disk => 8e6,
        }
    }

    /// Speed of a sequential read, in bytes per nanosecond. For memory, the cache lines are counted instead.
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
        one_of("medium", &Medium::ALL, name)
    }
}

/// The workload that a plan's cost is estimated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Number of distinct fingerprints, assumed to be spread evenly.
    pub fingerprints: u64,
    /// Codec of the tables.
    pub codec: Codec,
    /// Block size in bytes; `None` is the codec's default.
    pub block_size: Option<u32>,
    /// Fingerprints from one restart point to the next; `None` is the default. Elias-Fano has no restart points.
    pub span: Option<u16>,
    /// The storage medium of the tables.
    pub medium: Medium,
}

/// The estimated cost of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Bytes of all tables for each fingerprint, without ids.
    pub bytes_per_fingerprint: f64,
    /// Probes of one query.
    pub probes: f64,
    /// Blocks read by one query; probes in the same block read it once.
    pub reads: f64,
    /// Fingerprints compared with the query.
    pub candidates: f64,
    /// Time of one query, in nanoseconds.
    pub nanoseconds: f64,
}

/// Number of probes that wait for memory together (`table/probe.rs`).
pub(crate) const TOGETHER: usize = 64;
/// Number of successive [`wait`]s of such a group: index, head of the block, place in the block.
const STAGES: f64 = 3.5;
/// Ranges of at least this many blocks are split by more bits than the prefix has, down to one block
/// (`table/probe.rs`).
pub(crate) const WIDE: usize = 64;
/// Additional time of each part's probe in a split range, in nanoseconds.
const SPLIT: f64 = 110.0;
/// Number of [`wait`]s that each line of 64 bytes of a range adds. From [`STREAM`] lines on it is [`LINE_OF_STREAM`]:
/// the processor has noticed the sequence and prefetches.
const LINE: f64 = 0.43;
const STREAM: f64 = 16.0;
const LINE_OF_STREAM: f64 = 0.17;

/// Sizes of caches in bytes, and the time to load a line that is not cached, in nanoseconds. L2: the caches of both
/// cores. L3: the measured share that other users of a machine leave, and that the pages of the map fit into.
const L2: (f64, f64) = (4e6, 82.0);
const L3: (f64, f64) = (390e6, 113.0);

/// Fingerprints from one restart point to the next; 0 without restart points.
fn span(workload: &Workload) -> f64 {
    let default = workload.codec.default_span(workload.fingerprints);
    default.map_or(0.0, |default| f64::from(workload.span.unwrap_or(default)))
}

/// Expected time to load a random line of tables of s bytes, in nanoseconds. As a smooth approximation, s / (s + c)
/// of such lines are not in a cache of c bytes.
fn wait(bytes: f64) -> f64 {
    [L2, L3].iter().map(|(cache, time)| time * bytes / (bytes + cache)).sum()
}

/// Estimates the cost of a plan.
pub fn estimate<F: Fingerprint>(plan: &Plan<F>, workload: &Workload) -> Estimate {
    let costs = workload.codec.facts().costs;
    let size = Size::of(workload, F::BITS);
    let mut all = Counts::default();
    for table in plan.tables() {
        all.add(&Counts::of(table, plan.distance(), workload, &size));
    }
    let bytes_per_fingerprint = size.bits / 8.0 * plan.tables().len() as f64;
    let wait = wait(bytes_per_fingerprint * size.fingerprints);
    let ranges = all.probes + all.parts;
    // Half a span is decoded on average before each range.
    let decoded = ranges * span(workload) / 2.0 + all.candidates;
    let reads = (all.blocks + all.next_blocks).min(size.blocks * plan.tables().len() as f64);
    let computing = ranges * costs.probe + decoded * costs.decode + all.parts * SPLIT;
    let waiting = (all.probes / TOGETHER as f64).max(1.0) * STAGES + all.blocks * costs.miss + all.lines;
    let medium = workload.medium;
    let reading = all.blocks * medium.random_read() + reads * size.block_bytes / medium.bandwidth();
    Estimate {
        bytes_per_fingerprint,
        probes: all.probes,
        reads,
        candidates: all.candidates,
        nanoseconds: computing + waiting * wait + reading,
    }
}

/// The size of a table.
struct Size {
    fingerprints: f64,
    /// Bits of a fingerprint, with its share of all other data.
    bits: f64,
    blocks: f64,
    block_bytes: f64,
}

impl Size {
    fn of(workload: &Workload, width: u32) -> Size {
        let fingerprints = workload.fingerprints.max(1) as f64;
        let codec = workload.codec;
        let block_bytes = f64::from(workload.block_size.unwrap_or(codec.default_block_size(width)));
        let (block_bits, width) = (block_bytes * 8.0, f64::from(width));
        // A block adds its header, its first fingerprint in full, its entry in the index, and half a fingerprint of
        // slack; a span adds a restart point.
        let coded = (width - fingerprints.log2() + codec.facts().costs.bits).max(1.0);
        let per_block = 64.0 + width + (width - coded) + coded / 2.0;
        let per_block = per_block.min(fingerprints * coded + per_block);
        let restart = if codec.has_spans() { 24.0 / span(workload) } else { 0.0 };
        let bits = coded + restart + per_block / (block_bits / coded).min(fingerprints);
        Size { fingerprints, bits, blocks: (fingerprints * bits / block_bits).max(1.0), block_bytes }
    }
}

/// Counts of a query's operations.
#[derive(Default)]
struct Counts {
    probes: f64,
    /// Parts of ranges that are too wide to be read whole.
    parts: f64,
    /// First blocks of the ranges, each counted once. Probes that differ late in the prefix share a block.
    blocks: f64,
    /// Further blocks of the ranges.
    next_blocks: f64,
    /// Fingerprints in the ranges.
    candidates: f64,
    /// [`wait`]s for the lines of the ranges.
    lines: f64,
}

impl Counts {
    /// Number of [`wait`]s for the lines of successive fingerprints.
    fn lines(fingerprints: f64, size: &Size) -> f64 {
        let lines = fingerprints * size.bits / 512.0;
        lines.min(STREAM) * LINE + (lines - STREAM).max(0.0) * LINE_OF_STREAM
    }

    fn of<F: Fingerprint>(table: &TablePlan<F>, distance: u32, workload: &Workload, size: &Size) -> Counts {
        let bits = f64::from(table.flipped_bits(workload.fingerprints));
        let exactly = |flips: u32| {
            combinations(bits, flips) - flips.checked_sub(1).map_or(0.0, |fewer| combinations(bits, fewer))
        };
        let mut all = Counts::default();
        for flips in 0..=table.flips {
            let shared = if flips == table.flips { f64::from(table.prefix_bits) } else { bits };
            all.add(&Counts::of_ranges(exactly(flips), shared, distance.saturating_sub(flips), size));
        }
        // Probes that differ late share blocks.
        all.blocks = all.blocks.min(combinations(bits.min(size.blocks.log2()), table.flips));
        all
    }

    /// Counts of the probes of ranges. The fingerprints of a range share `shared` bits; at most `left` more bits may
    /// differ.
    fn of_ranges(probes: f64, shared: f64, left: u32, size: &Size) -> Counts {
        let blocks_each = size.blocks / shared.exp2();
        let each = size.fingerprints / shared.exp2();
        if blocks_each < WIDE as f64 {
            return Counts {
                probes,
                parts: 0.0,
                blocks: probes,
                next_blocks: probes * blocks_each,
                candidates: (probes * each).min(size.fingerprints),
                lines: probes * Counts::lines(each, size),
            };
        }
        // Splits the range down to less than one block. On the way, at most the `left` remaining flips are made.
        let depth = blocks_each.log2() + 1.0;
        let parts = probes * combinations(depth, left);
        let each = each / depth.exp2();
        Counts {
            probes,
            parts,
            blocks: parts.min(size.blocks),
            next_blocks: 0.0,
            candidates: (parts * each).min(size.fingerprints),
            lines: parts * Counts::lines(each, size),
        }
    }

    fn add(&mut self, other: &Counts) {
        self.probes += other.probes;
        self.parts += other.parts;
        self.blocks += other.blocks;
        self.next_blocks += other.next_blocks;
        self.candidates += other.candidates;
        self.lines += other.lines;
    }
}

/// Returns all named plans with their estimates, smallest first.
///
/// # Errors
/// [`Error::BadArgument`] if the distance is above [`Fingerprint::MAX_DISTANCE`].
pub fn frontier<F: Fingerprint>(distance: u32, workload: &Workload) -> Result<Vec<(Plan<F>, Estimate)>> {
    let mut plans = Vec::new();
    for name in catalogue::names::<F>(distance) {
        let plan = Plan::named(&name, distance)?;
        let estimate = estimate(&plan, workload);
        plans.push((plan, estimate));
    }
    plans.sort_by(|a, b| a.1.bytes_per_fingerprint.total_cmp(&b.1.bytes_per_fingerprint));
    Ok(plans)
}

/// Chooses the default plan of a store: the one with the least time x size^3.
///
/// A plan of twice the size is chosen only if it takes at most an eighth of the time, since simstore favours small stores.
///
/// # Errors
/// As [`frontier`].
pub fn choose<F: Fingerprint>(distance: u32, workload: &Workload) -> Result<Plan<F>> {
    if distance > F::MAX_DISTANCE {
        return Plan::named("scan", distance);
    }
    let price = |estimate: &Estimate| estimate.nanoseconds * estimate.bytes_per_fingerprint.powi(3);
    let plans = frontier(distance, workload)?.into_iter();
    let best = plans.min_by(|a, b| price(&a.1).total_cmp(&price(&b.1)));
    best.map_or_else(|| Plan::named("scan", distance), |(plan, _)| Ok(plan))
}

/// The information-theoretic minimum of bits per fingerprint, for `count` distinct random fingerprints of `bits`
/// bits: log2 C(2^bits, count) / count.
///
/// Computed by Stirling's formula, exact to far below 0.01 bit. Returns 0 for no fingerprints.
pub fn floor_bits_per_fingerprint(bits: u32, count: u64) -> f64 {
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
        // One of 2^64 values; two of them, in any order.
        assert!((floor_bits_per_fingerprint(64, 1) - 64.0).abs() < 0.01);
        assert!((floor_bits_per_fingerprint(64, 2) - 63.5).abs() < 0.01);
        assert!((floor_bits_per_fingerprint(64, 1 << 24) - 41.44).abs() < 0.01);
        assert!((floor_bits_per_fingerprint(128, 1 << 24) - 105.44).abs() < 0.01);
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

    #[test]
    fn every_size_and_distance_has_a_choice() {
        for log in [0, 1, 10, 20, 27, 33, 40] {
            for distance in 0..=16 {
                choose::<u64>(distance, &workload(1 << log)).unwrap();
            }
            for distance in [0, 3, 17, 32] {
                choose::<u128>(distance, &workload(1 << log)).unwrap();
            }
        }
        assert!(choose::<u64>(17, &workload(5)).is_err());
    }

    #[test]
    fn few_fingerprints_at_a_large_distance_are_scanned() {
        assert_eq!(choose::<u64>(16, &workload(1000)).unwrap().name(), "scan");
        assert_ne!(choose::<u64>(3, &workload(100_000_000)).unwrap().name(), "scan");
    }

    #[test]
    fn seeks_ask_for_fewer_reads() {
        let reads = |medium| {
            let workload = Workload { medium, ..workload(8_000_000_000) };
            let plan = choose::<u64>(3, &workload).unwrap();
            estimate(&plan, &workload).reads
        };
        assert!(reads(Medium::Disk) <= reads(Medium::Memory));
    }
}
