//! Tests of merges of segments.

use super::super::merge::{MergeMode, merge};
use super::*;

impl ManualStore {
    pub(super) fn merge(&self, range: std::ops::Range<usize>) {
        merge(&self.shared, range, self.snapshot().distance(), MergeMode::Foreground(None)).unwrap();
    }
}

/// Creates a store with four segments. The first segment has three pairs of fingerprint and id. The second and the third
/// segment each delete one of these pairs.
fn four() -> ManualStore {
    let store = ManualStore::new(small());
    store.commit_and_flush(|batch| {
        [(1, 1), (11, 1), (12, 2)].into_iter().for_each(|(x, id)| batch.insert(x, id));
    });
    store.commit_and_flush(|batch| {
        batch.insert(2, 2);
        batch.delete(11, 1);
    });
    store.commit_and_flush(|batch| {
        batch.insert(3, 3);
        batch.delete(12, 2);
    });
    store.commit_and_flush(|batch| batch.insert(4, 4));
    assert_eq!(store.segments(), [(3, 3, 0), (5, 1, 1), (7, 1, 1), (9, 1, 0)]);
    store
}

#[test]
fn a_merge_takes_the_place_of_its_segments() {
    let store = four();
    store.merge(1..3);
    // An older segment remains, so the tombstones stay.
    assert_eq!(store.segments(), [(3, 3, 0), (10, 2, 2), (9, 1, 0)]);
    assert_eq!(store.pairs(), [(1, 1), (2, 2), (3, 3), (4, 4)]);
    assert_eq!(Snapshot::<u64>::open(store.path()).unwrap().iter().count(), 4);
    let numbers: Vec<String> = store.files("-00.table").iter().map(|name| name[..6].to_string()).collect();
    assert_eq!(numbers, ["000003", "000009", "000010"]);
    let written = *lock(&store.shared.write_stats);
    assert_eq!((written.compactions, written.flushes), (1, 4));
}

#[test]
fn the_oldest_segments_leave_no_tombstones() {
    let store = four();
    store.merge(0..3);
    assert_eq!(store.segments(), [(10, 3, 0), (9, 1, 0)]);
    assert_eq!(store.files(".tombstones"), [""; 0]);
    store.merge(0..2);
    assert_eq!(store.segments(), [(11, 4, 0)]);
    assert_eq!(store.pairs(), [(1, 1), (2, 2), (3, 3), (4, 4)]);
}

#[test]
fn where_all_is_deleted_no_segment_is_left() {
    let store = ManualStore::new(small());
    store.commit_and_flush(|batch| batch.insert_named(1, 1, "one").unwrap());
    store.commit_and_flush(|batch| batch.delete(1, 1));
    store.merge(0..2);
    assert_eq!((store.segments(), store.files(".table")), (vec![], vec![]));
    assert_eq!(store.manifest().highest_id, Some(1));
    store.commit_and_flush(|batch| batch.insert(2, 2));
    assert_eq!(store.pairs(), [(2, 2)]);
}

#[test]
fn the_newest_name_note_and_mark_count() {
    let store = ManualStore::new(small());
    for (i, text) in ["old", "new"].into_iter().enumerate() {
        store.commit_and_flush(|batch| {
            batch.insert_named(i as u64, 7, text).unwrap();
            batch.set_note(7, text.as_bytes()).unwrap();
            batch.set_metadata("key", text.as_bytes()).unwrap();
            batch.set_metadata(text, b"").unwrap();
        });
    }
    store.merge(0..2);
    let snapshot = store.snapshot();
    assert_eq!(snapshot.name(7).unwrap().as_deref(), Some("new"));
    assert_eq!(snapshot.note(7).unwrap().as_deref(), Some(&b"new"[..]));
    assert_eq!(snapshot.metadata("key").unwrap().as_deref(), Some(&b"new"[..]));
    let stats = snapshot.stats();
    assert_eq!((stats.names, stats.notes, stats.metadata), (1, 1, 3));
}

#[test]
fn names_and_notes_of_deleted_documents_go_and_those_of_others_stay() {
    let store = ManualStore::new(small());
    store.commit_and_flush(|batch| {
        for (fingerprint, id) in [(1, 10), (2, 20), (3, 20), (4, 30)] {
            batch.insert_named(fingerprint, id, &format!("document {id}")).unwrap();
            batch.set_note(id, &[id as u8]).unwrap();
        }
    });
    store.commit_and_flush(|batch| {
        [(1, 10), (2, 20)].into_iter().for_each(|(x, id)| batch.delete(x, id));
        batch.set_note(20, b"new").unwrap();
    });
    let check = || {
        let names = [10, 20, 30].map(|id| store.snapshot().name(id).unwrap());
        assert_eq!(names, [None, None, Some("document 30".to_string())]);
        let notes = store.snapshot().notes_of(&[10, 20, 30]).unwrap();
        assert_eq!(notes, [None, Some(b"new".to_vec()), Some(vec![30])]);
    };
    check();
    store.merge(0..2);
    check();
    let stats = store.snapshot().stats();
    assert_eq!((stats.names, stats.notes), (1, 2));
}

/// Asserts that merging some of the segments changes no name or note: the merged segment keeps the tombstones that delete
/// names and notes in older segments.
#[test]
fn names_and_notes_are_forgotten_across_segments_that_are_not_merged() {
    let store = ManualStore::new(small());
    store.commit_and_flush(|batch| {
        batch.insert_named(1, 10, "old").unwrap();
        batch.set_note(10, b"old").unwrap();
        batch.insert_named(5, 50, "five").unwrap();
    });
    store.commit_and_flush(|batch| batch.delete(1, 10));
    store.commit_and_flush(|batch| batch.insert(1, 10));
    let check = |name: Option<&str>| {
        let snapshot = store.snapshot();
        assert_eq!((snapshot.name(10).unwrap().as_deref(), snapshot.note(10).unwrap()), (name, None));
        assert_eq!(snapshot.names_of(&[10, 50]).unwrap(), [name.map(str::to_owned), Some("five".to_owned())]);
        assert_eq!(snapshot.pairs_of_ids(&[10].into()).unwrap()[0].name.as_deref(), name);
        assert_eq!(snapshot.pairs_of_names(&["old".to_owned()].into()).unwrap(), []);
    };
    check(None);
    store.merge(1..3);
    check(None);
    store.commit_and_flush(|batch| batch.insert_named(1, 10, "new").unwrap());
    check(Some("new"));
    store.merge(1..3);
    check(Some("new"));
    store.merge(0..2);
    check(Some("new"));
}

#[test]
fn the_distance_rises_with_a_merge_of_all() {
    let store = four();
    assert!(store.snapshot().query(1, 5).is_err());
    merge(&store.shared, 0..4, 5, MergeMode::Foreground(None)).unwrap();
    assert_eq!((store.snapshot().distance(), store.manifest().settings.distance), (5, 5));
    // 1 is within 2 bits of 2, 3 and 4, and of itself.
    assert_eq!(store.snapshot().query(1, 5).unwrap().len(), 4);
}

/// Asserts that a pair that the memtable deletes stays deleted after the segment with the pair was merged, and after a
/// flush.
#[test]
fn deletes_in_the_memtable_survive_a_merge() {
    let store = four();
    store.commit(|batch| batch.delete(1, 1));
    store.merge(0..4);
    assert_eq!(store.pairs(), [(2, 2), (3, 3), (4, 4)]);
    store.flush().unwrap();
    assert_eq!(store.segments(), [(10, 4, 0), (12, 0, 1)]);
    assert_eq!(store.pairs(), [(2, 2), (3, 3), (4, 4)]);
}
