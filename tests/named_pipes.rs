//! Tests of stores in which a named pipe replaces a file. Operations that need the file must refuse the pipe: opening it
//! would wait forever for a process at its other end.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::Command;

use simstore::store::{SalvageOptions, find_damaged_files, salvage};
use simstore::{BuildOptions, Builder, Durability, Snapshot, Store, StoreOptions};

/// Creates a store that has each kind of file: manifest, log, table, ids and others.
fn make(path: &Path) {
    let mut builder = Builder::<u64>::create(path, BuildOptions::default()).unwrap();
    for i in 0..100_u64 {
        builder.insert_named(i * i * i, i, "page").unwrap();
        builder.set_note(i, b"note").unwrap();
    }
    drop(builder.finish().unwrap());
    let store =
        Store::<u64>::open(path, StoreOptions { compaction: false, ..StoreOptions::default() }).unwrap();
    store.delete(8, 2).unwrap();
    let mut transaction = store.transaction();
    transaction.set_metadata("key", b"value").unwrap();
    transaction.commit(Durability::Os).unwrap();
    store.flush().unwrap();
    store.insert(7, 1000).unwrap();
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let sound = folder.path().join("sound");
    make(&sound);
    let mut names: Vec<_> = fs::read_dir(&sound).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    let kinds: std::collections::BTreeSet<_> =
        names.iter().map(|name| Path::new(name).extension().unwrap_or(name).to_owned()).collect();
    assert!(kinds.len() >= 8, "{kinds:?}");
    for (i, name) in names.iter().enumerate() {
        let path = folder.path().join(i.to_string());
        make(&path);
        let pipe = path.join(name);
        fs::remove_file(&pipe).unwrap();
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let is_lock = name == "LOCK";
        let read = Snapshot::<u64>::open(&path).and_then(|store| store.refresh()).map(drop);
        assert_eq!(read.is_ok(), is_lock, "{name:?}");
        let wrote = Store::<u64>::open(&path, StoreOptions::default()).map(drop).unwrap_err().to_string();
        assert!(wrote.contains("a pipe") && wrote.contains(&*name.to_string_lossy()), "{name:?}: {wrote}");
        let mut damaged = 0;
        let checked = find_damaged_files::<u64>(&path, |_| damaged += 1);
        assert_eq!(checked.is_ok() && damaged == 0, is_lock, "{name:?}: {checked:?}");
        let rescued =
            salvage::<u64>(&path, &folder.path().join(format!("{i} new")), &SalvageOptions::default());
        assert!(rescued.is_ok(), "{name:?}: {rescued:?}");
        // A build that replaces the store opens only the lock file.
        let options = BuildOptions { replace: true, ..BuildOptions::default() };
        let replaced = Builder::<u64>::create(&path, options).and_then(Builder::finish);
        assert_eq!(replaced.is_err(), is_lock, "{name:?}");
    }
}
