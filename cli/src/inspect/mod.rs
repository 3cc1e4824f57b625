//! `simstore inspect`: prints the contents and size of a store, a table or a block.

use std::path::PathBuf;

use clap::Args;
use simstore::any::Width;
use simstore::plan::min_bits_per_fingerprint;
use simstore::raw::Table;
use simstore::{Fingerprint, Result, Snapshot, each_width};
use simstore_corpus::describe::{TableDescription, count_symbols, describe_store, describe_table};
use simstore_text::SimilarSettings;

use crate::command_error::CommandResult;
use crate::numbers::{bits_per_item, format_bytes, format_count, format_count_of};
use crate::output::{self, Output, object};

mod segments;
pub(crate) mod table;

const EXAMPLES: &str = "\
With --json, a line is an object: the store, then one for each table. Of the store:
  fingerprints, ids, names, notes  numbers in segments and logs; an upper bound if several hold the
                              same entry
  bytes                       size of the manifest and of all segment files
  bits_per_fingerprint        bits of all these files for each fingerprint
  floor_bits_per_fingerprint  lower bound for n random fingerprints: log2 C(2^bits, n) / n
  table_bytes, id_bytes, name_bytes, note_bytes, tombstone_bytes, metadata_bytes  sizes that add
                              up to bytes; logs are not included
  memory                      memory of an open store, in bytes, besides the mapped files
  distance, bits, codec, profile, keeps_ids  settings of the store
  similar, recall, with_texts  settings of a store of similar documents; else null
  plan, block_size, span      settings of new segments; null: the codec's default
  segments, tables            number of segments, number of tables
  tombstones                  pairs that were deleted from older segments
  metadata                    number of values that writers keep, such as how much of an input was
                              read
  memtable_entries            pairs in the logs, not in segments yet
  by_age                      an object for each segment, the oldest first: segment (from 0), number
                              (in the names of its files), plan, fingerprints, pairs, tombstones,
                              tables, bytes
  logs                        an object for each log, the oldest first: number, bytes, torn_bytes
                              (bytes of an incomplete last record: from a crash, or being written),
                              ended (false: the last record may also be damaged), records,
                              operations (not in segments yet)
Of a table:
  segment, table              their numbers, from 0
  plan                        name of the segment's plan
  prefix_bits, flips          prefix length in bits, and the most bits that a probe flips
  codec, fingerprints, block_size, span, blocks  codec settings and sizes
  key_bits, lines, dividing_lines  codec prefix-lines: bits of each fingerprint in the lines, their
                              number, and the number of lines that divide others; else null
  bytes, bits_per_fingerprint, floor_bits_per_fingerprint, memory  as above, for this table
  permutation                 bits of the original fingerprint, in the table's order
  histogram                   only with --table: fingerprints by first differing bit, from 0
  symbols                     only with --table: an object for each symbol in the blocks: h,
                              differing, earlier, count of fingerprints; none for restart points,
                              elias-fano and prefix-lines
Of a block, with --block:
  segment, table, block       their numbers, from 0
  offset, bytes               offset in its file, and size in bytes
  fingerprints                number of fingerprints
  width                       bits of a restart point; elias-fano: lower bits of each;
                              prefix-lines: bits of each after its prefix
  first, last                 fingerprints, permuted
  values                      an object for each fingerprint: permuted, original, differing_bit
                              (its place in the histogram; null for the first, and in
                              all-differences), coded (h, differing, back; null for a restart point,
                              in elias-fano and prefix-lines)

The first differing bit is counted from 0, the most significant bit, between a fingerprint and its predecessor. For codec gap it \
is the top bit of their difference.

In a block, a symbol names a bit by h: the bit is worth 2^h, so in 64 bits its position is 63 - h. The tail has the bits below, and \
differing is null. In all-differences, a symbol with differing null is a gap: h is the top bit of the difference to the \
predecessor. Otherwise the fingerprint differs from the predecessor in bit h and in `differing` lower bits, 0 to 5; with `earlier`, \
from a fingerprint `back` (1 to 15) places before the predecessor. The histogram has a line for each h: the percentage of gaps, and \
of each number of differing bits.

Examples:
  simstore inspect en.simstore
  simstore inspect en.simstore --table 0
  simstore inspect en.simstore --table 0 --block 0";

/// Show the contents and size of a store, a table or a block
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InspectArgs {
    /// The store
    store: PathBuf,
    /// Show this table, with a histogram of its symbols; numbered from 0
    #[arg(long, value_name = "I")]
    table: Option<usize>,
    /// Show this block of the table: header and fingerprints; numbered from 0
    #[arg(long, value_name = "J", requires = "table")]
    block: Option<usize>,
    /// Segment of the table, numbered from 0
    #[arg(long, value_name = "S", requires = "table", default_value_t = 0)]
    segment: usize,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &InspectArgs) -> CommandResult {
    each_width!(Width::from_store(&args.store)?, type F => inspect::<F>(args))
}

fn inspect<F: Fingerprint>(args: &InspectArgs) -> CommandResult {
    let store = Snapshot::<F>::open(&args.store)?;
    let mut output = output::stdout();
    if let Some(number) = args.table {
        let segment = table::find_segment(&store, args.segment)?;
        let table = table::find_table(segment, number)?;
        match args.block {
            Some(block) => {
                table::print_block(&mut output, table, [args.segment, number, block], args.json)?;
            }
            None if args.json => {
                let histogram = Some(table.differing_bits(1)?);
                let symbols = Some(count_symbols(table, 1)?);
                let description = describe_table(segment, table, [args.segment, number]);
                output.write_json(&TableDescription { histogram, symbols, ..description })?;
            }
            None => table::print_table(&mut output, segment, table, number)?,
        }
        return Ok(output.finish()?);
    }
    if args.json {
        print_json(&mut output, &store)?;
    } else {
        print_store(&mut output, &store)?;
    }
    Ok(output.finish()?)
}

fn print_json<F: Fingerprint>(output: &mut Output, store: &Snapshot<F>) -> Result<()> {
    let settings = SimilarSettings::from_store(store)?;
    output.write_json(&object! {
        #[serde(flatten)]
        description: describe_store(store),
        similar: settings.map(|settings| settings.min_similarity()),
        recall: settings.map(|settings| settings.recall()),
        with_texts: settings.map(|settings| settings.has_texts()),
    })?;
    for (number, segment) in store.segments().iter().enumerate() {
        for (i, table) in segment.tables().iter().enumerate() {
            output.write_json(&describe_table(segment, table, [number, i]))?;
        }
    }
    Ok(())
}

fn print_store<F: Fingerprint>(output: &mut Output, store: &Snapshot<F>) -> Result<()> {
    let description = describe_store(store);
    let (floor, segment_fingerprints) = (description.floor_bits_per_fingerprint, store.stats().fingerprints);
    let size_line = |name: &str, size: u64| {
        let each = match segment_fingerprints {
            0 => String::new(),
            count => format!("  {:>6.2} bits a fingerprint", bits_per_item(size, count)),
        };
        format!("  {name:<8} {:>12}{each}", format_bytes(size))
    };
    let profile = if description.profile.is_empty() { "unknown" } else { &description.profile };
    let contents = format!(
        "{} of {} bits, {}, {}",
        format_count_of(description.fingerprints, "fingerprint"),
        F::BITS,
        format_count_of(description.ids, "id"),
        format_count_of(description.names, "name")
    );
    let path = store.path().display();
    match SimilarSettings::from_store(store)? {
        Some(settings) => {
            output.write_line(format_args!("{path}: similar documents, {}", settings.describe()))?;
            output.write_line(format_args!("  bands of MinHash signatures: {contents}"))?;
        }
        None => output.write_line(format_args!("{path}: {contents}"))?,
    }
    output.write_line(format_args!(
        "  distance {}, codec {}, plan {}, block size {}, span {}, {}, text profile {profile}",
        description.distance,
        description.codec,
        description.plan,
        description.block_size.map_or("default".into(), |size| size.to_string()),
        description.span.map_or("default".into(), |span| span.to_string()),
        if description.keeps_ids { "ids" } else { "no ids" }
    ))?;
    output.write_line(size_line("tables", description.table_bytes))?;
    output.write_line(size_line("ids", description.id_bytes))?;
    output.write_line(size_line("names", description.name_bytes))?;
    if description.notes > 0 {
        output.write_line(size_line("notes", description.note_bytes))?;
    }
    if description.tombstones > 0 {
        output.write_line(format_args!(
            "  {:<8} {:>12}  {} of older segments",
            "deleted",
            format_bytes(description.tombstone_bytes),
            format_count_of(description.tombstones, "pair")
        ))?;
    }
    if description.metadata > 0 {
        output.write_line(format_args!(
            "  {:<8} {:>12}  {}",
            "metadata",
            format_bytes(description.metadata_bytes),
            format_count_of(description.metadata, "value")
        ))?;
    }
    output.write_line(size_line("total", description.bytes))?;
    let bound = match segment_fingerprints {
        0 => String::new(),
        _ => format!("; lower bound for as many random fingerprints: {floor:.2} bits each"),
    };
    output.write_line(format_args!(
        "  memory   {:>12}  besides the files{bound}",
        format_bytes(description.memory)
    ))?;
    segments::print(output, store, &description)?;
    for (number, segment) in store.segments().iter().enumerate() {
        output.write_line(format_args!(
            "segment {number}: {}, plan {}",
            format_count_of(segment.stats().fingerprints, "fingerprint"),
            segment.plan().name()
        ))?;
        output.write_line(format_args!(
            "  {:>5} {:>6} {:>5} {:>10} {:>6} {:>12} {:>9} {:>9} {:>11}  {}",
            "table", "prefix", "flips", "blocks", "size", "bytes", "bits each", "/ bound", "memory", "bits"
        ))?;
        for (i, table) in segment.tables().iter().enumerate() {
            print_row(output, table, i)?;
        }
    }
    let first = store.segments().first().and_then(|segment| segment.tables().first());
    match first.filter(|table| table.header().fingerprints > 0) {
        Some(table) => table::print_histogram(output, table, 0),
        None => Ok(()),
    }
}

fn print_row<F: Fingerprint>(output: &mut Output, table: &Table<F>, number: usize) -> Result<()> {
    let header = table.header();
    let each = bits_per_item(table.file_len(), header.fingerprints);
    let floor = min_bits_per_fingerprint(F::BITS, header.fingerprints);
    output.write_line(format_args!(
        "  {number:>5} {:>6} {:>5} {:>10} {:>6} {:>12} {each:>9.2} {:>9.3} {:>11}  {}",
        header.plan.prefix_bits,
        header.plan.flips,
        format_count(table.blocks() as u64),
        header.block_size,
        format_count(table.file_len()),
        if floor > 0.0 { each / floor } else { 0.0 },
        format_bytes(table.memory() as u64),
        table::format_bit_order(&header.plan)
    ))
}
