//! Tests of flushes, which write memtables as segments.

use super::*;

#[test]
fn a_memtable_becomes_a_segment_and_its_log_goes() {
    let store = ManualStore::new(small());
    store.commit(|batch| batch.insert_named(5, 50, "five").unwrap());
    store.commit(|batch| batch.set_metadata("key", b"value").unwrap());
    store.commit_and_flush(|batch| batch.insert(6, 60));
    let manifest = store.manifest();
    assert_eq!((manifest.first_log, manifest.first_sequence, manifest.highest_id), (2, 3, Some(60)));
    assert_eq!(store.files(".log"), ["000002.log"]);
    assert_eq!(store.segments(), [(3, 2, 0)]);
    assert!(manifest.next_number > 3);
    let snapshot = store.snapshot();
    assert_eq!(
        (snapshot.stats().memtable_entries, snapshot.stats().names, snapshot.stats().metadata),
        (0, 1, 1)
    );
    assert_eq!(store.pairs(), [(5, 50), (6, 60)]);
    assert_eq!(snapshot.name(50).unwrap().as_deref(), Some("five"));
    let written = *lock(&store.shared.write_stats);
    assert_eq!((written.flushes, written.flush_bytes), (1, snapshot.segments()[0].stats().bytes));
    // Nothing has been written since, so no segment is made.
    store.flush().unwrap();
    assert_eq!(store.segments(), [(3, 2, 0)]);
}

/// Asserts that a deleted pair leaves a tombstone in the flushed segment only if there are older segments.
#[test]
fn tombstones_are_kept_where_there_is_something_to_hide() {
    let store = ManualStore::new(small());
    store.commit_and_flush(|batch| {
        batch.insert(1, 1);
        batch.insert(2, 2);
        batch.delete(1, 1);
        batch.delete(9, 9);
    });
    assert_eq!(store.segments(), [(3, 1, 0)]);
    store.commit_and_flush(|batch| {
        batch.insert(3, 3);
        batch.delete(2, 2);
    });
    assert_eq!(store.segments()[1..], [(5, 1, 1)]);
    assert_eq!(store.pairs(), [(3, 3)]);
    // Tombstones alone make a segment.
    store.commit_and_flush(|batch| batch.delete(3, 3));
    assert_eq!(store.segments()[2..], [(7, 0, 1)]);
    assert_eq!(store.pairs(), []);
}

#[test]
fn pair_deleted_before_a_flush_leaves_no_segment_and_no_log() {
    let store = ManualStore::new(small());
    store.commit_and_flush(|batch| {
        batch.insert_named(1, 100, "gone").unwrap();
        batch.delete(1, 100);
    });
    let manifest = store.manifest();
    assert_eq!((manifest.segments.len(), manifest.first_log, manifest.first_sequence), (0, 2, 1));
    assert_eq!(store.files(".names"), [""; 0]);
    // The highest id stays, so that a deleted id is not used again.
    assert_eq!(manifest.highest_id, Some(100));
}

#[test]
fn the_name_of_a_deleted_document_goes_with_it() {
    let store = ManualStore::new(small());
    store.commit_and_flush(|batch| {
        for (fingerprint, id) in [(1, 10), (2, 20), (3, 20)] {
            batch.insert_named(fingerprint, id, &format!("document {id}")).unwrap();
        }
        batch.delete(1, 10);
        batch.delete(2, 20);
    });
    let snapshot = store.snapshot();
    // Another fingerprint still has the id 20.
    assert_eq!((snapshot.name(10).unwrap(), snapshot.name(20).unwrap()), (None, None));
    assert_eq!((store.pairs(), snapshot.stats().names), (vec![(3, 20)], 0));
}

/// Asserts that deleting a pair removes the note (bytes stored with a document) of the pair's id, even if the id has
/// another fingerprint.
#[test]
fn the_note_of_a_deleted_document_goes_with_it() {
    let store = ManualStore::new(small());
    store.commit_and_flush(|batch| {
        for (fingerprint, id) in [(1, 10), (2, 20), (3, 20)] {
            batch.insert(fingerprint, id);
            batch.set_note(id, &[id as u8]).unwrap();
        }
        batch.delete(1, 10);
        batch.delete(2, 20);
    });
    assert_eq!(store.snapshot().notes_of(&[10, 20]).unwrap(), [None, None]);
    assert_eq!(store.snapshot().stats().notes, 0);
    store.commit_and_flush(|batch| {
        batch.insert_named(4, 20, "new").unwrap();
        batch.delete(4, 20);
        batch.set_note(20, b"new").unwrap();
    });
    let snapshot = store.snapshot();
    assert_eq!(snapshot.note(20).unwrap().as_deref(), Some(&b"new"[..]));
    assert_eq!(snapshot.name(20).unwrap(), None);
    // A note alone makes a segment, too.
    store.commit_and_flush(|batch| batch.set_note(20, b"newer").unwrap());
    assert_eq!(store.snapshot().note(20).unwrap().as_deref(), Some(&b"newer"[..]));
    assert_eq!((store.manifest().segments.len(), store.snapshot().stats().notes), (3, 2));
}

/// Asserts that memtables are flushed in the order in which they were frozen (took no more writes), and that the manifest
/// before each flush names the first log that is not flushed.
#[test]
fn memtables_are_flushed_in_order() {
    let store = ManualStore::new(small());
    for i in 0..3 {
        store.commit(|batch| batch.insert(i, i));
        store.writer.freeze().unwrap();
    }
    for i in 0..3 {
        let manifest = store.manifest();
        assert_eq!(
            (manifest.first_log, manifest.first_sequence, manifest.segments.len()),
            (1 + i, i, i as usize)
        );
        assert_eq!(Snapshot::<u64>::open(store.path()).unwrap().iter().count(), 3);
        super::super::flush::flush(&store.shared).unwrap();
    }
    assert_eq!((store.pairs().len(), store.files(".log")), (3, vec!["000004.log".to_string()]));
}

#[test]
fn after_a_failed_flush_nothing_more_is_written() {
    let store = ManualStore::new(small());
    store.commit(|batch| batch.insert(1, 1));
    store.writer.freeze().unwrap();
    std::fs::remove_dir_all(store.path()).unwrap();
    let error = store.shared.in_pool(|| super::super::flush::flush(&store.shared)).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    // The flush thread reports its failure like this.
    store.shared.fail(&error);
    assert!(matches!(store.try_commit(|batch| batch.insert(2, 2)), Err(Error::Poisoned { .. })));
    assert_eq!(store.pairs(), [(1, 1)]);
}
