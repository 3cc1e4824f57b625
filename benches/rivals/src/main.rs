//! simstore and other indexes for Hamming distance, on the same fingerprints and the same queries.
//!
//! The driver starts itself again for each index, so that no index pays for the memory that another one left
//! behind. It sends a [`measure::QueryJob`] to the child's standard input, gets a [`measure::QueryRow`] from its
//! standard output, and prints Markdown. The README has the commands.

mod child;
mod data;
mod index;
mod join;
mod measure;
mod memory;
mod linear_scan;
#[path = "../../../tests/support/random.rs"]
mod random;
mod index_spec;
mod markdown_table;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;

use crate::data::{QuerySets, FingerprintSource};
use crate::measure::{QueryJob, QueryRow};
use crate::index_spec::IndexSpec;

/// Compares simstore with other indexes on the same fingerprints and queries; prints Markdown.
#[derive(Debug, Parser)]
struct RivalsArgs {
    /// Indexes, in the order of the rows: mih-BLOCKS, gaoya-BLOCKS, bk-tree, scan, or
    /// simstore:PLAN:CODEC[:BLOCK_SIZE][:ids]; all of them if this is not said
    #[arg(long, value_delimiter = ',')]
    index: Vec<IndexSpec>,
    /// How many fingerprints; a table for each
    #[arg(long, value_delimiter = ',', default_value = "1000000")]
    count: Vec<usize>,
    /// Distance of the queries, in bits; a table for each
    #[arg(long, value_delimiter = ',', default_value = "3")]
    distance: Vec<u32>,
    /// How many queries are timed one by one, and how many others as a whole
    #[arg(long, default_value_t = 100_000)]
    queries: usize,
    /// How many queries are compared with the plain loop
    #[arg(long, default_value_t = 200)]
    checked: usize,
    /// An index that would take longer than this for one set of queries, in seconds, is asked fewer
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// A raw little-endian .u64 file whose first fingerprints are taken, instead of random ones
    #[arg(long)]
    data: Option<PathBuf>,
    /// Write the fingerprints and queries to a folder, for faiss.py, and do nothing else
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["index", "join"])]
    write_data: Option<PathBuf>,
    /// Self-joins instead of queries
    #[arg(long, conflicts_with = "index")]
    join: bool,
    /// Do one job, which standard input has
    #[arg(long, hide = true)]
    child: bool,
}

fn main() -> Result<()> {
    let arguments = RivalsArgs::parse();
    if arguments.child {
        return child::serve_request();
    }
    let source = arguments.data.clone().map_or(FingerprintSource::Random, FingerprintSource::File);
    for &count in &arguments.count {
        for &distance in &arguments.distance {
            let count = source.clamp_count(count)?;
            if let Some(folder) = &arguments.write_data {
                let queries = QuerySets::generate(&source, count, distance, arguments.queries)?;
                data::write_files(folder, &source, count, distance, &queries)
                    .with_context(|| format!("cannot write to {}", folder.display()))?;
            } else if arguments.join {
                join::compare_joiners(&source, count, distance)?;
            } else {
                compare_indexes(&arguments, &source, count, distance)?;
            }
        }
    }
    Ok(())
}

/// One table: all indexes for one size and distance.
fn compare_indexes(arguments: &RivalsArgs, source: &FingerprintSource, count: usize, distance: u32) -> Result<()> {
    let queries = QuerySets::generate(source, count, distance, arguments.queries)?;
    let sample = &queries.single[..arguments.checked.min(queries.single.len())];
    let truth = measure::brute_force(source, count, distance, sample)?;
    let found: usize = truth.iter().map(|answer| answer.matches.len()).sum();

    println!("### {} fingerprints ({source}), k = {distance}\n", markdown_table::format_grouped(count as f64));
    println!(
        "Recall: {} queries, to which the plain loop has {} matches.\n",
        sample.len(),
        markdown_table::format_grouped(found as f64)
    );
    println!("{}", markdown_table::header(QueryRow::COLUMNS));
    let defaults = IndexSpec::defaults(distance);
    let specs = if arguments.index.is_empty() { &defaults } else { &arguments.index };
    for spec in specs {
        let job = QueryJob {
            spec: spec.clone(),
            source: source.clone(),
            count,
            distance,
            queries: arguments.queries,
            seconds: arguments.seconds,
            truth: truth.clone(),
        };
        match child::run_in_child(&child::Request::Query(job)) {
            Ok(child::Response::Query(row)) => println!("{}", markdown_table::row(&row.cells(&spec.to_string()))),
            Ok(child::Response::Join(_)) => anyhow::bail!("a self-join was not asked for"),
            Err(reason) => println!("{}", markdown_table::failure_row(&spec.to_string(), &reason, QueryRow::COLUMNS.len())),
        }
    }
    println!();
    Ok(())
}
