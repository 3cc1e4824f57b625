//! Measures single queries and a batch query in Rust. `benches/python/calls.py` runs it and compares the times
//! with Python's.
//!
//! `cargo bench --bench calls -- STORE QUERIES.u64 DISTANCE` prints one line of JSON. It has the time of the whole
//! batch and of one single query, in seconds, and the numbers of matches. The times are medians of seven runs.
//! QUERIES.u64 has little-endian 64-bit fingerprints.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use simstore::Snapshot;

const RUNS: usize = 7;
/// Number of single queries in one run.
const SINGLE_QUERIES: usize = 20_000;

/// Runs `work`, which returns a number of matches, several times. Returns the median time in seconds, and the number
/// of matches.
fn median(mut work: impl FnMut() -> simstore::Result<usize>) -> simstore::Result<(f64, usize)> {
    let mut matches = work()?;
    let mut seconds = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        matches = black_box(work()?);
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok((seconds[RUNS / 2], matches))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let [store, queries, distance] = &arguments[..] else {
        // Plain `cargo bench` runs all benches, this one without arguments.
        eprintln!("calls: give a store, a file of queries and a distance");
        return Ok(());
    };
    let distance = distance.parse()?;
    let snapshot = Snapshot::<u64>::open(Path::new(store))?;
    let bytes = std::fs::read(queries)?;
    let (words, _) = bytes.as_chunks::<8>();
    let queries: Vec<u64> = words.iter().map(|&word| u64::from_le_bytes(word)).collect();
    let (batch_seconds, batch_matches) = median(|| Ok(snapshot.batch_query(&queries, distance)?.len()))?;
    let single = &queries[..SINGLE_QUERIES.min(queries.len())];
    let (single_seconds, single_matches) =
        median(|| single.iter().try_fold(0, |sum, &query| Ok(sum + snapshot.query(query, distance)?.len())))?;
    println!(
        "{{\"batch\":{batch_seconds},\"matches\":{batch_matches},\"query\":{},\"found\":{single_matches}}}",
        single_seconds / single.len() as f64
    );
    Ok(())
}
