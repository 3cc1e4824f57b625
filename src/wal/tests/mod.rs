//! Tests of logs: reading returns what was written, a prefix of it, or an error, but never anything else.

mod independent;
mod long_notes;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::reader::LogPosition;
use super::*;
use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::log_header;
use crate::fs::{Disk, Fs};

/// An [`Operation`] that owns its data, with 128 bits for fingerprints of both widths.
#[derive(Clone, Debug, PartialEq)]
enum OwnedOperation {
    Insert(u128, u64, Option<String>),
    Delete(u128, u64),
    Metadata(String, Vec<u8>),
    Note(u64, Vec<u8>),
}

impl OwnedOperation {
    fn from_operation<F: Fingerprint>(operation: Operation<'_, F>) -> OwnedOperation {
        match operation {
            Operation::Insert { fingerprint, id, name } => {
                OwnedOperation::Insert(fingerprint.to_u128(), id, name.map(str::to_string))
            }
            Operation::Delete { fingerprint, id } => OwnedOperation::Delete(fingerprint.to_u128(), id),
            Operation::Metadata { key, value } => OwnedOperation::Metadata(key.to_string(), value.to_vec()),
            Operation::Note { id, note } => OwnedOperation::Note(id, note.to_vec()),
        }
    }

    fn push<F: Fingerprint>(&self, payload: &mut Payload<F>) -> Result<()> {
        payload.push(&match self {
            OwnedOperation::Insert(fingerprint, id, name) => {
                Operation::Insert { fingerprint: F::from_u128(*fingerprint), id: *id, name: name.as_deref() }
            }
            OwnedOperation::Delete(fingerprint, id) => {
                Operation::Delete { fingerprint: F::from_u128(*fingerprint), id: *id }
            }
            OwnedOperation::Metadata(key, value) => Operation::Metadata { key, value },
            OwnedOperation::Note(id, note) => Operation::Note { id: *id, note },
        })
    }
}

fn payload<F: Fingerprint>(operations: &[OwnedOperation]) -> Payload<F> {
    let mut payload = Payload::default();
    operations.iter().for_each(|operation| operation.push(&mut payload).unwrap());
    payload
}

/// A log with a record for each batch, synced after the batches whose indexes are in `synced`. `number` is the number
/// of the log, `first` the sequence number of its first record.
fn log<F: Fingerprint>(
    number: u64,
    first: u64,
    batches: &[Vec<OwnedOperation>],
    synced: &[usize],
) -> Vec<u8> {
    log_after::<F>(None, number, first, batches, synced, false)
}

/// Like [`log`], with a reference to a previous log, and closed if `closed` is true.
fn log_after<F: Fingerprint>(
    previous: Option<PreviousLog>,
    number: u64,
    first: u64,
    batches: &[Vec<OwnedOperation>],
    synced: &[usize],
    closed: bool,
) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let fs: Arc<dyn Fs> = Arc::new(Disk::default());
    let header = LogHeader { first_sequence: first, previous };
    let mut writer = LogWriter::<F>::create(&fs, &path, number, header).unwrap();
    for (i, batch) in batches.iter().enumerate() {
        assert_eq!(writer.append(&payload(batch)).unwrap(), first + i as u64);
        if synced.contains(&i) {
            writer.syncer().sync_to(writer.len(), Duration::ZERO).unwrap();
            assert_eq!(writer.syncer().durable(), writer.len());
        }
    }
    assert_eq!(writer.next_sequence(), first + batches.len() as u64);
    if closed {
        writer.close().unwrap();
        assert!(batches.is_empty() || writer.append(&payload(&batches[0])).is_err());
    }
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(bytes.len() as u64, writer.len());
    bytes
}

type NumberedBatches = Vec<(u64, Vec<OwnedOperation>)>;

fn read<F: Fingerprint>(bytes: &[u8], number: u64) -> Result<Option<(LogPosition, NumberedBatches)>> {
    let mut batches = NumberedBatches::new();
    let end = read_log::<F>(Path::new("l"), bytes, number, true, |sequence, operation| {
        if batches.last().is_none_or(|last| last.0 != sequence) {
            batches.push((sequence, Vec::new()));
        }
        batches.last_mut().unwrap().1.push(OwnedOperation::from_operation(operation));
        Ok(())
    })?;
    Ok(end.map(|end| (end, batches)))
}

fn insert(fingerprint: u128, id: u64, name: Option<&str>) -> OwnedOperation {
    OwnedOperation::Insert(fingerprint, id, name.map(str::to_string))
}

/// Operations of three log records. The golden file of a log, `format-spec/golden/log-64/000001.log`, begins with these.
fn example() -> Vec<Vec<OwnedOperation>> {
    vec![
        vec![insert(0x10, 1, None), insert(0x13, 2, Some("文"))],
        vec![OwnedOperation::Delete(0x10, 1), OwnedOperation::Metadata("feed".to_string(), vec![0x2c, 1])],
        vec![insert(u128::from(u64::MAX), u64::MAX, Some("")), OwnedOperation::Delete(0, 0)],
    ]
}

fn numbered(first: u64, batches: &[Vec<OwnedOperation>]) -> NumberedBatches {
    (first..).zip(batches.iter().cloned()).collect()
}

/// Byte offsets of the records, and of the end of the log.
fn record_offsets(bytes: &[u8]) -> Vec<usize> {
    let mut offsets = vec![log_header::LEN];
    while *offsets.last().unwrap() < bytes.len() {
        let at = *offsets.last().unwrap();
        let len = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
        offsets.push(at + 32 + len.next_multiple_of(8));
    }
    offsets
}

/// Recomputes the checksum of the record from `at` to `end`.
fn seal(bytes: &mut [u8], number: u64, at: usize, end: usize) {
    let crc = record_crc(number, at as u64, &bytes[at..end]);
    bytes[at + 4..at + 8].copy_from_slice(&crc.to_le_bytes());
}

fn operation() -> impl Strategy<Value = OwnedOperation> {
    prop_oneof![
        (any::<u128>(), any::<u64>(), proptest::option::of(".{0,40}"))
            .prop_map(|(fingerprint, id, name)| OwnedOperation::Insert(fingerprint, id, name)),
        (any::<u128>(), any::<u64>()).prop_map(|(fingerprint, id)| OwnedOperation::Delete(fingerprint, id)),
        (".{0,20}", proptest::collection::vec(any::<u8>(), 0..9))
            .prop_map(|(key, value)| OwnedOperation::Metadata(key, value)),
        (any::<u64>(), proptest::collection::vec(any::<u8>(), 0..9))
            .prop_map(|(id, note)| OwnedOperation::Note(id, note)),
    ]
}

fn narrow(batches: &[Vec<OwnedOperation>]) -> Vec<Vec<OwnedOperation>> {
    let narrow = |operation: &OwnedOperation| match operation.clone() {
        OwnedOperation::Insert(fingerprint, id, name) => {
            OwnedOperation::Insert(u128::from(fingerprint as u64), id, name)
        }
        OwnedOperation::Delete(fingerprint, id) => OwnedOperation::Delete(u128::from(fingerprint as u64), id),
        other => other,
    };
    batches.iter().map(|batch| batch.iter().map(narrow).collect()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn comes_back(
        batches in proptest::collection::vec(proptest::collection::vec(operation(), 1..9), 0..7),
        synced in proptest::collection::vec(0_usize..7, 0..4),
        number in 1_u64..1 << 48,
        first in 0..=1_u64 << 63,
        closed in any::<bool>(),
        previous in proptest::option::of((0_u64..100, 7_u64..1 << 60)),
    ) {
        let number = number + 100;
        let previous = previous.map(|(back, len)| PreviousLog { number: number - 1 - back, len: len * 8 });
        let wide = log_after::<u128>(previous, number, first, &batches, &synced, closed);
        let (end, found) = read::<u128>(&wide, number).unwrap().unwrap();
        prop_assert_eq!(&found, &numbered(first, &batches));
        let header = LogHeader { first_sequence: first, previous };
        let (records, sound_bytes) = (batches.len() as u64, wide.len() as u64);
        let closed = closed && records > 0;
        let next_sequence = first + records + u64::from(closed);
        prop_assert_eq!(end, LogPosition { header, keeps_ids: true, next_sequence, closed, sound_bytes, torn_bytes: 0, last: end.last });
        prop_assert_eq!(end.records(), records);
        let batches = narrow(&batches);
        let bytes = log::<u64>(number, first, &batches, &synced);
        prop_assert_eq!(read::<u64>(&bytes, number).unwrap().unwrap().1, numbered(first, &batches));
        let refused = matches!(read::<u128>(&bytes, number), Err(Error::Width { .. }));
        prop_assert!(refused);
    }

    #[test]
    fn hostile_payloads_with_a_right_checksum(
        random in proptest::collection::vec(0_u8..8, 1..80),
        start in 0_usize..40,
    ) {
        // Starts like a sound payload, so that decoding gets past the first byte.
        let mut bytes = log::<u64>(1, 1, &example(), &[]);
        let at = record_offsets(&bytes)[2];
        bytes.truncate(at + 32 + start);
        bytes.extend(&random);
        let len = (bytes.len() - at - 32) as u32;
        bytes[at + 8..at + 12].copy_from_slice(&len.to_le_bytes());
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let end = bytes.len();
        seal(&mut bytes, 1, at, end);
        match read::<u64>(&bytes, 1) {
            Ok(read) => prop_assert_eq!(read.unwrap().0.torn_bytes, 0),
            Err(error) => {
                let placed = matches!(error, Error::Corrupt { offset, .. } if offset >= at as u64);
                prop_assert!(placed, "{error}");
            }
        }
    }

    #[test]
    fn any_bytes_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), keep in 0_usize..200) {
        let sound = log::<u64>(1, 1, &example(), &[1]);
        let keep = keep.min(sound.len());
        bytes.splice(..0, sound[..keep].iter().copied());
        let _ = read::<u64>(&bytes, 1);
    }
}

#[test]
fn batches_are_refused_when_they_do_not_fit() {
    let mut full = Payload::<u64>::default();
    let long = "x".repeat((1 << 16) + 1);
    assert!(insert(1, 1, Some(&long)).push(&mut full).is_err());
    assert!(OwnedOperation::Metadata("x".repeat(4097), vec![1]).push(&mut full).is_err());
    assert!(OwnedOperation::Metadata("x".to_string(), vec![1; 4097]).push(&mut full).is_err());
    assert!(OwnedOperation::Note(1, vec![1; (1 << 24) + 1]).push(&mut full).is_err());
    assert!(full.is_empty());
    insert(1, 1, Some(&long[1..])).push(&mut full).unwrap();
    OwnedOperation::Metadata("x".repeat(4096), vec![1; 4096]).push(&mut full).unwrap();
    assert_eq!(full.len(), (17 + 4 + (1 << 16)) + (1 + 4 + 4096 + 4 + 4096));
    let folder = tempfile::tempdir().unwrap();
    let fs: Arc<dyn Fs> = Arc::new(Disk::default());
    let header = LogHeader { first_sequence: 1, previous: None };
    let mut writer = LogWriter::create(&fs, &folder.path().join("l"), 1, header).unwrap();
    writer.append(&full).unwrap();
    full = Payload::default();
    assert!(matches!(writer.append(&full), Err(Error::Bug(_))));
    assert!(matches!(writer.syncer().sync_to(writer.len() + 1, Duration::ZERO), Err(Error::Bug(_))));
    assert_eq!(writer.next_sequence(), 2);
}

/// Asserts that a log of another format version is refused.
#[test]
fn other_versions_are_refused() {
    for version in [0, 2, 3, 255] {
        let mut bytes = log::<u64>(1, 1, &example(), &[]);
        assert_eq!(bytes[log_header::VERSION], 1);
        bytes[log_header::VERSION] = version;
        let crc = crc32fast::hash(&bytes[..log_header::CRC]);
        bytes[log_header::CRC..][..4].copy_from_slice(&crc.to_le_bytes());
        let error = read::<u64>(&bytes, 1).unwrap_err();
        let is_expected = matches!(error, Error::UnsupportedVersion { supported: 1, .. });
        assert!(is_expected, "{version}: {error}");
    }
}

/// Asserts that a log of a store without ids has neither ids, nor names, nor notes.
#[test]
fn ids_in_a_log_of_a_store_without_ids_are_damage() {
    let read = |operation| {
        let bytes = log::<u64>(1, 1, &[vec![insert(5, 0, None)], vec![operation]], &[]);
        let start = record_offsets(&bytes)[1] as u64 + 32;
        let read = read_log::<u64>(Path::new("l"), &bytes, 1, false, |_, _| Ok(()));
        read.map_err(|error| match error {
            Error::Corrupt { offset, damage: Damage::Field { name, .. }, .. } => (name, offset - start),
            error => panic!("{error}"),
        })
    };
    assert!(read(OwnedOperation::Delete(5, 0)).is_ok());
    assert!(read(OwnedOperation::Metadata("key".to_string(), vec![1])).is_ok());
    assert_eq!(read(insert(5, 1, None)), Err(("id", 9)));
    assert_eq!(read(OwnedOperation::Delete(5, 1)), Err(("id", 9)));
    assert_eq!(read(insert(5, 0, Some("a"))), Err(("kind", 0)));
    assert_eq!(read(OwnedOperation::Note(0, vec![1])), Err(("kind", 0)));
}

#[test]
fn every_truncation_reads_a_prefix() {
    for synced in [&[][..], &[0], &[0, 1, 2]] {
        let bytes = log::<u64>(1, 7, &example(), synced);
        let offsets = record_offsets(&bytes);
        for len in 0..bytes.len() {
            let whole = offsets.iter().filter(|&&place| place <= len).count();
            match read::<u64>(&bytes[..len], 1).unwrap() {
                None => assert_eq!(whole, 0, "{len}"),
                Some((end, found)) => {
                    assert_eq!(found, numbered(7, &example()[..whole - 1]), "{len}");
                    assert_eq!(end.sound_bytes + end.torn_bytes, len as u64);
                    let mut rest = Vec::new();
                    let again =
                        super::reader::continue_log::<u64>(Path::new("l"), &bytes, 1, end, |sequence, _| {
                            rest.push(sequence);
                            Ok(())
                        });
                    assert_eq!(again.unwrap().torn_bytes, 0);
                    rest.dedup();
                    assert_eq!(rest, (6 + whole as u64..10).collect::<Vec<_>>());
                }
            }
        }
    }
}

#[test]
fn every_flipped_bit_leaves_a_prefix_or_is_damage() {
    for synced in [&[][..], &[0], &[1], &[0, 1, 2]] {
        let sound = log::<u64>(1, 7, &example(), synced);
        let offsets = record_offsets(&sound);
        // Bytes that were durable when each record was written, according to the record.
        let known = (0..3).map(|i| u64::from_le_bytes(sound[offsets[i] + 24..][..8].try_into().unwrap()));
        let known: Vec<u64> = known.collect();
        for bit in 0..sound.len() * 8 {
            let mut bytes = sound.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let record = offsets.iter().filter(|&&place| place <= bit / 8).count();
            let start = if record == 0 { 0 } else { offsets[record - 1] };
            let covered = known.iter().skip(record).any(|&durable| durable > start as u64);
            match read::<u64>(&bytes, 1) {
                Ok(read) => {
                    assert!(!covered, "bit {bit}");
                    let found = read.map(|(_, found)| found).unwrap_or_default();
                    assert_eq!(found, numbered(7, &example()[..record.max(1) - 1]), "bit {bit}");
                }
                Err(Error::Corrupt { offset, .. }) => {
                    // A damaged magic or field of the header is an error even if no record says that it was synced.
                    assert!(covered || record == 0, "bit {bit}");
                    assert_eq!(offset, start as u64, "bit {bit}");
                }
                Err(Error::UnsupportedVersion { .. }) => assert!((64..96).contains(&bit), "bit {bit}"),
                Err(error) => panic!("bit {bit}: {error}"),
            }
        }
    }
}

/// Asserts that every flipped bit of a closed log is noticed. A flipped bit before the end record is an error. If the bit
/// is inside the end record, the reader treats the end record as torn.
#[test]
fn every_flipped_bit_of_a_closed_log() {
    let previous = PreviousLog { number: 1, len: 96 };
    let sound = log_after::<u64>(Some(previous), 2, 7, &example(), &[], true);
    let end_record = sound.len() - 32;
    for bit in 0..sound.len() * 8 {
        let mut bytes = sound.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        match read::<u64>(&bytes, 2) {
            Ok(Some((end, found))) => {
                assert!(bit / 8 >= end_record, "bit {bit}");
                assert_eq!((end.torn_bytes, end.closed), (32, false));
                assert_eq!(found, numbered(7, &example()));
            }
            Ok(None) => panic!("bit {bit}"),
            Err(Error::Corrupt { .. }) => assert!(bit / 8 < end_record, "bit {bit}"),
            Err(Error::UnsupportedVersion { .. }) => assert!((64..96).contains(&bit), "bit {bit}"),
            Err(error) => panic!("bit {bit}: {error}"),
        }
    }
}

#[test]
fn fields_about_the_previous_log() {
    for (number, len, sound) in [
        (0, 0, true),
        (0, 56, false),
        (1, 0, false),
        (1, 48, false),
        (1, 56, true),
        (1, 60, false),
        (2, 64, true),
        (3, 64, false),
    ] {
        let mut bytes = log::<u64>(3, 7, &example(), &[]);
        bytes[log_header::PREVIOUS..][..8].copy_from_slice(&u64::to_le_bytes(number));
        bytes[log_header::PREVIOUS_LEN..][..8].copy_from_slice(&u64::to_le_bytes(len));
        let crc = crc32fast::hash(&bytes[..log_header::CRC]);
        bytes[log_header::CRC..][..4].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(read::<u64>(&bytes, 3).is_ok(), sound, "{number} {len}");
    }
}

/// Asserts that an end record is reported as damage if the durable length in it does not reach up to the end record.
#[test]
fn an_end_record_that_says_less() {
    let mut bytes = log_after::<u64>(None, 1, 7, &example(), &[], true);
    let offsets = record_offsets(&bytes);
    let at = offsets[offsets.len() - 2];
    bytes[at + 24..][..8].copy_from_slice(&(at as u64 - 8).to_le_bytes());
    seal(&mut bytes, 1, at, at + 32);
    assert!(matches!(read::<u64>(&bytes, 1), Err(Error::Corrupt { offset, .. }) if offset == at as u64 + 24));
}

#[test]
fn records_in_another_place_or_of_another_log_are_not_read() {
    let batches = [
        vec![OwnedOperation::Delete(1, 1)],
        vec![OwnedOperation::Delete(2, 2)],
        vec![OwnedOperation::Delete(3, 3)],
    ];
    let sound = log::<u64>(1, 1, &batches, &[]);
    let offsets = record_offsets(&sound);
    let record = |i: usize| &sound[offsets[i]..offsets[i + 1]];
    let header = &sound[..offsets[0]];
    let swapped = [header, record(1), record(0), record(2)].concat();
    assert_eq!(read::<u64>(&swapped, 1).unwrap().unwrap().1, []);
    let moved = [header, record(0), record(0), record(2)].concat();
    assert_eq!(read::<u64>(&moved, 1).unwrap().unwrap().1, numbered(1, &batches[..1]));
    let gone = [header, record(0), record(2)].concat();
    assert_eq!(read::<u64>(&gone, 1).unwrap().unwrap().1, numbered(1, &batches[..1]));
    let other = log::<u64>(2, 1, &batches, &[0, 1]);
    let mixed = [&sound[..offsets[1]], &other[offsets[1]..]].concat();
    assert_eq!(read::<u64>(&mixed, 1).unwrap().unwrap().1, numbered(1, &batches[..1]));
    assert!(matches!(read::<u64>(&sound, 2), Err(Error::Corrupt { offset: 16, .. })));
    // The record has a valid checksum at its offset, but the record before it is missing.
    let mut skipped = [header, record(0), record(2)].concat();
    seal(&mut skipped, 1, offsets[1], offsets[2]);
    assert_eq!(read::<u64>(&skipped, 1).unwrap().unwrap().1, numbered(1, &batches[..1]));
}

#[test]
fn a_torn_header_is_damage_only_if_it_was_synced() {
    for (synced, damaged) in [(&[][..], false), (&[0], true)] {
        let sound = log::<u64>(1, 1, &example(), synced);
        let zeros = [&[0; log_header::LEN][..], &sound[log_header::LEN..]].concat();
        match read::<u64>(&zeros, 1) {
            Ok(None) => assert!(!damaged),
            other => assert!(damaged && matches!(other, Err(Error::Corrupt { offset: 0, .. }))),
        }
    }
    let text = b"A text that is longer than the header of a log, which is not so short.";
    let damage = read::<u64>(text, 1).unwrap_err();
    assert!(matches!(damage, Error::Corrupt { damage: Damage::Magic { .. }, .. }), "{damage}");
}

/// Asserts that the damage of a hostile log is reported. The log has many overlapping records, each nearly as long as
/// the file. The test is fast only if checksums of no more than a small multiple of the file size are computed.
#[test]
fn hostile_logs_do_not_take_long() {
    let mut bytes = log::<u64>(1, 1, &example()[..1], &[]);
    let at = bytes.len();
    bytes.extend([0; 32]);
    let end = 8 << 20;
    while bytes.len() + 32 < end {
        let left = (end - bytes.len()) as u32 - 32;
        bytes.extend(b"\xf7rec\0\0\0\0");
        bytes.extend(left.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(9_u64.to_le_bytes());
        bytes.extend((at as u64 + 1).to_le_bytes());
    }
    bytes.resize(end, 0);
    assert!(matches!(read::<u64>(&bytes, 1), Err(Error::Corrupt { offset, .. }) if offset == at as u64));
}
