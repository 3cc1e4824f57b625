//! Reading what is sound of a damaged log: also behind the damage.

use std::path::Path;

use super::Operation;
use super::reader::{PreviousLog, Record, read_header, record_at, record_len, visit_record};
use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::format::{self, log_header, log_record};

/// What was found in a damaged log.
#[derive(Debug, Default)]
pub(crate) struct LogRemains {
    /// Sequence numbers of the first and the last sound record.
    pub(crate) sequences: Option<(u64, u64)>,
    /// What could not be read, each with its offset.
    pub(crate) damage: Vec<Error>,
    /// Records that are missing between sound ones.
    pub(crate) missing: u64,
    /// Bytes at the end that are no sound record.
    pub(crate) torn_bytes: u64,
    /// Whether the last sound record says that the log was closed.
    pub(crate) closed: bool,
}

/// What a log says of the one before it, if its header is sound.
pub(crate) fn salvage_previous<F: Fingerprint>(
    path: &Path,
    bytes: &[u8],
    number: u64,
) -> Option<PreviousLog> {
    read_header::<F>(path, bytes, number).ok().flatten().and_then(|start| start.previous)
}

/// Visits the operations of all sound records of a log, in order, and says what lies between them.
pub(crate) fn salvage_log<F: Fingerprint>(
    path: &Path,
    bytes: &[u8],
    number: u64,
    mut visit: impl FnMut(Operation<'_, F>),
) -> LogRemains {
    let mut remains = LogRemains::default();
    // Records name their log in their checksums: a damaged header takes none of them away.
    let mut version = format::VERSION_WITH_NOTES;
    let mut expected = match read_header::<F>(path, bytes, number) {
        Ok(start) => {
            version = start.map_or(version, |start| start.version);
            start.map(|start| start.first_sequence)
        }
        Err(error @ (Error::UnsupportedVersion { .. } | Error::Width { .. })) => {
            remains.damage.push(error);
            return remains;
        }
        Err(error) => {
            remains.damage.push(error);
            None
        }
    };
    let (mut at, mut end) = (log_header::LEN, log_header::LEN.min(bytes.len()));
    while at < bytes.len() {
        let Some((start, record)) = next_sound(bytes, at, number, expected.unwrap_or(0)) else { break };
        if start > at
            && let Err(damage) = record_at(bytes, at, number)
        {
            remains.damage.push(Error::corrupt(path, at as u64, damage));
        }
        remains.missing += record.sequence - expected.unwrap_or(record.sequence);
        expected = Some(record.sequence.saturating_add(1));
        let first = remains.sequences.map_or(record.sequence, |(first, _)| first);
        at = start + record.bytes.len();
        end = at;
        remains.closed = record.is_end();
        match visit_record(path, start, &record, version, &mut |_, operation| {
            visit(operation);
            Ok(())
        }) {
            Ok(()) => remains.sequences = Some((first, record.sequence)),
            Err(error) => {
                remains.missing += 1;
                remains.damage.push(error);
            }
        }
    }
    remains.torn_bytes = (bytes.len() - end) as u64;
    remains
}

/// The first sound record from a position on whose sequence number is not too small.
fn next_sound(bytes: &[u8], from: usize, number: u64, least: u64) -> Option<(usize, Record<'_>)> {
    // Records that overlap, as no writer leaves them, must not take time without end.
    let mut may_checksum = 4 * (bytes.len() - from) as u64;
    for at in (from..bytes.len()).step_by(log_record::ALIGNMENT) {
        let fields = bytes.get(at..at + log_record::LEN)?;
        if !fields.starts_with(&log_record::MAGIC) {
            continue;
        }
        may_checksum = may_checksum.checked_sub(record_len(fields).min((bytes.len() - at) as u64))?;
        if let Ok(record) = record_at(bytes, at, number)
            && record.sequence >= least
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
    use crate::wal::{LogStart, LogWriter, Payload, record_crc};

    /// Five records of one insert each, synced after each.
    fn log(path: &Path) -> Vec<u8> {
        let fs: Arc<dyn Fs> = Arc::new(Disk::default());
        let start = LogStart { version: format::VERSION, first_sequence: 10, previous: None };
        let mut log = LogWriter::<u64>::create(&fs, path, 3, start).unwrap();
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
            let remains = salvage_log::<u64>(path, &bytes, 3, |operation| {
                if let Operation::Insert { id, .. } = operation {
                    ids.push(id);
                }
            });
            if (8..log_header::BITS + 1).contains(&(bit / 8)) {
                // Another version or width: nothing in it can be understood.
                continue;
            }
            assert!(ids.len() >= 4 && ids.is_sorted(), "{bit}: {ids:?}");
            assert!(!remains.damage.is_empty() || remains.torn_bytes > 0 || ids.len() == 5, "{bit}");
            let lost = remains.missing + u64::from(remains.torn_bytes > 0);
            assert!(ids.len() as u64 + lost >= 5, "{bit}: {remains:?}");
        }
    }

    /// As a caller without checked strings may have made one.
    #[test]
    fn a_name_that_is_no_utf8_costs_one_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("000003.log");
        let fs: Arc<dyn Fs> = Arc::new(Disk::default());
        let start = LogStart { version: format::VERSION, first_sequence: 10, previous: None };
        let mut log = LogWriter::<u64>::create(&fs, &path, 3, start).unwrap();
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
        let remains = salvage_log::<u64>(&path, &bytes, 3, |operation| {
            if let Operation::Insert { id, .. } = operation {
                ids.push(id);
            }
        });
        assert_eq!((ids, remains.missing), (vec![0, 2], 1));
        let [Error::Corrupt { damage: Damage::Field { name: "text", found: 3, .. }, .. }] =
            &remains.damage[..]
        else {
            panic!("{remains:?}")
        };
    }

    #[test]
    fn every_truncation_keeps_the_records_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let sound = log(&folder.path().join("000003.log"));
        let each = (sound.len() - log_header::LEN) / 5;
        for len in 0..=sound.len() {
            let mut count = 0;
            let remains = salvage_log::<u64>(Path::new("l"), &sound[..len], 3, |_| count += 1);
            assert_eq!(count, len.saturating_sub(log_header::LEN) / each);
            assert_eq!(remains.missing, 0);
        }
    }
}
