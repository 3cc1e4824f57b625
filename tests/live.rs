//! Performs random operations on a live store and on a simple model of it, and compares their contents and query
//! results. The settings of the store, such as the codec, must not change any result.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use simstore::store::CompactOptions;
use simstore::{
    BuildOptions, Builder, Codec, Durability, Error, Fingerprint, Insertion, Snapshot, Store, StoreOptions,
};

use crate::support::disk::SimulatedDisk;
use crate::support::samples::PairModel;

#[derive(Clone, Debug)]
enum StoreOperation {
    Insert(usize, u64),
    Delete(usize, u64),
    InsertIfNew(usize, u64),
    /// A transaction. Each item is the index of a fingerprint (see [`fingerprint`]), an id, and a flag: true to delete
    /// the pair, false to insert it.
    Batch(Vec<(usize, u64, bool)>),
    Load(Vec<(usize, u64)>),
    Note(u64, u8),
    Flush,
    Compact,
    Reopen,
    /// Takes a snapshot and keeps it with its expected contents. Later, the test checks that it has not changed.
    Keep,
}

/// Returns fingerprint number `i`, which differs in up to five bits from one of three centres.
fn fingerprint<F: Fingerprint>(i: usize) -> F {
    let centre = [F::ZERO, F::MAX, F::from_u128(0x0123_4567_89ab_cdef << 60 | 0x0f0f_5555)][i % 3];
    let flips = i / 3;
    let flip = |x: F, bit: usize| x ^ F::bit_mask((bit * 7 + i) as u32 % F::BITS);
    (0..flips % 6).fold(centre, flip)
}

const FINGERPRINTS: usize = 60;

fn operation() -> impl Strategy<Value = StoreOperation> {
    let (x, id) = (0..FINGERPRINTS, 0_u64..6);
    prop_oneof![
        8 => (x.clone(), id.clone()).prop_map(|(x, id)| StoreOperation::Insert(x, id)),
        5 => (x.clone(), id.clone()).prop_map(|(x, id)| StoreOperation::Delete(x, id)),
        3 => (x.clone(), id.clone()).prop_map(|(x, id)| StoreOperation::InsertIfNew(x, id)),
        2 => prop::collection::vec((x.clone(), id.clone(), any::<bool>()), 0..12).prop_map(StoreOperation::Batch),
        1 => prop::collection::vec((x, id.clone()), 0..20).prop_map(StoreOperation::Load),
        3 => (id, any::<u8>()).prop_map(|(id, note)| StoreOperation::Note(id, note)),
        2 => Just(StoreOperation::Flush),
        1 => Just(StoreOperation::Compact),
        1 => Just(StoreOperation::Reopen),
        1 => Just(StoreOperation::Keep),
    ]
}

/// Expected notes. The key is an id. The value `n` stands for a note of `n` bytes, which are all equal to `n`. More
/// tests of notes are in `tests/names_and_notes.rs`.
type NoteModel = BTreeMap<u64, u8>;

fn check_notes<F: Fingerprint>(snapshot: &Snapshot<F>, notes: &NoteModel) {
    let ids: Vec<u64> = (0..7).collect();
    for (id, found) in ids.iter().zip(snapshot.notes_of(&ids).unwrap()) {
        assert_eq!(snapshot.note(*id).unwrap(), found);
        assert_eq!(found, notes.get(id).map(|&note| vec![note; usize::from(note)]), "{id}");
    }
}

/// Finds the matches of a query by a linear scan over the model. Returns the distance, the fingerprint and the id of
/// each match; the id is `None` unless `ids` is set.
fn near<F: Fingerprint>(
    model: &PairModel<F>,
    query: F,
    distance: u32,
    ids: bool,
) -> Vec<(u32, F, Option<u64>)> {
    let near = model.iter().filter(|(x, _)| (*x ^ query).count_ones() <= distance);
    let mut found: Vec<_> = near.map(|&(x, id)| ((x ^ query).count_ones(), x, ids.then_some(id))).collect();
    found.sort_unstable();
    found
}

fn check<F: Fingerprint>(snapshot: &Snapshot<F>, model: &PairModel<F>) {
    let ids = snapshot.keeps_ids();
    let entries: Vec<_> =
        snapshot.iter().map(|entry| entry.unwrap()).map(|e| (e.fingerprint, e.id)).collect();
    let expected: Vec<_> = model.iter().map(|&(x, id)| (x, ids.then_some(id))).collect();
    assert_eq!(entries, expected);
    let queries: Vec<F> = (0..FINGERPRINTS).step_by(3).map(fingerprint).collect();
    for &query in &queries {
        for distance in [0, snapshot.distance()] {
            let found = snapshot.query(query, distance).unwrap();
            let found: Vec<_> = found.iter().map(|m| (m.distance, m.fingerprint, m.id)).collect();
            assert_eq!(found, near(model, query, distance, ids));
        }
        assert_eq!(snapshot.contains(query).unwrap(), model.iter().any(|&(x, _)| x == query));
        for id in 0..6 {
            let id = if ids { id } else { 0 };
            assert_eq!(snapshot.contains_pair(query, id).unwrap(), model.contains(&(query, id)));
        }
    }
    for wanted in [vec![], vec![3], vec![1, 4, 77], (0..6).collect()] {
        let found = snapshot.pairs_of_ids(&wanted.iter().copied().collect()).unwrap();
        let found: Vec<_> = found.iter().map(|pair| (pair.id, pair.fingerprint)).collect();
        let mut expected: Vec<_> = model.iter().map(|&(x, id)| (id, x)).collect();
        expected.retain(|(id, _)| ids && wanted.contains(id));
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
    for method in [simstore::batch::BatchMethod::Stream, simstore::batch::BatchMethod::LookUp] {
        let found = snapshot.batch_query_by(&queries, snapshot.distance(), method).unwrap();
        let expected = queries.iter().enumerate().flat_map(|(i, &query)| {
            near(model, query, snapshot.distance(), ids).into_iter().map(move |found| (i, found))
        });
        let found = found.iter().map(|m| (m.query, (m.found.distance, m.found.fingerprint, m.found.id)));
        assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
}

fn run<F: Fingerprint>(
    operations: &[StoreOperation],
    disk: &SimulatedDisk,
    options: &StoreOptions,
    ids: bool,
) {
    let path = Path::new("store");
    let id_of = |id| if ids { id } else { 0 };
    let mut store = Store::<F>::open(path, options.clone()).unwrap();
    let mut model = PairModel::new();
    let mut notes = NoteModel::new();
    let mut kept = Vec::new();
    for operation in operations {
        match operation {
            &StoreOperation::Insert(x, id) => {
                store.insert(fingerprint(x), id).unwrap();
                model.insert((fingerprint(x), id_of(id)));
            }
            &StoreOperation::Delete(x, id) => {
                let was_there = store.delete(fingerprint(x), id).unwrap();
                assert_eq!(was_there, model.remove(&(fingerprint(x), id_of(id))));
                if was_there {
                    notes.remove(&id_of(id));
                }
            }
            &StoreOperation::InsertIfNew(x, id) => {
                let x: F = fingerprint(x);
                let expected = near(&model, x, store.snapshot().distance(), ids);
                match store.insert_if_new(x, id).unwrap() {
                    Insertion::Inserted => assert_eq!(expected, []),
                    Insertion::DuplicateOf(found) => {
                        let found: Vec<_> = found.iter().map(|m| (m.distance, m.fingerprint, m.id)).collect();
                        assert_eq!(found, expected);
                    }
                }
                if expected.is_empty() {
                    model.insert((x, id_of(id)));
                }
            }
            StoreOperation::Batch(all) => {
                let mut batch = store.transaction();
                for &(x, id, delete) in all {
                    let x = fingerprint(x);
                    if delete {
                        batch.delete(x, id);
                        model.remove(&(x, id_of(id)));
                        notes.remove(&id_of(id));
                    } else {
                        batch.insert(x, id);
                        model.insert((x, id_of(id)));
                    }
                }
                batch.commit(Durability::Sync).unwrap();
            }
            StoreOperation::Load(all) => {
                let mut load = store.bulk_load().unwrap();
                for &(x, id) in all {
                    load.insert(fingerprint(x), id).unwrap();
                    model.insert((fingerprint(x), id_of(id)));
                }
                load.finish().unwrap();
            }
            &StoreOperation::Note(id, note) => {
                let mut batch = store.transaction();
                let set = batch.set_note(id, &vec![note; usize::from(note)]);
                if ids {
                    set.unwrap();
                    batch.commit(Durability::Os).unwrap();
                    notes.insert(id, note);
                } else {
                    assert!(set.unwrap_err().to_string().contains("a store without ids"));
                }
            }
            StoreOperation::Flush => store.flush().unwrap(),
            StoreOperation::Compact => store.compact().unwrap(),
            StoreOperation::Reopen => {
                drop(store);
                store = Store::open(path, options.clone()).unwrap();
            }
            StoreOperation::Keep => kept.push((store.snapshot(), model.clone(), notes.clone())),
        }
    }
    check(&store.snapshot(), &model);
    check_notes(&store.snapshot(), &notes);
    for (snapshot, model, notes) in &kept {
        check(snapshot, model);
        check_notes(snapshot, notes);
    }
    let verified = store.snapshot().verify(|error| panic!("{error}"));
    assert_eq!(verified, 0);
    drop(store);
    // Reads the store without its lock, then opens it again.
    let read = Snapshot::<F>::open_on(&disk.as_fs(), path).unwrap();
    check(&read, &model);
    check_notes(&read, &notes);
    let store = Store::<F>::open(path, options.clone()).unwrap();
    store.compact().unwrap();
    check(&store.snapshot(), &model);
    check_notes(&store.snapshot(), &notes);
    assert_eq!(store.snapshot().stats().tombstones, 0);
}

fn options(
    disk: &SimulatedDisk,
    ids: bool,
    codec: Codec,
    memtable: u64,
    compaction: bool,
    fanout: usize,
    distance: u32,
) -> StoreOptions {
    StoreOptions {
        fs: disk.as_fs(),
        ids: Some(ids),
        codec: Some(codec),
        memtable,
        compaction,
        fanout,
        distance: Some(distance),
        block_size: Some(256),
        ..StoreOptions::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn as_the_model(
        operations in prop::collection::vec(operation(), 1..120),
        ids in any::<bool>(),
        codec in prop::sample::select(&Codec::ALL[..]),
        memtable in prop::sample::select(&[1_u64, 4096, 64 << 20][..]),
        compaction in any::<bool>(),
        fanout in 2_usize..5,
        distance in prop::sample::select(&[0_u32, 1, 3, 6][..]),
        wide in any::<bool>(),
    ) {
        let disk = SimulatedDisk::default();
        let options = options(&disk, ids, codec, memtable, compaction, fanout, distance);
        let run = if wide { run::<u128> } else { run::<u64> };
        run(&operations, &disk, &options, ids);
    }
}

#[test]
fn a_built_store_is_a_live_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut builder = Builder::<u64>::create(&path, BuildOptions::default()).unwrap();
    (0..1000_u64).for_each(|i| builder.insert(i << 20, i).unwrap());
    builder.finish().unwrap();
    let before = Snapshot::<u64>::open(&path).unwrap();
    let store = Store::<u64>::open(&path, StoreOptions::default()).unwrap();
    assert!(store.delete(5 << 20, 5).unwrap());
    store.insert(u64::MAX, 7).unwrap();
    // Another path to the same store is refused, too.
    for path in [&path, &folder.path().join("store/../store")] {
        let error = Store::<u64>::open(path, StoreOptions::default()).unwrap_err();
        assert!(matches!(error, Error::Locked { is_here: true, .. }), "{error}");
        assert!(error.to_string().contains("this process already has the store open for writing"), "{error}");
    }
    assert_eq!((before.query(5 << 20, 0).unwrap().len(), before.query(u64::MAX, 0).unwrap().len()), (1, 0));
    let now = before.refresh().unwrap();
    assert_eq!((now.query(5 << 20, 0).unwrap().len(), now.query(u64::MAX, 0).unwrap().len()), (0, 1));
    assert_eq!(store.snapshot().highest_id(), Some(999));
    store.compact().unwrap();
    assert_eq!(before.query(5 << 20, 0).unwrap().len(), 1);
    assert_eq!(now.refresh().unwrap().stats().ids, 1000);
}

/// If a build that would replace a live store is dropped before it finishes, all files of the store stay, including its
/// log.
#[test]
fn a_build_that_is_given_up_leaves_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::<u64>::open(&path, StoreOptions::default()).unwrap();
    store.insert(7, 8).unwrap();
    let replace = || BuildOptions { replace: true, ..BuildOptions::default() };
    assert!(matches!(Builder::<u64>::create(&path, replace()), Err(Error::Locked { is_here: true, .. })));
    drop(store);
    drop(Builder::<u64>::create(&path, replace()).unwrap());
    assert_eq!(Snapshot::<u64>::open(&path).unwrap().query(7, 0).unwrap().len(), 1);
    let mut builder = Builder::<u64>::create(&path, replace()).unwrap();
    builder.insert(9, 9).unwrap();
    builder.finish().unwrap();
    let store = Store::<u64>::open(&path, StoreOptions::default()).unwrap();
    assert_eq!((store.query(7, 0).unwrap().len(), store.query(9, 0).unwrap().len()), (0, 1));
    let mut load = store.bulk_load().unwrap();
    load.insert(10, 500).unwrap();
    load.finish().unwrap();
    assert_eq!(store.snapshot().highest_id(), Some(500));
}

#[test]
fn settings_are_the_stores() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    drop(
        Store::<u64>::open(
            &path,
            StoreOptions { codec: Some(Codec::Gap), distance: Some(2), ..StoreOptions::default() },
        )
        .unwrap(),
    );
    let rejected = [
        StoreOptions { distance: Some(3), ..StoreOptions::default() },
        StoreOptions { codec: Some(Codec::EliasFano), ..StoreOptions::default() },
    ];
    for options in rejected.into_iter().chain([
        StoreOptions { ids: Some(false), ..StoreOptions::default() },
        StoreOptions { profile: Some("x".to_string()), ..StoreOptions::default() },
    ]) {
        assert!(matches!(Store::<u64>::open(&path, options), Err(Error::Setting { .. })));
    }
    assert!(matches!(Store::<u128>::open(&path, StoreOptions::default()), Err(Error::Width { .. })));
    let store = Store::<u64>::open(&path, StoreOptions::default()).unwrap();
    assert_eq!((store.snapshot().distance(), store.snapshot().codec()), (2, Codec::Gap));
    let missing = Store::<u64>::open(
        &folder.path().join("none"),
        StoreOptions { create: false, ..StoreOptions::default() },
    );
    assert!(missing.is_err());
}

#[test]
fn the_distance_can_be_raised() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store =
        Store::<u64>::open(&path, StoreOptions { distance: Some(1), ..StoreOptions::default() }).unwrap();
    (0..500_u64).for_each(|i| store.insert(i.wrapping_mul(0x9e37_79b9_7f4a_7c15), i).unwrap());
    store.flush().unwrap();
    store.insert(0xff, 1000).unwrap();
    assert!(store.query(0, 8).is_err());
    let to = |distance| CompactOptions { distance: Some(distance), progress: None };
    assert!(matches!(store.compact_with(&to(0)), Err(Error::BadArgument(_))));
    store.compact_with(&to(8)).unwrap();
    assert_eq!(store.query(0, 8).unwrap().iter().filter(|m| m.id == Some(1000)).count(), 1);
    store.insert(0xff00, 1001).unwrap();
    assert_eq!(store.query(0, 8).unwrap().iter().filter(|m| m.id == Some(1001)).count(), 1);
    drop(store);
    assert_eq!(Snapshot::<u64>::open(&path).unwrap().distance(), 8);
}

#[test]
fn names_and_marks_survive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    for round in 0..4_u64 {
        let store = Store::<u64>::open(&path, StoreOptions::default()).unwrap();
        let mut batch = store.transaction();
        batch.insert_named(round << 32, round, &format!("document {round}")).unwrap();
        batch.set_metadata("read", &[round as u8]).unwrap();
        batch.commit(Durability::Group(Duration::from_millis(1))).unwrap();
        match round {
            1 => store.flush().unwrap(),
            2 => store.compact().unwrap(),
            _ => {}
        }
        let snapshot = store.snapshot();
        assert_eq!(snapshot.metadata("read").unwrap(), Some(vec![round as u8]));
        assert_eq!(snapshot.highest_id(), Some(round));
        for id in 0..=round {
            assert_eq!(snapshot.name(id).unwrap(), Some(format!("document {id}")));
        }
    }
    let store = Store::<u64>::open(&path, StoreOptions::default()).unwrap();
    assert!(store.delete(1 << 32, 1).unwrap());
    store.compact().unwrap();
    assert_eq!(
        (store.snapshot().name(1).unwrap(), store.snapshot().name(2).unwrap().is_some()),
        (None, true)
    );
}

/// If the settings are invalid, opening a store creates no folder.
#[test]
fn settings_that_cannot_be_make_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let options = StoreOptions { distance: Some(40), ..StoreOptions::default() };
    assert!(matches!(Store::<u64>::open(&path, options), Err(Error::BadArgument(_))));
    assert!(!path.exists());
}

/// `delete_all` deletes those pairs of a list that are stored. If the list has a pair twice, only the first one counts
/// as deleted.
#[test]
fn pairs_are_deleted_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::<u64>::open(&path, StoreOptions::default()).unwrap();
    (0..3).for_each(|id| store.insert(id << 20, id).unwrap());
    store.flush().unwrap();
    store.insert(3 << 20, 3).unwrap();
    let pairs = [(1 << 20, 1), (3 << 20, 3), (1 << 20, 1), (2 << 20, 7), (9, 9)];
    let deleted = store.delete_all(&pairs, Durability::Sync).unwrap();
    assert_eq!(deleted, [true, true, false, false, false]);
    assert!(store.delete_all(&[], Durability::Sync).unwrap().is_empty());
    drop(store);
    let left = Snapshot::<u64>::open(&path).unwrap().iter().map(|entry| entry.unwrap().fingerprint);
    assert_eq!(left.collect::<Vec<_>>(), [0, 2 << 20]);
}

/// A search for documents by name uses the newest name of each id, whether this name is in a memtable or in a segment.
/// The search does not find deleted pairs.
#[test]
fn documents_are_found_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::<u64>::open(
        &folder.path().join("store"),
        StoreOptions { compaction: false, ..StoreOptions::default() },
    )
    .unwrap();
    let insert = |fingerprint, id, name: &str| {
        let mut batch = store.transaction();
        batch.insert_named(fingerprint, id, name).unwrap();
        batch.commit(Durability::Os).unwrap();
    };
    let found = |names: &[&str]| {
        let pairs =
            store.snapshot().pairs_of_names(&names.iter().map(|name| name.to_string()).collect()).unwrap();
        pairs.into_iter().map(|pair| (pair.id, pair.fingerprint, pair.name.unwrap())).collect::<Vec<_>>()
    };
    for id in 0..5000 {
        insert(id << 32, id, &format!("page {}", id / 2));
    }
    store.flush().unwrap();
    let [a, b, c] = ["page 2", "page 1200", "other"].map(str::to_string);
    let of_1200 = [(2400, 2400 << 32, b.clone()), (2401, 2401 << 32, b.clone())];
    assert_eq!(found(&["page 1200", "nothing"]), of_1200);
    // Renames id 4 and gives id 5 a second fingerprint: first in the memtable, then in a segment.
    insert(4 << 32, 4, "other");
    insert(7, 5, "page 2");
    for _ in 0..2 {
        assert_eq!(found(&["page 2"]), [(5, 7, a.clone()), (5, 5 << 32, a.clone())]);
        assert_eq!(found(&["other", "page 2"]).len(), 3);
        assert_eq!(found(&["other"]), [(4, 4 << 32, c.clone())]);
        store.flush().unwrap();
    }
    assert!(store.delete(2400 << 32, 2400).unwrap());
    assert_eq!(found(&["page 1200"]), of_1200[1..]);
    store.flush().unwrap();
    assert_eq!(found(&["page 1200"]), of_1200[1..]);
    insert(2400 << 32, 2400, "page 1200");
    assert_eq!(found(&["page 1200"]), of_1200);
}

/// While readers, writers, flushes and merges run at the same time, a snapshot has all writes that were acknowledged
/// before it was taken, and never changes.
#[test]
fn many_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let options = StoreOptions {
        memtable: 1 << 18,
        fanout: 2,
        codec: Some(Codec::EliasFano),
        ..StoreOptions::default()
    };
    let store = Store::<u64>::open(&path, options).unwrap();
    let (acknowledged, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let value = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    const COUNT: u64 = 30_000;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for i in 0..COUNT {
                store.insert(value(i), i).unwrap();
                if i % 3 == 0 {
                    assert!(store.delete(value(i), i).unwrap());
                }
                acknowledged.store(i + 1, Ordering::SeqCst);
            }
        });
        let others = [1_u64, 2].map(|other| {
            let store = &store;
            scope.spawn(move || {
                for i in 0..2000_u64 {
                    let id = other << 32 | i;
                    let mut transaction = store.transaction();
                    transaction.insert(value(id), id);
                    transaction.commit(Durability::Group(Duration::ZERO)).unwrap();
                }
            })
        });
        for seed in 0..2_u64 {
            let (store, acknowledged, done) = (&store, &acknowledged, &done);
            scope.spawn(move || {
                let mut state = seed;
                while !done.load(Ordering::SeqCst) {
                    let end = acknowledged.load(Ordering::SeqCst);
                    let snapshot = store.snapshot();
                    for _ in 0..20 {
                        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                        let i = (state >> 33) % end.max(1);
                        if i < end {
                            let found = snapshot.query(value(i), 0).unwrap();
                            assert_eq!(found.len(), usize::from(i % 3 != 0), "{i} of {end}");
                            assert_eq!(snapshot.query(value(i), 0).unwrap(), found);
                        }
                    }
                }
            });
        }
        writer.join().unwrap();
        others.into_iter().for_each(|thread| thread.join().unwrap());
        done.store(true, Ordering::SeqCst);
    });
    store.wait_for_background().unwrap();
    let expected = COUNT - COUNT.div_ceil(3) + 4000;
    assert_eq!(store.snapshot().iter().count() as u64, expected);
    store.compact().unwrap();
    assert_eq!(store.snapshot().iter().count() as u64, expected);
    assert_eq!(store.snapshot().stats().ids, expected);
}

/// Eight threads insert 500 fingerprints each with `insert_if_new`. Each fingerprint of a thread is near one
/// fingerprint of every other thread. Only one fingerprint of each such group is inserted.
#[test]
fn one_of_many_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::<u64>::open(
        &folder.path().join("store"),
        StoreOptions { memtable: 1 << 16, ..StoreOptions::default() },
    )
    .unwrap();
    let inserted = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            let (store, inserted) = (&store, &inserted);
            scope.spawn(move || {
                for i in 0..500_u64 {
                    let x = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 1 << (thread % 2);
                    if store.insert_if_new(x, thread << 32 | i).unwrap() == Insertion::Inserted {
                        inserted.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    assert_eq!(inserted.load(Ordering::SeqCst), 500);
    assert_eq!(store.snapshot().iter().count(), 500);
}

/// Several threads insert documents, each with three fingerprints and a note, with `commit_unless`. The callback of
/// `commit_unless` treats a document as a duplicate if it has the same note as a stored document. So one document is
/// inserted for each note, even if the fingerprints of documents with other notes are near.
#[test]
fn one_of_many_is_new_as_its_writer_sees_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::<u64>::open(
        &folder.path().join("store"),
        StoreOptions { memtable: 1 << 16, ..StoreOptions::default() },
    )
    .unwrap();
    let (inserted, callback_calls) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            let (store, inserted, callback_calls) = (&store, &inserted, &callback_calls);
            scope.spawn(move || {
                for i in 0..300_u64 {
                    let (id, note) =
                        (thread << 32 | i, [i.to_le_bytes(), (thread % 3).to_le_bytes()].concat());
                    let mut transaction = store.transaction();
                    for band in 1..4 {
                        let x = (4 * i + band).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                        transaction.insert(x ^ 1 << (thread % 3), id);
                    }
                    transaction.set_note(id, &note).unwrap();
                    let mut seen = BTreeSet::new();
                    let committed = transaction.commit_unless(Durability::Os, |matches| {
                        callback_calls.fetch_add(1, Ordering::SeqCst);
                        assert!(!matches.is_empty());
                        let ids: BTreeSet<u64> = matches.iter().map(|found| found.id.unwrap()).collect();
                        assert!(ids.is_disjoint(&seen), "a document is passed to the callback again");
                        seen.extend(&ids);
                        let ids: Vec<u64> = ids.into_iter().collect();
                        let notes = store.snapshot().notes_of(&ids)?;
                        // The callback sees whole documents: each has its note.
                        assert!(notes.iter().all(Option::is_some));
                        Ok(notes.contains(&Some(note.clone())))
                    });
                    if committed.unwrap() == Insertion::Inserted {
                        inserted.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    assert_eq!(inserted.load(Ordering::SeqCst), 300 * 3);
    assert!(callback_calls.load(Ordering::SeqCst) >= 300 * 7);
    assert_eq!(store.snapshot().iter().count(), 300 * 3 * 3);
}

/// `commit_unless` also calls its callback for matches that other threads insert after its first search and before it
/// takes the writer's lock. If the callback returns an error, nothing is written.
#[test]
fn commit_unless_reports_matches_inserted_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::<u64>::open(&folder.path().join("store"), StoreOptions::default()).unwrap();
    store.insert(0xff, 1).unwrap();
    for flushed in [false, true] {
        let id = 2 + u64::from(flushed);
        let mut rounds = Vec::new();
        let mut transaction = store.transaction();
        transaction.insert(0xfe, 9);
        let committed = transaction.commit_unless(Durability::Os, |matches| {
            rounds.push(matches.iter().map(|found| found.id.unwrap()).collect::<BTreeSet<_>>());
            if rounds.len() == 1 {
                // The lock is not held yet, so this write is like one of another thread.
                store.insert(0xfe, id)?;
                if flushed {
                    store.flush()?;
                }
            }
            Ok(rounds.len() > 1)
        });
        assert_eq!(rounds, [(1..id).collect(), BTreeSet::from([id])]);
        let Insertion::DuplicateOf(found) = committed.unwrap() else { panic!() };
        assert_eq!(found.iter().map(|m| m.id).collect::<Vec<_>>(), [Some(id)]);
    }
    let mut transaction = store.transaction();
    transaction.insert(0xfe, 9);
    let error = transaction
        .commit_unless(Durability::Os, |_| Err(Error::BadArgument("no text".to_string())))
        .unwrap_err();
    assert!(error.to_string().contains("no text"), "{error}");
    assert_eq!(store.snapshot().iter().count(), 3);
}

#[test]
fn metadata_comes_with_a_bulk_load() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::<u64>::open(&path, StoreOptions::default()).unwrap();
    let load = |value: &[u8], fingerprint: Option<u64>| {
        let mut load = store.bulk_load().unwrap();
        load.set_metadata("key", value).unwrap();
        fingerprint.into_iter().for_each(|fingerprint| load.insert(fingerprint, 1).unwrap());
        load.finish().unwrap();
        store.snapshot().metadata("key").unwrap()
    };
    // A load without pairs stores no metadata.
    assert_eq!(load(b"first", None), None);
    assert_eq!(load(b"second", Some(1)).as_deref(), Some(&b"second"[..]));
    assert_eq!(load(b"third", Some(2)).as_deref(), Some(&b"third"[..]));
    drop(store);
    let metadata = simstore::Snapshot::<u64>::open(&path).unwrap().metadata("key").unwrap();
    assert_eq!(metadata.as_deref(), Some(&b"third"[..]));
}
