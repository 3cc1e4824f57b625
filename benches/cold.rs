//! Measures queries with a cold page cache, and random reads of one page of the same files for comparison. Prints
//! Markdown.
//!
//! Needs Linux and root, because it drops the page cache through `/proc/sys/vm/drop_caches`.
//! `cargo bench --bench cold -- 100000000` sets the number of fingerprints (default: 10000000). `--plans=probe-2` and
//! `--codecs=elias-fano` select plans and codecs. Stores go to the folder TMPDIR and are removed at the end.

#[path = "../tests/support/random.rs"]
mod random;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use random::random;
use simstore::{BuildOptions, Builder, Snapshot};

const DISTANCE: u32 = 3;
const QUERIES: usize = 300;
const PAGE_BYTES: u64 = 4096;

type BoxError = Box<dyn std::error::Error>;

fn drop_page_cache(folder: &Path) -> Result<(), BoxError> {
    // Linux drops only clean pages, so the files are synced first.
    for entry in fs::read_dir(folder)? {
        File::open(entry?.path())?.sync_all()?;
    }
    let file = "/proc/sys/vm/drop_caches";
    fs::write(file, "3").map_err(|error| format!("{file}: {error}; run this as root, on Linux"))?;
    Ok(())
}

/// Returns the number of bytes that this process has read from disk; 0 without `/proc/self/io`.
fn bytes_read() -> u64 {
    let text = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

/// Sorts the times, and returns their median and 99th percentile.
fn median_and_p99(times: &mut [f64]) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

fn main() -> Result<(), BoxError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let list = |option: &str, default: &str| -> Vec<String> {
        let value = arguments.iter().find_map(|argument| argument.strip_prefix(option));
        value.unwrap_or(default).split(',').map(str::to_string).collect()
    };
    let count = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(10_000_000);
    println!(
        "{count} random fingerprints, k = {DISTANCE}, nothing in the page cache, {QUERIES} queries one by one\n"
    );
    println!(
        "| plan | codec | open, ms | one query: p50, ms | p99, ms | pages of 4 KiB read | one random page: p50, ms | query / page |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for plan in list("--plans=", "probe-1,probe-2,paper-4") {
        for codec in list("--codecs=", "first-difference,elias-fano") {
            let folder = tempfile::tempdir()?;
            let path = folder.path().join("store");
            let options = BuildOptions {
                codec: codec.parse()?,
                ids: false,
                plan: plan.parse()?,
                ..BuildOptions::default()
            };
            let mut builder = Builder::<u64>::create(&path, options)?;
            let mut state = 1;
            for id in 0..count {
                builder.insert(random(&mut state), id)?;
            }
            drop(builder.finish()?);

            drop_page_cache(&path)?;
            let start = Instant::now();
            let store = Snapshot::<u64>::open(&path)?;
            let open = start.elapsed().as_secs_f64() * 1e3;
            let (before, mut state) = (bytes_read(), 99);
            let (mut times, mut matches) = (Vec::new(), Vec::new());
            for _ in 0..QUERIES {
                let query = random(&mut state);
                let start = Instant::now();
                store.query_into(query, DISTANCE, &mut matches)?;
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
            let pages = (bytes_read() - before) as f64 / PAGE_BYTES as f64 / QUERIES as f64;
            let (p50, p99) = median_and_p99(&mut times);
            drop(store);

            drop_page_cache(&path)?;
            let file = File::open(path.join("000001-00.table"))?;
            let page_count = file.metadata()?.len() / PAGE_BYTES;
            let mut page = [0; PAGE_BYTES as usize];
            let mut reads = Vec::new();
            for _ in 0..QUERIES {
                let offset = random(&mut state) % page_count * PAGE_BYTES;
                let start = Instant::now();
                file.read_exact_at(&mut page, offset)?;
                reads.push(start.elapsed().as_secs_f64() * 1e3);
            }
            let (read, _) = median_and_p99(&mut reads);
            println!(
                "| {plan} | {codec} | {open:.1} | {p50:.2} | {p99:.2} | {pages:.1} | {read:.3} | {:.1} |",
                p50 / read
            );
        }
    }
    Ok(())
}
