//! What `simstore add` says of what it did.

use serde::Serialize;
use simstore::{Fingerprint, Match};
use simstore_corpus::Item;

use super::adding::Adding;
use crate::failure::{Failure, Outcome};
use crate::inputs::count_of;
use crate::numbers::rounded;
use crate::output::{Output, column};
use crate::progress::Progress;
use simstore_corpus::IdRef as Id;

#[derive(Serialize)]
struct Duplicate<'a> {
    id: Id<'a>,
    duplicate_of: Vec<Earlier>,
}

#[derive(Serialize)]
struct Earlier {
    id: Option<u64>,
    name: Option<String>,
    distance: u32,
}

#[derive(Serialize)]
struct Summary<'a> {
    store: &'a str,
    documents: u64,
    added: u64,
    duplicates: u64,
    known: u64,
    replaced: u64,
    carried_on: u64,
    changed: u64,
    empty: u64,
    short: u64,
    bad: u64,
    seconds: f64,
}

impl<F: Fingerprint> Adding<'_, F> {
    /// A store comes before what is said of it: it is written on when nobody listens any more.
    pub(super) fn unless_closed(&mut self, printed: Outcome) -> Outcome {
        match printed {
            Err(Failure::Closed) => {
                self.output = None;
                Ok(())
            }
            other => other,
        }
    }

    pub(super) fn print(&mut self, item: &Item<F>, earlier: &[Match<F>]) -> Outcome {
        let Some(mut output) = self.output.take() else { return Ok(()) };
        let printed = self.print_to(&mut output, item, earlier);
        self.output = Some(output);
        self.unless_closed(printed)
    }

    fn print_to(&self, output: &mut Output, item: &Item<F>, earlier: &[Match<F>]) -> Outcome {
        let snapshot = self.store.snapshot();
        let name = |found: &Match<F>| found.id.map_or(Ok(None), |id| snapshot.name(id));
        if self.args.json {
            let earlier = earlier
                .iter()
                .map(|found| Ok(Earlier { id: found.id, name: name(found)?, distance: found.distance }));
            let duplicate_of = earlier.collect::<Result<_, simstore::Error>>()?;
            return output.json(&Duplicate { id: Id::from(&item.id), duplicate_of });
        }
        for found in earlier {
            let id = found.id.map_or_else(|| found.fingerprint.to_hex(), |id| id.to_string());
            let earlier = name(found)?.unwrap_or(id);
            let id = item.id.to_string();
            output.line(format_args!("{}\t{}\t{}", column(&id), column(&earlier), found.distance))?;
        }
        Ok(())
    }

    pub(super) fn report(mut self, progress: &Progress) -> Outcome {
        let changed = self.sources.changed;
        if !self.args.json {
            let mut line =
                format!("{}: {} added", self.args.store.display(), count_of(self.added, "document"));
            if self.args.if_new {
                line += &format!(", {} not", count_of(self.duplicates, "duplicate"));
            }
            if self.replaced > 0 {
                line += &format!(", {} replaced", count_of(self.replaced, "other"));
            }
            if self.stored_before > 0 {
                line += &format!(", {} there before", count_of(self.stored_before, "document"));
            }
            if self.carried_on > 0 {
                line += &format!(", {} read before", count_of(self.carried_on, "document"));
            }
            if changed > 0 {
                line += &format!(", {} changed since", count_of(changed, "file"));
            }
            progress.say(&format!("{line}, {:.1} s", progress.seconds()));
        }
        let Some(mut output) = self.output.take() else { return Ok(()) };
        if self.args.json {
            output.json(&Summary {
                store: &self.args.store.to_string_lossy(),
                documents: self.counts.read,
                added: self.added,
                duplicates: self.duplicates,
                known: self.stored_before,
                replaced: self.replaced,
                carried_on: self.carried_on,
                changed,
                empty: self.counts.empty,
                short: self.counts.short,
                bad: self.counts.bad,
                seconds: rounded(progress.seconds()),
            })?;
        }
        output.finish()
    }
}
