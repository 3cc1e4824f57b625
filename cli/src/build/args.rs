//! Arguments of `simstore build`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use simstore::any::Width;
use simstore::error::did_you_mean;
use simstore::{Codec, CodecObjective, PlanChoice};

use crate::command_error::{CommandError, CommandResult};
use crate::inputs::{DocumentArgs, INPUTS_HELP};
use crate::numbers::{parse_block_size, parse_bytes};
use crate::width::width_parser;

const EXAMPLES: &str = "\
With --json, one object is printed at the end:
  store, bits, distance, codec   path and settings of the store
  plan, tables          name of the plan, and number of its tables
  documents             documents or fingerprints that were read
  fingerprints, ids     distinct fingerprints, and pairs of fingerprint and id; with --similar,
                        several bands a document
  empty                 documents without text (not stored)
  short                 documents too short for a reliable fingerprint
  bad                   invalid documents skipped
  other_names           skipped further names of the same files
  skipped_files         skipped files, links, pipes and devices
  bytes                 size of all files in bytes
  bits_per_fingerprint  bits of all files for each distinct fingerprint
  seconds               elapsed time

Examples:
  simstore build en.simstore samples/en.jsonl
  simstore build --codec auto --for size small.simstore samples/en.jsonl
  simstore build --distance 6 --codec gap both.simstore samples/en.jsonl samples/zh.jsonl
  simstore build --similar 0.8 --with-texts similar.simstore samples/en.jsonl
  simstore build --force --skip-bad --text-field text en.simstore samples/en.jsonl
  simstore fingerprint samples/zh.jsonl | simstore build zh.simstore -";

/// Build a store from documents or fingerprints
///
/// The id of the first document sets the type of all ids. If it is a number, all ids must be numbers. If it is text, ids are stored as
/// names, and the number of a document is its position, from 0. A failed build leaves no store.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{INPUTS_HELP}\n\n{EXAMPLES}"))]
pub(crate) struct BuildArgs {
    /// Path of the new store, a directory
    pub(super) store: PathBuf,
    /// Documents or fingerprints; `-` is standard input
    #[arg(required_unless_present = "files_from", value_name = "INPUT")]
    pub(super) inputs: Vec<PathBuf>,
    /// Build a store of similar documents: it finds texts with at least this Jaccard similarity, 0.43 to 1
    #[arg(long, value_name = "S", conflicts_with_all = ["distance", "bits", "codec", "plan", "block_size", "span", "no_ids", "force"])]
    pub(super) similar: Option<f64>,
    /// With --similar: also store the texts, compressed, so that similarities are exact
    #[arg(long, requires = "similar")]
    pub(super) with_texts: bool,
    /// With --similar: probability to find a text exactly at the threshold. Without --with-texts, similarities are estimates
    /// [default: 0.95]
    #[arg(long, value_name = "R", requires = "similar")]
    pub(super) recall: Option<f64>,
    /// Largest distance of later queries, in bits: at most 16, or 32 with --bits 128
    #[arg(long, short, value_name = "K", default_value_t = 3)]
    pub(super) distance: u32,
    /// Width of fingerprints, in bits
    #[arg(long, value_parser = width_parser(), default_value = "64")]
    pub(super) bits: Width,
    /// Codec: first-difference, gap (smallest for random fingerprints), prefix-lines (fastest queries within 6 bits), elias-fano (fastest
    /// from 8 bits on, or with many near fingerprints), all-differences (smallest for many near fingerprints), or auto, chosen for --for
    #[arg(long, default_value_t = CodecChoice::Named(Codec::FirstDifference))]
    pub(super) codec: CodecChoice,
    /// With --codec auto: size (the smallest codec) or speed (the smallest of the fast codecs) [default: size]
    #[arg(long = "for", value_name = "PURPOSE")]
    pub(super) codec_objective: Option<CodecObjective>,
    /// Table plan: auto, or a name from `simstore plan`
    #[arg(long, value_name = "NAME", default_value_t = PlanChoice::Auto)]
    pub(super) plan: PlanChoice,
    /// Block size in bytes, a power of two from 256 to 65536 [default: by codec]
    #[arg(long, value_name = "BYTES", value_parser = parse_block_size)]
    pub(super) block_size: Option<u32>,
    /// Fingerprints per restart point of the Huffman codecs, 1 to 256. Fewer: faster queries, larger tables [default: by codec and number
    /// of fingerprints]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) span: Option<u16>,
    /// Memory limit of the build, such as 512M or 2G; at least 16M [default: a quarter of the memory]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(super) memory: Option<u64>,
    /// Replace an existing store, unless the input is empty
    #[arg(long)]
    pub(super) force: bool,
    /// Store no ids
    #[arg(long, conflicts_with = "names")]
    pub(super) no_ids: bool,
    /// Store every id as a name, including numbers
    #[arg(long)]
    pub(super) names: bool,
    /// Print a summary as a JSON object
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) documents: DocumentArgs,
}

/// Value of `--codec`: a codec, or `auto`.
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

/// Returns the codec that `--codec` names, and `None`. For `--codec auto`, returns a preliminary codec, and the objective by
/// which the build later chooses the final codec.
pub(super) fn codec_and_objective(args: &BuildArgs) -> CommandResult<(Codec, Option<CodecObjective>)> {
    match args.codec {
        CodecChoice::Auto => Ok((Codec::default(), args.codec_objective.or(Some(CodecObjective::Size)))),
        CodecChoice::Named(codec) if args.codec_objective.is_none() => Ok((codec, None)),
        CodecChoice::Named(codec) => Err(CommandError::Usage(format!(
            "--for needs --codec auto: --codec {codec} already names a codec"
        ))),
    }
}
