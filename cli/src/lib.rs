//! The `simstore` command line: near-duplicate detection for text corpora, and stores of fingerprints.
//!
//! A library, so that cargo compiles it at the same time as the libraries that it uses; a program would have to wait for them.
#![forbid(unsafe_code)]
#![allow(missing_docs)]

use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::failure::{Failure, Outcome, complain};
use crate::progress::Progress;

mod add;
mod bad;
mod build;
mod compact;
mod compare;
mod compression;
mod counts;
mod dedup;
mod delete;
mod dump;
mod evaluate;
mod failure;
mod fingerprint;
mod histogram;
mod idf;
mod inputs;
mod inspect;
mod interrupt;
mod numbers;
mod output;
mod plan;
mod profile;
mod profiles;
mod progress;
mod query;
mod reading;
mod reference;
mod salvage;
mod similar;
mod usage;
mod verify;
mod width;
mod writing;

/// More threads help nowhere, and can exhaust the machine.
const MAX_THREADS: usize = 1024;

/// Near-duplicate detection for text corpora, and a compressed on-disk index for simhash fingerprints
#[derive(Debug, Parser)]
#[command(name = "simstore", version, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  simstore dedup samples/en.jsonl                         near-duplicate clusters of a corpus
  simstore dedup samples/en.jsonl --output unique.jsonl   the corpus without near-duplicates
  simstore add --similar 0.8 pages unique.jsonl           a store that finds similar documents
  simstore query pages --file page.md                     stored documents similar to a page
  simstore build pages.simstore samples/en.jsonl          a store of simhash fingerprints
  simstore inspect pages.simstore                         its tables, and bits per fingerprint

Exit status: 0 success, 1 failure, 2 usage error, 130 interrupted.";

#[derive(Debug, Args)]
struct Common {
    /// Number of threads [default: one per core]
    #[arg(long, global = true, value_name = "N", help_heading = "Common options")]
    threads: Option<usize>,
    /// Print no progress and no summary to standard error, only warnings and errors
    #[arg(long, short, global = true, help_heading = "Common options")]
    quiet: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Dedup(Box<dedup::DedupArgs>),
    Compare(compare::CompareArgs),
    Build(build::BuildArgs),
    Add(add::AddArgs),
    Query(query::QueryArgs),
    Delete(delete::DeleteArgs),
    Compact(compact::CompactArgs),
    Inspect(inspect::InspectArgs),
    Verify(verify::VerifyArgs),
    Salvage(salvage::SalvageArgs),
    Dump(dump::DumpArgs),
    Fingerprint(fingerprint::FingerprintArgs),
    Profiles(profiles::ProfilesArgs),
    Idf(idf::IdfArgs),
    Evaluate(evaluate::EvaluateArgs),
    Plan(plan::PlanArgs),
    Compression(compression::CompressionArgs),
    Completions(reference::CompletionsArgs),
    ManPages(reference::ManPagesArgs),
}

fn run(cli: Cli) -> Outcome {
    if cli.common.threads.is_some_and(|threads| !(1..=MAX_THREADS).contains(&threads)) {
        return Err(Failure::Usage(format!("--threads must be from 1 to {MAX_THREADS}")));
    }
    interrupt::handle()?;
    simstore::threads::start_global_pool(cli.common.threads);
    let threads = rayon::current_num_threads();
    if cli.common.threads.is_some_and(|wanted| threads < wanted) {
        complain(&format!("warning: using {threads} threads: the system cannot start more"));
    }
    let progress = Progress::new(cli.common.quiet);
    let done = match cli.command {
        Command::Build(args) => build::run(&args, &progress),
        Command::Add(args) => add::run(&args, &progress),
        Command::Delete(args) => delete::run(&args, &progress),
        Command::Compact(args) => compact::run(&args, &progress),
        Command::Query(args) => query::run(&args, &progress),
        Command::Dedup(args) => dedup::run(&args, &progress),
        Command::Compare(args) => compare::run(&args, &progress),
        Command::Fingerprint(args) => fingerprint::run(&args, &progress),
        Command::Profiles(args) => profiles::run(&args),
        Command::Evaluate(args) => evaluate::run(&args, &progress),
        Command::Idf(args) => idf::run(&args, &progress),
        Command::Inspect(args) => inspect::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Salvage(args) => salvage::run(&args, &progress),
        Command::Dump(args) => dump::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Compression(args) => compression::run(&args, &progress),
        Command::Completions(args) => reference::print_completions(&args, Cli::command()),
        Command::ManPages(args) => reference::write_man_pages(&args, Cli::command()),
    };
    progress.end(done)
}

/// The command line, with the commands grouped in its help.
fn command() -> clap::Command {
    reference::grouped(Cli::command())
}

/// Parses the arguments; exits with a usage error.
fn parse() -> Cli {
    let parsed = command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.unwrap_or_else(|error| usage::explain(error).exit())
}

/// Runs the command line of this process, and returns its exit code.
pub fn main() -> ExitCode {
    match run(parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
