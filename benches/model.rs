//! Compares the cost model (`simstore::plan::estimate`) with measured query times of stores of random
//! fingerprints. Prints Markdown.
//!
//! `cargo bench --bench model -- 1000000 10000000` sets the numbers of fingerprints (default: 1000000).
//! `--plans=probe-2,auto` and `--codecs=gap` select plans and codecs. With `--check`, the exit status is 1 if
//! fewer than 90% of the predictions are within 30% of the measured time. Stores go to the folder TMPDIR and are
//! removed at the end.

#[path = "../tests/support/random.rs"]
mod random;

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use random::random;
use simstore::plan::{Medium, Workload, estimate};
use simstore::{BuildOptions, Builder, Codec, Match, Snapshot};

const PLANS: &str = "scan,probe-1,probe-2,probe-3,paper-4,cover-5,cover-6,cover-10";
const CODECS: &str = "first-difference,elias-fano";
/// Number of fingerprints of the largest store that is measured with the plan `scan`. Scans of larger stores take too
/// long for this bench, and for practical use.
const MAX_SCAN_FINGERPRINTS: u64 = 2_000_000;
const DISTANCE: u32 = 3;
const ROUNDS: usize = 5;
const QUERIES: usize = 100_000;
/// Time limit for all queries of one store, in seconds. If they would take longer, fewer queries run.
const MEASURE_SECONDS: f64 = 3.0;
/// A prediction counts as within 30% of the measured time if the longer of the two times is at most this many times the
/// shorter.
const MAX_ERROR_FACTOR: f64 = 1.3;

type BoxError = Box<dyn std::error::Error>;

fn build_store(
    count: u64,
    plan: &str,
    codec: Codec,
    folder: &tempfile::TempDir,
) -> Result<Snapshot<u64>, BoxError> {
    let options = BuildOptions { codec, ids: false, plan: plan.parse()?, ..BuildOptions::default() };
    let mut builder = Builder::<u64>::create(&folder.path().join("store"), options)?;
    let mut state = 1;
    for id in 0..count {
        builder.insert(random(&mut state), id)?;
    }
    Ok(builder.finish()?)
}

/// Generates distinct queries for a store of `count` fingerprints. Up to half of the queries are stored fingerprints with
/// 0 to 3 bits flipped, at most one for each stored fingerprint. The other queries are random.
fn generate_queries(count: u64) -> Vec<u64> {
    let (mut stored, mut state) = (1, 99);
    let queries = (0..QUERIES as u64).map(|i| {
        if i % 2 == 0 && i / 2 < count {
            (0..i / 2 % 4).fold(random(&mut stored), |x, _| x ^ 1 << (random(&mut state) % 64))
        } else {
            random(&mut state)
        }
    });
    queries.collect()
}

/// Returns the processor time of this thread in nanoseconds. Unlike elapsed time, it hardly depends on other load on the
/// machine. Without Linux's `schedstat`, returns the elapsed time since `start`.
fn thread_nanoseconds(start: Instant) -> f64 {
    // Linux updates the count when a thread yields.
    std::thread::yield_now();
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let own = counts.split(' ').next().and_then(|count| count.parse().ok());
    own.unwrap_or_else(|| start.elapsed().as_nanos() as f64)
}

/// Runs the queries, and returns the mean time of a query in nanoseconds. `matches` is a buffer.
fn nanoseconds_per_query(
    store: &Snapshot<u64>,
    queries: &[u64],
    matches: &mut Vec<Match<u64>>,
) -> Result<f64, BoxError> {
    let start = Instant::now();
    let before = thread_nanoseconds(start);
    for &query in queries {
        store.query_into(query, DISTANCE, matches)?;
        black_box(&matches);
    }
    Ok((thread_nanoseconds(start) - before) / queries.len() as f64)
}

/// Measures several rounds of queries, and takes the mean time of a query in each round. Returns the median of these
/// means, in nanoseconds. `count` is the number of stored fingerprints.
fn median_nanoseconds(store: &Snapshot<u64>, count: u64) -> Result<f64, BoxError> {
    let (queries, mut matches) = (generate_queries(count), Vec::new());
    let (trial, rest) = queries.split_at(50);
    let each = nanoseconds_per_query(store, trial, &mut matches)?;
    let round = ((MEASURE_SECONDS * 1e9 / each) as usize).min(rest.len()) / ROUNDS;
    let rounds = rest.chunks(round.max(1)).take(ROUNDS);
    let mut times = rounds
        .map(|queries| nanoseconds_per_query(store, queries, &mut matches))
        .collect::<Result<Vec<_>, _>>()?;
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

fn main() -> Result<ExitCode, BoxError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let list = |option: &str, default: &str| -> Vec<String> {
        let value = arguments.iter().find_map(|argument| argument.strip_prefix(option));
        value.unwrap_or(default).split(',').map(str::to_string).collect()
    };
    let (plans, codecs) = (list("--plans=", PLANS), list("--codecs=", CODECS));
    let mut counts: Vec<u64> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    if counts.is_empty() {
        counts.push(1_000_000);
    }

    println!("| n | plan | codec | bytes each | measured, us | predicted, us | measured / predicted |");
    println!("|---|---|---|---|---|---|---|");
    let (mut rows, mut good) = (0, 0);
    for count in counts {
        for name in plans.iter().filter(|&name| name != "scan" || count <= MAX_SCAN_FINGERPRINTS) {
            for codec in &codecs {
                let codec: Codec = codec.parse()?;
                let folder = tempfile::tempdir()?;
                let store = build_store(count, name, codec, &folder)?;
                // Reads all files into the page cache and verifies all blocks; queries would do this otherwise.
                assert_eq!(store.verify(|error| eprintln!("{error}")), 0);
                let stats = store.stats();
                let segment = &store.segments()[0];
                let workload = Workload {
                    fingerprints: stats.fingerprints,
                    codec,
                    block_size: Some(segment.tables()[0].header().block_size),
                    span: None,
                    medium: Medium::Memory,
                };
                let measured = median_nanoseconds(&store, count)?;
                let predicted = estimate(segment.plan(), &workload).nanoseconds;
                let ratio = measured / predicted;
                rows += 1;
                good += usize::from((1.0 / MAX_ERROR_FACTOR..=MAX_ERROR_FACTOR).contains(&ratio));
                let name =
                    if name == "auto" { format!("auto ({})", segment.plan().name()) } else { name.clone() };
                println!(
                    "| {count} | {name} | {codec} | {:.2} | {:.2} | {:.2} | {ratio:.2} |",
                    stats.table_bytes as f64 / stats.fingerprints as f64,
                    measured / 1e3,
                    predicted / 1e3,
                );
            }
        }
    }
    println!("\n{good} of {rows} within 30%");
    let failed = arguments.iter().any(|argument| argument == "--check") && good * 10 < rows * 9;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
