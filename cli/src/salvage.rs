//! `simstore salvage`: copies the intact part of a damaged store into a new one.

use std::path::PathBuf;

use clap::Args;
use simstore::any::Width;
use simstore::store::{Issue, SalvageOptions, salvageable_bits};
use simstore::{Fingerprint, Result, each_width};

use simstore_text::{DEFAULT_RECALL, SimilarSettings, salvage_similar_store};

use crate::command_error::{CommandError, CommandResult};
use crate::numbers::{format_count_of, parse_bytes, rounded};
use crate::output::{self, Output, object};
use crate::profile_args::ProfileArgs;
use crate::progress::ProgressDisplay;
use crate::width::check_distance;

const EXAMPLES: &str = "\
Each line describes one damage: file, offset if known, `lost` or `note`, and a description. A `note` is damage without loss: the \
content was found elsewhere.

With --json, a line is an object: one for each of these
  file, offset, lost, what    location (null if unknown); whether content is lost; description
and at the end
  store, new                  the damaged store and the new store
  whole                       whether nothing is lost
  fingerprints, ids, names, notes  numbers in the new store
  operations                  operations replayed from logs
  without_ids                 fingerprints without ids: left out, or kept with --keep-without-ids
  lost_fingerprints           fingerprints in no intact table, if their number is known
  seconds                     elapsed time

The exit code is 1 if anything is lost; the new store is created all the same.

Examples:
  simstore salvage pages.simstore rescued.simstore
  simstore salvage --json pages.simstore again.simstore";

/// Copy the intact part of a damaged store into a new store
///
/// A fingerprint is rescued if at least one table of its segment has it in an intact block. Ids are rescued if their part of the id
/// file is intact. From logs, all intact records are taken, even after a damaged one. The damaged store is not changed; do not write
/// to it meanwhile.
///
/// Without an intact manifest, all segments and logs in the directory are used, in the order of their numbers. The tables give the width
/// and the largest distance; give the text profile with --profile. If the damaged store ever merged segments, documents deleted from
/// it may come back.
///
/// In a store of similar documents, a document with an intact note is rescued with its text, even if its tables are damaged. If the
/// compression dictionary of the texts is lost, the new store has signatures only.
///
/// If anything is lost, the new store does not know how far `simstore add` has read its inputs: `add` then reads them from the
/// beginning.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SalvageArgs {
    /// The damaged store
    store: PathBuf,
    /// Path of the new store, a directory
    new: PathBuf,
    /// Keep fingerprints whose ids are lost, with new ids; deleted ones may come back [default: leave them out]
    #[arg(long)]
    keep_without_ids: bool,
    /// Largest distance of the new store, in bits [default: as in the damaged store]
    #[arg(long, short, value_name = "K")]
    distance: Option<u32>,
    // Profile of the texts, if the manifest is lost.
    #[command(flatten)]
    profile: ProfileArgs,
    /// If the settings are lost: threshold of the store of similar documents
    #[arg(long, value_name = "S")]
    similar: Option<f64>,
    /// With --similar: recall at the threshold
    #[arg(long, value_name = "R", requires = "similar", default_value_t = DEFAULT_RECALL)]
    recall: f64,
    /// Memory limit for sorting, such as 2G; at least 16M [default: a quarter of the memory]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    memory: Option<u64>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &SalvageArgs, progress: &ProgressDisplay) -> CommandResult {
    let bits = Width::from_bits(salvageable_bits(&args.store)?)?;
    each_width!(bits, type F => salvage::<F>(args, progress))
}

fn salvage<F: Fingerprint>(args: &SalvageArgs, progress: &ProgressDisplay) -> CommandResult {
    if let Some(distance) = args.distance {
        check_distance::<F>(distance)?;
    }
    let similar = args.similar.map(|similar| SimilarSettings::new(similar, args.recall)).transpose();
    let similar = similar.map_err(CommandError::usage)?;
    let options = SalvageOptions {
        keep_without_ids: args.keep_without_ids,
        distance: args.distance,
        memory: args.memory,
        profile: args.profile.requested_profile()?.map(|profile| profile.to_string()),
        ..SalvageOptions::default()
    };
    let salvaged = match F::BITS {
        // A store of similar documents has 64 bits.
        64 => {
            salvage_similar_store(&args.store, &args.new, &options, similar).map_err(CommandError::usage)?
        }
        _ if similar.is_some() => {
            let message = format!("--similar needs a store of 64 bits; this store has {}", F::BITS);
            return Err(CommandError::Usage(message));
        }
        _ => simstore::store::salvage::<F>(&args.store, &args.new, &options)?,
    };
    let whole = salvaged.is_whole();
    let mut output = output::stdout();
    for issue in &salvaged.issues {
        print_issue(&mut output, issue, args.json)?;
    }
    if args.json {
        output.write_json(&object! {
            store: args.store.to_string_lossy(),
            new: args.new.to_string_lossy(),
            whole,
            fingerprints: salvaged.fingerprints,
            ids: salvaged.ids,
            names: salvaged.names,
            notes: salvaged.notes,
            operations: salvaged.operations,
            without_ids: salvaged.without_ids,
            lost_fingerprints: salvaged.lost_fingerprints,
            seconds: rounded(progress.elapsed_seconds()),
        })?;
    } else {
        let notes = salvaged.notes;
        let notes = if notes > 0 { format!(", {}", format_count_of(notes, "note")) } else { String::new() };
        output.write_line(format_args!(
            "{}: rescued {}, {}, {}{notes}; replayed {} from logs",
            args.new.display(),
            format_count_of(salvaged.fingerprints, "fingerprint"),
            format_count_of(salvaged.ids, "id"),
            format_count_of(salvaged.names, "name"),
            format_count_of(salvaged.operations, "operation")
        ))?;
    }
    output.finish()?;
    if whole {
        return Ok(());
    }
    let (store, new) = (args.store.display(), args.new.display());
    Err(CommandError::Failed(format!("{store}: some content is lost; {new} has the rest")))
}

fn print_issue(output: &mut Output, issue: &Issue, json: bool) -> Result<()> {
    let file = issue.path.to_string_lossy();
    if json {
        let Issue { offset, is_loss, description, .. } = issue;
        return output.write_json(&object! { file, offset, lost: is_loss, what: description });
    }
    let kind = if issue.is_loss { "lost" } else { "note" };
    match issue.offset {
        Some(offset) => {
            output.write_line(format_args!("{file}: at offset {offset}: {kind}: {}", issue.description))
        }
        None => output.write_line(format_args!("{file}: {kind}: {}", issue.description)),
    }
}
