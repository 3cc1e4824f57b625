//! `simstore delete`: documents or fingerprints out of a store.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use simstore::corpus::{DocumentId, InputKind};
use simstore::text::Profile;
use simstore::{Durability, Fingerprint, Options, Snapshot, Store};

use crate::failure::Outcome;
use crate::inputs::{self, DocumentArgs, INPUTS_HELP, Item, count_of};
use crate::numbers::rounded;
use crate::output::Output;
use crate::progress::Progress;
use crate::width::{Bits, by_width};

const EXAMPLES: &str = "\
With --json, one object is printed at the end:
  store, read           the store, and how many documents or fingerprints were read
  deleted, missing      how many were stored, and how many were not
  seconds               time taken

Examples:
  simstore delete pages.simstore samples/zh.jsonl
  echo 'c0ffee0123456789	17' | simstore delete pages.simstore -
  echo 'c0ffee0123456789' | simstore delete --all-ids pages.simstore -";

/// Delete documents or fingerprints from a store
///
/// What is deleted is a fingerprint with an id: a document as it was added, or a line HEX<TAB>ID. It is not found any
/// more from then on; its space comes back when segments are merged, at the latest by `simstore compact`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{INPUTS_HELP}\n\n{EXAMPLES}"))]
pub(crate) struct DeleteArgs {
    /// The store
    store: PathBuf,
    /// Documents or fingerprints; `-` is standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Delete each fingerprint with all of its ids
    #[arg(long)]
    all_ids: bool,
    /// Print a summary as a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    documents: DocumentArgs,
}

#[derive(Serialize)]
struct Summary<'a> {
    store: &'a str,
    read: u64,
    deleted: u64,
    missing: u64,
    seconds: f64,
}

pub(crate) fn run(args: &DeleteArgs, progress: &Progress) -> Outcome {
    by_width!(Bits::of_store(&args.store)?, delete(args, progress))
}

fn delete<F: Fingerprint>(args: &DeleteArgs, progress: &Progress) -> Outcome {
    let kind = args.documents.kind(&args.inputs)?;
    let mut options = Options::default().create(false);
    let profile = match kind {
        InputKind::Documents => {
            let stored = Snapshot::<F>::open(&args.store)?;
            args.documents.profile.profile(Some(stored.profile()))?
        }
        InputKind::Fingerprints => Profile::default(),
    };
    if kind == InputKind::Documents {
        // Texts become other fingerprints by another profile: nothing would be found, or something else.
        options = options.profile(&profile.to_string());
    }
    let store = Store::<F>::open(&args.store, options)?;
    let (mut deleted, mut missing) = (0, 0);
    let counts = inputs::visit::<F>(&args.inputs, kind, &args.documents, &profile, progress, |item| {
        let Some(fingerprint) = item.fingerprint else { return Ok(()) };
        let ids = ids_of(&store, &item, fingerprint, args.all_ids)?;
        let mut found = false;
        for id in ids {
            found |= store.delete_durable(fingerprint, id, Durability::Os)?;
        }
        *(if found { &mut deleted } else { &mut missing }) += 1;
        Ok(())
    })?;
    store.sync()?;
    counts.warn(kind, progress);
    if args.json {
        let mut output = Output::stdout();
        output.json(&Summary {
            store: &args.store.to_string_lossy(),
            read: counts.read,
            deleted,
            missing,
            seconds: rounded(progress.seconds()),
        })?;
        return output.finish();
    }
    progress.say(&format!(
        "{}: {} deleted, {} not there, {:.1} s",
        args.store.display(),
        count_of(deleted, "document"),
        missing,
        progress.seconds()
    ));
    Ok(())
}

/// The ids of a fingerprint that an input means.
fn ids_of<F: Fingerprint>(store: &Store<F>, item: &Item<F>, fingerprint: F, all: bool) -> Outcome<Vec<u64>> {
    let snapshot = store.snapshot();
    if !snapshot.keeps_ids() {
        return Ok(vec![0]);
    }
    let stored: Vec<u64> = snapshot.query(fingerprint, 0)?.iter().filter_map(|found| found.id).collect();
    if all {
        return Ok(stored);
    }
    match &item.id {
        DocumentId::Number(id) if stored.is_empty() || snapshot.name(stored[0])?.is_none() => Ok(vec![*id]),
        id => {
            let name = id.to_string();
            let mut ids = Vec::new();
            for id in stored {
                if snapshot.name(id)?.as_deref() == Some(&name) {
                    ids.push(id);
                }
            }
            Ok(ids)
        }
    }
}
