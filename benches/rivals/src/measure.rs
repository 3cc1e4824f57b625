//! Measurement of one index, in a child process.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::data::{FingerprintSource, QuerySets};
use crate::index::{self, HammingIndex};
use crate::index_spec::IndexSpec;
use crate::{markdown_table, memory};

/// Request to measure one index: the index, its fingerprints and its queries.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct QueryJob {
    pub(crate) spec: IndexSpec,
    pub(crate) source: FingerprintSource,
    pub(crate) count: usize,
    pub(crate) distance: u32,
    /// Number of queries in each timed set ([`QuerySets::generate`]).
    pub(crate) queries: usize,
    /// Time limit for one set of queries, in seconds.
    pub(crate) seconds: f64,
    /// Correct matches of some queries, to compute the recall.
    pub(crate) truth: Vec<ExpectedMatches>,
}

/// Correct matches of a query, by brute force.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ExpectedMatches {
    pub(crate) query: u64,
    pub(crate) matches: BTreeSet<u64>,
}

/// Measurements of one index.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct QueryRow {
    /// Name of the plan that a store with the plan `auto` chose; `None` for other indexes ([`HammingIndex::chosen_plan`]).
    chosen_plan: Option<String>,
    /// Whether the index stores ids, and the type of the ids ([`HammingIndex::id_kind`]).
    id_kind: String,
    build_seconds: f64,
    /// Memory of the index in bytes per fingerprint. Includes its memory-mapped files, if it has any.
    resident_bytes_each: f64,
    /// Bytes on disk per fingerprint; `None` if the index cannot be stored on disk.
    disk_bytes_each: Option<f64>,
    /// Mean time of a query on one thread, in microseconds.
    mean_us: f64,
    /// Median time of a query, in microseconds.
    median_us: f64,
    /// 99th percentile of the time of a query, in microseconds.
    p99_us: f64,
    /// Queries per second on all cores.
    batch_per_second: f64,
    /// Share of the correct matches that the index finds, from 0 to 1.
    recall: f64,
    /// Number of queries that ran in each timed set. Fewer queries than requested run if all would exceed the time limit.
    query_count: usize,
}

impl QueryRow {
    pub(crate) const COLUMNS: &[&str] = &[
        "index", "ids counted?", "build, s", "resident, bytes each", "on disk, bytes each", "mean, us",
        "p50, us", "p99, us", "batch, queries/s", "recall", "queries",
    ];

    pub(crate) fn cells(&self, name: &str) -> Vec<String> {
        vec![
            self.chosen_plan.as_ref().map_or_else(|| name.to_string(), |choice| format!("{name} ({choice})")),
            self.id_kind.clone(),
            format!("{:.1}", self.build_seconds),
            format!("{:.2}", self.resident_bytes_each),
            self.disk_bytes_each.map_or_else(|| "-".to_string(), |bytes| format!("{bytes:.2}")),
            markdown_table::format_short(self.mean_us),
            markdown_table::format_short(self.median_us),
            markdown_table::format_short(self.p99_us),
            markdown_table::format_grouped(self.batch_per_second),
            format!("{}", self.recall),
            markdown_table::format_grouped(self.query_count as f64),
        ]
    }
}

/// Compares each query with each fingerprint. Returns the matches of each query.
pub(crate) fn brute_force(
    source: &FingerprintSource,
    count: usize,
    distance: u32,
    queries: &[u64],
) -> Result<Vec<ExpectedMatches>> {
    let fingerprints: Vec<u64> = source.iter(count)?.collect();
    let find_matches = |&query: &u64| {
        let near = fingerprints.iter().copied().filter(|x| (x ^ query).count_ones() <= distance);
        ExpectedMatches { query, matches: near.collect() }
    };
    Ok(queries.par_iter().map(find_matches).collect())
}

/// Returns the share of the correct matches that the index finds.
///
/// # Errors
/// If the index reports a fingerprint that is not a correct match.
pub(crate) fn recall(index: &dyn HammingIndex, truth: &[ExpectedMatches]) -> Result<f64> {
    let mut searcher = index.searcher();
    let (mut found, mut all) = (0, 0);
    for expected in truth {
        let matches: BTreeSet<u64> = searcher.matches(expected.query).into_iter().collect();
        ensure!(matches.is_subset(&expected.matches), "finds more than is there for {:016x}", expected.query);
        found += matches.len();
        all += expected.matches.len();
    }
    Ok(if all == 0 { 1.0 } else { found as f64 / all as f64 })
}

/// Builds the index and measures its queries. Returns an error if the index would not fit in memory.
pub(crate) fn run(job: &QueryJob) -> Result<QueryRow> {
    let needed = index::estimate_bytes(&job.spec, job.count, job.distance);
    if needed > memory::available_bytes()? as f64 {
        anyhow::bail!("would need about {:.0} GB of memory", needed / 1e9);
    }
    let before = memory::resident_bytes()?;
    let start = Instant::now();
    let index = index::build(&job.spec, &job.source, job.count, job.distance)?;
    let build_seconds = start.elapsed().as_secs_f64();
    let grown = memory::resident_bytes()?.saturating_sub(before);
    let resident = index.resident_bytes().unwrap_or(grown);
    let disk = index.disk_bytes()?;

    let queries = QuerySets::generate(&job.source, job.count, job.distance, job.queries)?;
    index.warm_up()?;
    let query_count = warm_up(&*index, &queries.warm_up, job.seconds).clamp(1, job.queries);
    let mut times = time_each(&*index, &queries.single[..query_count]);
    times.sort_unstable();
    let percentile = |part: f64| microseconds(times[((times.len() - 1) as f64 * part).round() as usize]);
    let whole = &queries.whole[..query_count];
    let total = time(|| {
        let mut searcher = index.searcher();
        whole.iter().for_each(|&query| {
            black_box(searcher.count(query));
        });
    });
    let batch = time(|| {
        black_box(index.count_all(whole));
    });

    let each = |bytes: u64| bytes as f64 / job.count as f64;
    Ok(QueryRow {
        chosen_plan: index.chosen_plan(),
        id_kind: index.id_kind().to_string(),
        build_seconds,
        resident_bytes_each: each(resident),
        disk_bytes_each: disk.map(each),
        mean_us: microseconds(total) / query_count as f64,
        median_us: percentile(0.5),
        p99_us: percentile(0.99),
        batch_per_second: query_count as f64 / batch.as_secs_f64(),
        recall: recall(&*index, &job.truth)?,
        query_count,
    })
}

/// Runs warm-up queries for about a quarter of `seconds`, the time limit for a set of queries. Returns the estimated
/// number of queries that the index answers within the limit.
fn warm_up(index: &dyn HammingIndex, queries: &[u64], seconds: f64) -> usize {
    let mut searcher = index.searcher();
    let start = Instant::now();
    let mut done = 0;
    for &query in queries {
        black_box(searcher.count(query));
        done += 1;
        if start.elapsed().as_secs_f64() > seconds / 4.0 {
            break;
        }
    }
    (seconds * f64::from(done) / start.elapsed().as_secs_f64()) as usize
}

/// Runs the queries one by one on this thread. Returns the time of each query.
fn time_each(index: &dyn HammingIndex, queries: &[u64]) -> Vec<Duration> {
    let mut searcher = index.searcher();
    let time_query = |&query: &u64| {
        time(|| {
            black_box(searcher.count(query));
        })
    };
    queries.iter().map(time_query).collect()
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
