//! Tests of checkpoints with several memtables.

use super::*;

/// Asserts that each memtable becomes a segment of the checkpoint, and that tombstones of a newer memtable hide pairs of an
/// older one.
#[test]
fn each_memtable_becomes_a_segment() {
    let store = ManualStore::new(small());
    store.commit(|batch| batch.insert_named(1, 10, "old").unwrap());
    store.commit(|batch| batch.insert(2, 20));
    store.writer.freeze().unwrap();
    store.commit(|batch| batch.delete(1, 10));
    store.commit(|batch| batch.insert_named(3, 30, "new").unwrap());
    store.writer.freeze().unwrap();
    store.commit(|batch| batch.set_metadata("key", b"value").unwrap());
    let snapshot = store.snapshot();
    store.commit(|batch| batch.insert(4, 40));
    assert_eq!(snapshot.memtables().count(), 3);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy");
    snapshot.checkpoint(&path).unwrap();
    let copy = Snapshot::<u64>::open(&path).unwrap();
    let pairs: Vec<_> = copy.iter().map(|entry| entry.map(|e| (e.fingerprint, e.id)).unwrap()).collect();
    assert_eq!(pairs, [(2, Some(20)), (3, Some(30))]);
    assert_eq!(copy.names_of(&[10, 20, 30]).unwrap(), [None, None, Some("new".to_string())]);
    assert_eq!(copy.metadata("key").unwrap().as_deref(), Some(&b"value"[..]));
    let manifest = Manifest::load(&Disk::default(), &path).unwrap();
    let segments: Vec<_> = manifest.segments.iter().map(|entry| (entry.ids, entry.tombstones)).collect();
    assert_eq!(
        (segments, manifest.first_log, manifest.highest_id),
        (vec![(2, 0), (1, 1), (0, 0)], 0, Some(30))
    );
}
