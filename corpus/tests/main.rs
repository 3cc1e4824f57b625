//! Reading documents with their fingerprints, and jobs over stores. CONTRIBUTING.md says which file tests what.

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
use support::folder::Folder;
use support::gzip::gzip;
use support::reading::{TWO_LINES, bad_line, ids_and_texts, read};
use support::{Random, kind_of};
