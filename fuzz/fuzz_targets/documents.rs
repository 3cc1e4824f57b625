//! Fuzz target: reads arbitrary bytes as a file of documents, and as a file of fingerprints. The file name has one of the
//! known extensions or an unknown one.

#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use simstore_corpus::{Inputs, fingerprints};
use simstore_io::{ClusterAnnotation, DocumentOptions, DocumentWriter, documents, records};
use simstore_text::Profile;
use tempfile::TempDir;

const EXTENSIONS: [&str; 15] = [
    ".jsonl", ".txt", ".html", ".hex", ".u64", ".u128", ".jsonl.gz", ".tsv.zst", ".unknown", ".csv", ".tsv",
    ".warc", ".jsonl.bz2", ".jsonl.xz", ".parquet",
];
const ENCODINGS: [&str; 5] = ["auto", "gb18030", "big5", "utf-16le", "iso-2022-jp"];

thread_local! {
    static FOLDER: TempDir = tempfile::tempdir().unwrap();
}

fuzz_target!(|data: &[u8]| {
    let Some((&selector, data)) = data.split_first() else { return };
    FOLDER.with(|folder| {
        let path =
            folder.path().join(format!("input{}", EXTENSIONS[usize::from(selector) % EXTENSIONS.len()]));
        fs::write(&path, data).unwrap();
        let paths = [path.clone()];
        let _ = Inputs::new(&paths, DocumentOptions::default()).unwrap().kind();
        let encoding = ENCODINGS[usize::from(selector) / EXTENSIONS.len() % ENCODINGS.len()].parse().unwrap();
        let options = DocumentOptions { max_bytes: 1 << 16, encoding, ..DocumentOptions::default() };
        let profile = Profile::default();
        for document in documents(&paths, &options).take(1000).flatten() {
            // A malformed byte becomes U+FFFD, which is three bytes long.
            assert!(document.text.len() <= 3 << 16);
            profile.fingerprint::<u64>(&document.text);
        }
        let mut writer = DocumentWriter::new(Vec::new());
        for record in records(&paths, &options).take(1000).flatten() {
            // A record that is not JSON cannot hold an annotation.
            let _ = writer.write(&record, Some(&ClusterAnnotation::default()));
        }
        let _ = writer.finish();
        assert!(fingerprints::<u64>(&paths).take(1 << 20).flatten().count() <= data.len() * 1100);
        let _ = fingerprints::<u128>(&paths).take(1 << 20).count();
        fs::remove_file(&path).unwrap();
    });
});
