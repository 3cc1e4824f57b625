//! Measures stores of your own fingerprints: the time of a build, the size, and the time of a query, for each codec, beside
//! the lower bound of the size and a plain scan.
//!
//! `cargo run --release --example measure -- FILE [DISTANCE]` reads a file of 64-bit fingerprints. The file has lines of
//! hexadecimal digits, or 8 bytes for each fingerprint, little-endian. Without a file, it measures 1,000,000 random
//! fingerprints. The stores are built in the folder for temporary files (`TMPDIR`), without ids. Times are medians of
//! five runs.

use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use simstore::plan::min_bits_per_fingerprint;
use simstore::{BuildOptions, Builder, Codec, Error, Snapshot};

const RUNS: usize = 5;
/// Number of queries of a store in each run.
const QUERIES: u64 = 10_000;
/// Number of queries in each run of the plain scan, which is slow.
const SCAN_QUERIES: usize = 20;

/// Measured numbers of stores with one codec.
#[derive(Debug)]
pub(crate) struct CodecMeasurement {
    pub(crate) codec: Codec,
    /// Name of the plan that `auto` chose.
    pub(crate) plan: String,
    pub(crate) tables: usize,
    pub(crate) build: Duration,
    /// Size of the whole store in bytes.
    pub(crate) bytes: u64,
    /// Time of one query on one thread.
    pub(crate) query: Duration,
    /// Number of matches of all queries of a run.
    pub(crate) matches: u64,
}

/// Measured numbers of a set of fingerprints.
#[derive(Debug)]
pub(crate) struct Measurements {
    /// Number of distinct fingerprints.
    pub(crate) fingerprints: u64,
    pub(crate) distance: u32,
    /// Time of one query by a scan over all fingerprints, on one thread.
    pub(crate) scan: Duration,
    pub(crate) codecs: Vec<CodecMeasurement>,
}

/// Reads fingerprints from the content of a file. If the content has only hexadecimal digits and white space, each line is a
/// fingerprint. Otherwise each 8 bytes are one, little-endian.
pub(crate) fn parse(content: &[u8]) -> Result<Vec<u64>, String> {
    if content.iter().all(|byte| byte.is_ascii_hexdigit() || byte.is_ascii_whitespace()) {
        let text = String::from_utf8_lossy(content);
        let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
        let parsed = lines.map(|(number, line)| {
            u64::from_str_radix(line.trim(), 16)
                .map_err(|error| format!("line {number}: expected up to 16 hexadecimal digits: {error}"))
        });
        return parsed.collect();
    }
    let (words, rest) = content.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(format!(
            "{} bytes, and not all are hexadecimal digits: expected lines of hexadecimal digits, or 8 bytes for each fingerprint",
            content.len()
        ));
    }
    Ok(words.iter().map(|&word| u64::from_le_bytes(word)).collect())
}

/// Runs `work` [`RUNS`] times. Returns the median time and the last result.
fn median<T>(mut work: impl FnMut() -> Result<T, Error>) -> Result<(Duration, T), Error> {
    let mut run = || {
        let start = Instant::now();
        work().map(|result| (start.elapsed(), result))
    };
    let mut last = run()?;
    let mut times = vec![last.0];
    for _ in 1..RUNS {
        last = run()?;
        times.push(last.0);
    }
    times.sort_unstable();
    Ok((times[RUNS / 2], last.1))
}

/// Returns a number that looks random, the same one for the same argument (the hash function `SplitMix64`).
fn hash(number: u64) -> u64 {
    let z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Returns queries: stored fingerprints with up to `distance` changed bits.
fn queries(fingerprints: &[u64], distance: u32) -> Vec<u64> {
    let query = |i: u64| {
        let stored = fingerprints[(hash(i) % fingerprints.len() as u64) as usize];
        let flips = i % (u64::from(distance) + 1);
        (0..flips).fold(stored, |near, flip| near ^ 1 << (hash(i + (flip + 1) * QUERIES) % 64))
    };
    (0..QUERIES).map(query).collect()
}

/// Builds stores with one codec, and queries the last one.
fn measure_codec(
    fingerprints: &[u64],
    queries: &[u64],
    distance: u32,
    codec: Codec,
    folder: &Path,
) -> Result<CodecMeasurement, Error> {
    let path = folder.join(codec.to_string());
    let (build, store): (_, Snapshot<u64>) = median(|| {
        let options = BuildOptions { distance, codec, ids: false, replace: true, ..BuildOptions::default() };
        let mut builder = Builder::create(&path, options)?;
        fingerprints.iter().try_for_each(|&fingerprint| builder.insert(fingerprint, 0))?;
        builder.finish()
    })?;
    let mut found = Vec::new();
    let (time, matches) = median(|| {
        let mut matches = 0;
        for &query in queries {
            store.query_into(query, distance, &mut found)?;
            matches += found.len() as u64;
        }
        Ok(matches)
    })?;
    let stats = store.stats();
    let plan = store.segments().first().map_or(String::new(), |segment| segment.plan().name().to_string());
    let query = time / queries.len() as u32;
    Ok(CodecMeasurement { codec, plan, tables: stats.tables, build, bytes: stats.bytes, query, matches })
}

/// Measures stores of these fingerprints, which are not empty. Builds the stores in `folder`.
pub(crate) fn run(mut fingerprints: Vec<u64>, distance: u32, folder: &Path) -> Result<Measurements, Error> {
    fingerprints.sort_unstable();
    fingerprints.dedup();
    let queries = queries(&fingerprints, distance);
    let (scan, _) = median(|| {
        let near =
            |query: u64| fingerprints.iter().filter(|&&x| (x ^ query).count_ones() <= distance).count();
        Ok(black_box(queries.iter().take(SCAN_QUERIES).map(|&query| near(query)).sum::<usize>()))
    })?;
    let measure = |codec| measure_codec(&fingerprints, &queries, distance, codec, folder);
    Ok(Measurements {
        fingerprints: fingerprints.len() as u64,
        distance,
        scan: scan / SCAN_QUERIES as u32,
        codecs: Codec::ALL.into_iter().map(measure).collect::<Result<_, _>>()?,
    })
}

fn print(all: &Measurements) {
    let bound = min_bits_per_fingerprint(64, all.fingerprints) / 8.0;
    let count = all.fingerprints as f64;
    println!("{} distinct fingerprints of 64 bits, distance {}\n", all.fingerprints, all.distance);
    println!(
        "{:<18} {:<12} {:>8} {:>11} {:>21} {:>10} {:>9}",
        "codec", "plan", "build", "bytes each", "bytes in each table", "query", "matches"
    );
    for CodecMeasurement { codec, plan, tables, build, bytes, query, matches } in &all.codecs {
        let each = *bytes as f64 / count;
        let in_table = each / *tables as f64;
        let found = *matches as f64 / QUERIES as f64;
        println!(
            "{:<18} {plan:<12} {:>8} {each:>11.2} {in_table:>21.2} {:>10} {found:>9.2}",
            codec.to_string(),
            format!("{build:.2?}"),
            format!("{query:.2?}")
        );
    }
    println!("{:<18} {:<12} {:>8} {:>11} {bound:>21.2}", "lower bound", "", "", "");
    let scan = format!("{:.2?}", all.scan);
    println!("{:<18} {:<12} {:>8} {:>11.2} {:>21.2} {scan:>10}", "plain scan", "", "", 8.0, 8.0);
}

/// Parses the arguments, and measures the fingerprints of the file. Returns a message if that fails.
fn measure_arguments(arguments: &[String]) -> Result<Measurements, String> {
    if arguments.len() > 2 {
        return Err("usage: measure [FILE [DISTANCE]]".to_string());
    }
    let distance = match arguments.get(1).map_or(Ok(3), |distance| distance.parse()) {
        Ok(distance) => distance,
        Err(error) => return Err(format!("{}: expected a distance in bits: {error}", arguments[1])),
    };
    let fingerprints = match arguments.first() {
        None => (0..1_000_000).map(hash).collect(),
        Some(file) => {
            let content = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
            parse(&content).map_err(|reason| format!("{file}: {reason}"))?
        }
    };
    if fingerprints.is_empty() {
        return Err("no fingerprints: there is nothing to measure".to_string());
    }
    let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
    run(fingerprints, distance, folder.path()).map_err(|error| error.to_string())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match measure_arguments(&arguments) {
        Ok(all) => {
            print(&all);
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("measure: {message}");
            ExitCode::FAILURE
        }
    }
}
