//! The last run that added to a store: its unfinished files are completed, and its work is not repeated.

use std::path::PathBuf;

use simstore::{Error, Fingerprint, Result};
use simstore_text::Profile;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::against::{Against, Run};
use super::documents::Corpus;
use super::files::Files;
use super::options::Options;
use super::question::Question;
use simstore_corpus::{Notice, Watch};
use simstore_io::output::place_of;

/// The last run that added to the store, if any.
pub(super) struct LastRun {
    run: Option<Run>,
    /// Files that have got their names only now.
    finished: Vec<PathBuf>,
}

impl LastRun {
    /// Completes the files of the last run, whether or not this run is the same.
    pub(super) fn finished<F: Fingerprint>(
        added_to: Option<&Against<F>>,
        watch: &dyn Watch,
    ) -> Result<LastRun> {
        let run = added_to.map_or(Ok(None), Against::last_run)?;
        let finished = match (added_to, &run) {
            (Some(against), Some(run)) => against.finish(run)?,
            _ => Vec::new(),
        };
        finished.iter().for_each(|path| watch.notice(&Notice::Published(path)));
        Ok(LastRun { run, finished })
    }

    /// How many documents it has added, if it was the same and has written the same files.
    pub(super) fn has_added(&self, run: &str, options: &Options, files: &Files) -> Result<Option<u64>> {
        if let Some(last) = &self.run
            && last.run == run
            && !options.add.is_some_and(|add| add.again)
            && !files.is_empty()
        {
            check_outputs_of(last, files)?;
            return Ok(Some(last.added));
        }
        match files.all().find(|path| self.finished.contains(&place_of(path))) {
            Some(path) => Err(Error::Refused(format!(
                "{}: holds the result of another run that was interrupted: move it, then run this again",
                path.display()
            ))),
            None => Ok(None),
        }
    }
}

/// Identifies a run: a hash of its documents and options. Stores keep the hash, so its input format must not change.
pub(super) fn run_of<F: Fingerprint>(
    options: &Options,
    corpus: &Corpus<F>,
    question: Question,
    profile: &Profile,
) -> Result<String> {
    if options.add.is_none() {
        return Ok(String::new());
    }
    let near = match question {
        Question::Distance(distance) => distance.to_string(),
        Question::Similarity(least) => format!("similar {least} {}", options.recall()),
    };
    let mut how =
        format!("{} {near} {:?} {:?} {profile}", F::BITS, options.cluster_by(question), options.keep);
    // The contents of the other stores affect the result too.
    for store in options.against.iter().skip(1) {
        how += &format!(" {}", place_of(store).display());
    }
    Ok(format!("{:016x}", xxh3_64_with_seed(how.as_bytes(), corpus.checksum()?)))
}

/// Fails unless the outputs that are asked for are there, from a run that was the same.
fn check_outputs_of(last: &Run, files: &Files) -> Result<()> {
    let mut missing = None;
    for path in files.all() {
        let is_there = last.has_written(path) && path.try_exists().map_err(Error::io(path, "look for"))?;
        missing = missing.or((!is_there).then_some(path));
    }
    match missing {
        Some(path) => Err(Error::Refused(format!(
            "this run has already added these documents to the store, but its output ({}) is missing and cannot be reproduced. Option \
             `again` compares with the store as it is now",
            if path.as_os_str() == "-" { "standard output".into() } else { path.to_string_lossy() }
        ))),
        None => Ok(()),
    }
}
