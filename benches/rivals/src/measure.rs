//! Measurement of one index, in a process of its own.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::data::{Queries, Source};
use crate::index::{self, Index};
use crate::spec::Spec;
use crate::{memory, table};

/// The index and data of a measurement.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) spec: Spec,
    pub(crate) source: Source,
    pub(crate) count: usize,
    pub(crate) distance: u32,
    /// How many queries are timed one by one, and how many others as a whole.
    pub(crate) queries: usize,
    /// Time limit of a set of queries, in seconds.
    pub(crate) seconds: f64,
    pub(crate) truth: Vec<PlainAnswer>,
}

/// Matches that the plain loop finds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PlainAnswer {
    pub(crate) query: u64,
    pub(crate) matches: BTreeSet<u64>,
}

/// The figures of one index.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    /// Parameters that the index chose by itself.
    choice: Option<String>,
    ids: String,
    build_seconds: f64,
    /// Bytes for each fingerprint.
    resident: f64,
    /// Bytes for each fingerprint, if it is or can be kept on disk.
    disk: Option<f64>,
    mean: f64,
    median: f64,
    percentile_99: f64,
    batch_per_second: f64,
    recall: f64,
    asked: usize,
}

impl Row {
    pub(crate) const COLUMNS: &[&str] = &[
        "index", "ids counted?", "build, s", "resident, bytes each", "on disk, bytes each", "mean, us",
        "p50, us", "p99, us", "batch, queries/s", "recall", "queries",
    ];

    pub(crate) fn cells(&self, name: &str) -> Vec<String> {
        vec![
            self.choice.as_ref().map_or_else(|| name.to_string(), |choice| format!("{name} ({choice})")),
            self.ids.clone(),
            format!("{:.1}", self.build_seconds),
            format!("{:.2}", self.resident),
            self.disk.map_or_else(|| "-".to_string(), |bytes| format!("{bytes:.2}")),
            table::short(self.mean),
            table::short(self.median),
            table::short(self.percentile_99),
            table::grouped(self.batch_per_second),
            format!("{}", self.recall),
            table::grouped(self.asked as f64),
        ]
    }
}

/// Compares each query with each fingerprint.
pub(crate) fn plain_loop(
    source: &Source,
    count: usize,
    distance: u32,
    queries: &[u64],
) -> Result<Vec<PlainAnswer>> {
    let fingerprints: Vec<u64> = source.iter(count)?.collect();
    let answer = |&query: &u64| {
        let near = fingerprints.iter().copied().filter(|x| (x ^ query).count_ones() <= distance);
        PlainAnswer { query, matches: near.collect() }
    };
    Ok(queries.par_iter().map(answer).collect())
}

/// The part of the plain loop's matches that the index finds.
///
/// # Errors
/// If the index finds a fingerprint that the plain loop does not find: it answers another question.
pub(crate) fn recall(index: &dyn Index, truth: &[PlainAnswer]) -> Result<f64> {
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
pub(crate) fn run(job: &Job) -> Result<Row> {
    let needed = index::bytes_needed(&job.spec, job.count, job.distance);
    if needed > memory::available()? as f64 {
        anyhow::bail!("would need about {:.0} GB of memory", needed / 1e9);
    }
    let before = memory::resident()?;
    let start = Instant::now();
    let index = index::build(&job.spec, &job.source, job.count, job.distance)?;
    let build_seconds = start.elapsed().as_secs_f64();
    let grown = memory::resident()?.saturating_sub(before);
    let resident = index.resident_bytes().unwrap_or(grown);
    let disk = index.disk_bytes()?;

    let queries = Queries::generate(&job.source, job.count, job.distance, job.queries)?;
    index.warm_up()?;
    let asked = warm_up(&*index, &queries.warm_up, job.seconds).clamp(1, job.queries);
    let mut times = single(&*index, &queries.single[..asked]);
    times.sort_unstable();
    let percentile = |part: f64| microseconds(times[((times.len() - 1) as f64 * part).round() as usize]);
    let whole = &queries.whole[..asked];
    let total = timed(|| {
        let mut searcher = index.searcher();
        whole.iter().for_each(|&query| {
            black_box(searcher.count(query));
        });
    });
    let batch = timed(|| {
        black_box(index.batch(whole));
    });

    let each = |bytes: u64| bytes as f64 / job.count as f64;
    Ok(Row {
        choice: index.choice(),
        ids: index.ids().to_string(),
        build_seconds,
        resident: each(resident),
        disk: disk.map(each),
        mean: microseconds(total) / asked as f64,
        median: percentile(0.5),
        percentile_99: percentile(0.99),
        batch_per_second: asked as f64 / batch.as_secs_f64(),
        recall: recall(&*index, &job.truth)?,
        asked,
    })
}

/// Asks queries for a while, and returns how many could be asked in the time of a set.
fn warm_up(index: &dyn Index, queries: &[u64], seconds: f64) -> usize {
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
fn single(index: &dyn Index, queries: &[u64]) -> Vec<Duration> {
    let mut searcher = index.searcher();
    let time = |&query: &u64| {
        timed(|| {
            black_box(searcher.count(query));
        })
    };
    queries.iter().map(time).collect()
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
