//! Measurement of one index, in a process of its own.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::data::{QuerySets, FingerprintSource};
use crate::index::{self, HammingIndex};
use crate::index_spec::IndexSpec;
use crate::{memory, markdown_table};

/// The index and data of a measurement.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct QueryJob {
    pub(crate) spec: IndexSpec,
    pub(crate) source: FingerprintSource,
    pub(crate) count: usize,
    pub(crate) distance: u32,
    /// How many queries are timed one by one, and how many others as a whole.
    pub(crate) queries: usize,
    /// Time limit of a set of queries, in seconds.
    pub(crate) seconds: f64,
    pub(crate) truth: Vec<ExpectedMatches>,
}

/// Matches that the plain loop finds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ExpectedMatches {
    pub(crate) query: u64,
    pub(crate) matches: BTreeSet<u64>,
}

/// The figures of one index.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct QueryRow {
    /// Parameters that the index chose by itself.
    chosen_plan: Option<String>,
    id_kind: String,
    build_seconds: f64,
    /// Bytes for each fingerprint.
    resident_bytes_each: f64,
    /// Bytes for each fingerprint, if it is or can be kept on disk.
    disk_bytes_each: Option<f64>,
    mean_us: f64,
    median_us: f64,
    p99_us: f64,
    batch_per_second: f64,
    recall: f64,
    asked: usize,
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
            markdown_table::format_grouped(self.asked as f64),
        ]
    }
}

/// Compares each query with each fingerprint.
pub(crate) fn brute_force(
    source: &FingerprintSource,
    count: usize,
    distance: u32,
    queries: &[u64],
) -> Result<Vec<ExpectedMatches>> {
    let fingerprints: Vec<u64> = source.iter(count)?.collect();
    let answer = |&query: &u64| {
        let near = fingerprints.iter().copied().filter(|x| (x ^ query).count_ones() <= distance);
        ExpectedMatches { query, matches: near.collect() }
    };
    Ok(queries.par_iter().map(answer).collect())
}

/// The part of the plain loop's matches that the index finds.
///
/// # Errors
/// If the index finds a fingerprint that the plain loop does not find: it answers another question.
pub(crate) fn recall(index: &dyn HammingIndex, truth: &[ExpectedMatches]) -> Result<f64> {
    let mut searcher = index.searcher();
    let (mut found, mut all) = (0, 0);
    for answer in truth {
        let matches: BTreeSet<u64> = searcher.matches(answer.query).into_iter().collect();
        ensure!(matches.is_subset(&answer.matches), "finds more than is there for {:016x}", answer.query);
        found += matches.len();
        all += answer.matches.len();
    }
    Ok(if all == 0 { 1.0 } else { found as f64 / all as f64 })
}

/// Builds the index and asks it.
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
    let asked = warm_up(&*index, &queries.warm_up, job.seconds).clamp(1, job.queries);
    let mut times = time_each(&*index, &queries.single[..asked]);
    times.sort_unstable();
    let percentile = |part: f64| microseconds(times[((times.len() - 1) as f64 * part).round() as usize]);
    let whole = &queries.whole[..asked];
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
        mean_us: microseconds(total) / asked as f64,
        median_us: percentile(0.5),
        p99_us: percentile(0.99),
        batch_per_second: asked as f64 / batch.as_secs_f64(),
        recall: recall(&*index, &job.truth)?,
        asked,
    })
}

/// Asks queries for a while, and returns how many could be asked in the time of a set.
fn warm_up(index: &dyn HammingIndex, queries: &[u64], seconds: f64) -> usize {
    let mut searcher = index.searcher();
    let start = Instant::now();
    let mut asked = 0;
    for &query in queries {
        black_box(searcher.count(query));
        asked += 1;
        if start.elapsed().as_secs_f64() > seconds / 4.0 {
            break;
        }
    }
    (seconds * f64::from(asked) / start.elapsed().as_secs_f64()) as usize
}

/// The time of each query.
fn time_each(index: &dyn HammingIndex, queries: &[u64]) -> Vec<Duration> {
    let mut searcher = index.searcher();
    let time = |&query: &u64| {
        time(|| {
            black_box(searcher.count(query));
        })
    };
    queries.iter().map(time).collect()
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
