//! Reading documents and fingerprints from files, and writing them. CONTRIBUTING.md says which file tests what.

mod add;
mod archives;
mod bad_input;
mod beyond_memory;
mod build;
mod counter;
mod dedup;
mod dense;
mod dense_stores;
mod documents;
mod encodings;
mod estimate;
mod files;
mod fingerprints;
mod idf;
mod inputs;
mod keep;
mod limits;
mod pair_sample;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod parquet_strings;
mod reasons;
mod similar;
mod similar_beyond_memory;
mod stages;
mod stores;
mod support;
mod tables;
mod warc;
mod writer;

use support::{
    COMPRESSIONS, Folder, Random, TWO_LINES, bad_line, bzip2, gzip, ids_and_texts, kind_of, read, xz, zstd,
};
