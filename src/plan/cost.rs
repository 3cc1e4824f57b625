//! The cost model: bytes, blocks read and time of a plan, and the choice among plans.
//!
//! A query's time is the sum of its parts: going down the prefix, reading blocks, decoding up to the range and
//! comparing what lies in it. The constants are fitted to what `benches/curve.rs` measures of tables of 2^20 and
//! 2^24 fingerprints, and `benches/build.rs` of 100 million (`BENCHMARKS.md`, "Cost model").

use std::fmt;
use std::str::FromStr;

use super::{Plan, TablePlan, catalogue};
use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;

/// What a table is read from.
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

    /// What a random read adds, in nanoseconds.
    fn random_read(self) -> f64 {
        match self {
            Medium::Memory => 0.0,
            Medium::Ssd => 80e3,
            Medium::Disk => 8e6,
        }
    }

    /// Bytes a nanosecond in a sequential read.
    fn bandwidth(self) -> f64 {
        match self {
            Medium::Memory => 40.0,
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
        Medium::ALL.iter().find(|(_, other)| *other == name).map(|&(medium, _)| medium).ok_or_else(|| {
            Error::BadArgument(format!("there is no medium `{name}`; expected memory, ssd or disk"))
        })
    }
}

/// What a plan is to be judged for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Number of distinct fingerprints, taken as spread evenly.
    pub fingerprints: u64,
    /// How tables are coded.
    pub codec: Codec,
    /// Block size in bytes; `None` is the codec's default.
    pub block_size: Option<u32>,
    /// What the tables are read from.
    pub medium: Medium,
}

/// What the model says of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Bytes of all tables for each fingerprint, without ids.
    pub bytes_per_fingerprint: f64,
    /// Probes of one query.
    pub probes: f64,
    /// Blocks read by one query: probes that share a block share its reading.
    pub reads: f64,
    /// Fingerprints compared with the query.
    pub candidates: f64,
    /// Time of one query, in nanoseconds.
    pub nanoseconds: f64,
}

/// Constants of a codec.
struct CodecCosts {
    /// Bits of a random fingerprint above 64 - log2 n, without what a block adds.
    bits: f64,
    /// Reading a block whose lines are in the cache, up to the start of the range, in nanoseconds.
    read: f64,
    /// Decoding one fingerprint, in nanoseconds.
    decode: f64,
    /// How much of [`MISS_PER_DOUBLING`] a block costs: more for a codec that touches more lines.
    miss: f64,
}

const fn costs(codec: Codec) -> CodecCosts {
    match codec {
        Codec::FirstDifference => CodecCosts { bits: 3.42, read: 250.0, decode: 2.7, miss: 1.2 },
        Codec::Gap => CodecCosts { bits: 1.54, read: 240.0, decode: 2.5, miss: 1.2 },
        Codec::EliasFano => CodecCosts { bits: 2.0, read: 70.0, decode: 2.8, miss: 0.85 },
    }
}

/// One step down the prefix: finding a block in the index, in nanoseconds.
const FIND: f64 = 15.0;
/// What a block costs more when the table does not fit the cache, for each doubling, in nanoseconds; up to
/// what main memory takes.
const MISS_PER_DOUBLING: f64 = 80.0;
const MISS_LIMIT: f64 = 500.0;
/// Largest table that the cache holds, in bytes.
const CACHE: f64 = 8e6;

/// What a plan costs.
pub fn estimate<F: Fingerprint>(plan: &Plan<F>, workload: &Workload) -> Estimate {
    let mut total =
        Estimate { bytes_per_fingerprint: 0.0, probes: 0.0, reads: 0.0, candidates: 0.0, nanoseconds: 0.0 };
    for table in plan.tables() {
        let part = estimate_table(table, workload);
        total.bytes_per_fingerprint += part.bytes_per_fingerprint;
        total.probes += part.probes;
        total.reads += part.reads;
        total.candidates += part.candidates;
        total.nanoseconds += part.nanoseconds;
    }
    total
}

fn estimate_table<F: Fingerprint>(table: &TablePlan<F>, workload: &Workload) -> Estimate {
    let n = workload.fingerprints.max(1) as f64;
    let costs = costs(workload.codec);
    let width = f64::from(F::BITS);
    let block_bits =
        f64::from(workload.block_size.unwrap_or(workload.codec.default_block_size(F::BITS))) * 8.0;

    // A block adds its header, its first fingerprint in full, its entry in the index and half a fingerprint of
    // slack; a span adds a restart point.
    let coded = (width - n.log2() + costs.bits).max(1.0);
    let per_block = 64.0 + width + (width - coded) + coded / 2.0;
    let per_block = per_block.min(n * coded + per_block);
    let restart = if workload.codec == Codec::EliasFano { 0.0 } else { 24.0 / 64.0 };
    let bits = coded + restart + per_block / (block_bits / coded).min(n);
    let blocks = (n * bits / block_bits).max(1.0);
    let depth = blocks.log2();

    let (p, r) = (table.prefix_bits, table.flips);
    let probes = paths(f64::from(p), r);
    let (reads, candidates, steps);
    if p == 0 {
        (reads, candidates, steps) = (blocks, n, 1.0);
    } else {
        // Down to the depth at which what is left lies in one block, each path leads to a block of its own.
        let level = f64::from(p).min(depth.ceil());
        let leaves = paths(level, r);
        let blocks_per_leaf = (blocks / level.exp2()).max(1.0);
        reads = (leaves * blocks_per_leaf).min(blocks);
        // Paths with flips left read all that follows, the others their prefix.
        let open = if r == 0 { 0.0 } else { paths(level, r - 1) };
        candidates = (open * n / level.exp2() + (leaves - open) * n / f64::from(p).exp2()).min(n);
        steps = leaves + paths(level, r.saturating_sub(1)) * level;
    }
    let table_bytes = n * bits / 8.0;
    let miss = costs.miss * (MISS_PER_DOUBLING * (table_bytes / CACHE).log2()).clamp(0.0, MISS_LIMIT);
    let medium = workload.medium;
    let reading = if p == 0 {
        costs.read + table_bytes / medium.bandwidth() + medium.random_read()
    } else {
        reads * (costs.read + miss + medium.random_read())
    };
    Estimate {
        bytes_per_fingerprint: bits / 8.0,
        probes,
        reads,
        candidates,
        nanoseconds: steps * FIND + reading + candidates * costs.decode,
    }
}

/// Number of ways to flip at most `flips` out of `bits` bits.
fn paths(bits: f64, flips: u32) -> f64 {
    let mut term = 1.0;
    let mut sum = 1.0;
    for i in 0..flips {
        term *= (bits - f64::from(i)).max(0.0) / f64::from(i + 1);
        sum += term;
    }
    sum
}

/// All plans that have names, with what they cost, smallest first.
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

/// The plan that a store gets which is not told one: the least time x size^3, so that a plan of twice the size
/// has to take an eighth of the time: what one keeps simstore for is that it is small.
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

/// The information-theoretic floor: the bits that each of `count` distinct random fingerprints of `bits` bits
/// takes at least, log2 C(2^bits, count) / count.
///
/// By Stirling's formula; exact to far below 0.01 bit. 0 for no fingerprints.
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
        Workload { fingerprints, codec: Codec::default(), block_size: None, medium: Medium::Memory }
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
        let plan = Plan::<u64>::named("probe-2", 3).unwrap();
        assert_eq!(estimate(&plan, &workload(1 << 20)).probes, 66.0);
        let plan = Plan::<u64>::named("probe-3", 3).unwrap();
        assert_eq!(estimate(&plan, &workload(1 << 20)).probes, 24.0);
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
