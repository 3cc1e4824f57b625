//! Code shared by several tests.

#[path = "../../../io/tests/support/compression.rs"]
pub(crate) mod compression;
#[path = "../../../io/tests/support/folder.rs"]
pub(crate) mod folder;
#[path = "../../../io/tests/support/gzip.rs"]
pub(crate) mod gzip;
#[path = "../../../tests/support/random.rs"]
mod random;
#[path = "../../../io/tests/support/reading.rs"]
pub(crate) mod reading;

use std::path::Path;

use simstore::Result;
use simstore_corpus::{InputKind, Inputs};
use simstore_io::DocumentOptions;

pub(crate) use self::random::Random;

/// Returns the kind of records in a file, with default options.
pub(crate) fn kind_of(path: &Path) -> Result<InputKind> {
    Inputs::new(&[path.to_path_buf()], DocumentOptions::default())?.kind()
}
