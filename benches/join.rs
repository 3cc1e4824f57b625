//! All pairs of near fingerprints inside one set: time, memory, pairs; prints Markdown.
//!
//! `cargo bench --bench join -- COUNT...` (default: 1000000). Sets: random; random in 24 bits,
//! the others equal; and clustered: groups of 10, each within 3 bits of its first.

#[path = "../tests/support/random.rs"]
mod random;

use std::time::Instant;

use random::random;
use simstore::join::self_join;

/// Forgets the most memory that this process has had.
fn reset_peak_memory() {
    // Where this is not Linux, or not allowed, the peak is that of all rows so far.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The most memory that this process has had, in MiB, where Linux tells it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib / 1024)
}

fn sorted(values: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut fingerprints: Vec<u64> = values.collect();
    fingerprints.sort_unstable();
    fingerprints.dedup();
    fingerprints
}

/// The median of some runs for small sets, one run for large ones.
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
            measure("24 bits differ", &narrow, distance);
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
