//! What single queries and a batch take in Rust, beside which `benches/python/calls.py` sets the same calls of Python.
//!
//! `cargo bench --bench calls -- STORE QUERIES.u64 DISTANCE` prints a line of JSON: medians of seven, in seconds.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use simstore::Snapshot;

const RUNS: usize = 7;
/// Single queries of a run.
const SINGLE_QUERIES: usize = 20_000;

fn median(mut work: impl FnMut() -> simstore::Result<usize>) -> simstore::Result<(f64, usize)> {
    let mut found = work()?;
    let mut seconds = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        found = black_box(work()?);
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok((seconds[RUNS / 2], found))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let [store, queries, distance] = &arguments[..] else {
        // `cargo bench` runs all benches, without what this one needs.
        eprintln!("calls: give a store, a file of queries and a distance");
        return Ok(());
    };
    let distance = distance.parse()?;
    let snapshot = Snapshot::<u64>::open(Path::new(store))?;
    let bytes = std::fs::read(queries)?;
    let (words, _) = bytes.as_chunks::<8>();
    let queries: Vec<u64> = words.iter().map(|&word| u64::from_le_bytes(word)).collect();
    let (batch, matches) = median(|| Ok(snapshot.batch_query(&queries, distance)?.len()))?;
    let single = &queries[..SINGLE_QUERIES.min(queries.len())];
    let (one, of_single) = median(|| {
        single.iter().try_fold(0, |found, &query| Ok(found + snapshot.query(query, distance)?.len()))
    })?;
    println!(
        "{{\"batch\":{batch},\"matches\":{matches},\"query\":{},\"found\":{of_single}}}",
        one / single.len() as f64
    );
    Ok(())
}
