//! Tests of a live store with a power loss after each operation of the disk, and with a failure of each operation. The
//! store keeps all writes that were acknowledged as durable. If it has a write, it also has all earlier writes.
//!
//! `SIMSTORE_IMAGES=10000000 cargo test --release --test engine live_power_loss` sets the number of disk images to check;
//! the default is 100,000.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use simstore::{Codec, Durability, Error, PlanChoice, Snapshot, Store, StoreOptions};

use crate::support::disk::{Failure, Fault, OperationFilter, OperationKind, SimulatedDisk, SurvivalChoice};
use crate::support::random::Random;
use crate::support::samples::PairModel;

/// The store's only metadata value is a number: one of the ids in the newest batch. In the expected contents (a
/// [`PairModel`], a set of pairs of numbers), the pair of this constant and the number stands for the metadata value.
const METADATA_KEY: u64 = 0x6d61_726b;
/// Id of the only document with a note. The note is a number: one of the ids in the newest batch or bulk load. In the
/// expected contents (a [`PairModel`], a set of pairs of numbers), the pair of this constant and the number stands for
/// the note.
const NOTE_KEY: u64 = 0x6e6f_7465;

#[derive(Clone, Debug)]
enum ScriptStep {
    Insert(u64, u64, Durability),
    Delete(u64, u64, Durability),
    /// A transaction. Each item is a fingerprint, an id, and a flag: true to delete the pair, false to insert it.
    Batch(Vec<(u64, u64, bool)>, Durability),
    Load(Vec<(u64, u64)>),
    Sync,
    Flush,
    Compact,
    Reopen,
}

fn fingerprint(i: u64) -> u64 {
    (i / 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (1 << (i % 3 * 20))
}

fn scripted() -> Vec<ScriptStep> {
    let (os, sync) = (Durability::Os, Durability::Sync);
    let mut steps: Vec<ScriptStep> = (0..6).map(|i| ScriptStep::Insert(fingerprint(i), i, sync)).collect();
    steps.extend((6..10).map(|i| ScriptStep::Insert(fingerprint(i), i, os)));
    steps.extend([ScriptStep::Sync, ScriptStep::Delete(fingerprint(3), 3, sync), ScriptStep::Flush]);
    steps.extend((10..14).map(|i| ScriptStep::Insert(fingerprint(i), i, os)));
    steps.push(ScriptStep::Batch((14..20).map(|i| (fingerprint(i), i, i % 5 == 0)).collect(), sync));
    steps.extend([ScriptStep::Delete(fingerprint(1), 1, os), ScriptStep::Insert(fingerprint(3), 3, sync)]);
    steps.push(ScriptStep::Load((30..50).map(|i| (fingerprint(i), i)).collect()));
    steps.extend([
        ScriptStep::Reopen,
        ScriptStep::Insert(fingerprint(60), 60, os),
        ScriptStep::Delete(fingerprint(31), 31, os),
    ]);
    steps.extend([ScriptStep::Flush, ScriptStep::Insert(fingerprint(61), 61, sync), ScriptStep::Compact]);
    steps.push(ScriptStep::Insert(fingerprint(62), 62, Durability::Group(Duration::from_micros(1))));
    steps
}

/// Returns the steps of a program that opens the store often and writes little each time, so that many logs become
/// segments.
fn calls() -> Vec<ScriptStep> {
    let call = |i: u64| {
        let write = match i % 4 {
            0 => ScriptStep::Batch(vec![(fingerprint(i), i, false)], Durability::Sync),
            1 => ScriptStep::Delete(fingerprint(i - 1), i - 1, Durability::Os),
            2 => ScriptStep::Insert(fingerprint(i), i, Durability::Os),
            _ => ScriptStep::Sync,
        };
        [write, ScriptStep::Reopen]
    };
    (0..32).flat_map(call).collect()
}

fn random(seed: u64) -> Vec<ScriptStep> {
    let mut random = Random(seed);
    let step = |random: &mut Random| {
        let (x, id) = (fingerprint(random.below(40)), random.below(4));
        let durability = [Durability::Os, Durability::Os, Durability::Sync][random.below(3) as usize];
        match random.below(20) {
            0..8 => ScriptStep::Insert(x, id, durability),
            8..12 => ScriptStep::Delete(x, id, durability),
            12..15 => {
                let pair = |_| (fingerprint(random.below(40)), random.below(4), random.below(3) == 0);
                ScriptStep::Batch((0..5).map(pair).collect(), durability)
            }
            15 => {
                ScriptStep::Load((0..8).map(|_| (fingerprint(random.below(40)), random.below(4))).collect())
            }
            16 => ScriptStep::Sync,
            17 => ScriptStep::Flush,
            18 => ScriptStep::Compact,
            _ => ScriptStep::Reopen,
        }
    };
    (0..40).map(|_| step(&mut random)).collect()
}

fn options(disk: &SimulatedDisk, memtable: u64, compaction: bool) -> StoreOptions {
    let plan = PlanChoice::Named("probe-2".into());
    StoreOptions {
        fs: disk.as_fs(),
        plan: Some(plan),
        codec: Some(Codec::EliasFano),
        block_size: Some(256),
        memtable,
        compaction,
        fanout: 2,
        ..StoreOptions::default()
    }
}

fn path() -> &'static Path {
    Path::new("store")
}

/// The result of running a sequence of steps on a store. For a power loss after any disk operation of the run, it tells
/// which contents the store may have.
struct History {
    disk: SimulatedDisk,
    /// Expected contents before the first step and after each step.
    models: Vec<PairModel<u64>>,
    /// Number of disk operations before each step.
    step_starts: Vec<usize>,
    /// Each item is a number of disk operations and a number of steps. When so many disk operations are done, so many
    /// steps are acknowledged as durable. Both numbers ascend.
    durable: Vec<(usize, usize)>,
    /// Number of disk operations that create the store. After a power loss during these operations, the store may be
    /// missing.
    created_at: usize,
}

fn insert(store: &Store<u64>, fingerprint: u64, id: u64, durability: Durability) -> Result<(), Error> {
    let mut transaction = store.transaction();
    transaction.insert(fingerprint, id);
    transaction.commit(durability)
}

/// Performs a step and applies it to the model. Returns whether the step makes itself and all earlier steps durable.
fn step(
    store: &mut Option<Store<u64>>,
    step: &ScriptStep,
    model: &mut PairModel<u64>,
    options: &StoreOptions,
) -> Result<bool, Error> {
    if matches!(step, ScriptStep::Reopen) {
        drop(store.take());
        *store = Some(Store::open(path(), options.clone())?);
        return Ok(true);
    }
    let live = store.as_ref().expect("a store that was opened");
    Ok(match step {
        &ScriptStep::Insert(x, id, durability) => {
            model.insert((x, id));
            insert(live, x, id, durability)?;
            durability != Durability::Os
        }
        &ScriptStep::Delete(x, id, durability) => {
            model.remove(&(x, id));
            // Deleting a pair that is not stored writes nothing, so it makes nothing durable.
            let was_there = live.delete(x, id)?;
            if was_there && durability != Durability::Os {
                live.sync()?;
            }
            was_there && durability != Durability::Os
        }
        ScriptStep::Batch(pairs, durability) => {
            let mut batch = live.transaction();
            for &(x, id, delete) in pairs {
                if delete {
                    batch.delete(x, id);
                    model.remove(&(x, id));
                } else {
                    batch.insert(x, id);
                    model.insert((x, id));
                }
            }
            if let Some((_, id, _)) = pairs.first() {
                batch.set_metadata("last", &id.to_le_bytes())?;
                model.retain(|&(x, _)| x != METADATA_KEY);
                model.insert((METADATA_KEY, *id));
                batch.set_note(NOTE_KEY, &id.to_le_bytes())?;
                model.retain(|&(x, _)| x != NOTE_KEY);
                model.insert((NOTE_KEY, *id));
            }
            batch.commit(*durability)?;
            *durability != Durability::Os
        }
        ScriptStep::Load(pairs) => {
            let mut load = live.bulk_load()?;
            for &(x, id) in pairs {
                load.insert(x, id)?;
            }
            model.extend(pairs);
            if let Some((_, id)) = pairs.last() {
                load.set_note(NOTE_KEY, &id.to_le_bytes())?;
                model.retain(|&(x, _)| x != NOTE_KEY);
                model.insert((NOTE_KEY, *id));
            }
            load.finish()?;
            true
        }
        ScriptStep::Sync => {
            live.sync()?;
            true
        }
        ScriptStep::Flush => {
            // A flush of an empty memtable makes nothing durable.
            live.flush()?;
            false
        }
        ScriptStep::Compact => {
            live.compact()?;
            false
        }
        ScriptStep::Reopen => unreachable!("done above"),
    })
}

fn run(steps: &[ScriptStep], memtable: u64, compaction: bool) -> History {
    let disk = SimulatedDisk::default();
    let options = options(&disk, memtable, compaction);
    let mut store = Some(Store::open(path(), options.clone()).unwrap());
    let mut model = PairModel::new();
    let created_at = disk.operations();
    let mut history = History {
        disk: disk.clone(),
        models: vec![model.clone()],
        step_starts: Vec::new(),
        durable: Vec::new(),
        created_at,
    };
    for (i, each) in steps.iter().enumerate() {
        history.step_starts.push(disk.operations());
        let durable = step(&mut store, each, &mut model, &options).unwrap();
        history.models.push(model.clone());
        if durable {
            history.durable.push((disk.operations(), i + 1));
        }
    }
    store.as_ref().unwrap().wait_for_background().unwrap();
    drop(store);
    history
}

impl History {
    /// Checks `found`, the contents of the store after a power loss that follows the first `done` disk operations. They
    /// must be the expected contents after one of the steps: at the earliest the last step that was acknowledged as durable
    /// before the power loss, at the latest the last step that had begun.
    fn check(&self, done: usize, found: &PairModel<u64>) -> Result<(), String> {
        let acknowledged = self.durable.iter().take_while(|durable| durable.0 <= done).last();
        let least = acknowledged.map_or(0, |durable| durable.1);
        let most = self.step_starts.partition_point(|&began| began < done);
        if self.models[least..=most.max(least)].contains(found) {
            return Ok(());
        }
        let is = self.models.iter().position(|model| model == found);
        Err(format!(
            "{} pairs, as after step {is:?}, and not after {least} to {most}: {found:?}",
            found.len()
        ))
    }
}

/// Reads the contents of a store. Returns `None` if the store does not exist yet.
fn read_contents(snapshot: Result<Snapshot<u64>, Error>) -> Result<Option<PairModel<u64>>, String> {
    let snapshot = match snapshot {
        Ok(snapshot) => snapshot,
        Err(Error::NotAStore { .. }) => return Ok(None),
        Err(Error::Io { path: missing, source, .. })
            if missing == path() && source.kind() == std::io::ErrorKind::NotFound =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error.to_string()),
    };
    let entries = snapshot.iter().map(|entry| entry.map(|entry| (entry.fingerprint, entry.id.unwrap())));
    let mut model: PairModel<u64> = entries.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    // Queries find the listed fingerprints.
    for &(query, _) in model.iter().step_by(7) {
        let expected = model.iter().filter(|(x, _)| (x ^ query).count_ones() <= 3).count();
        let matches = snapshot.query(query, 3).map_err(|error| error.to_string())?;
        if matches.len() != expected {
            return Err(format!("{query:x}: {} matches instead of {expected}", matches.len()));
        }
    }
    let metadata = snapshot.metadata("last").map_err(|error| error.to_string())?;
    model.extend(metadata.map(|id| (METADATA_KEY, u64::from_le_bytes(id.try_into().unwrap()))));
    let note = snapshot.note(NOTE_KEY).map_err(|error| error.to_string())?;
    model.extend(note.map(|id| (NOTE_KEY, u64::from_le_bytes(id.try_into().unwrap()))));
    Ok(Some(model))
}

/// Checks the store in `image`, the disk after a power loss that follows the first `done` operations. `choice` selects
/// the depth of the check: if it is a multiple of 8, the store is also opened for writing, and checked after power losses
/// during this recovery. Otherwise, the store is only read. Returns the number of images checked.
fn check_image(history: &History, done: usize, image: &SimulatedDisk, choice: u64) -> Result<usize, String> {
    let judge = |model: Option<PairModel<u64>>, context: &str| match model {
        Some(model) => history.check(done, &model).map_err(|error| format!("{context}: {error}")),
        None if done < history.created_at => Ok(()),
        None => Err(format!("{context}: no store")),
    };
    if !choice.is_multiple_of(8) {
        judge(read_contents(Snapshot::open_on(&image.as_fs(), path()))?, "read")?;
        return Ok(1);
    }
    let store =
        Store::<u64>::open(path(), options(image, 64 << 20, false)).map_err(|error| error.to_string())?;
    let model = read_contents(Ok(store.snapshot()))?.unwrap_or_default();
    history.check(done, &model).map_err(|error| format!("recovered: {error}"))?;
    // The recovered contents and a later write must be durable.
    insert(&store, u64::MAX, 77, Durability::Sync).map_err(|error| error.to_string())?;
    drop(store);
    let end = image.operations();
    for again in 0..3 {
        let later = (choice / 8 + again * 7) as usize % (end + 1);
        let once_more = image.crash(later, &mut SurvivalChoice::seeded(choice ^ again, later));
        let after = read_contents(Snapshot::open_on(&once_more.as_fs(), path()))?;
        let Some(mut after) = after else {
            if done < history.created_at {
                continue;
            }
            return Err(format!("crash {later} of {end} in recovery: no store"));
        };
        let written = after.remove(&(u64::MAX, 77));
        if later == end && !written {
            return Err("a write after the recovery is lost".to_string());
        }
        if after != model {
            return Err(format!("crash {later} of {end} in recovery: {after:?} instead of {model:?}"));
        }
    }
    Ok(4)
}

fn lose_power(steps: &[ScriptStep], memtable: u64, compaction: bool, seeds: std::ops::Range<u64>) -> usize {
    let history = run(steps, memtable, compaction);
    let images = AtomicUsize::new(0);
    seeds.into_par_iter().for_each(|seed| {
        let mut crashes = history.disk.replay();
        loop {
            let done = crashes.done();
            let mut choice = match seed {
                0 => SurvivalChoice::Nothing,
                1 => SurvivalChoice::Everything,
                _ => SurvivalChoice::seeded(seed, done),
            };
            let image = crashes.image(&mut choice);
            match check_image(&history, done, &image, seed + done as u64) {
                Ok(count) => images.fetch_add(count, Ordering::Relaxed),
                Err(error) => {
                    panic!(
                        "seed {seed}, after {done} operations: {error}\n{}{steps:?}",
                        history.disk.listing()
                    )
                }
            };
            if crashes.advance().is_none() {
                return;
            }
        }
    });
    images.into_inner()
}

/// Returns the number of disk images to check.
fn image_count() -> usize {
    std::env::var("SIMSTORE_IMAGES").ok().and_then(|count| count.parse().ok()).unwrap_or(100_000)
}

#[test]
fn power_is_lost_after_any_operation() {
    let start = Instant::now();
    let mut images = 0;
    let mut round = 0;
    while images < image_count() {
        // Memtable limits in bytes: flushed after every write, sometimes, and never.
        let memtable = [1, 1 << 20, 64 << 20][round as usize % 3];
        let steps = match round {
            0..3 => scripted(),
            3..5 => calls(),
            _ => random(round),
        };
        images += lose_power(&steps, memtable, round % 2 == 0, 0..12);
        round += 1;
    }
    println!("{images} images of {round} histories in {:.1} s", start.elapsed().as_secs_f64());
}

/// Each operation of the disk fails in turn, either alone or with all later operations. If a write then fails, the store
/// refuses later writes, but can still be read. When the store is opened again, it has all acknowledged writes.
#[test]
fn any_operation_fails() {
    let steps = scripted();
    let end = run(&steps, 1 << 20, true).disk.operations();
    let failures = [
        Failure::IoError,
        Failure::NoSpace,
        Failure::DoneButIoError,
        Failure::LosePages { percent: 50, seed: 5 },
        Failure::Interrupted,
        Failure::Short(7),
    ];
    let cases: Vec<(usize, Failure, bool)> = (0..end)
        .flat_map(|n| failures.map(|failure| [(n, failure, false), (n, failure, true)]))
        .flatten()
        // A disk does not interrupt calls forever.
        .filter(|&(_, failure, lasting)| {
            !(lasting && matches!(failure, Failure::Interrupted | Failure::Short(_)))
        })
        .collect();
    let failed = AtomicUsize::new(0);
    cases.par_iter().for_each(|&(n, failure, lasting)| {
        let case = format!("operation {n}, {failure:?}, lasting: {lasting}");
        let disk = SimulatedDisk::default();
        disk.plan(Fault { counted: OperationFilter::Changes, n, lasting, failure });
        let options = options(&disk, 1 << 20, true);
        let (mut model, mut models, mut durable) = (PairModel::new(), vec![PairModel::new()], 0);
        let mut store = Store::open(path(), options.clone()).ok();
        for (i, each) in steps.iter().enumerate() {
            if store.is_none() {
                break;
            }
            let before = model.clone();
            match step(&mut store, each, &mut model, &options) {
                Ok(is_durable) => durable = if is_durable { i + 1 } else { durable },
                Err(error) => {
                    failed.fetch_add(1, Ordering::Relaxed);
                    let Some(store) = &store else { break };
                    // Earlier pairs are still found.
                    for &(x, id) in before.iter().step_by(5).filter(|pair| pair.0 != METADATA_KEY) {
                        let found = store.query(x, 0).unwrap();
                        let is_there = found.iter().any(|m| m.id == Some(id));
                        // The failed step may have deleted the pair.
                        assert!(is_there || !model.contains(&(x, id)), "{case}: {x:x} {id}");
                    }
                    // After a failed load, flush or merge, the store may take writes. After any other failure, it refuses
                    // them.
                    let before_writing =
                        matches!(each, ScriptStep::Load(_) | ScriptStep::Compact | ScriptStep::Flush);
                    match insert(store, 1, 1, Durability::Sync) {
                        Ok(()) => {
                            assert!(before_writing, "{case}: {error}, and then a write succeeds");
                            for model in [before, model.clone()] {
                                models.push(model.into_iter().chain([(1, 1)]).collect());
                            }
                            durable = models.len() - 2;
                            break;
                        }
                        Err(Error::Poisoned { .. }) => {}
                        Err(again) => {
                            assert!(before_writing, "{case}: {error}, then {again}");
                            // The insert may have been written although it was not acknowledged.
                            for model in [before, model.clone()] {
                                models.push(model.into_iter().chain([(1, 1)]).collect());
                            }
                        }
                    }
                    let once_more = insert(store, 2, 2, Durability::Sync).unwrap_err();
                    assert!(matches!(once_more, Error::Poisoned { .. }), "{case}: {once_more}");
                    models.push(model.clone());
                    break;
                }
            }
            models.push(model.clone());
        }
        drop(store);
        disk.clear_faults();
        for seed in 0..3 {
            let image = disk.crash(disk.operations(), &mut SurvivalChoice::seeded(seed, n));
            let store = match Store::<u64>::open(path(), self::options(&image, 64 << 20, false)) {
                Ok(store) => store,
                Err(error) => panic!("{case}: {error}\n{}", disk.listing()),
            };
            let found = read_contents(Ok(store.snapshot())).unwrap().unwrap();
            assert!(models[durable..].contains(&found), "{case}, seed {seed}: {found:?}\n{}", disk.listing());
            assert_eq!(store.snapshot().verify(|error| panic!("{case}: {error}")), 0);
        }
    });
    println!("{} cases, {} of which made a step fail", cases.len(), failed.into_inner());
}

/// On a disk that ignores syncs but reports success, acknowledged writes are lost. The check that the other tests use
/// notices this loss.
#[test]
fn a_lying_disk_is_noticed() {
    let steps = scripted();
    let honest = run(&steps, 64 << 20, false);
    let disk = SimulatedDisk::default();
    for kind in [OperationKind::SyncFile, OperationKind::SyncDir] {
        disk.plan(Fault {
            counted: OperationFilter::Kind(kind),
            n: 0,
            lasting: true,
            failure: Failure::Ignored,
        });
    }
    let options = options(&disk, 64 << 20, false);
    let mut store = Some(Store::open(path(), options.clone()).unwrap());
    let mut model = PairModel::new();
    for each in &steps {
        step(&mut store, each, &mut model, &options).unwrap();
    }
    drop(store);
    let image = disk.crash(disk.operations(), &mut SurvivalChoice::Nothing);
    let lost = match read_contents(Snapshot::open_on(&image.as_fs(), path())) {
        Ok(Some(model)) => honest.check(usize::MAX, &model).is_err(),
        _ => true,
    };
    assert!(lost);
}
