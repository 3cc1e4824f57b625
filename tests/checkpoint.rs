//! Tests of checkpoints: copies of a snapshot as stores of their own. A checkpoint equals its snapshot, also if
//! the store changes meanwhile. After it, the two stores are independent. A power loss leaves no checkpoint or a whole one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use simstore::{
    BuildOptions, Builder, Codec, Durability, Error, Fingerprint, PlanChoice, Snapshot, Store, StoreOptions,
};

use crate::support::disk::{Failure, Fault, OperationFilter, OperationKind, SimulatedDisk, SurvivalChoice};
use crate::support::random::Random;

const IDS: u64 = 120;
const METADATA_KEYS: u64 = 3;

/// All that a snapshot has.
#[derive(Debug, PartialEq, Eq)]
struct SnapshotContents<F> {
    pairs: Vec<(F, Option<u64>)>,
    names: BTreeMap<u64, String>,
    notes: BTreeMap<u64, Vec<u8>>,
    metadata: BTreeMap<u64, Vec<u8>>,
    highest_id: Option<u64>,
    /// Distance, codec, plan, block size, span and profile.
    settings: (u32, Codec, String, Option<u32>, Option<u16>, String),
}

fn contents<F: Fingerprint>(snapshot: &Snapshot<F>) -> Result<SnapshotContents<F>, Error> {
    let ids: Vec<u64> = (0..IDS).collect();
    let metadata = (0..METADATA_KEYS)
        .map(|key| Ok(snapshot.metadata(&key.to_string())?.map(|value| (key, value))))
        .collect::<Result<Vec<_>, Error>>()?;
    Ok(SnapshotContents {
        pairs: snapshot
            .iter()
            .map(|entry| entry.map(|entry| (entry.fingerprint, entry.id)))
            .collect::<Result<_, _>>()?,
        names: (0..).zip(snapshot.names_of(&ids)?).filter_map(|(id, name)| Some((id, name?))).collect(),
        notes: (0..).zip(snapshot.notes_of(&ids)?).filter_map(|(id, note)| Some((id, note?))).collect(),
        metadata: metadata.into_iter().flatten().collect(),
        highest_id: snapshot.highest_id(),
        settings: (
            snapshot.distance(),
            snapshot.codec(),
            snapshot.plan_policy().to_string(),
            snapshot.block_size(),
            snapshot.span(),
            snapshot.profile().to_string(),
        ),
    })
}

/// Queries a snapshot, and compares the matches with the plain loop over the expected pairs.
fn check_queries<F: Fingerprint>(snapshot: &Snapshot<F>, expected: &SnapshotContents<F>, seed: u64) {
    let mut random = Random(seed);
    for i in 0..40 {
        let query = match expected.pairs.is_empty() || i % 10 == 0 {
            true => random.fingerprint(),
            false => {
                let flips = random.below(5);
                let stored = expected.pairs[random.index(expected.pairs.len())].0;
                random.flip(stored, flips)
            }
        };
        let near = expected.pairs.iter().filter(|(x, _)| x.distance(query) <= snapshot.distance());
        let mut near: Vec<_> = near.map(|&(x, id)| (x.distance(query), x, id)).collect();
        near.sort_unstable();
        let matches = snapshot.query(query, snapshot.distance()).unwrap();
        let matches: Vec<_> = matches.iter().map(|m| (m.distance, m.fingerprint, m.id)).collect();
        assert_eq!(matches, near, "{query:x}");
    }
}

/// Opens the checkpoint, and checks that it is undamaged and has the expected contents.
fn check_copy<F: Fingerprint>(copy: &Snapshot<F>, expected: &SnapshotContents<F>, seed: u64) {
    assert_eq!(&contents(copy).unwrap(), expected);
    check_queries(copy, expected, seed);
    assert_eq!(copy.verify(|error| panic!("{error}")), 0);
}

fn store_path() -> &'static Path {
    Path::new("store")
}

fn copy_path() -> &'static Path {
    Path::new("copy")
}

fn options(disk: &SimulatedDisk, ids: bool) -> StoreOptions {
    StoreOptions {
        fs: disk.as_fs(),
        ids: Some(ids),
        plan: Some(PlanChoice::Named("probe-2".into())),
        codec: Some(Codec::EliasFano),
        block_size: Some(256),
        profile: Some("of a test".to_string()),
        compaction: false,
        ..StoreOptions::default()
    }
}

/// Changes a store by random transactions: inserts, some of them near others, deletes, metadata, and in a store with ids names
/// and notes.
fn change<F: Fingerprint>(store: &Store<F>, random: &mut Random, transactions: usize) {
    // A few fingerprints, so that many deletes concern stored pairs.
    let spread = |i: u64| {
        F::from_u128(u128::from(i / 4 + 1).wrapping_mul(u128::MAX / 0x9e37_79b9)) ^ F::bit_mask(i as u32 % 4)
    };
    for _ in 0..transactions {
        let mut transaction = store.transaction();
        for _ in 0..random.below(12) {
            let id = random.below(IDS);
            match random.below(8) {
                1 | 3..5 if !store.snapshot().keeps_ids() => transaction.insert(spread(id), id),
                0 => transaction.delete(spread(id), id),
                1 => transaction.set_note(id, &random.next().to_le_bytes()).unwrap(),
                2 => {
                    let key = random.below(METADATA_KEYS).to_string();
                    transaction.set_metadata(&key, &random.next().to_le_bytes()).unwrap();
                }
                3..5 => transaction.insert_named(spread(id), id, &format!("page {}", random.next())).unwrap(),
                _ => transaction.insert(spread(id), id),
            }
        }
        transaction.commit(Durability::Os).unwrap();
    }
}

/// Returns a store with two segments, where the newer one has tombstones, and with later operations in its memtable.
fn store_with_all<F: Fingerprint>(disk: &SimulatedDisk, ids: bool) -> Store<F> {
    let (store, mut random) = (Store::open(store_path(), options(disk, ids)).unwrap(), Random(7));
    for _ in 0..2 {
        change(&store, &mut random, 20);
        store.flush().unwrap();
    }
    change(&store, &mut random, 8);
    let stats = store.snapshot().stats();
    assert!(stats.segments == 2 && stats.tombstones > 0 && stats.memtable_entries > 0, "{stats:?}");
    assert!(stats.metadata > 0 && (stats.names > 0) == ids && (stats.notes > 0) == ids, "{stats:?}");
    store
}

fn links(disk: &SimulatedDisk) -> usize {
    disk.count(OperationFilter::Kind(OperationKind::HardLink))
}

/// Takes a snapshot, changes the store, and makes a checkpoint of the snapshot. If `compact` is set, the files of the
/// snapshot's segments are removed before. If `links_fail` is set, they cannot be linked.
fn equals_the_snapshot<F: Fingerprint>(ids: bool, compact: bool, links_fail: bool) {
    let disk = SimulatedDisk::default();
    let store = store_with_all::<F>(&disk, ids);
    let snapshot = store.snapshot();
    let expected = contents(&snapshot).unwrap();
    assert!(expected.pairs.len() > 20 && !expected.metadata.is_empty());
    // Without ids, each delete removes all names and notes.
    assert!(!ids || expected.names.len() > 5 && expected.notes.len() > 5);
    change(&store, &mut Random(8), 20);
    if compact {
        store.compact().unwrap();
    }
    if links_fail {
        let counted = OperationFilter::Kind(OperationKind::HardLink);
        disk.plan(Fault { counted, n: 0, lasting: true, failure: Failure::IoError });
    }
    snapshot.checkpoint(copy_path()).unwrap();
    // The files of the segments that the store still has are second names of the same files.
    let is_linked = disk.paths().iter().any(|path| {
        path.starts_with(store_path())
            && path.extension().is_some_and(|extension| extension == "table")
            && disk.content(&copy_path().join(path.file_name().unwrap())).is_some()
    });
    assert_eq!(is_linked, !compact);
    assert!(links(&disk) > 0);
    let copy = Snapshot::<F>::open_on(&disk.as_fs(), copy_path()).unwrap();
    check_copy(&copy, &expected, 1);
    assert_eq!(copy.logs(), []);
    // A checkpoint of a checkpoint, and of a store that a reader has opened by its path.
    copy.checkpoint(Path::new("copy of copy")).unwrap();
    check_copy(&Snapshot::<F>::open_on(&disk.as_fs(), Path::new("copy of copy")).unwrap(), &expected, 2);
    let now = contents(&store.snapshot()).unwrap();
    let reader = Snapshot::<F>::open_on(&disk.as_fs(), store_path()).unwrap();
    reader.checkpoint(Path::new("of a reader")).unwrap();
    check_copy(&Snapshot::<F>::open_on(&disk.as_fs(), Path::new("of a reader")).unwrap(), &now, 3);
}

#[test]
fn a_checkpoint_equals_its_snapshot() {
    for (ids, compact, links_fail) in [
        (true, false, false),
        (true, true, false),
        (true, false, true),
        (false, false, false),
        (false, true, true),
    ] {
        equals_the_snapshot::<u64>(ids, compact, links_fail);
        equals_the_snapshot::<u128>(ids, compact, links_fail);
    }
}

/// Each transaction freezes a memtable, so snapshots have one to three memtables, and flushes run beside.
#[test]
fn frozen_memtables() {
    let disk = SimulatedDisk::default();
    let small = StoreOptions { memtable: 1, ..options(&disk, true) };
    let store = Store::<u64>::open(store_path(), small).unwrap();
    store.insert_named(1, 1, "one").unwrap();
    store.insert(1 << 20, 2).unwrap();
    let snapshots: Vec<_> = (3..40)
        .map(|id| {
            store.insert_named(id << 8, id, &format!("page {id}")).unwrap();
            store.delete((id - 1) << 8, id - 1).unwrap();
            store.snapshot()
        })
        .collect();
    let models: Vec<_> = snapshots.iter().map(|snapshot| contents(snapshot).unwrap()).collect();
    for (i, (snapshot, expected)) in snapshots.iter().zip(&models).enumerate() {
        let path = format!("copy {i}");
        snapshot.checkpoint(Path::new(&path)).unwrap();
        check_copy(&Snapshot::open_on(&disk.as_fs(), Path::new(&path)).unwrap(), expected, i as u64);
    }
}

fn concurrent<F: Fingerprint>() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { memtable: 1 << 15, fanout: 2, ..StoreOptions::default() };
    let store = Store::<F>::open(&folder.path().join("store"), options).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (store, is_done) = (&store, &is_done);
            scope.spawn(move || {
                let mut random = Random(seed);
                while !is_done.load(Ordering::Relaxed) {
                    change(store, &mut random, 5);
                    store.insert(random.fingerprint(), random.below(IDS)).unwrap();
                    if random.below(20) == 0 {
                        store.compact().unwrap();
                    }
                }
            });
        }
        for i in 0..12 {
            let snapshot = store.snapshot();
            let path = folder.path().join(format!("copy {i}"));
            let copied = snapshot.checkpoint(&path).and_then(|()| Snapshot::<F>::open(&path));
            is_done.store(i == 11 || copied.is_err(), Ordering::Relaxed);
            let expected = contents(&snapshot).unwrap();
            check_copy(&copied.unwrap(), &expected, i);
        }
    });
}

#[test]
fn checkpoints_of_a_store_that_threads_write() {
    concurrent::<u64>();
    concurrent::<u128>();
}

fn independent<F: Fingerprint>() {
    let disk = SimulatedDisk::default();
    let store = store_with_all::<F>(&disk, true);
    let before = contents(&store.snapshot()).unwrap();
    store.snapshot().checkpoint(copy_path()).unwrap();
    let copy = Store::<F>::open(copy_path(), options(&disk, true)).unwrap();
    change(&copy, &mut Random(3), 30);
    copy.flush().unwrap();
    copy.compact().unwrap();
    let copied = contents(&copy.snapshot()).unwrap();
    assert_ne!(copied, before);
    check_copy(&store.snapshot(), &before, 1);
    check_copy(&Snapshot::<F>::open_on(&disk.as_fs(), store_path()).unwrap(), &before, 2);
    change(&store, &mut Random(4), 30);
    store.compact().unwrap();
    let changed = contents(&store.snapshot()).unwrap();
    drop((store, copy));
    // Opened again, both are as they were left.
    for (path, expected) in [(copy_path(), &copied), (store_path(), &changed)] {
        let again = Store::<F>::open(path, options(&disk, true)).unwrap();
        check_copy(&again.snapshot(), expected, 3);
        // A new build in the place of one store leaves the other one.
        drop(again);
        let replace = BuildOptions { fs: disk.as_fs(), replace: true, ..BuildOptions::default() };
        Builder::<F>::create(path, replace).unwrap().finish().unwrap();
    }
}

#[test]
fn a_store_and_its_checkpoint_are_independent() {
    independent::<u64>();
    independent::<u128>();
}

/// Another store has replaced the files at the paths of the segments. Then the open files are copied.
#[test]
fn files_of_another_store_are_not_linked() {
    let disk = SimulatedDisk::default();
    let store = store_with_all::<u64>(&disk, true);
    let snapshot = store.snapshot();
    let expected = contents(&snapshot).unwrap();
    let builder = Builder::<u64>::create(
        Path::new("other"),
        BuildOptions { fs: disk.as_fs(), ..BuildOptions::default() },
    );
    let mut builder = builder.unwrap();
    builder.insert(1, 1).unwrap();
    builder.finish().unwrap();
    let other = disk.content(Path::new("other/000001-00.table")).unwrap();
    let tables: Vec<_> = disk
        .paths()
        .into_iter()
        .filter(|path| path.starts_with("store") && path.to_string_lossy().ends_with("-00.table"))
        .collect();
    assert_eq!(tables.len(), 2);
    tables.iter().for_each(|path| disk.write_file(path.to_str().unwrap(), &other));
    snapshot.checkpoint(copy_path()).unwrap();
    check_copy(&Snapshot::<u64>::open_on(&disk.as_fs(), copy_path()).unwrap(), &expected, 1);
}

/// Segment files on the real disk get a second name. A symbolic link to a segment file is followed, and the file copied.
#[cfg(unix)]
#[test]
fn links_on_the_real_disk() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let [path, copy, second] = ["store", "copy", "second"].map(|name| folder.path().join(name));
    let mut builder = Builder::<u64>::create(&path, BuildOptions::default()).unwrap();
    (0..1000).try_for_each(|i: u64| builder.insert(i.wrapping_mul(0x9e37_79b9_7f4a_7c15), i)).unwrap();
    let snapshot = builder.finish().unwrap();
    let expected = contents(&snapshot).unwrap();
    snapshot.checkpoint(&copy).unwrap();
    let inode = |folder: &Path| std::fs::metadata(folder.join("000001-00.table")).unwrap().ino();
    assert_eq!(inode(&path), inode(&copy));
    std::fs::rename(path.join("000001-00.table"), folder.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", path.join("000001-00.table")).unwrap();
    snapshot.checkpoint(&second).unwrap();
    assert_ne!(inode(&path), inode(&second));
    assert!(std::fs::symlink_metadata(second.join("000001-00.table")).unwrap().is_file());
    std::fs::remove_dir_all(&path).unwrap();
    for copy in [copy, second] {
        check_copy(&Snapshot::open(&copy).unwrap(), &expected, 1);
    }
    // The folder is gone, but the snapshot still has its files open.
    snapshot.checkpoint(&folder.path().join("third")).unwrap();
    check_copy(&Snapshot::open(&folder.path().join("third")).unwrap(), &expected, 2);
}

#[test]
fn folders_that_cannot_take_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let [path, file, full, empty] = ["store", "file", "full", "empty"].map(|name| folder.path().join(name));
    let store = Store::<u64>::open(&path, StoreOptions::default()).unwrap();
    store.insert(1, 1).unwrap();
    let snapshot = store.snapshot();
    std::fs::write(&file, "").unwrap();
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("letter"), "").unwrap();
    let reason = |target: &Path| match snapshot.checkpoint(target) {
        Err(Error::AlreadyExists { path, reason }) if path == target => reason,
        other => panic!("{}: {other:?}", target.display()),
    };
    assert_eq!(reason(&file), "a file is in the way; choose another path for the store");
    assert_eq!(
        reason(&full),
        "the directory is not empty and not a store; choose another path for the store"
    );
    assert_eq!(reason(&path), "a store already exists; choose another path for the checkpoint");
    assert_eq!(std::fs::read_dir(&full).unwrap().count(), 1);
    for inside in [path.join("copy"), path.join("../store/copy")] {
        let error = snapshot.checkpoint(&inside).unwrap_err();
        assert!(matches!(&error, Error::BadArgument(text) if text.contains("inside the store")), "{error}");
        assert!(!inside.exists());
    }
    let error = snapshot.checkpoint(&folder.path().join("missing/copy")).unwrap_err();
    assert!(matches!(&error, Error::Io { action: "create", .. }), "{error}");
    std::fs::create_dir(&empty).unwrap();
    snapshot.checkpoint(&empty).unwrap();
    assert_eq!(reason(&empty), "a store already exists; choose another path for the checkpoint");
    // Another writer has the folder.
    let live = Store::<u64>::open(&empty, StoreOptions::default()).unwrap();
    assert_eq!(reason(&empty), "a store already exists; choose another path for the checkpoint");
    drop(live);
    // An empty store has an empty checkpoint.
    let none = Store::<u64>::open(&folder.path().join("none"), StoreOptions::default()).unwrap();
    none.snapshot().checkpoint(&folder.path().join("copy of none")).unwrap();
    assert!(Snapshot::<u64>::open(&folder.path().join("copy of none")).unwrap().is_empty());
}

/// Reads the checkpoint on a disk. `None` if the disk has no checkpoint.
fn checkpoint_on(disk: &SimulatedDisk) -> Result<Option<SnapshotContents<u64>>, String> {
    match Snapshot::<u64>::open_on(&disk.as_fs(), copy_path()) {
        Ok(copy) => {
            let mut damaged = Vec::new();
            copy.verify(|error| damaged.push(error.to_string()));
            if damaged.is_empty() {
                contents(&copy).map(Some).map_err(|error| error.to_string())
            } else {
                Err(damaged.concat())
            }
        }
        Err(Error::NotAStore { .. }) => Ok(None),
        Err(Error::Io { path, source, .. })
            if path == copy_path() && source.kind() == std::io::ErrorKind::NotFound =>
        {
            Ok(None)
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Returns a disk with a durable store that has two segments and a log, and the content of the store. The store is not open
/// for writing, so that no thread changes the disk.
fn disk_with_store() -> (SimulatedDisk, SnapshotContents<u64>) {
    let disk = SimulatedDisk::default();
    let store = store_with_all::<u64>(&disk, true);
    let expected = contents(&store.snapshot()).unwrap();
    drop(store);
    (disk.crash(disk.operations(), &mut SurvivalChoice::Nothing), expected)
}

fn make_checkpoint(disk: &SimulatedDisk) -> Result<(), Error> {
    Snapshot::<u64>::open_on(&disk.as_fs(), store_path())?.checkpoint(copy_path())
}

/// Checks that a disk has the unchanged store. If it has no checkpoint, makes one.
fn check_store_and_retry(disk: &SimulatedDisk, expected: &SnapshotContents<u64>) -> Result<(), String> {
    let store = Snapshot::<u64>::open_on(&disk.as_fs(), store_path()).map_err(|error| error.to_string())?;
    if contents(&store).map_err(|error| error.to_string())? != *expected {
        return Err("the store has changed".to_string());
    }
    if checkpoint_on(disk)?.is_none() {
        make_checkpoint(disk).map_err(|error| format!("retry: {error}"))?;
    }
    match checkpoint_on(disk)?.as_ref() == Some(expected) {
        true => Ok(()),
        false => Err("the retried checkpoint differs".to_string()),
    }
}

#[test]
fn power_is_lost_after_any_operation_of_a_checkpoint() {
    let (start, expected) = disk_with_store();
    let disk = start.crash(0, &mut SurvivalChoice::Nothing);
    make_checkpoint(&disk).unwrap();
    assert!(links(&disk) > 4);
    let mut crashes = disk.replay();
    let (mut none, mut whole) = (0, 0);
    loop {
        let done = crashes.done();
        let is_done = done == disk.operations();
        let seeded = (0..60).map(|seed| SurvivalChoice::seeded(seed, done));
        for mut choice in [SurvivalChoice::Nothing, SurvivalChoice::Everything].into_iter().chain(seeded) {
            let image = crashes.image(&mut choice);
            let found = checkpoint_on(&image).and_then(|found| match found {
                None if is_done => Err("the finished checkpoint is lost".to_string()),
                Some(found) if found != expected => Err(format!("{found:?}")),
                found => Ok(found.is_some()),
            });
            let is_whole = found
                .and_then(|is_whole| check_store_and_retry(&image, &expected).map(|()| is_whole))
                .unwrap_or_else(|error| panic!("after {done} operations: {error}\n{}", disk.listing()));
            *if is_whole { &mut whole } else { &mut none } += 1;
        }
        if crashes.advance().is_none() {
            break;
        }
    }
    assert!(none > 100 && whole > 50, "{none} without a checkpoint, {whole} with one");
}

#[test]
fn any_operation_of_a_checkpoint_fails() {
    let (start, expected) = disk_with_store();
    let undisturbed = start.crash(0, &mut SurvivalChoice::Nothing);
    make_checkpoint(&undisturbed).unwrap();
    let failures = [
        Failure::IoError,
        Failure::NoSpace,
        Failure::DoneButIoError,
        Failure::Short(7),
        Failure::LosePages { percent: 50, seed: 5 },
    ];
    let (mut failed, mut made) = (0, 0);
    for failure in failures {
        for (n, lasting) in (0..undisturbed.count(OperationFilter::All)).flat_map(|n| [(n, false), (n, true)])
        {
            let disk = start.crash(0, &mut SurvivalChoice::Nothing);
            disk.plan(Fault { counted: OperationFilter::All, n, lasting, failure });
            let result = make_checkpoint(&disk);
            disk.clear_faults();
            let case = || format!("{failure:?} at {n}, lasting: {lasting}: {result:?}\n{}", disk.listing());
            let found = checkpoint_on(&disk).unwrap_or_else(|error| panic!("{error}: {}", case()));
            assert!(found.as_ref().is_none_or(|found| *found == expected), "{}", case());
            assert!(found.is_some() || result.is_err(), "{}", case());
            (failed, made) = (failed + usize::from(result.is_err()), made + usize::from(result.is_ok()));
            for seed in 0..2 {
                let image = disk.crash(disk.operations(), &mut SurvivalChoice::seeded(seed, n));
                let found =
                    checkpoint_on(&image).unwrap_or_else(|error| panic!("power lost: {error}: {}", case()));
                assert!(found.is_some() || result.is_err(), "power lost: {}", case());
                check_store_and_retry(&image, &expected)
                    .unwrap_or_else(|error| panic!("{error}: {}", case()));
            }
        }
    }
    assert!(failed > 100 && made > 50, "{failed} failed, {made} were made");
}

/// On a disk that ignores syncs, a finished checkpoint may be lost or damaged. The checks notice this.
#[test]
fn syncs_of_a_checkpoint_are_needed() {
    for kind in [OperationKind::SyncFile, OperationKind::SyncDir] {
        let (start, expected) = disk_with_store();
        let counted = OperationFilter::Kind(kind);
        start.plan(Fault { counted, n: 0, lasting: true, failure: Failure::Ignored });
        make_checkpoint(&start).unwrap();
        let outcomes: BTreeSet<bool> = (0..200)
            .map(|seed| {
                let image = start.crash(start.operations(), &mut SurvivalChoice::seeded(seed, 0));
                checkpoint_on(&image).is_ok_and(|found| found.as_ref() == Some(&expected))
            })
            .collect();
        assert!(outcomes.contains(&false), "{kind:?}");
    }
}
