//! `simstore dedup`: finds near-duplicates in a corpus, and writes the corpus without them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use clap::{Arg, Args, ValueEnum};
use simstore::any::Width;
use simstore_corpus::{Diagnostic, InputKind, Inputs, Observer};
use simstore_dedup::{
    AddConfig, ClusterBy, ComparisonConfig, ComparisonOptions, Criterion, DedupConfig, KeepRule, Report,
    ResumeConfig, RunObserver, WorkShard,
};

use crate::command_error::{CommandError, CommandResult, options_as_flags, print_message};
use crate::input_warnings::{warn_about_fingerprints, warn_about_skipped_files, warn_about_texts};
use crate::inputs::{self, DocumentArgs};
use crate::numbers::{format_count_of, parse_bytes};
use crate::output::{self, UNFINISHED_OUTPUTS, object};
use crate::progress::ProgressDisplay;
use crate::width::width_parser;

mod estimate;
mod output_args;
mod pair_sample;
mod print_clusters;

const EXAMPLES: &str = "\
See docs/dedup.md (output formats), docs/similarity.md (similarity), docs/threshold.md (choosing --similar), and `simstore build \
--help` (input formats).

Examples:
  simstore dedup samples/en.jsonl
  simstore dedup samples/zh.jsonl --output unique.jsonl --pairs pairs.csv
  simstore dedup --similar 0.9 --keep longest --remove-list remove.txt samples/en.jsonl
  simstore dedup --sample-pairs=4 samples/en.jsonl
  simstore dedup --against seen.simstore --add --output new.jsonl samples/en.jsonl";

/// Heading, in the help, of the options that define which documents are duplicates.
const DUPLICATES_HEADING: &str = "What counts as a duplicate";
/// Heading, in the help, of the options for comparing fingerprints.
const FINGERPRINTS_HEADING: &str = "Compare fingerprints instead of texts";
/// Heading, in the help, of the options for memory, temporary files and shards.
const LARGE_INPUTS_HEADING: &str = "Large inputs";

/// Value of `--cluster-by`: how documents are grouped into clusters
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ClusterShape {
    Components,
    Stars,
}

impl From<ClusterShape> for ClusterBy {
    fn from(shape: ClusterShape) -> ClusterBy {
        match shape {
            ClusterShape::Components => ClusterBy::Components,
            ClusterShape::Stars => ClusterBy::Stars,
        }
    }
}

/// Find near-duplicate documents, and write the input without them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_args(shorten_help))]
pub(crate) struct DedupArgs {
    /// Files, directories, archives, or globs such as 'crawl/*.warc.gz'; `-` is standard input
    #[arg(required_unless_present = "files_from", value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Threshold: least Jaccard similarity of the word 3-grams of two near-duplicates, 0.43 to 1 [default: 0.8]
    #[arg(long, short, value_name = "SIMILARITY", value_parser = parse_share)]
    similar: Option<f64>,
    #[command(flatten)]
    files: output_args::OutputArgs,
    /// Document of each cluster to keep: first, longest, smallest-id, newest:FIELD, largest:FIELD, smallest:FIELD, or none
    #[arg(long, value_name = "RULE", default_value = "first")]
    keep: KeepRule,
    /// Also remove documents similar to a document in this store; repeatable
    #[arg(long, value_name = "STORE")]
    against: Vec<PathBuf>,
    /// Add the kept documents to the first store of --against; create the store if it is missing
    #[arg(long, requires = "against")]
    add: bool,
    /// Only estimate the time, memory and disk space of the run
    #[arg(long)]
    dry_run: bool,
    /// Only show a histogram of similarities, and N pairs: equal shares from ranges of similarity on both sides of the threshold
    /// [default: 12]
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "12",
        conflicts_with_all = [
            "output", "annotated", "clusters", "pairs", "keep_list", "remove_list", "against", "resume", "dry_run", "distance", "exact",
            "bits", "verify_text", "cluster_by",
        ]
    )]
    sample_pairs: Option<usize>,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
    /// Probability to find a pair exactly at the threshold; more similar pairs are found more often [default: 0.95]
    #[arg(long, value_name = "R", value_parser = parse_share)]
    recall: Option<f64>,
    /// Find equal texts only: equal bytes after Unicode normalization (NFC)
    #[arg(
        long,
        conflicts_with_all = ["similar", "recall", "distance", "bits", "verify_text", "verify_profile"]
    )]
    exact: bool,
    /// stars (each duplicate is similar to the kept document) or components (chains) [default: stars; components for fingerprints and
    /// --keep none]
    #[arg(long, value_enum, value_name = "SHAPE")]
    cluster_by: Option<ClusterShape>,
    /// Profile that splits texts into shingles; see `simstore profiles` [default: code for source code, else word 3-grams]
    #[arg(long, value_name = "NAME")]
    verify_profile: Option<String>,
    /// Find fingerprints that differ in at most K bits [default: 3, or the distance of the store]
    #[arg(long, short, value_name = "K", conflicts_with_all = ["similar", "recall"])]
    distance: Option<u32>,
    /// Width of the fingerprints: 64 or 128 [default: 64, or the width of the store]
    #[arg(long, value_parser = width_parser())]
    bits: Option<Width>,
    /// Report only pairs whose texts have at least this Jaccard similarity
    #[arg(long, value_name = "SIMILARITY", value_parser = parse_share)]
    verify_text: Option<f64>,
    /// Memory limit, such as 8G; further data goes to temporary files. Reading needs up to 128M, or 32M a thread [default: the available
    /// memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    memory: Option<u64>,
    /// Existing directory for temporary files [default: the system's]
    #[arg(long, value_name = "DIR")]
    temporary: Option<PathBuf>,
    /// Save finished work in this directory, so that the next run continues from it
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
    /// Process only shard I of N and save it in the --resume directory; a run without --shard joins the shards
    #[arg(
        long,
        value_name = "I/N",
        requires = "resume",
        conflicts_with_all = [
            "output", "annotated", "clusters", "pairs", "keep_list", "remove_list", "against", "verify_text", "json",
        ]
    )]
    shard: Option<WorkShard>,
    /// A new store of --add also stores the texts, so that later similarities are exact
    #[arg(long, requires = "add")]
    with_texts: bool,
    /// Add documents even if an identical run has already added them
    #[arg(long, requires = "add")]
    again: bool,
    #[command(flatten)]
    documents: DocumentArgs,
}

/// Removes the long description and the list of values of an option, so that the help of `dedup` fits two screens. Puts the
/// option under its heading.
fn shorten_help(arg: Arg) -> Arg {
    let takes_values = arg.get_action().takes_values();
    let heading = match arg.get_id().as_str() {
        "recall" | "exact" | "cluster_by" | "verify_profile" => Some(DUPLICATES_HEADING),
        "distance" | "bits" | "verify_text" | "name" | "preset" | "dictionary" | "idf" | "stop_words" => {
            Some(FINGERPRINTS_HEADING)
        }
        "memory" | "temporary" | "resume" | "shard" => Some(LARGE_INPUTS_HEADING),
        "null" | "with_texts" | "again" => Some(output_args::RESULT_FILES_HEADING),
        _ => None,
    };
    let arg = arg.long_help(None);
    let arg = if takes_values { arg.hide_possible_values(true) } else { arg };
    if let Some(heading) = heading { arg.help_heading(heading) } else { arg }
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1, such as 0.8".to_owned())
}

pub(crate) fn run(args: &DedupArgs, progress: &ProgressDisplay) -> CommandResult {
    if let (Some(_), Some(count)) =
        (args.sample_pairs, args.inputs.iter().find(|input| is_count_without_file(input)))
    {
        let count = count.display();
        return Err(CommandError::Usage(format!(
            "{count}: no such file; to show {count} pairs, write --sample-pairs={count}"
        )));
    }
    let inputs = args.documents.open_inputs(&args.inputs, progress)?;
    // A glob without matches is an ordinary error here, not a usage error, because files come and go.
    inputs.fingerprint_files()?;
    let kind = inputs::kind(&inputs)?;
    let config = args.config(progress)?;
    if args.dry_run {
        let estimate = simstore_dedup::estimate(&config, &inputs, progress).map_err(CommandError::usage)?;
        return Ok(estimate::print(&estimate, args.memory.is_some(), args.json)?);
    }
    if let Some(count) = args.sample_pairs {
        let sample =
            simstore_dedup::sample_pairs(&config, &inputs, count, progress).map_err(CommandError::usage)?;
        return Ok(pair_sample::print(&sample, args.json)?);
    }
    if let Some(shard) = args.shard {
        return make_shard(&config, &inputs, shard, progress);
    }
    let is_stdout_closed = Arc::new(AtomicBool::new(false));
    let outputs = args.files.outputs(args.json, args.documents.null, &is_stdout_closed, args.add);
    let (prints_clusters, uses_stdout) = (outputs.is_empty(), outputs.uses_stdout());
    let printer = ClusterPrinter {
        args,
        kind,
        prints_clusters,
        is_stdout_closed,
        print_error: Mutex::new(None),
        progress,
    };
    let report = match simstore_dedup::run(&config, &inputs, outputs, &printer) {
        Ok(report) => report,
        Err(error) => {
            if matches!(error, simstore::Error::Refused(_)) {
                // Skipped files may be the cause.
                warn_about_skipped_files(progress);
            }
            let print_error = printer.print_error.into_inner().unwrap_or_else(PoisonError::into_inner);
            return Err(print_error.unwrap_or_else(|| CommandError::usage(error)));
        }
    };
    if let Some(added) = report.added_before() {
        return report_already_added(report.summary().documents, added, args.json, progress);
    }
    let summary = report.summary();
    if args.json && !prints_clusters && !uses_stdout {
        let mut output = output::stdout();
        output.write_json(summary)?;
        output.finish()?;
    }
    if !args.json || uses_stdout {
        progress.print_summary(&options_as_flags(&summary.to_string()));
    }
    Ok(())
}

/// Prints warnings and clusters during a run.
struct ClusterPrinter<'a> {
    args: &'a DedupArgs,
    kind: InputKind,
    /// Whether clusters are printed: true if no output file is requested.
    prints_clusters: bool,
    /// Whether the reader of standard output closed it before the end of the output.
    is_stdout_closed: Arc<AtomicBool>,
    /// Error of printing that ended the run; `None` if printing did not fail.
    print_error: Mutex<Option<CommandError>>,
    progress: &'a ProgressDisplay,
}

impl RunObserver for ClusterPrinter<'_> {
    fn observer(&self) -> &dyn Observer {
        self.progress
    }

    fn before_writing(&self, report: &Report) -> simstore::Result<()> {
        let summary = report.summary();
        match summary.criterion {
            Criterion::Distance(_) => warn_about_fingerprints(&report.counts(), self.kind, self.progress),
            // Similarity is reliable for short texts too, so they need no warning.
            Criterion::Similarity(_) => warn_about_texts(&report.counts(), self.kind, self.progress),
        }
        if summary.repeated_ids > 0 {
            self.progress.print_diagnostic(&Diagnostic::DuplicateIds(summary.repeated_ids as u64));
        }
        Ok(())
    }

    /// Prints the clusters before the run changes the store. If the run is interrupted after printing and before the change,
    /// no cluster is lost, because the next run prints the clusters again.
    fn before_publishing(&self, report: &Report) -> simstore::Result<()> {
        if self.prints_clusters {
            self.print(report).map_err(|error| {
                *self.print_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                simstore::Error::Cancelled
            })?;
        }
        if self.is_stdout_closed.load(Ordering::Relaxed) {
            let rest = if self.args.add { "the store is complete" } else { "the other files are complete" };
            print_message(&format!("warning: standard output was closed early; {rest}"));
        }
        Ok(())
    }
}

impl ClusterPrinter<'_> {
    /// Prints the clusters. With `--json`, also prints the summary.
    fn print(&self, report: &Report) -> CommandResult {
        let DedupArgs { add, json, .. } = *self.args;
        let mut output = if add { output::closable_stdout(&self.is_stdout_closed) } else { output::stdout() };
        for cluster in report.clusters() {
            let cluster = cluster?;
            if json {
                output.write_json(&print_clusters::cluster_object(&cluster))?;
            } else {
                print_clusters::print_cluster(&mut output, &cluster)?;
            }
        }
        if json {
            output.write_json(report.summary())?;
        }
        Ok(output.finish()?)
    }
}

/// Whether an input path is a number, and no file has this name. The user probably meant it as the value of `--sample-pairs`.
fn is_count_without_file(input: &Path) -> bool {
    input.to_str().is_some_and(|name| name.parse::<usize>().is_ok()) && !input.exists()
}

/// Runs `dedup --shard`: processes the parts of the input that belong to one shard, and prints a summary.
fn make_shard(
    config: &DedupConfig,
    inputs: &Inputs,
    shard: WorkShard,
    progress: &ProgressDisplay,
) -> CommandResult {
    let (counts, tally) = simstore_dedup::make_shard(config, inputs, shard, &UNFINISHED_OUTPUTS, progress)
        .map_err(CommandError::usage)?;
    // If all parts are finished or belong to other shards, nothing is read. A warning about missing documents would then be wrong.
    let has_parts = tally.made + tally.reused + tally.left_to_others > 0;
    if !has_parts || counts.read + counts.malformed > 0 {
        match config.comparison {
            ComparisonConfig::Distance(_) => warn_about_fingerprints(&counts, InputKind::Documents, progress),
            ComparisonConfig::Default | ComparisonConfig::Similarity(_) => {
                warn_about_texts(&counts, InputKind::Documents, progress);
            }
        }
    }
    let belong = if tally.left_to_others == 1 { "belongs" } else { "belong" };
    progress.print_summary(&format!(
        "{} processed, {} reused, {} {belong} to other shards. When all parts are in one directory, run without --shard",
        format_count_of(tally.made, "part"),
        tally.reused,
        tally.left_to_others
    ));
    Ok(())
}

/// Prints that an earlier, identical run has already added its documents to the store. `documents` is the number of
/// documents of this run, `added_before` the number of documents that the earlier run added.
fn report_already_added(
    documents: u64,
    added_before: u64,
    json: bool,
    progress: &ProgressDisplay,
) -> CommandResult {
    if json {
        let mut output = output::stdout();
        output.write_json(&object! { documents, added: 0, added_before })?;
        output.finish()?;
    }
    progress.print_summary(&format!(
        "this run has already added {}; the store and the outputs are unchanged",
        format_count_of(added_before, "document")
    ));
    Ok(())
}

impl DedupArgs {
    fn config(&self, progress: &ProgressDisplay) -> CommandResult<DedupConfig> {
        let (profile, resources) = self.documents.profile.name_and_resources()?;
        let comparison = ComparisonOptions {
            similar: self.similar,
            recall: self.recall,
            distance: self.distance,
            bits: self.bits.map(|width| width.bits()),
            profile,
            verify_text: self.verify_text,
            verify_profile: self.verify_profile.clone(),
            exact: self.exact,
        };
        let add = AddConfig::from_options(self.add, self.with_texts, self.again);
        Ok(DedupConfig {
            comparison: comparison.into_config(&resources, progress).map_err(CommandError::usage)?,
            resources,
            cluster_by: self.cluster_by.map(ClusterBy::from),
            keep: self.keep.clone(),
            against: self.against.clone(),
            add: add.map_err(CommandError::usage)?,
            resume: self.resume.clone().map(ResumeConfig::from),
            pairs: false,
            report: false,
            memory: self.memory,
            temporary_folder: self.temporary.clone(),
        })
    }
}
