//! Fuzz target: replaces one file of a store (ids, names, notes or manifest) by arbitrary bytes with valid magic, version
//! and checksums, and reads the store.

#![no_main]

use std::fs;
use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use simstore::{BuildOptions, Builder, PlanChoice, Snapshot};
use tempfile::TempDir;

#[path = "../../tests/support/seal.rs"]
mod seal;

const NAMES: [(&str, &[u8; 8]); 4] = [
    ("000001.ids", b"simst-id"),
    ("000001.names", b"simnames"),
    ("000001.notes", b"simnotes"),
    ("MANIFEST", b"simstore"),
];

thread_local! {
    static SOUND: (TempDir, PathBuf, seal::StoreFiles) = {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let options = BuildOptions {
            plan: PlanChoice::Named("probe-2".to_string()),
            block_size: Some(256),
            ..BuildOptions::default()
        };
        let mut builder = Builder::<u64>::create(&path, options).unwrap();
        for i in 0..200_u64 {
            let fingerprint = (i / 2).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            builder.insert_named(fingerprint, 3 * i, &format!("document {i}")).unwrap();
            builder.set_note(3 * i, &i.to_le_bytes()).unwrap();
        }
        builder.finish().unwrap();
        let mut files = seal::StoreFiles::new();
        for entry in fs::read_dir(&path).unwrap().map(|entry| entry.unwrap()) {
            files.insert(entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap());
        }
        files.remove("LOCK");
        (folder, path, files)
    };
}

fuzz_target!(|data: &[u8]| {
    let Some((&selector, data)) = data.split_first() else { return };
    if data.len() < 20 {
        return;
    }
    let (name, magic) = NAMES[usize::from(selector) % NAMES.len()];
    let mut bytes = data.to_vec();
    let end = bytes.len() - 8;
    bytes[..8].copy_from_slice(magic);
    bytes[end..].copy_from_slice(magic);
    SOUND.with(|(_, path, sound)| {
        let mut files = sound.clone();
        bytes[8..12].copy_from_slice(&sound[name][8..12]);
        files.insert(name.to_string(), bytes);
        seal::seal_store(&mut files);
        fs::write(path.join(name), &files[name]).unwrap();
        fs::write(path.join("MANIFEST"), &files["MANIFEST"]).unwrap();
        if let Ok(store) = Snapshot::<u64>::open(path) {
            store.verify(|_| ());
            // Upper bound: one id for each bit of the id file.
            assert!(store.iter().count() <= 200 + files["000001.ids"].len() * 8);
            for id in [0, 1, 3, 300, 597, 598, u64::MAX] {
                let _ = (store.name(id), store.note(id));
            }
            for i in (0..100_u64).step_by(9) {
                let _ = store.query(i.wrapping_mul(0x9e37_79b9_7f4a_7c15), store.distance());
            }
            store.stats();
        }
        for name in [name, "MANIFEST"] {
            fs::write(path.join(name), &sound[name]).unwrap();
        }
    });
});
