//! Tests of the command line through its binary. CONTRIBUTING.md lists the subject of each file.

mod add;
#[cfg(unix)]
mod attacks;
mod build;
mod compare;
mod dedup;
mod dedup_again;
mod dedup_choices;
mod dedup_ids;
mod dedup_similar;
mod dedup_stores;
mod escapes;
mod evaluate;
mod examples;
mod fingerprint;
mod folders;
mod inputs;
mod killed;
mod live;
mod malformed;
#[cfg(target_os = "linux")]
mod memory;
mod names;
mod outputs;
mod pages;
mod pair_sample;
mod pipes;
mod profile;
mod query;
mod questions;
mod quotes;
mod reference;
mod runs;
mod salvage;
#[cfg(unix)]
mod serve;
#[cfg(target_os = "linux")]
mod serve_load;
mod similar;
mod store;
mod support;
#[cfg(unix)]
mod threads;

use support::{CommandOutput, Random, TestFolder, fields, hex_lines, sample};
