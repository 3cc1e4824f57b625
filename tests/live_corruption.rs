//! A live store with segments, tombstones and a log, of which any file is damaged, missing, or another file: what it then
//! answers is right, or an error that names the file. Of a log, losing its end is what a crash does, and no error.

mod disk;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::MemoryDisk;
use rayon::prelude::*;
use simstore::fs::Fs;
use simstore::{Codec, Durability, Error, Options, Snapshot, Store};

type Model = BTreeSet<(u64, u64)>;
type Files = BTreeMap<String, Vec<u8>>;

fn fingerprint(i: u64) -> u64 {
    (i / 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (i % 2 * 5)
}

fn options(disk: &MemoryDisk) -> Options {
    Options::default().fs(Arc::new(disk.clone())).compaction(false).codec(Codec::Gap).block_size(256)
}

/// Two segments, the second of which deletes from the first, and a log; with the store after each record of the log.
fn store() -> (Files, Vec<Model>) {
    let disk = MemoryDisk::default();
    let store = Store::<u64>::open(Path::new("store"), options(&disk)).unwrap();
    let mut model = Model::new();
    for i in 0..60 {
        let mut batch = store.batch();
        batch.insert_named(fingerprint(i), i, &format!("page {i}")).unwrap();
        batch.commit(Durability::Os).unwrap();
        model.insert((fingerprint(i), i));
    }
    store.flush().unwrap();
    for i in (0..60).step_by(9) {
        assert!(store.delete(fingerprint(i), i).unwrap());
        model.remove(&(fingerprint(i), i));
    }
    let mut batch = store.batch();
    batch.insert(fingerprint(100), 100);
    (0..9).for_each(|i| batch.mark(&format!("input {i}"), &[i; 5]).unwrap());
    batch.commit(Durability::Os).unwrap();
    model.insert((fingerprint(100), 100));
    store.flush().unwrap();
    let mut models = vec![model.clone()];
    for i in 0..6 {
        if i % 3 == 2 {
            assert!(store.delete(fingerprint(i), i).unwrap());
            model.remove(&(fingerprint(i), i));
        } else {
            store.insert_durable(fingerprint(200 + i), i, Durability::Sync).unwrap();
            model.insert((fingerprint(200 + i), i));
        }
        models.push(model.clone());
    }
    drop(store);
    let paths = disk.paths().into_iter().filter(|path| path != Path::new("store"));
    let content = |path: &PathBuf| disk.map(path).unwrap().as_ref().to_vec();
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    (paths.map(|path| (name(&path), content(&path))).collect(), models)
}

fn disk_of(files: &Files) -> MemoryDisk {
    let disk = MemoryDisk::default();
    disk.create_dir(Path::new("store")).unwrap();
    files.iter().for_each(|(name, bytes)| disk.put(&format!("store/{name}"), bytes));
    disk
}

/// What is in the store, all of it read.
fn read(files: &Files) -> Result<Model, Error> {
    let fs: Arc<dyn Fs> = Arc::new(disk_of(files));
    let snapshot = Snapshot::<u64>::open_on(&fs, Path::new("store"))?;
    let mut problem = None;
    snapshot.verify(|error| {
        problem.get_or_insert(error);
    });
    if let Some(error) = problem {
        return Err(error);
    }
    snapshot.iter().map(|entry| entry.map(|entry| (entry.fingerprint, entry.id.unwrap()))).collect()
}

/// Checks what a store with one file changed says.
fn check(files: &Files, name: &str, models: &[Model], what: &str) {
    let whole = models.last().unwrap();
    match read(files) {
        Ok(found) if name == "LOCK" => assert_eq!(&found, whole, "{name}, {what}"),
        Ok(found) if name.ends_with(".log") => assert!(models.contains(&found), "{name}, {what}"),
        Ok(found) => assert_eq!(&found, whole, "{name}, {what}: not noticed"),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("store/"), "{name}, {what}: {text}");
            assert!(name != "LOCK", "{what}: {text}");
        }
    }
}

#[test]
fn it_is_read_as_it_was() {
    let (files, models) = store();
    assert_eq!(&read(&files).unwrap(), models.last().unwrap());
    for ending in [".table", ".ids", ".names", ".tombstones", ".marks", ".log"] {
        assert!(files.keys().any(|name| name.ends_with(ending)), "{ending}");
    }
}

#[test]
fn every_bit_flipped() {
    let (files, models) = store();
    for (name, bytes) in &files {
        (0..bytes.len() * 8).into_par_iter().for_each(|bit| {
            let mut changed = files.clone();
            changed.get_mut(name).unwrap()[bit / 8] ^= 1 << (bit % 8);
            check(&changed, name, &models, &format!("bit {bit}"));
        });
    }
}

#[test]
fn every_truncation() {
    let (files, models) = store();
    for (name, bytes) in &files {
        (0..bytes.len()).into_par_iter().for_each(|len| {
            let mut changed = files.clone();
            changed.get_mut(name).unwrap().truncate(len);
            check(&changed, name, &models, &format!("cut to {len} bytes"));
            // No crash leaves a log without its header.
            assert!(!name.ends_with(".log") || len >= 40 || read(&changed).is_err(), "{name}, {len}");
        });
    }
}

#[test]
fn missing_and_swapped_files() {
    let (files, models) = store();
    for (name, bytes) in &files {
        let mut changed = files.clone();
        changed.remove(name);
        match read(&changed) {
            Ok(found) if name == "LOCK" => assert_eq!(&found, models.last().unwrap()),
            // Nobody can miss a log after the first, but by what it held: it is as if it had not been written.
            Ok(found) if name.ends_with(".log") => assert!(models.contains(&found), "{name}"),
            Ok(_) => panic!("{name} is missing, and nobody notices"),
            Err(error) => assert!(error.to_string().contains("store"), "{name}: {error}"),
        }
        for (other, other_bytes) in &files {
            if other != name && other != "LOCK" && name != "LOCK" {
                let mut changed = files.clone();
                changed.insert(name.clone(), other_bytes.clone());
                let error = read(&changed).expect_err(&format!("{other} in the place of {name}"));
                assert!(error.to_string().contains("store/"), "{error}");
                changed.insert(other.clone(), bytes.clone());
                read(&changed).expect_err(&format!("{other} and {name} swapped"));
            }
        }
    }
}

/// A log whose synced part is damaged is refused by a writer, too, and left as it is.
#[test]
fn a_damaged_log_is_refused_and_kept() {
    let (files, _) = store();
    let name = files.keys().rfind(|name| name.ends_with(".log")).unwrap().clone();
    let mut changed = files.clone();
    changed.get_mut(&name).unwrap()[60] ^= 1;
    let disk = disk_of(&changed);
    let error = Store::<u64>::open(Path::new("store"), options(&disk)).unwrap_err();
    assert!(matches!(&error, Error::Corrupt { path, .. } if path.ends_with(&name)), "{error}");
    let kept = disk.map(&Path::new("store").join(&name)).unwrap();
    assert_eq!(kept.as_ref(), &changed[&name][..]);
}
