//! Tests of builds with a power loss after each disk operation, and with a failure of each operation. Afterwards,
//! there is a complete store, either the old one or the new one, or no store at all.

use std::io;
use std::path::Path;
use std::time::Instant;

use simstore::{BuildOptions, Builder, Error, PlanChoice, Snapshot};

use crate::support::disk::{Failure, Fault, OperationFilter, OperationKind, SimulatedDisk, SurvivalChoice};

/// Returns `count` fingerprints, some of them near each other. Different values of `salt` give different fingerprints.
fn fingerprints(count: u64, salt: u64) -> Vec<u64> {
    (0..count).map(|i| (i / 4 + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (1 << (i % 4))).collect()
}

fn old_and_new() -> [Vec<u64>; 2] {
    [fingerprints(40, 1), fingerprints(60, 1000)]
}

fn build(disk: &SimulatedDisk, fingerprints: &[u64]) -> Result<(), Error> {
    let plan = PlanChoice::Named("probe-2".into());
    let options = BuildOptions { fs: disk.as_fs(), plan, replace: true, ..BuildOptions::default() };
    let mut builder = Builder::create(Path::new("store"), options)?;
    for (id, &fingerprint) in (0..).zip(fingerprints) {
        builder.insert_named(fingerprint, id, &format!("page {id}"))?;
    }
    builder.finish().map(|_| ())
}

/// Returns a disk with a durable store of these fingerprints. Operations of the build are not recorded on the disk.
fn disk_with(fingerprints: &[u64]) -> SimulatedDisk {
    let disk = SimulatedDisk::default();
    build(&disk, fingerprints).unwrap();
    disk.crash(disk.operations(), &mut SurvivalChoice::Nothing)
}

/// Reads the store on the disk, whose fingerprints must equal one of `candidates`. Returns the index of this
/// candidate, or `None` if the disk has no store.
fn stored_candidate(disk: &SimulatedDisk, candidates: &[Vec<u64>]) -> Result<Option<usize>, String> {
    let store = match Snapshot::<u64>::open_on(&disk.as_fs(), Path::new("store")) {
        Ok(store) => store,
        Err(Error::NotAStore { .. }) => return Ok(None),
        // The folder does not exist. A missing file inside the folder would be damage.
        Err(Error::Io { path, source, .. })
            if path == Path::new("store") && source.kind() == io::ErrorKind::NotFound =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error.to_string()),
    };
    let len = store.len();
    let index = candidates.iter().position(|one| one.len() as u64 == len);
    let index = index.ok_or_else(|| format!("{len} fingerprints"))?;
    for &query in candidates[index].iter().step_by(5) {
        let near = |&(_, other): &(u64, &u64)| (query ^ other).count_ones() <= 3;
        let mut expected: Vec<(u64, u64)> =
            (0..).zip(&candidates[index]).filter(near).map(|(id, &other)| (other, id)).collect();
        expected.sort_unstable();
        let matches = store.query(query, 3).map_err(|error| error.to_string())?;
        let mut matches: Vec<(u64, u64)> =
            matches.iter().map(|found| (found.fingerprint, found.id.unwrap())).collect();
        matches.sort_unstable();
        if matches != expected {
            return Err(format!("{query:x}: {matches:?} instead of {expected:?}"));
        }
    }
    Ok(Some(index))
}

/// Results of reading the store in many disk images. A candidate is a set of fingerprints that the store may have. The
/// fields have the number of images with each candidate, the number of images without a store, and the errors.
#[derive(Debug)]
struct Outcomes {
    candidates: Vec<usize>,
    none: usize,
    wrong: Vec<String>,
    /// One item for each disk image of a power loss after the last operation: the index of the candidate (a set of
    /// fingerprints that the store may have) that was found in the store, or `None` if there is no store.
    at_end: Vec<Option<usize>>,
}

/// Simulates several power losses after each operation of the disk, and reads the store after each: one power loss in
/// which no unsynced data survives, one in which all survives, and `seeds` in which random data survives. `candidates` has
/// the sets of fingerprints that the store may have.
fn crash_everywhere(disk: &SimulatedDisk, seeds: u64, candidates: &[Vec<u64>]) -> Outcomes {
    let start = Instant::now();
    let mut outcomes =
        Outcomes { candidates: vec![0; candidates.len()], none: 0, wrong: Vec::new(), at_end: Vec::new() };
    let mut crashes = disk.replay();
    let mut images = 0;
    loop {
        let done = crashes.done();
        let random = (0..seeds).map(|seed| (format!("seed {seed}"), SurvivalChoice::seeded(seed, done)));
        let fixed =
            [("nothing".into(), SurvivalChoice::Nothing), ("everything".into(), SurvivalChoice::Everything)];
        for (name, mut choice) in fixed.into_iter().chain(random) {
            images += 1;
            match stored_candidate(&crashes.image(&mut choice), candidates) {
                Ok(index) => {
                    match index {
                        Some(index) => outcomes.candidates[index] += 1,
                        None => outcomes.none += 1,
                    }
                    if done == disk.operations() {
                        outcomes.at_end.push(index);
                    }
                }
                Err(error) => outcomes.wrong.push(format!("{name} after {done} operations: {error}")),
            }
        }
        if crashes.advance().is_none() {
            break;
        }
    }
    let Outcomes { candidates, none, wrong, .. } = &outcomes;
    println!(
        "{images} images of {} operations in {:.2?}: stores {candidates:?}, none {none}, wrong {}",
        disk.operations(),
        start.elapsed(),
        wrong.len()
    );
    outcomes
}

impl Outcomes {
    fn check(&self, disk: &SimulatedDisk) {
        assert!(self.wrong.is_empty(), "{}\n{}", self.wrong[0], disk.listing());
    }
}

#[test]
fn a_build_that_loses_power_leaves_all_or_nothing() {
    let disk = SimulatedDisk::default();
    let wanted = fingerprints(40, 1);
    build(&disk, &wanted).unwrap();
    let outcomes = crash_everywhere(&disk, 300, &[wanted]);
    outcomes.check(&disk);
    assert!(outcomes.candidates[0] > 100 && outcomes.none > 100);
    assert!(outcomes.at_end.iter().all(Option::is_some), "a finished build survives\n{}", disk.listing());
}

#[test]
fn a_replaced_store_is_one_or_the_other() {
    let candidates = old_and_new();
    let disk = disk_with(&candidates[0]);
    build(&disk, &candidates[1]).unwrap();
    let outcomes = crash_everywhere(&disk, 300, &candidates);
    outcomes.check(&disk);
    assert!(outcomes.candidates.iter().all(|&count| count > 100) && outcomes.none == 0, "{outcomes:?}");
    assert!(
        outcomes.at_end.iter().all(|&index| index == Some(1)),
        "a finished build survives\n{}",
        disk.listing()
    );
}

/// On a disk that ignores syncs, some stores are lost or damaged. The checks that the other tests use notice this.
#[test]
fn syncs_are_needed() {
    let candidates = old_and_new();
    for kind in [OperationKind::SyncFile, OperationKind::SyncDir] {
        let disk = disk_with(&candidates[0]);
        disk.plan(Fault {
            counted: OperationFilter::Kind(kind),
            n: 0,
            lasting: true,
            failure: Failure::Ignored,
        });
        build(&disk, &candidates[1]).unwrap();
        let outcomes = crash_everywhere(&disk, 50, &candidates);
        let survived = outcomes.at_end.iter().filter(|&&index| index == Some(1)).count();
        assert!(!outcomes.wrong.is_empty() && survived < 40, "{kind:?}: {outcomes:?}");
    }
}

#[test]
fn a_build_that_fails_anywhere_and_then_loses_power() {
    let candidates = old_and_new();
    let whole = disk_with(&candidates[0]);
    build(&whole, &candidates[1]).unwrap();
    let failures = [
        Failure::IoError,
        Failure::NoSpace,
        Failure::Interrupted,
        Failure::DoneButIoError,
        Failure::Short(7),
        Failure::LosePages { percent: 50, seed: 1 },
    ];
    let (mut failed, mut images) = (0, 0);
    for failure in failures {
        for (n, lasting) in (0..whole.count(OperationFilter::All)).flat_map(|n| [(n, false), (n, true)]) {
            let disk = disk_with(&candidates[0]);
            disk.plan(Fault { counted: OperationFilter::All, n, lasting, failure });
            let result = build(&disk, &candidates[1]);
            failed += usize::from(result.is_err());
            for seed in 0..5 {
                let image = disk.crash(disk.operations(), &mut SurvivalChoice::seeded(seed, n));
                let found = stored_candidate(&image, &candidates);
                // If a sync failed, its writes may be durable or not.
                let sound = match &result {
                    Ok(()) => found == Ok(Some(1)),
                    Err(_) => matches!(found, Ok(Some(_))),
                };
                let context =
                    || format!("{failure:?} at {n}, lasting {lasting}, seed {seed}\n{}", disk.listing());
                assert!(sound, "{result:?}, but {found:?} after {}", context());
                images += 1;
            }
        }
    }
    println!("{images} images after failures; {failed} builds failed");
}

/// Two images of a disk share the bytes of durable files in memory, because copying them for tens of thousands of images
/// would be too slow.
#[test]
fn images_share_durable_files() {
    let disk = SimulatedDisk::default();
    build(&disk, &fingerprints(40, 1)).unwrap();
    let mut crashes = disk.replay();
    while crashes.advance().is_some() {}
    let [one, other] = [1, 2].map(|seed| crashes.image(&mut SurvivalChoice::seeded(seed, crashes.done())));
    let paths = one.paths();
    let files: Vec<_> =
        paths.iter().filter(|path| one.content(path).is_some_and(|bytes| !bytes.is_empty())).collect();
    assert!(files.len() > 3, "{files:?}");
    assert!(files.iter().all(|path| one.shares_bytes(&other, path)), "{}", disk.listing());
}
