//! Measures time and memory of self-joins: all pairs of near fingerprints in one set. Prints Markdown.
//!
//! `cargo bench --bench join -- COUNT...` (default: 1000000) measures four kinds of sets. Random: all bits are random.
//! Narrow: 22 bits are random, all other bits are equal. Half narrow: half of the fingerprints are random, the others are
//! random in 24 bits and equal in all other bits. Clustered: groups of 10 fingerprints, each within 3 bits of the centre of
//! its group.

mod memory;
#[path = "../tests/support/random.rs"]
mod random;

use std::time::Instant;

use memory::{peak_memory, reset_peak_memory};
use random::random;
use simstore::join::self_join;

/// Returns the distinct values in ascending order.
fn sorted(values: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut fingerprints: Vec<u64> = values.collect();
    fingerprints.sort_unstable();
    fingerprints.dedup();
    fingerprints
}

/// Measures a self-join, and prints a row of figures. The time is the median of five runs, or of one run if the set or the
/// distance is large.
fn measure(name: &str, fingerprints: &[u64], distance: u32) {
    reset_peak_memory();
    let runs = if fingerprints.len() <= 2_000_000 && distance < 8 { 5 } else { 1 };
    let mut pairs = 0;
    let mut times: Vec<f64> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            pairs = self_join(fingerprints, distance).expect("sorted").len();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let seconds = times[runs / 2];
    let rate = fingerprints.len() as f64 / seconds / 1e6;
    let peak = peak_memory().unwrap_or(0);
    println!(
        "| {name} | {} | {distance} | {seconds:.3} | {rate:.2} | {peak} | {pairs} |",
        fingerprints.len()
    );
}

fn main() {
    let counts: Vec<u64> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    println!("| set | n | k | seconds | million fingerprints/s | peak memory, MiB | pairs |");
    println!("|---|---|---|---|---|---|---|");
    for count in if counts.is_empty() { vec![1_000_000] } else { counts } {
        let mut state = 1;
        let fingerprints = sorted((0..count).map(|_| random(&mut state)));
        measure("random", &fingerprints, 3);
        if count > 4_000_000 {
            continue;
        }
        for distance in [1, 6, 8, 10] {
            measure("random", &fingerprints, distance);
        }
        let narrow = sorted((0..count).map(|_| random(&mut state) & 0x0f03_0303_0707_0707 | 0x1000));
        assert!(narrow.iter().all(|value| value & !0x0f03_0303_0707_1707 == 0));
        for distance in [1, 2] {
            measure("22 bits differ", &narrow, distance);
        }
        let half = sorted((0..count).map(|i| {
            let value = random(&mut state);
            if i % 2 == 0 { value } else { value >> 40 << 8 | 0x5a5a_5a5a_0000_005a }
        }));
        measure("half in 24 bits", &half, 1);
        let clustered = sorted((0..count).scan(0, |centre, i| {
            if i % 10 == 0 {
                *centre = random(&mut state);
            }
            Some((0..i % 4).fold(*centre, |value, _| value ^ 1 << (random(&mut state) % 64)))
        }));
        measure("clustered", &clustered, 3);
    }
}
