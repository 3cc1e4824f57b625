//! Findings on a store with missing files.

use std::fs::{remove_file, write};

use super::super::finding::Finding;
use super::super::remains::StoreRemains;
use super::*;
use crate::Codec;
use crate::fs::Fs;

fn open(store: &Path) -> StoreRemains<u64> {
    let fs: Arc<dyn Fs> = Arc::new(Disk::default());
    StoreRemains::open(&fs, store).unwrap()
}

fn names(findings: &[Finding]) -> Vec<String> {
    let name = |finding: &Finding| finding.path.file_name().unwrap().to_string_lossy().into_owned();
    findings.iter().map(name).collect()
}

/// Two segments, with names, notes, tombstones and a mark, and two logs.
fn store() -> Idle {
    let store = Idle::new(StoreOptions {
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
        batch.note(200, b"note").unwrap();
        batch.mark("key", b"value").unwrap();
    });
    store.commit(|batch| batch.insert(2, 201));
    store.writer.freeze().unwrap();
    store.commit(|batch| batch.insert(3, 202));
    store
}

#[test]
fn of_a_sound_store_all_is_told() {
    let store = store();
    let remains = open(store.path());
    assert_eq!(names(&remains.findings), [""; 0]);
    assert_eq!(remains.settings, store.manifest().settings);
    assert_eq!((remains.segments.len(), remains.operations), (2, 2));
    assert_eq!(remains.marks["key"], b"value");
    assert_eq!([0, 1].map(|id| remains.segments[1].forgets(id)), [true, false]);
    assert_eq!(remains.highest_id, Some(202));
}

/// Without a manifest, the files tell which segments there are and how they were written.
#[test]
fn files_tell_what_a_lost_manifest_said() {
    let store = store();
    let manifest = store.manifest();
    remove_file(store.file(MANIFEST)).unwrap();
    let remains = open(store.path());
    assert_eq!(names(&remains.findings), [MANIFEST]);
    assert!(remains.findings[0].lost);
    let (had, told) = (manifest.settings, &remains.settings);
    assert_eq!((told.bits, told.codec, told.ids), (64, had.codec, true));
    assert_eq!((told.block_size, told.span), (had.block_size, had.span));
    assert_eq!((told.distance, &told.plan), (had.distance, &PlanChoice::Auto));
    let told = remains.segments.iter().map(|segment| {
        let entry = &segment.entry;
        (entry.number, entry.tables, entry.has_ids, entry.names > 0, entry.tombstones > 0, entry.marks > 0)
    });
    let had = manifest.segments.iter().map(|entry| {
        (entry.number, entry.tables, entry.has_ids, entry.names > 0, entry.tombstones > 0, entry.marks > 0)
    });
    assert_eq!(told.collect::<Vec<_>>(), had.collect::<Vec<_>>());
    assert_eq!((remains.operations, salvageable_bits(store.path()).unwrap()), (2, 64));
}

#[test]
fn each_missing_file_is_told_with_what_it_means() {
    let cases = [
        ("000003.names", "the names of its documents are lost", true),
        ("000006.notes", "the notes of its documents are lost", true),
        ("000006.tombstones", "pairs that it deleted from older segments are back", true),
        ("000006.marks", "marks are lost, such as how far inputs have been read", true),
        // The losses with these are counted in fingerprints.
        ("000003-00.table", "cannot open", false),
        ("000003.ids", "cannot open", false),
        ("000005.log", "cannot open", true),
    ];
    for (name, what, lost) in cases {
        let store = store();
        remove_file(store.file(name)).unwrap();
        let findings = open(store.path()).findings;
        assert!(names(&findings).contains(&name.to_string()), "{name}: {findings:?}");
        let told = findings.iter().any(|finding| finding.what.contains(what) && finding.lost == lost);
        assert!(told, "{name}: {findings:?}");
    }
}

#[test]
fn a_folder_without_a_store_tells_nothing() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(salvageable_bits(folder.path()), Err(Error::NotAStore { .. })));
    write(folder.path().join("000001.log"), b"simstlog").unwrap();
    assert!(matches!(salvageable_bits(folder.path()), Err(Error::NotAStore { .. })));
}
