//! Logs one after the other: what is read of each, and whether they follow one another.

use std::path::Path;

use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::{self, log_header};
use crate::fs::Fs;
use crate::manifest::{Manifest, log_name, log_number};
use crate::map::Bytes;
use crate::wal::{LogEnd, Operation, PreviousLog, continue_log, start_log};

/// The numbers of the logs whose operations are not in segments, ascending.
pub(super) fn log_numbers(fs: &dyn Fs, path: &Path, manifest: &Manifest) -> Result<Vec<u64>> {
    let mut numbers = Vec::new();
    if manifest.first_log > 0 {
        let names = fs.list(path).map_err(Error::io(path, "list"))?;
        numbers.extend(names.iter().filter_map(|name| log_number(name)));
        numbers.retain(|&number| manifest.has_log(number));
        numbers.sort_unstable();
    }
    if manifest.first_log > 0 && numbers.first() != Some(&manifest.first_log) {
        let missing = path.join(log_name(manifest.first_log));
        return Err(Error::io(&missing, "open")(std::io::ErrorKind::NotFound.into()));
    }
    Ok(numbers)
}

/// The content of a log, which is read from a position on.
pub(super) fn map_log(fs: &dyn Fs, path: &Path, number: u64, from: u64) -> Result<Bytes> {
    let log = path.join(log_name(number));
    let bytes = fs.map(&log).map_err(Error::io(&log, "open"))?;
    let len = bytes.as_ref().len();
    bytes.will_need((from as usize).min(len)..len);
    Ok(bytes)
}

/// A log, as it was when the store was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogInfo {
    /// The number in the name of its file.
    pub number: u64,
    /// Length of the file, in bytes.
    pub bytes: u64,
    /// Bytes at its end that are no sound record: a crash cut them off, or they were being written.
    pub torn_bytes: u64,
    /// Whether its end is vouched for: it was closed, or a writer has recovered it since. Otherwise bytes at its end that are
    /// no sound record may also be damage.
    pub ended: bool,
    /// Sound records: transactions that were written.
    pub records: u64,
    /// Inserts, deletes, marks and notes in them.
    pub operations: u64,
}

impl LogInfo {
    /// The name of its file.
    pub fn file_name(&self) -> String {
        crate::manifest::log_name(self.number)
    }

    /// What is wrong with its end, if damage could have made it; `store` is the store's folder.
    pub(super) fn torn_end(&self, store: &Path) -> Option<Error> {
        let path = store.join(self.file_name());
        let (offset, bytes) = (self.bytes - self.torn_bytes, self.torn_bytes);
        (bytes > 0 && !self.ended).then_some(Error::TornEnd { path, offset, bytes })
    }
}

/// What was read of a log, and where to go on.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadLog {
    pub(super) end: LogEnd,
    pub(super) info: LogInfo,
}

impl ReadLog {
    /// The header of a log alone.
    pub(super) fn start<F: Fingerprint>(path: &Path, number: u64, bytes: &[u8]) -> Result<ReadLog> {
        let log = path.join(log_name(number));
        // A log gets its name when its header is durable: no crash leaves one without.
        let what = "the header of this log and its checksum";
        let torn = || Error::corrupt(&log, 0, Damage::Mismatch { what });
        let end = start_log::<F>(&log, bytes, number)?.ok_or_else(torn)?;
        let bytes = bytes.len() as u64;
        let info = LogInfo { number, bytes, torn_bytes: 0, ended: false, records: 0, operations: 0 };
        Ok(ReadLog { end, info })
    }

    /// Visits the operations that follow what was read; after an error only some of them.
    pub(super) fn read_on<F: Fingerprint>(
        &self,
        path: &Path,
        bytes: &[u8],
        mut visit: impl FnMut(&Operation<'_, F>),
    ) -> Result<ReadLog> {
        let (number, mut operations) = (self.info.number, self.info.operations);
        let end =
            continue_log::<F>(&path.join(log_name(number)), bytes, number, self.end, |_, operation| {
                visit(&operation);
                operations += 1;
                Ok(())
            })?;
        let info = LogInfo {
            number,
            bytes: bytes.len() as u64,
            torn_bytes: end.torn_bytes,
            ended: end.closed,
            records: end.records(),
            operations,
        };
        Ok(ReadLog { end, info })
    }
}

/// What the logs of a store were found to hold.
pub(super) struct Replayed {
    /// The sequence number of the next record.
    pub(super) sequence: u64,
    /// The newest version of the format that one has.
    pub(super) version: u32,
    pub(super) logs: Vec<LogInfo>,
    /// What the next log will say of the last one.
    pub(super) last: Option<PreviousLog>,
    /// What the last one says of the one before it.
    pub(super) before_last: Option<PreviousLog>,
}

impl Replayed {
    pub(super) fn new(manifest: &Manifest) -> Replayed {
        let sequence = manifest.sequence;
        Replayed { sequence, version: format::VERSION, logs: Vec::new(), last: None, before_last: None }
    }

    /// Checks whether a log follows those before it, and adds it to them.
    pub(super) fn follow(&mut self, path: &Path, &ReadLog { end, info }: &ReadLog) -> Result<()> {
        if let Some(last) = self.last {
            check_follows(path, last, info.number, end.start.previous)?;
        }
        if end.start.first_sequence != self.sequence {
            let what = "the records of this log and of what comes before it";
            return Err(Error::corrupt(&path.join(info.file_name()), 0, Damage::Mismatch { what }));
        }
        self.logs.iter_mut().for_each(|log| log.ended = true);
        self.logs.push(info);
        self.version = self.version.max(end.start.version);
        self.before_last = end.start.previous;
        self.last = Some(PreviousLog { number: info.number, len: end.sound_bytes });
        self.sequence = end.next_sequence;
        Ok(())
    }
}

/// Checks what a log says of the one before it against what that one is.
fn check_follows(path: &Path, last: PreviousLog, number: u64, said: Option<PreviousLog>) -> Result<()> {
    match said {
        Some(said) if said == last => Ok(()),
        Some(said) if said.number == last.number => {
            let what = "the sound part of this log and what the next log says was synced of it";
            let log = path.join(log_name(last.number));
            Err(Error::corrupt(&log, last.len.min(said.len), Damage::Mismatch { what }))
        }
        Some(said) if said.number > last.number => {
            let missing = path.join(log_name(said.number));
            Err(Error::io(&missing, "open")(std::io::ErrorKind::NotFound.into()))
        }
        _ => {
            let what = "the log that this one names as the one before it, and that one";
            let offset = log_header::PREVIOUS as u64;
            Err(Error::corrupt(&path.join(log_name(number)), offset, Damage::Mismatch { what }))
        }
    }
}
