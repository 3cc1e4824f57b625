//! Adds documents to the store in batches, and records how far their files have been read.

use std::collections::{BTreeMap, HashSet};

use super::known::Known;
use super::listener::Listener;
use super::options::{AddOptions, Added};
use super::read_position::Trail;
use super::same_id::{SameId, Stored};
use super::similar::Similar;
use super::sources::Sources;
use crate::inputs::item::Malformed;
use crate::naming::{NO_ID_LEFT, Naming};
use crate::{Counts, Item};
use simstore::error::excerpt;
use simstore::{Error, Fingerprint, Insertion, Match, Result, Store, Transaction};
use simstore_io::DocumentId;
use simstore_io::document::escaped;
use simstore_text::{Kept, StoredTexts};

/// A batch is written after this many documents, or files. With `if_new`, each document is written at once.
const BATCH: usize = 1024;
const BATCH_FILES: usize = 64;
/// Documents whose ids are looked up together.
const BATCH_OF_IDS: usize = 1 << 17;
/// A batch is written when it takes this many bytes in the log.
const BATCH_BYTES: usize = 1 << 20;

/// A file that is being read.
struct Reading {
    /// Index in the sources.
    place: usize,
    trail: Trail,
}

/// Takes documents and stores the new ones.
pub(super) struct Adding<'a, F: Fingerprint, L> {
    store: &'a Store<F>,
    options: &'a AddOptions,
    sources: &'a Sources,
    listener: &'a mut L,
    reading: Option<Reading>,
    batch: Transaction<'a, F>,
    /// Documents taken since the last write.
    waiting: usize,
    /// Documents in the batch.
    in_batch: u64,
    /// How far files have been read since the last write, by key of the file.
    trails: BTreeMap<&'a str, Trail>,
    known: Known<F>,
    /// Only in a store of similar documents.
    similar: Option<Similar>,
    /// Documents whose ids are not looked up yet.
    queue: Vec<Item<F>>,
    /// Whether taking a document has failed.
    has_failed: bool,
    naming: Naming,
    /// Next free id, for documents with a name or without an id. `None` after 2^64 - 1.
    next_id: Option<u64>,
    /// Malformed documents found here.
    malformed: Malformed<'a>,
    added: Added,
}

impl<'a, F: Fingerprint, L: Listener<F>> Adding<'a, F, L> {
    pub(super) fn new(
        store: &'a Store<F>,
        options: &'a AddOptions,
        sources: &'a Sources,
        texts: Option<StoredTexts>,
        listener: &'a mut L,
        malformed: Malformed<'a>,
    ) -> Result<Self> {
        let (of_store, next_id) = Naming::of_store(&store.snapshot());
        let mut added =
            Added { carried_on: sources.read_before, changed: sources.changed, ..Added::default() };
        added.counts.read = sources.read_before;
        Ok(Adding {
            store,
            options,
            sources,
            listener,
            reading: None,
            batch: store.transaction(),
            waiting: 0,
            in_batch: 0,
            trails: BTreeMap::new(),
            known: Known::new(store.snapshot()),
            similar: texts.map(|texts| Similar::new(store, texts, options.shared_names)).transpose()?,
            queue: Vec::new(),
            has_failed: false,
            naming: if options.names { Naming::Names } else { of_store },
            next_id,
            malformed,
            added,
        })
    }

    /// Takes the next document of a file. The documents of a file come in order.
    pub(super) fn take(&mut self, item: Item<F>) -> Result<()> {
        self.has_failed = true;
        self.take_whole(item)?;
        self.has_failed = false;
        Ok(())
    }

    fn take_whole(&mut self, item: Item<F>) -> Result<()> {
        if !self.is_new(&item)? {
            self.added.counts.read += 1;
            self.added.carried_on += 1;
            return Ok(());
        }
        let is_full = if self.options.same_id == SameId::Both {
            self.store(&item)?;
            self.added.counts.count(&item);
            self.waiting + 1 >= BATCH || self.trails.len() >= BATCH_FILES
        } else {
            self.added.counts.count(&item);
            self.queue.push(item);
            self.queue.len() >= BATCH_OF_IDS
        };
        self.waiting += 1;
        if is_full { self.write() } else { Ok(()) }
    }

    /// Returns whether a document is new, and records that it has been read.
    fn is_new(&mut self, item: &Item<F>) -> Result<bool> {
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

    /// Ends the file that was being read: none of its documents follows.
    fn end_file(&mut self) -> Result<()> {
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

    fn store(&mut self, item: &Item<F>) -> Result<()> {
        let (id, name) = self.identify(item)?;
        let Some(fingerprint) = item.fingerprint else { return Ok(()) };
        if let (Some(similar), Some(sketched)) = (&self.similar, item.sketched.as_ref()) {
            let kept = similar.keep(item, *sketched)?;
            return self.store_similar(item, id, name.as_deref(), &kept);
        }
        let is_known = match &name {
            Some(name) => self.known.enter(fingerprint, name)?,
            // Equal pairs are stored once. Looks for one only if it is likely.
            None if self.is_read_again() => self.store.snapshot().contains_pair(fingerprint, id)?,
            None => false,
        };
        if is_known {
            self.added.known += 1;
            return Ok(());
        }
        self.insert(fingerprint, id, name.as_deref())?;
        if self.options.if_new {
            let earlier = self.write_unless(|_, _| Ok(true))?;
            if !earlier.is_empty() {
                self.added.duplicates += 1;
                if let Some(name) = &name {
                    self.known.forget(fingerprint, name);
                }
                return self.listener.duplicate(item, &earlier, &self.store.snapshot());
            }
        }
        self.take_id(id);
        Ok(())
    }

    /// Stores a document in a store of similar documents.
    fn store_similar(&mut self, item: &Item<F>, id: u64, name: Option<&str>, kept: &Kept) -> Result<()> {
        let Some(similar) = &mut self.similar else { return Ok(()) };
        match similar.is_known(&self.store.snapshot(), kept, id, name)? {
            None => {}
            Some(true) => {
                self.added.known += 1;
                return Ok(());
            }
            Some(false) => {
                let called = name.map_or_else(
                    || format!("the id {id}"),
                    |name| format!("the name `{}`", escaped(&excerpt(name))),
                );
                return Err(
                    item.bad(format!("{called} is stored with another text; delete that document first"))
                );
            }
        }
        kept.insert(&mut self.batch, id, name)?;
        self.in_batch += 1;
        if self.options.if_new {
            let (store, mut earlier) = (self.store, Vec::new());
            self.write_unless(|similar, matches| {
                let Some(similar) = similar else { return Ok(false) };
                earlier = similar.among(&store.snapshot(), item, kept, matches)?;
                Ok(!earlier.is_empty())
            })?;
            if !earlier.is_empty() {
                self.added.duplicates += 1;
                return self.listener.similar(item, &earlier);
            }
        }
        if let Some(similar) = &mut self.similar {
            similar.enter(kept, id, name);
        }
        self.take_id(id);
        if self.batch.bytes() >= BATCH_BYTES { self.write() } else { Ok(()) }
    }

    /// Returns the id of a document, and its name if it has one.
    fn identify(&mut self, item: &Item<F>) -> Result<(u64, Option<String>)> {
        let id = match self.next_id {
            _ if item.has_id => item.id.clone(),
            Some(next) => DocumentId::Number(next),
            None => return Err(item.bad(NO_ID_LEFT.to_owned())),
        };
        self.naming.assign(id, self.next_id).map_err(|reason| item.bad(reason))
    }

    fn insert(&mut self, fingerprint: F, id: u64, name: Option<&str>) -> Result<()> {
        match name {
            Some(name) => self.batch.insert_named(fingerprint, id, name)?,
            None => self.batch.insert(fingerprint, id),
        }
        self.in_batch += 1;
        Ok(())
    }

    /// Marks an id as used: no other document gets it.
    fn take_id(&mut self, id: u64) {
        if self.next_id.is_some_and(|next| id >= next) {
            self.next_id = id.checked_add(1);
        }
    }

    /// Stores the queued documents, after one look-up of all their ids.
    fn store_queued(&mut self) -> Result<()> {
        let mut queued = Vec::new();
        for item in std::mem::take(&mut self.queue) {
            match self.identify(&item) {
                Ok((id, name)) => {
                    self.take_id(id);
                    queued.push((item, id, name));
                }
                Err(error) => self.refuse(error)?,
            }
        }
        let called =
            |id: u64, name: &Option<String>| name.clone().map_or(DocumentId::Number(id), DocumentId::Name);
        let ids: HashSet<DocumentId> = queued.iter().map(|(_, id, name)| called(*id, name)).collect();
        let mut stored = Stored::find(&self.store.snapshot(), ids.iter())?;
        for (item, id, name) in queued {
            let called = called(id, &name);
            let others = stored.others(&called, item.fingerprint);
            let is_stored = stored.len(&called) > others.len();
            if self.options.same_id == SameId::Refuse && !others.is_empty() && !is_stored {
                let refused = item.bad(format!(
                    "the id `{}` is stored with another fingerprint",
                    escaped(&excerpt(&called.to_string()))
                ));
                self.refuse(refused)?;
                continue;
            }
            if self.options.same_id == SameId::Replace && !others.is_empty() {
                others.iter().for_each(|&(fingerprint, id)| self.batch.delete(fingerprint, id));
                stored.forget(&called, &others);
                self.added.replaced += 1;
            }
            let Some(fingerprint) = item.fingerprint else { continue };
            if is_stored {
                self.added.known += 1;
                continue;
            }
            self.insert(fingerprint, id, name.as_deref())?;
            stored.enter(&called, fingerprint, id);
            if self.batch.bytes() >= BATCH_BYTES {
                self.commit()?;
            }
        }
        Ok(())
    }

    /// Skips a document that was already counted, or ends the work.
    fn refuse(&mut self, error: Error) -> Result<()> {
        self.malformed.take(error)?;
        self.added.counts.read -= 1;
        Ok(())
    }

    /// Whether the next documents may have been read before.
    fn is_read_again(&self) -> bool {
        let has_changed = |reading: &Reading| self.sources.to_read[reading.place].has_changed;
        self.options.again || self.reading.as_ref().is_some_and(has_changed)
    }

    /// Adds to the batch how far files have been read. First flushes the listener, since later calls do not report
    /// these documents again.
    fn mark(&mut self) -> Result<()> {
        self.listener.flush()?;
        for (key, trail) in std::mem::take(&mut self.trails) {
            self.batch.mark(key, &trail.to_bytes())?;
        }
        Ok(())
    }

    /// Writes the batch, unless stored matches of its fingerprints are duplicates. Returns these matches.
    fn write_unless(
        &mut self,
        mut is_duplicate: impl FnMut(Option<&Similar>, &[Match<F>]) -> Result<bool>,
    ) -> Result<Vec<Match<F>>> {
        let trails = self.trails.clone();
        self.mark()?;
        let batch = std::mem::replace(&mut self.batch, self.store.transaction());
        let similar = self.similar.as_ref();
        match batch.commit_unless(self.options.durability, |matches| is_duplicate(similar, matches))? {
            Insertion::Inserted => {
                self.waiting = 0;
                let added = std::mem::take(&mut self.in_batch);
                self.added.added += added;
                self.similar.iter_mut().try_for_each(|similar| similar.written(self.store, added))?;
                Ok(Vec::new())
            }
            Insertion::DuplicateOf(matches) => {
                self.trails = trails;
                self.in_batch = 0;
                Ok(matches)
            }
        }
    }

    /// Writes all documents taken so far.
    fn write(&mut self) -> Result<()> {
        self.store_queued()?;
        self.mark()?;
        self.commit()?;
        self.waiting = 0;
        self.known.trim(|| self.store.snapshot());
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        let batch = std::mem::replace(&mut self.batch, self.store.transaction());
        batch.commit(self.options.durability)?;
        let added = std::mem::take(&mut self.in_batch);
        self.similar.iter_mut().try_for_each(|similar| similar.written(self.store, added))?;
        self.added.added += added;
        Ok(())
    }

    /// Writes the documents taken before a read error. Writes nothing if taking a document has failed: the state of the
    /// batch is unknown then.
    pub(super) fn keep(&mut self) -> Result<()> {
        if self.has_failed { Ok(()) } else { self.write() }
    }

    /// Writes the rest. `visited` has the counts of malformed and skipped entries in the files read.
    pub(super) fn finish(&mut self, visited: Counts) -> Result<Added> {
        self.end_file()?;
        self.write()?;
        let Counts { bad, other_names, passed_over, .. } = visited;
        self.added.counts.bad = bad + self.malformed.count();
        self.added.counts.other_names = other_names + self.sources.listed.other_names;
        self.added.counts.passed_over = passed_over + self.sources.listed.passed_over;
        if self.similar.is_some() {
            // Short texts are found by their features.
            self.added.counts.short = 0;
        }
        Ok(self.added)
    }
}
