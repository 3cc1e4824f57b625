//! The report of `simstore add`.

use std::io::ErrorKind;
use std::path::Path;

use serde::Serialize;
use simstore::{Error, Fingerprint, Match, Result, Snapshot};
use simstore_corpus::Item;
use simstore_corpus::add::{Added, Listener};
use simstore_io::{DocumentId, IdRef};
use simstore_text::SimilarDocument;

use crate::failure::Outcome;
use crate::inputs::count_of;
use crate::numbers::rounded;
use crate::output::{self, Output, escaped_name, object};
use crate::progress::Progress;

#[derive(Serialize)]
struct Earlier {
    id: Option<u64>,
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<f64>,
}

/// Prints duplicates as they are found, and the summary.
pub(super) struct Report<'a> {
    store: &'a Path,
    json: bool,
    if_new: bool,
    /// None after the reader of the output has closed it.
    output: Option<Output>,
}

impl<F: Fingerprint> Listener<F> for Report<'_> {
    fn duplicate(&mut self, item: &Item<F>, earlier: &[Match<F>], store: &Snapshot<F>) -> Result<()> {
        let Some(output) = &mut self.output else { return Ok(()) };
        let printed = print(output, self.json, item, earlier, store);
        self.unless_closed(printed)
    }

    fn similar(&mut self, item: &Item<F>, earlier: &[SimilarDocument]) -> Result<()> {
        let Some(output) = &mut self.output else { return Ok(()) };
        let printed = print_similar(output, self.json, &item.id, earlier);
        self.unless_closed(printed)
    }

    fn flush(&mut self) -> Result<()> {
        let flushed = self.output.as_mut().map_or(Ok(()), |output| output.draw(|output| output.flush()));
        self.unless_closed(flushed)
    }
}

fn print<F: Fingerprint>(
    output: &mut Output,
    json: bool,
    item: &Item<F>,
    earlier: &[Match<F>],
    store: &Snapshot<F>,
) -> Result<()> {
    let name = |found: &Match<F>| found.id.map_or(Ok(None), |id| store.name(id));
    if json {
        let earlier = earlier.iter().map(|found| {
            let (name, distance) = (name(found)?, Some(found.distance));
            Ok(Earlier { id: found.id, name, distance, similarity: None, error: None })
        });
        let duplicate_of = earlier.collect::<Result<Vec<Earlier>>>()?;
        return output.json(&object! { id: IdRef::from(&item.id), duplicate_of });
    }
    for found in earlier {
        let id = found.id.map_or_else(|| found.fingerprint.to_hex(), |id| id.to_string());
        let earlier = name(found)?.unwrap_or(id);
        let id = item.id.to_string();
        output.line(format_args!("{}\t{}\t{}", escaped_name(&id), escaped_name(&earlier), found.distance))?;
    }
    Ok(())
}

fn print_similar(
    output: &mut Output,
    json: bool,
    id: &DocumentId,
    earlier: &[SimilarDocument],
) -> Result<()> {
    if json {
        let earlier = earlier.iter().map(|found| Earlier {
            id: Some(found.id),
            name: found.name.clone(),
            distance: None,
            similarity: Some(found.estimate.similarity),
            error: Some(found.estimate.standard_error),
        });
        let duplicate_of: Vec<Earlier> = earlier.collect();
        return output.json(&object! { id: IdRef::from(id), duplicate_of });
    }
    let id = id.to_string();
    for found in earlier {
        let called = found.name.clone().unwrap_or_else(|| found.id.to_string());
        let estimate = crate::similar::columns(found.estimate);
        output.line(format_args!("{}\t{}\t{estimate}", escaped_name(&id), escaped_name(&called)))?;
    }
    Ok(())
}

impl<'a> Report<'a> {
    pub(super) fn new(store: &'a Path, json: bool, if_new: bool) -> Self {
        Report { store, json, if_new, output: Some(output::stdout()) }
    }

    /// A store comes before what is said of it: it is written on when nobody listens any more.
    fn unless_closed(&mut self, printed: Result<()>) -> Result<()> {
        match printed {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::BrokenPipe => {
                self.output = None;
                Ok(())
            }
            other => other,
        }
    }

    /// Prints the summary. `near` defines a duplicate; `new_store` describes a store that this run created.
    pub(super) fn finish(
        mut self,
        added: &Added,
        near: &str,
        new_store: Option<String>,
        progress: &Progress,
    ) -> Outcome {
        let Added { counts, added, duplicates, replaced, known, carried_on, changed } = *added;
        if !self.json {
            let mut line = format!("{}: ", self.store.display());
            if let Some(store) = new_store {
                line += &format!("{store}, ");
            }
            line += &format!("{} added", count_of(added, "document"));
            if self.if_new {
                line += &format!(", {} not added ({near})", count_of(duplicates, "duplicate"));
            }
            if replaced > 0 {
                line += &format!(", {} replaced", count_of(replaced, "stored document"));
            }
            if known > 0 {
                line += &format!(", {} already stored", count_of(known, "document"));
            }
            if carried_on > 0 {
                line += &format!(", {} read by an earlier run", count_of(carried_on, "document"));
            }
            if changed > 0 {
                line += &format!(", {} changed since the last run", count_of(changed, "file"));
            }
            progress.say(&format!("{line}, {:.1} s", progress.seconds()));
        }
        let Some(mut output) = self.output.take() else { return Ok(()) };
        if self.json {
            output.json(&object! {
                store: self.store.to_string_lossy(),
                documents: counts.read,
                added,
                duplicates,
                known,
                replaced,
                carried_on,
                changed,
                empty: counts.empty,
                short: counts.short,
                bad: counts.bad,
                other_names: counts.other_names,
                passed_over: counts.passed_over,
                seconds: rounded(progress.seconds()),
            })?;
        }
        Ok(output.finish()?)
    }
}
