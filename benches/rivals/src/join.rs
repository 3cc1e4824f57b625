//! Comparison of self-joins: all near pairs of one set.

use std::time::Instant;

use all_pairs_hamming::ChunkedJoiner;
use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::child::{self, Request, Response};
use crate::data::{FingerprintSource, flip_bits};
use crate::random::random;
use crate::{markdown_table, memory};

/// One in this many fingerprints is a near copy of an earlier one, so that the set has near pairs.
const COPY_INTERVAL: usize = 10;
/// Seed of the random numbers that choose fingerprints and flip bits to make near copies of them.
const COPY_SEED: u64 = 7;

/// Implementation of the self-join: a library with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Joiner {
    /// The crate all-pairs-hamming with one chunk of 64 bits.
    OneChunk,
    /// The crate all-pairs-hamming with two chunks of 32 bits.
    TwoChunks,
    /// `simstore::join::self_join` with this number of threads; 0 is one thread per core.
    Simstore { threads: usize },
}

/// Request to measure one self-join.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct JoinJob {
    joiner: Joiner,
    source: FingerprintSource,
    count: usize,
    distance: u32,
}

/// Measurements of one self-join.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct JoinRow {
    threads: usize,
    seconds: f64,
    peak_bytes: u64,
    pairs: usize,
}

/// Measures the self-join of each library in a child process, for one number of fingerprints and one distance. Prints a
/// table.
pub(crate) fn compare_joiners(source: &FingerprintSource, count: usize, distance: u32) -> Result<()> {
    println!(
        "### Self-join: {} fingerprints ({source}), k = {distance}\n",
        markdown_table::format_grouped(count as f64)
    );
    println!(
        "One in {COPY_INTERVAL} is a copy of another with 1 to {distance} bits flipped; sorted, which is not timed.\n"
    );
    let columns =
        ["what", "threads", "seconds", "million fingerprints/s", "peak memory, bytes each", "pairs found"];
    println!("{}", markdown_table::header(&columns));
    for (name, joiner) in [
        ("all-pairs-hamming, 1 chunk", Joiner::OneChunk),
        ("all-pairs-hamming, 2 chunks", Joiner::TwoChunks),
        ("simstore::join::self_join", Joiner::Simstore { threads: 1 }),
        ("simstore::join::self_join", Joiner::Simstore { threads: 0 }),
    ] {
        let job = JoinJob { joiner, source: source.clone(), count, distance };
        match child::run_in_child(&Request::Join(job)) {
            Ok(Response::Join(row)) => println!(
                "{}",
                markdown_table::row(&[
                    name.to_string(),
                    row.threads.to_string(),
                    format!("{:.2}", row.seconds),
                    markdown_table::format_short(count as f64 / row.seconds / 1e6),
                    markdown_table::format_short(row.peak_bytes as f64 / count as f64),
                    markdown_table::format_grouped(row.pairs as f64),
                ])
            ),
            Ok(Response::Query(_)) => bail!("no query was asked for"),
            Err(reason) => println!("{}", markdown_table::failure_row(name, &reason, columns.len())),
        }
    }
    println!();
    Ok(())
}

/// Generates the fingerprints, and measures one self-join of them. The peak memory includes the fingerprints.
pub(crate) fn run(job: &JoinJob) -> Result<JoinRow> {
    let threads = match job.joiner {
        Joiner::Simstore { threads } => threads,
        _ => 1,
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    memory::reset_peak()?;
    let before = memory::peak_bytes()?;
    let fingerprints = fingerprints_with_copies(&job.source, job.count, job.distance)?;
    let start = Instant::now();
    let pairs = pool.install(|| count_pairs(job.joiner, fingerprints, job.distance))?;
    let seconds = start.elapsed().as_secs_f64();
    let peak_bytes = memory::peak_bytes()?.saturating_sub(before);
    Ok(JoinRow { threads: pool.current_num_threads(), seconds, peak_bytes, pairs })
}

/// Runs the self-join. Returns the number of pairs of fingerprints within the distance.
fn count_pairs(joiner: Joiner, fingerprints: Vec<u64>, distance: u32) -> Result<usize> {
    let radius = f64::from(distance) / 64.0;
    Ok(match joiner {
        Joiner::OneChunk => {
            let mut joiner = ChunkedJoiner::<u64>::new(1);
            for fingerprint in fingerprints {
                joiner.add([fingerprint])?;
            }
            joiner.similar_pairs(radius).len()
        }
        Joiner::TwoChunks => {
            let mut joiner = ChunkedJoiner::<u32>::new(2);
            for fingerprint in fingerprints {
                joiner.add([fingerprint as u32, (fingerprint >> 32) as u32])?;
            }
            joiner.similar_pairs(radius).len()
        }
        Joiner::Simstore { .. } => simstore::join::self_join(&fingerprints, distance)?.len(),
    })
}

/// Generates distinct fingerprints in ascending order; one in [`COPY_INTERVAL`] is a near copy of another. May
/// return slightly fewer than `count`, because two copies can be equal.
fn fingerprints_with_copies(source: &FingerprintSource, count: usize, distance: u32) -> Result<Vec<u64>> {
    let mut fingerprints: Vec<u64> = source.iter(count)?.collect();
    let mut state = COPY_SEED;
    for i in (COPY_INTERVAL..count).step_by(COPY_INTERVAL) {
        let original = fingerprints[(random(&mut state) % i as u64) as usize];
        while fingerprints[i] == original || (fingerprints[i] ^ original).count_ones() > distance {
            fingerprints[i] = flip_bits(original, distance, &mut state);
        }
    }
    fingerprints.sort_unstable();
    fingerprints.dedup();
    Ok(fingerprints)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_joiners_find_the_same_pairs() {
        let found = [Joiner::OneChunk, Joiner::TwoChunks, Joiner::Simstore { threads: 1 }].map(|joiner| {
            count_pairs(joiner, fingerprints_with_copies(&FingerprintSource::Random, 2000, 3).unwrap(), 3)
                .unwrap()
        });
        assert!(found[0] > 150, "{found:?}");
        assert!(found.iter().all(|pairs| *pairs == found[0]), "{found:?}");
    }
}
