//! `simstore synth`: a store of random fingerprints, or random documents, to measure with.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use simstore::plan::Plan;
use simstore::{BuildOptions, Builder, Codec, PlanChoice};
use simstore_corpus::synth::{RandomDocument, RandomDocuments, RandomFingerprints};

use crate::failure::{Failure, Outcome};
use crate::numbers::{bits_each, bytes, grouped, parse_block_size, parse_count, rounded};
use crate::output::Output;
use crate::progress::Progress;
use crate::width::check_distance;

const EXAMPLES: &str = "\
The fingerprints are drawn in order, by their gaps, so that nothing is sorted and the memory does not grow with \
their number, but for the block index: of plan `probe-1`, whose one table is in this order. The tables of other \
plans are sorted as in `build`. The same seed gives the same fingerprints.

With --documents, lines of JSON are written instead: `id`, a number, and `text`, made-up words as frequent as those of a \
language; of a copy also `of`, the `id` of the earlier document that it is an edited copy of, and `similarity`, the Jaccard \
similarity of the sets of word 3-grams of both, exactly. The memory does not grow with their number either.

With --json, one object is printed at the end; with --documents, `output`, `documents`, `copies`, `seed` and `seconds`:
  store, codec, plan    what was written
  fingerprints, seed    how many, and which
  bytes                 size of all files
  bits_per_fingerprint  the same for each fingerprint
  seconds               time taken

Examples:
  simstore synth random.simstore --count 100k --force --queries 1k --queries-file queries.u64
  simstore synth random.jsonl --documents 10k --copies 0.2 --similarity 0.8..0.9 --seed 7";

/// Write a store of random 64-bit fingerprints, or random documents, to measure with
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SynthArgs {
    /// The store: a folder that does not exist yet; or the file of the documents, compressed as its name says
    #[arg(value_name = "OUTPUT")]
    output: PathBuf,
    /// Number of fingerprints, like 1000000, 100M or 8e9
    #[arg(long, value_name = "N", value_parser = parse_count, required_unless_present = "documents")]
    count: Option<u64>,
    /// The seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The largest distance that the store can answer: at most 16
    #[arg(long, short, value_name = "K", default_value_t = 3)]
    distance: u32,
    /// How fingerprints are compressed: first-difference, gap, elias-fano or all-differences, as of `simstore build`
    #[arg(long, default_value_t = Codec::FirstDifference)]
    codec: Codec,
    /// The plan of tables: auto, or a name that `simstore plan` lists
    #[arg(long, value_name = "NAME", default_value = "probe-1")]
    plan: PlanChoice,
    /// Bytes of a block, a power of two from 256 to 65536 [default: by codec]
    #[arg(long, value_name = "BYTES", value_parser = parse_block_size)]
    block_size: Option<u32>,
    /// Replace the store if there is one
    #[arg(long)]
    force: bool,
    /// Write so many queries too: half are stored fingerprints with up to 3 bits flipped, half are random
    #[arg(long, value_name = "N", value_parser = parse_count, requires = "queries_file")]
    queries: Option<u64>,
    /// The file of the queries: raw, little-endian, so it should end in .u64
    #[arg(long, value_name = "FILE", requires = "queries")]
    queries_file: Option<PathBuf>,
    /// Print a summary as a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    documents: DocumentArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Documents instead of fingerprints")]
struct DocumentArgs {
    /// Number of documents
    #[arg(long, value_name = "N", value_parser = parse_count)]
    #[arg(conflicts_with_all = ["count", "distance", "codec", "plan", "block_size", "force", "queries"])]
    documents: Option<u64>,
    /// Words of a document: from half as many to half as many again
    #[arg(long, value_name = "N", default_value_t = 60, conflicts_with = "count")]
    words: u32,
    /// The share of documents that are edited copies of earlier ones, from 0 to below 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, conflicts_with = "count")]
    copies: f64,
    /// How similar copies are to their originals: a number, or the least and the largest, from 0 to 1
    #[arg(long, value_name = "S..S", default_value = "0.7..1", value_parser = parse_range, conflicts_with = "count")]
    similarity: (f64, f64),
}

/// `0.8`, or `0.7..1`.
fn parse_range(text: &str) -> Result<(f64, f64), String> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    match (least.parse(), most.parse()) {
        (Ok(least), Ok(most)) => Ok((least, most)),
        _ => Err(format!("`{text}` is no range: expected a number from 0 to 1, or two like 0.7..1")),
    }
}

#[derive(Serialize)]
struct DocumentsObject<'a> {
    output: &'a str,
    documents: u64,
    copies: u64,
    seed: u64,
    seconds: f64,
}

#[derive(Serialize)]
struct SynthObject<'a> {
    store: &'a str,
    codec: &'static str,
    plan: &'a str,
    fingerprints: u64,
    seed: u64,
    bytes: u64,
    bits_per_fingerprint: f64,
    seconds: f64,
}

pub(crate) fn run(args: &SynthArgs, progress: &Progress) -> Outcome {
    match (args.count, args.documents.documents) {
        (Some(count), _) => write_store(args, count, progress),
        (None, count) => write_documents(args, count.unwrap_or_default(), progress),
    }
}

fn write_documents(args: &SynthArgs, count: u64, progress: &Progress) -> Outcome {
    let DocumentArgs { words, copies, similarity, .. } = args.documents;
    let documents = RandomDocuments { count, seed: args.seed, words, copies, similarity };
    if args.json && args.output.as_os_str() == "-" {
        return Err(Failure::Usage("--json would be among the documents on standard output".to_owned()));
    }
    let mut output = Output::create(&args.output)?;
    let mut copies = 0;
    let mut write = |document: &RandomDocument| {
        copies += u64::from(document.copy.is_some());
        output.0.json(document)
    };
    documents.visit(&mut write).map_err(Failure::usage)?;
    output.finish()?;
    if args.json {
        let mut summary = Output::stdout();
        summary.json(&DocumentsObject {
            output: &args.output.to_string_lossy(),
            documents: count,
            copies,
            seed: args.seed,
            seconds: rounded(progress.seconds()),
        })?;
        return summary.finish();
    }
    progress.say(&format!(
        "{}: {} random documents, {} of them copies, {:.1} s",
        args.output.display(),
        grouped(count),
        grouped(copies),
        progress.seconds()
    ));
    Ok(())
}

fn write_store(args: &SynthArgs, count: u64, progress: &Progress) -> Outcome {
    check_distance::<u64>(args.distance)?;
    if let PlanChoice::Named(name) = &args.plan {
        Plan::<u64>::named(name, args.distance).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    let options = BuildOptions {
        distance: args.distance,
        codec: args.codec,
        plan: args.plan.clone(),
        block_size: args.block_size,
        ids: false,
        replace: args.force,
        ..BuildOptions::default()
    };
    let fingerprints = RandomFingerprints::new(count, args.seed);
    let store = Builder::<u64>::create(&args.output, options)?
        .finish_sorted(move |write| fingerprints.visit(write))?;
    if let (Some(queries), Some(file)) = (args.queries, &args.queries_file) {
        let mut output = Output::create(file)?;
        for query in fingerprints.queries(queries) {
            output.write(&query.to_le_bytes())?;
        }
        output.finish()?;
    }
    let (stats, plan) = (store.stats(), store.segments()[0].plan().name());
    let bits_per_fingerprint = bits_each(stats.bytes, stats.fingerprints);
    if args.json {
        let mut output = Output::stdout();
        output.json(&SynthObject {
            store: &args.output.to_string_lossy(),
            codec: args.codec.name(),
            plan,
            fingerprints: stats.fingerprints,
            seed: args.seed,
            bytes: stats.bytes,
            bits_per_fingerprint: rounded(bits_per_fingerprint),
            seconds: rounded(progress.seconds()),
        })?;
        return output.finish();
    }
    progress.say(&format!(
        "{}: {} random fingerprints, plan {plan}, {} ({:.3} bytes each), {:.1} s",
        args.output.display(),
        grouped(stats.fingerprints),
        bytes(stats.bytes),
        bits_per_fingerprint / 8.0,
        progress.seconds()
    ));
    Ok(())
}
