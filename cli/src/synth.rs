//! `simstore synth`: a store of random fingerprints, to measure with.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use simstore::plan::Plan;
use simstore::{BuildOptions, Builder, Codec, PlanChoice};
use simstore_corpus::synth::RandomFingerprints;

use crate::failure::{Failure, Outcome};
use crate::numbers::{bits_each, bytes, grouped, parse_block_size, parse_count, rounded};
use crate::output::Output;
use crate::progress::Progress;
use crate::width::check_distance;

const EXAMPLES: &str = "\
The fingerprints are drawn in order, by their gaps, so that nothing is sorted and the memory does not grow with \
their number, but for the block index: of plan `probe-1`, whose one table is in this order. The tables of other \
plans are sorted as in `build`. The same seed gives the same fingerprints.

With --json, one object is printed at the end:
  store, codec, plan    what was written
  fingerprints, seed    how many, and which
  bytes                 size of all files
  bits_per_fingerprint  the same for each fingerprint
  seconds               time taken

Example:
  simstore synth random.simstore --count 100k --force --queries 1k --queries-file queries.u64";

/// Write a store of random 64-bit fingerprints, to measure with
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SynthArgs {
    /// The store: a folder that does not exist yet
    store: PathBuf,
    /// Number of fingerprints, like 1000000, 100M or 8e9
    #[arg(long, value_name = "N", value_parser = parse_count)]
    count: u64,
    /// Which random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The largest distance that the store can answer: at most 16
    #[arg(long, short, value_name = "K", default_value_t = 3)]
    distance: u32,
    /// How fingerprints are compressed: first-difference, gap or elias-fano
    #[arg(long, default_value_t = Codec::FirstDifference)]
    codec: Codec,
    /// Which tables are kept: auto, or a name as listed by `simstore plan`
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
    let fingerprints = RandomFingerprints::new(args.count, args.seed);
    let store = Builder::<u64>::create(&args.store, options)?
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
            store: &args.store.to_string_lossy(),
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
        args.store.display(),
        grouped(stats.fingerprints),
        bytes(stats.bytes),
        bits_per_fingerprint / 8.0,
        progress.seconds()
    ));
    Ok(())
}
