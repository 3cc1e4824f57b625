//! What several tests need: a folder, compression, what is read of a file.

pub(crate) mod given;
#[path = "../../../tests/support/random.rs"]
mod random;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use simstore::{Error, Result};
use simstore_corpus::{Document, DocumentOptions, InputKind, Inputs, documents};

pub(crate) use self::random::Random;

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

pub(crate) fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 6);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Compresses bytes.
pub(crate) type Compress = fn(&[u8]) -> Vec<u8>;

pub(crate) const COMPRESSIONS: [(&str, Compress); 4] =
    [(".gz", gzip), (".zst", zstd), (".bz2", bzip2), (".xz", xz)];

pub(crate) struct Folder(pub(crate) tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

pub(crate) fn read(path: &Path) -> Vec<Result<Document>> {
    documents(&[path.to_path_buf()], &DocumentOptions::default()).collect()
}

pub(crate) fn ids_and_texts(path: &Path) -> Vec<(String, String)> {
    read(path).into_iter().map(|document| document.unwrap()).map(|d| (d.id.to_string(), d.text)).collect()
}

/// What a path holds, with default options.
pub(crate) fn kind_of(path: &Path) -> Result<InputKind> {
    Inputs::new(&[path.to_path_buf()], DocumentOptions::default())?.kind()
}

pub(crate) fn bad_line<T>(result: &Result<T>) -> Option<u64> {
    match result {
        Err(Error::BadInput { line, .. }) => Some(*line),
        _ => None,
    }
}

pub(crate) const TWO_LINES: &str = "{\"id\": 1, \"text\": \"one\"}\n{\"id\": \"b\", \"text\": \"two\"}\n";
