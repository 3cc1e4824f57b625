//! `simstore delete`: deletes documents or fingerprints from a store.

use std::path::{Path, PathBuf};

use clap::Args;
use simstore::any::Width;
use simstore::{Error, Fingerprint, Result, Snapshot, StoreOptions, each_width};
use simstore_corpus::InputKind;
use simstore_corpus::delete::{self, DeletedIds, DeletionCounts, delete_ids};
use simstore_io::escape::parse_listed_name;
use simstore_text::{Profile, SimilarSettings};

use crate::command_error::{CommandError, CommandResult};
use crate::input_warnings::{warn_about_fingerprints, warn_about_texts};
use crate::inputs::{self, DocumentArgs, INPUTS_HELP};
use crate::numbers::{format_count_of, rounded};
use crate::open_store::open_store;
use crate::output::{self, Output, escape_name, object};
use crate::progress::ProgressDisplay;

const EXAMPLES: &str = "\
--id and --ids delete all fingerprints of a document. Give ids as `dump` and `query` print them: the name if the document has \
one, else the number. --id takes an unescaped id. Ids that are not in the store are printed, one a line, escaped, and the exit \
code is 1; the other ids are deleted. Each call reads all ids of the store once.

With --json, one object is printed at the end:
  store, read           path of the store, number of documents, fingerprints or ids read
  deleted, missing      number of them that were stored, and that were not
  seconds               elapsed time
before it, with --id and --ids, one object for each id that is not in the store
  missing_id            the id or name

Examples:
  simstore delete pages.simstore samples/zh.jsonl
  simstore delete pages.simstore --id desktop-src/AD/forests.md
  simstore dump pages.simstore | cut -f 2 | grep AD/ | simstore delete pages.simstore --ids -
  echo 'c0ffee0123456789	17' | simstore delete pages.simstore -
  echo 'c0ffee0123456789' | simstore delete --all-ids pages.simstore -";

/// Delete documents or fingerprints from a store
///
/// Deletes documents as they were added, lines HEX<TAB>ID, or everything stored under an id. Queries no longer find deleted documents.
/// Their space is freed when segments are merged, at the latest by `simstore compact`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{INPUTS_HELP}\n\n{EXAMPLES}"))]
pub(crate) struct DeleteArgs {
    /// The store
    store: PathBuf,
    /// Documents or fingerprints; `-` is standard input
    #[arg(required_unless_present_any = ["id", "ids", "files_from"], value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Delete the document with this id or name; repeatable
    #[arg(long, value_name = "ID", conflicts_with_all = ["inputs", "files_from"], allow_hyphen_values = true)]
    id: Vec<String>,
    /// Delete the ids or names in this file, one a line, escaped as `dump` and `query` print them; with --null, unescaped ids or paths
    /// that end in zero bytes. `-` is standard input; empty lines are ignored
    #[arg(long, value_name = "FILE", conflicts_with_all = ["inputs", "files_from"])]
    ids: Option<PathBuf>,
    /// Delete each fingerprint under all of its ids
    #[arg(long, conflicts_with_all = ["id", "ids"])]
    all_ids: bool,
    /// Print a summary as a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    documents: DocumentArgs,
}

pub(crate) fn run(args: &DeleteArgs, progress: &ProgressDisplay) -> CommandResult {
    let bits = Width::from_store(&args.store)?;
    if !args.id.is_empty() || args.ids.is_some() {
        each_width!(bits, type F => delete_listed::<F>(args, progress))
    } else {
        each_width!(bits, type F => delete_inputs::<F>(args, progress))
    }
}

fn delete_inputs<F: Fingerprint>(args: &DeleteArgs, progress: &ProgressDisplay) -> CommandResult {
    let inputs = args.documents.open_inputs(&args.inputs, progress)?;
    let kind = inputs::kind(&inputs)?;
    let mut options = StoreOptions { create: false, ..StoreOptions::default() };
    let profile = match kind {
        InputKind::Documents => {
            args.documents.profile.profile_for_store(&Snapshot::<F>::open(&args.store)?)?
        }
        InputKind::Fingerprints => Profile::default(),
    };
    if kind == InputKind::Documents {
        // Opening fails if the store has another profile: its fingerprints would match nothing, or other documents.
        options.profile = Some(profile.to_string());
    }
    let store = open_store::<F>(&args.store, options)?;
    let (counts, deleted) = delete::delete_inputs(&store, &inputs, &profile, args.all_ids, progress)
        .map_err(CommandError::usage)?;
    match SimilarSettings::from_store(&store.snapshot())? {
        Some(_) => warn_about_texts(&counts, kind, progress),
        None => warn_about_fingerprints(&counts, kind, progress),
    }
    Ok(report(args, output::stdout(), counts.read, deleted, "document", progress)?)
}

fn delete_listed<F: Fingerprint>(args: &DeleteArgs, progress: &ProgressDisplay) -> CommandResult {
    let mut ids = args.id.clone();
    if let Some(file) = &args.ids {
        ids.extend(listed_ids::<F>(args, file)?);
    }
    let store = open_store::<F>(&args.store, StoreOptions { create: false, ..StoreOptions::default() })?;
    let DeletedIds { requested, deleted, missing } =
        delete_ids(&store, &ids).map_err(|error| match error {
            Error::BadArgument(reason) => CommandError::Usage(reason),
            other => other.into(),
        })?;
    let mut output = output::stdout();
    for id in &missing {
        if args.json {
            output.write_json(&object! { missing_id: id })?;
        } else {
            output.write_line(escape_name(id))?;
        }
    }
    let missing = missing.len() as u64;
    report(args, output, requested, DeletionCounts { deleted, missing }, "id", progress)?;
    if missing == 0 {
        return Ok(());
    }
    Err(CommandError::Failed(format!(
        "{}: {} not in the store",
        args.store.display(),
        format_count_of(missing, "id")
    )))
}

/// Reads the ids in a list file: one escaped id a line, or with `--null` unescaped ids that end in zero bytes.
fn listed_ids<F: Fingerprint>(args: &DeleteArgs, file: &Path) -> CommandResult<Vec<String>> {
    let entries = inputs::read_list(file, args.documents.null)?;
    if args.documents.null {
        let entries: Vec<Vec<u8>> = entries.into_iter().map(|(_, entry)| entry).collect();
        return Ok(delete::ids_from_bytes(&Snapshot::<F>::open(&args.store)?, &entries)?);
    }
    let id = |(number, entry): (usize, Vec<u8>)| {
        parse_listed_name(&entry).map_err(|reason| inputs::list_entry_error(file, number, &reason))
    };
    entries.into_iter().map(id).collect()
}

fn report(
    args: &DeleteArgs,
    mut output: Output,
    read: u64,
    DeletionCounts { deleted, missing }: DeletionCounts,
    noun: &str,
    progress: &ProgressDisplay,
) -> Result<()> {
    if args.json {
        output.write_json(&object! {
            store: args.store.to_string_lossy(),
            read,
            deleted,
            missing,
            seconds: rounded(progress.elapsed_seconds()),
        })?;
    } else {
        progress.print_summary(&format!(
            "{}: {} deleted, {missing} not in the store, {:.1} s",
            args.store.display(),
            format_count_of(deleted, noun),
            progress.elapsed_seconds()
        ));
    }
    output.finish()
}
