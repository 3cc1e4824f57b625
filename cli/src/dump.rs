//! `simstore dump`: prints the fingerprints and ids of a store.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use simstore::any::Width;
use simstore::raw::Table;
use simstore::{Entry, Fingerprint, Result, Snapshot, each_width};

use crate::command_error::CommandResult;
use crate::inspect::table::{find_segment, find_table};
use crate::open_store::open_snapshot;
use crate::output::{self, Output, escape_name};

const EXAMPLES: &str = "\
A line is HEX<TAB>ID: the name if the document has one, else the number. In a store without ids, a line is HEX alone. Lines are \
sorted by fingerprint, then by id. In names, a backslash is escaped as \\\\, a tab as \\t, a line break as \\n or \\r, another \
control character as \\u{HEX}, the empty name as \\e; `build` and other commands read these lines. --json does not escape names. \
With --table, lines are HEX alone, in the order of the table.

With --json, a line is an object:
  fingerprint  hexadecimal
  id           number; null in a store without ids, and with --table
  name         text; missing if the document has no name

Examples:
  simstore dump en.simstore
  simstore dump en.simstore --raw -o en.u64
  simstore dump en.simstore --table 0 --permuted | head";

/// Print the fingerprints and ids of a store, sorted
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DumpArgs {
    /// The store
    store: PathBuf,
    /// Print the distinct fingerprints of this table, in its order; numbered from 0
    #[arg(long, value_name = "I")]
    table: Option<usize>,
    /// Segment of the table, numbered from 0
    #[arg(long, value_name = "S", requires = "table", default_value_t = 0)]
    segment: usize,
    /// With --table: print permuted fingerprints, as the table stores them
    #[arg(long, requires = "table")]
    permuted: bool,
    /// Write the distinct fingerprints as raw little-endian integers, as in .u64 and .u128 files
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    /// Output file; `-` is standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct EntryObject {
    fingerprint: String,
    id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

pub(crate) fn run(args: &DumpArgs) -> CommandResult {
    each_width!(Width::from_store(&args.store)?, type F => dump::<F>(args))
}

fn dump<F: Fingerprint>(args: &DumpArgs) -> CommandResult {
    let store = open_snapshot::<F>(&args.store)?;
    let table = match args.table {
        Some(table) => Some(find_table(find_segment(&store, args.segment)?, table)?),
        None => None,
    };
    let mut output = output::create(&args.output)?;
    match table {
        Some(table) => dump_table(table, args, &mut output)?,
        None => dump_entries(&store, args, &mut output)?,
    }
    Ok(output.finish()?)
}

fn dump_table<F: Fingerprint>(table: &Table<F>, args: &DumpArgs, output: &mut Output) -> Result<()> {
    let permutation = &table.header().plan.permutation;
    for permuted in table.scan() {
        let permuted = permuted?;
        let fingerprint = if args.permuted { permuted } else { permutation.invert(permuted) };
        print(Entry { fingerprint, id: None }, None, args, output)?;
    }
    Ok(())
}

fn dump_entries<F: Fingerprint>(store: &Snapshot<F>, args: &DumpArgs, output: &mut Output) -> Result<()> {
    let has_names = store.stats().names > 0 && !args.raw;
    let mut previous = None;
    for entry in store.iter() {
        let entry = entry?;
        let is_repeated = previous.replace(entry.fingerprint) == Some(entry.fingerprint);
        if args.raw && is_repeated {
            continue;
        }
        let name = match entry.id {
            Some(id) if has_names => store.name(id)?,
            _ => None,
        };
        print(entry, name, args, output)?;
    }
    Ok(())
}

fn print<F: Fingerprint>(
    entry: Entry<F>,
    name: Option<String>,
    args: &DumpArgs,
    output: &mut Output,
) -> Result<()> {
    let Entry { fingerprint, id } = entry;
    if args.raw {
        let mut bytes = [0; 16];
        fingerprint.write_le(&mut bytes);
        return output.write_bytes(&bytes[..F::BYTES]);
    }
    let fingerprint = fingerprint.to_hex();
    if args.json {
        return output.write_json(&EntryObject { fingerprint, id, name });
    }
    match (name, id) {
        (Some(name), _) => output.write_line(format_args!("{fingerprint}\t{}", escape_name(&name))),
        (None, Some(id)) => output.write_line(format_args!("{fingerprint}\t{id}")),
        (None, None) => output.write_line(fingerprint),
    }
}
