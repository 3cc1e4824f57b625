//! `simstore build --similar`: a store of similar documents, all at once.

use std::fs;

use simstore::store::is_store;
use simstore::{Error, StoreOptions};
use simstore_corpus::add::{AddOptions, add};
use simstore_corpus::{InputKind, profile_of_texts};
use simstore_text::open_similar;

use super::{BuildArgs, report};
use crate::add::settings_of;
use crate::counts::warn_of_texts;
use crate::failure::{Failure, Outcome, complain};
use crate::inputs;
use crate::output::UNFINISHED;
use crate::progress::Progress;

/// Documents are added under a hidden name, which becomes that of the store when all are there.
pub(super) fn build(args: &BuildArgs, similar: f64, progress: &Progress) -> Outcome {
    let inputs = args.documents.inputs(&args.inputs, progress)?;
    if inputs::kind(&inputs)? == InputKind::Fingerprints {
        return Err(Failure::Usage("--similar is for documents: the inputs hold fingerprints".to_owned()));
    }
    let settings = settings_of(similar, args.recall, args.with_texts)?;
    let path = &args.store;
    if path.try_exists().map_err(Error::io(path, "look for"))? {
        let found = if is_store(path) { "there is a store" } else { "there is something else" };
        let message = format!("{}: {found}: name another, or add to it with `simstore add`", path.display());
        return Err(Failure::Failed(message));
    }
    let profile = match args.documents.profile.given()? {
        Some(profile) => profile,
        None => profile_of_texts(&inputs, "profile", progress),
    };
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => ".".as_ref(),
    };
    fs::create_dir_all(parent).map_err(Error::io(parent, "create"))?;
    let hidden = tempfile::Builder::new().prefix(".simstore-build-").tempdir_in(parent);
    let hidden = hidden.map_err(Error::io(parent, "create a folder in"))?;
    UNFINISHED.insert(hidden.path().to_path_buf());
    let building = hidden.path().join("store");
    let options = StoreOptions {
        profile: Some(profile.to_string()),
        memory: args.memory,
        compaction: false,
        ..StoreOptions::default()
    };
    let store = open_similar(&building, options, settings)?;
    let added = AddOptions { names: args.names, ..AddOptions::default() };
    let added = add(&store, &inputs, &profile, &added, &mut (), progress).map_err(Failure::usage)?;
    store.compact()?;
    drop(store);
    fs::rename(&building, path).map_err(Error::io(path, "name"))?;
    UNFINISHED.remove(hidden.path());
    warn_of_texts(&added.counts, InputKind::Documents, progress);
    if added.added == 0 {
        complain("warning: no text in the input; the store is empty");
    }
    report::<u64>(args, &simstore::Snapshot::open(path)?, added.counts, progress)
}
