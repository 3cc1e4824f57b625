//! Output of `simstore add`: duplicates and the summary.

use std::io::ErrorKind;
use std::path::Path;

use serde::Serialize;
use simstore::{Error, Fingerprint, Match, Result, Snapshot};
use simstore_corpus::Item;
use simstore_corpus::add::{AddResult, DuplicateObserver};
use simstore_io::{DocumentId, IdRef};
use simstore_text::SimilarDocument;

use crate::command_error::CommandResult;
use crate::numbers::{format_count_of, rounded};
use crate::output::{self, Output, escape_name, object};
use crate::progress::ProgressDisplay;

/// JSON object that describes a stored near-duplicate of an input document.
#[derive(Serialize)]
struct StoredDuplicate {
    id: Option<u64>,
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<f64>,
}

/// Prints duplicates while documents are added, and a summary at the end.
pub(super) struct AddReport<'a> {
    store: &'a Path,
    json: bool,
    if_new: bool,
    /// Standard output; `None` after its reader has closed it.
    output: Option<Output>,
}

impl<F: Fingerprint> DuplicateObserver<F> for AddReport<'_> {
    fn near_duplicate(&mut self, item: &Item<F>, matches: &[Match<F>], store: &Snapshot<F>) -> Result<()> {
        let Some(output) = &mut self.output else { return Ok(()) };
        let printed = print(output, self.json, item, matches, store);
        self.ignore_broken_pipe(printed)
    }

    fn similar_duplicate(&mut self, item: &Item<F>, matches: &[SimilarDocument]) -> Result<()> {
        let Some(output) = &mut self.output else { return Ok(()) };
        let printed = print_similar(output, self.json, &item.id, matches);
        self.ignore_broken_pipe(printed)
    }

    fn flush(&mut self) -> Result<()> {
        let flushed =
            self.output.as_mut().map_or(Ok(()), |output| output.write_with(|output| output.flush()));
        self.ignore_broken_pipe(flushed)
    }
}

fn print<F: Fingerprint>(
    output: &mut Output,
    json: bool,
    item: &Item<F>,
    matches: &[Match<F>],
    store: &Snapshot<F>,
) -> Result<()> {
    let name = |stored: &Match<F>| stored.id.map_or(Ok(None), |id| store.name(id));
    if json {
        let duplicates = matches.iter().map(|stored| {
            let (name, distance) = (name(stored)?, Some(stored.distance));
            Ok(StoredDuplicate { id: stored.id, name, distance, similarity: None, error: None })
        });
        let duplicate_of = duplicates.collect::<Result<Vec<StoredDuplicate>>>()?;
        return output.write_json(&object! { id: IdRef::from(&item.id), duplicate_of });
    }
    for stored in matches {
        let stored_id = stored.id.map_or_else(|| stored.fingerprint.to_hex(), |id| id.to_string());
        let label = name(stored)?.unwrap_or(stored_id);
        let id = item.id.to_string();
        output.write_line(format_args!(
            "{}\t{}\t{}",
            escape_name(&id),
            escape_name(&label),
            stored.distance
        ))?;
    }
    Ok(())
}

fn print_similar(
    output: &mut Output,
    json: bool,
    id: &DocumentId,
    matches: &[SimilarDocument],
) -> Result<()> {
    if json {
        let duplicates = matches.iter().map(|stored| StoredDuplicate {
            id: Some(stored.id),
            name: stored.name.clone(),
            distance: None,
            similarity: Some(stored.estimate.similarity),
            error: Some(stored.estimate.standard_error),
        });
        let duplicate_of: Vec<StoredDuplicate> = duplicates.collect();
        return output.write_json(&object! { id: IdRef::from(id), duplicate_of });
    }
    let id = id.to_string();
    for stored in matches {
        let label = stored.name.clone().unwrap_or_else(|| stored.id.to_string());
        let estimate = crate::similar_query::format_estimate(stored.estimate);
        output.write_line(format_args!("{}\t{}\t{estimate}", escape_name(&id), escape_name(&label)))?;
    }
    Ok(())
}

impl<'a> AddReport<'a> {
    pub(super) fn new(store: &'a Path, json: bool, if_new: bool) -> Self {
        AddReport { store, json, if_new, output: Some(output::stdout()) }
    }

    /// Returns `printed`, the result of a write to standard output. If the write failed because the reader closed standard
    /// output, drops the output and returns `Ok`, so that adding to the store continues.
    fn ignore_broken_pipe(&mut self, printed: Result<()>) -> Result<()> {
        match printed {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::BrokenPipe => {
                self.output = None;
                Ok(())
            }
            other => other,
        }
    }

    /// Prints the summary. `near` says what counts as a duplicate, such as `within 3 bits`. `new_store` describes the store,
    /// if this run created it.
    pub(super) fn finish(
        mut self,
        added: &AddResult,
        near: &str,
        new_store: Option<String>,
        progress: &ProgressDisplay,
    ) -> CommandResult {
        let AddResult { counts, added, duplicates, replaced, already_stored, previously_read, changed_files } =
            *added;
        if !self.json {
            let mut line = format!("{}: ", self.store.display());
            if let Some(store) = new_store {
                line += &format!("{store}, ");
            }
            line += &format!("{} added", format_count_of(added, "document"));
            if self.if_new {
                line += &format!(", {} not added ({near})", format_count_of(duplicates, "duplicate"));
            }
            if replaced > 0 {
                line += &format!(", {} replaced", format_count_of(replaced, "stored document"));
            }
            if already_stored > 0 {
                line += &format!(", {} already stored", format_count_of(already_stored, "document"));
            }
            if previously_read > 0 {
                line += &format!(", {} read by an earlier run", format_count_of(previously_read, "document"));
            }
            if changed_files > 0 {
                line += &format!(", {} changed since the last run", format_count_of(changed_files, "file"));
            }
            progress.print_summary(&format!("{line}, {:.1} s", progress.elapsed_seconds()));
        }
        let Some(mut output) = self.output.take() else { return Ok(()) };
        if self.json {
            output.write_json(&object! {
                store: self.store.to_string_lossy(),
                documents: counts.read,
                added,
                duplicates,
                known: already_stored,
                replaced,
                carried_on: previously_read,
                changed: changed_files,
                empty: counts.empty,
                short: counts.short,
                bad: counts.malformed,
                other_names: counts.duplicate_paths,
                skipped_files: counts.skipped_files,
                seconds: rounded(progress.elapsed_seconds()),
            })?;
        }
        Ok(output.finish()?)
    }
}
