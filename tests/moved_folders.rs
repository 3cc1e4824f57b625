//! Tests of store folders that are moved away during a write, while another store takes their place. The writer must not
//! change the other store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use simstore::fs::Fs;
use simstore::store::{SalvageOptions, salvage_on};
use simstore::{BuildOptions, Builder, Error, Snapshot, Store, StoreOptions};

use crate::support::disk::{OperationKind, SimulatedDisk};

const WRITTEN: &str = "written";
const OTHER: &str = "other";
const MOVED: &str = "moved";

/// A function that writes to the store at the path [`WRITTEN`]. When a write is acknowledged, the function appends the
/// fingerprints of the write to its second argument.
type WriterFn = fn(&Arc<dyn Fs>, &mut Vec<u64>) -> Result<(), Error>;

fn fingerprint(i: u64) -> u64 {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn build(fs: &Arc<dyn Fs>, path: &str, replace: bool, range: std::ops::Range<u64>) -> Result<(), Error> {
    let options = BuildOptions { fs: fs.clone(), replace, ..BuildOptions::default() };
    let mut builder = Builder::create(Path::new(path), options)?;
    range.into_iter().try_for_each(|i| builder.insert_named(fingerprint(i), i, "page"))?;
    builder.finish().map(drop)
}

/// A [`WriterFn`] that opens the store for writing, inserts fingerprints, and runs flushes and a merge.
fn live(fs: &Arc<dyn Fs>, kept: &mut Vec<u64>) -> Result<(), Error> {
    let options = StoreOptions { fs: fs.clone(), memtable: 1, compaction: false, ..StoreOptions::default() };
    let store = Store::<u64>::open(Path::new(WRITTEN), options)?;
    for i in 100..106 {
        store.insert(fingerprint(i), i)?;
        kept.push(fingerprint(i));
        store.wait_for_background()?;
    }
    store.compact()
}

/// Each item is the name of a writer, whether its store exists at the start, and the writer.
const WRITERS: [(&str, bool, WriterFn); 5] = [
    ("live, on a new store", false, live),
    ("live, on a built store", true, live),
    ("build", false, |fs, _| build(fs, WRITTEN, false, 0..20)),
    ("build that replaces", true, |fs, _| build(fs, WRITTEN, true, 20..30)),
    ("salvage", false, |fs, _| {
        let salvaged =
            salvage_on::<u64>(fs, Path::new("damaged"), Path::new(WRITTEN), &SalvageOptions::default());
        salvaged.map(drop)
    }),
];

/// Returns the files of a folder: their paths relative to the folder, and their contents.
fn files(disk: &SimulatedDisk, folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = disk.paths().into_iter().filter(|path| path.parent() == Some(Path::new(folder)));
    paths
        .map(|path| (path.strip_prefix(folder).unwrap().to_path_buf(), disk.content(&path).unwrap()))
        .collect()
}

/// Runs a writer, and replaces its store with another one meanwhile. A writer checks again and again that its lock
/// file is in place. Before check number `at`, counted from 0, this function moves the folder of the store away, and
/// another store into its place. `is_built` says whether the store exists at the start.
///
/// Returns the disk, the writer's result, the acknowledged fingerprints, and the number of checks.
fn write(is_built: bool, writer: WriterFn, at: usize) -> (SimulatedDisk, Result<(), Error>, Vec<u64>, usize) {
    let disk = SimulatedDisk::default();
    build(&disk.as_fs(), OTHER, false, 1000..1010).unwrap();
    build(&disk.as_fs(), "damaged", false, 0..20).unwrap();
    if is_built {
        build(&disk.as_fs(), WRITTEN, false, 0..20).unwrap();
    }
    let checks = Arc::new(AtomicUsize::new(0));
    let counted = checks.clone();
    disk.set_hook(move |disk, kind| {
        if kind == OperationKind::IsInPlace
            && counted.fetch_add(1, Ordering::SeqCst) == at
            // Does not read file contents, since another thread may remove a file meanwhile.
            && disk.paths().iter().any(|path| path.parent() == Some(Path::new(WRITTEN)))
        {
            disk.rename(Path::new(WRITTEN), Path::new(MOVED)).unwrap();
            disk.rename(Path::new(OTHER), Path::new(WRITTEN)).unwrap();
        }
    });
    let mut kept = Vec::new();
    let wrote = writer(&disk.as_fs(), &mut kept);
    let checks = checks.load(Ordering::SeqCst);
    (disk, wrote, kept, checks)
}

#[test]
fn a_store_in_the_place_of_one_that_is_written_stays_as_it_is() {
    let before = SimulatedDisk::default();
    build(&before.as_fs(), OTHER, false, 1000..1010).unwrap();
    for (name, is_built, writer) in WRITERS {
        let (_, wrote, _, checks) = write(is_built, writer, usize::MAX);
        wrote.unwrap_or_else(|error| panic!("{name}: {error}"));
        let (mut moves, mut errors) = (0, 0);
        for at in 0..checks {
            // A thread may be between its check and its operation while another one moves the folder: such a run is repeated.
            let mut runs = (0..5).map(|_| write(is_built, writer, at));
            let is_as_it_was = |disk: &SimulatedDisk| files(disk, WRITTEN) == files(&before, OTHER);
            let is_expected = |wrote: &Result<(), Error>| {
                let is_expected_text =
                    |error: String| ["was moved", "already exists"].iter().any(|text| error.contains(text));
                wrote.as_ref().err().is_none_or(|error| is_expected_text(error.to_string()))
            };
            let first = runs.find(|(disk, wrote, ..)| {
                !files(disk, OTHER).is_empty() || is_as_it_was(disk) && is_expected(wrote)
            });
            let (disk, wrote, kept, _) = first.unwrap_or_else(|| write(is_built, writer, at));
            let has_moved = files(&disk, OTHER).is_empty();
            if !has_moved {
                // This check is for the lock of the other store's folder, or the folder does not exist yet.
                continue;
            }
            let at = format!("{name}, check {at} of {checks}");
            moves += 1;
            if let Err(error) = &wrote {
                errors += 1;
                let error = error.to_string();
                let is_expected =
                    ["was moved", "a store already exists"].iter().any(|text| error.contains(text));
                assert!(is_expected, "{at}: {error}");
            }
            assert_eq!(files(&disk, WRITTEN), files(&before, OTHER), "{at}");
            // The moved folder has all acknowledged writes. If the writer succeeded, only the removal of old files
            // was left.
            if wrote.is_ok() || !kept.is_empty() {
                let moved = Snapshot::<u64>::open_on(&disk.as_fs(), Path::new(MOVED)).unwrap();
                for fingerprint in kept {
                    assert!(moved.contains(fingerprint).unwrap(), "{at}");
                }
            }
        }
        assert!(errors > 4 && errors * 4 > moves * 3, "{name}: {errors} errors after {moves} moves");
    }
}

#[test]
fn a_writer_whose_lock_was_removed_writes_nothing_more() {
    let disk = SimulatedDisk::default();
    let fs = disk.as_fs();
    let options = StoreOptions { fs: fs.clone(), memtable: 1, compaction: false, ..StoreOptions::default() };
    let store = Store::<u64>::open(Path::new(WRITTEN), options).unwrap();
    fs.remove(&Path::new(WRITTEN).join("LOCK")).unwrap();
    let before: Vec<PathBuf> = disk.paths();
    let wrote = store.insert(1, 1).and_then(|()| store.wait_for_background()).and_then(|()| store.compact());
    assert!(wrote.unwrap_err().to_string().contains("LOCK file was removed"));
    assert_eq!(disk.paths(), before);
}
