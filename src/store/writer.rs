//! Transactions, and [`StoreWriter`]: the only code that writes to the log and the memtable, one transaction at a time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::open::create_log;
use super::shared_state::SharedState;
use super::view::MemtableRef;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::check_keeps_ids;
use crate::memtable::Memtable;
use crate::options::Durability;
use crate::segment::Match;
use crate::threads::lock;
use crate::wal::{LogHeader, LogSyncer, LogWriter, Operation, Payload};

/// Maximum number of frozen memtables (those that take no more writes) that wait for a flush. A writer that would freeze
/// one more waits.
const MAX_FROZEN_MEMTABLES: usize = 2;

/// A set of writes that become visible and durable together: all of them, or none.
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
    /// Error of the first operation that did not fit into the transaction. The commit will return this error.
    push_error: Option<Error>,
}

impl<'a, F: Fingerprint> Transaction<'a, F> {
    pub(super) fn new(writer: &'a StoreWriter<F>) -> Self {
        Transaction { writer, payload: Payload::default(), push_error: None }
    }

    /// Adds a fingerprint with an id. If the id has a name or a note, they do not change.
    pub fn insert(&mut self, fingerprint: F, id: u64) {
        let id = self.writer.id(id);
        self.push(&Operation::Insert { fingerprint, id, name: None });
    }

    /// Adds an operation. If the operation does not fit into the transaction, it is left out, and the commit returns an error.
    fn push(&mut self, operation: &Operation<'_, F>) {
        if let Err(error) = self.payload.push(operation) {
            self.push_error.get_or_insert(error);
        }
    }

    /// Adds a fingerprint with the id and the name of its document. The name has up to 64 KiB, and replaces the id's old
    /// name.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the store keeps no ids, if the name is longer than 64 KiB, or if the transaction would
    /// exceed 1 GiB.
    pub fn insert_named(&mut self, fingerprint: F, id: u64, name: &str) -> Result<()> {
        check_keeps_ids(self.writer.keeps_ids, "name")?;
        self.payload.push(&Operation::Insert { fingerprint, id: self.writer.id(id), name: Some(name) })
    }

    /// Removes a pair of fingerprint and id, if the pair is stored. In any case removes the name and the note of the id,
    /// even if the id has other fingerprints. To keep the name and the note, call [`Transaction::insert_named`] with one
    /// of these fingerprints, and [`Transaction::set_note`], after this call.
    pub fn delete(&mut self, fingerprint: F, id: u64) {
        let id = self.writer.id(id);
        self.push(&Operation::Delete { fingerprint, id });
    }

    /// Stores a metadata value under a key, such as the read position in an input. The value replaces the key's old value.
    /// It is committed atomically with the other writes of the transaction, so after a crash a program that stores its
    /// read position knows where to continue.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the key or the value is longer than 4 KiB, or if the transaction would exceed 1 GiB.
    pub fn set_metadata(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.payload.push(&Operation::Metadata { key, value })
    }

    /// Stores a note with a document: up to 16 MiB of any bytes, such as the document's compressed text. The note replaces
    /// the document's old note. A later [`Transaction::delete`] of any pair with the id removes the note.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the store keeps no ids, if the note is too long, or if the transaction would exceed 1 GiB.
    pub fn set_note(&mut self, id: u64, note: &[u8]) -> Result<()> {
        check_keeps_ids(self.writer.keeps_ids, "note")?;
        self.payload.push(&Operation::Note { id: self.writer.id(id), note })
    }

    /// Returns the number of bytes that the transaction's operations take in the log.
    pub fn bytes(&self) -> usize {
        self.payload.len()
    }

    /// Whether the transaction has no operations.
    pub fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }

    /// Writes the transaction, and returns when the written record is as durable as `durability` requires.
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

    /// Like [`Transaction::commit`], but writes nothing if a fingerprint within the store's distance of an inserted
    /// fingerprint is stored already. The check and the commit are one atomic step.
    ///
    /// # Errors
    /// Errors of [`Transaction::commit`] and of [`Snapshot::query`](crate::Snapshot::query).
    pub fn commit_if_new(self, durability: Durability) -> Result<Insertion<F>> {
        self.commit_unless(durability, |_| Ok(true))
    }

    /// Like [`Transaction::commit_if_new`], but the function `is_duplicate` decides whether the transaction is a duplicate.
    /// The argument of `is_duplicate` is a list of stored matches within the store's distance of the inserted
    /// fingerprints. If `is_duplicate` returns true, nothing is written.
    ///
    /// `is_duplicate` is called up to two times. The first call gets the matches known so far, and other threads may
    /// write during the call. If other threads insert more matches meanwhile, a second call gets only these new
    /// matches, and all other writers wait. The list is never empty, and no match is in both lists. So each call must
    /// decide by its list alone. A snapshot taken inside a call contains the matches of its list. Writing to the store
    /// inside a call is a deadlock.
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
    /// The store had no duplicate, so the transaction has been written.
    Inserted,
    /// Nothing was written, because these matches are stored already. The list has the matches of the first inserted
    /// fingerprint, then those of the second, and so on, each in the order of
    /// [`Snapshot::query`](crate::Snapshot::query). Equal matches are listed once.
    DuplicateOf(Vec<Match<F>>),
}

/// The position up to which a log must be synced to make a record durable, and the [`LogSyncer`] that does it.
pub(super) struct SyncTarget {
    syncer: Arc<LogSyncer>,
    len: u64,
}

/// The log that takes all new writes, and the query distance for memtables that will be created.
pub(super) struct ActiveLog<F: Fingerprint> {
    writer: LogWriter<F>,
    /// Largest query distance that memtables created from now on support, in bits.
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

    /// Returns the id that is stored for a caller's id: the same, or 0 in a store without ids.
    fn id(&self, id: u64) -> u64 {
        if self.keeps_ids { id } else { 0 }
    }

    fn lock(&self) -> MutexGuard<'_, ActiveLog<F>> {
        lock(&self.log)
    }

    /// Appends a record to the log, applies the record's operations to the memtable, and makes the operations visible to
    /// readers. Does not sync the record.
    fn write(&self, log: &mut ActiveLog<F>, payload: &Payload<F>) -> Result<SyncTarget> {
        self.make_room(log)?;
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

    /// Starts a new log and a new memtable if the memtable is full. First waits while too many frozen memtables (memtables
    /// that take no more writes) wait for a flush.
    fn make_room(&self, log: &mut ActiveLog<F>) -> Result<()> {
        self.shared.check()?;
        let bytes = self.shared.view().memtables.last().map_or(0, |last| last.memtable.bytes());
        if bytes < self.shared.options.memtable {
            return Ok(());
        }
        let mut state = lock(&self.shared.background);
        while state.failure.is_none() && self.shared.view().memtables.len() > MAX_FROZEN_MEMTABLES {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        self.shared.check()?;
        self.rotate(log)
    }

    /// Starts a new log and a new memtable for later writes. All earlier writes are durable afterwards.
    fn rotate(&self, log: &mut ActiveLog<F>) -> Result<()> {
        let rotated = self.replace_log(log);
        if let Err(error) = &rotated {
            self.shared.fail(error);
        }
        rotated
    }

    fn replace_log(&self, log: &mut ActiveLog<F>) -> Result<()> {
        log.writer.syncer().sync_to(log.writer.len(), Duration::ZERO)?;
        let (number, sequence) = (self.shared.allocate_number(), log.writer.next_sequence());
        let options = &self.shared.options;
        lock(&self.shared.write_stats).log_bytes += log.writer.len();
        let start = LogHeader { first_sequence: sequence, previous: Some(log.writer.as_previous()) };
        log.writer = create_log(&options.fs, &self.shared.path, number, start)?;
        let memtable = Arc::new(Memtable::new(log.distance, options.memtable));
        self.shared.push_memtable(MemtableRef::new(memtable, vec![number], sequence));
        Ok(())
    }

    /// Freezes the memtable, so that it takes no more writes and is flushed. Does nothing if the memtable is empty.
    pub(super) fn freeze(&self) -> Result<()> {
        self.shared.check()?;
        let mut log = self.lock();
        let view = self.shared.view();
        let is_empty = view.memtables.last().is_none_or(|last| last.memtable.version() == 0);
        if is_empty { Ok(()) } else { self.rotate(&mut log) }
    }

    /// Freezes the memtable (it takes no more writes), even if it is empty, then runs `then`. All other writers wait until
    /// `then` has returned.
    pub(super) fn freeze_then(&self, then: impl FnOnce() -> Result<()>) -> Result<()> {
        self.shared.check()?;
        let mut log = self.lock();
        self.rotate(&mut log)?;
        then()
    }

    /// Raises the largest query distance of later memtables to `distance` bits, unless it is larger already. Freezes the
    /// current memtable, so that it takes no more writes and is flushed.
    pub(super) fn raise_distance(&self, distance: u32) -> Result<()> {
        self.shared.check()?;
        let mut log = self.lock();
        if distance > log.distance {
            log.distance = distance;
            return self.rotate(&mut log);
        }
        drop(log);
        self.freeze()
    }

    /// Syncs the log, and appends a record that marks the log as closed.
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
