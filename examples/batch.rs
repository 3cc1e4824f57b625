//! The index of a batch job: builds a store from a complete set of fingerprints, and answers many queries at once.
//!
//! `cargo run --release --example batch` builds a store of 1,000,000 generated fingerprints, and queries it with 100,000
//! others. `cargo run --release --example batch -- 1000000 100000 /data/index` keeps the store in that folder. A second run
//! with this folder fails with a message, because a build does not replace a store unless it is told to.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use simstore::batch::BatchMatch;
use simstore::{BuildOptions, Builder, Error, Snapshot};

/// Two documents are near if their fingerprints differ in at most this many bits.
const DISTANCE: u32 = 3;

/// Results of the job.
#[derive(Debug)]
pub(crate) struct BatchReport {
    /// Number of stored fingerprints.
    pub(crate) stored: u64,
    /// Size of the store in bytes.
    pub(crate) bytes: u64,
    pub(crate) build: Duration,
    pub(crate) query: Duration,
    /// Each query with a match, by its position, and one of its matches.
    pub(crate) matches: Vec<BatchMatch<u64>>,
}

/// Returns a number that looks random, the same one for the same argument (the hash function `SplitMix64`).
fn hash(number: u64) -> u64 {
    let z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Changes up to [`DISTANCE`] bits of a fingerprint. `random` chooses the bits.
fn near(fingerprint: u64, random: u64) -> u64 {
    (0..random % (u64::from(DISTANCE) + 1))
        .fold(fingerprint, |near, i| near ^ 1 << (random >> (8 + 8 * i) & 63))
}

/// Returns the fingerprint of a document. A real job computes it from the text.
pub(crate) fn fingerprint(document: u64) -> u64 {
    hash(document)
}

/// Returns queries. Each second one is near a document; the other ones are random.
pub(crate) fn queries(documents: u64, count: usize) -> Vec<u64> {
    let query = |i: u64| {
        let random = hash(documents + i);
        if i % 2 == 1 { random } else { near(fingerprint(random % documents.max(1)), random) }
    };
    (0..count as u64).map(query).collect()
}

/// Builds a store from the fingerprints of `documents` documents. The fingerprints may come in any order; those that do not
/// fit in the memory are sorted on the disk. The store appears when `finish` has made it durable. After an error, and
/// after a crash, there is no store, and the job can run again.
fn build(documents: u64, folder: &Path) -> Result<Snapshot<u64>, Error> {
    let options = BuildOptions { distance: DISTANCE, ..BuildOptions::default() };
    let mut builder = Builder::create(folder, options)?;
    for document in 0..documents {
        builder.insert(fingerprint(document), document)?;
    }
    builder.finish()
}

/// Builds a store in `folder`, and queries it with a batch.
pub(crate) fn run(documents: u64, count: usize, folder: &Path) -> Result<BatchReport, Error> {
    let start = Instant::now();
    let store = build(documents, folder)?;
    let build = start.elapsed();
    let stats = store.stats();
    // All threads answer the batch together. For many queries, the store is read once, instead of once for each query.
    let queries = queries(documents, count);
    let start = Instant::now();
    let matches = store.batch_query(&queries, DISTANCE)?;
    Ok(BatchReport { stored: store.len(), bytes: stats.bytes, build, query: start.elapsed(), matches })
}

/// Parses the arguments: the number of documents, the number of queries, and the folder of the store.
fn parse(arguments: &[String]) -> Option<(u64, usize, Option<PathBuf>)> {
    if arguments.len() > 3 {
        return None;
    }
    let documents = arguments.first().map_or(Some(1_000_000), |count| count.parse().ok())?;
    let queries = arguments.get(1).map_or(Some(100_000), |count| count.parse().ok())?;
    Some((documents, queries, arguments.get(2).map(PathBuf::from)))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((documents, count, folder)) = parse(&arguments) else {
        eprintln!("usage: batch [DOCUMENTS [QUERIES [FOLDER]]]");
        return ExitCode::from(2);
    };
    let temporary = match tempfile::tempdir() {
        Ok(temporary) => temporary,
        Err(error) => {
            eprintln!("batch: no temporary folder: {error}");
            return ExitCode::FAILURE;
        }
    };
    match run(documents, count, &folder.unwrap_or(temporary.path().join("index"))) {
        Ok(report) => {
            let mut found: Vec<usize> = report.matches.iter().map(|one| one.query).collect();
            found.dedup();
            let each = report.bytes as f64 / report.stored.max(1) as f64;
            println!("{} fingerprints stored in {:.2?}, {each:.1} bytes each", report.stored, report.build);
            println!("{} of {count} queries found a document in {:.2?}", found.len(), report.query);
            ExitCode::SUCCESS
        }
        // The kind of the error decides what the job does; the message is for people.
        Err(error @ Error::AlreadyExists { .. }) => {
            eprintln!("batch: {error}");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("batch: {error} (kind: {})", error.code());
            ExitCode::FAILURE
        }
    }
}
