//! Tests of reading documents from files, and of writing them unchanged. CONTRIBUTING.md lists the subject of
//! each file.

mod limits;
mod support;
mod tables;
mod warc;
mod writer;

use support::Random;
use support::compression::{COMPRESSIONS, zstd};
use support::folder::TempFolder;
use support::gzip::gzip;
use support::reading::{TWO_LINES, bad_line, ids_and_texts};
