//! A store that is being written to: inserts, queries meanwhile, opening, recovery, what is written; prints Markdown.
//!
//! `cargo bench --bench live -- 10000000` takes the number of fingerprints that are stored;
//! `--parts=inserts,durable,if-new,memtable,latency,segments,open,recovery,writes` some parts of it. Stores go to the
//! folder that TMPDIR names, and are removed. `--fanout=2` merges as is best where queries are the load.

mod inserts;
mod meanwhile;
mod opening;
#[path = "../../tests/support/random.rs"]
mod random;
mod recent;
mod writes;

use std::path::Path;

use random::random;
use simstore::{Codec, Store, StoreOptions};

type Error = Box<dyn std::error::Error>;
type Result<T> = std::result::Result<T, Error>;

/// What SplitMix64 adds to its state for each number.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
const DISTANCE: u32 = 3;

/// The stored fingerprint of an id.
fn stored(id: u64) -> u64 {
    random(&mut id.wrapping_mul(STEP))
}

/// A fingerprint that is not stored, and, but by chance, none near it.
fn new(i: u64) -> u64 {
    stored(1 << 60 | i)
}

/// With 0 to 3 bits flipped.
fn near(fingerprint: u64, state: &mut u64) -> u64 {
    let flips = random(state) % (u64::from(DISTANCE) + 1);
    (0..flips).fold(fingerprint, |x, _| x ^ 1 << (random(state) % 64))
}

/// A store of so many fingerprints in one segment.
fn loaded(path: &Path, count: u64, options: StoreOptions) -> Result<Store<u64>> {
    let store = Store::open(path, options)?;
    let mut load = store.load()?;
    (0..count).try_for_each(|id| load.insert(stored(id), id))?;
    load.finish()?;
    Ok(store)
}

fn both_codecs() -> [Codec; 2] {
    [Codec::EliasFano, Codec::FirstDifference]
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(what) = arguments.iter().find_map(|argument| argument.strip_prefix(opening::ARGUMENT)) {
        return opening::open_here(what);
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
            "inserts" => inserts::plain(count)?,
            "durable" => inserts::durable()?,
            "if-new" => inserts::if_new(count)?,
            "memtable" => recent::queries()?,
            "latency" => meanwhile::latency(count, fanout)?,
            "segments" => meanwhile::segments(count)?,
            "open" => opening::open(count)?,
            "recovery" => opening::recovery()?,
            "writes" => writes::amplification(count, fanout)?,
            _ => return Err(format!("there is no part {part}").into()),
        }
    }
    Ok(())
}
