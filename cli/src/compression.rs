//! `simstore compression`: bits per fingerprint of each codec and of general compression methods, on the user's input.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use simstore::any::Width;
use simstore::{Fingerprint, Result, each_width};
use simstore_corpus::ratio::{CompressionRatios, MethodSize, RatioOptions, compression_ratios};

use crate::command_error::CommandResult;
use crate::input_warnings::warn_about_fingerprints;
use crate::inputs::{self, DocumentArgs, INPUTS_HELP};
use crate::numbers::{format_count, format_count_of, parse_block_size, rounded};
use crate::output;
use crate::progress::ProgressDisplay;
use crate::width::width_parser;

const EXAMPLES: &str = "\
Sizes of codecs are whole table files, with headers, checksums and the block index. Sizes of other methods are for the sorted \
sequence alone, without random access. The lower bound is the information-theoretic minimum for n random fingerprints: log2 \
C(2^bits, n) / n. Real fingerprints are clustered, so a codec can be smaller.

With --json, a line is an object, the smallest first:
  method                  codec or method
  bytes                   size in bytes; null for the lower bound
  bits_per_fingerprint    bits for each distinct fingerprint
  ratio_to_floor          bits_per_fingerprint divided by the lower bound
  fingerprints, distinct  number of fingerprints read, number of distinct fingerprints

Examples:
  simstore compression samples/en.jsonl
  simstore compression --bits 128 --json samples/zh.jsonl";

/// Compare the compressed size of fingerprints by codec and by other methods
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{INPUTS_HELP}\n\n{EXAMPLES}"))]
pub(crate) struct CompressionArgs {
    /// Documents or fingerprints; `-` is standard input
    #[arg(required_unless_present = "files_from", value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Width of fingerprints, in bits
    #[arg(long, value_parser = width_parser(), default_value = "64")]
    bits: Width,
    /// Compression level of zstd, 1 to 22
    #[arg(long, value_name = "N", default_value_t = 19, value_parser = clap::value_parser!(i32).range(1..=22))]
    level: i32,
    /// Block size of the codecs in bytes, a power of two from 256 to 65536 [default: by codec]
    #[arg(long, value_name = "BYTES", value_parser = parse_block_size)]
    block_size: Option<u32>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    documents: DocumentArgs,
}

#[derive(Serialize)]
struct MethodObject {
    method: String,
    bytes: Option<u64>,
    bits_per_fingerprint: f64,
    ratio_to_floor: f64,
    fingerprints: u64,
    distinct: u64,
}

pub(crate) fn run(args: &CompressionArgs, progress: &ProgressDisplay) -> CommandResult {
    each_width!(args.bits, type F => compare::<F>(args, progress))
}

fn compare<F: Fingerprint>(args: &CompressionArgs, progress: &ProgressDisplay) -> CommandResult {
    let inputs = args.documents.open_inputs(&args.inputs, progress)?;
    let kind = inputs::kind(&inputs)?;
    let mut fingerprints: Vec<F> = Vec::new();
    let profile = args.documents.profile.profile(None)?;
    let counts = inputs::visit::<F>(&inputs, &profile, progress, |item| {
        fingerprints.extend(item.fingerprint);
        Ok(())
    })?;
    warn_about_fingerprints(&counts, kind, progress);
    let options = RatioOptions { zstd_level: args.level, block_size: args.block_size };
    let ratios = compression_ratios(fingerprints, &options, progress)?;
    let CompressionRatios { fingerprints, distinct, floor, .. } = ratios;
    let row = |method: String, bytes: Option<u64>, bits: f64, ratio: f64| MethodObject {
        method,
        bytes,
        bits_per_fingerprint: rounded(bits),
        ratio_to_floor: rounded(ratio),
        fingerprints,
        distinct,
    };
    let size_row = |size: &MethodSize| {
        row(size.method.to_string(), Some(size.bytes), size.bits_per_fingerprint, size.ratio_to_floor)
    };
    let mut rows: Vec<MethodObject> = ratios.sizes.iter().map(size_row).collect();
    rows.push(row("lower bound (random)".to_owned(), None, floor, 1.0));
    rows.sort_by(|a, b| a.bits_per_fingerprint.total_cmp(&b.bits_per_fingerprint));
    Ok(print(args, &rows, fingerprints, distinct)?)
}

fn print(args: &CompressionArgs, rows: &[MethodObject], fingerprints: u64, distinct: u64) -> Result<()> {
    let mut output = output::stdout();
    if args.json {
        rows.iter().try_for_each(|row| output.write_json(row))?;
        return output.finish();
    }
    output.write_line(format_args!(
        "{}, {} distinct",
        format_count_of(fingerprints, "fingerprint"),
        format_count(distinct)
    ))?;
    output
        .write_line(format_args!("{:<28} {:>15} {:>9} {:>9}", "method", "bytes", "bits each", "/ bound"))?;
    for row in rows {
        let bytes = row.bytes.map(format_count).unwrap_or_default();
        let MethodObject { method, bits_per_fingerprint, ratio_to_floor, .. } = row;
        output.write_line(format_args!(
            "{method:<28} {bytes:>15} {bits_per_fingerprint:>9.2} {ratio_to_floor:>9.3}"
        ))?;
    }
    output.finish()
}
