//! Documents and fingerprints from any bytes, by every ending of a name.

#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use simstore::corpus::{DocumentOptions, InputKind, documents, fingerprints};
use simstore::text::Profile;
use tempfile::TempDir;

const ENDINGS: [&str; 9] =
    [".jsonl", ".txt", ".html", ".hex", ".u64", ".u128", ".jsonl.gz", ".tsv.zst", ".unknown"];

thread_local! {
    static FOLDER: TempDir = tempfile::tempdir().unwrap();
}

fuzz_target!(|data: &[u8]| {
    let Some((&selector, data)) = data.split_first() else { return };
    FOLDER.with(|folder| {
        let path = folder.path().join(format!("input{}", ENDINGS[usize::from(selector) % ENDINGS.len()]));
        fs::write(&path, data).unwrap();
        let paths = [path.clone()];
        let _ = InputKind::detect(&path);
        let options = DocumentOptions { max_bytes: 1 << 16, ..DocumentOptions::default() };
        let profile = Profile::default();
        for document in documents(&paths, &options).take(1000).flatten() {
            assert!(document.text.len() <= 1 << 16);
            profile.fingerprint::<u64>(&document.text);
        }
        assert!(fingerprints::<u64>(&paths).take(1 << 20).flatten().count() <= data.len() * 1100);
        let _ = fingerprints::<u128>(&paths).take(1 << 20).count();
        fs::remove_file(&path).unwrap();
    });
});
