//! Measures time and memory of batch queries, with the store in the page cache. Both methods are measured: looking up
//! each query, and streaming the store past all queries. Prints Markdown.
//!
//! `cargo bench --bench batch -- COUNT [PLAN [QUERIES...]]` (default: 100000000 probe-1 10000 1000000). COUNT is the
//! number of stored fingerprints, QUERIES are batch sizes. Stores go to the folder TMPDIR and are removed at the end.

mod memory;
#[path = "../tests/support/random.rs"]
mod random;

use std::hint::black_box;
use std::time::Instant;

use memory::{peak_memory, reset_peak_memory};
use random::random;
use simstore::batch::BatchMethod;
use simstore::{BuildOptions, Builder, Codec};

/// Time limit in seconds for a batch that is answered by look-ups. If the batch would take longer, only some of its
/// queries run, and the time is scaled up.
const MAX_LOOKUP_SECONDS: f64 = 10.0;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let count: u64 = arguments.first().map_or(Ok(100_000_000), |count| count.parse())?;
    let plan = arguments.get(1).map_or("probe-1", String::as_str);
    let mut batches: Vec<usize> = arguments.iter().skip(2).map(|n| n.parse()).collect::<Result<_, _>>()?;
    if batches.is_empty() {
        batches = vec![10_000, 1_000_000];
    }
    let cores = std::thread::available_parallelism()?.get();
    println!("{count} random fingerprints, plan {plan}, {cores} cores\n");
    println!(
        "| codec | queries | method | seconds, median of 3 | M fingerprints/s and core | ns a fingerprint and core | matches | peak memory above the store's, MiB |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for codec in Codec::ALL {
        let folder = tempfile::tempdir()?;
        let options = BuildOptions {
            codec,
            ids: false,
            plan: plan.parse()?,
            memory: Some(4 << 30),
            ..BuildOptions::default()
        };
        let mut builder = Builder::<u64>::create(&folder.path().join("store"), options)?;
        let mut state = 1;
        for id in 0..count {
            builder.insert(random(&mut state), id)?;
        }
        let store = builder.finish()?;
        // Reads all files into the page cache and verifies all blocks; queries would do this otherwise.
        assert_eq!(store.verify(|error| eprintln!("{error}")), 0);
        for &batch in &batches {
            // Half are stored fingerprints with 0 to 3 bits flipped, half are random.
            let (mut stored, mut state) = (1, 99);
            let queries: Vec<u64> = (0..batch)
                .map(|i| {
                    let near =
                        (0..i % 4).fold(random(&mut stored), |x, _| x ^ 1 << (random(&mut state) % 64));
                    if i % 2 == 0 { near } else { random(&mut state) }
                })
                .collect();
            let start = Instant::now();
            store.batch_query_by(&queries[..batch.min(20)], 3, BatchMethod::LookUp)?;
            let lookup_limit = (20.0 * MAX_LOOKUP_SECONDS / start.elapsed().as_secs_f64()) as usize;
            for method in [BatchMethod::Stream, BatchMethod::LookUp] {
                let query_count = if method == BatchMethod::LookUp { batch.min(lookup_limit) } else { batch };
                reset_peak_memory();
                let before = peak_memory().unwrap_or(0);
                let mut match_count = 0;
                let mut times: Vec<f64> = Vec::new();
                for _ in 0..3 {
                    let start = Instant::now();
                    match_count = black_box(store.batch_query_by(&queries[..query_count], 3, method)?).len();
                    times.push(start.elapsed().as_secs_f64());
                }
                times.sort_by(f64::total_cmp);
                let seconds = times[1] * batch as f64 / query_count as f64;
                let (note, match_count) = match query_count == batch {
                    true => ("", match_count.to_string()),
                    false => (" (part asked, time scaled)", String::new()),
                };
                let chosen = if store.batch_method(batch, 3) == method { ", what auto takes" } else { "" };
                println!(
                    "| {codec} | {batch} | {method:?}{chosen}{note} | {seconds:.2} | {:.1} | {:.1} | {match_count} | {} |",
                    count as f64 / seconds / cores as f64 / 1e6,
                    seconds * cores as f64 * 1e9 / count as f64,
                    peak_memory().unwrap_or(0).saturating_sub(before),
                );
            }
        }
    }
    Ok(())
}
