//! Bits assigned from a sample against contiguous blocks of bits: candidates, bytes and time; prints Markdown.
//!
//! `cargo bench --bench bits -- FILE.u64 ...` takes raw little-endian files; it always takes
//! 1,000,000 fingerprints that share their first 40 bits, too. `--plans=probe-2,auto` and `--codecs=gap` take other
//! plans and codecs than those below. Stores go to the folder that TMPDIR names, and are removed.

#[path = "../tests/support/random.rs"]
mod random;

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use random::random;
use simstore::plan::BitAssignment;
use simstore::{BuildOptions, Builder, Codec, Fingerprint, Match, Snapshot};

const PLANS: &str = "probe-2,probe-3,mixed-3-20,paper-4,cover-6";
const CODECS: &str = "first-difference,elias-fano";
const DISTANCE: u32 = 3;
/// Each round asks all queries of one store, then of the other.
const ROUNDS: usize = 7;
const QUERIES: usize = 4000;
/// Queries whose candidates are counted.
const COUNTED: usize = 200;

type Error = Box<dyn std::error::Error>;

/// Distinct ones that share their first 40 bits.
fn crowded() -> Vec<u64> {
    let mut state = 1;
    let mut all = std::collections::HashSet::new();
    while all.len() < 1_000_000 {
        all.insert(0x1234_5678_9a00_0000 | random(&mut state) & u64::suffix_mask(24));
    }
    let mut all: Vec<u64> = all.into_iter().collect();
    all.sort_unstable();
    all
}

/// Stored ones with up to three bits flipped.
fn queries(fingerprints: &[u64]) -> Vec<u64> {
    let mut state = 99;
    let mut query = |i: usize| {
        let stored = fingerprints[(random(&mut state) % fingerprints.len() as u64) as usize];
        (0..i % 4).fold(stored, |x, _| x ^ 1 << (random(&mut state) % 64))
    };
    (0..QUERIES).map(&mut query).collect()
}

struct Built {
    store: Snapshot<u64>,
    seconds: f64,
    /// Of each round, in microseconds: the median, and what one query in a hundred exceeds.
    rounds: Vec<(f64, f64)>,
    // Removed with the store.
    _folder: tempfile::TempDir,
}

impl Built {
    fn new(
        fingerprints: &[u64],
        plan: &str,
        codec: Codec,
        assignment: BitAssignment,
    ) -> Result<Built, Error> {
        let folder = tempfile::tempdir()?;
        let options =
            BuildOptions { codec, plan: plan.parse()?, assignment, ids: false, ..BuildOptions::default() };
        let start = Instant::now();
        let mut builder = Builder::<u64>::create(&folder.path().join("store"), options)?;
        fingerprints.iter().try_for_each(|&fingerprint| builder.insert(fingerprint, 0))?;
        let store = builder.finish()?;
        let seconds = start.elapsed().as_secs_f64();
        // Reads all files into the page cache, and has all blocks verified.
        assert_eq!(store.verify(|error| eprintln!("{error}")), 0);
        Ok(Built { store, seconds, rounds: Vec::new(), _folder: folder })
    }

    /// Stored fingerprints that probes find for a query, on average: by the bits that they look at, and by all bits of
    /// the prefixes.
    fn candidates(&self, fingerprints: &[u64], queries: &[u64]) -> (f64, f64) {
        let tables = self.store.segments()[0].tables().iter().map(|table| {
            let header = table.header();
            let flipped = header.plan.flipped_bits(header.fingerprints);
            let looked_at = header.plan.permutation.invert(u64::prefix_mask(flipped));
            (looked_at, header.plan.prefix_mask(), header.plan.flips)
        });
        let (mut probed, mut whole) = (0_u64, 0_u64);
        for (looked_at, prefix, flips) in tables {
            for &query in queries {
                for &x in fingerprints {
                    let in_prefix = ((x ^ query) & prefix).count_ones() <= flips;
                    probed += u64::from(in_prefix || ((x ^ query) & looked_at).count_ones() < flips);
                    whole += u64::from(in_prefix);
                }
            }
        }
        (probed as f64 / queries.len() as f64, whole as f64 / queries.len() as f64)
    }

    /// Asks all queries, and returns how many matches they have.
    fn ask(&mut self, queries: &[u64], matches: &mut Vec<Match<u64>>) -> Result<usize, Error> {
        let mut found = 0;
        let mut times = Vec::with_capacity(queries.len());
        for &query in queries {
            let start = Instant::now();
            self.store.query_into(query, DISTANCE, matches)?;
            times.push(start.elapsed().as_secs_f64() * 1e6);
            found += black_box(&matches).len();
        }
        times.sort_unstable_by(f64::total_cmp);
        self.rounds.push((times[times.len() / 2], times[times.len() * 99 / 100]));
        Ok(found)
    }

    /// The medians over the rounds.
    fn times(&self) -> (f64, f64) {
        let median = |mut times: Vec<f64>| {
            times.sort_unstable_by(f64::total_cmp);
            times[times.len() / 2]
        };
        let (middle, slow) = self.rounds.iter().copied().unzip();
        (median(middle), median(slow))
    }
}

fn compare(name: &str, fingerprints: &[u64], plans: &str, codecs: &str) -> Result<(), Error> {
    println!("### {name}, {} distinct fingerprints\n", fingerprints.len());
    println!(
        "| plan | codec | bits | prefixes | candidates, bits looked at | candidates, whole prefixes | bytes each | \
         build, s | p50, us | p99, us | p50, contiguous / sampled | p99 |\n{}",
        "|---".repeat(12) + "|"
    );
    let queries = queries(fingerprints);
    let mut matches = Vec::new();
    for plan in plans.split(',') {
        for codec in codecs.split(',') {
            let codec: Codec = codec.parse()?;
            let mut contiguous = Built::new(fingerprints, plan, codec, BitAssignment::Contiguous)?;
            let mut sampled = Built::new(fingerprints, plan, codec, BitAssignment::Sampled)?;
            for _ in 0..ROUNDS {
                let found = contiguous.ask(&queries, &mut matches)?;
                assert_eq!(sampled.ask(&queries, &mut matches)?, found, "{plan}, {codec}");
            }
            let (a, b) = (contiguous.times(), sampled.times());
            for (assignment, built, ratio) in [
                ("contiguous", &contiguous, String::from("| |")),
                ("sampled", &sampled, format!("| {:.2} | {:.2} |", a.0 / b.0, a.1 / b.1)),
            ] {
                let tables = built.store.segments()[0].tables();
                let prefixes: Vec<String> =
                    tables.iter().map(|table| table.header().plan.prefix_bits.to_string()).collect();
                let stats = built.store.stats();
                let (probed, whole) = built.candidates(fingerprints, &queries[..COUNTED]);
                let (middle, slow) = built.times();
                println!(
                    "| {} | {codec} | {assignment} | {} | {probed:.0} | {whole:.0} | {:.2} | {:.2} | {middle:.1} | {slow:.1} {ratio}",
                    built.store.segments()[0].plan().name(),
                    prefixes.join(" "),
                    stats.table_bytes as f64 / stats.fingerprints as f64,
                    built.seconds,
                );
            }
        }
    }
    println!();
    Ok(())
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let list = |name: &str, all: &str| {
        let value = arguments.iter().find_map(|argument| argument.strip_prefix(name));
        value.unwrap_or(all).to_string()
    };
    let (plans, codecs) = (list("--plans=", PLANS), list("--codecs=", CODECS));
    for file in arguments.iter().filter(|argument| !argument.starts_with("--")) {
        let bytes = std::fs::read(file)?;
        let mut fingerprints: Vec<u64> = bytes.chunks_exact(8).map(u64::read_le).collect();
        fingerprints.sort_unstable();
        fingerprints.dedup();
        let name = Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        compare(&name, &fingerprints, &plans, &codecs)?;
    }
    compare("Sharing 40 bits", &crowded(), &plans, &codecs)
}
