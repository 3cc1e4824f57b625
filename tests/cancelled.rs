//! Tests of work that a progress callback cancels, at each of its calls in turn. The work ends with the error
//! `Cancelled` and leaves no unfinished files.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use simstore::batch::BatchMethod;
use simstore::error::ErrorCode;
use simstore::join;
use simstore::progress::{Progress, ProgressCallback};
use simstore::store::{CompactOptions, SalvageOptions, salvage};
use simstore::{BuildOptions, Builder, PlanChoice, Result, Snapshot, Store, StoreOptions};

use crate::support::random::Random;

/// Number of fingerprints in a test: enough for several calls of a progress callback.
const FINGERPRINT_COUNT: u64 = 70_000;

fn fingerprint(i: u64) -> u64 {
    Random::hash(i / 2) ^ (i & 1)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Returns a callback that returns `Break` at call number `n`, counted from 0, and `Continue` at its other calls.
fn breaks_at(n: u64) -> impl Fn() -> ControlFlow<()> + Send + Sync + 'static {
    let calls = AtomicU64::new(0);
    move || {
        if calls.fetch_add(1, Ordering::Relaxed) == n {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Runs `work` again and again. The first run is cancelled at its first call of the callback, the second run at its
/// second call, and so on, until a run ends before it is cancelled. Calls `after` after each cancelled run, to check
/// the files. Returns the number of cancelled runs.
fn cancel_at_each_call(work: impl Fn(ProgressCallback) -> Result<()>, after: impl Fn()) -> u64 {
    for n in 0.. {
        let breaks = breaks_at(n);
        let callback = ProgressCallback::new(move |Progress { done, total }| {
            assert!(done <= total || total == 0, "{done} of {total}");
            breaks()
        });
        match work(callback) {
            Ok(()) => return n,
            Err(error) => assert_eq!(error.code(), ErrorCode::Cancelled, "{error}"),
        }
        after();
    }
    unreachable!()
}

fn options() -> BuildOptions {
    BuildOptions { plan: PlanChoice::Named("probe-2".into()), ..BuildOptions::default() }
}

fn build(path: &Path, options: BuildOptions) -> Result<Snapshot<u64>> {
    let mut builder = Builder::create(path, options)?;
    (0..FINGERPRINT_COUNT).try_for_each(|i| builder.insert_named(fingerprint(i), i, "a document"))?;
    builder.finish()
}

#[test]
fn a_build() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let work = |progress| {
        // The documents do not fit in memory, so runs are written and merged, too.
        let options = BuildOptions { progress: Some(progress), memory: Some(16 << 20), ..options() };
        build(&path, options).map(drop)
    };
    let calls = cancel_at_each_call(work, || assert!(names(folder.path()).is_empty()));
    assert!(calls > 5, "{calls}");
    assert_eq!(Snapshot::<u64>::open(&path).unwrap().len(), FINGERPRINT_COUNT);
}

#[test]
fn a_build_in_the_place_of_another_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut builder = Builder::create(&path, options()).unwrap();
    builder.insert(7_u64, 7).unwrap();
    builder.finish().unwrap();
    let before = names(&path);
    let work = |progress| {
        let options = BuildOptions { progress: Some(progress), replace: true, ..options() };
        build(&path, options).map(drop)
    };
    cancel_at_each_call(work, || {
        assert_eq!(names(&path), before);
        assert_eq!(Snapshot::<u64>::open(&path).unwrap().len(), 1);
    });
    assert_eq!(Snapshot::<u64>::open(&path).unwrap().len(), FINGERPRINT_COUNT);
}

#[test]
fn a_load_and_a_merge() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let options = StoreOptions {
        compaction: false,
        plan: Some(PlanChoice::Named("probe-2".into())),
        ..StoreOptions::default()
    };
    let store = Store::<u64>::open(&path, options).unwrap();
    store.insert(fingerprint(0), 0).unwrap();
    store.flush().unwrap();
    // A load starts another log after all files are written, so only the files of segments are compared.
    let segments = || names(&path).into_iter().filter(|name| !name.ends_with(".log")).collect::<Vec<_>>();
    let before = segments();
    let load = |progress| {
        let mut load = store.bulk_load_with(progress)?;
        (1..FINGERPRINT_COUNT).try_for_each(|i| load.insert_named(fingerprint(i), i, "a document"))?;
        load.finish()
    };
    let calls = cancel_at_each_call(load, || {
        assert_eq!(segments(), before);
        assert_eq!(store.snapshot().len(), 1);
    });
    assert!(calls > 3, "{calls}");
    assert_eq!(store.snapshot().len(), FINGERPRINT_COUNT);

    store.delete(fingerprint(1), 1).unwrap();
    store.flush().unwrap();
    let before = segments();
    for distance in [None, Some(4)] {
        let compact = |progress| store.compact_with(&CompactOptions { distance, progress: Some(progress) });
        let calls = cancel_at_each_call(compact, || {
            // A merge for a larger distance first flushes the memtable, so the files may differ.
            if distance.is_none() {
                assert_eq!(segments(), before);
            }
            assert_eq!((store.snapshot().distance(), store.query(fingerprint(1), 0).unwrap().len()), (3, 0));
        });
        assert!(calls > 3, "{calls}");
        let stats = store.snapshot().stats();
        assert_eq!((stats.segments, stats.tombstones, stats.ids), (1, 0, FINGERPRINT_COUNT - 1));
    }
    assert_eq!(store.snapshot().verify(|error| panic!("{error}")), 0);
    assert_eq!(store.snapshot().distance(), 4);
}

#[test]
fn a_verification() {
    let folder = tempfile::tempdir().unwrap();
    let store = build(&folder.path().join("store"), options()).unwrap();
    let verify = |progress| {
        store.verify_with(&progress, |error| panic!("{error}")).map(|problems| assert_eq!(problems, 0))
    };
    let calls = cancel_at_each_call(verify, || ());
    assert!(calls > 4, "{calls}");
}

#[test]
fn a_salvage() {
    let folder = tempfile::tempdir().unwrap();
    let (path, new) = (folder.path().join("store"), folder.path().join("new"));
    build(&path, options()).unwrap();
    // Without the first table, salvage reads and sorts the others.
    fs::write(path.join("000001-00.table"), b"nothing").unwrap();
    let before = names(&path);
    let rescue = |progress| {
        let options = SalvageOptions { progress: Some(progress), ..SalvageOptions::default() };
        salvage::<u64>(&path, &new, &options).map(drop)
    };
    let calls = cancel_at_each_call(rescue, || {
        assert_eq!((names(folder.path()).len(), names(&path)), (1, before.clone()));
    });
    assert!(calls > 5, "{calls}");
    assert_eq!(Snapshot::<u64>::open(&new).unwrap().len(), FINGERPRINT_COUNT);
}

/// If the visitor of a batch query returns `Break`, the batch ends soon, even if the queries are slow because each
/// compares all fingerprints.
#[test]
fn queries_of_a_batch_at_a_large_distance() {
    let folder = tempfile::tempdir().unwrap();
    let options = BuildOptions { distance: 14, plan: PlanChoice::Named("scan".to_string()), ..options() };
    build(&folder.path().join("store"), options).unwrap();
    let snapshot = Snapshot::<u64>::open(&folder.path().join("store")).unwrap();
    let mut random = Random(8);
    let queries: Vec<u64> = (0..300_000).map(|_| random.next()).collect();
    let began = Instant::now();
    let breaks =
        || if began.elapsed().as_millis() > 200 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let visited = snapshot.batch_visit(&queries, 14, BatchMethod::Stream, |_| breaks());
    assert_eq!(visited.unwrap_err().code(), ErrorCode::Cancelled);
    // Without cancellation, the batch takes a minute.
    assert!(began.elapsed().as_secs() < 15);
}

#[test]
fn queries_of_a_batch() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    build(&path, options()).unwrap();
    let store = Store::<u64>::open(&path, StoreOptions::default()).unwrap();
    store.insert(fingerprint(FINGERPRINT_COUNT), FINGERPRINT_COUNT).unwrap();
    let snapshot = store.snapshot();
    let queries: Vec<u64> = (0..2000).map(|i| fingerprint(i * 35)).collect();
    for method in [BatchMethod::Stream, BatchMethod::LookUp] {
        for n in 0.. {
            let breaks = breaks_at(n);
            let found = Arc::new(AtomicU64::new(0));
            let visited = snapshot.batch_visit(&queries, 3, method, |matches| {
                found.fetch_add(matches.len() as u64, Ordering::Relaxed);
                breaks()
            });
            match visited {
                Ok(()) => {
                    assert!(n > 7, "{method}: {n}");
                    assert_eq!(found.load(Ordering::Relaxed), 2 * queries.len() as u64);
                    break;
                }
                Err(error) => assert_eq!(error.code(), ErrorCode::Cancelled, "{method}: {error}"),
            }
        }
    }
}

/// A join can be cancelled at each call of its visitor, both for random fingerprints, which have no near pairs, and for
/// fingerprints with very many near pairs.
#[test]
fn a_join() {
    let mut random: Vec<u64> = (0..2 * FINGERPRINT_COUNT).map(Random::hash).collect();
    random.sort_unstable();
    let near: Vec<u64> = (0..1 << 12).collect();
    let half: Vec<u64> = random[..FINGERPRINT_COUNT as usize].to_vec();
    for (fingerprints, distance) in [(&random, 3), (&half, 6), (&near, 3)] {
        let (mut n, mut cancelled) = (0, 0);
        loop {
            let breaks = breaks_at(n);
            match join::visit_pairs(fingerprints, distance, |_| breaks()) {
                Ok(()) => break,
                Err(error) => assert_eq!(error.code(), ErrorCode::Cancelled, "{error}"),
            }
            cancelled += 1;
            n += n / 2 + 1;
        }
        assert!(cancelled > 3, "distance {distance}: {cancelled}");
    }
}
