//! Tests of a program that opens a store many times, each time for a few writes. Opening the store, writing and closing
//! it must cost no more the last time than the first times.

use std::path::Path;

use simstore::{Durability, Snapshot, Store, StoreOptions};

use crate::support::disk::{OperationFilter, OperationKind, SimulatedDisk};

fn path() -> &'static Path {
    Path::new("store")
}

fn options(disk: &SimulatedDisk) -> StoreOptions {
    StoreOptions { fs: disk.as_fs(), memtable: 1 << 20, ..StoreOptions::default() }
}

/// Cost of a *call*: opening the store, writing a little, and closing the store. `syncs` and `changes` are numbers of
/// disk operations during the call. The other fields describe the store after the call.
#[derive(Clone, Copy, Debug, Default)]
struct CallCost {
    syncs: usize,
    changes: usize,
    files: usize,
    segments: usize,
    logs: usize,
    /// Length of the manifest, in bytes.
    manifest: usize,
}

fn call(disk: &SimulatedDisk, work: impl FnOnce(&Store<u64>)) -> CallCost {
    let syncs = || {
        disk.count(OperationFilter::Kind(OperationKind::SyncFile))
            + disk.count(OperationFilter::Kind(OperationKind::SyncDir))
    };
    let (synced, changed) = (syncs(), disk.operations());
    let store = Store::open(path(), options(disk)).unwrap();
    work(&store);
    drop(store);
    let fs = disk.as_fs();
    let names = fs.list(path()).unwrap();
    assert!(names.iter().all(|name| !name.ends_with(".tmp")), "{names:?}");
    let snapshot = Snapshot::<u64>::open_on(&fs, path()).unwrap();
    CallCost {
        syncs: syncs() - synced,
        changes: disk.operations() - changed,
        files: names.len(),
        segments: snapshot.segments().len(),
        logs: names.iter().filter(|name| name.ends_with(".log")).count(),
        manifest: fs.map(&path().join("MANIFEST")).unwrap().as_ref().len(),
    }
}

/// Returns the maximum of each field over several calls.
fn max_costs(costs: &[CallCost]) -> CallCost {
    let max = |field: fn(&CallCost) -> usize| costs.iter().map(field).max().unwrap();
    CallCost {
        syncs: max(|cost| cost.syncs),
        changes: max(|cost| cost.changes),
        files: max(|cost| cost.files),
        segments: max(|cost| cost.segments),
        logs: max(|cost| cost.logs),
        manifest: max(|cost| cost.manifest),
    }
}

fn fingerprint(i: u64) -> u64 {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Inserts a few pairs and sets a metadata value, like a program that adds the documents of input file number `i`.
fn add(store: &Store<u64>, i: u64) {
    let mut batch = store.transaction();
    (0..1 + i % 5).for_each(|j| batch.insert(fingerprint(i * 5 + j), i * 5 + j));
    batch.set_metadata(&format!("/data/files/{i:05}.jsonl"), &i.to_le_bytes()).unwrap();
    batch.commit(Durability::Sync).unwrap();
}

#[test]
fn the_last_call_costs_what_the_first_did() {
    let disk = SimulatedDisk::default();
    let calls = 300;
    let costs: Vec<CallCost> = (0..calls)
        .map(|i| {
            call(&disk, |store| {
                add(store, i);
                store.wait_for_background().unwrap();
            })
        })
        .collect();
    // Both ranges of calls include flushes and merges.
    let (early, late) = (max_costs(&costs[20..100]), max_costs(&costs[220..]));
    println!("{early:?}\n{late:?}");
    assert!(late.syncs <= early.syncs + 12 && late.changes <= early.changes + 60, "{early:?}, {late:?}");
    assert!(late.segments <= early.segments + 4 && late.logs <= early.logs.max(9), "{early:?}, {late:?}");
    assert!(late.files <= early.files + 24 && late.manifest <= early.manifest + 400, "{early:?}, {late:?}");
    let sum = |costs: &[CallCost]| costs.iter().map(|cost| cost.syncs).sum::<usize>();
    assert!(sum(&costs[220..]) * 4 <= sum(&costs[20..100]) * 5, "{early:?}, {late:?}");

    let store = Snapshot::<u64>::open_on(&disk.as_fs(), path()).unwrap();
    assert_eq!(store.verify(|error| panic!("{error}")), 0);
    assert_eq!(store.iter().count() as u64, (0..calls).map(|i| 1 + i % 5).sum::<u64>());
    for i in 0..calls {
        let metadata = store.metadata(&format!("/data/files/{i:05}.jsonl")).unwrap();
        assert_eq!(metadata, Some(i.to_le_bytes().to_vec()), "{i}");
    }
}

/// If a store is opened many times, logs do not accumulate. They become segments, even if the program always closes
/// the store without waiting for the background threads.
#[test]
fn logs_become_segments_of_themselves() {
    let disk = SimulatedDisk::default();
    for i in 0..60 {
        let cost = call(&disk, |store| add(store, i));
        assert!(cost.logs <= 10, "{i}: {cost:?}");
    }
    let store = Snapshot::<u64>::open_on(&disk.as_fs(), path()).unwrap();
    assert_eq!(store.iter().count(), 60 * 3);
}

#[test]
fn a_call_that_writes_nothing_leaves_nothing() {
    let disk = SimulatedDisk::default();
    let first = call(&disk, |_| {});
    let mut last = CallCost::default();
    for _ in 0..20 {
        last = call(&disk, |store| store.wait_for_background().unwrap());
    }
    assert_eq!((first.logs, last.logs, last.files), (1, 1, first.files));
    call(&disk, |store| add(store, 1));
    for _ in 0..10 {
        assert_eq!(call(&disk, |_| {}).logs, 2);
    }
    assert_eq!(Snapshot::<u64>::open_on(&disk.as_fs(), path()).unwrap().iter().count(), 2);
}

/// A memtable that has metadata and no pairs is flushed to a segment like any other. Merges
/// of such segments keep the newest value of each metadata key.
#[test]
fn marks_alone_are_kept() {
    let disk = SimulatedDisk::default();
    let options = StoreOptions { fanout: 2, ..options(&disk) };
    let store = Store::<u64>::open(path(), options).unwrap();
    for i in 0..40_u8 {
        let mut batch = store.transaction();
        batch.set_metadata(&format!("key {}", i % 7), &[i]).unwrap();
        batch.commit(Durability::Os).unwrap();
        store.flush().unwrap();
        if i % 8 == 7 {
            store.wait_for_background().unwrap();
        }
    }
    let check = |store: &Snapshot<u64>| {
        for key in 0..7_u8 {
            let newest = (0..40).rfind(|i| i % 7 == key).map(|i| vec![i]);
            assert_eq!(store.metadata(&format!("key {key}")).unwrap(), newest);
        }
        assert_eq!(store.metadata("key").unwrap(), None);
    };
    check(&store.snapshot());
    store.compact().unwrap();
    check(&store.snapshot());
    drop(store);
    let store = Snapshot::<u64>::open_on(&disk.as_fs(), path()).unwrap();
    check(&store);
    assert_eq!((store.segments().len(), store.stats().metadata, store.len()), (1, 7, 0));
    assert_eq!(store.verify(|error| panic!("{error}")), 0);
}
