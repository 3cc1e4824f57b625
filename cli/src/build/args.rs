//! The arguments of `simstore build`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use simstore::any::Width;
use simstore::{Codec, PlanChoice, Purpose};
use simstore_text::did_you_mean;

use crate::failure::{Failure, Outcome};
use crate::inputs::{DocumentArgs, INPUTS_HELP};
use crate::numbers::{parse_block_size, parse_bytes};
use crate::width::width;

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
    pub(super) store: PathBuf,
    /// Documents or fingerprints; `-` is standard input
    #[arg(required_unless_present = "files_from", value_name = "INPUT")]
    pub(super) inputs: Vec<PathBuf>,
    /// Build a store of similar documents, which finds texts of at least this similarity, 0 to 1
    #[arg(long, value_name = "S", conflicts_with_all = ["distance", "bits", "codec", "plan", "block_size", "span", "no_ids", "force"])]
    pub(super) similar: Option<f64>,
    /// Keep the texts too, compressed: they decide what is similar
    #[arg(long, requires = "similar")]
    pub(super) with_texts: bool,
    /// Find texts of exactly that similarity with at least this probability; without --with-texts, an estimate then
    /// decides [default: 0.95]
    #[arg(long, value_name = "R", requires = "similar")]
    pub(super) recall: Option<f64>,
    /// The largest distance that the store can answer: at most 16, with 128 bits 32
    #[arg(long, short, value_name = "K", default_value_t = 3)]
    pub(super) distance: u32,
    /// Width of fingerprints
    #[arg(long, value_parser = width(), default_value = "64")]
    pub(super) bits: Width,
    /// How fingerprints are compressed: first-difference, gap (smallest for random ones), elias-fano (fastest to query) or
    /// all-differences (smallest where many are near one another); auto: what serves --for
    #[arg(long, default_value_t = CodecChoice::Named(Codec::FirstDifference))]
    pub(super) codec: CodecChoice,
    /// The aim of `--codec auto`: size takes the smallest codec, speed the smallest one that is about as fast as the fastest
    /// [default: size]
    #[arg(long = "for", value_name = "PURPOSE")]
    pub(super) purpose: Option<Purpose>,
    /// The plan of tables: auto, or a name that `simstore plan` lists
    #[arg(long, value_name = "NAME", default_value_t = PlanChoice::Auto)]
    pub(super) plan: PlanChoice,
    /// Bytes of a block, a power of two from 256 to 65536 [default: by codec]
    #[arg(long, value_name = "BYTES", value_parser = parse_block_size)]
    pub(super) block_size: Option<u32>,
    /// Fingerprints between restart points of the Huffman codecs, 1 to 256: fewer make look-ups
    /// faster and tables larger [default: by codec and number of fingerprints]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) span: Option<u16>,
    /// Memory to build in, like 512M or 2G, from 16M [default: a quarter of the machine's]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(super) memory: Option<u64>,
    /// Replace an existing store, but not by an empty one
    #[arg(long)]
    pub(super) force: bool,
    /// Store no ids
    #[arg(long, conflicts_with = "names")]
    pub(super) no_ids: bool,
    /// Take every id as a name, also numbers
    #[arg(long)]
    pub(super) names: bool,
    /// Print a summary as a JSON object
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) documents: DocumentArgs,
}

/// A codec, or `auto`.
#[derive(Clone, Copy, Debug)]
pub(super) enum CodecChoice {
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

/// The codec, and the purpose of `--codec auto`.
pub(super) fn codec_of(args: &BuildArgs) -> Outcome<(Codec, Option<Purpose>)> {
    match args.codec {
        CodecChoice::Auto => Ok((Codec::default(), args.purpose.or(Some(Purpose::Size)))),
        CodecChoice::Named(codec) if args.purpose.is_none() => Ok((codec, None)),
        CodecChoice::Named(codec) => Err(Failure::Usage(format!(
            "--for chooses a codec, and --codec {codec} names one: give --codec auto"
        ))),
    }
}
