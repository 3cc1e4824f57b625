//! Tests of [`Snapshot::refresh`]: which log records a refresh reads, and that its result equals a newly opened snapshot.

use std::collections::HashSet;
use std::io::{Seek, SeekFrom, Write};

use super::*;
use crate::memtable::Memtable;
use crate::segment::{Entry, Match};

/// The results of all read operations of a snapshot.
#[derive(Debug, PartialEq)]
struct SnapshotContents {
    pairs: Vec<(u64, Option<u64>)>,
    near: Vec<Vec<Match<u64>>>,
    names: Vec<Option<String>>,
    notes: Vec<Option<Vec<u8>>>,
    metadata: Vec<Option<Vec<u8>>>,
    highest_id: Option<u64>,
}

impl SnapshotContents {
    fn read(snapshot: &Snapshot<u64>) -> SnapshotContents {
        let entry = |entry: Result<Entry<u64>>| entry.map(|entry| (entry.fingerprint, entry.id)).unwrap();
        let queries = [0, 1, 77, u64::MAX, spread(3), spread(11) ^ 5];
        SnapshotContents {
            pairs: snapshot.iter().map(entry).collect(),
            near: queries.iter().map(|&query| snapshot.query(query, 3).unwrap()).collect(),
            names: (0..20).map(|id| snapshot.name(id).unwrap()).collect(),
            notes: (0..20).map(|id| snapshot.note(id).unwrap()).collect(),
            metadata: (0..3).map(|key| snapshot.metadata(&key.to_string()).unwrap()).collect(),
            highest_id: snapshot.highest_id(),
        }
    }
}

fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns the number of operations in memtables that the snapshot `after` sees, but `before` does not.
fn operations_between(before: &Snapshot<u64>, after: &Snapshot<u64>) -> u64 {
    let known = |memtable: &Memtable<u64>| {
        before.memtables().find(|(other, _)| std::ptr::eq(*other, memtable)).map_or(0, |(_, version)| version)
    };
    after.memtables().map(|(memtable, version)| version - known(memtable)).sum()
}

/// Asserts that a snapshot has the same contents as a newly opened snapshot of the same store.
fn assert_as_opened(reader: &Snapshot<u64>) {
    let opened = Snapshot::<u64>::open(reader.path()).unwrap();
    assert_eq!(SnapshotContents::read(reader), SnapshotContents::read(&opened));
    assert_eq!(reader.logs(), opened.logs());
    // A fingerprint in several memtables counts several times, and the two snapshots may divide the logs among memtables differently.
    assert!(
        reader.len()
            >= reader.iter().map(|entry| entry.unwrap().fingerprint).collect::<HashSet<_>>().len() as u64
    );
    assert_eq!(reader.segments().len(), opened.segments().len());
}

#[test]
fn only_new_documents_are_read() {
    let store = ManualStore::new(small());
    store.commit(|batch| (0..10).for_each(|i| batch.insert(spread(i), i)));
    let first = Snapshot::<u64>::open(store.path()).unwrap();
    assert_eq!(operations_between(&first, &first.refresh().unwrap()), 0);

    store.commit(|batch| (10..13).for_each(|i| batch.insert(spread(i), i)));
    let second = first.refresh().unwrap();
    assert_eq!((operations_between(&first, &second), first.len(), second.len()), (3, 10, 13));
    assert_as_opened(&second);
    // The older snapshot is unchanged. Its own refresh reuses the records that the newer one has read.
    assert_eq!(first.query(spread(11), 0).unwrap(), []);
    assert_eq!(operations_between(&second, &first.refresh().unwrap()), 0);

    // A log after a small one is read into the same memtable; a log after a large one gets a new memtable.
    store.writer.freeze().unwrap();
    store.commit(|batch| batch.delete(spread(1), 1));
    let third = second.refresh().unwrap();
    assert_eq!((operations_between(&second, &third), third.memtables().len(), third.len()), (1, 1, 12));
    store.commit(|batch| batch.set_metadata("key", &[7; 4000]).unwrap());
    store.writer.freeze().unwrap();
    store.commit(|batch| batch.insert(77, 77));
    let fourth = third.refresh().unwrap();
    assert_eq!((operations_between(&third, &fourth), fourth.memtables().len()), (2, 2));
    assert_as_opened(&fourth);

    // Memtables that were flushed are dropped, and later ones are kept.
    store.shared.in_pool(|| super::super::flush::flush(&store.shared)).unwrap();
    store.shared.in_pool(|| super::super::flush::flush(&store.shared)).unwrap();
    let fifth = fourth.refresh().unwrap();
    assert_eq!(
        (operations_between(&fourth, &fifth), fifth.memtables().len(), fifth.segments().len()),
        (0, 1, 2)
    );
    assert_as_opened(&fifth);
    for (reader, len) in [(&first, 10), (&second, 13), (&third, 12), (&fourth, 13)] {
        assert_eq!(reader.len(), len);
        assert_as_opened(&reader.refresh().unwrap());
    }
}

/// Overwrites bytes of a file from offset `at` on.
fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(bytes).unwrap();
}

/// Asserts that a refresh finds damage in the header of a log, in the last record that earlier opens or refreshes have
/// read, and in new records. It does not find damage in the other old records.
#[test]
fn damage_is_found_in_the_parts_that_are_read() {
    let store = ManualStore::new(small());
    (0..5).for_each(|i| store.commit(|batch| batch.insert(spread(i), i)));
    store.writer.sync().unwrap();
    let reader = Snapshot::<u64>::open(store.path()).unwrap();
    let log = store.file("000001.log");
    store.commit(|batch| batch.insert(spread(5), 5));
    let six = std::fs::read(&log).unwrap();
    overwrite(&log, 60, &[0xff; 4]);
    assert!(Snapshot::<u64>::open(store.path()).is_err());
    assert_eq!(reader.refresh().unwrap().len(), 6);
    // The last known record is damaged: the whole log is read again.
    overwrite(&log, 0, &six);
    overwrite(&log, six.len() as u64 - 20, &[0xff; 4]);
    let without = reader.refresh().unwrap();
    assert_eq!(without.len(), 5);
    assert_as_opened(&without);
    let same_error = |at: usize| {
        overwrite(&log, at as u64, &[0xff; 4]);
        let opened = Snapshot::<u64>::open(store.path()).unwrap_err();
        assert_eq!(reader.refresh().unwrap_err().to_string(), opened.to_string());
    };
    overwrite(&log, 0, &six);
    same_error(20);
    // A new record is damaged, and a later record proves that it was synced.
    overwrite(&log, 0, &six);
    store.commit(|batch| batch.insert(spread(6), 6));
    store.writer.sync().unwrap();
    store.commit(|batch| batch.insert(spread(7), 7));
    let eight = std::fs::read(&log).unwrap();
    same_error(six.len() + 40);
    // The failed refresh applied no operation. After a repair, all are applied.
    overwrite(&log, 0, &eight);
    let sound = reader.refresh().unwrap();
    assert_eq!((sound.len(), reader.len()), (8, 5));
    assert_as_opened(&sound);
}

/// Asserts that a refresh reads a record that was incomplete at the previous refresh and is complete now.
#[test]
fn a_torn_tail_is_read_again() {
    let store = ManualStore::new(small());
    (0..3).for_each(|i| store.commit(|batch| batch.insert(spread(i), i)));
    let log = store.file("000001.log");
    let whole = std::fs::read(&log).unwrap();
    let reader = |len: usize, before: Option<&Snapshot<u64>>| {
        std::fs::write(&log, &whole[..len]).unwrap();
        let reader = match before {
            Some(before) => before.refresh().unwrap(),
            None => Snapshot::open(store.path()).unwrap(),
        };
        assert_as_opened(&reader);
        reader
    };
    let mut one = reader(whole.len() - 60, None);
    let first = one.clone();
    for len in whole.len() - 59..=whole.len() {
        one = reader(len, Some(&one));
    }
    assert_eq!((first.len(), one.len(), operations_between(&first, &one)), (1, 3, 2));
    // If the log has become shorter than the part that was read, it is read from the beginning.
    let shorter = reader(whole.len() - 60, Some(&one));
    assert_eq!((shorter.len(), one.len()), (1, 3));
}

/// Asserts that a refresh reads the whole log again if another store's log with the same file number has replaced the
/// log that was read before.
#[test]
fn another_store_in_its_place() {
    let stores = [1, 100].map(|first| {
        let store = ManualStore::new(small());
        (first..first + 4).for_each(|i| store.commit(|batch| batch.insert(spread(i), i)));
        store
    });
    let reader = Snapshot::<u64>::open(stores[0].path()).unwrap();
    std::fs::copy(stores[1].file("000001.log"), stores[0].file("000001.log")).unwrap();
    let refreshed = reader.refresh().unwrap();
    assert_as_opened(&refreshed);
    assert_eq!((refreshed.query(spread(100), 0).unwrap().len(), reader.highest_id()), (1, Some(4)));
}

/// Applies random operations to stores. Asserts after each operation that all older snapshots are unchanged, and that a
/// refreshed snapshot equals a newly opened one.
#[test]
fn random_histories() {
    for seed in 0..12 {
        let mut state = seed;
        let mut random = |below: u64| {
            state = spread(state ^ 0x5bd1_e995).rotate_left(23) ^ state;
            (state >> 8) % below
        };
        let mut store = ManualStore::new(small());
        let mut readers: Vec<(Snapshot<u64>, SnapshotContents, u64)> = Vec::new();
        for _ in 0..120 {
            match random(12) {
                0 => store.flush().unwrap(),
                1 => store.writer.freeze().unwrap(),
                2 => {
                    if store.shared.view().memtables.len() > 1 {
                        store.shared.in_pool(|| super::super::flush::flush(&store.shared)).unwrap();
                    }
                }
                3 => store = store.reopen().unwrap(),
                4 => {
                    let segments = store.shared.view().segments.len();
                    if segments > 1 {
                        store.merge(0..segments);
                    }
                }
                5 => store.commit(|batch| (0..random(200)).for_each(|i| batch.insert(spread(i), i))),
                _ => store.commit(|batch| {
                    for _ in 0..1 + random(4) {
                        let (fingerprint, id) = (spread(random(20)) ^ random(3), random(20));
                        match random(6) {
                            0 => batch.delete(fingerprint, id),
                            1 => batch.set_metadata(&random(3).to_string(), &[id as u8]).unwrap(),
                            2 => batch.set_note(id, &vec![id as u8; random(700) as usize]).unwrap(),
                            3 => batch.insert_named(fingerprint, id, &random(9).to_string()).unwrap(),
                            _ => batch.insert(fingerprint, id),
                        }
                    }
                }),
            }
            let reader = match readers.len() as u64 {
                0 => Snapshot::open(store.path()).unwrap(),
                count => readers[random(count) as usize].0.refresh().unwrap(),
            };
            assert_as_opened(&reader);
            let (shown, len) = (SnapshotContents::read(&reader), reader.len());
            readers.push((reader, shown, len));
            if readers.len() > 6 {
                readers.swap_remove(random(7) as usize);
            }
            for (reader, shown, len) in &readers {
                assert_eq!((&SnapshotContents::read(reader), reader.len()), (shown, *len));
            }
        }
    }
}

/// Asserts that several threads can refresh the same snapshot at once while a writer changes the store: each refreshed
/// snapshot has all ids up to its highest id.
#[test]
fn many_readers_at_once() {
    const COUNT: u64 = 3000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let store =
        Store::<u64>::open(&path, StoreOptions { memtable: 1 << 17, ..StoreOptions::default() }).unwrap();
    let first = Snapshot::<u64>::open(&path).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut last = first.clone();
                while last.highest_id() != Some(COUNT - 1) {
                    let next = last.refresh().unwrap();
                    let count = next.highest_id().map_or(0, |highest| highest + 1);
                    assert!(next.highest_id() >= last.highest_id());
                    // All ids up to the highest are stored, each once.
                    let ids = next.iter().map(|entry| entry.unwrap().id.unwrap());
                    let (found, sum) = ids.fold((0, 0), |(count, sum), id| (count + 1, sum + id));
                    assert_eq!((found, sum), (count, count * count.saturating_sub(1) / 2));
                    last = if count.is_multiple_of(3) { first.refresh().unwrap() } else { next };
                }
                assert_eq!(first.highest_id(), None);
            });
        }
        for id in 0..COUNT {
            store.insert(spread(id), id).unwrap();
        }
    });
    store.flush().unwrap();
    assert_as_opened(&first.refresh().unwrap());
}
