//! Tests of changes of a live store with a segment and several logs: replacing, merging, deleting, loading, salvaging.
//! Each disk operation of a change fails in turn, or is followed by a power loss. Afterwards, the store must be
//! undamaged, and have its contents from before or after the change.

use std::collections::BTreeMap;
use std::path::Path;

use rayon::prelude::*;
use simstore::store::{SalvageOptions, salvage_on};
use simstore::{BuildOptions, Builder, Codec, Durability, Error, PlanChoice, Snapshot, Store, StoreOptions};

use crate::support::disk::{Failure, Fault, OperationFilter, SimulatedDisk, SurvivalChoice};

/// Expected contents of a store. A key is a pair of fingerprint and id, and its value is empty. Metadata and notes
/// have the keys that [`METADATA_KEY`] and [`NOTE_KEY`] describe; their value is the metadata value or the note.
type ContentModel = BTreeMap<(u64, u64), Vec<u8>>;

/// Marks metadata in a [`ContentModel`], whose keys are pairs of numbers. The key of a metadata value consists of this
/// number and a number for the metadata key.
const METADATA_KEY: u64 = u64::MAX;
/// Marks notes in a [`ContentModel`], whose keys are pairs of numbers. The key of a note consists of this number and the
/// id of the note's document.
const NOTE_KEY: u64 = u64::MAX - 1;

const SALVAGED: &str = "rescued";

fn store_path() -> &'static Path {
    Path::new("store")
}

fn fingerprint(i: u64) -> u64 {
    (i / 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (1 << (i % 3 * 20))
}

fn plan() -> PlanChoice {
    PlanChoice::Named("probe-2".into())
}

fn options(disk: &SimulatedDisk) -> StoreOptions {
    StoreOptions {
        fs: disk.as_fs(),
        plan: Some(plan()),
        codec: Some(Codec::EliasFano),
        block_size: Some(256),
        memtable: 1 << 16,
        compaction: false,
        ..StoreOptions::default()
    }
}

fn open(disk: &SimulatedDisk) -> Result<Store<u64>, Error> {
    Store::open(store_path(), options(disk))
}

/// Returns a disk with a durable store, and the contents of the store. The store has one segment, and several logs with
/// inserts, deletes, metadata and notes.
fn live() -> (SimulatedDisk, ContentModel) {
    let disk = SimulatedDisk::default();
    let first = open(&disk).unwrap();
    (0..12).try_for_each(|i| first.insert(fingerprint(i), i)).unwrap();
    first.flush().unwrap();
    drop(first);
    for call in 0..4 {
        let again = open(&disk).unwrap();
        let mut transaction = again.transaction();
        transaction.insert(fingerprint(20 + call), 20 + call);
        transaction.delete(fingerprint(call), call);
        transaction.set_metadata("call", &call.to_le_bytes()).unwrap();
        transaction.set_note(20 + call, b"noted").unwrap();
        transaction.commit(Durability::Sync).unwrap();
    }
    let disk = disk.crash(disk.operations(), &mut SurvivalChoice::Nothing);
    let snapshot = Snapshot::open_on(&disk.as_fs(), store_path()).unwrap();
    assert!(snapshot.logs().len() > 3 && snapshot.stats().segments == 1);
    let model = contents(&snapshot).unwrap();
    assert_eq!(model.keys().filter(|key| key.0 < NOTE_KEY).count(), 12);
    (disk, model)
}

fn contents(snapshot: &Snapshot<u64>) -> Result<ContentModel, Error> {
    let mut model = ContentModel::new();
    for entry in snapshot.iter() {
        let entry = entry?;
        model.insert((entry.fingerprint, entry.id.unwrap_or(0)), Vec::new());
    }
    for (i, key) in (0..).zip(["call", "run"]) {
        model.extend(snapshot.metadata(key)?.map(|value| ((METADATA_KEY, i), value)));
    }
    for id in 20..24 {
        model.extend(snapshot.note(id)?.map(|note| ((NOTE_KEY, id), note)));
    }
    Ok(model)
}

/// Verifies a store on a disk and returns its contents; `None` if the path holds no store.
fn verified_contents(disk: &SimulatedDisk, path: &str) -> Result<Option<ContentModel>, String> {
    let snapshot = match Snapshot::open_on(&disk.as_fs(), Path::new(path)) {
        Ok(snapshot) => snapshot,
        Err(Error::NotAStore { .. }) => return Ok(None),
        Err(Error::Io { path: missing, source, .. })
            if missing == Path::new(path) && source.kind() == std::io::ErrorKind::NotFound =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error.to_string()),
    };
    let mut damaged = Vec::new();
    // A torn tail is normal after a crash.
    snapshot.verify(|error| match error {
        Error::TornTail { .. } => {}
        error => damaged.push(error.to_string()),
    });
    if damaged.is_empty() {
        contents(&snapshot).map(Some).map_err(|e| e.to_string())
    } else {
        Err(damaged.concat())
    }
}

/// A change of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreChange {
    /// Replaces the store with a new build, like `build --force`. The build has so little memory that it sorts in
    /// temporary files.
    Replace,
    /// Begins to replace the store with a new build, and drops the builder before it finishes.
    AbandonReplace,
    Compact,
    Delete,
    /// Loads pairs and metadata in bulk, then merges the segments, like `dedup --against --add`.
    Load,
    Salvage,
}

const ALL_CHANGES: [StoreChange; 6] = [
    StoreChange::Replace,
    StoreChange::AbandonReplace,
    StoreChange::Compact,
    StoreChange::Delete,
    StoreChange::Load,
    StoreChange::Salvage,
];

impl StoreChange {
    fn run(self, disk: &SimulatedDisk) -> Result<(), Error> {
        match self {
            StoreChange::Replace | StoreChange::AbandonReplace => {
                let options = BuildOptions {
                    fs: disk.as_fs(),
                    memory: Some(16 << 20),
                    plan: plan(),
                    replace: true,
                    ..BuildOptions::default()
                };
                let mut builder = Builder::<u64>::create(store_path(), options)?;
                for i in 0..1500 {
                    builder.insert_named(fingerprint(i + 100), i, "new")?;
                }
                if self == StoreChange::Replace { builder.finish().map(|_| ()) } else { Ok(()) }
            }
            StoreChange::Compact => open(disk)?.compact(),
            StoreChange::Delete => {
                let pairs = [20, 5, 21, 7].map(|i| (fingerprint(i), i));
                open(disk)?.delete_all(&pairs, Durability::Sync).map(|_| ())
            }
            StoreChange::Load => {
                let store =
                    Store::open(store_path(), StoreOptions { compaction: true, fanout: 2, ..options(disk) })?;
                let mut load = store.bulk_load()?;
                (30..40).try_for_each(|i| load.insert(fingerprint(i), i))?;
                load.set_metadata("run", b"of today")?;
                load.finish()?;
                store.wait_for_background()
            }
            StoreChange::Salvage => {
                let options = SalvageOptions::default();
                salvage_on::<u64>(&disk.as_fs(), store_path(), Path::new(SALVAGED), &options).map(|_| ())
            }
        }
    }

    /// Performs the change on a copy of the disk `before`. Returns the contents of two stores after the change: of the
    /// changed store, and of the salvaged store (`None` if the change is not [`StoreChange::Salvage`]).
    fn result(self, before: &SimulatedDisk) -> [Option<ContentModel>; 2] {
        let disk = before.crash(0, &mut SurvivalChoice::Nothing);
        self.run(&disk).unwrap();
        let after = [verified_contents(&disk, "store").unwrap(), verified_contents(&disk, SALVAGED).unwrap()];
        // Checks that the change makes a difference if it should, and none otherwise.
        let was = verified_contents(before, "store").unwrap();
        let changes = matches!(self, StoreChange::Replace | StoreChange::Delete | StoreChange::Load);
        assert_eq!(after[0] != was, changes, "{self:?}");
        assert_eq!(after[1], if self == StoreChange::Salvage { was } else { None }, "{self:?}");
        after
    }
}

/// Checks the stores on a disk after an interrupted change. The store must have the contents `before` or `after[0]`; the
/// salvaged store must not exist, or have the contents `after[1]`. If `done`, the change is complete, and both stores must
/// be as in `after`.
fn judge(
    disk: &SimulatedDisk,
    before: &ContentModel,
    after: &[Option<ContentModel>; 2],
    done: bool,
) -> Result<(), String> {
    let (there, rescued) = (verified_contents(disk, "store")?, verified_contents(disk, SALVAGED)?);
    if there != after[0] && (done || there.as_ref() != Some(before)) {
        return Err(format!("the store holds {there:?}"));
    }
    if rescued != after[1] && (done || rescued.is_some()) {
        return Err(format!("the rescued one holds {rescued:?}"));
    }
    Ok(())
}

/// Checks that a store on a disk after a failure or power loss accepts writes, and has them when it is opened again.
fn check_accepts_writes(disk: &SimulatedDisk) -> Result<(), String> {
    let before = verified_contents(disk, "store")?.unwrap_or_default();
    let insert = || {
        let store = open_with_own_settings(disk)?;
        let mut transaction = store.transaction();
        transaction.insert(1, 1);
        transaction.commit(Durability::Sync)
    };
    insert().map_err(|error| error.to_string())?;
    let mut after = verified_contents(disk, "store")?.unwrap_or_default();
    match after.remove(&(1, 1)).is_some() && after == before {
        true => Ok(()),
        false => Err(format!("after a write: {after:?}")),
    }
}

/// Opens a store with the settings that it was created with. If a build replaced the store, these settings may differ
/// from [`options`].
fn open_with_own_settings(disk: &SimulatedDisk) -> Result<Store<u64>, Error> {
    Store::open(
        store_path(),
        StoreOptions {
            fs: disk.as_fs(),
            memtable: 1 << 16,
            compaction: false,
            create: false,
            ..StoreOptions::default()
        },
    )
}

#[test]
fn power_is_lost_after_any_operation() {
    let (start, before) = live();
    ALL_CHANGES.par_iter().for_each(|&change| {
        let after = change.result(&start);
        let disk = start.crash(0, &mut SurvivalChoice::Nothing);
        change.run(&disk).unwrap();
        let mut crashes = disk.replay();
        loop {
            let done = crashes.done();
            let seeded = (0..20).map(|seed| SurvivalChoice::seeded(seed, done));
            for mut choice in [SurvivalChoice::Nothing, SurvivalChoice::Everything].into_iter().chain(seeded)
            {
                let image = crashes.image(&mut choice);
                let is_done = done == disk.operations();
                judge(&image, &before, &after, is_done && change != StoreChange::AbandonReplace)
                    .and_then(|()| check_accepts_writes(&image))
                    .unwrap_or_else(|error| {
                        panic!("{change:?}, after {done} operations: {error}\n{}", disk.listing())
                    });
            }
            if crashes.advance().is_none() {
                break;
            }
        }
    });
}

#[test]
fn any_operation_fails() {
    let (start, before) = live();
    let failures = [
        Failure::IoError,
        Failure::NoSpace,
        Failure::DoneButIoError,
        Failure::Short(7),
        Failure::LosePages { percent: 50, seed: 5 },
    ];
    let failed: usize = ALL_CHANGES
        .par_iter()
        .map(|&change| {
            let after = change.result(&start);
            let undisturbed = start.crash(0, &mut SurvivalChoice::Nothing);
            change.run(&undisturbed).unwrap();
            // For `salvage`, an unreadable file is damage, which is no failure. So only changes of the disk fail here.
            let counted =
                if change == StoreChange::Salvage { OperationFilter::Changes } else { OperationFilter::All };
            let cases = (0..undisturbed.count(counted))
                .flat_map(|n| failures.map(|failure| [(n, failure, false), (n, failure, true)]))
                .flatten();
            let mut failed = 0;
            for (n, failure, lasting) in cases {
                let disk = start.crash(0, &mut SurvivalChoice::Nothing);
                disk.plan(Fault { counted, n, lasting, failure });
                let result = change.run(&disk);
                disk.clear_faults();
                failed += usize::from(result.is_err());
                let done = result.is_ok() && change != StoreChange::AbandonReplace;
                let case = || {
                    format!(
                        "{change:?}, {failure:?} at {n}, lasting: {lasting}: {result:?}\n{}",
                        disk.listing()
                    )
                };
                judge(&disk, &before, &after, done).unwrap_or_else(|error| panic!("{error}\n{}", case()));
                for seed in 0..2 {
                    let image = disk.crash(disk.operations(), &mut SurvivalChoice::seeded(seed, n));
                    judge(&image, &before, &after, done)
                        .and_then(|()| check_accepts_writes(&image))
                        .unwrap_or_else(|error| panic!("power lost: {error}\n{}", case()));
                }
            }
            failed
        })
        .sum();
    println!("{failed} jobs failed");
    assert!(failed > 1000);
}

/// Segments and logs take their file numbers from one sequence. So if a build replaces a store, the number of its segment
/// is higher than the numbers of all logs in the folder, even of a log that the manifest does not list.
#[test]
fn a_new_segment_has_the_number_of_no_log() {
    let (disk, _) = live();
    let logs: Vec<u64> = Snapshot::<u64>::open_on(&disk.as_fs(), store_path())
        .unwrap()
        .logs()
        .iter()
        .map(|l| l.number)
        .collect();
    disk.write_file("store/1000000.log", b"of another store");
    StoreChange::Replace.run(&disk).unwrap();
    let names: Vec<String> =
        disk.paths().iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect();
    assert!(names.contains(&"1000001-00.table".to_owned()), "{names:?} beside {logs:?}");
    assert!(!names.iter().any(|name| name.ends_with(".log")), "{names:?}");
}
