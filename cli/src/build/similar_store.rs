//! `simstore build --similar`: builds a store of similar documents.

use std::fs;

use simstore::store::is_store;
use simstore::{Error, StoreOptions};
use simstore_corpus::add::{AddOptions, add};
use simstore_corpus::{InputKind, default_text_profile};
use simstore_io::output::OutputFolder;
use simstore_text::open_similar_store;

use super::args::BuildArgs;
use super::report::report;
use crate::add::similar_settings;
use crate::command_error::{CommandError, CommandResult, print_message};
use crate::input_warnings::warn_about_texts;
use crate::numbers::{format_bytes, format_count_of};
use crate::output::UNFINISHED_OUTPUTS;
use crate::progress::ProgressDisplay;

/// Adds the documents to a store in a hidden folder, `.NAME.tmp`. When all documents are durable, renames the folder to its final name.
pub(super) fn build(args: &BuildArgs, similar: f64, progress: &ProgressDisplay) -> CommandResult {
    let inputs = args.documents.open_documents(&args.inputs, "--similar", progress)?;
    let settings = similar_settings(similar, args.recall, args.with_texts)?;
    let path = &args.store;
    if path.try_exists().map_err(Error::io(path, "look for"))? {
        let reason = if is_store(path) { "a store already exists" } else { "the path already exists" };
        let message =
            format!("{}: {reason}: use another path, or `simstore add` for a store", path.display());
        return Err(CommandError::Failed(message));
    }
    let profile = match args.documents.profile.requested_profile()? {
        Some(profile) => profile,
        None => default_text_profile(&inputs, "profile", progress),
    };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(Error::io(parent, "create"))?;
    }
    let folder = OutputFolder::create(path, &UNFINISHED_OUTPUTS).map_err(CommandError::usage)?;
    let options = StoreOptions {
        profile: Some(profile.to_string()),
        memory: args.memory,
        compaction: false,
        ..StoreOptions::default()
    };
    let store = open_similar_store(folder.temporary_path(), options, settings)?;
    let options = AddOptions { names: args.names, ..AddOptions::default() };
    let added = add(&store, &inputs, &profile, &options, &mut (), progress).map_err(CommandError::usage)?;
    store.compact()?;
    drop(store);
    folder.complete()?.publish()?;
    warn_about_texts(&added.counts, InputKind::Documents, progress);
    if added.added == 0 {
        print_message("warning: the inputs have no text; the store is empty");
    }
    let store = simstore::Snapshot::<u64>::open(path)?;
    if args.json {
        return report(args, &store, added.counts, progress);
    }
    progress.print_summary(&format!(
        "{}: {}, {}, {}, {:.1} s",
        path.display(),
        format_count_of(added.added, "document"),
        settings.describe(),
        format_bytes(store.stats().bytes),
        progress.elapsed_seconds()
    ));
    Ok(())
}
