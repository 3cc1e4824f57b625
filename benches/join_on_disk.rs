//! Measures a self-join on disk of random fingerprints: time, peak memory, bytes spilled. Prints Markdown.
//!
//! `cargo bench --bench join_on_disk -- COUNT MEMORY_MIB [DISTANCE [memory]]` (default: 10000000 100 3).
//! `MEMORY_MIB` limits the memory of the join. Files go to the folder TMPDIR. With `memory` as the last argument, a
//! join in memory of the same fingerprints follows.

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
    let number = |index: usize, default: u64| numbers.get(index).copied().unwrap_or(default);
    let (count, memory, distance) = (number(0, 10_000_000), number(1, 100) << 20, number(2, 3) as u32);
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
    let location = PrefixLocation::new(&fs, &folder.path().join("join"));
    let parts = JoinOnDisk::<u64>::choose_parts(count, distance, memory).expect("a distance");
    let mut join = JoinOnDisk::create(location.clone(), parts, memory).expect("a join");
    let mut state = 1;
    let mut batch = Vec::new();
    for start in (0..count).step_by(1 << 16) {
        batch.clear();
        batch.extend((start..count.min(start + (1 << 16))).map(|_| random(&mut state)));
        join.push(&batch).expect("room on the disk");
    }
    println!("{:?}", join.parts());
    row("written", &mut start);
    let mut join = join.collapse(|_, _| Ok(())).expect("room on the disk");
    row("collapsed", &mut start);
    for table in 0..join.parts().table_count() {
        let visitor = |batch: &[_]| {
            pairs.fetch_add(batch.len() as u64, Ordering::Relaxed);
            ControlFlow::Continue(())
        };
        join.join(table, visitor).expect("room on the disk");
        row(&format!("table {table}"), &mut start);
    }
    println!("{:?}", location.counters());
    if std::env::args().next_back().is_some_and(|last| last == "memory") {
        drop(join);
        let mut state = 1;
        let mut fingerprints: Vec<u64> = (0..count).map(|_| random(&mut state)).collect();
        start = Instant::now();
        sort(&mut fingerprints);
        fingerprints.dedup();
        visit_pairs(&fingerprints, distance, |batch| {
            pairs.fetch_add(batch.len() as u64, Ordering::Relaxed);
            ControlFlow::Continue(())
        })
        .expect("distinct");
        row("in memory, sorted and joined", &mut start);
    }
}
