//! `simstore plan`: estimates the cost of each table plan.

use clap::Args;
use serde::Serialize;
use simstore::any::Width;
use simstore::plan::{self, CostEstimate, Medium, Plan, Workload};
use simstore::{Codec, Fingerprint, Result, each_width};

use crate::command_error::CommandResult;
use crate::numbers::{
    format_bytes, format_count_of, format_duration, format_short, parse_block_size, parse_count, rounded,
};
use crate::output::{self, Output};
use crate::width::{check_distance, width_parser};

const EXAMPLES: &str = "\
Columns: number of tables; shortest and longest prefix, in bits; prefix bits flipped, summed over all tables; probes of one query; \
bytes a fingerprint and in total, over all tables; and predictions for one query of uniformly random fingerprints: blocks read, \
candidates compared, time. Real fingerprints are clustered, so queries compare more. `*` marks the choice of `--plan auto`. \
It is fast for small sets. Tables of much more than 16 MiB are doubled only if a query then takes an eighth of the time. `paper` marks \
the plans of Manku, Jain and Das Sarma (2007).

With --json, a line is an object, the smallest plan first:
  plan                  name, for `simstore build --plan`
  tables, flips         numbers
  prefix_bits_min, prefix_bits_max
  probes                of one query
  bytes_per_fingerprint of all tables
  bytes                 of all tables
  reads, candidates, nanoseconds   predicted for one query
  paper, auto           true or false

Examples:
  simstore plan --count 8e9 --distance 3
  simstore plan --count 100M --distance 6 --codec elias-fano --medium ssd --json";

/// Compare table plans for a number of fingerprints and a distance: size, reads and time
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PlanArgs {
    /// Number of distinct fingerprints, such as 8e9, 100M or 1_000_000
    #[arg(long, value_name = "N", value_parser = parse_count)]
    count: u64,
    /// Largest distance of a query, in bits
    #[arg(long, short, value_name = "K", default_value_t = 3)]
    distance: u32,
    /// Width of fingerprints, in bits
    #[arg(long, value_parser = width_parser(), default_value = "64")]
    bits: Width,
    /// Codec: first-difference, gap, elias-fano, all-differences or prefix-lines; see `simstore build`
    #[arg(long, default_value_t = Codec::FirstDifference)]
    codec: Codec,
    /// Block size in bytes, a power of two from 256 to 65536 [default: by codec]
    #[arg(long, value_name = "BYTES", value_parser = parse_block_size)]
    block_size: Option<u32>,
    /// Storage that tables are read from: memory, ssd or disk
    #[arg(long, default_value_t = Medium::Memory)]
    medium: Medium,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct PlanObject<'a> {
    plan: &'a str,
    tables: usize,
    prefix_bits_min: u32,
    prefix_bits_max: u32,
    flips: u32,
    probes: f64,
    bytes_per_fingerprint: f64,
    bytes: u64,
    reads: f64,
    candidates: f64,
    nanoseconds: f64,
    paper: bool,
    auto: bool,
}

pub(crate) fn run(args: &PlanArgs) -> CommandResult {
    each_width!(args.bits, type F => print::<F>(args))
}

fn print<F: Fingerprint>(args: &PlanArgs) -> CommandResult {
    check_distance::<F>(args.distance)?;
    let workload = Workload {
        fingerprints: args.count,
        codec: args.codec,
        block_size: args.block_size,
        span: None,
        medium: args.medium,
    };
    let chosen = plan::choose::<F>(args.distance, &workload)?;
    let plans = plan::estimate_all::<F>(args.distance, &workload)?;
    let mut output = output::stdout();
    if !args.json {
        output.write_line(format_args!(
            "{} of {} bits, distance {}, codec {}, read from {}",
            format_count_of(args.count, "fingerprint"),
            F::BITS,
            args.distance,
            args.codec,
            args.medium
        ))?;
        output.write_line(format_args!(
            "  {:<11} {:>6} {:>7} {:>5} {:>9} {:>11} {:>11} {:>9} {:>11} {:>9}",
            "plan",
            "tables",
            "prefix",
            "flips",
            "probes",
            "bytes each",
            "in all",
            "reads",
            "candidates",
            "time"
        ))?;
    }
    for (plan, estimate) in &plans {
        let object = object(plan, estimate, args.count, plan.name() == chosen.name());
        if args.json { output.write_json(&object)? } else { print_row(&mut output, &object)? }
    }
    Ok(output.finish()?)
}

fn object<'a, F: Fingerprint>(
    plan: &'a Plan<F>,
    estimate: &CostEstimate,
    count: u64,
    auto: bool,
) -> PlanObject<'a> {
    let prefixes = || plan.tables().iter().map(|table| table.prefix_bits);
    PlanObject {
        plan: plan.name(),
        tables: plan.tables().len(),
        prefix_bits_min: prefixes().min().unwrap_or(0),
        prefix_bits_max: prefixes().max().unwrap_or(0),
        flips: plan.tables().iter().map(|table| table.flips).sum(),
        probes: estimate.probes,
        bytes_per_fingerprint: rounded(estimate.bytes_per_fingerprint),
        bytes: (estimate.bytes_per_fingerprint * count as f64) as u64,
        reads: rounded(estimate.reads),
        candidates: rounded(estimate.candidates),
        nanoseconds: estimate.nanoseconds.round(),
        paper: plan.name().starts_with("paper-"),
        auto,
    }
}

fn print_row(output: &mut Output, line: &PlanObject<'_>) -> Result<()> {
    let prefix = if line.prefix_bits_min == line.prefix_bits_max {
        line.prefix_bits_min.to_string()
    } else {
        format!("{}-{}", line.prefix_bits_min, line.prefix_bits_max)
    };
    output.write_line(format_args!(
        "{} {:<11} {:>6} {prefix:>7} {:>5} {:>9} {:>11.1} {:>11} {:>9} {:>11} {:>9}{}",
        if line.auto { '*' } else { ' ' },
        line.plan,
        line.tables,
        line.flips,
        format_short(line.probes),
        line.bytes_per_fingerprint,
        format_bytes(line.bytes),
        format_short(line.reads),
        format_short(line.candidates),
        format_duration(line.nanoseconds),
        if line.paper { "  paper" } else { "" }
    ))
}
