//! `simstore compression`: bits per fingerprint of each codec and of its rivals, on real input.

use std::path::PathBuf;

use clap::Args;
use rayon::prelude::*;
use serde::Serialize;
use simstore::plan::TablePlan;
use simstore::plan::floor_bits_per_fingerprint;
use simstore::raw::{Permutation, Table};
use simstore::{Codec, Fingerprint};

use crate::failure::{Failure, Outcome};
use crate::inputs::{self, DocumentArgs, INPUTS_HELP, count_of};
use crate::numbers::{bits_each, grouped, parse_block_size, rounded};
use crate::output::Output;
use crate::progress::Progress;
use crate::rivals;
use crate::width::{Bits, by_width};

const EXAMPLES: &str = "\
The codecs' figures are those of whole table files: headers, checksums and the block index included. The others \
are computed for the bare sorted sequence, which gives no random access. The floor is that of any set of as many \
random fingerprints, log2 C(2^bits, n) / n; real fingerprints are clustered, and a codec that adapts can go below.

With --json, a line is an object, the smallest first:
  method                  what was measured
  bytes                   the size; null for the floor
  bits_per_fingerprint    for each distinct fingerprint
  ratio_to_floor          that, over the floor's
  fingerprints, distinct  number of fingerprints read, and of distinct ones

Examples:
  simstore compression samples/en.jsonl
  simstore compression --bits 128 --json samples/zh.jsonl";

/// Compare what each codec and other methods make of the fingerprints of an input
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{INPUTS_HELP}\n\n{EXAMPLES}"))]
pub(crate) struct CompressionArgs {
    /// Documents or fingerprints; `-` is standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Width of fingerprints
    #[arg(long, value_enum, default_value = "64")]
    bits: Bits,
    /// Level of zstd
    #[arg(long, value_name = "N", default_value_t = 19, value_parser = clap::value_parser!(i32).range(1..=22))]
    level: i32,
    /// Bytes of a block of the codecs, a power of two from 256 to 65536 [default: by codec]
    #[arg(long, value_name = "BYTES", value_parser = parse_block_size)]
    block_size: Option<u32>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    documents: DocumentArgs,
}

#[derive(Serialize)]
struct Row {
    method: String,
    bytes: Option<u64>,
    bits_per_fingerprint: f64,
    ratio_to_floor: f64,
    fingerprints: u64,
    distinct: u64,
}

/// One way to store a sorted set of distinct fingerprints.
enum Method {
    Table(Codec),
    EliasFano,
    Rice,
    Zstd,
    ZstdGaps,
    ZstdVarints,
    Raw,
}

impl Method {
    const ALL: [Method; 9] = [
        Method::Table(Codec::FirstDifference),
        Method::Table(Codec::Gap),
        Method::Table(Codec::EliasFano),
        Method::EliasFano,
        Method::Rice,
        Method::Zstd,
        Method::ZstdGaps,
        Method::ZstdVarints,
        Method::Raw,
    ];

    fn name(&self, level: i32) -> String {
        match self {
            Method::Table(codec) => format!("simstore {codec}"),
            Method::EliasFano => "Elias-Fano".to_owned(),
            Method::Rice => "Rice-coded gaps".to_owned(),
            Method::Zstd => format!("zstd -{level}"),
            Method::ZstdGaps => format!("gaps + zstd -{level}"),
            Method::ZstdVarints => format!("varint gaps + zstd -{level}"),
            Method::Raw => "raw".to_owned(),
        }
    }

    fn bytes<F: Fingerprint>(&self, sorted: &[F], args: &CompressionArgs) -> Outcome<u64> {
        let failed = |error| Failure::Failed(format!("zstd: {error}"));
        match self {
            Method::Table(codec) => {
                let plan = TablePlan { permutation: Permutation::identity(), prefix_bits: 0, flips: 0 };
                Ok(Table::encode(sorted, &plan, *codec, args.block_size)?.len() as u64)
            }
            Method::EliasFano => Ok(rivals::elias_fano(sorted)),
            Method::Rice => Ok(rivals::rice(sorted)),
            Method::Zstd => rivals::zstd_raw(sorted, args.level).map_err(failed),
            Method::ZstdGaps => rivals::zstd_gaps(sorted, args.level).map_err(failed),
            Method::ZstdVarints => rivals::zstd_varints(sorted, args.level).map_err(failed),
            Method::Raw => Ok(size_of_val(sorted) as u64),
        }
    }
}

pub(crate) fn run(args: &CompressionArgs, progress: &Progress) -> Outcome {
    by_width!(args.bits, compare(args, progress))
}

fn compare<F: Fingerprint>(args: &CompressionArgs, progress: &Progress) -> Outcome {
    let kind = args.documents.kind(&args.inputs)?;
    let mut sorted: Vec<F> = Vec::new();
    let profile = args.documents.profile.profile(None)?;
    let counts = inputs::visit::<F>(&args.inputs, kind, &args.documents, &profile, progress, |item| {
        sorted.extend(item.fingerprint);
        Ok(())
    })?;
    counts.warn(kind, progress);
    let fingerprints = sorted.len() as u64;
    sorted.par_sort_unstable();
    sorted.dedup();
    let distinct = sorted.len() as u64;
    if distinct == 0 {
        return Err(Failure::Failed(
            "the inputs hold no fingerprint: there is nothing to compare".to_owned(),
        ));
    }

    let floor = floor_bits_per_fingerprint(F::BITS, distinct);
    let row = |method: String, bytes: Option<u64>, bits: f64| Row {
        method,
        bytes,
        bits_per_fingerprint: rounded(bits),
        ratio_to_floor: rounded(bits / floor),
        fingerprints,
        distinct,
    };
    let measured = Method::ALL.par_iter().map(|method| {
        let bytes = method.bytes(&sorted, args)?;
        Ok(row(method.name(args.level), Some(bytes), bits_each(bytes, distinct)))
    });
    let mut rows = measured.collect::<Outcome<Vec<Row>>>()?;
    rows.push(row("floor (random)".to_owned(), None, floor));
    rows.sort_by(|a, b| a.bits_per_fingerprint.total_cmp(&b.bits_per_fingerprint));
    print(args, &rows, fingerprints, distinct)
}

fn print(args: &CompressionArgs, rows: &[Row], fingerprints: u64, distinct: u64) -> Outcome {
    let mut output = Output::stdout();
    if args.json {
        rows.iter().try_for_each(|row| output.json(row))?;
        return output.finish();
    }
    output.line(format_args!("{}, {} distinct", count_of(fingerprints, "fingerprint"), grouped(distinct)))?;
    output.line(format_args!("{:<28} {:>15} {:>9} {:>9}", "method", "bytes", "bits each", "to floor"))?;
    for row in rows {
        let bytes = row.bytes.map(grouped).unwrap_or_default();
        let Row { method, bits_per_fingerprint, ratio_to_floor, .. } = row;
        output.line(format_args!(
            "{method:<28} {bytes:>15} {bits_per_fingerprint:>9.2} {ratio_to_floor:>9.3}"
        ))?;
    }
    output.finish()
}
