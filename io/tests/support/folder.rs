//! A temporary folder for the files of a test.

use std::fs;
use std::path::PathBuf;

pub(crate) struct TempFolder(pub(crate) tempfile::TempDir);

impl TempFolder {
    pub(crate) fn new() -> TempFolder {
        TempFolder(tempfile::tempdir().unwrap())
    }

    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}
