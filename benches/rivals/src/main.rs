//! Compares simstore with other indexes for Hamming distance, on the same fingerprints and queries. Prints Markdown.
//!
//! The program starts itself as a child process for each index, so that memory left by one index does not count for
//! the next index. It sends a [`measure::QueryJob`] to the child's standard input and receives a
//! [`measure::QueryRow`] from the child's standard output. The README has the commands.

mod child;
mod data;
mod index;
mod index_spec;
mod join;
mod linear_scan;
mod markdown_table;
mod measure;
mod memory;
#[path = "../../../tests/support/random.rs"]
mod random;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;

use crate::data::{FingerprintSource, QuerySets};
use crate::index_spec::IndexSpec;
use crate::measure::{QueryJob, QueryRow};

/// Compares simstore with other indexes on the same fingerprints and queries; prints Markdown.
#[derive(Debug, Parser)]
struct RivalsArgs {
    /// Indexes, in the order of the rows: mih-BLOCKS, gaoya-BLOCKS, bk-tree, scan, or
    /// `simstore:PLAN:CODEC[:BLOCK_SIZE][:ids]`; without this option, a default list
    #[arg(long, value_delimiter = ',')]
    index: Vec<IndexSpec>,
    /// Number of fingerprints; one table for each number
    #[arg(long, value_delimiter = ',', default_value = "1000000")]
    count: Vec<usize>,
    /// Distance of the queries, in bits; one table for each distance
    #[arg(long, value_delimiter = ',', default_value = "3")]
    distance: Vec<u32>,
    /// Number of queries that are timed one by one; as many others are timed as a whole
    #[arg(long, default_value_t = 100_000)]
    queries: usize,
    /// Number of queries whose matches are compared with brute force
    #[arg(long, default_value_t = 200)]
    checked: usize,
    /// Time limit for one set of queries, in seconds; slower indexes run fewer queries
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Use the first fingerprints of a little-endian .u64 file instead of random ones
    #[arg(long)]
    data: Option<PathBuf>,
    /// Write the fingerprints and queries to a folder, for faiss.py, and do nothing else
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["index", "join"])]
    write_data: Option<PathBuf>,
    /// Measure self-joins instead of queries
    #[arg(long, conflicts_with = "index")]
    join: bool,
    /// Run one request from standard input
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

/// Prints one table: all indexes for one number of fingerprints and one distance.
fn compare_indexes(
    arguments: &RivalsArgs,
    source: &FingerprintSource,
    count: usize,
    distance: u32,
) -> Result<()> {
    let queries = QuerySets::generate(source, count, distance, arguments.queries)?;
    let sample = &queries.single[..arguments.checked.min(queries.single.len())];
    let truth = measure::brute_force(source, count, distance, sample)?;
    let match_count: usize = truth.iter().map(|expected| expected.matches.len()).sum();

    println!(
        "### {} fingerprints ({source}), k = {distance}\n",
        markdown_table::format_grouped(count as f64)
    );
    println!(
        "Recall: {} queries, to which the plain loop has {} matches.\n",
        sample.len(),
        markdown_table::format_grouped(match_count as f64)
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
            Ok(child::Response::Query(row)) => {
                println!("{}", markdown_table::row(&row.cells(&spec.to_string())));
            }
            Ok(child::Response::Join(_)) => anyhow::bail!("a self-join was not asked for"),
            Err(reason) => println!(
                "{}",
                markdown_table::failure_row(&spec.to_string(), &reason, QueryRow::COLUMNS.len())
            ),
        }
    }
    println!();
    Ok(())
}
