//! `simstore build`: documents or fingerprints to a store.

use simstore::any::Width;
use simstore_text::did_you_mean;
use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use serde::Serialize;
use simstore::plan::Plan;
use simstore::progress::ProgressCallback;
use simstore::{BuildOptions, Codec, Fingerprint, PlanChoice, Purpose, Snapshot, each_width};
use simstore_corpus::{Counts, InputKind};

use crate::counts::warn;
use crate::failure::{Failure, Outcome, complain};
use crate::inputs::{self, DocumentArgs, INPUTS_HELP, count_of};
use crate::numbers::{bits_each, bytes, parse_block_size, parse_bytes, rounded};
use crate::output::Output;
use crate::profile::check_bits;
use crate::progress::Progress;
use crate::width::{check_distance, width};

mod similar;

const EXAMPLES: &str = "\
With --json, one object is printed at the end:
  store, bits, distance, codec   what was built
  plan, tables          name of the plan, and number of its tables
  documents             documents or fingerprints read
  fingerprints, ids     distinct fingerprints, and pairs of one with an id, stored; of similar documents, of some
                        sketches each
  empty                 documents without text, which are not stored
  short                 documents too short to be reliable
  bad                   malformed lines skipped
  bytes                 size of all files
  bits_per_fingerprint  the same for each distinct fingerprint
  seconds               time taken

Examples:
  simstore build en.simstore samples/en.jsonl
  simstore build --codec auto --for size small.simstore samples/en.jsonl
  simstore build --distance 6 --codec gap both.simstore samples/en.jsonl samples/zh.jsonl
  simstore build --similar 0.8 --with-texts similar.simstore samples/en.jsonl
  simstore build --force --skip-bad --text-field text en.simstore samples/en.jsonl
  simstore fingerprint samples/zh.jsonl | simstore build zh.simstore -";

/// Build a store from documents or fingerprints
///
/// The first document decides what its id is: if it is a number, all ids must be numbers; if it is text, all
/// ids are kept as names, and each document's position, from 0, is its id. If anything fails, no half-made
/// store is left.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{INPUTS_HELP}\n\n{EXAMPLES}"))]
pub(crate) struct BuildArgs {
    /// The store: a folder that does not exist yet
    store: PathBuf,
    /// Documents or fingerprints; `-` is standard input
    #[arg(required_unless_present = "files_from", value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Build a store of similar documents, which finds texts of at least this similarity, 0.43 to 1
    #[arg(long, value_name = "S", conflicts_with_all = ["distance", "bits", "codec", "plan", "block_size", "span", "no_ids", "force"])]
    similar: Option<f64>,
    /// Keep the texts too, compressed: they decide what is similar
    #[arg(long, requires = "similar")]
    with_texts: bool,
    /// Find texts of exactly that similarity with at least this probability; without --with-texts, an estimate then
    /// decides [default: 0.95]
    #[arg(long, value_name = "R", requires = "similar")]
    recall: Option<f64>,
    /// The largest distance that the store can answer: at most 16, with 128 bits 32
    #[arg(long, short, value_name = "K", default_value_t = 3)]
    distance: u32,
    /// Width of fingerprints
    #[arg(long, value_parser = width(), default_value = "64")]
    bits: Width,
    /// How fingerprints are compressed: first-difference, gap (smallest for random ones), elias-fano (fastest to query) or
    /// all-differences (smallest where many are near one another); auto: what serves --for
    #[arg(long, default_value_t = CodecChoice::Named(Codec::FirstDifference))]
    codec: CodecChoice,
    /// The aim of `--codec auto`: size takes the smallest codec, speed the smallest one that is about as fast as the fastest
    /// [default: size]
    #[arg(long = "for", value_name = "PURPOSE")]
    purpose: Option<Purpose>,
    /// The plan of tables: auto, or a name that `simstore plan` lists
    #[arg(long, value_name = "NAME", default_value_t = PlanChoice::Auto)]
    plan: PlanChoice,
    /// Bytes of a block, a power of two from 256 to 65536 [default: by codec]
    #[arg(long, value_name = "BYTES", value_parser = parse_block_size)]
    block_size: Option<u32>,
    /// Fingerprints between restart points of the Huffman codecs, 1 to 256: fewer make look-ups
    /// faster and tables larger [default: by codec and number of fingerprints]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=256))]
    span: Option<u16>,
    /// Memory to build in, like 512M or 2G, from 16M [default: a quarter of the machine's]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    memory: Option<u64>,
    /// Replace an existing store, but not by an empty one
    #[arg(long)]
    force: bool,
    /// Store no ids
    #[arg(long, conflicts_with = "names")]
    no_ids: bool,
    /// Take every id as a name, also numbers
    #[arg(long)]
    names: bool,
    /// Print a summary as a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    documents: DocumentArgs,
}

/// A codec, or that it is to be chosen.
#[derive(Clone, Copy, Debug)]
enum CodecChoice {
    Auto,
    Named(Codec),
}

const AUTO: &str = "auto";

impl FromStr for CodecChoice {
    type Err = String;

    fn from_str(name: &str) -> Result<CodecChoice, String> {
        if name == AUTO {
            return Ok(CodecChoice::Auto);
        }
        name.parse().map(CodecChoice::Named).map_err(|error: simstore::Error| {
            format!("{error}, or {AUTO}{}", did_you_mean(name, Codec::ALL.map(Codec::name)))
        })
    }
}

impl fmt::Display for CodecChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodecChoice::Auto => f.write_str(AUTO),
            CodecChoice::Named(codec) => codec.fmt(f),
        }
    }
}

/// The codec, and what one is chosen for.
fn codec_of(args: &BuildArgs) -> Outcome<(Codec, Option<Purpose>)> {
    match args.codec {
        CodecChoice::Auto => Ok((Codec::default(), args.purpose.or(Some(Purpose::Size)))),
        CodecChoice::Named(codec) if args.purpose.is_none() => Ok((codec, None)),
        CodecChoice::Named(codec) => Err(Failure::Usage(format!(
            "--for chooses a codec, and --codec {codec} names one: give --codec auto"
        ))),
    }
}

#[derive(Serialize)]
struct BuildObject<'a> {
    store: &'a str,
    bits: u32,
    distance: u32,
    codec: &'static str,
    plan: Option<&'a str>,
    tables: usize,
    documents: u64,
    fingerprints: u64,
    ids: u64,
    empty: u64,
    short: u64,
    bad: u64,
    other_names: u64,
    passed_over: u64,
    bytes: u64,
    bits_per_fingerprint: f64,
    seconds: f64,
}

pub(crate) fn run(args: &BuildArgs, progress: &Progress) -> Outcome {
    if let Some(similar) = args.similar {
        return similar::build(args, similar, progress);
    }
    each_width!(args.bits, type F => build::<F>(args, progress))
}

fn build<F: Fingerprint>(args: &BuildArgs, progress: &Progress) -> Outcome {
    check_distance::<F>(args.distance)?;
    let inputs = args.documents.inputs(&args.inputs, progress)?;
    let kind = inputs::kind(&inputs)?;
    // Of fingerprints only the user can know how they were made.
    let given = args.documents.profile.given()?;
    let told = kind == InputKind::Documents || given.is_some();
    let profile = given.unwrap_or_default();
    check_bits::<F>(&profile)?;
    let bar = progress.bar("writing tables");
    let shown = bar.clone();
    let (codec, codec_for) = codec_of(args)?;
    let options = BuildOptions {
        distance: args.distance,
        codec,
        codec_for,
        plan: args.plan.clone(),
        block_size: args.block_size,
        span: args.span,
        memory: args.memory,
        ids: !args.no_ids,
        replace: args.force,
        profile: if told { profile.to_string() } else { String::new() },
        progress: Some(ProgressCallback::new(move |progress| {
            shown.set_length(progress.total);
            shown.set_position(progress.done);
            ControlFlow::Continue(())
        })),
        ..BuildOptions::default()
    };
    if let PlanChoice::Named(name) = &args.plan {
        Plan::<F>::named(name, args.distance).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    let (store, counts) =
        simstore_corpus::build::build::<F>(&args.store, options, &inputs, &profile, args.names, progress)?;
    bar.finish_and_clear();
    warn(&counts, kind, progress);
    if counts.read == counts.empty {
        complain("warning: no fingerprints in the input; the store is empty");
    }
    report(args, &store, counts, progress)
}

fn report<F: Fingerprint>(
    args: &BuildArgs,
    store: &Snapshot<F>,
    counts: Counts,
    progress: &Progress,
) -> Outcome {
    let stats = store.stats();
    let plan = store.segments().first().map(|segment| segment.plan().name());
    let bits_per_fingerprint = rounded(bits_each(stats.bytes, stats.fingerprints));
    if args.json {
        let mut output = Output::stdout();
        output.json(&BuildObject {
            store: &args.store.to_string_lossy(),
            bits: F::BITS,
            distance: store.distance(),
            codec: store.codec().name(),
            plan,
            tables: stats.tables,
            documents: counts.read,
            fingerprints: stats.fingerprints,
            ids: stats.ids,
            empty: counts.empty,
            short: counts.short,
            bad: counts.bad,
            other_names: counts.other_names,
            passed_over: counts.passed_over,
            bytes: stats.bytes,
            bits_per_fingerprint,
            seconds: rounded(progress.seconds()),
        })?;
        return output.finish();
    }
    progress.say(&format!(
        "{}: {}, plan {} ({}), {} ({bits_per_fingerprint:.1} bits each, ids and names included), {:.1} s",
        args.store.display(),
        count_of(stats.fingerprints, "distinct fingerprint"),
        plan.unwrap_or("none"),
        count_of(stats.tables as u64, "table"),
        bytes(stats.bytes),
        progress.seconds()
    ));
    Ok(())
}
