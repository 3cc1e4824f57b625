//! `simstore verify`: checks that a store is intact.

use std::path::{Path, PathBuf};

use clap::Args;
use simstore::any::Width;
use simstore::store::LogInfo;
use simstore::{Error, Fingerprint, Result, Snapshot, each_width};
use simstore_corpus::describe::{StoreDescription, describe_store};
use simstore_text::check_similar_store;

use crate::command_error::{CommandError, CommandResult};
use crate::numbers::format_count_of;
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

pub(crate) fn run(args: &VerifyArgs) -> CommandResult {
    let verified = Width::from_store(&args.store)
        .map_err(CommandError::from)
        .and_then(|bits| each_width!(bits, type F => verify::<F>(args)));
    match verified {
        // The store is too damaged to open. The error is the only known problem.
        Err(CommandError::Library(error @ (Error::Corrupt { .. } | Error::UnsupportedVersion { .. }))) => {
            let mut output = output::stdout();
            print_problem(&mut output, &error, args.json)?;
            report(args, output, 1, None)
        }
        other => other,
    }
}

fn verify<F: Fingerprint>(args: &VerifyArgs) -> CommandResult {
    // A log may look torn while another process appends a record. Opening again shortly after reads the whole record.
    let opened = Snapshot::<F>::open_retrying(&args.store);
    let mut output = output::stdout();
    let mut printed = Ok(());
    let mut on_damage = |error: Error| {
        if printed.is_ok() {
            printed = print_problem(&mut output, &error, args.json);
        }
    };
    let problems = match &opened {
        Ok(store) => match store.verify(&mut on_damage) {
            // The check of similar documents reads notes and metadata, so it needs undamaged files.
            0 => check_similar_store(store, on_damage)?,
            problems => problems,
        },
        Err(_) => simstore::store::find_damaged_files::<F>(&args.store, on_damage)?,
    };
    printed?;
    if let (0, Err(error)) = (problems, &opened) {
        // The files are intact, but the store cannot be opened for another reason.
        print_problem(&mut output, error, args.json)?;
        return report(args, output, 1, None);
    }
    if let Ok(store) = &opened {
        for log in store.logs().iter().filter(|log| log.torn_bytes > 0 && log.is_sealed) {
            print_note(&mut output, store.path(), log, args.json)?;
        }
    }
    report(args, output, problems, opened.ok().map(|store| describe_store(&store)))
}

/// Prints a note about the torn tail that a crash left in a log.
fn print_note(output: &mut Output, store: &Path, log: &LogInfo, json: bool) -> Result<()> {
    let file = store.join(log.file_name()).to_string_lossy().into_owned();
    let offset = log.bytes - log.torn_bytes;
    let note = format!(
        "{file}: note: {} from offset {offset} on: cut off by a crash",
        format_count_of(log.torn_bytes, "byte")
    );
    if json { output.write_json(&object! { note, file, offset }) } else { output.write_line(note) }
}

fn print_problem(output: &mut Output, error: &Error, json: bool) -> Result<()> {
    if !json {
        return output.write_line(error);
    }
    let (file, offset) = match error {
        Error::Corrupt { path, offset, .. } | Error::TornTail { path, offset, .. } => {
            (Some(path), Some(offset))
        }
        Error::Io { path, .. } | Error::UnsupportedVersion { path, .. } => (Some(path), None),
        _ => (None, None),
    };
    output.write_json(
        &object! { problem: error.to_string(), file: file.map(|path| path.to_string_lossy()), offset },
    )
}

/// Prints the summary of the check. `problems` is the number of problems found; if it is not 0, returns an error.
/// `description` is `None` if the store cannot be opened.
fn report(
    args: &VerifyArgs,
    mut output: Output,
    problems: u64,
    description: Option<StoreDescription>,
) -> CommandResult {
    let ok = problems == 0;
    if args.json {
        output.write_json(&object! {
            ok,
            problems,
            fingerprints: description.as_ref().map(|store| store.fingerprints),
            ids: description.as_ref().map(|store| store.ids),
            tables: description.as_ref().map(|store| store.tables),
            logs: description.as_ref().map(|store| store.logs.len()),
        })?;
    } else if let (true, Some(store)) = (ok, description) {
        output.write_line(format_args!(
            "ok: {} in {} and {}, {}",
            format_count_of(store.fingerprints, "fingerprint"),
            format_count_of(store.tables as u64, "table"),
            format_count_of(store.logs.len() as u64, "log"),
            format_count_of(store.ids, "id")
        ))?;
    }
    output.finish()?;
    if ok {
        return Ok(());
    }
    Err(CommandError::Failed(format!(
        "{}: {} found",
        args.store.display(),
        format_count_of(problems, "problem")
    )))
}
