//! Logs that a reader follows: what it has read of them stays in memory, and only what is new in them is read.
//!
//! This relies on what `format-spec/log.md` says of logs: records are only ever appended; a log that another one follows does not
//! grow any more; and its number is given to another log only if it has no records. Of the log that may have grown, the header
//! and the last record that was read are compared with the file, too: where they are not what they were, all is read again.
//!
//! Memtables are shared by the snapshots that came of one another. Each has the version of its own time.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::reading::{LogInfo, ReadLog, Replayed, log_numbers, map_log};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::fs::Fs;
use crate::manifest::Manifest;
use crate::map::Bytes;
use crate::memtable::Memtable;
use crate::wal::{count_inserts, is_as_read};

/// A log shares the memtable of those before it as long as these have fewer bytes: many small ones are one memtable, and a
/// large one, which becomes a segment by itself, has its own.
const SHARED_BYTES: u64 = if cfg!(test) { 2048 } else { 1 << 20 };
/// For how many pairs a memtable is made at least.
const LEAST_PAIRS: u64 = if cfg!(test) { 64 } else { 1024 };
/// A memtable that would get so many times the pairs that it was made for is made again: its buckets would be crowded.
const OUTGROWN: u64 = 4;

/// Some logs that follow one another, and the memtable that they were read into.
#[derive(Debug)]
pub(super) struct Followed<F> {
    pub(super) memtable: Arc<Memtable<F>>,
    /// For so many pairs.
    made_for: u64,
    /// What of the logs is in it, one at least. One reader at a time adds to it.
    logs: Mutex<Vec<ReadLog>>,
}

/// What the logs of a store were found to hold.
pub(super) struct Following<F> {
    /// The oldest first.
    pub(super) parts: Vec<Part<F>>,
    pub(super) logs: Vec<LogInfo>,
}

/// What of it is in one memtable, as it is now.
pub(super) struct Part<F> {
    pub(super) followed: Arc<Followed<F>>,
    /// The numbers of its logs, ascending.
    pub(super) logs: Vec<u64>,
    /// The sequence number of the first record of the first of them.
    pub(super) sequence: u64,
    /// The version of the memtable.
    pub(super) version: u64,
}

/// Reads the logs of a store but for what is known of them from an earlier reading.
///
/// # Errors
/// As [`Snapshot::open`](super::Snapshot::open).
pub(super) fn follow<F: Fingerprint>(
    fs: &dyn Fs,
    path: &Path,
    manifest: &Manifest,
    known: &[Arc<Followed<F>>],
) -> Result<Following<F>> {
    let numbers = log_numbers(fs, path, manifest)?;
    let mut kept = kept(manifest, &numbers, known);
    // The last one may have grown.
    let mut grown = None;
    if let Some((last, logs)) = kept.last()
        && let Some(log) = logs.last()
    {
        let bytes = map_log(fs, path, log.info.number, log.end.sound_bytes)?;
        if last.goes_on(path, log, &bytes) {
            grown = Some(bytes);
        } else {
            kept.pop();
        }
    }
    let read = kept.iter().map(|(_, logs)| logs.len()).sum();
    let unread = numbers.iter().skip(read).map(|&number| Ok((number, map_log(fs, path, number, 0)?)));
    let mut unread = unread.collect::<Result<Vec<_>>>()?.into_iter().peekable();

    let mut replayed = Replayed::new(manifest);
    let mut following = Following { parts: Vec::new(), logs: Vec::new() };
    let last = grown.and_then(|bytes| Some((kept.pop()?, bytes)));
    for (followed, logs) in kept {
        logs.iter().try_for_each(|log| replayed.follow(path, log))?;
        following.push(followed.clone(), &logs);
    }
    if let Some(((followed, mut logs), bytes)) = last {
        let end = logs.len() - 1;
        logs[..end].iter().try_for_each(|log| replayed.follow(path, log))?;
        logs[end] = followed.read_on(path, &logs[end], &bytes, &mut replayed)?;
        while let Some((number, bytes)) = unread.next_if(|(_, bytes)| {
            is_small(logs.iter().map(|log| log.info.bytes)) && followed.has_room(bytes, 0)
        }) {
            let log = ReadLog::start::<F>(path, number, bytes.as_ref())?;
            logs.push(followed.read_on(path, &log, &bytes, &mut replayed)?);
        }
        following.push(followed.clone(), &logs);
    }
    while let Some(first) = unread.next() {
        let mut some = vec![first];
        while is_small(some.iter().map(|(_, bytes)| bytes.as_ref().len() as u64)) {
            let Some(next) = unread.next() else { break };
            some.push(next);
        }
        let followed = Followed::read(path, manifest, &some, &mut replayed)?;
        let logs = followed.logs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        following.push(Arc::new(followed), &logs);
    }
    following.logs = replayed.logs;
    Ok(following)
}

/// A memtable with the logs that were read into it, which nobody else reads on.
type Kept<'a, F> = (&'a Arc<Followed<F>>, MutexGuard<'a, Vec<ReadLog>>);

/// What is known of the first of a store's logs; nothing if it does not fit them.
fn kept<'a, F: Fingerprint>(
    manifest: &Manifest,
    numbers: &[u64],
    known: &'a [Arc<Followed<F>>],
) -> Vec<Kept<'a, F>> {
    // Always the older one first: nobody waits for who waits.
    let locked = known.iter().map(|followed| Some((followed, followed.logs.lock().ok()?)));
    let Some(mut kept) = locked.collect::<Option<Vec<_>>>() else { return Vec::new() };
    kept.retain(|(_, logs)| logs.last().is_some_and(|log| log.info.number >= manifest.first_log));
    let numbers_of = kept.iter().flat_map(|(_, logs)| logs.iter().map(|log| log.info.number));
    let is_made_for = |followed: &Followed<F>| followed.memtable.distance() == manifest.settings.distance;
    let fits =
        numbers.get(..numbers_of.clone().count()).is_some_and(|first| numbers_of.eq(first.iter().copied()));
    if fits && kept.iter().all(|(followed, _)| is_made_for(followed)) { kept } else { Vec::new() }
}

/// Whether logs of so many bytes share their memtable with the next.
fn is_small(bytes: impl Iterator<Item = u64>) -> bool {
    bytes.sum::<u64>() < SHARED_BYTES
}

impl<F: Fingerprint> Followed<F> {
    /// Reads logs into a memtable of their own.
    fn read(
        path: &Path,
        manifest: &Manifest,
        logs: &[(u64, Bytes)],
        replayed: &mut Replayed,
    ) -> Result<Followed<F>> {
        let pairs: u64 = logs.iter().map(|(_, bytes)| count_inserts::<F>(bytes.as_ref(), 0)).sum();
        let made_for = pairs.max(LEAST_PAIRS);
        let memtable = Memtable::for_pairs(manifest.settings.distance, made_for);
        let read = memtable.fill(|filling| {
            let read = logs.iter().map(|(number, bytes)| {
                let log = ReadLog::start::<F>(path, *number, bytes.as_ref())?;
                let read = log.read_on::<F>(path, bytes.as_ref(), |operation| filling.apply(operation))?;
                replayed.follow(path, &read).map(|()| read)
            });
            read.collect::<Result<Vec<_>>>()
        })?;
        memtable.publish();
        Ok(Followed { memtable: Arc::new(memtable), made_for, logs: Mutex::new(read) })
    }

    /// Whether a log is still what was read of it, and what is new fits the memtable.
    fn goes_on(&self, path: &Path, log: &ReadLog, bytes: &Bytes) -> bool {
        is_as_read::<F>(&path.join(log.info.file_name()), bytes.as_ref(), log.info.number, &log.end)
            && self.has_room(bytes, log.end.sound_bytes)
    }

    /// Whether what a log holds from a position on fits the memtable.
    fn has_room(&self, bytes: &Bytes, from: u64) -> bool {
        let new = count_inserts::<F>(bytes.as_ref(), from);
        self.memtable.inserted() + new <= self.made_for * OUTGROWN
    }

    /// Reads what is new in a log, and shows it. All of it is checked before anything is done: others use the memtable.
    fn read_on(&self, path: &Path, log: &ReadLog, bytes: &Bytes, replayed: &mut Replayed) -> Result<ReadLog> {
        let read = log.read_on::<F>(path, bytes.as_ref(), |_| ())?;
        replayed.follow(path, &read)?;
        if read.end.sound_bytes > log.end.sound_bytes {
            let sound = &bytes.as_ref()[..read.end.sound_bytes as usize];
            self.memtable
                .fill(|filling| log.read_on::<F>(path, sound, |operation| filling.apply(operation)))?;
            self.memtable.publish();
        }
        Ok(read)
    }
}

impl<F: Fingerprint> Following<F> {
    fn push(&mut self, followed: Arc<Followed<F>>, logs: &[ReadLog]) {
        self.parts.push(Part {
            logs: logs.iter().map(|log| log.info.number).collect(),
            sequence: logs.first().map_or(0, |log| log.end.start.first_sequence),
            version: followed.memtable.version(),
            followed,
        });
    }
}
