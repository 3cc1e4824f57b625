//! `simstore dedup`: near-duplicate clusters of a corpus.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use simstore::Fingerprint;
use simstore::corpus::InputKind;

use crate::corpus::{Corpus, Names};
use crate::failure::{Failure, Outcome};
use crate::fingerprint::JsonId;
use crate::groups::Groups;
use crate::inputs::{self, Counts, DocumentArgs, INPUTS_HELP, Item, count_of};
use crate::keep;
use crate::numbers::rounded;
use crate::output::{Output, column};
use crate::progress::Progress;
use crate::spool::Spool;
use crate::width::{Bits, by_width, check_distance};

const EXAMPLES: &str = "\
A cluster holds the documents that a chain of near ones connects: each is within the distance of another, not \
necessarily of all. Beside each stands its distance to the first of its cluster.

With --json, a line is an object: one for each cluster, then one summary.
  cluster, size  number of the cluster from 1, and of its documents
  members        its documents in order of input: id, fingerprint, distance (to the first)
and in the summary
  documents      documents or fingerprints read
  fingerprints   distinct fingerprints among them
  clusters       clusters of two documents and more
  duplicates     documents in clusters that are not the first of their cluster
  empty          documents without text, which match nothing
  short          documents too short to be reliable
  bad            malformed lines skipped
  seconds        time taken
With --json, lines of --pairs are objects: a, b (ids), distance.

Examples:
  simstore dedup samples/en.jsonl
  simstore dedup samples/zh.jsonl --keep unique.jsonl --pairs pairs.tsv
  simstore dedup --distance 6 --keep - samples/en.jsonl > unique.jsonl";

/// Find the near-duplicate clusters of a corpus, no store needed
///
/// The result depends on the input and the distance only, not on the number of threads. Takes 28 bytes of memory
/// for each 64-bit fingerprint, 52 for each of 128 bits, and more for ids that are no positions, for what is near
/// something, and for --pairs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{INPUTS_HELP}\n\n{EXAMPLES}"))]
pub(crate) struct DedupArgs {
    /// Documents or fingerprints; `-` is standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Fingerprints that differ in at most this many bits are near
    #[arg(long, short, value_name = "K", default_value_t = 3)]
    distance: u32,
    /// Width of fingerprints
    #[arg(long, value_enum, default_value = "64")]
    bits: Bits,
    /// Write what is left without the duplicates: the first document of each cluster and all in none. Of
    /// JSON lines, the lines as they stand; of text files, their paths; of fingerprints, HEX<TAB>ID.
    /// `-` is standard output, clusters are then not printed
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Write all pairs of documents within the distance: lines ID<TAB>ID<TAB>DISTANCE. `-` is standard
    /// output, clusters are then not printed
    #[arg(long, value_name = "FILE")]
    pairs: Option<PathBuf>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    documents: DocumentArgs,
}

#[derive(Serialize)]
struct Cluster<'a> {
    cluster: usize,
    size: usize,
    members: Vec<Member<'a>>,
}

#[derive(Serialize)]
struct Member<'a> {
    id: JsonId<'a>,
    fingerprint: String,
    distance: u32,
}

#[derive(Serialize)]
struct PairLine<'a> {
    a: JsonId<'a>,
    b: JsonId<'a>,
    distance: u32,
}

#[derive(Serialize)]
struct Summary {
    documents: u64,
    fingerprints: usize,
    clusters: usize,
    duplicates: usize,
    empty: u64,
    short: u64,
    bad: u64,
    seconds: f64,
}

pub(crate) fn run(args: &DedupArgs, progress: &Progress) -> Outcome {
    by_width!(args.bits, dedup(args, progress))
}

fn is_stdio(path: &Option<PathBuf>) -> bool {
    path.as_deref() == Some(Path::new("-"))
}

fn dedup<F: Fingerprint>(args: &DedupArgs, progress: &Progress) -> Outcome {
    check_distance::<F>(args.distance)?;
    if is_stdio(&args.keep) && is_stdio(&args.pairs) {
        return Err(Failure::Usage("only one of --keep and --pairs can be standard output (`-`)".to_owned()));
    }
    if args.keep.is_some() && args.keep == args.pairs {
        return Err(Failure::Usage("--keep and --pairs must be different files".to_owned()));
    }
    let kind = inputs::detect_kind(&args.inputs)?;
    let profile = args.documents.profile.profile(None)?;
    // Opened first, so that a folder that is not there costs no work.
    let keep = args.keep.as_deref().map(Output::create).transpose()?;
    let pairs = args.pairs.as_deref().map(Output::create).transpose()?;

    let mut corpus = Corpus::default();
    // Where an input can be read only once, what may be kept is put aside.
    let once = args.inputs.iter().any(|input| inputs::is_read_once(input));
    let spooled = kind == InputKind::Documents && keep.is_some() && once;
    let mut spool = if spooled { Some(Spool::new()?) } else { None };
    let counts = if kind == InputKind::Fingerprints {
        let Corpus { fingerprints, names, .. } = &mut corpus;
        let skip_bad = args.documents.skip_bad;
        inputs::read_fingerprints(&args.inputs, skip_bad, progress, fingerprints, |at, id| {
            names.push(at, id);
        })?
    } else {
        inputs::visit_documents(
            &args.inputs,
            &args.documents,
            &profile,
            spooled,
            progress,
            |item: Item<F>| {
                if let (Some(spool), Some(record)) = (&mut spool, &item.record) {
                    spool.push(&keep::line(record))?;
                }
                corpus.push(item);
                Ok(())
            },
        )?
    };
    let groups = Groups::new(&corpus, args.distance, pairs.is_some())?;
    let clusters = groups.clusters();
    if let Some(output) = pairs {
        write_pairs(output, &groups, &corpus.names, args.json)?;
    }
    if let Some(output) = keep {
        let kept = keep::Kept::new(corpus.len(), &clusters);
        match (&mut spool, kind) {
            (Some(spool), _) => kept.write_spooled(output, spool)?,
            (None, InputKind::Fingerprints) => kept.write_fingerprints(output, &corpus)?,
            (None, InputKind::Documents) => {
                kept.write_documents(output, &corpus, &args.inputs, &args.documents.options())?;
            }
        }
    }
    counts.warn(kind, progress);
    if !is_stdio(&args.keep) && !is_stdio(&args.pairs) {
        return report(args, &corpus, &groups, &clusters, counts, progress);
    }
    summarise(&summary(&groups, &clusters, counts, progress), progress);
    Ok(())
}

fn summary(groups: &Groups, clusters: &[Vec<usize>], counts: Counts, progress: &Progress) -> Summary {
    Summary {
        documents: counts.read,
        fingerprints: groups.distinct(),
        clusters: clusters.len(),
        duplicates: clusters.iter().map(|cluster| cluster.len() - 1).sum(),
        empty: counts.empty,
        short: counts.short,
        bad: counts.bad,
        seconds: rounded(progress.seconds()),
    }
}

fn summarise(summary: &Summary, progress: &Progress) {
    progress.say(&format!(
        "{}, {}, {}, {}, {:.1} s",
        count_of(summary.documents, "document"),
        count_of(summary.fingerprints as u64, "distinct fingerprint"),
        count_of(summary.clusters as u64, "cluster"),
        count_of(summary.duplicates as u64, "duplicate"),
        summary.seconds
    ));
}

/// Prints the clusters and the summary.
fn report<F: Fingerprint>(
    args: &DedupArgs,
    corpus: &Corpus<F>,
    groups: &Groups,
    clusters: &[Vec<usize>],
    counts: Counts,
    progress: &Progress,
) -> Outcome {
    let mut output = Output::stdout();
    for (cluster, documents) in (1..).zip(clusters) {
        let value = |document: usize| corpus.fingerprints[document];
        let first = value(documents[0]);
        let size = documents.len();
        if args.json {
            let member = |&document: &usize| Member {
                id: corpus.names.id(document),
                fingerprint: value(document).to_hex(),
                distance: value(document).distance(first),
            };
            output.json(&Cluster { cluster, size, members: documents.iter().map(member).collect() })?;
            continue;
        }
        output.line(format_args!("cluster {cluster}: {size} documents"))?;
        for &document in documents {
            let distance = value(document).distance(first);
            output.line(format_args!("  {distance:>2}  {}", column(&corpus.names.text(document))))?;
        }
    }
    let summary = summary(groups, clusters, counts, progress);
    if args.json {
        output.json(&summary)?;
    }
    output.finish()?;
    if !args.json {
        summarise(&summary, progress);
    }
    Ok(())
}

fn write_pairs(mut output: Output, groups: &Groups, names: &Names, json: bool) -> Outcome {
    groups.visit_pairs(|a, b, distance| {
        if json {
            return output.json(&PairLine { a: names.id(a), b: names.id(b), distance });
        }
        output.line(format_args!("{}\t{}\t{distance}", column(&names.text(a)), column(&names.text(b))))
    })?;
    output.finish()
}
