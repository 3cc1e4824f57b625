//! The chain of a store's logs: the file numbers of the logs, the read position in each, and checks that each log follows the
//! previous one.

use std::path::Path;

use crate::error::{Damage, Error, Result};
use crate::file_bytes::Bytes;
use crate::fingerprint::Fingerprint;
use crate::format::log_header;
use crate::fs::Fs;
use crate::manifest::{Manifest, log_file_name, log_number};
use crate::wal::{LogPosition, Operation, PreviousLog, continue_log, read_log_header};

/// Returns the file numbers of the store's logs whose operations are not in segments yet, ascending.
pub(super) fn log_numbers(fs: &dyn Fs, path: &Path, manifest: &Manifest) -> Result<Vec<u64>> {
    let mut numbers = Vec::new();
    if manifest.first_log > 0 {
        let names = fs.list(path).map_err(Error::io(path, "list"))?;
        numbers.extend(names.iter().filter_map(|name| log_number(name)));
        numbers.retain(|&number| manifest.has_log(number));
        numbers.sort_unstable();
    }
    if let Some(segment) = manifest.segments.iter().find(|segment| numbers.contains(&segment.number)) {
        let what = "the numbers of the logs and of the segments, which are never equal";
        let log = path.join(log_file_name(segment.number));
        return Err(Error::corrupt(&log, log_header::NUMBER as u64, Damage::Mismatch { what }));
    }
    if manifest.first_log > 0 && numbers.first() != Some(&manifest.first_log) {
        let missing = path.join(log_file_name(manifest.first_log));
        return Err(Error::io(&missing, "open")(std::io::ErrorKind::NotFound.into()));
    }
    Ok(numbers)
}

/// Maps the log with this file number into memory, and prefetches its content from byte offset `from` on.
pub(super) fn map_log(fs: &dyn Fs, path: &Path, number: u64, from: u64) -> Result<Bytes> {
    let log = path.join(log_file_name(number));
    let bytes = fs.map(&log).map_err(Error::io(&log, "open"))?;
    let len = bytes.as_ref().len();
    bytes.will_need((from as usize).min(len)..len);
    Ok(bytes)
}

/// Counts and sizes of one log of a store, as of when the store was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogInfo {
    /// File number: the number in the file name.
    pub number: u64,
    /// Length of the file, in bytes.
    pub bytes: u64,
    /// Length of the torn tail, in bytes: the part of the file after the last intact record. A log has a torn tail if a
    /// crash cut a record off, or if another process was writing a record.
    pub torn_bytes: u64,
    /// Whether it is known where the log ends, because a writer closed the log, or a later writer recovered it. If false, a
    /// torn tail may also be damage.
    pub is_sealed: bool,
    /// Number of intact records. Each record is one transaction.
    pub records: u64,
    /// Number of operations in the intact records: inserts, deletes, and writes of metadata and notes.
    pub operations: u64,
}

impl LogInfo {
    /// Returns the file name of the log, without the folder.
    pub fn file_name(&self) -> String {
        crate::manifest::log_file_name(self.number)
    }

    /// Returns [`Error::TornTail`] if the log has a torn tail (bytes after the last intact record) that damage may have
    /// caused. `store` is the folder of the store.
    pub(super) fn torn_tail(&self, store: &Path) -> Option<Error> {
        let path = store.join(self.file_name());
        let (offset, bytes) = (self.bytes - self.torn_bytes, self.torn_bytes);
        (bytes > 0 && !self.is_sealed).then_some(Error::TornTail { path, offset, bytes })
    }
}

/// A read position in a log, with counts of the records before this position.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogCursor {
    pub(super) end: LogPosition,
    pub(super) info: LogInfo,
}

impl LogCursor {
    /// Reads the header of a log, and returns the position of the first record. `bytes` is the content of the log.
    pub(super) fn from_header<F: Fingerprint>(
        path: &Path,
        manifest: &Manifest,
        number: u64,
        bytes: &[u8],
    ) -> Result<LogCursor> {
        let log = path.join(log_file_name(number));
        // A log gets its name after its header is durable. So a missing header is damage, and not the result of a crash.
        let what = "the header of this log and its checksum";
        let torn = || Error::corrupt(&log, 0, Damage::Mismatch { what });
        let keeps_ids = manifest.settings.has_ids;
        let end = read_log_header::<F>(&log, bytes, number, keeps_ids)?.ok_or_else(torn)?;
        let bytes = bytes.len() as u64;
        let info = LogInfo { number, bytes, torn_bytes: 0, is_sealed: false, records: 0, operations: 0 };
        Ok(LogCursor { end, info })
    }

    /// Visits the operations after this position, and returns the position after them. `bytes` is the content of the
    /// whole log. Before an error is returned, some of the operations may have been visited.
    pub(super) fn advance<F: Fingerprint>(
        &self,
        path: &Path,
        bytes: &[u8],
        mut visit: impl FnMut(&Operation<'_, F>),
    ) -> Result<LogCursor> {
        let (number, mut operations) = (self.info.number, self.info.operations);
        let end =
            continue_log::<F>(&path.join(log_file_name(number)), bytes, number, self.end, |_, operation| {
                visit(&operation);
                operations += 1;
                Ok(())
            })?;
        let info = LogInfo {
            number,
            bytes: bytes.len() as u64,
            torn_bytes: end.torn_bytes,
            is_sealed: end.closed,
            records: end.records(),
            operations,
        };
        Ok(LogCursor { end, info })
    }
}

/// The logs read so far, oldest first, and the values that the header of the next log must have.
pub(super) struct LogChain {
    /// Sequence number that the first record of the next log must have.
    pub(super) next_sequence: u64,
    pub(super) logs: Vec<LogInfo>,
    /// File number and length of the last log. The header of the next log must repeat both.
    pub(super) last: Option<PreviousLog>,
    /// File number and length of the log before the last one, as recorded in the header of the last log.
    pub(super) before_last: Option<PreviousLog>,
}

impl LogChain {
    pub(super) fn new(manifest: &Manifest) -> LogChain {
        let next_sequence = manifest.first_sequence;
        LogChain { next_sequence, logs: Vec::new(), last: None, before_last: None }
    }

    /// Checks that the header of a log agrees with the logs in the chain, and appends the log to the chain.
    pub(super) fn push(&mut self, path: &Path, &LogCursor { end, info }: &LogCursor) -> Result<()> {
        if let Some(last) = self.last {
            check_previous(path, last, info.number, end.header.previous)?;
        }
        if end.header.first_sequence != self.next_sequence {
            let what = "the records of this log and of what comes before it";
            return Err(Error::corrupt(&path.join(info.file_name()), 0, Damage::Mismatch { what }));
        }
        self.logs.iter_mut().for_each(|log| log.is_sealed = true);
        self.logs.push(info);
        self.before_last = end.header.previous;
        self.last = Some(PreviousLog { number: info.number, len: end.sound_bytes });
        self.next_sequence = end.next_sequence;
        Ok(())
    }
}

/// Checks that the header of the log `number` records the file number and the length of the previous log correctly.
/// `recorded` has the values in this header, `last` the actual values of the previous log.
fn check_previous(path: &Path, last: PreviousLog, number: u64, recorded: Option<PreviousLog>) -> Result<()> {
    match recorded {
        Some(recorded) if recorded == last => Ok(()),
        Some(recorded) if recorded.number == last.number => {
            let what = "the sound part of this log and what the next log says was synced of it";
            let log = path.join(log_file_name(last.number));
            Err(Error::corrupt(&log, last.len.min(recorded.len), Damage::Mismatch { what }))
        }
        Some(recorded) if recorded.number > last.number => {
            let missing = path.join(log_file_name(recorded.number));
            Err(Error::io(&missing, "open")(std::io::ErrorKind::NotFound.into()))
        }
        _ => {
            let what = "the log that this one names as the one before it, and that one";
            let offset = log_header::PREVIOUS as u64;
            Err(Error::corrupt(&path.join(log_file_name(number)), offset, Damage::Mismatch { what }))
        }
    }
}
