//! Salvage of a damaged log: reads all sound records (records with a valid checksum), including those after the
//! damage.

use std::path::Path;

use super::Operation;
use super::reader::{LogRecord, PreviousLog, read_header, record_at, record_len, visit_record};
use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::format::{log_header, log_record};

/// Summary of the damage in a log.
#[derive(Debug, Default)]
pub(crate) struct DamagedLog {
    /// Sequence numbers of the first and the last record whose operations were visited; `None` if there is no such record.
    pub(crate) sequences: Option<(u64, u64)>,
    /// Errors of the parts that could not be read, each with its offset.
    pub(crate) damage: Vec<Error>,
    /// Number of lost records: records that are missing before or between sound ones, and sound records with
    /// invalid operations.
    pub(crate) missing: u64,
    /// Number of bytes after the last sound record.
    pub(crate) torn_bytes: u64,
    /// Whether the last sound record is an end record, which closes a log.
    pub(crate) closed: bool,
}

/// Reads the reference to the previous log from the header of a log. Returns `None` if the header has no such
/// reference or is damaged.
pub(crate) fn salvage_previous<F: Fingerprint>(
    path: &Path,
    bytes: &[u8],
    number: u64,
) -> Option<PreviousLog> {
    read_header::<F>(path, bytes, number).ok().flatten().and_then(|header| header.previous)
}

/// Visits the operations of all sound records of a log, in order. Returns a summary of the damage.
pub(crate) fn salvage_log<F: Fingerprint>(
    path: &Path,
    bytes: &[u8],
    number: u64,
    keeps_ids: bool,
    mut visit: impl FnMut(Operation<'_, F>),
) -> DamagedLog {
    let mut damaged_log = DamagedLog::default();
    // The checksum of a record covers the number of its log, so records can be trusted even if the header is damaged.
    let mut expected = match read_header::<F>(path, bytes, number) {
        Ok(header) => header.map(|header| header.first_sequence),
        Err(error @ (Error::UnsupportedVersion { .. } | Error::Width { .. })) => {
            damaged_log.damage.push(error);
            return damaged_log;
        }
        Err(error) => {
            damaged_log.damage.push(error);
            None
        }
    };
    let (mut at, mut end) = (log_header::LEN, log_header::LEN.min(bytes.len()));
    while at < bytes.len() {
        let Some((start, record)) = next_sound(bytes, at, number, expected.unwrap_or(0)) else { break };
        if start > at
            && let Err(damage) = record_at(bytes, at, number)
        {
            damaged_log.damage.push(Error::corrupt(path, at as u64, damage));
        }
        let gap = record.sequence - expected.unwrap_or(record.sequence);
        damaged_log.missing = damaged_log.missing.saturating_add(gap);
        expected = Some(record.sequence.saturating_add(1));
        let first = damaged_log.sequences.map_or(record.sequence, |(first, _)| first);
        at = start + record.bytes.len();
        end = at;
        damaged_log.closed = record.is_end();
        match visit_record(path, start, &record, keeps_ids, &mut |_, operation| {
            visit(operation);
            Ok(())
        }) {
            Ok(()) => damaged_log.sequences = Some((first, record.sequence)),
            Err(error) => {
                damaged_log.missing = damaged_log.missing.saturating_add(1);
                damaged_log.damage.push(error);
            }
        }
    }
    damaged_log.torn_bytes = (bytes.len() - end) as u64;
    damaged_log
}

/// Finds the first sound record (with a valid checksum) that starts at or after the offset `from` and has a
/// sequence number of at least `min_sequence`. Returns the record with its offset.
fn next_sound(bytes: &[u8], from: usize, number: u64, min_sequence: u64) -> Option<(usize, LogRecord<'_>)> {
    // Bounds the time for checksums of overlapping records, which no writer creates.
    let mut checksum_budget = 4 * (bytes.len() - from) as u64;
    for at in (from..bytes.len()).step_by(log_record::ALIGNMENT) {
        let fields = bytes.get(at..at + log_record::LEN)?;
        if !fields.starts_with(&log_record::MAGIC) {
            continue;
        }
        checksum_budget = checksum_budget.checked_sub(record_len(fields).min((bytes.len() - at) as u64))?;
        if let Ok(record) = record_at(bytes, at, number)
            && record.sequence >= min_sequence
        {
            return Some((at, record));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::error::Damage;
    use crate::fs::{Disk, Fs};
    use crate::wal::{LogHeader, LogWriter, Payload, record_crc};

    /// A log of five records with one insert each, synced after each record.
    fn log(path: &Path) -> Vec<u8> {
        let fs: Arc<dyn Fs> = Arc::new(Disk::default());
        let header = LogHeader { first_sequence: 10, previous: None };
        let mut log = LogWriter::<u64>::create(&fs, path, 3, header).unwrap();
        for id in 0..5 {
            let mut payload = Payload::default();
            payload.push(&Operation::Insert { fingerprint: id * 3, id, name: None }).unwrap();
            log.append(&payload).unwrap();
            log.syncer().sync_to(log.len(), Duration::ZERO).unwrap();
        }
        std::fs::read(path).unwrap()
    }

    #[test]
    fn every_flipped_bit_costs_one_record_at_most() {
        let folder = tempfile::tempdir().unwrap();
        let sound = log(&folder.path().join("000003.log"));
        let path = Path::new("l");
        for bit in 0..sound.len() * 8 {
            let mut bytes = sound.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let mut ids = Vec::new();
            let damaged_log = salvage_log::<u64>(path, &bytes, 3, true, |operation| {
                if let Operation::Insert { id, .. } = operation {
                    ids.push(id);
                }
            });
            if (8..log_header::BITS + 1).contains(&(bit / 8)) {
                // A changed version or width: the log cannot be decoded.
                continue;
            }
            assert!(ids.len() >= 4 && ids.is_sorted(), "{bit}: {ids:?}");
            assert!(!damaged_log.damage.is_empty() || damaged_log.torn_bytes > 0 || ids.len() == 5, "{bit}");
            let lost = damaged_log.missing + u64::from(damaged_log.torn_bytes > 0);
            assert!(ids.len() as u64 + lost >= 5, "{bit}: {damaged_log:?}");
        }
    }

    /// Asserts that if a name is not valid UTF-8, only the record with this name is lost. A program that created a `str`
    /// from unchecked bytes may have written such a name.
    #[test]
    fn a_name_that_is_no_utf8_costs_one_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("000003.log");
        let fs: Arc<dyn Fs> = Arc::new(Disk::default());
        let header = LogHeader { first_sequence: 10, previous: None };
        let mut log = LogWriter::<u64>::create(&fs, &path, 3, header).unwrap();
        for (id, name) in [(0, "one"), (1, "caf?"), (2, "two")] {
            let mut payload = Payload::default();
            payload.push(&Operation::Insert { fingerprint: id, id, name: Some(name) }).unwrap();
            log.append(&payload).unwrap();
        }
        drop(log);
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(4).position(|text| text == b"caf?").unwrap();
        bytes[at + 3] = 0xe9;
        let starts = bytes[..at].windows(4).rposition(|magic| magic == log_record::MAGIC);
        let start = starts.unwrap();
        let end = start + record_len(&bytes[start..]) as usize;
        let crc = record_crc(3, start as u64, &bytes[start..end]);
        bytes[start + log_record::CRC..][..4].copy_from_slice(&crc.to_le_bytes());
        let mut ids = Vec::new();
        let damaged_log = salvage_log::<u64>(&path, &bytes, 3, true, |operation| {
            if let Operation::Insert { id, .. } = operation {
                ids.push(id);
            }
        });
        assert_eq!((ids, damaged_log.missing), (vec![0, 2], 1));
        let [Error::Corrupt { damage: Damage::Field { name: "text", found: 3, .. }, .. }] =
            &damaged_log.damage[..]
        else {
            panic!("{damaged_log:?}")
        };
    }

    #[test]
    fn every_truncation_keeps_the_records_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let sound = log(&folder.path().join("000003.log"));
        let each = (sound.len() - log_header::LEN) / 5;
        for len in 0..=sound.len() {
            let mut count = 0;
            let damaged_log = salvage_log::<u64>(Path::new("l"), &sound[..len], 3, true, |_| count += 1);
            assert_eq!(count, len.saturating_sub(log_header::LEN) / each);
            assert_eq!(damaged_log.missing, 0);
        }
    }
}
