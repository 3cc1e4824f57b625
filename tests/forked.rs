//! Tests of processes that fork while they have a store open. In the child, calls of this store return an error, and
//! change nothing.
#![cfg(unix)]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;

use fork::{Fork, fork, waitpid};
use simstore::error::ErrorCode;
use simstore::threads::in_this_process;
use simstore::{BuildOptions, Builder, Durability, Error, Snapshot, Store, StoreOptions};

/// Lock held by each test, so that the tests run one at a time. Otherwise a child would inherit the locks of the stores
/// that other tests have open.
static TEST_LOCK: Mutex<()> = Mutex::new(());

/// Runs `work` in a forked child, which has only the calling thread. Asserts that `work` does not panic: the child tells
/// the parent in a file in `folder` whether it did.
fn in_child(folder: &Path, work: impl FnOnce()) {
    let report = folder.join("report");
    match fork().unwrap() {
        Fork::Child => {
            let outcome = catch_unwind(AssertUnwindSafe(work));
            fs::write(&report, if outcome.is_ok() { "fine" } else { "not fine" }).unwrap();
            std::process::exit(0);
        }
        Fork::Parent(child) => {
            waitpid(child).unwrap();
            assert_eq!(fs::read_to_string(&report).unwrap(), "fine");
        }
    }
}

/// Returns the file names in a folder. Files may be removed during the iteration.
fn names(folder: &Path) -> impl Iterator<Item = String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap())
}

/// Names and contents of the files in a folder, sorted.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let file =
        |entry: fs::DirEntry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap());
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| file(entry.unwrap())).collect();
    files.sort();
    files
}

fn is_forked<T>(result: Result<T, Error>) -> bool {
    result.is_err_and(|error| error.code() == ErrorCode::Forked)
}

#[test]
fn a_store_refuses_and_stays_as_it_is() {
    let _lock = TEST_LOCK.lock();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut open = Some(Store::<u64>::open(&path, StoreOptions::default()).unwrap());
    let store = open.as_ref().unwrap();
    store.insert(1, 1).unwrap();
    store.flush().unwrap();
    store.insert(2, 2).unwrap();
    // The log that was flushed is removed in the background.
    while names(&path).filter(|name| name.ends_with(".log")).count() > 1 {
        std::thread::yield_now();
    }
    let before = files(&path);
    let snapshot = store.snapshot();
    in_child(folder.path(), || {
        let store = open.take().unwrap();
        assert!(is_forked(store.insert(3, 3)));
        assert!(is_forked(store.insert_named(3, 3, "three")));
        assert!(is_forked(store.insert_if_new(3 << 40, 3)));
        assert!(is_forked(store.delete(1, 1)));
        assert!(is_forked(store.transaction().commit(Durability::Sync)));
        assert!(is_forked(store.query(1, 0)));
        assert!(is_forked(store.sync()) && is_forked(store.flush()) && is_forked(store.compact()));
        assert!(is_forked(store.wait_for_background()));
        assert!(is_forked(store.bulk_load()));
        assert_eq!(snapshot.query(1, 3).unwrap().len(), 2);
        drop(store);
        assert_eq!(Snapshot::<u64>::open(&path).unwrap().len(), 2);
    });
    assert_eq!(files(&path), before);
    let store = open.unwrap();
    assert!(matches!(Store::<u64>::open(&path, StoreOptions::default()), Err(Error::Locked { .. })));
    store.insert(4, 4).unwrap();
    store.compact().unwrap();
    drop(store);
    let snapshot = Snapshot::<u64>::open(&path).unwrap();
    assert_eq!(snapshot.iter().map(|entry| entry.unwrap().fingerprint).collect::<Vec<_>>(), [1, 2, 4]);
}

/// A child inherits the handle of a store's lock. Even so, the lock is released when the parent drops the store, while
/// the child still runs.
#[test]
fn a_child_that_lives_on_keeps_no_lock() {
    let _lock = TEST_LOCK.lock();
    let folder = tempfile::tempdir().unwrap();
    let (path, ended) = (folder.path().join("store"), folder.path().join("ended"));
    let store = Store::<u64>::open(&path, StoreOptions::default()).unwrap();
    let child = match fork().unwrap() {
        Fork::Child => {
            while !ended.exists() {
                std::thread::yield_now();
            }
            // Aborts without dropping the values of its parent.
            std::process::abort();
        }
        Fork::Parent(child) => child,
    };
    drop(store);
    let opened = Store::<u64>::open(&path, StoreOptions::default());
    fs::write(&ended, "").unwrap();
    waitpid(child).unwrap();
    assert!(opened.is_ok(), "{opened:?}");
}

/// If a process forks during a build or a bulk load, the child does not remove the files of the build or load.
#[test]
fn a_build_and_a_load_go_on() {
    let _lock = TEST_LOCK.lock();
    let folder = tempfile::tempdir().unwrap();
    let (path, built) = (folder.path().join("store"), folder.path().join("built"));
    let store = Store::<u64>::open(&path, StoreOptions::default()).unwrap();
    let mut load = Some(store.bulk_load().unwrap());
    let mut builder = Some(Builder::<u64>::create(&built, BuildOptions::default()).unwrap());
    for id in 0..10 {
        load.as_mut().unwrap().insert_named(id << 32, id, "a document").unwrap();
        builder.as_mut().unwrap().insert_named(id << 32, id, "a document").unwrap();
    }
    let before = [files(&path), files(&built)];
    in_child(folder.path(), || {
        assert!(is_forked(load.take().unwrap().finish()));
        drop(builder.take());
    });
    assert_eq!([files(&path), files(&built)], before);
    load.unwrap().finish().unwrap();
    assert_eq!(builder.unwrap().finish().unwrap().len(), 10);
    assert_eq!(store.snapshot().name(9).unwrap().as_deref(), Some("a document"));
}

/// A child does not have the threads of its parent's thread pool. So in a child, calls that need the pool return an
/// error, unless they are made inside `in_this_process`.
#[test]
fn a_child_has_threads_of_its_own() {
    let _lock = TEST_LOCK.lock();
    let folder = tempfile::tempdir().unwrap();
    let mut builder = Builder::<u64>::create(&folder.path().join("store"), BuildOptions::default()).unwrap();
    (0..1000).for_each(|id| builder.insert(id << 40, id).unwrap());
    let snapshot = builder.finish().unwrap();
    let queries: Vec<u64> = (0..1000).map(|query| query << 40 | 1).collect();
    let batch = || snapshot.batch_query(&queries, 1);
    let found = batch().unwrap();
    assert!(found.len() >= 1000);
    in_child(folder.path(), || {
        assert_eq!(batch().unwrap_err().code(), ErrorCode::Thread);
        for _ in 0..2 {
            assert_eq!(in_this_process(batch).unwrap().unwrap(), found);
        }
        assert_eq!(batch().unwrap_err().code(), ErrorCode::Thread);
        // A store that the child opens has its own threads.
        let own = Store::<u64>::open(&folder.path().join("own"), StoreOptions::default()).unwrap();
        for id in 0..3 {
            own.insert(id << 20, id).unwrap();
            own.flush().unwrap();
        }
        own.compact().unwrap();
        assert_eq!(own.snapshot().len(), 3);
        drop(own);
        match fork().unwrap() {
            Fork::Child => {
                let same = in_this_process(batch).unwrap().unwrap() == found;
                std::process::exit(if same { 0 } else { 1 });
            }
            Fork::Parent(child) => assert_eq!(waitpid(child).unwrap(), 0),
        }
    });
    assert_eq!(in_this_process(batch).unwrap().unwrap(), found);
}
