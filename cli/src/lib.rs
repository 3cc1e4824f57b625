//! The `simstore` command line: near-duplicate detection for text corpora, and stores of fingerprints.
//!
//! The commands are in a library because cargo starts to compile a library while its dependencies still compile, but
//! compiles a binary only after all dependencies are complete.
#![forbid(unsafe_code)]
#![allow(missing_docs)]
#![expect(clippy::doc_markdown, reason = "doc comments of arguments are help text, which is not Markdown")]

use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::command_error::{CommandError, CommandResult, print_message};
use crate::progress::ProgressDisplay;

mod add;
mod build;
mod checkpoint;
mod command_error;
mod compact;
mod compare;
mod compression;
mod dedup;
mod delete;
mod dump;
mod evaluate;
mod fingerprint;
mod help;
mod histogram;
mod idf;
mod input_warnings;
mod inputs;
mod inspect;
mod interrupt;
mod malformed_list;
mod numbers;
mod open_store;
mod output;
mod plan;
mod profile_args;
mod profiles;
mod progress;
mod query;
mod salvage;
#[cfg(feature = "serve")]
mod serve;
mod similar_query;
mod usage_error;
mod verify;
mod width;

/// Maximum of `--threads`. More threads make no command faster, and can exhaust the machine.
const MAX_THREADS: usize = 1024;

/// Near-duplicate detection for text corpora, and a compressed on-disk index for simhash fingerprints
#[derive(Debug, Parser)]
#[command(name = "simstore", version, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(flatten)]
    common: CommonArgs,
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
struct CommonArgs {
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
    Checkpoint(checkpoint::CheckpointArgs),
    Inspect(inspect::InspectArgs),
    Verify(verify::VerifyArgs),
    Salvage(salvage::SalvageArgs),
    Dump(dump::DumpArgs),
    #[cfg(feature = "serve")]
    Serve(Box<serve::ServeArgs>),
    Fingerprint(fingerprint::FingerprintArgs),
    Profiles(profiles::ProfilesArgs),
    Idf(idf::IdfArgs),
    Evaluate(evaluate::EvaluateArgs),
    Plan(plan::PlanArgs),
    Compression(compression::CompressionArgs),
    Completions(help::CompletionsArgs),
    ManPages(help::ManPagesArgs),
}

fn run(cli: Cli) -> CommandResult {
    if cli.common.threads.is_some_and(|threads| !(1..=MAX_THREADS).contains(&threads)) {
        return Err(CommandError::Usage(format!("--threads must be from 1 to {MAX_THREADS}")));
    }
    interrupt::install_handler(stops_by_itself(&cli.command))?;
    simstore::threads::start_global_pool(cli.common.threads);
    let threads = rayon::current_num_threads();
    if cli.common.threads.is_some_and(|requested| threads < requested) {
        print_message(&format!("warning: using {threads} threads: the system cannot start more"));
    }
    let progress = ProgressDisplay::new(cli.common.quiet);
    let result = match cli.command {
        Command::Build(args) => build::run(&args, &progress),
        Command::Add(args) => add::run(&args, &progress),
        Command::Delete(args) => delete::run(&args, &progress),
        Command::Compact(args) => compact::run(&args, &progress),
        Command::Checkpoint(args) => checkpoint::run(&args, &progress),
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
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Compression(args) => compression::run(&args, &progress),
        Command::Completions(args) => help::print_completions(&args, Cli::command()),
        Command::ManPages(args) => help::write_man_pages(&args, Cli::command()),
    };
    progress.finish(result)
}

/// Whether a command handles the signals that end a process itself.
fn stops_by_itself(command: &Command) -> bool {
    #[cfg(feature = "serve")]
    if matches!(command, Command::Serve(_)) {
        return true;
    }
    let _ = command;
    false
}

/// Returns the definition of the command line. Its help lists the commands in groups.
fn command() -> clap::Command {
    help::with_command_groups(Cli::command())
}

/// Parses the arguments of this process. If they are invalid, prints a usage error and exits.
fn parse() -> Cli {
    let parsed = command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.unwrap_or_else(|error| usage_error::improve_message(error).exit())
}

/// Runs the command that the arguments of this process name, and returns the exit code.
pub fn main() -> ExitCode {
    match run(parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.print(),
    }
}
