//! Tests of inputs and of jobs over stores. CONTRIBUTING.md lists the behaviour that each file tests.

mod add;
mod archives;
mod bad_input;
mod build;
mod documents;
mod encodings;
mod files;
mod fingerprints;
mod idf;
mod inputs;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod parquet_strings;
mod support;

use support::compression::{COMPRESSIONS, bzip2, xz, zstd};
use support::folder::TempFolder;
use support::gzip::gzip;
use support::reading::{TWO_LINES, bad_line, ids_and_texts, read};
use support::{Random, kind_of};
