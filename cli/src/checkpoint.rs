//! `simstore checkpoint`: copies a store while other processes use it.

use std::path::PathBuf;

use clap::Args;
use simstore::any::Width;
use simstore::{Fingerprint, Snapshot, each_width};

use crate::command_error::CommandResult;
use crate::numbers::{format_bytes, format_count_of, rounded};
use crate::output::{self, object};
use crate::progress::ProgressDisplay;

/// Copy a store, while other processes use it
///
/// The copy is a store of its own. It has all documents that were stored when the command began. On the same file system the two
/// stores share files (hard links), so the copy takes little time and space. Later changes of one do not change the other. Damage of
/// a shared file damages both: a backup against a broken disk has to be on another disk.
#[derive(Debug, Args)]
#[command(after_help = "\
To restore a backup, use it as a store, or make a checkpoint of it where the store was.

With --json, one object is printed at the end: store, copy, fingerprints, ids, bytes (size of all files of the copy), seconds.

Examples:
  simstore checkpoint pages.simstore monday.simstore
  simstore checkpoint --json pages.simstore tuesday.simstore")]
pub(crate) struct CheckpointArgs {
    /// The store
    store: PathBuf,
    /// Folder for the copy: a new one, or an empty one
    copy: PathBuf,
    /// Print a summary as a JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &CheckpointArgs, progress: &ProgressDisplay) -> CommandResult {
    each_width!(Width::from_store(&args.store)?, type F => checkpoint::<F>(args, progress))
}

fn checkpoint<F: Fingerprint>(args: &CheckpointArgs, progress: &ProgressDisplay) -> CommandResult {
    Snapshot::<F>::open_retrying(&args.store)?.checkpoint(&args.copy)?;
    let stats = Snapshot::<F>::open(&args.copy)?.stats();
    if args.json {
        let mut output = output::stdout();
        output.write_json(&object! {
            store: args.store.to_string_lossy(),
            copy: args.copy.to_string_lossy(),
            fingerprints: stats.fingerprints,
            ids: stats.ids,
            bytes: stats.bytes,
            seconds: rounded(progress.elapsed_seconds()),
        })?;
        return Ok(output.finish()?);
    }
    progress.print_summary(&format!(
        "{}: a copy of {} with {}, {}",
        args.copy.display(),
        args.store.display(),
        format_count_of(stats.fingerprints, "fingerprint"),
        format_bytes(stats.bytes),
    ));
    Ok(())
}
