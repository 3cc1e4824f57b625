//! `simstore dedup`: near-duplicate clusters of a corpus.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Arg, Args, ValueEnum};
use serde::Serialize;
use simstore::any::Width;
use simstore_corpus::dedup::{
    self, Add, AddedBefore, Answer, ClusterBy, CompareOptions, Found, Keep, Options, Question, Resume, Shard,
    Summary,
};
use simstore_corpus::{InputKind, Inputs, Notice};

use crate::counts::{warn, warn_of_skipped, warn_of_texts};
use crate::failure::{Failure, Outcome, complain, with_flags};
use crate::inputs::{self, DocumentArgs, count_of};
use crate::numbers::parse_bytes;
use crate::output::{Output, UNFINISHED};
use crate::progress::Progress;
use crate::width::width;

mod estimate;
mod files;
mod print;

const EXAMPLES: &str = "\
docs/dedup.md tells what tables and objects of JSON hold, docs/similarity.md what the numbers mean,
`simstore fingerprint --help` how documents are read.

Examples:
  simstore dedup samples/en.jsonl
  simstore dedup samples/zh.jsonl --output unique.jsonl --pairs pairs.csv
  simstore dedup --similar 0.9 --keep longest --remove-list remove.txt samples/en.jsonl
  simstore dedup --distance 6 --verify-text 0.8 --cluster-by stars samples/en.jsonl
  simstore dedup --against seen.simstore --add --output new.jsonl samples/en.jsonl";

/// How documents are grouped into clusters
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shape {
    Components,
    Stars,
}

impl From<Shape> for ClusterBy {
    fn from(shape: Shape) -> ClusterBy {
        match shape {
            Shape::Components => ClusterBy::Components,
            Shape::Stars => ClusterBy::Stars,
        }
    }
}

/// JSON output if an identical run has already completed.
#[derive(Debug, Serialize)]
struct AlreadyAdded {
    documents: u64,
    added: u64,
    added_before: u64,
}

/// Find near-duplicate documents, and write the corpus without them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_args(brief))]
pub(crate) struct DedupArgs {
    /// Documents or fingerprints: files, folders, archives, patterns like 'crawl/*.warc.gz'; `-` is standard input
    #[arg(required_unless_present = "files_from", value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Find texts that are at least this similar, from 0.43 to 1: the Jaccard similarity of their word 3-grams (shingles). Punctuation
    /// is ignored [default: 0.8]
    #[arg(long, short, value_name = "SIMILARITY", value_parser = parse_share)]
    similar: Option<f64>,
    /// Find equal texts only: equal bytes in Unicode's form NFC
    #[arg(
        long,
        conflicts_with_all = ["similar", "recall", "distance", "bits", "verify_text", "verify_profile"]
    )]
    exact: bool,
    /// Find pairs of exactly that similarity with at least this probability; more similar ones are found more often [default:
    /// 0.95]
    #[arg(long, value_name = "R", value_parser = parse_share)]
    recall: Option<f64>,
    /// Compare fingerprints instead: find those that differ in at most K bits [default for fingerprints: 3, or the store's distance; for
    /// documents with --profile, --bits or --verify-text: 3]
    #[arg(long, short, value_name = "K", conflicts_with_all = ["similar", "recall"])]
    distance: Option<u32>,
    /// Width of fingerprints: 64 or 128 [default: 64, or the store's width]
    #[arg(long, value_parser = width())]
    bits: Option<Width>,
    /// With --distance, count only pairs whose texts are at least this similar
    #[arg(long, value_name = "SIMILARITY", value_parser = parse_share)]
    verify_text: Option<f64>,
    /// Compare texts by a profile [default: code for source code, else
    /// words-3,segmented,plain-text,simplified,weights=none]
    #[arg(long, value_name = "NAME")]
    verify_profile: Option<String>,
    /// Clusters are stars (every duplicate is near the kept document) or components (chains of near documents) [default: stars;
    /// for fingerprints and --keep none, components]
    #[arg(long, value_enum, value_name = "SHAPE")]
    cluster_by: Option<Shape>,
    /// Which document of a cluster to keep: first, longest, smallest-id, newest:FIELD (dates or numbers), largest:FIELD or
    /// smallest:FIELD (numbers alone), or none
    #[arg(long, value_name = "RULE", default_value = "first")]
    keep: Keep,
    /// Also remove near-duplicates of documents in STORE; repeatable. A store of fingerprints needs --distance for documents
    #[arg(long, value_name = "STORE")]
    against: Vec<PathBuf>,
    /// Add the kept documents to the (first) store, which is made if it is missing; store and output files change together
    #[arg(long, requires = "against")]
    add: bool,
    /// Keep the texts in a store of similar documents that --add makes
    #[arg(long, requires = "add")]
    with_texts: bool,
    /// Add even if the same run has added its documents before
    #[arg(long, requires = "add")]
    again: bool,
    /// Keep the work on finished files, and parts of large ones, in this folder, and reuse it: an interrupted run carries on
    #[arg(long, value_name = "FOLDER")]
    resume: Option<PathBuf>,
    /// Only make shard I of N of the parts in that folder. A run without --shard joins all of them
    #[arg(
        long,
        value_name = "I/N",
        requires = "resume",
        conflicts_with_all = [
            "output", "annotated", "clusters", "pairs", "keep_list", "remove_list", "against", "verify_text", "json",
        ]
    )]
    shard: Option<Shard>,
    /// Memory limit, like 8G, from 64K [default: all that is available]. More goes to disk. Reading takes up to 128M, and 32M a thread
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    memory: Option<u64>,
    /// Folder for temporary files [default: the system's]
    #[arg(long, value_name = "FOLDER")]
    temporary: Option<PathBuf>,
    /// Only estimate the time, memory and disk that the run would take
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    files: files::FileArgs,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    documents: DocumentArgs,
}

/// Shows a single description for each option, so that the help fits two screens.
fn brief(arg: Arg) -> Arg {
    let takes_values = arg.get_action().takes_values();
    let arg = arg.long_help(None);
    if takes_values { arg.hide_possible_values(true) } else { arg }
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

pub(crate) fn run(args: &DedupArgs, progress: &Progress) -> Outcome {
    let inputs = args.documents.inputs(&args.inputs, progress)?;
    // A pattern without matches is not a usage error: files come and go.
    inputs.files_of_fingerprints()?;
    let kind = inputs::kind(&inputs)?;
    let options = args.options(progress)?;
    if args.dry_run {
        let estimate = dedup::estimate(&inputs, &options, progress).map_err(Failure::usage)?;
        return estimate::print(&estimate, args.memory.is_some(), args.json);
    }
    if let Some(shard) = args.shard {
        return make_shard(&inputs, shard, &options, progress);
    }
    let is_cut_off = Arc::new(AtomicBool::new(false));
    let files = args.files.files(args.json, args.documents.null, &is_cut_off, args.add);
    let (prints, uses_stdout) = (files.is_empty(), files.use_stdout());
    let answer = dedup::find(&inputs, &options, files, progress).inspect_err(|error| {
        if matches!(error, simstore::Error::Refused(_)) {
            // Skipped files may be the cause.
            warn_of_skipped(progress);
        }
    });
    let mut found = match answer.map_err(Failure::usage)? {
        Answer::Found(found) => found,
        Answer::AddedBefore(before) => return say_added_before(&before, args.json, progress),
    };
    match found.question() {
        Question::Distance(_) => warn(&found.counts(), kind, progress),
        // Similarity compares the content of short texts, so they need no warning.
        Question::Similarity(_) => warn_of_texts(&found.counts(), kind, progress),
    }
    let mut totals = found.totals();
    if totals.same_id > 0 {
        progress.tell(&Notice::SameId(totals.same_id as u64));
    }
    found.write(progress).map_err(Failure::usage)?;
    (totals.compared, totals.unlike) = found.compared();
    let summary = Summary::new(totals, found.question(), &options, progress.seconds());
    // Standard output is written before the store. An interrupted run may print the same lines again, but never loses any.
    if prints {
        let output = if args.add { Output::stdout_that_may_close(&is_cut_off) } else { Output::stdout() };
        print_all(&found, output, &summary, args.json)?;
    }
    if is_cut_off.load(Ordering::Relaxed) {
        let rest = if args.add { "the store has everything" } else { "the other files are complete" };
        complain(&format!("warning: standard output was closed before all was written to it; {rest}"));
    }
    found.finish(progress).map_err(Failure::usage)?;
    if args.json && !prints && !uses_stdout {
        let mut output = Output::stdout();
        output.json(&summary)?;
        output.finish()?;
    }
    if !args.json || uses_stdout {
        progress.say(&with_flags(&summary.to_string()));
    }
    Ok(())
}

/// Prints the clusters and, as JSON, the summary.
fn print_all(found: &Found, mut output: Output, summary: &Summary, json: bool) -> Outcome {
    for cluster in found.clusters() {
        let cluster = cluster?;
        if json {
            output.json(&print::object(&cluster))?;
        } else {
            print::print(&mut output, &cluster)?;
        }
    }
    if json {
        output.json(summary)?;
    }
    output.finish()
}

/// Makes the parts of a shard.
fn make_shard(inputs: &Inputs, shard: Shard, options: &Options, progress: &Progress) -> Outcome {
    let (counts, tally) =
        dedup::make_shard(inputs, shard, options, &UNFINISHED, progress).map_err(Failure::usage)?;
    // Files left to other shards were not read, so there is nothing to warn about.
    if tally.left == 0 || counts.read + counts.bad > 0 {
        warn(&counts, InputKind::Documents, progress);
    }
    progress.say(&format!(
        "{} processed, {} reused, {} left to other shards; when all are in one folder, run this without --shard",
        count_of(tally.made, "part"),
        tally.found,
        tally.left
    ));
    Ok(())
}

/// Reports that an identical run has already completed.
fn say_added_before(before: &AddedBefore, json: bool, progress: &Progress) -> Outcome {
    if json {
        let mut output = Output::stdout();
        output.json(&AlreadyAdded { documents: before.counts.read, added: 0, added_before: before.added })?;
        output.finish()?;
    }
    progress.say(&format!(
        "the same run has added {} before: store and outputs are unchanged",
        count_of(before.added, "document")
    ));
    Ok(())
}

impl DedupArgs {
    fn options(&self, progress: &Progress) -> Outcome<Options> {
        let (profile, resources) = self.documents.profile.choice()?;
        let compare = CompareOptions {
            similar: self.similar,
            recall: self.recall,
            distance: self.distance,
            bits: self.bits.map(|width| width.bits()),
            profile,
            verify_text: self.verify_text,
            verify_profile: self.verify_profile.clone(),
            exact: self.exact,
        };
        let add = Add::of_options(self.add, self.with_texts, self.again);
        Ok(Options {
            compare: compare.compare(&resources, progress).map_err(Failure::usage)?,
            resources,
            cluster_by: self.cluster_by.map(ClusterBy::from),
            keep: self.keep.clone(),
            against: self.against.clone(),
            add: add.map_err(Failure::usage)?,
            resume: self.resume.clone().map(Resume::from),
            pairs: false,
            memory: self.memory,
            temporary: self.temporary.clone(),
        })
    }
}
