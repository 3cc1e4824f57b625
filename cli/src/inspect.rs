//! `simstore inspect`: what is in a store, and how well it is compressed.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use simstore::plan::floor_bits_per_fingerprint;
use simstore::raw::{Segment, Table};
use simstore::{Fingerprint, Snapshot};

use crate::contents;
use crate::failure::Outcome;
use crate::inputs::count_of;
use crate::live::{self, LogObject, SegmentObject};
use crate::numbers::{bits_each, bytes, grouped, rounded};
use crate::output::Output;
use crate::width::{Bits, by_width};

const EXAMPLES: &str = "\
With --json, a line is an object: the store, then one for each table. Of the store:
  fingerprints, ids, names    what is stored, in segments and logs; an upper bound while some are in several
  bytes                       size of all files of segments, and of the manifest
  bits_per_fingerprint        the same for each fingerprint: all tables, ids and names
  floor_bits_per_fingerprint  of one copy of as many random fingerprints: log2 C(2^bits, n) / n
  table_bytes, id_bytes, name_bytes, tombstone_bytes, mark_bytes  parts of bytes; logs are not
  memory                      bytes that an open store takes beside its files
  distance, bits, codec, profile, keeps_ids  as it was made
  plan, block_size, span      of segments that are written; null: the codec's default
  segments, tables            their numbers
  tombstones                  pairs that were deleted from older segments
  marks                       what writers keep in segments, such as how much of an input has been read
  memtable_entries            pairs that are in the logs, not in segments yet
  by_age                      an object for each segment, the oldest first: segment (from 0), number (in the
                              names of its files), plan, fingerprints, pairs, tombstones, tables, bytes
  logs                        an object for each log, the oldest first: number, bytes, torn_bytes (cut off by a
                              crash, or being written), ended (false: or damaged, that cannot be told), records,
                              operations (what is not in segments yet)
Of a table:
  segment, table              which one, from 0
  plan                        name of the segment's plan
  prefix_bits, flips          how it is probed
  codec, fingerprints, block_size, span, blocks  how it is coded
  bytes, bits_per_fingerprint, floor_bits_per_fingerprint, memory  as above, of this table
  permutation                 bits of the original fingerprint, in the table's order
  histogram                   only with --table: fingerprints with each symbol, from 0
Of a block, with --block:
  segment, table, block       which one, from 0
  offset, bytes               where it stands in its file, and its size
  fingerprints                their number
  width                       bits of a restart point; elias-fano: lower bits of each
  first, last                 fingerprints, permuted
  values                      an object for each fingerprint: permuted, original

A symbol is the position of the first bit in which a fingerprint differs from the one before; for the codec gap \
the position of the top bit of the difference.

Examples:
  simstore inspect en.simstore
  simstore inspect en.simstore --table 0
  simstore inspect en.simstore --table 0 --block 0";

/// Show what is in a store, down to one block
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InspectArgs {
    /// The store
    store: PathBuf,
    /// One table, with the histogram of its symbols; numbered from 0
    #[arg(long, value_name = "I")]
    table: Option<usize>,
    /// One block of that table: its header and its fingerprints; numbered from 0
    #[arg(long, value_name = "J", requires = "table")]
    block: Option<usize>,
    /// The segment of that table, numbered from 0
    #[arg(long, value_name = "S", requires = "table", default_value_t = 0)]
    segment: usize,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct StoreLine<'a> {
    fingerprints: u64,
    ids: u64,
    names: u64,
    bytes: u64,
    bits_per_fingerprint: f64,
    floor_bits_per_fingerprint: f64,
    table_bytes: u64,
    id_bytes: u64,
    name_bytes: u64,
    memory: u64,
    distance: u32,
    bits: u32,
    codec: &'static str,
    profile: &'a str,
    segments: usize,
    tables: usize,
    tombstones: u64,
    tombstone_bytes: u64,
    marks: u64,
    mark_bytes: u64,
    memtable_entries: u64,
    keeps_ids: bool,
    plan: &'a str,
    block_size: Option<u32>,
    span: Option<u16>,
    by_age: Vec<SegmentObject<'a>>,
    logs: Vec<LogObject>,
}

#[derive(Serialize)]
struct TableLine<'a> {
    segment: usize,
    table: usize,
    plan: &'a str,
    prefix_bits: u32,
    flips: u32,
    codec: &'static str,
    fingerprints: u64,
    block_size: u32,
    span: u16,
    blocks: usize,
    bytes: u64,
    bits_per_fingerprint: f64,
    floor_bits_per_fingerprint: f64,
    memory: usize,
    permutation: &'a [u8],
    #[serde(skip_serializing_if = "Option::is_none")]
    histogram: Option<Vec<u64>>,
}

pub(crate) fn run(args: &InspectArgs) -> Outcome {
    by_width!(Bits::of_store(&args.store)?, inspect(args))
}

fn inspect<F: Fingerprint>(args: &InspectArgs) -> Outcome {
    let store = Snapshot::<F>::open(&args.store)?;
    let mut output = Output::stdout();
    if let Some(number) = args.table {
        let segment = contents::segment_of(&store, args.segment)?;
        let table = contents::table_of(segment, number)?;
        match args.block {
            Some(block) => {
                contents::print_block(&mut output, table, [args.segment, number, block], args.json)?;
            }
            None if args.json => {
                let histogram = Some(contents::histogram(table)?);
                output.json(&table_line(segment, table, [args.segment, number], histogram))?;
            }
            None => contents::print_table(&mut output, segment, table, number)?,
        }
        return output.finish();
    }
    if args.json {
        print_json(&mut output, &store)?;
    } else {
        print_store(&mut output, &store)?;
    }
    output.finish()
}

fn print_json<F: Fingerprint>(output: &mut Output, store: &Snapshot<F>) -> Outcome {
    let stats = store.stats();
    output.json(&StoreLine {
        fingerprints: store.len(),
        ids: ids_of(store),
        names: stats.names,
        bytes: stats.bytes,
        bits_per_fingerprint: rounded(bits_each(stats.bytes, stats.fingerprints)),
        floor_bits_per_fingerprint: rounded(floor_bits_per_fingerprint(F::BITS, stats.fingerprints)),
        table_bytes: stats.table_bytes,
        id_bytes: stats.id_bytes,
        name_bytes: stats.name_bytes,
        memory: stats.memory,
        distance: store.distance(),
        bits: F::BITS,
        codec: store.codec().name(),
        profile: store.profile(),
        segments: stats.segments,
        tables: stats.tables,
        tombstones: stats.tombstones,
        tombstone_bytes: stats.tombstone_bytes,
        marks: stats.marks,
        mark_bytes: stats.mark_bytes,
        memtable_entries: stats.memtable_entries,
        keeps_ids: store.keeps_ids(),
        plan: store.plan_policy(),
        block_size: store.block_size(),
        span: store.span(),
        by_age: live::segments(store),
        logs: live::logs(store),
    })?;
    for (number, segment) in store.segments().iter().enumerate() {
        for (i, table) in segment.tables().iter().enumerate() {
            output.json(&table_line(segment, table, [number, i], None))?;
        }
    }
    Ok(())
}

/// Pairs in segments and logs; none where ids are not kept.
pub(crate) fn ids_of<F: Fingerprint>(store: &Snapshot<F>) -> u64 {
    let stats = store.stats();
    if store.keeps_ids() { stats.ids.saturating_add(stats.memtable_entries) } else { 0 }
}

fn table_line<'a, F: Fingerprint>(
    segment: &'a Segment<F>,
    table: &'a Table<F>,
    [segment_number, table_number]: [usize; 2],
    histogram: Option<Vec<u64>>,
) -> TableLine<'a> {
    let header = table.header();
    TableLine {
        segment: segment_number,
        table: table_number,
        plan: segment.plan().name(),
        prefix_bits: header.plan.prefix_bits,
        flips: header.plan.flips,
        codec: header.codec.name(),
        fingerprints: header.fingerprints,
        block_size: header.block_size,
        span: header.span,
        blocks: table.blocks(),
        bytes: table.file_len(),
        bits_per_fingerprint: rounded(bits_each(table.file_len(), header.fingerprints)),
        floor_bits_per_fingerprint: rounded(floor_bits_per_fingerprint(F::BITS, header.fingerprints)),
        memory: table.memory(),
        permutation: header.plan.permutation.sources(),
        histogram,
    }
}

fn print_store<F: Fingerprint>(output: &mut Output, store: &Snapshot<F>) -> Outcome {
    let stats = store.stats();
    let floor = floor_bits_per_fingerprint(F::BITS, stats.fingerprints);
    let part = |name: &str, size: u64| {
        format!(
            "  {name:<8} {:>12}  {:>6.2} bits a fingerprint",
            bytes(size),
            bits_each(size, stats.fingerprints)
        )
    };
    let profile = if store.profile().is_empty() { "not told" } else { store.profile() };
    output.line(format_args!(
        "{}: {} of {} bits, {}, {}",
        store.path().display(),
        count_of(store.len(), "fingerprint"),
        F::BITS,
        count_of(ids_of(store), "id"),
        count_of(stats.names, "name")
    ))?;
    output.line(format_args!(
        "  distance {}, codec {}, plan {}, block size {}, span {}, {}, text profile {profile}",
        store.distance(),
        store.codec(),
        store.plan_policy(),
        store.block_size().map_or("default".into(), |size| size.to_string()),
        store.span().map_or("default".into(), |span| span.to_string()),
        if store.keeps_ids() { "ids" } else { "no ids" }
    ))?;
    output.line(part("tables", stats.table_bytes))?;
    output.line(part("ids", stats.id_bytes))?;
    output.line(part("names", stats.name_bytes))?;
    if stats.tombstones > 0 {
        output.line(format_args!(
            "  {:<8} {:>12}  {} of older segments",
            "deleted",
            bytes(stats.tombstone_bytes),
            count_of(stats.tombstones, "pair")
        ))?;
    }
    if stats.marks > 0 {
        output.line(format_args!(
            "  {:<8} {:>12}  {}",
            "marks",
            bytes(stats.mark_bytes),
            count_of(stats.marks, "mark")
        ))?;
    }
    output.line(part("in all", stats.bytes))?;
    output.line(format_args!(
        "  memory   {:>12}  beside the files; one copy of as many random fingerprints: at least {floor:.2} bits each",
        bytes(stats.memory)
    ))?;
    live::print(output, store)?;
    for (number, segment) in store.segments().iter().enumerate() {
        output.line(format_args!(
            "segment {number}: {}, plan {}",
            count_of(segment.stats().fingerprints, "fingerprint"),
            segment.plan().name()
        ))?;
        output.line(format_args!(
            "  {:>5} {:>6} {:>5} {:>10} {:>6} {:>12} {:>9} {:>9} {:>11}  {}",
            "table", "prefix", "flips", "blocks", "size", "bytes", "bits each", "to floor", "memory", "bits"
        ))?;
        for (i, table) in segment.tables().iter().enumerate() {
            print_row(output, table, i)?;
        }
    }
    match store.segments().first().and_then(|segment| segment.tables().first()) {
        Some(table) => contents::print_histogram(output, table, 0),
        None => Ok(()),
    }
}

fn print_row<F: Fingerprint>(output: &mut Output, table: &Table<F>, number: usize) -> Outcome {
    let header = table.header();
    let each = bits_each(table.file_len(), header.fingerprints);
    let floor = floor_bits_per_fingerprint(F::BITS, header.fingerprints);
    output.line(format_args!(
        "  {number:>5} {:>6} {:>5} {:>10} {:>6} {:>12} {each:>9.2} {:>9.3} {:>11}  {}",
        header.plan.prefix_bits,
        header.plan.flips,
        grouped(table.blocks() as u64),
        header.block_size,
        grouped(table.file_len()),
        if floor > 0.0 { each / floor } else { 0.0 },
        bytes(table.memory() as u64),
        contents::order_of_bits(&header.plan)
    ))
}
