//! Tests of [`DamagedStore`]: the issues of a store with missing files.

use std::fs::{remove_file, write};

use super::super::damaged_store::DamagedStore;
use super::super::issue::Issue;
use super::*;
use crate::Codec;
use crate::fs::Fs;

fn open(store: &Path) -> DamagedStore<u64> {
    let fs: Arc<dyn Fs> = Arc::new(Disk::default());
    DamagedStore::open(&fs, store).unwrap()
}

fn names(issues: &[Issue]) -> Vec<String> {
    let name = |issue: &Issue| issue.path.file_name().unwrap().to_string_lossy().into_owned();
    issues.iter().map(name).collect()
}

/// Creates a store with two segments and two logs. The segments have files of names, notes, tombstones and metadata.
fn store() -> ManualStore {
    let store = ManualStore::new(StoreOptions {
        distance: Some(4),
        codec: Some(Codec::Gap),
        block_size: Some(512),
        span: Some(16),
        plan: Some(PlanChoice::Named("probe-2".to_string())),
        ..small()
    });
    store.commit_and_flush(|batch| (0..100).for_each(|i| batch.insert_named(i << 30, i, "name").unwrap()));
    store.commit_and_flush(|batch| {
        batch.delete(0, 0);
        batch.insert(1, 200);
        batch.set_note(200, b"note").unwrap();
        batch.set_metadata("key", b"value").unwrap();
    });
    store.commit(|batch| batch.insert(2, 201));
    store.writer.freeze().unwrap();
    store.commit(|batch| batch.insert(3, 202));
    store
}

#[test]
fn a_sound_store_has_no_issues() {
    let store = store();
    let damaged = open(store.path());
    assert_eq!(names(&damaged.issues), [""; 0]);
    assert_eq!(damaged.settings, store.manifest().settings);
    assert_eq!((damaged.segments.len(), damaged.operations), (2, 2));
    assert_eq!(damaged.metadata["key"], b"value");
    assert_eq!([0, 1].map(|id| damaged.segments[1].has_forgotten(id)), [true, false]);
    assert_eq!(damaged.highest_id, Some(202));
}

/// Asserts that the list of segments and the settings are reconstructed from the other files if the manifest is missing.
#[test]
fn files_tell_what_a_lost_manifest_said() {
    let store = store();
    let manifest = store.manifest();
    remove_file(store.file(MANIFEST)).unwrap();
    let damaged = open(store.path());
    assert_eq!(names(&damaged.issues), [MANIFEST]);
    assert!(damaged.issues[0].is_loss);
    let (expected, actual) = (manifest.settings, &damaged.settings);
    assert_eq!((actual.bits, actual.codec, actual.has_ids), (64, expected.codec, true));
    assert_eq!((actual.block_size, actual.span), (expected.block_size, expected.span));
    assert_eq!((actual.distance, &actual.plan), (expected.distance, &PlanChoice::Auto));
    let actual = damaged.segments.iter().map(|segment| {
        let entry = &segment.entry;
        (entry.number, entry.tables, entry.has_ids, entry.names > 0, entry.tombstones > 0, entry.metadata > 0)
    });
    let expected = manifest.segments.iter().map(|entry| {
        (entry.number, entry.tables, entry.has_ids, entry.names > 0, entry.tombstones > 0, entry.metadata > 0)
    });
    assert_eq!(actual.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    assert_eq!((damaged.operations, salvageable_bits(store.path()).unwrap()), (2, 64));
}

#[test]
fn each_missing_file_is_reported_with_its_consequence() {
    let cases = [
        ("000003.names", "the names of its documents are lost", true),
        ("000005.notes", "the notes of its documents are lost", true),
        ("000005.tombstones", "pairs that it deleted from older segments are back", true),
        ("000005.metadata", "metadata is lost, such as how far inputs have been read", true),
        // The losses of these files are counted as fingerprints instead.
        ("000003-00.table", "cannot open", false),
        ("000003.ids", "cannot open", false),
        ("000004.log", "cannot open", true),
    ];
    for (name, what, lost) in cases {
        let store = store();
        remove_file(store.file(name)).unwrap();
        let issues = open(store.path()).issues;
        assert!(names(&issues).contains(&name.to_string()), "{name}: {issues:?}");
        let is_reported =
            issues.iter().any(|issue| issue.description.contains(what) && issue.is_loss == lost);
        assert!(is_reported, "{name}: {issues:?}");
    }
}

#[test]
fn a_folder_without_a_store_tells_nothing() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(salvageable_bits(folder.path()), Err(Error::NotAStore { .. })));
    write(folder.path().join("000001.log"), b"simstlog").unwrap();
    assert!(matches!(salvageable_bits(folder.path()), Err(Error::NotAStore { .. })));
}
