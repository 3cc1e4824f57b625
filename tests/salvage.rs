//! Tests of salvaging a live store with one damaged or missing file: the new store has the contents of the other files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rayon::prelude::*;
use simstore::store::{SalvageOptions, SalvageReport, find_damaged_files, salvage};
use simstore::{BuildOptions, Builder, Durability, Snapshot, Store, StoreOptions};

use crate::support::random::Random;
use crate::support::seal::StoreFiles;

/// Documents of a store: fingerprint, id, name, and note of each.
type DocumentSet = BTreeSet<(u64, u64, Option<String>, Option<Vec<u8>>)>;

fn name(id: u64) -> String {
    format!("page {id}")
}

/// Writes a store with three segments and two logs. The last two segments are flushed memtables. The store has names, notes,
/// tombstones and metadata.
fn live_store(path: &Path) {
    let fingerprints: Vec<u64> = Random(21).clustered(6000);
    let pair = |i: usize| (fingerprints[i], i as u64);
    let plan = "paper-4".parse().unwrap();
    let options = BuildOptions { plan, block_size: Some(1024), ..BuildOptions::default() };
    let mut builder = Builder::create(path, options).unwrap();
    for (fingerprint, id) in (0..4000).map(pair) {
        builder.insert_named(fingerprint, id, &name(id)).unwrap();
        builder.set_note(id, &id.to_le_bytes()).unwrap();
    }
    builder.finish().unwrap();
    // Commits often, so that a lost record loses few pairs.
    let write = |flush: bool, inserted: std::ops::Range<usize>, deleted: std::ops::Range<usize>| {
        let options = StoreOptions { compaction: false, ..StoreOptions::default() };
        let store = Store::open(path, options).unwrap();
        let mut transaction = store.transaction();
        for (fingerprint, id) in inserted.map(pair) {
            transaction.insert_named(fingerprint, id, &name(id)).unwrap();
            transaction.set_note(id, &id.to_le_bytes()).unwrap();
            if id % 100 == 0 {
                transaction.commit(Durability::Os).unwrap();
                transaction = store.transaction();
            }
        }
        deleted.map(pair).for_each(|(fingerprint, id)| transaction.delete(fingerprint, id));
        transaction.set_metadata("input", &[1, 2, 3]).unwrap();
        transaction.commit(Durability::Sync).unwrap();
        if flush {
            store.flush().unwrap();
        }
    };
    write(true, 4000..5000, 0..200);
    write(true, 5000..5500, 4000..4010);
    write(false, 5500..6000, 0..0);
    write(false, 0..0, 5000..5010);
}

/// Reads the files of a store, except its lock file.
fn files(path: &Path) -> StoreFiles {
    let entries = fs::read_dir(path).unwrap().map(Result::unwrap);
    let files =
        entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()));
    files.filter(|(name, _)| name != "LOCK").collect()
}

fn documents(path: &Path) -> DocumentSet {
    let store = Snapshot::<u64>::open(path).unwrap();
    assert_eq!(store.verify(|error| panic!("{error}")), 0);
    let document = |entry: simstore::Entry<u64>| {
        let id = entry.id.unwrap();
        (entry.fingerprint, id, store.name(id).unwrap(), store.note(id).unwrap())
    };
    store.iter().map(|entry| document(entry.unwrap())).collect()
}

fn fingerprints(documents: &DocumentSet) -> BTreeSet<u64> {
    documents.iter().map(|document| document.0).collect()
}

/// Salvages a store of these files. Returns the report and the contents of the new store.
fn rescue(files: &StoreFiles, options: &SalvageOptions) -> (SalvageReport, DocumentSet) {
    let folder = tempfile::tempdir().unwrap();
    let (store, new) = (folder.path().join("store"), folder.path().join("new"));
    fs::create_dir(&store).unwrap();
    files.iter().for_each(|(name, bytes)| fs::write(store.join(name), bytes).unwrap());
    let salvaged = salvage::<u64>(&store, &new, options).unwrap();
    assert_eq!(&self::files(&store), files, "the damaged store is not written to");
    (salvaged, documents(&new))
}

/// Salvages a store whose file `name` is damaged, or is missing if `missing` is set, and checks the contents of the new
/// store. `intact` has the contents of the undamaged store.
fn check(files: &StoreFiles, name: &str, missing: bool, intact: &DocumentSet) {
    let (salvaged, rescued) = rescue(files, &SalvageOptions::default());
    let findings = &salvaged.issues;
    let context = format!("{name}, missing: {missing}: {findings:?}");
    // A missing log is reported for the next log.
    if missing && !name.ends_with(".log") {
        assert!(findings.iter().any(|finding| finding.path.ends_with(name)), "{context}");
    }
    let kind = name.rsplit('.').next().unwrap();
    if salvaged.is_whole() && kind != "log" {
        // The damaged data does not matter, or other files have the same data.
        assert_eq!(&rescued, intact, "{context}");
        return;
    }
    match kind {
        // The other tables of the segment have the same fingerprints.
        "table" => panic!("{context}"),
        "ids" => assert!(rescued.is_subset(intact) && &rescued != intact, "{context}"),
        "names" | "notes" => assert_eq!(fingerprints(&rescued), fingerprints(intact), "{context}"),
        "tombstones" => assert!(rescued.is_superset(intact) && &rescued != intact, "{context}"),
        "MANIFEST" | "metadata" => assert_eq!(&rescued, intact, "{context}"),
        "log" => {
            let different = rescued.symmetric_difference(intact).count();
            assert!(different <= if missing { 510 } else { 110 }, "{different}: {context}");
            // A missing last log cannot be noticed.
            assert!(different == 0 || !findings.is_empty() || missing, "{context}");
        }
        _ => panic!("{context}"),
    }
    if kind == "ids" {
        let options = SalvageOptions { keep_without_ids: true, ..SalvageOptions::default() };
        let (salvaged, rescued) = rescue(files, &options);
        assert!(salvaged.without_ids > 0, "{context}");
        assert!(fingerprints(&rescued).is_superset(&fingerprints(intact)), "{context}");
    }
}

fn sound() -> (StoreFiles, DocumentSet) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    live_store(&path);
    let files = files(&path);
    for ending in [".table", ".ids", ".names", ".notes", ".tombstones", ".metadata", ".log"] {
        assert!(files.keys().filter(|name| name.ends_with(ending)).count() > 1, "{ending}");
    }
    (files, documents(&path))
}

/// If a log is cut inside its header, readers refuse the store, and salvage reports a loss.
#[test]
fn a_log_without_its_header_is_lost() {
    let (sound, _) = sound();
    // `format-spec/log.md` has the size.
    let header = 56;
    let logs: Vec<&String> = sound.keys().filter(|name| name.ends_with(".log")).collect();
    for name in logs {
        for len in 0..header {
            let mut files = sound.clone();
            files.get_mut(name).unwrap().truncate(len);
            let folder = tempfile::tempdir().unwrap();
            files.iter().for_each(|(name, bytes)| fs::write(folder.path().join(name), bytes).unwrap());
            assert!(Snapshot::<u64>::open(folder.path()).is_err(), "{name}, {len} bytes");
            let (salvaged, _) = rescue(&files, &SalvageOptions::default());
            assert!(!salvaged.is_whole(), "{name}, {len} bytes");
            assert!(salvaged.issues.iter().any(|finding| finding.path.ends_with(name) && finding.is_loss));
        }
    }
}

#[test]
fn each_file_damaged_in_turn() {
    let (sound, intact) = sound();
    // Offsets of changed bytes: in the middle, the header and the footer. A changed version does not count as damage.
    let places = |bytes: &[u8]| [bytes.len() / 2, 9, bytes.len() - 10];
    let cases = sound.iter().flat_map(|(name, bytes)| places(bytes).map(|at| (name, at)));
    let cases: Vec<_> = cases.filter(|&(name, at)| at >= 12 || name.ends_with(".table")).collect();
    cases.par_iter().for_each(|&(name, at)| {
        let mut files = sound.clone();
        files.get_mut(name).unwrap()[at] ^= 0x10;
        check(&files, name, false, &intact);
    });
}

/// If a file is cut off, `find_damaged_files` notices it, and salvage keeps the contents of the other files. Each file
/// is cut at eight lengths. Only a cut of the last log may go unnoticed, because it looks like the end of a log after
/// a crash.
#[test]
fn each_file_cut_in_turn() {
    let (sound, intact) = sound();
    let last_log = sound.keys().rfind(|name| name.ends_with(".log")).unwrap();
    let lengths =
        |bytes: &[u8]| (0..7).map(|i| bytes.len() * i / 7).chain([bytes.len() - 1]).collect::<Vec<_>>();
    let cases: Vec<_> = sound
        .iter()
        .flat_map(|(name, bytes)| lengths(bytes).into_iter().map(move |len| (name, len)))
        .collect();
    cases.par_iter().for_each(|&(name, len)| {
        let context = format!("{name}, {len} bytes");
        let mut files = sound.clone();
        files.get_mut(name).unwrap().truncate(len);
        let folder = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, bytes)| fs::write(folder.path().join(name), bytes).unwrap());
        let mut problems = 0;
        let checked = find_damaged_files::<u64>(folder.path(), |_| problems += 1);
        assert!(name == last_log || checked.is_err() || problems > 0, "{context}: {checked:?}");
        let (salvaged, rescued) = rescue(&files, &SalvageOptions::default());
        if name.ends_with(".log") {
            assert!(name == last_log || !salvaged.is_whole(), "{context}");
            assert!(rescued.symmetric_difference(&intact).count() <= 510, "{context}");
        } else {
            let is_found = salvaged.issues.iter().any(|finding| finding.path.ends_with(name));
            // Salvage reads the blocks of other tables only if the first table is damaged.
            assert!(is_found || name.ends_with(".table"), "{context}: {:?}", salvaged.issues);
            check(&files, name, false, &intact);
        }
    });
}

#[test]
fn each_file_missing_in_turn() {
    let (sound, intact) = sound();
    sound.par_iter().for_each(|(name, _)| {
        let mut files = sound.clone();
        files.remove(name);
        check(&files, name, true, &intact);
    });
}

/// If requested, salvage keeps all fingerprints whose ids are lost, even if they do not fit in the memory limit.
#[test]
fn fingerprints_without_ids_are_kept_whatever_the_memory_is() {
    let folder = tempfile::tempdir().unwrap();
    let (store, new) = (folder.path().join("store"), folder.path().join("new"));
    // Distinct fingerprints, more than fit in the minimum memory.
    let fingerprints = (1..380_000_u128).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
    let fingerprints: BTreeSet<u128> = fingerprints.collect();
    let mut builder = Builder::create(&store, BuildOptions::default()).unwrap();
    fingerprints.iter().zip(0..).try_for_each(|(&fingerprint, id)| builder.insert(fingerprint, id)).unwrap();
    builder.finish().unwrap();
    for name in files(&store).into_keys().filter(|name| name.ends_with("-00.table") || name.ends_with(".ids"))
    {
        fs::remove_file(store.join(name)).unwrap();
    }
    let options =
        SalvageOptions { keep_without_ids: true, memory: Some(16 << 20), ..SalvageOptions::default() };
    let salvaged = salvage::<u128>(&store, &new, &options).unwrap();
    let count = fingerprints.len() as u64;
    assert_eq!((salvaged.without_ids, salvaged.fingerprints), (count, count));
    let kept = Snapshot::<u128>::open(&new).unwrap();
    assert!(kept.iter().map(|entry| entry.unwrap().fingerprint).eq(fingerprints));
    assert!(files(&new).into_keys().all(|name| !name.ends_with(".tmp")));
}

/// If the manifest is lost, and all files with ids, the logs still tell that the store has ids: their documents come back whole.
#[test]
fn logs_tell_that_a_store_has_ids() {
    let (sound, intact) = sound();
    let mut files = sound.clone();
    let has_ids = |name: &str| [".ids", ".names", ".notes"].iter().any(|ending| name.ends_with(ending));
    files.retain(|name, _| name != "MANIFEST" && !has_ids(name));
    let (salvaged, rescued) = rescue(&files, &SalvageOptions::default());
    assert!(salvaged.without_ids > 4000, "{salvaged:?}");
    let logged: BTreeSet<_> = intact.iter().filter(|document| document.1 >= 5500).cloned().collect();
    assert!(logged.len() == 500 && logged.is_subset(&rescued));
}

/// Files of other programs do not decide whether a store without a manifest has ids.
#[test]
fn other_files_do_not_tell_that_a_store_has_ids() {
    let folder = tempfile::tempdir().unwrap();
    let (store, new) = (folder.path().join("store"), folder.path().join("new"));
    let mut builder =
        Builder::create(&store, BuildOptions { ids: false, ..BuildOptions::default() }).unwrap();
    (0..100).for_each(|i: u64| builder.insert(i << 40, 0).unwrap());
    builder.finish().unwrap();
    fs::remove_file(store.join("MANIFEST")).unwrap();
    fs::write(store.join("release.notes"), "of another program").unwrap();
    let salvaged = salvage::<u64>(&store, &new, &SalvageOptions::default()).unwrap();
    assert_eq!((salvaged.fingerprints, salvaged.without_ids), (100, 0), "{salvaged:?}");
    assert!(!Snapshot::<u64>::open(&new).unwrap().keeps_ids());
}
