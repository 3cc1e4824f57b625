//! Documents into the store, in batches, with how far their files have been read.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use simstore::corpus::DocumentId;
use simstore::{Batch, Durability, Fingerprint, Insertion, Match, Store};

use super::known::Known;
use super::sources::Sources;
use super::trail::Trail;
use super::{AddArgs, DurabilityArg};
use crate::failure::{Failure, Outcome};
use crate::inputs::{Counts, Item, count_of};
use crate::naming::{Id, NO_ID_LEFT, Naming};
use crate::numbers::rounded;
use crate::output::{Output, column};
use crate::progress::Progress;

/// Documents after which what was taken is written, where nobody waits for each; and files.
const BATCH: usize = 1024;
const BATCH_FILES: usize = 64;

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
    carried_on: u64,
    changed: u64,
    empty: u64,
    short: u64,
    bad: u64,
    seconds: f64,
}

/// A file that is being read.
struct Reading {
    /// Among the sources.
    place: usize,
    trail: Trail,
}

/// Takes documents, and stores those that are new.
pub(super) struct Adding<'a, F: Fingerprint> {
    store: &'a Store<F>,
    args: &'a AddArgs,
    sources: &'a Sources,
    reading: Option<Reading>,
    batch: Batch<'a, F>,
    /// Documents since something was written.
    waiting: usize,
    /// Of these, how many are in the batch.
    in_batch: u64,
    /// How far files have been read since something was written.
    trails: BTreeMap<&'a str, Trail>,
    known: Known<F>,
    naming: Naming,
    /// For a document that has a name; none is left after 2^64 - 1.
    next_id: Option<u64>,
    /// None when whoever read it has had enough.
    output: Option<Output>,
    pub(super) counts: Counts,
    added: u64,
    stored_before: u64,
    duplicates: u64,
    carried_on: u64,
}

impl<'a, F: Fingerprint> Adding<'a, F> {
    pub(super) fn new(store: &'a Store<F>, args: &'a AddArgs, sources: &'a Sources) -> Self {
        let (of_store, next_id) = Naming::of_store(&store.snapshot());
        Adding {
            store,
            args,
            sources,
            reading: None,
            batch: store.batch(),
            waiting: 0,
            in_batch: 0,
            trails: BTreeMap::new(),
            known: Known::new(store.snapshot()),
            naming: if args.names { Naming::Names } else { of_store },
            next_id,
            output: Some(Output::stdout()),
            counts: Counts { read: sources.read_before, ..Counts::default() },
            added: 0,
            stored_before: 0,
            duplicates: 0,
            carried_on: sources.read_before,
        }
    }

    fn durability(&self) -> Durability {
        match self.args.durability {
            DurabilityArg::Os => Durability::Os,
            DurabilityArg::Sync => Durability::Group(Duration::ZERO),
        }
    }

    /// Takes a document: each comes with all those before it in its file.
    pub(super) fn take(&mut self, item: &Item<F>) -> Outcome {
        if !self.is_new(item)? {
            self.counts.read += 1;
            self.carried_on += 1;
            return Ok(());
        }
        self.store(item)?;
        self.counts.count(item);
        self.waiting += 1;
        let is_full = self.waiting >= BATCH || self.trails.len() >= BATCH_FILES;
        if is_full { self.write() } else { Ok(()) }
    }

    /// Whether a document was not read before; takes note of it.
    fn is_new(&mut self, item: &Item<F>) -> Outcome<bool> {
        let Some(place) = self.sources.place_of(&item.path) else { return Ok(true) };
        if self.reading.as_ref().is_none_or(|reading| reading.place != place) {
            self.end_file()?;
            self.reading = Some(Reading { place, trail: Trail::default() });
        }
        let Some(reading) = &mut self.reading else { return Ok(true) };
        let source = &self.sources.to_read[place];
        let before = reading.trail.end;
        reading.trail.push(item.line, item.checksum);
        if before.documents < source.start.documents {
            return Ok(false);
        }
        if before.documents == source.start.documents && before != source.start {
            return Err(source.changed_meanwhile());
        }
        if let Some(key) = &source.key {
            self.trails.insert(key, reading.trail);
        }
        Ok(true)
    }

    /// Nothing more comes of the file that was being read.
    fn end_file(&mut self) -> Outcome {
        let Some(Reading { place, trail }) = self.reading.take() else { return Ok(()) };
        let source = &self.sources.to_read[place];
        if trail.end.documents <= source.start.documents && trail.end != source.start {
            return Err(source.changed_meanwhile());
        }
        if let Some(key) = &source.key {
            self.trails.insert(key, trail);
        }
        Ok(())
    }

    fn store(&mut self, item: &Item<F>) -> Outcome {
        let next = self.next_id;
        let id =
            if item.has_id { item.id.clone() } else { self.numbered().map_err(|reason| item.bad(reason))? };
        let (id, name) = self.naming.assign(id, next).map_err(|reason| item.bad(reason))?;
        let Some(fingerprint) = item.fingerprint else { return Ok(()) };
        let is_known = match &name {
            Some(name) => self.known.enter(fingerprint, name)?,
            // The same pair twice is one; it is only looked for where it is likely.
            None if self.is_read_again() => self.store.snapshot().contains_pair(fingerprint, id)?,
            None => false,
        };
        if is_known {
            self.stored_before += 1;
            return Ok(());
        }
        match &name {
            Some(name) => self.batch.insert_named(fingerprint, id, name)?,
            None => self.batch.insert(fingerprint, id),
        }
        if self.args.if_new {
            let earlier = self.write_if_new(fingerprint)?;
            if !earlier.is_empty() {
                self.duplicates += 1;
                if let Some(name) = &name {
                    self.known.forget(fingerprint, name);
                }
                return self.print(item, &earlier);
            }
            self.added += 1;
        } else {
            self.in_batch += 1;
        }
        if next.is_some_and(|next| id >= next) {
            self.next_id = id.checked_add(1);
        }
        Ok(())
    }

    /// Whether the documents that come now may have been read before.
    fn is_read_again(&self) -> bool {
        let has_changed = |reading: &Reading| self.sources.to_read[reading.place].has_changed;
        self.args.again || self.reading.as_ref().is_some_and(has_changed)
    }

    /// The id of a fingerprint that has none.
    fn numbered(&self) -> Result<DocumentId, String> {
        self.next_id.map(DocumentId::Number).ok_or_else(|| NO_ID_LEFT.to_owned())
    }

    /// Puts how far files have been read into the batch. What was printed of what was read has to be out before.
    fn mark(&mut self) -> Outcome {
        let flushed = self.output.as_mut().map_or(Ok(()), Output::flush);
        self.unless_closed(flushed)?;
        for (key, trail) in std::mem::take(&mut self.trails) {
            self.batch.mark(key, &trail.to_bytes())?;
        }
        Ok(())
    }

    /// Writes what is in the batch unless something stored is near; what that is.
    fn write_if_new(&mut self, fingerprint: F) -> Outcome<Vec<Match<F>>> {
        let trails = self.trails.clone();
        self.mark()?;
        let batch = std::mem::replace(&mut self.batch, self.store.batch());
        match batch.commit_if_new(fingerprint, self.durability())? {
            Insertion::Inserted => {
                self.waiting = 0;
                Ok(Vec::new())
            }
            Insertion::DuplicateOf(matches) => {
                self.trails = trails;
                Ok(matches)
            }
        }
    }

    /// Writes what was taken.
    fn write(&mut self) -> Outcome {
        self.mark()?;
        let batch = std::mem::replace(&mut self.batch, self.store.batch());
        batch.commit(self.durability())?;
        self.added += std::mem::take(&mut self.in_batch);
        self.waiting = 0;
        self.known.trim(|| self.store.snapshot());
        Ok(())
    }

    /// Writes the rest.
    pub(super) fn finish(&mut self) -> Outcome {
        self.end_file()?;
        self.write()
    }

    /// A store comes before what is said of it: it is written on when nobody listens any more.
    fn unless_closed(&mut self, printed: Outcome) -> Outcome {
        match printed {
            Err(Failure::Closed) => {
                self.output = None;
                Ok(())
            }
            other => other,
        }
    }

    fn print(&mut self, item: &Item<F>, earlier: &[Match<F>]) -> Outcome {
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
