//! Tests of a live store in which one file is damaged, missing, or replaced with another. The store has segments,
//! tombstones and a log. Reading it returns the right contents, or an error that names the file. If the end of a log
//! is cut off, as by a crash, reading may also return the contents without the last writes.

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use simstore::fs::Fs;
use simstore::{Codec, Durability, Error, Snapshot, Store, StoreOptions};

use crate::support::disk::{Failure, Fault, OperationFilter, OperationKind, SimulatedDisk};
use crate::support::samples::PairModel;
use crate::support::seal::StoreFiles;

fn fingerprint(i: u64) -> u64 {
    (i / 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (i % 2 * 5)
}

fn options(disk: &SimulatedDisk) -> StoreOptions {
    StoreOptions {
        fs: disk.as_fs(),
        compaction: false,
        codec: Some(Codec::Gap),
        block_size: Some(256),
        ..StoreOptions::default()
    }
}

/// Returns the files of a store with two segments and a log; the second segment has tombstones. Also returns the expected
/// contents before the first record of the log, and after each record.
fn store() -> (StoreFiles, Vec<PairModel<u64>>) {
    let disk = SimulatedDisk::default();
    let store = Store::<u64>::open(Path::new("store"), options(&disk)).unwrap();
    let mut model = PairModel::new();
    for i in 0..60 {
        let mut batch = store.transaction();
        batch.insert_named(fingerprint(i), i, &format!("page {i}")).unwrap();
        batch.set_note(i, &[i as u8; 3]).unwrap();
        batch.commit(Durability::Os).unwrap();
        model.insert((fingerprint(i), i));
    }
    store.flush().unwrap();
    for i in (0..60).step_by(9) {
        assert!(store.delete(fingerprint(i), i).unwrap());
        model.remove(&(fingerprint(i), i));
    }
    let mut batch = store.transaction();
    batch.insert(fingerprint(100), 100);
    (0..9).for_each(|i| batch.set_metadata(&format!("input {i}"), &[i; 5]).unwrap());
    batch.commit(Durability::Os).unwrap();
    model.insert((fingerprint(100), 100));
    store.flush().unwrap();
    let mut models = vec![model.clone()];
    for i in 0..6 {
        if i % 3 == 2 {
            assert!(store.delete(fingerprint(i), i).unwrap());
            model.remove(&(fingerprint(i), i));
        } else {
            let mut batch = store.transaction();
            batch.insert(fingerprint(200 + i), i);
            batch.set_note(i, b"note").unwrap();
            batch.commit(Durability::Sync).unwrap();
            model.insert((fingerprint(200 + i), i));
        }
        models.push(model.clone());
    }
    drop(store);
    (files_of(&disk), models)
}

/// Returns the files of a store that a writer opened after a crash, and the expected contents. The crash left only
/// half of the last record of the log of [`store`]. So this log has a torn tail, and the next log records the length
/// of the part before the torn tail.
fn recovered() -> (StoreFiles, PairModel<u64>) {
    let (mut files, models) = store();
    let log = files.iter_mut().rfind(|(name, _)| name.ends_with(".log")).unwrap().1;
    let (end_record, last) = (32, 64);
    log.truncate(log.len() - end_record - last / 2);
    let disk = disk_of(&files);
    // Makes the open fail after it created the new log, so that the torn log stays as it is.
    let counted = OperationFilter::Kind(OperationKind::SyncDir);
    disk.plan(Fault { counted, n: disk.count(counted) + 1, lasting: true, failure: Failure::IoError });
    drop(Store::<u64>::open(Path::new("store"), options(&disk)));
    (files_of(&disk), models[models.len() - 2].clone())
}

fn files_of(disk: &SimulatedDisk) -> StoreFiles {
    let paths = disk.paths().into_iter().filter(|path| path != Path::new("store"));
    let content = |path: &PathBuf| disk.content(path).unwrap();
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    paths.map(|path| (name(&path), content(&path))).collect()
}

fn disk_of(files: &StoreFiles) -> SimulatedDisk {
    let disk = SimulatedDisk::default();
    disk.create_dir(Path::new("store")).unwrap();
    files.iter().for_each(|(name, bytes)| disk.write_file(&format!("store/{name}"), bytes));
    disk
}

/// Opens and verifies a store of these files. Returns its contents, or the first error.
fn read(files: &StoreFiles) -> Result<PairModel<u64>, Error> {
    let snapshot = Snapshot::<u64>::open_on(&disk_of(files).as_fs(), Path::new("store"))?;
    let mut problem = None;
    snapshot.verify(|error| {
        problem.get_or_insert(error);
    });
    if let Some(error) = problem {
        return Err(error);
    }
    snapshot.iter().map(|entry| entry.map(|entry| (entry.fingerprint, entry.id.unwrap()))).collect()
}

/// Reads a store whose file `name` was changed as `context` describes. Asserts that reading fails with an error that names
/// a file of the store, or that the contents are the last of `models`. If `context` starts with "cut", the contents may be
/// any of `models`.
fn check(files: &StoreFiles, name: &str, models: &[PairModel<u64>], context: &str) {
    let whole = models.last().unwrap();
    match read(files) {
        Ok(found) if name == "LOCK" => assert_eq!(&found, whole, "{name}, {context}"),
        Ok(found) if context.starts_with("cut") => assert!(models.contains(&found), "{name}, {context}"),
        // Some bits of other files have no meaning. In a closed log, every bit is checked.
        Ok(found) => assert!(&found == whole && !name.ends_with(".log"), "{name}, {context}: not noticed"),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("store/"), "{name}, {context}: {text}");
            assert!(name != "LOCK", "{context}: {text}");
        }
    }
}

#[test]
fn it_is_read_as_it_was() {
    let (files, models) = store();
    assert_eq!(&read(&files).unwrap(), models.last().unwrap());
    for ending in [".table", ".ids", ".names", ".notes", ".tombstones", ".metadata", ".log"] {
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
fn every_bit_flipped_of_logs_after_a_crash() {
    let (files, model) = recovered();
    let logs: Vec<_> = files.iter().filter(|(name, _)| name.ends_with(".log")).collect();
    let [(first, torn), (second, header)] = logs[..] else { panic!("{} logs", logs.len()) };
    assert_eq!((&read(&files).unwrap(), header.len()), (&model, 56));
    let sound = torn.len() - 32;
    for (name, bytes) in [(first, torn), (second, header)] {
        for bit in 0..bytes.len() * 8 {
            let mut changed = files.clone();
            changed.get_mut(name).unwrap()[bit / 8] ^= 1 << (bit % 8);
            match read(&changed) {
                Ok(found) => {
                    assert!(found == model && name == first && bit / 8 >= sound, "{name}, bit {bit}");
                }
                Err(error) => assert!(error.to_string().contains(name), "{name}, bit {bit}: {error}"),
            }
        }
    }
    for len in 0..sound {
        let mut changed = files.clone();
        changed.get_mut(first).unwrap().truncate(len);
        assert!(read(&changed).is_err(), "{first}, cut to {len} bytes");
    }
    let mut changed = files.clone();
    changed.remove(first);
    assert!(read(&changed).is_err(), "{first} is missing");
}

/// If a log has a torn tail, and no record says how many bytes of the log were synced, reads ignore the torn tail, and
/// `verify` reports it.
#[test]
fn a_torn_tail_that_may_be_damage() {
    let (files, models) = store();
    let name = files.keys().rfind(|name| name.ends_with(".log")).unwrap().clone();
    let end_record = files[&name].len() - 32;
    for (at, len) in [(end_record + 9, end_record + 32), (end_record - 9, end_record)] {
        let mut changed = files.clone();
        let log = changed.get_mut(&name).unwrap();
        log.truncate(len);
        log[at] ^= 1;
        let disk = disk_of(&changed);
        let snapshot = Snapshot::<u64>::open_on(&disk.as_fs(), Path::new("store")).unwrap();
        let mut problems = Vec::new();
        snapshot.verify(|error| problems.push(error));
        assert!(
            matches!(&problems[..], [Error::TornTail { path, .. }] if path.ends_with(&name)),
            "{problems:?}"
        );
        let store = Store::<u64>::open(Path::new("store"), options(&disk)).unwrap();
        assert_eq!(store.torn_tail().unwrap().to_string(), problems[0].to_string());
        drop(store);
        let found = read(&files_of(&disk)).unwrap();
        assert_eq!(found, models[models.len() - if at > end_record { 1 } else { 2 }]);
        assert!(Store::<u64>::open(Path::new("store"), options(&disk)).unwrap().torn_tail().is_none());
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
            // A log without its whole header is always damage, since no crash leaves one.
            assert!(!name.ends_with(".log") || len >= 56 || read(&changed).is_err(), "{name}, {len}");
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

/// If a log is damaged in its synced part, opening the store for writing fails and does not change the log.
#[test]
fn a_damaged_log_is_refused_and_kept() {
    let (files, _) = store();
    let name = files.keys().rfind(|name| name.ends_with(".log")).unwrap().clone();
    let mut changed = files.clone();
    changed.get_mut(&name).unwrap()[60] ^= 1;
    let disk = disk_of(&changed);
    let error = Store::<u64>::open(Path::new("store"), options(&disk)).unwrap_err();
    assert!(matches!(&error, Error::Corrupt { path, .. } if path.ends_with(&name)), "{error}");
    let kept = disk.content(&Path::new("store").join(&name)).unwrap();
    assert_eq!(kept, changed[&name]);
}
