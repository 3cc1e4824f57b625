//! Tests of commits: their effects on the log, on the memtable and on waiting threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::*;

#[test]
fn a_full_memtable_is_frozen_with_its_log() {
    let store = ManualStore::new(StoreOptions { memtable: 1 << 16, ..small() });
    let mut records = 0;
    while store.shared.view().memtables.len() == 1 {
        store.commit(|batch| (0..100).for_each(|i| batch.insert(1000 * records + i, i)));
        records += 1;
    }
    let view = store.shared.view();
    assert!(view.memtables[0].memtable.bytes() >= 1 << 16);
    // The commit that found the memtable full is in the next memtable.
    assert_eq!(
        (&view.memtables[1].log_numbers[..], view.memtables[1].first_sequence),
        (&[2][..], records - 1)
    );
    assert_eq!(view.memtables[1].memtable.entries(view.memtables[1].memtable.version()).len(), 100);
    let first = std::fs::metadata(store.file("000001.log")).unwrap().len();
    assert_eq!(lock(&store.shared.write_stats).log_bytes, first);
    assert_eq!(store.reopen().unwrap().pairs().len() as u64, 100 * records);
}

#[test]
fn a_writer_waits_while_two_memtables_wait() {
    // Each commit finds the memtable full.
    let store = ManualStore::new(StoreOptions { memtable: 0, ..small() });
    (0..2).for_each(|i| store.commit(|batch| batch.insert(i, i)));
    assert_eq!(store.shared.view().memtables.len(), 3);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let committed = store.try_commit(|batch| batch.insert(7, 7));
            done.store(true, Ordering::SeqCst);
            committed
        });
        std::thread::sleep(Duration::from_millis(30));
        assert!(!done.load(Ordering::SeqCst));
        super::super::flush::flush(&store.shared).unwrap();
        writing.join().unwrap().unwrap();
    });
    assert_eq!(store.pairs(), [(0, 0), (1, 1), (7, 7)]);
}

/// Asserts that a writer that waits for a flush returns an error when another write of the store fails.
#[test]
fn a_waiting_writer_gets_the_error_of_a_failure() {
    let store = ManualStore::new(StoreOptions { memtable: 0, ..small() });
    (0..2).for_each(|i| store.commit(|batch| batch.insert(i, i)));
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| store.try_commit(|batch| batch.insert(7, 7)));
        store.shared.fail(&Error::BadArgument("on purpose".to_string()));
        let error = writing.join().unwrap().unwrap_err();
        assert!(matches!(&error, Error::Poisoned { reason, .. } if reason == "on purpose"), "{error}");
    });
    assert_eq!(store.pairs(), [(0, 0), (1, 1)]);
}

#[test]
fn after_a_failure_nothing_is_written_and_all_is_read() {
    let store = ManualStore::new(small());
    store.commit(|batch| batch.insert(1, 1));
    let log = std::fs::read(store.file("000001.log")).unwrap();
    store.shared.fail(&Error::BadArgument("first".to_string()));
    store.shared.fail(&Error::BadArgument("second".to_string()));
    let writer = &store.writer;
    let refused = [
        store.try_commit(|batch| batch.insert(2, 2)),
        store.try_commit(|_| ()),
        writer.freeze(),
        writer.sync(),
        writer.close(),
        writer.raise_distance(9),
        writer.delete_all(&[(1, 1)], Durability::Os).map(drop),
        store.shared.wait_for_flush(None),
    ];
    for error in refused.map(Result::unwrap_err) {
        assert!(matches!(&error, Error::Poisoned { reason, .. } if reason == "first"), "{error}");
    }
    assert_eq!(std::fs::read(store.file("000001.log")).unwrap(), log);
    assert_eq!(store.pairs(), [(1, 1)]);
}

#[test]
fn a_transaction_is_seen_whole_or_not_at_all() {
    let store = ManualStore::new(small());
    let before = store.snapshot();
    let mut transaction = Transaction::new(&store.writer);
    transaction.insert(1, 1);
    assert!(transaction.insert_named(2, 2, &"x".repeat(1 << 17)).is_err());
    transaction.delete(1, 1);
    transaction.insert(3, 3);
    assert_eq!(store.pairs(), []);
    // An operation that returned an error is not part of the transaction.
    transaction.commit(Durability::Os).unwrap();
    assert_eq!((store.pairs(), before.len()), (vec![(3, 3)], 0));
    let store = store.reopen().unwrap();
    assert_eq!(store.pairs(), [(3, 3)]);
    assert_eq!(
        store.snapshot().logs().iter().map(|log| (log.records, log.operations)).collect::<Vec<_>>(),
        [(1, 3)]
    );
}

/// Asserts that notes are in logs, in segments and in merged segments, and that deletes remove them.
#[test]
fn notes_go_from_logs_to_segments() {
    let store = ManualStore::new(small());
    store.commit(|batch| batch.insert(1, 1));
    store.commit(|batch| {
        batch.insert(2, 2);
        batch.set_note(2, b"two").unwrap();
        assert!(batch.set_note(3, &vec![0; (1 << 24) + 1]).is_err());
    });
    store.commit(|batch| batch.set_note(1, b"one").unwrap());
    let store = store.reopen().unwrap();
    assert_eq!(
        store.snapshot().notes_of(&[1, 2, 3]).unwrap(),
        [Some(b"one".to_vec()), Some(b"two".to_vec()), None]
    );
    // After the flush, the segment has the two notes.
    store.flush().unwrap();
    assert_eq!(store.snapshot().stats().notes, 2);
    let store = store.reopen().unwrap();
    store.commit_and_flush(|batch| (1..3).for_each(|i| batch.delete(i, i)));
    let segments = store.manifest().segments.len();
    super::super::merge::merge(
        &store.shared,
        0..segments,
        3,
        super::super::merge::MergeMode::Foreground(None),
    )
    .unwrap();
    assert_eq!(store.snapshot().stats().notes, 0);
    assert_eq!(store.snapshot().notes_of(&[1, 2]).unwrap(), [None, None]);
}

#[test]
fn names_and_notes_need_ids() {
    let store = ManualStore::new(StoreOptions { ids: Some(false), ..small() });
    store.commit(|batch| {
        for result in [batch.insert_named(1, 0, "a"), batch.set_note(0, b"a")] {
            let error = result.unwrap_err();
            assert!(matches!(error, Error::BadArgument(_)), "{error}");
            assert!(error.to_string().contains("in a store without ids"), "{error}");
        }
        batch.insert(2, 0);
    });
    store.flush().unwrap();
    assert_eq!(store.reopen().unwrap().snapshot().stats().names, 0);
}

#[test]
fn a_closed_log_says_so_and_takes_no_more() {
    let store = ManualStore::new(small());
    store.commit(|batch| batch.insert(1, 1));
    store.writer.close().unwrap();
    assert!(store.try_commit(|batch| batch.insert(2, 2)).is_err());
    let snapshot = Snapshot::<u64>::open(store.path()).unwrap();
    assert!(snapshot.logs()[0].is_sealed && snapshot.len() == 1);
}

#[test]
fn a_store_without_ids_takes_all_for_one() {
    let store = ManualStore::new(StoreOptions { ids: Some(false), ..small() });
    store.commit(|batch| [1, 2].into_iter().for_each(|id| batch.insert(5, id)));
    assert_eq!(store.snapshot().len(), 1);
    assert_eq!(store.writer.delete_all(&[(5, 77)], Durability::Os).unwrap(), [true]);
    assert_eq!(store.writer.delete_all(&[(5, 77)], Durability::Os).unwrap(), [false]);
    assert_eq!(store.snapshot().len(), 0);
}
