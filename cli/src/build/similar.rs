//! `simstore build --similar`: a store of similar documents, all at once.

use std::fs;

use simstore::store::is_store;
use simstore::{Error, StoreOptions};
use simstore_corpus::add::{AddOptions, add};
use simstore_corpus::{InputKind, profile_of_texts};
use simstore_io::output::OutputFolder;
use simstore_text::open_similar;

use super::args::BuildArgs;
use super::report::report;
use crate::add::settings_of;
use crate::counts::warn_of_texts;
use crate::failure::{Failure, Outcome, complain};
use crate::inputs::count_of;
use crate::numbers::bytes;
use crate::output::UNFINISHED;
use crate::progress::Progress;

/// Adds documents to a store in a hidden folder, `.NAME.tmp`, and names it when all are there and durable.
pub(super) fn build(args: &BuildArgs, similar: f64, progress: &Progress) -> Outcome {
    let inputs = args.documents.documents(&args.inputs, "--similar", progress)?;
    let settings = settings_of(similar, args.recall, args.with_texts)?;
    let path = &args.store;
    if path.try_exists().map_err(Error::io(path, "look for"))? {
        let found = if is_store(path) { "a store already exists" } else { "the path already exists" };
        let message = format!("{}: {found}: use another path, or `simstore add` for a store", path.display());
        return Err(Failure::Failed(message));
    }
    let profile = match args.documents.profile.given()? {
        Some(profile) => profile,
        None => profile_of_texts(&inputs, "profile", progress),
    };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(Error::io(parent, "create"))?;
    }
    let building = OutputFolder::create(path, &UNFINISHED).map_err(Failure::usage)?;
    let options = StoreOptions {
        profile: Some(profile.to_string()),
        memory: args.memory,
        compaction: false,
        ..StoreOptions::default()
    };
    let store = open_similar(building.hidden(), options, settings)?;
    let added = AddOptions { names: args.names, ..AddOptions::default() };
    let added = add(&store, &inputs, &profile, &added, &mut (), progress).map_err(Failure::usage)?;
    store.compact()?;
    drop(store);
    building.complete()?.publish()?;
    warn_of_texts(&added.counts, InputKind::Documents, progress);
    if added.added == 0 {
        complain("warning: the inputs have no text; the store is empty");
    }
    let store = simstore::Snapshot::<u64>::open(path)?;
    if args.json {
        return report(args, &store, added.counts, progress);
    }
    progress.say(&format!(
        "{}: {}, {}, {}, {:.1} s",
        path.display(),
        count_of(added.added, "document"),
        settings.describe(),
        bytes(store.stats().bytes),
        progress.seconds()
    ));
    Ok(())
}
