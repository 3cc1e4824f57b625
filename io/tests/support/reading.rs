//! Reads the documents of one file, and examines errors.

use std::path::Path;

use simstore::{Error, Result};
use simstore_io::{Document, DocumentOptions, documents};

pub(crate) const TWO_LINES: &str = "{\"id\": 1, \"text\": \"one\"}\n{\"id\": \"b\", \"text\": \"two\"}\n";

pub(crate) fn read(path: &Path) -> Vec<Result<Document>> {
    documents(&[path.to_path_buf()], &DocumentOptions::default()).collect()
}

pub(crate) fn ids_and_texts(path: &Path) -> Vec<(String, String)> {
    read(path).into_iter().map(|document| document.unwrap()).map(|d| (d.id.to_string(), d.text)).collect()
}

/// Returns the line of an [`Error::BadInput`]; `None` for all other results.
pub(crate) fn bad_line<T>(result: &Result<T>) -> Option<u64> {
    match result {
        Err(Error::BadInput { line, .. }) => Some(*line),
        _ => None,
    }
}
