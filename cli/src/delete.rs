//! `simstore delete`: documents or fingerprints out of a store.

use std::path::{Path, PathBuf};

use clap::Args;
use simstore::any::Width;
use simstore::{Error, Fingerprint, Result, Snapshot, StoreOptions, each_width};
use simstore_corpus::InputKind;
use simstore_corpus::delete::{self, Deleted, DeletedIds, delete_ids};
use simstore_io::escape::listed_name;
use simstore_text::{Profile, SimilarSettings};

use crate::counts::{warn, warn_of_texts};
use crate::failure::{Failure, Outcome};
use crate::inputs::{self, DocumentArgs, INPUTS_HELP, count_of};
use crate::numbers::rounded;
use crate::output::{self, Output, escaped_name, object};
use crate::progress::Progress;
use crate::writing;

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

pub(crate) fn run(args: &DeleteArgs, progress: &Progress) -> Outcome {
    let bits = Width::of_store(&args.store)?;
    if !args.id.is_empty() || args.ids.is_some() {
        each_width!(bits, type F => delete_named::<F>(args, progress))
    } else {
        each_width!(bits, type F => delete_inputs::<F>(args, progress))
    }
}

fn delete_inputs<F: Fingerprint>(args: &DeleteArgs, progress: &Progress) -> Outcome {
    let inputs = args.documents.inputs(&args.inputs, progress)?;
    let kind = inputs::kind(&inputs)?;
    let mut options = StoreOptions { create: false, ..StoreOptions::default() };
    let profile = match kind {
        InputKind::Documents => args.documents.profile.of_store(&Snapshot::<F>::open(&args.store)?)?,
        InputKind::Fingerprints => Profile::default(),
    };
    if kind == InputKind::Documents {
        // Texts become other fingerprints by another profile: nothing would be found, or something else.
        options.profile = Some(profile.to_string());
    }
    let store = writing::open::<F>(&args.store, options)?;
    let (counts, deleted) =
        delete::delete_inputs(&store, &inputs, &profile, args.all_ids, progress).map_err(Failure::usage)?;
    match SimilarSettings::of_store(&store.snapshot())? {
        Some(_) => warn_of_texts(&counts, kind, progress),
        None => warn(&counts, kind, progress),
    }
    Ok(report(args, output::stdout(), counts.read, deleted, "document", progress)?)
}

fn delete_named<F: Fingerprint>(args: &DeleteArgs, progress: &Progress) -> Outcome {
    let mut wanted = args.id.clone();
    if let Some(file) = &args.ids {
        wanted.extend(listed_ids::<F>(args, file)?);
    }
    let store = writing::open::<F>(&args.store, StoreOptions { create: false, ..StoreOptions::default() })?;
    let DeletedIds { asked, deleted, missing } =
        delete_ids(&store, &wanted).map_err(|error| match error {
            Error::BadArgument(reason) => Failure::Usage(reason),
            other => other.into(),
        })?;
    let mut output = output::stdout();
    for id in &missing {
        if args.json {
            output.json(&object! { missing_id: id })?;
        } else {
            output.line(escaped_name(id))?;
        }
    }
    let missing = missing.len() as u64;
    report(args, output, asked, Deleted { deleted, missing }, "id", progress)?;
    if missing == 0 {
        return Ok(());
    }
    Err(Failure::Failed(format!("{}: {} not in the store", args.store.display(), count_of(missing, "id"))))
}

/// The ids of a list.
fn listed_ids<F: Fingerprint>(args: &DeleteArgs, file: &Path) -> Outcome<Vec<String>> {
    let entries = inputs::entries(file, args.documents.null)?;
    if args.documents.null {
        let entries: Vec<Vec<u8>> = entries.into_iter().map(|(_, entry)| entry).collect();
        return Ok(delete::ids_of_bytes(&Snapshot::<F>::open(&args.store)?, &entries)?);
    }
    let id = |(number, entry): (usize, Vec<u8>)| {
        listed_name(&entry).map_err(|reason| inputs::bad_entry(file, number, &reason))
    };
    entries.into_iter().map(id).collect()
}

fn report(
    args: &DeleteArgs,
    mut output: Output,
    read: u64,
    Deleted { deleted, missing }: Deleted,
    what: &str,
    progress: &Progress,
) -> Result<()> {
    if args.json {
        output.json(&object! {
            store: args.store.to_string_lossy(),
            read,
            deleted,
            missing,
            seconds: rounded(progress.seconds()),
        })?;
    } else {
        progress.say(&format!(
            "{}: {} deleted, {missing} not in the store, {:.1} s",
            args.store.display(),
            count_of(deleted, what),
            progress.seconds()
        ));
    }
    output.finish()
}
