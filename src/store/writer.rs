//! The one place that writes to the log and to the memtable, one transaction at a time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::open::start_log;
use super::shared::{Shared, lock};
use super::view::Recent;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::memtable::Memtable;
use crate::options::Durability;
use crate::segment::Match;
use crate::wal::{LogStart, LogSyncer, LogWriter, Operation, Payload};

/// Memtables that may wait to be flushed; a writer that would add another waits too.
const MOST_FROZEN: usize = 2;

/// A set of writes that is stored as a whole or not at all.
///
/// ```
/// use simstore::{Durability, StoreOptions, Store};
///
/// # let folder = tempfile::tempdir()?;
/// let store = Store::<u64>::open(&folder.path().join("pages"), StoreOptions::default())?;
/// let mut transaction = store.transaction();
/// transaction.insert(0x0123_4567_89ab_cdef, 1);
/// transaction.insert_named(0x0f0f_0f0f_0f0f_0f0f, 2, "https://example.org/")?;
/// transaction.note(2, b"a page")?;
/// transaction.mark("crawl", b"up to page 2")?;
/// transaction.commit(Durability::Sync)?;
/// assert_eq!(store.snapshot().mark("crawl")?.as_deref(), Some(&b"up to page 2"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Transaction<'a, F: Fingerprint> {
    writer: &'a Writer<F>,
    payload: Payload<F>,
    /// Why it cannot be committed: it is too long.
    refused: Option<Error>,
}

impl<'a, F: Fingerprint> Transaction<'a, F> {
    pub(super) fn new(writer: &'a Writer<F>) -> Self {
        Transaction { writer, payload: Payload::default(), refused: None }
    }

    /// Adds a fingerprint with an id. The name and the note of the id stay as they are.
    pub fn insert(&mut self, fingerprint: F, id: u64) {
        let id = self.writer.id(id);
        self.push(&Operation::Insert { fingerprint, id, name: None });
    }

    /// An operation that does not fit makes the commit fail.
    fn push(&mut self, operation: &Operation<'_, F>) {
        if let Err(error) = self.payload.push(operation) {
            self.refused.get_or_insert(error);
        }
    }

    /// Adds a fingerprint with the id and the name of its document, up to 64 KiB of it. The name replaces the one that the
    /// id had.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the name is too long or no UTF-8.
    pub fn insert_named(&mut self, fingerprint: F, id: u64, name: &str) -> Result<()> {
        self.payload.push(&Operation::Insert { fingerprint, id: self.writer.id(id), name: Some(name) })
    }

    /// Removes a pair of fingerprint and id, whether it is there or not, and forgets the name and the note of the id: also
    /// where the id has other fingerprints. To keep them, insert one of these with the name, and give the note again, after this.
    pub fn delete(&mut self, fingerprint: F, id: u64) {
        let id = self.writer.id(id);
        self.push(&Operation::Delete { fingerprint, id });
    }

    /// Keeps some bytes under a key, such as how much of an input has been read: they change with the other writes or not at
    /// all, and so tell after a crash where to carry on.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the key or the value is longer than 4 KiB.
    pub fn mark(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.payload.push(&Operation::Mark { key, value })
    }

    /// Keeps some bytes with a document, beside its name, in the place of those that it had: up to 16 MiB, such as its
    /// compressed text. A [`Transaction::delete`] of a pair with the id forgets them.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if they are too many, or more than the 1 GiB of a transaction has room for.
    pub fn note(&mut self, id: u64, note: &[u8]) -> Result<()> {
        self.payload.push(&Operation::Note { id: self.writer.id(id), note })
    }

    /// Bytes that it takes in the log.
    pub fn bytes(&self) -> usize {
        self.payload.len()
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }

    /// Writes all, and returns when it is as durable as said.
    ///
    /// # Errors
    /// As [`Store::insert`](crate::Store::insert); what was written is then there after the store is opened again, or
    /// not at all.
    pub fn commit(self, durability: Durability) -> Result<()> {
        if let Some(error) = self.refused {
            return Err(error);
        }
        self.writer.shared.check()?;
        if self.payload.is_empty() {
            return Ok(());
        }
        let mut log = self.writer.lock();
        let written = self.writer.write(&mut log, &self.payload)?;
        drop(log);
        self.writer.make_durable(&written, durability)
    }

    /// [`Transaction::commit`], unless something within the store's distance of a fingerprint that it inserts is stored:
    /// both as one step, whatever other threads do.
    ///
    /// # Errors
    /// As [`Transaction::commit`], and as [`Snapshot::query`](crate::Snapshot::query).
    pub fn commit_if_new(self, durability: Durability) -> Result<Insertion<F>> {
        self.commit_unless(durability, |_| Ok(true))
    }

    /// [`Transaction::commit_if_new`] by the caller's own idea of what is new: `is_duplicate` is given what is stored within the
    /// store's distance of the fingerprints that are inserted, and says whether nothing is to be written because of it.
    ///
    /// It is asked of what is there already while others write, and then, if anything has come since, of that while nobody else
    /// writes: of a match once, and never of none. So it should look only at the documents that it is asked of. A snapshot that is
    /// taken when it is asked has them; writing to the store from there would wait without end.
    ///
    /// ```
    /// use simstore::{Durability, Insertion, StoreOptions, Store};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let store = Store::<u64>::open(&folder.path().join("pages"), StoreOptions::default())?;
    /// let mut add = |id: u64, note: &[u8]| {
    ///     let mut transaction = store.transaction();
    ///     transaction.insert(0xff, id);
    ///     transaction.note(id, note)?;
    ///     transaction.commit_unless(Durability::Os, |matches| {
    ///         let notes = store.snapshot();
    ///         let has_it = |id: u64| Ok::<_, simstore::Error>(notes.note(id)?.as_deref() == Some(note));
    ///         matches.iter().filter_map(|found| found.id).try_fold(false, |has, id| Ok(has || has_it(id)?))
    ///     })
    /// };
    /// assert_eq!(add(1, b"one text")?, Insertion::Inserted);
    /// assert_eq!(add(2, b"another")?, Insertion::Inserted);
    /// assert!(matches!(add(3, b"one text")?, Insertion::DuplicateOf(_)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::commit_if_new`], and that of `is_duplicate`; then nothing is written.
    pub fn commit_unless(
        self,
        durability: Durability,
        mut is_duplicate: impl FnMut(&[Match<F>]) -> Result<bool>,
    ) -> Result<Insertion<F>> {
        if let Some(error) = self.refused {
            return Err(error);
        }
        let writer = self.writer;
        writer.shared.check()?;
        let mut inserted = Vec::new();
        self.payload.visit(|operation| {
            if let Operation::Insert { fingerprint, .. } = operation {
                inserted.push(fingerprint);
            }
        });
        // Most of the search without the lock; under it, only what has come since.
        let before = writer.shared.snapshot();
        let mut known = HashSet::new();
        let mut matches = Vec::new();
        for &fingerprint in &inserted {
            matches.extend(
                before.query(fingerprint, before.distance())?.into_iter().filter(|&m| known.insert(m)),
            );
        }
        if !matches.is_empty() && is_duplicate(&matches)? {
            return Ok(Insertion::DuplicateOf(matches));
        }
        matches.clear();
        let mut log = writer.lock();
        let now = writer.shared.snapshot();
        for &fingerprint in &inserted {
            let may_have_more = now
                .query_since(&before, fingerprint, before.distance())
                .is_none_or(|recent| !recent.is_empty());
            if may_have_more {
                let found = now.query(fingerprint, before.distance())?;
                matches.extend(found.into_iter().filter(|&m| known.insert(m)));
            }
        }
        if !matches.is_empty() && is_duplicate(&matches)? {
            return Ok(Insertion::DuplicateOf(matches));
        }
        if self.payload.is_empty() {
            return Ok(Insertion::Inserted);
        }
        let written = writer.write(&mut log, &self.payload)?;
        drop(log);
        writer.make_durable(&written, durability)?;
        Ok(Insertion::Inserted)
    }
}

/// What [`Transaction::commit_if_new`] or [`Transaction::commit_unless`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Insertion<F> {
    /// Nothing of the kind was stored; now this is.
    Inserted,
    /// These were stored within the distance: for each fingerprint, in their order, those that had not been found before, sorted
    /// as by [`Snapshot::query`](crate::Snapshot::query). Nothing was inserted.
    DuplicateOf(Vec<Match<F>>),
}

/// Where a record ends, and who makes it durable.
pub(super) struct Position {
    syncer: Arc<LogSyncer>,
    len: u64,
}

pub(super) struct Log<F: Fingerprint> {
    log: LogWriter<F>,
    /// Of the memtables to come.
    distance: u32,
}

pub(super) struct Writer<F: Fingerprint> {
    shared: Arc<Shared<F>>,
    keeps_ids: bool,
    log: Mutex<Log<F>>,
}

impl<F: Fingerprint> Writer<F> {
    pub(super) fn new(shared: Arc<Shared<F>>, log: LogWriter<F>, distance: u32) -> Self {
        let keeps_ids = shared.view().manifest.settings.ids;
        Writer { shared, keeps_ids, log: Mutex::new(Log { log, distance }) }
    }

    /// Where ids are not kept, all count as one.
    fn id(&self, id: u64) -> u64 {
        if self.keeps_ids { id } else { 0 }
    }

    fn lock(&self) -> MutexGuard<'_, Log<F>> {
        lock(&self.log)
    }

    /// Writes a record, and shows what it says to readers.
    fn write(&self, log: &mut Log<F>, payload: &Payload<F>) -> Result<Position> {
        self.make_room(log, payload.version())?;
        if let Err(error) = log.log.append(payload) {
            self.shared.fail(&error);
            return Err(error);
        }
        let view = self.shared.view();
        if let Some(Recent { memtable, .. }) = view.memtables.last() {
            payload.visit(|operation| memtable.apply(&operation));
            memtable.publish();
        }
        Ok(Position { syncer: log.log.syncer(), len: log.log.len() })
    }

    fn make_durable(&self, written: &Position, durability: Durability) -> Result<()> {
        let delay = match durability {
            Durability::Os => return Ok(()),
            Durability::Sync => Duration::ZERO,
            Durability::Group(delay) => delay,
        };
        written.syncer.sync_to(written.len, delay).inspect_err(|error| self.shared.fail(error))
    }

    /// Freezes the memtable if it is full, or its log of an older version than what is to be written, and waits while too many
    /// wait to be flushed.
    fn make_room(&self, log: &mut Log<F>, version: u32) -> Result<()> {
        self.shared.check()?;
        let bytes = self.shared.view().memtables.last().map_or(0, |last| last.memtable.bytes());
        if bytes < self.shared.options.memtable && version <= log.log.version() {
            return Ok(());
        }
        let mut work = lock(&self.shared.work);
        while work.failure.is_none() && self.shared.view().memtables.len() > MOST_FROZEN {
            work = self.shared.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
        drop(work);
        self.shared.check()?;
        self.rotate(log, version)
    }

    /// Starts another log, of this version at least, and another memtable; what is in those before is durable then.
    fn rotate(&self, log: &mut Log<F>, version: u32) -> Result<()> {
        let rotated = self.next_log(log, version);
        if let Err(error) = &rotated {
            self.shared.fail(error);
        }
        rotated
    }

    fn next_log(&self, log: &mut Log<F>, version: u32) -> Result<()> {
        log.log.syncer().sync_to(log.log.len(), Duration::ZERO)?;
        let (number, sequence) = (self.shared.take_number(), log.log.next_sequence());
        let options = &self.shared.options;
        lock(&self.shared.written).log_bytes += log.log.len();
        let version = version.max(log.log.version());
        let start = LogStart { version, first_sequence: sequence, previous: Some(log.log.as_previous()) };
        log.log = start_log(&options.fs, &self.shared.path, number, start)?;
        let memtable = Arc::new(Memtable::new(log.distance, options.memtable));
        self.shared.push_memtable(Recent::new(memtable, vec![number], sequence));
        Ok(())
    }

    /// Freezes the memtable if there is anything in it.
    pub(super) fn freeze(&self) -> Result<()> {
        self.shared.check()?;
        let mut log = self.lock();
        let view = self.shared.view();
        let is_empty = view.memtables.last().is_none_or(|last| last.memtable.version() == 0);
        if is_empty { Ok(()) } else { self.rotate(&mut log, format::VERSION) }
    }

    /// Freezes the memtable, even an empty one, and does something before anything else is written.
    pub(super) fn freeze_and(&self, then: impl FnOnce() -> Result<()>) -> Result<()> {
        self.shared.check()?;
        let mut log = self.lock();
        self.rotate(&mut log, format::VERSION)?;
        then()
    }

    /// From now on memtables answer queries up to a larger distance, too; all others are frozen.
    pub(super) fn raise_distance(&self, distance: u32) -> Result<()> {
        self.shared.check()?;
        let mut log = self.lock();
        if distance > log.distance {
            log.distance = distance;
            return self.rotate(&mut log, format::VERSION);
        }
        drop(log);
        self.freeze()
    }

    /// Ends the log with a record that says that all of it is durable.
    pub(super) fn close(&self) -> Result<()> {
        self.shared.check()?;
        self.lock().log.close()
    }

    pub(super) fn sync(&self) -> Result<()> {
        self.shared.check()?;
        let log = self.lock();
        let written = Position { syncer: log.log.syncer(), len: log.log.len() };
        drop(log);
        self.make_durable(&written, Durability::Sync)
    }

    pub(super) fn delete_all(&self, pairs: &[(F, u64)], durability: Durability) -> Result<Vec<bool>> {
        self.shared.check()?;
        let mut log = self.lock();
        let snapshot = self.shared.snapshot();
        let (mut payload, mut deleted) = (Payload::default(), HashSet::new());
        let mut were_there = Vec::with_capacity(pairs.len());
        for &(fingerprint, id) in pairs {
            let id = self.id(id);
            let was_there = snapshot.contains_pair(fingerprint, id)? && deleted.insert((fingerprint, id));
            if was_there {
                payload.push(&Operation::Delete { fingerprint, id })?;
            }
            were_there.push(was_there);
        }
        if !payload.is_empty() {
            let written = self.write(&mut log, &payload)?;
            drop(log);
            self.make_durable(&written, durability)?;
        }
        Ok(were_there)
    }
}
