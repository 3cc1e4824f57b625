//! Measures size, decoding time and look-up time of one table, for several codecs and block sizes. Prints Markdown.
//!
//! `cargo bench --bench curve -- 20 24 27 FILE.u64` measures several sets. A number n selects 2^n random fingerprints
//! (default: 20). A file has little-endian 64-bit fingerprints.

#[path = "../tests/support/random.rs"]
mod random;

use std::hint::black_box;
use std::time::Instant;

use random::random;
use simstore::plan::Plan;
use simstore::plan::min_bits_per_fingerprint;
use simstore::raw::{Bytes, Table};
use simstore::{Codec, Fingerprint};

/// Returns the median time of five runs, in nanoseconds per item, for `count` items in each run.
fn median_nanoseconds(count: usize, mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_nanos() as f64 / count as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[2]
}

/// Measures a table with this codec and block size, and prints a row of figures. The fingerprints are distinct and
/// ascending.
fn measure(fingerprints: &[u64], codec: Codec, block_size: u32) {
    let plan = Plan::<u64>::named("probe-2", 3).expect("a plan of the catalogue");
    let bytes = Table::encode(fingerprints, &plan.tables()[0], codec, Some(block_size)).expect("sorted");
    let size = bytes.len() as f64 * 8.0 / fingerprints.len() as f64;
    let table = Table::<u64>::open("table".as_ref(), Bytes::from(bytes)).expect("just written");
    let memory = table.memory() as f64 / fingerprints.len() as f64;

    let mut decoded = Vec::new();
    let decode = median_nanoseconds(fingerprints.len(), || {
        for block in 0..table.blocks() {
            decoded.clear();
            table.decode_block(block, &mut decoded).expect("sound");
            black_box(&decoded);
        }
    });
    // Half are near stored fingerprints. Random queries alone would miss the dense regions of a real set.
    let mut state = 7;
    let stored = |state: &mut u64| fingerprints[(random(state) % fingerprints.len() as u64) as usize];
    let queries: Vec<u64> = (0..100_000)
        .map(|i| match i % 2 {
            0 => random(&mut state),
            _ => stored(&mut state) ^ 1 << (random(&mut state) % 64),
        })
        .collect();
    let mut sum = 0;
    let lookup = median_nanoseconds(queries.len(), || {
        for query in &queries {
            let low = query & u64::prefix_mask(32);
            table.visit(low, low | u64::suffix_mask(32), |_, _, value| sum ^= value).expect("sound");
        }
    });
    let probe = median_nanoseconds(10_000, || {
        for &query in &queries[..10_000] {
            table.probe(query, 3, |_| sum += 1).expect("sound");
        }
    });
    black_box(sum);
    let default = if block_size == codec.default_block_size(64) { " (default)" } else { "" };
    println!(
        "| {codec} | {block_size}{default} | {size:.2} | {decode:.2} | {lookup:.0} | {probe:.0} | {memory:.3} |"
    );
}

fn print_table(name: &str, mut fingerprints: Vec<u64>) {
    fingerprints.sort_unstable();
    fingerprints.dedup();
    let floor = min_bits_per_fingerprint(64, fingerprints.len() as u64);
    println!("\n{name}, floor {floor:.2} bits\n");
    println!(
        "| codec | block, bytes | bits each, whole file | decode, ns each | look-up of a 32-bit prefix, ns \
         | probe with one flip, ns | memory besides the map, bytes each |"
    );
    println!("|---|---|---|---|---|---|---|");
    for codec in Codec::ALL {
        for block_size in [256, 512, 1024, 2048, 4096, 8192, 16384] {
            measure(&fingerprints, codec, block_size);
        }
    }
}

fn main() -> std::io::Result<()> {
    // `cargo bench` adds the flag `--bench`.
    let arguments = || std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    if arguments().next().is_none() {
        print_table("n = 2^20", random_fingerprints(20));
    }
    for argument in arguments() {
        match argument.parse() {
            Ok(log) => print_table(&format!("n = 2^{log}"), random_fingerprints(log)),
            Err(_) => {
                let bytes = std::fs::read(&argument)?;
                let fingerprints: Vec<u64> = bytes.chunks_exact(8).map(u64::read_le).collect();
                print_table(&format!("{argument}, {} in all", fingerprints.len()), fingerprints);
            }
        }
    }
    Ok(())
}

fn random_fingerprints(log: u32) -> Vec<u64> {
    let mut state = 1;
    (0..1_usize << log).map(|_| random(&mut state)).collect()
}
