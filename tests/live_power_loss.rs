//! A live store that loses its power after any operation of the disk, or has any fail: what was acknowledged as durable is
//! there, and what is there is what was written first, without holes.
//!
//! `SIMSTORE_IMAGES=10000000 cargo test --release --test engine live_power_loss` takes more images than the usual number.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use simstore::{Codec, Durability, Error, PlanChoice, Snapshot, Store, StoreOptions};

use crate::support::disk::{SurvivalChoice, OperationFilter, Failure, Fault, OperationKind, SimulatedDisk};
use crate::support::random::Random;

type Model = BTreeSet<(u64, u64)>;

/// In a model, the mark that batches set: this, and the id of the first pair of the last batch.
const METADATA_KEY: u64 = 0x6d61_726b;
/// The same for the note that batches and loads set, and the id that has it.
const NOTE_KEY: u64 = 0x6e6f_7465;

#[derive(Clone, Debug)]
enum ScriptStep {
    Insert(u64, u64, Durability),
    Delete(u64, u64, Durability),
    /// Pairs, deleted where it says so.
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

/// Short calls, as of a program that is run often: the logs that they leave become segments.
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
            15 => ScriptStep::Load((0..8).map(|_| (fingerprint(random.below(40)), random.below(4))).collect()),
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

/// What a run of steps has written and when.
struct History {
    disk: SimulatedDisk,
    /// The store after each number of steps.
    models: Vec<Model>,
    /// Operations of the disk when each step began.
    step_starts: Vec<usize>,
    /// After so many operations of the disk, so many steps were acknowledged as durable.
    durable: Vec<(usize, usize)>,
    /// Operations of the disk when the store had been made.
    created_at: usize,
}

fn insert(store: &Store<u64>, fingerprint: u64, id: u64, durability: Durability) -> Result<(), Error> {
    let mut transaction = store.transaction();
    transaction.insert(fingerprint, id);
    transaction.commit(durability)
}

/// Does a step, and changes the model. Says whether all steps so far are durable now.
fn step(
    store: &mut Option<Store<u64>>,
    step: &ScriptStep,
    model: &mut Model,
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
            // A pair that is not there is nothing to write, and so nothing to make durable.
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
            // One without anything to flush makes nothing durable.
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
    let mut model = Model::new();
    let made = disk.operations();
    let mut history = History {
        disk: disk.clone(),
        models: vec![model.clone()],
        step_starts: Vec::new(),
        durable: Vec::new(),
        created_at: made,
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
    /// What is wrong with what a store holds after so many operations of the disk.
    fn check(&self, done: usize, found: &Model) -> Result<(), String> {
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

/// What the store on a disk holds; `None` if there is none yet.
fn found(snapshot: Result<Snapshot<u64>, Error>) -> Result<Option<Model>, String> {
    let snapshot = match snapshot {
        Ok(snapshot) => snapshot,
        Err(Error::NotAStore { .. }) => return Ok(None),
        Err(Error::Io { path: of, source, .. })
            if of == path() && source.kind() == std::io::ErrorKind::NotFound =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error.to_string()),
    };
    let entries = snapshot.iter().map(|entry| entry.map(|entry| (entry.fingerprint, entry.id.unwrap())));
    let mut model: Model = entries.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    // Queries say the same as the listing.
    for &(query, _) in model.iter().step_by(7) {
        let expected = model.iter().filter(|(x, _)| (x ^ query).count_ones() <= 3).count();
        let matches = snapshot.query(query, 3).map_err(|error| error.to_string())?;
        if matches.len() != expected {
            return Err(format!("{query:x}: {} matches instead of {expected}", matches.len()));
        }
    }
    let mark = snapshot.metadata("last").map_err(|error| error.to_string())?;
    model.extend(mark.map(|id| (METADATA_KEY, u64::from_le_bytes(id.try_into().unwrap()))));
    let note = snapshot.note(NOTE_KEY).map_err(|error| error.to_string())?;
    model.extend(note.map(|id| (NOTE_KEY, u64::from_le_bytes(id.try_into().unwrap()))));
    Ok(Some(model))
}

/// Reads an image, or opens it to write; then also loses its power while it is being opened.
fn check_image(history: &History, done: usize, image: &SimulatedDisk, choice: u64) -> Result<usize, String> {
    let judge = |model: Option<Model>, what: &str| match model {
        Some(model) => history.check(done, &model).map_err(|error| format!("{what}: {error}")),
        None if done < history.created_at => Ok(()),
        None => Err(format!("{what}: no store")),
    };
    if !choice.is_multiple_of(8) {
        judge(found(Snapshot::open_on(&image.as_fs(), path()))?, "read")?;
        return Ok(1);
    }
    let store =
        Store::<u64>::open(path(), options(image, 64 << 20, false)).map_err(|error| error.to_string())?;
    let model = found(Ok(store.snapshot()))?.unwrap_or_default();
    history.check(done, &model).map_err(|error| format!("recovered: {error}"))?;
    // What was recovered is durable, and so is what is written after it.
    insert(&store, u64::MAX, 77, Durability::Sync).map_err(|error| error.to_string())?;
    drop(store);
    let end = image.operations();
    for again in 0..3 {
        let later = (choice / 8 + again * 7) as usize % (end + 1);
        let once_more = image.crash(later, &mut SurvivalChoice::seeded(choice ^ again, later));
        let after = found(Snapshot::open_on(&once_more.as_fs(), path()))?;
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

/// How many images to take.
fn image_count() -> usize {
    std::env::var("SIMSTORE_IMAGES").ok().and_then(|count| count.parse().ok()).unwrap_or(100_000)
}

#[test]
fn power_is_lost_after_any_operation() {
    let start = Instant::now();
    let mut images = 0;
    let mut round = 0;
    while images < image_count() {
        // Memtables that are flushed by every write, now and then, and never.
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

/// Every operation of the disk fails, once or from then on: the store says so and takes no more, readers go on, and what
/// was acknowledged is there when it is opened again.
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
        // Interrupted without end is no failure that a disk has.
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
        let (mut model, mut models, mut durable) = (Model::new(), vec![Model::new()], 0);
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
                    // What was there before is still found.
                    for &(x, id) in before.iter().step_by(5).filter(|pair| pair.0 != METADATA_KEY) {
                        let found = store.query(x, 0).unwrap();
                        let is_there = found.iter().any(|m| m.id == Some(id));
                        // The step that failed may have deleted it.
                        assert!(is_there || !model.contains(&(x, id)), "{case}: {x:x} {id}");
                    }
                    // A load or a merge that fails leaves the store as it was; after any other failure nothing more is
                    // acknowledged.
                    let before_writing = matches!(each, ScriptStep::Load(_) | ScriptStep::Compact | ScriptStep::Flush);
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
                            // It may have been written, although it was not acknowledged.
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
            let found = found(Ok(store.snapshot())).unwrap().unwrap();
            assert!(models[durable..].contains(&found), "{case}, seed {seed}: {found:?}\n{}", disk.listing());
            assert_eq!(store.snapshot().verify(|error| panic!("{case}: {error}")), 0);
        }
    });
    println!("{} cases, {} of which made a step fail", cases.len(), failed.into_inner());
}

/// A disk that reports syncs it has not done loses what was acknowledged: the tests above would notice.
#[test]
fn a_lying_disk_is_noticed() {
    let steps = scripted();
    let honest = run(&steps, 64 << 20, false);
    let disk = SimulatedDisk::default();
    for kind in [OperationKind::SyncFile, OperationKind::SyncDir] {
        disk.plan(Fault { counted: OperationFilter::Kind(kind), n: 0, lasting: true, failure: Failure::Ignored });
    }
    let options = options(&disk, 64 << 20, false);
    let mut store = Some(Store::open(path(), options.clone()).unwrap());
    let mut model = Model::new();
    for each in &steps {
        step(&mut store, each, &mut model, &options).unwrap();
    }
    drop(store);
    let image = disk.crash(disk.operations(), &mut SurvivalChoice::Nothing);
    let lost = match found(Snapshot::open_on(&image.as_fs(), path())) {
        Ok(Some(model)) => honest.check(usize::MAX, &model).is_err(),
        _ => true,
    };
    assert!(lost);
}
