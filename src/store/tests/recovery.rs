//! Tests of log recovery: which logs are read, how the logs are checked against one another, and torn tails (incomplete
//! records at the end of a log).

use std::fs::{copy, read, remove_file, write};

use super::super::log_chain::{LogChain, LogInfo};
use super::super::recovery::UnflushedLogs;
use super::*;
use crate::error::Damage;
use crate::memtable::Memtable;

/// Creates a store with three logs. The first log has two records of two operations each. The other logs have one record of
/// one operation each.
fn three_logs() -> ManualStore {
    let store = ManualStore::new(small());
    for i in 0..2 {
        store.commit(|batch| (0..2).for_each(|j| batch.insert(10 * i + j, i)));
    }
    store.writer.freeze().unwrap();
    store.commit(|batch| batch.delete(0, 0));
    store.writer.freeze().unwrap();
    store.commit(|batch| batch.set_metadata("key", b"value").unwrap());
    store
}

fn replay(store: &ManualStore, manifest: &Manifest) -> Result<(LogChain, Memtable<u64>)> {
    let logs = UnflushedLogs::open(&Disk::default(), store.path(), manifest)?;
    let memtable = Memtable::with_expected_pairs(3, logs.insert_count::<u64>());
    Ok((logs.replay(store.path(), manifest, &memtable)?, memtable))
}

fn what(error: &Error) -> &'static str {
    match error {
        Error::Corrupt { damage: Damage::Mismatch { what }, .. } => what,
        other => panic!("{other}"),
    }
}

#[test]
fn logs_are_replayed_in_order() {
    let store = three_logs();
    let manifest = store.manifest();
    let logs = UnflushedLogs::open(&Disk::default(), store.path(), &manifest).unwrap();
    assert_eq!(logs.numbers().collect::<Vec<_>>(), [1, 2, 3]);
    let (replayed, memtable) = replay(&store, &manifest).unwrap();
    let counts: Vec<_> = replayed.logs.iter().map(|log| (log.number, log.records, log.operations)).collect();
    assert_eq!(counts, [(1, 2, 4), (2, 1, 1), (3, 1, 1)]);
    assert_eq!(replayed.next_sequence, 4);
    assert_eq!(replayed.last.map(|last| (last.number, last.len)), Some((3, replayed.logs[2].bytes)));
    assert_eq!(replayed.before_last.map(|last| last.number), Some(2));
    // Each log but the last is sealed by its successor.
    assert_eq!(replayed.logs.iter().map(|log| log.is_sealed).collect::<Vec<_>>(), [true, true, false]);
    let version = memtable.version();
    assert_eq!(memtable.entries(version), [(1, 0), (10, 1), (11, 1)]);
    assert_eq!(memtable.tombstones(version), [(0, 0)]);
    assert_eq!(memtable.all_metadata(version).len(), 1);
}

#[test]
fn a_missing_log_is_reported_by_its_name() {
    for missing in ["000001.log", "000002.log"] {
        let store = three_logs();
        remove_file(store.file(missing)).unwrap();
        let error = replay(&store, &store.manifest()).map(drop).unwrap_err();
        let Error::Io { path, action: "open", .. } = &error else { panic!("{error}") };
        assert!(path.ends_with(missing), "{error}");
    }
}

/// Asserts that logs with a smaller file number than the manifest's first log are ignored, and that all logs are
/// ignored if the manifest has no first log.
#[test]
fn logs_before_the_first_are_not_read() {
    let store = three_logs();
    let manifest = Manifest { first_log: 2, first_sequence: 2, ..store.manifest() };
    write(store.file("000001.log"), b"anything").unwrap();
    let (replayed, memtable) = replay(&store, &manifest).unwrap();
    assert_eq!((replayed.logs.len(), replayed.next_sequence), (2, 4));
    assert_eq!(memtable.entries(memtable.version()), []);
    let manifest = Manifest { first_log: 0, ..manifest };
    assert_eq!(replay(&store, &manifest).unwrap().0.logs, []);
}

#[test]
fn logs_that_do_not_follow_one_another_are_refused() {
    let store = three_logs();
    let manifest = store.manifest();
    let error = replay(&store, &Manifest { first_sequence: 1, ..manifest.clone() }).map(drop).unwrap_err();
    assert_eq!(what(&error), "the records of this log and of what comes before it");

    // The first log is shorter than the length that the second one records: its last record is missing.
    let bytes = read(store.file("000001.log")).unwrap();
    write(store.file("000001.log"), &bytes[..bytes.len() - 8]).unwrap();
    let error = replay(&store, &manifest).map(drop).unwrap_err();
    assert_eq!(what(&error), "the sound part of this log and what the next log says was synced of it");
    assert!(error.to_string().contains("000001.log"), "{error}");
    write(store.file("000001.log"), bytes).unwrap();

    // The second log is from another store, where the first log is longer.
    let other = three_logs();
    let longer = ManualStore::new(small());
    (0..5).for_each(|i| longer.commit(|batch| batch.insert(i, i)));
    longer.writer.freeze().unwrap();
    longer.commit(|batch| batch.insert(9, 9));
    copy(longer.file("000002.log"), other.file("000002.log")).unwrap();
    let error = replay(&other, &manifest).map(drop).unwrap_err();
    assert_eq!(what(&error), "the sound part of this log and what the next log says was synced of it");
}

#[test]
fn a_log_without_a_header_is_damage() {
    let store = three_logs();
    write(store.file("000004.log"), b"").unwrap();
    let error = replay(&store, &store.manifest()).map(drop).unwrap_err();
    assert_eq!(what(&error), "the header of this log and its checksum");
    assert!(error.to_string().contains("000004.log"), "{error}");
}

/// Asserts that an incomplete record at the end of the newest log is left out, and that the first open reports it.
#[test]
fn a_torn_tail_is_left_out() {
    let store = three_logs();
    store.commit(|batch| batch.insert(77, 7));
    let bytes = read(store.file("000003.log")).unwrap();
    write(store.file("000003.log"), &bytes[..bytes.len() - 8]).unwrap();
    let store = store.reopen().unwrap();
    assert_eq!(store.pairs(), [(1, 0), (10, 1), (11, 1)]);
    assert_eq!(store.snapshot().metadata("key").unwrap().as_deref(), Some(&b"value"[..]));
    let Some(Error::TornTail { path, bytes, .. }) = &store.torn_tail else { panic!("{:?}", store.torn_tail) };
    assert!(path.ends_with("000003.log") && *bytes > 0);
    // The log that this open started seals the torn log, so the next open reports nothing.
    assert!(store.reopen().unwrap().torn_tail.is_none());
}

#[test]
fn only_an_unsealed_log_can_have_a_torn_tail() {
    let log = LogInfo { number: 7, bytes: 100, torn_bytes: 0, is_sealed: false, records: 1, operations: 1 };
    assert!(log.torn_tail(Path::new("s")).is_none());
    assert!(LogInfo { torn_bytes: 30, is_sealed: true, ..log }.torn_tail(Path::new("s")).is_none());
    let Some(Error::TornTail { path, offset, bytes }) =
        LogInfo { torn_bytes: 30, ..log }.torn_tail(Path::new("s"))
    else {
        panic!()
    };
    assert_eq!((path, offset, bytes), (Path::new("s").join("000007.log"), 70, 30));
}

/// Asserts that opening a store with too many logs freezes the memtable that has the operations of these logs, so that
/// the memtable is flushed.
#[test]
fn many_logs_are_frozen_when_the_store_is_opened() {
    let mut store = ManualStore::new(small());
    for i in 0..9 {
        assert_eq!(store.shared.view().memtables.len(), 1, "{i}");
        store.commit(|batch| batch.insert(i, i));
        store = store.reopen().unwrap();
    }
    let view = store.shared.view();
    assert_eq!(view.memtables[0].log_numbers, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!((&view.memtables[1].log_numbers[..], view.memtables[1].first_sequence), (&[10][..], 9));
    // A new log replaces an empty one.
    let store = store.reopen().unwrap();
    assert_eq!(store.files(".log").len(), 10);
}
