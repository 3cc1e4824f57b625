//! Measures time, peak memory and store size of a build with random fingerprints, and the time of a query. Prints
//! Markdown.
//!
//! `cargo bench --bench build -- COUNT [PLAN [MEMORY_IN_MIB]]` (default: 10000000 auto 1536). Stores go to the folder
//! TMPDIR and are removed at the end.

mod memory;
#[path = "../tests/support/random.rs"]
mod random;

use std::hint::black_box;
use std::time::Instant;

use memory::{peak_memory, reset_peak_memory};
use random::random;
use rayon::prelude::*;
use simstore::plan::min_bits_per_fingerprint;
use simstore::{BuildOptions, Builder, Codec};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let count: u64 = arguments.first().map_or(Ok(10_000_000), |count| count.parse())?;
    let plan = arguments.get(1).map_or("auto", String::as_str);
    let memory: u64 = arguments.get(2).map_or(Ok(1536), |mib| mib.parse())?;
    println!("{count} random fingerprints, plan {plan}, memory for sorting {memory} MiB\n");
    println!(
        "| codec | ids | plan | build, s | peak memory, MiB | tables, bytes each | floor | ids, bytes each | one query, warm, median of 5 rounds, us |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut plans = Vec::new();
    for (codec, ids) in
        [(Codec::FirstDifference, false), (Codec::EliasFano, false), (Codec::FirstDifference, true)]
    {
        let folder = tempfile::tempdir()?;
        let options = BuildOptions {
            codec,
            ids,
            plan: plan.parse()?,
            memory: Some(memory << 20),
            ..BuildOptions::default()
        };
        reset_peak_memory();
        let start = Instant::now();
        let mut builder = Builder::<u64>::create(&folder.path().join("store"), options)?;
        let mut state = 1;
        for id in 0..count {
            builder.insert(random(&mut state), id)?;
        }
        let store = builder.finish()?;
        let seconds = start.elapsed().as_secs_f64();
        let peak = peak_memory().unwrap_or(0);

        // Half are stored fingerprints with 0 to 3 bits flipped, half are random. Each query runs once.
        let mut stored = 1;
        let mut state = 99;
        let queries: Vec<u64> = (0..100_000)
            .map(|i| {
                let near = (0..i % 4).fold(random(&mut stored), |x, _| x ^ 1 << (random(&mut state) % 64));
                if i % 2 == 0 { near } else { random(&mut state) }
            })
            .collect();
        // Reads all files into the page cache and verifies all blocks; queries would do this otherwise.
        assert_eq!(store.verify(|error| eprintln!("{error}")), 0);
        let mut matches = Vec::new();
        let mut times: Vec<f64> = Vec::new();
        for queries in queries.chunks(20_000) {
            let start = Instant::now();
            for &query in queries {
                store.query_into(query, 3, &mut matches)?;
                black_box(&matches);
            }
            times.push(start.elapsed().as_secs_f64() * 1e6 / queries.len() as f64);
        }
        times.sort_by(f64::total_cmp);
        let stats = store.stats();
        let each = |bytes: u64| bytes as f64 / stats.fingerprints as f64;
        println!(
            "| {codec} | {ids} | {} | {seconds:.1} | {peak} | {:.2} | {:.2} | {:.2} | {:.1} |",
            store.segments()[0].plan().name(),
            each(stats.table_bytes),
            min_bits_per_fingerprint(64, stats.fingerprints) / 8.0 * stats.tables as f64,
            each(stats.id_bytes),
            times[times.len() / 2],
        );
        plans.push(store.segments()[0].plan().clone());
    }

    println!(
        "\nSorting alone, without building: the fingerprints under the permutation of each table, in memory\n"
    );
    println!("| plan | tables | sort, s |");
    println!("|---|---|---|");
    plans.dedup();
    let mut state = 1;
    let fingerprints: Vec<u64> = (0..count).map(|_| random(&mut state)).collect();
    for plan in plans {
        let mut seconds = 0.0;
        for table in plan.tables() {
            let mut permuted: Vec<u64> =
                fingerprints.par_iter().map(|&x| table.permutation.apply(x)).collect();
            let start = Instant::now();
            permuted.par_sort_unstable();
            seconds += start.elapsed().as_secs_f64();
            black_box(&permuted);
        }
        println!("| {} | {} | {seconds:.1} |", plan.name(), plan.tables().len());
    }
    Ok(())
}
