//! Measures a live store: inserts, queries during inserts, opening, recovery, write amplification. Prints Markdown.
//!
//! `cargo bench --bench live -- 10000000` sets the number of stored fingerprints.
//! `--parts=inserts,durable,if-new,memtable,latency,segments,open,recovery,writes` selects the measurements; without
//! this option, all of these run. With `--fanout=2`, the store merges segments more often, which suits loads that are
//! mostly queries. Stores go to the folder TMPDIR and are removed at the end.

mod inserts;
mod memtable_queries;
mod open;
mod query_latency;
#[path = "../../tests/support/random.rs"]
mod random;
mod write_amplification;

use std::path::Path;

use random::random;
use simstore::{Codec, Store, StoreOptions};

type BoxError = Box<dyn std::error::Error>;
type Result<T> = std::result::Result<T, BoxError>;

/// Increment of SplitMix64's state for each random number.
const SPLITMIX_INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;
const DISTANCE: u32 = 3;

/// Returns the random fingerprint that the benches store with this id.
fn stored_fingerprint(id: u64) -> u64 {
    random(&mut id.wrapping_mul(SPLITMIX_INCREMENT))
}

/// Returns random fingerprint `i` of a sequence that [`load_store`] does not store. Such a fingerprint is near a stored
/// one only by chance.
fn new_fingerprint(i: u64) -> u64 {
    stored_fingerprint(1 << 60 | i)
}

/// Returns the fingerprint with 0 to 3 random bits flipped.
fn flip_bits(fingerprint: u64, state: &mut u64) -> u64 {
    let flips = random(state) % (u64::from(DISTANCE) + 1);
    (0..flips).fold(fingerprint, |x, _| x ^ 1 << (random(state) % 64))
}

/// Creates a store with `count` fingerprints in one segment.
fn load_store(path: &Path, count: u64, options: StoreOptions) -> Result<Store<u64>> {
    let store = Store::open(path, options)?;
    let mut load = store.bulk_load()?;
    (0..count).try_for_each(|id| load.insert(stored_fingerprint(id), id))?;
    load.finish()?;
    Ok(store)
}

fn both_codecs() -> [Codec; 2] {
    [Codec::EliasFano, Codec::FirstDifference]
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(request) = arguments.iter().find_map(|argument| argument.strip_prefix(open::CHILD_ARGUMENT)) {
        return open::open_and_report(request);
    }
    let parts = arguments.iter().find_map(|argument| argument.strip_prefix("--parts="));
    let parts = parts.unwrap_or("inserts,durable,if-new,memtable,latency,segments,open,recovery,writes");
    let fanout = arguments.iter().find_map(|argument| argument.strip_prefix("--fanout="));
    let fanout = fanout.map_or(Ok(StoreOptions::default().fanout), str::parse)?;
    let count: u64 = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(10_000_000);
    println!("{count} random fingerprints, k = {DISTANCE}, with ids");
    for part in parts.split(',') {
        println!();
        match part {
            "inserts" => inserts::measure_buffered(count)?,
            "durable" => inserts::measure_durable()?,
            "if-new" => inserts::measure_if_new(count)?,
            "memtable" => memtable_queries::measure()?,
            "latency" => query_latency::measure_during_inserts(count, fanout)?,
            "segments" => query_latency::measure_segments(count)?,
            "open" => open::measure_open(count)?,
            "recovery" => open::measure_recovery()?,
            "writes" => write_amplification::measure(count, fanout)?,
            _ => return Err(format!("there is no part {part}").into()),
        }
    }
    Ok(())
}
