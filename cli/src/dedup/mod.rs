//! `simstore dedup`: near-duplicate clusters of a corpus.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, ValueEnum};
use serde::Serialize;
use simstore_corpus::dedup::{self, AddedBefore, Answer, ClusterBy, Found, Keep, Options, Shard};
use simstore_corpus::{InputKind, Inputs};

use self::summary::Summary;
use crate::counts::warn;
use crate::failure::{Failure, Outcome, complain};
use crate::inputs::{self, DocumentArgs, INPUTS_HELP, count_of};
use crate::numbers::parse_bytes;
use crate::output::{Output, UNFINISHED};
use crate::progress::Progress;
use crate::width::Bits;

mod estimate;
mod files;
mod print;
mod summary;

/// What is said of the formats, for the help of options that name such a file.
const FORMATS_HELP: &str = "\
Tables are written in the format that the file's name ends in: .jsonl (an object a line), .csv or .tsv (with a line of \
column names), .parquet; these but the last compressed, where .gz, .zst, .bz2 or .xz follows; else, and to standard output (`-`), in lines of columns separated by tabs, without names, or \
with --json in objects.";

const EXAMPLES: &str = "\
If no output file is named, the clusters are printed: what stands for each, then its other documents, each with its \
distance to that. With --json, a line is an object: one for each cluster, then one summary; if a file is named, only the \
summary.
  cluster, size  number of the cluster from 1, and of its documents
  representative id of what stands for it; stored is true if that was in the store before
  members        its documents in order of input: id, fingerprint, distance (to the representative)
  place          where ids repeat, FILE:LINE of what stands for it, and of each member
and in the summary
  documents      documents or fingerprints read
  fingerprints   distinct fingerprints among them
  clusters       clusters of two documents and more, or of something stored
  clustered      documents in them
  duplicates     documents in them that do not stand for their cluster
  stored         documents in clusters of something stored, with --against
  added          documents added to the store, with --add
  added_before   documents that the same run has added before; nothing else is told then
  kept           documents that are left
  largest        the largest clusters: size, and farthest: the greatest distance of two members
  compared, unlike   pairs whose texts were compared, and that were not alike, with --verify-text
  same_id        documents that have an id which another has
  empty          documents without text, which match nothing
  short          documents too short to be reliable
  replaced       characters that were not in the encoding of their input
  bad            malformed documents skipped
  text_bytes     bytes of all texts
  seconds        time taken

Examples:
  simstore dedup samples/en.jsonl
  simstore dedup samples/zh.jsonl --output unique.jsonl --pairs pairs.csv
  simstore dedup --keep longest --clusters clusters.csv --remove-list remove.txt samples/en.jsonl
  simstore dedup --verify-text 0.8 --cluster-by stars samples/en.jsonl
  simstore dedup --against seen.simstore --add --output new.jsonl samples/en.jsonl";

/// How documents come together in clusters
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// What a chain of near ones connects: each is near another, not necessarily all
    Components,
    /// Each is near the one that stands for the cluster
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

/// Of a run that was finished before.
#[derive(Debug, Serialize)]
struct AlreadyAdded {
    documents: u64,
    added: u64,
    added_before: u64,
}

/// Find the near-duplicates of a corpus, no store needed
///
/// The result depends on the input and the options only, not on the number of threads. Takes 28 bytes of memory for each
/// 64-bit fingerprint, 52 for each of 128 bits, and more for ids that are no positions, for what is near something, and
/// for --pairs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{INPUTS_HELP}\n\n{FORMATS_HELP}\n\n{EXAMPLES}"))]
pub(crate) struct DedupArgs {
    /// Documents or fingerprints; `-` is standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Texts are near that are at least so similar, from 0 to 1: of all runs of three successive words of the two, the share
    /// that both have. A character of a script without spaces counts as a word; markup is left out [default: 0.8]
    #[arg(long, short, value_name = "SIMILARITY", value_parser = parse_share)]
    similar: Option<f64>,
    /// The least probability that two texts of just that similarity are found [default: 0.95]
    #[arg(long, value_name = "R", value_parser = parse_share)]
    recall: Option<f64>,
    /// Instead of texts, compare fingerprints only: near are those that differ in at most this many bits [default for
    /// fingerprints and stores, and with --profile, --bits or --verify-text: 3, or what the store was built for]
    #[arg(long, short, value_name = "K", conflicts_with_all = ["similar", "recall"])]
    distance: Option<u32>,
    /// Width of fingerprints [default: 64, or that of the store]
    #[arg(long, value_enum)]
    bits: Option<Bits>,
    /// How documents come together in clusters [default: stars, or with --distance components]
    #[arg(long, value_enum, value_name = "SHAPE")]
    cluster_by: Option<Shape>,
    /// Which document of a cluster is kept: first, longest, smallest-id, or newest:FIELD, the greatest value of a field: numbers by
    /// value, texts as ISO 8601 dates of one time zone are in order
    #[arg(long, value_name = "RULE", default_value = "first")]
    keep: Keep,
    /// With --distance, documents are alike only if their texts are too: at least so similar, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    verify_text: Option<f64>,
    /// What texts are compared by, for --similar and --verify-text: a name as of --profile [default:
    /// words-3,strip-markup,simplified,weights=none]
    #[arg(long, value_name = "NAME")]
    verify_profile: Option<String>,
    /// Find what is near documents of this store too. What is, is not kept
    #[arg(long, value_name = "STORE")]
    against: Option<PathBuf>,
    /// Add what is kept to the store, all at once in the end; the store is made if there is none. Store and output files
    /// change together: a run that was cut off is run again, and one that was not is not done twice
    #[arg(long, requires = "against")]
    add: bool,
    /// Add even if the same run has added its documents before: compare with the store as it is now
    #[arg(long, requires = "add")]
    again: bool,
    /// Keep the fingerprints of finished files in this folder, and take those that are there: a run that was cut off
    /// carries on
    #[arg(long, value_name = "FOLDER")]
    resume: Option<PathBuf>,
    /// Only make this share of the parts in the folder of --resume: shard I of N. When all shards are made, on any
    /// machine, and their parts are in one folder, a run without it joins them
    #[arg(
        long,
        value_name = "I/N",
        requires = "resume",
        conflicts_with_all = [
            "output", "annotated", "clusters", "pairs", "keep_list", "remove_list", "against", "verify_text", "json",
        ]
    )]
    shard: Option<Shard>,
    /// Stop with a message before fingerprints and ids take more memory than this, like 8G
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    memory: Option<u64>,
    /// Only tell what would be read, and how much memory and disk it would take
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

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

pub(crate) fn run(args: &DedupArgs, progress: &Progress) -> Outcome {
    let inputs = args.documents.inputs(&args.inputs)?;
    // A pattern that matches nothing is no bad usage: files come and go.
    inputs.files_of_fingerprints()?;
    let kind = inputs::kind(&inputs)?;
    let options = args.options()?;
    if args.dry_run {
        if kind == InputKind::Fingerprints {
            let message = "--dry-run is for documents: the inputs hold fingerprints";
            return Err(Failure::Usage(message.to_owned()));
        }
        let estimate = dedup::estimate(&inputs, &options, progress).map_err(Failure::usage)?;
        return estimate::print(&estimate, args.json);
    }
    if let Some(shard) = args.shard {
        return make_shard(&inputs, shard, &options, progress);
    }
    let is_cut_off = Arc::new(AtomicBool::new(false));
    let files = args.files.files(args.json, args.add.then_some(&is_cut_off));
    let (prints, uses_stdout) = (files.is_empty(), files.use_stdout());
    let mut found = match dedup::find(inputs.into(), &options, files, progress).map_err(Failure::usage)? {
        Answer::Found(found) => found,
        Answer::AddedBefore(before) => return say_added_before(&before, args.json, progress),
    };
    warn(&found.counts(), kind, progress);
    let mut totals = found.totals();
    if totals.same_id > 0 {
        complain(&format!(
            "warning: {} have an id that another has: tables and lists tell them apart by FILE:LINE",
            count_of(totals.same_id as u64, "document")
        ));
    }
    found.write(progress).map_err(Failure::usage)?;
    (totals.compared, totals.unlike) = found.compared();
    let question = found.question();
    let summary = Summary::new(totals, progress.seconds());
    // Standard output comes before the store: a run that is cut off may print again what it has printed, never less.
    if prints {
        let output = if args.add { Output::stdout_that_may_close(&is_cut_off) } else { Output::stdout() };
        print_all(&found, output, &summary, args.json)?;
    }
    if is_cut_off.load(Ordering::Relaxed) {
        complain(
            "warning: standard output was closed before all was written to it; all of it is added to the store",
        );
    }
    found.finish(progress).map_err(Failure::usage)?;
    if args.json && !prints && !uses_stdout {
        let mut output = Output::stdout();
        output.json(&summary)?;
        output.finish()?;
    }
    if !args.json || uses_stdout {
        summary.say(question, progress);
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
    // Of what is left to others nothing was read.
    if tally.left == 0 || counts.read + counts.bad > 0 {
        warn(&counts, InputKind::Documents, progress);
    }
    progress.say(&format!(
        "{} were there, {} made, {} left to others; when all are in one folder, run this without --shard",
        count_of(tally.found, "part"),
        tally.made,
        tally.left
    ));
    Ok(())
}

/// Says that the same run was finished before.
fn say_added_before(before: &AddedBefore, json: bool, progress: &Progress) -> Outcome {
    if json {
        let mut output = Output::stdout();
        output.json(&AlreadyAdded { documents: before.counts.read, added: 0, added_before: before.added })?;
        output.finish()?;
    }
    progress.say(&format!(
        "the same run has added {} before: store and outputs stay as they are",
        count_of(before.added, "document")
    ));
    Ok(())
}

impl DedupArgs {
    fn options(&self) -> Outcome<Options> {
        let (profile, resources) = self.documents.profile.choice()?;
        Ok(Options {
            similar: self.similar,
            recall: self.recall,
            distance: self.distance,
            bits: self.bits.map(Bits::count),
            profile,
            resources,
            cluster_by: self.cluster_by.map(ClusterBy::from),
            keep: self.keep.clone(),
            verify_text: self.verify_text,
            verify_profile: self.verify_profile.clone(),
            against: self.against.clone(),
            add: self.add,
            again: self.again,
            resume: self.resume.clone(),
            pairs: false,
            memory: self.memory,
        })
    }
}
