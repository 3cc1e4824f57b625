//! Reading documents and fingerprints from files.

mod archives;
mod bad_input;
mod documents;
mod encodings;
mod files;
mod fingerprints;
#[cfg(feature = "parquet")]
mod parquet;
mod tables;
mod warc;
mod writer;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use simstore::{Error, Result};
use simstore_corpus::{Document, DocumentOptions, documents};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 6);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Compresses bytes.
type Compress = fn(&[u8]) -> Vec<u8>;

const COMPRESSIONS: [(&str, Compress); 4] = [(".gz", gzip), (".zst", zstd), (".bz2", bzip2), (".xz", xz)];

/// Pseudo-random numbers, the same every time (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

fn read(path: &Path) -> Vec<Result<Document>> {
    documents(&[path.to_path_buf()], &DocumentOptions::default()).collect()
}

fn ids_and_texts(path: &Path) -> Vec<(String, String)> {
    read(path).into_iter().map(|document| document.unwrap()).map(|d| (d.id.to_string(), d.text)).collect()
}

fn bad_line<T>(result: &Result<T>) -> Option<u64> {
    match result {
        Err(Error::BadInput { line, .. }) => Some(*line),
        _ => None,
    }
}

const TWO_LINES: &str = "{\"id\": 1, \"text\": \"one\"}\n{\"id\": \"b\", \"text\": \"two\"}\n";
