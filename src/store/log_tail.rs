//! Log tails: how a reader without the store's lock follows the logs. The reader keeps the contents of all records read so far
//! in memtables. A refresh of its snapshot reads only new records.
//!
//! This relies on three rules of `format-spec/log.md`: records are only appended; a log with a successor does not grow; and the
//! file number of a log is reused only if the log has no records. The newest log may have grown. Before its new records are
//! read, its header and its last known record are compared with the file. If one of them has changed, the log is read from the
//! beginning.
//!
//! Snapshots that were refreshed from one another share memtables. Each snapshot sees only the first operations of a memtable, up
//! to a count of its own (the version).

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::log_chain::{LogChain, LogCursor, LogInfo, log_numbers, map_log};
use crate::error::Result;
use crate::file_bytes::Bytes;
use crate::fingerprint::Fingerprint;
use crate::fs::Fs;
use crate::manifest::Manifest;
use crate::memtable::Memtable;
use crate::wal::{count_inserts, is_unchanged};

/// Threshold for the total size of the logs that were read into one memtable, in bytes. Below this threshold, the next log
/// is read into the same memtable. So many small logs share one memtable, and a log after a large log gets a new memtable.
const SHARED_MEMTABLE_BYTES: u64 = if cfg!(test) { 2048 } else { 1 << 20 };
/// A memtable for the contents of logs is created for at least this number of pairs of fingerprint and id, even if the
/// logs have fewer.
const MIN_PAIRS: u64 = if cfg!(test) { 64 } else { 1024 };
/// Maximum number of pairs in a memtable, as a multiple of the number for which the memtable was created
/// (`planned_pairs`). More pairs would overfill the memtable's hash buckets, so the logs are read again into a larger
/// memtable.
const MAX_GROWTH: u64 = 4;

/// A memtable, and the consecutive logs whose records were read into it.
#[derive(Debug)]
pub(super) struct LogTail<F> {
    pub(super) memtable: Arc<Memtable<F>>,
    /// Number of pairs of fingerprint and id for which the memtable was created.
    planned_pairs: u64,
    /// Read position in each log, oldest log first; never empty. While a reader adds to the memtable, it holds this lock.
    logs: Mutex<Vec<LogCursor>>,
}

/// The result of [`read_logs`]: memtables with the contents of all logs of a store, and counts and sizes of the logs.
pub(super) struct LogContents<F> {
    /// Memtables that together hold the contents of all logs of the store, oldest first.
    pub(super) tails: Vec<LogTailSnapshot<F>>,
    pub(super) logs: Vec<LogInfo>,
}

/// A [`LogTail`] as one snapshot sees it: with the logs and the memtable version at the time of the snapshot.
pub(super) struct LogTailSnapshot<F> {
    pub(super) tail: Arc<LogTail<F>>,
    /// File numbers of the logs in the memtable, ascending.
    pub(super) log_numbers: Vec<u64>,
    /// Sequence number of the first record of the oldest log in the memtable.
    pub(super) first_sequence: u64,
    /// Version of the memtable that the snapshot sees: the count of the visible operations.
    pub(super) version: u64,
}

/// Reads the logs of a store. `known` has the [log tails](LogTail) of an earlier snapshot. If the logs of these tails are
/// unchanged, their records are not read again.
///
/// # Errors
/// Errors of [`Snapshot::open`](super::Snapshot::open).
pub(super) fn read_logs<F: Fingerprint>(
    fs: &dyn Fs,
    path: &Path,
    manifest: &Manifest,
    known: &[Arc<LogTail<F>>],
) -> Result<LogContents<F>> {
    let numbers = log_numbers(fs, path, manifest)?;
    let mut reusable = reusable_tails(manifest, &numbers, known);
    // Only the newest known log may have grown.
    let mut grown = None;
    if let Some((last, logs)) = reusable.last()
        && let Some(log) = logs.last()
    {
        let bytes = map_log(fs, path, log.info.number, log.end.sound_bytes)?;
        if last.can_continue(path, log, &bytes) {
            grown = Some(bytes);
        } else {
            reusable.pop();
        }
    }
    let read = reusable.iter().map(|(_, logs)| logs.len()).sum();
    let unread = numbers.iter().skip(read).map(|&number| Ok((number, map_log(fs, path, number, 0)?)));
    let mut unread = unread.collect::<Result<Vec<_>>>()?.into_iter().peekable();

    let mut chain = LogChain::new(manifest);
    let mut contents = LogContents { tails: Vec::new(), logs: Vec::new() };
    let last = grown.and_then(|bytes| Some((reusable.pop()?, bytes)));
    for (tail, logs) in reusable {
        logs.iter().try_for_each(|log| chain.push(path, log))?;
        contents.push(tail.clone(), &logs);
    }
    if let Some(((tail, mut logs), bytes)) = last {
        let end = logs.len() - 1;
        logs[..end].iter().try_for_each(|log| chain.push(path, log))?;
        logs[end] = tail.read_new(path, &logs[end], &bytes, &mut chain)?;
        while let Some((number, bytes)) = unread.next_if(|(_, bytes)| {
            shares_memtable(logs.iter().map(|log| log.info.bytes)) && tail.has_room(bytes, 0)
        }) {
            let log = LogCursor::from_header::<F>(path, manifest, number, bytes.as_ref())?;
            logs.push(tail.read_new(path, &log, &bytes, &mut chain)?);
        }
        contents.push(tail.clone(), &logs);
    }
    while let Some(first) = unread.next() {
        let mut group = vec![first];
        while shares_memtable(group.iter().map(|(_, bytes)| bytes.as_ref().len() as u64)) {
            let Some(next) = unread.next() else { break };
            group.push(next);
        }
        let tail = LogTail::read(path, manifest, &group, &mut chain)?;
        let logs = tail.logs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        contents.push(Arc::new(tail), &logs);
    }
    contents.logs = chain.logs;
    Ok(contents)
}

/// A [`LogTail`], and the guard of its locked field [`LogTail::logs`].
type LockedTail<'a, F> = (&'a Arc<LogTail<F>>, MutexGuard<'a, Vec<LogCursor>>);

/// Locks the [log tails](LogTail) in `known`, and returns those tails that can be used again, because their logs are not
/// flushed yet. `numbers` has the file numbers of all logs of the store. Returns no tails unless the logs of the tails
/// are exactly the oldest logs of the store.
fn reusable_tails<'a, F: Fingerprint>(
    manifest: &Manifest,
    numbers: &[u64],
    known: &'a [Arc<LogTail<F>>],
) -> Vec<LockedTail<'a, F>> {
    // Locks are taken oldest first, so there is no deadlock.
    let locked = known.iter().map(|tail| Some((tail, tail.logs.lock().ok()?)));
    let Some(mut reusable) = locked.collect::<Option<Vec<_>>>() else { return Vec::new() };
    reusable.retain(|(_, logs)| logs.last().is_some_and(|log| log.info.number >= manifest.first_log));
    let known_numbers = reusable.iter().flat_map(|(_, logs)| logs.iter().map(|log| log.info.number));
    let has_distance = |tail: &LogTail<F>| tail.memtable.distance() == manifest.settings.distance;
    let fits = numbers
        .get(..known_numbers.clone().count())
        .is_some_and(|first| known_numbers.eq(first.iter().copied()));
    if fits && reusable.iter().all(|(tail, _)| has_distance(tail)) { reusable } else { Vec::new() }
}

/// Whether the next log is read into the same memtable as the logs before it. `bytes` has the sizes of the logs that
/// are already in this memtable.
fn shares_memtable(bytes: impl Iterator<Item = u64>) -> bool {
    bytes.sum::<u64>() < SHARED_MEMTABLE_BYTES
}

impl<F: Fingerprint> LogTail<F> {
    /// Reads logs into a new memtable, and appends the logs to `chain`, which checks them. `logs` has the file number and
    /// the content of each log.
    fn read(
        path: &Path,
        manifest: &Manifest,
        logs: &[(u64, Bytes)],
        chain: &mut LogChain,
    ) -> Result<LogTail<F>> {
        let pairs: u64 = logs.iter().map(|(_, bytes)| count_inserts::<F>(bytes.as_ref(), 0)).sum();
        let planned_pairs = pairs.max(MIN_PAIRS);
        let memtable = Memtable::with_expected_pairs(manifest.settings.distance, planned_pairs);
        let read = memtable.apply_bulk(|filling| {
            let read = logs.iter().map(|(number, bytes)| {
                let log = LogCursor::from_header::<F>(path, manifest, *number, bytes.as_ref())?;
                let read = log.advance::<F>(path, bytes.as_ref(), |operation| filling.apply(operation))?;
                chain.push(path, &read).map(|()| read)
            });
            read.collect::<Result<Vec<_>>>()
        })?;
        memtable.publish();
        Ok(LogTail { memtable: Arc::new(memtable), planned_pairs, logs: Mutex::new(read) })
    }

    /// Whether reading can continue at the position `log`: true if the header and the last record before the position are
    /// unchanged, and the new records fit into the memtable. `bytes` is the content of the log.
    fn can_continue(&self, path: &Path, log: &LogCursor, bytes: &Bytes) -> bool {
        is_unchanged::<F>(&path.join(log.info.file_name()), bytes.as_ref(), log.info.number, &log.end)
            && self.has_room(bytes, log.end.sound_bytes)
    }

    /// Whether this tail's memtable has room for the records of a log from byte offset `from` on. `bytes` is the content
    /// of the log.
    fn has_room(&self, bytes: &Bytes, from: u64) -> bool {
        let new = count_inserts::<F>(bytes.as_ref(), from);
        self.memtable.inserted_len() + new <= self.planned_pairs * MAX_GROWTH
    }

    /// Reads the records after the position `log` into the memtable, makes them visible, and returns the position after them.
    /// All of these records are checked before the first is applied: earlier snapshots share the memtable, so if a record is
    /// damaged, the memtable must stay unchanged.
    fn read_new(
        &self,
        path: &Path,
        log: &LogCursor,
        bytes: &Bytes,
        chain: &mut LogChain,
    ) -> Result<LogCursor> {
        let read = log.advance::<F>(path, bytes.as_ref(), |_| ())?;
        chain.push(path, &read)?;
        if read.end.sound_bytes > log.end.sound_bytes {
            let sound = &bytes.as_ref()[..read.end.sound_bytes as usize];
            self.memtable
                .apply_bulk(|filling| log.advance::<F>(path, sound, |operation| filling.apply(operation)))?;
            self.memtable.publish();
        }
        Ok(read)
    }
}

impl<F: Fingerprint> LogContents<F> {
    fn push(&mut self, tail: Arc<LogTail<F>>, logs: &[LogCursor]) {
        self.tails.push(LogTailSnapshot {
            log_numbers: logs.iter().map(|log| log.info.number).collect(),
            first_sequence: logs.first().map_or(0, |log| log.end.header.first_sequence),
            version: tail.memtable.version(),
            tail,
        });
    }
}
