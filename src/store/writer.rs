//! The only code that writes to the log and to the memtable, one transaction at a time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::open::start_log;
use super::shared::Shared;
use super::view::Recent;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::memtable::Memtable;
use crate::options::Durability;
use crate::segment::Match;
use crate::threads::lock;
use crate::wal::{LogStart, LogSyncer, LogWriter, Operation, Payload};

/// Most memtables that may wait to be flushed; a writer that would add another one waits.
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
    /// The reason why it cannot be committed: it is too long.
    refused: Option<Error>,
}

impl<'a, F: Fingerprint> Transaction<'a, F> {
    pub(super) fn new(writer: &'a Writer<F>) -> Self {
        Transaction { writer, payload: Payload::default(), refused: None }
    }

    /// Adds a fingerprint with an id. The name and the note of the id are unchanged.
    pub fn insert(&mut self, fingerprint: F, id: u64) {
        let id = self.writer.id(id);
        self.push(&Operation::Insert { fingerprint, id, name: None });
    }

    /// Adds an operation. If it does not fit, the commit will fail.
    fn push(&mut self, operation: &Operation<'_, F>) {
        if let Err(error) = self.payload.push(operation) {
            self.refused.get_or_insert(error);
        }
    }

    /// Adds a fingerprint with the id and the name of its document, up to 64 KiB long. The name replaces the id's old
    /// name.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the name is too long or not UTF-8.
    pub fn insert_named(&mut self, fingerprint: F, id: u64, name: &str) -> Result<()> {
        self.payload.push(&Operation::Insert { fingerprint, id: self.writer.id(id), name: Some(name) })
    }

    /// Removes a pair of fingerprint and id, stored or not. Also removes the name and the note of the id, even if the
    /// id has other fingerprints. To keep them, insert one of these with the name and set the note again after this
    /// call.
    pub fn delete(&mut self, fingerprint: F, id: u64) {
        let id = self.writer.id(id);
        self.push(&Operation::Delete { fingerprint, id });
    }

    /// Keeps some bytes under a key, such as the position in an input. They change together with the other writes of
    /// the transaction, so after a crash a program knows where to continue.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the key or the value is longer than 4 KiB.
    pub fn mark(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.payload.push(&Operation::Mark { key, value })
    }

    /// Keeps some bytes with a document, up to 16 MiB, such as its compressed text. They replace the document's old
    /// note. A [`Transaction::delete`] of a pair with the id removes them.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for too many bytes, or more than fit into a transaction, which holds 1 GiB.
    pub fn note(&mut self, id: u64, note: &[u8]) -> Result<()> {
        self.payload.push(&Operation::Note { id: self.writer.id(id), note })
    }

    /// Bytes of the transaction in the log.
    pub fn bytes(&self) -> usize {
        self.payload.len()
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }

    /// Writes the transaction, and returns when it has the given durability.
    ///
    /// # Errors
    /// Errors of [`Store::insert`](crate::Store::insert). After an error the whole transaction may or may not be
    /// there when the store is opened again.
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

    /// Like [`Transaction::commit`], unless a fingerprint within the store's distance of an inserted one is stored
    /// already. Check and commit are one atomic step.
    ///
    /// # Errors
    /// Errors of [`Transaction::commit`] and of [`Snapshot::query`](crate::Snapshot::query).
    pub fn commit_if_new(self, durability: Durability) -> Result<Insertion<F>> {
        self.commit_unless(durability, |_| Ok(true))
    }

    /// Like [`Transaction::commit_if_new`], with a check by the caller. `is_duplicate` gets the stored matches within
    /// the store's distance of the inserted fingerprints. If it returns true, nothing is written.
    ///
    /// `is_duplicate` is first called with the matches known so far, while other threads may write. If more matches
    /// have come since, it is called again with only these, while all other writers wait. It gets each match once,
    /// and never an empty list. So it should look only at the given matches. A snapshot taken inside the call
    /// contains them. Writing to the store inside the call is a deadlock.
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
    /// Errors of [`Transaction::commit_if_new`] and of `is_duplicate`. After an error of `is_duplicate`, nothing is
    /// written.
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
        // Most of the search is done without the lock, and only the search for newer matches under it.
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

/// The result of [`Transaction::commit_if_new`] or [`Transaction::commit_unless`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Insertion<F> {
    /// No duplicate was stored, and the transaction has been written.
    Inserted,
    /// Nothing was written, since these matches are stored. They are listed for each inserted fingerprint in order,
    /// without repeating earlier ones, sorted as by [`Snapshot::query`](crate::Snapshot::query).
    DuplicateOf(Vec<Match<F>>),
}

/// The end of a record, and the syncer that makes it durable.
pub(super) struct Position {
    syncer: Arc<LogSyncer>,
    len: u64,
}

pub(super) struct Log<F: Fingerprint> {
    log: LogWriter<F>,
    /// Distance of later memtables.
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

    /// If ids are not kept, all count as the same one.
    fn id(&self, id: u64) -> u64 {
        if self.keeps_ids { id } else { 0 }
    }

    fn lock(&self) -> MutexGuard<'_, Log<F>> {
        lock(&self.log)
    }

    /// Writes a record, and makes its operations visible to readers.
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

    /// Freezes the memtable if it is full, or if its log has an older version than the record needs. Waits while too
    /// many memtables wait to be flushed.
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

    /// Starts a new log, of at least this version, and a new memtable. All writes before that are durable afterwards.
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

    /// Freezes the memtable unless it is empty.
    pub(super) fn freeze(&self) -> Result<()> {
        self.shared.check()?;
        let mut log = self.lock();
        let view = self.shared.view();
        let is_empty = view.memtables.last().is_none_or(|last| last.memtable.version() == 0);
        if is_empty { Ok(()) } else { self.rotate(&mut log, format::VERSION) }
    }

    /// Freezes the memtable, even an empty one, and runs `then` before anything else is written.
    pub(super) fn freeze_and(&self, then: impl FnOnce() -> Result<()>) -> Result<()> {
        self.shared.check()?;
        let mut log = self.lock();
        self.rotate(&mut log, format::VERSION)?;
        then()
    }

    /// Raises the distance that later memtables answer queries for. Freezes the current one.
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
