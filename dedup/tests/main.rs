//! Tests of deduplication as a library. CONTRIBUTING.md says which file tests what.

mod beyond_memory;
mod counter;
mod dedup;
mod dense;
mod dense_stores;
mod estimate;
mod keep;
mod pair_sample;
mod reasons;
mod report_page;
mod similar;
mod similar_beyond_memory;
mod stages;
mod stores;
mod support;

use support::Random;
use support::folder::TempFolder;
use support::gzip::gzip;
