//! `simstore verify`: is a store intact.

use std::path::{Path, PathBuf};

use clap::Args;
use simstore::any::Width;
use simstore::store::LogInfo;
use simstore::{Error, Fingerprint, Result, Snapshot, each_width};
use simstore_corpus::describe::{StoreDescription, describe_store};
use simstore_text::check_similar;

use crate::failure::{Failure, Outcome};
use crate::inputs::count_of;
use crate::output::{self, Output, object};

const EXAMPLES: &str = "\
After a crash, a log may end in an incomplete record of a write that was never acknowledged as durable. If the store was closed or \
written to since, this is only a note: the store is intact. In the newest log after a crash, it is a problem, because a damaged \
record looks the same. The next write to the store resolves it.

With --json, a line is an object: one for each problem or note, then a summary.
  problem, note the description
  file, offset  location of the problem; null if unknown
and in the summary
  ok            true or false
  problems      number of problems
  fingerprints, ids           upper bounds for segments and logs (deleted entries count until
                              segments are merged); null if the store cannot be opened
  tables, logs                their numbers; null if the store cannot be opened

Example:
  simstore verify en.simstore && echo intact";

/// Read a whole store and check that it is intact
///
/// Checks all checksums; the order of logs, segments, ids and names; and that all tables of a segment are equal. In a store of similar
/// documents, also settings, dictionary and texts, and that texts match their signatures. The exit code is 1 if anything is damaged;
/// `simstore salvage` then copies the intact part to a new store.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// The store
    store: PathBuf,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &VerifyArgs) -> Outcome {
    let verified = Width::of_store(&args.store)
        .map_err(Failure::from)
        .and_then(|bits| each_width!(bits, type F => verify::<F>(args)));
    match verified {
        // So damaged that it cannot be opened: the one problem that can be told.
        Err(Failure::Engine(error @ (Error::Corrupt { .. } | Error::UnsupportedVersion { .. }))) => {
            let mut output = output::stdout();
            print(&mut output, &error, args.json)?;
            report(args, output, 1, None)
        }
        other => other,
    }
}

fn verify<F: Fingerprint>(args: &VerifyArgs) -> Outcome {
    // A record that another process is writing looks torn, and is whole a moment later.
    let opened = Snapshot::<F>::open_settled(&args.store);
    let mut output = output::stdout();
    let mut printed = Ok(());
    let mut damaged = |error: Error| {
        if printed.is_ok() {
            printed = print(&mut output, &error, args.json);
        }
    };
    let problems = match &opened {
        Ok(store) => match store.verify(&mut damaged) {
            // Notes and marks are read where their files have no damage.
            0 => check_similar(store, damaged)?,
            problems => problems,
        },
        Err(_) => simstore::store::damage::<F>(&args.store, damaged)?,
    };
    printed?;
    if let (0, Err(error)) = (problems, &opened) {
        // Refused for another reason than its files.
        print(&mut output, error, args.json)?;
        return report(args, output, 1, None);
    }
    if let Ok(store) = &opened {
        for log in store.logs().iter().filter(|log| log.torn_bytes > 0 && log.ended) {
            print_note(&mut output, store.path(), log, args.json)?;
        }
    }
    report(args, output, problems, opened.ok().map(|store| describe_store(&store)))
}

/// Tells what a crash has left at the end of a log.
fn print_note(output: &mut Output, store: &Path, log: &LogInfo, json: bool) -> Result<()> {
    let file = store.join(log.file_name()).to_string_lossy().into_owned();
    let offset = log.bytes - log.torn_bytes;
    let note = format!(
        "{file}: note: {} from offset {offset} on: cut off by a crash",
        count_of(log.torn_bytes, "byte")
    );
    if json { output.json(&object! { note, file, offset }) } else { output.line(note) }
}

fn print(output: &mut Output, error: &Error, json: bool) -> Result<()> {
    if !json {
        return output.line(error);
    }
    let (file, offset) = match error {
        Error::Corrupt { path, offset, .. } | Error::TornEnd { path, offset, .. } => {
            (Some(path), Some(offset))
        }
        Error::Io { path, .. } | Error::UnsupportedVersion { path, .. } => (Some(path), None),
        _ => (None, None),
    };
    output
        .json(&object! { problem: error.to_string(), file: file.map(|path| path.to_string_lossy()), offset })
}

/// Prints the summary; `held` by a store that could be opened.
fn report(args: &VerifyArgs, mut output: Output, problems: u64, held: Option<StoreDescription>) -> Outcome {
    let ok = problems == 0;
    if args.json {
        output.json(&object! {
            ok,
            problems,
            fingerprints: held.as_ref().map(|held| held.fingerprints),
            ids: held.as_ref().map(|held| held.ids),
            tables: held.as_ref().map(|held| held.tables),
            logs: held.as_ref().map(|held| held.logs.len()),
        })?;
    } else if let (true, Some(held)) = (ok, held) {
        output.line(format_args!(
            "ok: {} in {} and {}, {}",
            count_of(held.fingerprints, "fingerprint"),
            count_of(held.tables as u64, "table"),
            count_of(held.logs.len() as u64, "log"),
            count_of(held.ids, "id")
        ))?;
    }
    output.finish()?;
    if ok {
        return Ok(());
    }
    Err(Failure::Failed(format!("{}: {} found", args.store.display(), count_of(problems, "problem"))))
}
