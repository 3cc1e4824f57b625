//! Reading documents from files, and writing them unchanged. CONTRIBUTING.md says which file tests what.

mod limits;
mod support;
mod tables;
mod warc;
mod writer;

use support::Random;
use support::compression::{COMPRESSIONS, zstd};
use support::folder::Folder;
use support::gzip::gzip;
use support::reading::{TWO_LINES, bad_line, ids_and_texts};
