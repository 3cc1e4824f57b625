//! Transactions, and [`StoreWriter`]: the only code that writes to the log and the memtable, one transaction at a time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::open::create_log;
use super::shared_state::SharedState;
use super::view::MemtableRef;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::memtable::Memtable;
use crate::options::Durability;
use crate::segment::Match;
use crate::threads::lock;
use crate::wal::{LogHeader, LogSyncer, LogWriter, Operation, Payload};

/// Maximum number of frozen memtables that wait for a flush. A writer that would freeze another one waits.
const MAX_FROZEN_MEMTABLES: usize = 2;

/// A set of writes that are stored atomically.
///
/// ```
/// use simstore::{Durability, StoreOptions, Store};
///
/// # let folder = tempfile::tempdir()?;
/// let store = Store::<u64>::open(&folder.path().join("pages"), StoreOptions::default())?;
/// let mut transaction = store.transaction();
/// transaction.insert(0x0123_4567_89ab_cdef, 1);
/// transaction.insert_named(0x0f0f_0f0f_0f0f_0f0f, 2, "https://example.org/")?;
/// transaction.set_note(2, b"a page")?;
/// transaction.set_metadata("crawl", b"up to page 2")?;
/// transaction.commit(Durability::Sync)?;
/// assert_eq!(store.snapshot().metadata("crawl")?.as_deref(), Some(&b"up to page 2"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Transaction<'a, F: Fingerprint> {
    writer: &'a StoreWriter<F>,
    payload: Payload<F>,
    /// Error that the commit will return, if the transaction has become too long.
    push_error: Option<Error>,
}

impl<'a, F: Fingerprint> Transaction<'a, F> {
    pub(super) fn new(writer: &'a StoreWriter<F>) -> Self {
        Transaction { writer, payload: Payload::default(), push_error: None }
    }

    /// Adds a fingerprint with an id. The name and the note of the id do not change.
    pub fn insert(&mut self, fingerprint: F, id: u64) {
        let id = self.writer.id(id);
        self.push(&Operation::Insert { fingerprint, id, name: None });
    }

    /// Adds an operation. If it does not fit into the transaction, the commit will fail.
    fn push(&mut self, operation: &Operation<'_, F>) {
        if let Err(error) = self.payload.push(operation) {
            self.push_error.get_or_insert(error);
        }
    }

    /// Adds a fingerprint with the id and the name of its document. The name has up to 64 KiB, and replaces the old name of
    /// the id.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the name is too long or not UTF-8.
    pub fn insert_named(&mut self, fingerprint: F, id: u64, name: &str) -> Result<()> {
        self.payload.push(&Operation::Insert { fingerprint, id: self.writer.id(id), name: Some(name) })
    }

    /// Removes a pair of fingerprint and id, stored or not. Also removes the name and the note of the id, even if the
    /// id has other fingerprints. To keep name and note, insert one of these fingerprints with the name, and set the
    /// note again, after this call.
    pub fn delete(&mut self, fingerprint: F, id: u64) {
        let id = self.writer.id(id);
        self.push(&Operation::Delete { fingerprint, id });
    }

    /// Stores a metadata value under a key, such as the read position in an input. It replaces the key's old value. It is
    /// committed together with the other writes of the transaction, so after a crash a program knows where to continue.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the key or the value is longer than 4 KiB.
    pub fn set_metadata(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.payload.push(&Operation::Metadata { key, value })
    }

    /// Stores a note with a document: up to 16 MiB of any bytes, such as its compressed text. It replaces the document's
    /// old note. A [`Transaction::delete`] of a pair with the id removes the note.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the note is too long, or if the transaction would exceed 1 GiB.
    pub fn set_note(&mut self, id: u64, note: &[u8]) -> Result<()> {
        self.payload.push(&Operation::Note { id: self.writer.id(id), note })
    }

    /// Returns the size of the transaction in the log, in bytes.
    pub fn bytes(&self) -> usize {
        self.payload.len()
    }

    /// Whether the transaction has no operations.
    pub fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }

    /// Writes the transaction, and returns when it has the given durability.
    ///
    /// # Errors
    /// Errors of [`Store::insert`](crate::Store::insert); [`Error::BadArgument`] if the transaction is too long. After a
    /// failed write, the next open of the store may find the whole transaction, or nothing of it.
    pub fn commit(self, durability: Durability) -> Result<()> {
        if let Some(error) = self.push_error {
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
    /// `is_duplicate` is first called with the matches known so far, while other threads may write. If other threads
    /// insert more matches meanwhile, it is called again with only the new ones, while all other writers wait. It gets
    /// each match once, and never an empty list. So it must decide by the matches of its argument alone. A snapshot
    /// taken inside the call contains them. Writing to the store inside the call is a deadlock.
    ///
    /// ```
    /// use simstore::{Durability, Insertion, StoreOptions, Store};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let store = Store::<u64>::open(&folder.path().join("pages"), StoreOptions::default())?;
    /// let mut add = |id: u64, note: &[u8]| {
    ///     let mut transaction = store.transaction();
    ///     transaction.insert(0xff, id);
    ///     transaction.set_note(id, note)?;
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
        if let Some(error) = self.push_error {
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
        // Most of the search runs without the lock. Only the search for newer matches needs it.
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
            let may_have_newer = now
                .query_since(&before, fingerprint, before.distance())
                .is_none_or(|recent| !recent.is_empty());
            if may_have_newer {
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
    /// No duplicate was stored. The transaction has been written.
    Inserted,
    /// Nothing was written, since these matches are stored. They are grouped by inserted fingerprint, in the order
    /// of insertion. Each group has the order of [`Snapshot::query`](crate::Snapshot::query). Each match is listed once.
    DuplicateOf(Vec<Match<F>>),
}

/// The end of a log record, and the syncer that makes the log durable up to there.
pub(super) struct SyncTarget {
    syncer: Arc<LogSyncer>,
    len: u64,
}

/// The log that takes the writes.
pub(super) struct ActiveLog<F: Fingerprint> {
    writer: LogWriter<F>,
    /// Largest query distance of the memtables that are created from now on, in bits.
    distance: u32,
}

/// Writes transactions to the log and the memtable, one at a time.
pub(super) struct StoreWriter<F: Fingerprint> {
    shared: Arc<SharedState<F>>,
    keeps_ids: bool,
    log: Mutex<ActiveLog<F>>,
}

impl<F: Fingerprint> StoreWriter<F> {
    pub(super) fn new(shared: Arc<SharedState<F>>, log: LogWriter<F>, distance: u32) -> Self {
        let keeps_ids = shared.view().manifest.settings.has_ids;
        StoreWriter { shared, keeps_ids, log: Mutex::new(ActiveLog { writer: log, distance }) }
    }

    /// Returns the id to store. In a store without ids, all ids are 0.
    fn id(&self, id: u64) -> u64 {
        if self.keeps_ids { id } else { 0 }
    }

    fn lock(&self) -> MutexGuard<'_, ActiveLog<F>> {
        lock(&self.log)
    }

    /// Appends a record to the log, applies its operations to the memtable, and makes them visible to readers.
    fn write(&self, log: &mut ActiveLog<F>, payload: &Payload<F>) -> Result<SyncTarget> {
        self.make_room(log, payload.version())?;
        if let Err(error) = log.writer.append(payload) {
            self.shared.fail(&error);
            return Err(error);
        }
        let view = self.shared.view();
        if let Some(MemtableRef { memtable, .. }) = view.memtables.last() {
            payload.visit(|operation| memtable.apply(&operation));
            memtable.publish();
        }
        Ok(SyncTarget { syncer: log.writer.syncer(), len: log.writer.len() })
    }

    fn make_durable(&self, written: &SyncTarget, durability: Durability) -> Result<()> {
        let delay = match durability {
            Durability::Os => return Ok(()),
            Durability::Sync => Duration::ZERO,
            Durability::Group(delay) => delay,
        };
        written.syncer.sync_to(written.len, delay).inspect_err(|error| self.shared.fail(error))
    }

    /// Freezes the memtable if it is full, or if the format version of its log is older than the record needs. Waits while
    /// too many frozen memtables wait for a flush.
    fn make_room(&self, log: &mut ActiveLog<F>, version: u32) -> Result<()> {
        self.shared.check()?;
        let bytes = self.shared.view().memtables.last().map_or(0, |last| last.memtable.bytes());
        if bytes < self.shared.options.memtable && version <= log.writer.version() {
            return Ok(());
        }
        let mut state = lock(&self.shared.background);
        while state.failure.is_none() && self.shared.view().memtables.len() > MAX_FROZEN_MEMTABLES {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        self.shared.check()?;
        self.rotate(log, version)
    }

    /// Starts a new log, of at least this format version, and a new memtable. All earlier writes are durable afterwards.
    fn rotate(&self, log: &mut ActiveLog<F>, version: u32) -> Result<()> {
        let rotated = self.replace_log(log, version);
        if let Err(error) = &rotated {
            self.shared.fail(error);
        }
        rotated
    }

    fn replace_log(&self, log: &mut ActiveLog<F>, version: u32) -> Result<()> {
        log.writer.syncer().sync_to(log.writer.len(), Duration::ZERO)?;
        let (number, sequence) = (self.shared.allocate_number(), log.writer.next_sequence());
        let options = &self.shared.options;
        lock(&self.shared.write_stats).log_bytes += log.writer.len();
        let version = version.max(log.writer.version());
        let start = LogHeader { version, first_sequence: sequence, previous: Some(log.writer.as_previous()) };
        log.writer = create_log(&options.fs, &self.shared.path, number, start)?;
        let memtable = Arc::new(Memtable::new(log.distance, options.memtable));
        self.shared.push_memtable(MemtableRef::new(memtable, vec![number], sequence));
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

    /// Freezes the memtable, even if it is empty, and runs `then` while all other writers wait.
    pub(super) fn freeze_then(&self, then: impl FnOnce() -> Result<()>) -> Result<()> {
        self.shared.check()?;
        let mut log = self.lock();
        self.rotate(&mut log, format::VERSION)?;
        then()
    }

    /// Raises the query distance of later memtables, in bits, and freezes the current memtable.
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

    /// Syncs the log, and appends a record that marks it as closed.
    pub(super) fn close(&self) -> Result<()> {
        self.shared.check()?;
        self.lock().writer.close()
    }

    pub(super) fn sync(&self) -> Result<()> {
        self.shared.check()?;
        let log = self.lock();
        let written = SyncTarget { syncer: log.writer.syncer(), len: log.writer.len() };
        drop(log);
        self.make_durable(&written, Durability::Sync)
    }

    pub(super) fn delete_all(&self, pairs: &[(F, u64)], durability: Durability) -> Result<Vec<bool>> {
        self.shared.check()?;
        let mut log = self.lock();
        let snapshot = self.shared.snapshot();
        let (mut payload, mut deleted) = (Payload::default(), HashSet::new());
        let mut were_stored = Vec::with_capacity(pairs.len());
        for &(fingerprint, id) in pairs {
            let id = self.id(id);
            let was_stored = snapshot.contains_pair(fingerprint, id)? && deleted.insert((fingerprint, id));
            if was_stored {
                payload.push(&Operation::Delete { fingerprint, id })?;
            }
            were_stored.push(was_stored);
        }
        if !payload.is_empty() {
            let written = self.write(&mut log, &payload)?;
            drop(log);
            self.make_durable(&written, durability)?;
        }
        Ok(were_stored)
    }
}
