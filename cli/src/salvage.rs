//! `simstore salvage`: copies the intact part of a damaged store into a new one.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use simstore::any::Width;
use simstore::store::{Finding, SalvageOptions, salvageable_bits};
use simstore::{Fingerprint, each_width};

use simstore_text::{DEFAULT_RECALL, SimilarSettings, salvage_similar};

use crate::failure::{Failure, Outcome};
use crate::inputs::count_of;
use crate::numbers::{parse_bytes, rounded};
use crate::output::Output;
use crate::profile::ProfileArgs;
use crate::progress::Progress;

const EXAMPLES: &str = "\
Each line is a damage: FILE, the offset in it if there is one, `lost` or `note`, and a description. A note is damage
without loss: the content was found elsewhere.

With --json, a line is an object: one for each of these
  file, offset, lost, what    the place, null if there is none; whether something is lost; the description
and at the end
  store, new                  the damaged store and the new one
  whole                       whether all was rescued
  fingerprints, ids, names, notes  what the new store holds
  operations                  done again from the logs
  without_ids                 fingerprints whose ids are lost: left out, or kept with --keep-without-ids
  lost_fingerprints           that no table has any more, as far as their number is known
  seconds                     time taken

The exit code is 1 if something was lost; the new store is there all the same.

Examples:
  simstore salvage pages.simstore rescued.simstore
  simstore salvage --json pages.simstore again.simstore";

/// Copy the intact part of a damaged store into a new store
///
/// A fingerprint is rescued if any table of its segment has it; ids are rescued if their part of the id file is intact. Of
/// logs, all intact records are taken, also after damage. The damaged store is not changed; nobody may write to it
/// meanwhile.
///
/// Without an intact manifest, all segments and logs of the folder count, in the order of their numbers, and the tables give the
/// settings. The text profile is unknown then unless --profile names it, the distance is the largest that the tables can answer, and
/// deleted documents may come back if segments had been merged.
///
/// Of a store of similar documents, a document is rescued if its note is intact: with its text, and with fingerprints that tables
/// have lost. If the dictionary of the texts is lost, the new store keeps signatures only.
///
/// The new store knows how far `simstore add` has read its inputs only if nothing is lost: otherwise `add` reads them again
/// from the beginning.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SalvageArgs {
    /// The damaged store
    store: PathBuf,
    /// The new store: a folder that does not exist yet
    new: PathBuf,
    /// Keep fingerprints whose ids are lost, also deleted ones, with new ids after the highest one; without it, they are
    /// left out
    #[arg(long)]
    keep_without_ids: bool,
    /// The largest distance that the new store can answer [default: as the damaged one]
    #[arg(long, short, value_name = "K")]
    distance: Option<u32>,
    /// Of the texts, where the manifest is lost
    #[command(flatten)]
    profile: ProfileArgs,
    /// A store of similar documents from this similarity on, where its settings are lost
    #[arg(long, value_name = "S")]
    similar: Option<f64>,
    /// The recall at that similarity
    #[arg(long, value_name = "R", requires = "similar", default_value_t = DEFAULT_RECALL)]
    recall: f64,
    /// Memory for sorting, like 2G, from 16M [default: a quarter of the machine's]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    memory: Option<u64>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct FindingObject<'a> {
    file: &'a str,
    offset: Option<u64>,
    lost: bool,
    what: &'a str,
}

#[derive(Serialize)]
struct SalvageObject<'a> {
    store: &'a str,
    new: &'a str,
    whole: bool,
    fingerprints: u64,
    ids: u64,
    names: u64,
    notes: u64,
    operations: u64,
    without_ids: u64,
    lost_fingerprints: u64,
    seconds: f64,
}

pub(crate) fn run(args: &SalvageArgs, progress: &Progress) -> Outcome {
    let bits = Width::of(salvageable_bits(&args.store)?)?;
    each_width!(bits, type F => salvage::<F>(args, progress))
}

fn salvage<F: Fingerprint>(args: &SalvageArgs, progress: &Progress) -> Outcome {
    if let Some(distance) = args.distance {
        crate::width::check_distance::<F>(distance)?;
    }
    let similar = args.similar.map(|similar| SimilarSettings::new(similar, args.recall)).transpose();
    let similar = similar.map_err(Failure::usage)?;
    let options = SalvageOptions {
        keep_without_ids: args.keep_without_ids,
        distance: args.distance,
        memory: args.memory,
        profile: args.profile.given()?.map(|profile| profile.to_string()),
        ..SalvageOptions::default()
    };
    let salvaged = match F::BITS {
        // A store of similar documents has 64 bits.
        64 => salvage_similar(&args.store, &args.new, &options, similar).map_err(Failure::usage)?,
        _ if similar.is_some() => {
            let message = format!("--similar is for stores of 64 bits: this one has {}", F::BITS);
            return Err(Failure::Usage(message));
        }
        _ => simstore::store::salvage::<F>(&args.store, &args.new, &options)?,
    };
    let whole = salvaged.is_whole();
    let mut output = Output::stdout();
    for finding in &salvaged.findings {
        print(&mut output, finding, args.json)?;
    }
    if args.json {
        output.json(&SalvageObject {
            store: &args.store.to_string_lossy(),
            new: &args.new.to_string_lossy(),
            whole,
            fingerprints: salvaged.fingerprints,
            ids: salvaged.ids,
            names: salvaged.names,
            notes: salvaged.notes,
            operations: salvaged.operations,
            without_ids: salvaged.without_ids,
            lost_fingerprints: salvaged.lost_fingerprints,
            seconds: rounded(progress.seconds()),
        })?;
    } else {
        let noted = salvaged.notes;
        let noted = if noted > 0 { format!(", {}", count_of(noted, "note")) } else { String::new() };
        output.line(format_args!(
            "{}: {}, {}, {}{noted} rescued; {} of logs done again",
            args.new.display(),
            count_of(salvaged.fingerprints, "fingerprint"),
            count_of(salvaged.ids, "id"),
            count_of(salvaged.names, "name"),
            count_of(salvaged.operations, "operation")
        ))?;
    }
    output.finish()?;
    if whole {
        return Ok(());
    }
    let (store, new) = (args.store.display(), args.new.display());
    Err(Failure::Failed(format!("{store}: not everything could be rescued; {new} has the rest")))
}

fn print(output: &mut Output, finding: &Finding, json: bool) -> Outcome {
    let file = finding.path.to_string_lossy();
    if json {
        let Finding { offset, lost, what, .. } = finding;
        return output.json(&FindingObject { file: &file, offset: *offset, lost: *lost, what });
    }
    let kind = if finding.lost { "lost" } else { "note" };
    match finding.offset {
        Some(offset) => output.line(format_args!("{file}: at offset {offset}: {kind}: {}", finding.what)),
        None => output.line(format_args!("{file}: {kind}: {}", finding.what)),
    }
}
