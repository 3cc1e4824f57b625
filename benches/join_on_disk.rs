//! A join of random fingerprints within a given memory, and in memory: time, memory, bytes moved; prints Markdown.
//!
//! `cargo bench --bench join_on_disk -- COUNT MEMORY_MIB [DISTANCE [memory]]` (default: 10000000 100 3). Files go to the folder of
//! TMPDIR. With `memory` at the end, the join in memory comes after it.

mod memory;
#[path = "../tests/support/random.rs"]
mod random;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use memory::{peak_memory, reset_peak_memory};
use random::random;
use simstore::fs::{Disk, Fs};
use simstore::join::{JoinOnDisk, sort, visit_pairs};
use simstore::spill::{PrefixLocation, SpillLocation};

fn main() {
    let numbers: Vec<u64> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let get = |at: usize, default: u64| numbers.get(at).copied().unwrap_or(default);
    let (count, memory, distance) = (get(0, 10_000_000), get(1, 100) << 20, get(2, 3) as u32);
    println!("| what | seconds | peak memory, MiB | pairs |");
    println!("|---|---|---|---|");
    let pairs = AtomicU64::new(0);
    let mut start = Instant::now();
    let row = |what: &str, start: &mut Instant| {
        let (seconds, peak) = (start.elapsed().as_secs_f64(), peak_memory().unwrap_or(0));
        println!("| {what} | {seconds:.1} | {peak} | {} |", pairs.swap(0, Ordering::Relaxed));
        reset_peak_memory();
        *start = Instant::now();
    };
    let folder = tempfile::tempdir().expect("a folder");
    let fs: Arc<dyn Fs> = Arc::new(Disk::default());
    let place = PrefixLocation::new(&fs, &folder.path().join("join"));
    let parts = JoinOnDisk::<u64>::choose_parts(count, distance, memory).expect("a distance");
    let mut join = JoinOnDisk::create(place.clone(), parts, memory).expect("a join");
    let mut state = 1;
    let mut some = Vec::new();
    for start in (0..count).step_by(1 << 16) {
        some.clear();
        some.extend((start..count.min(start + (1 << 16))).map(|_| random(&mut state)));
        join.push(&some).expect("room on the disk");
    }
    println!("{:?}", join.parts());
    row("written", &mut start);
    let mut join = join.collapse(|_, _| Ok(())).expect("room on the disk");
    row("collapsed", &mut start);
    for table in 0..join.parts().table_count() {
        let visitor = |some: &[_]| {
            pairs.fetch_add(some.len() as u64, Ordering::Relaxed);
            ControlFlow::Continue(())
        };
        join.join(table, visitor).expect("room on the disk");
        row(&format!("table {table}"), &mut start);
    }
    println!("{:?}", place.counters());
    if std::env::args().next_back().is_some_and(|last| last == "memory") {
        drop(join);
        let mut state = 1;
        let mut fingerprints: Vec<u64> = (0..count).map(|_| random(&mut state)).collect();
        start = Instant::now();
        sort(&mut fingerprints);
        fingerprints.dedup();
        visit_pairs(&fingerprints, distance, |some| {
            pairs.fetch_add(some.len() as u64, Ordering::Relaxed);
            ControlFlow::Continue(())
        })
        .expect("distinct");
        row("in memory, sorted and joined", &mut start);
    }
}
