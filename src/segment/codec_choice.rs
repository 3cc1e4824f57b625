//! Chooses a codec for given fingerprints: measures the size of a sample's table, and takes query times from the cost
//! model.

use std::path::Path;

use super::records::{SegmentRecord, SegmentRecords};
use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::options::{BuildOptions, CodecObjective};
use crate::permutation::Permutation;
use crate::plan::{self, Medium, TablePlan, Workload};
use crate::progress::ProgressCounter;
use crate::table::Table;

/// Number of fingerprints in a run of the sample. A run consists of consecutive fingerprints, because codecs
/// encode the differences between neighbours.
const RUN_FINGERPRINTS: u64 = 2048;
/// Maximum number of runs (sequences of consecutive fingerprints) in a sample.
const MAX_RUNS: usize = 64;
/// Maximum query time of the chosen codec, divided by the query time of the fastest codec. Applies if the objective is speed.
const MAX_SLOWDOWN: f64 = 1.5;

/// A sample of fingerprints: runs of consecutive fingerprints. The runs are spread evenly over all fingerprints.
struct RunSample<F> {
    runs: Vec<Vec<F>>,
    /// Of all runs of [`RUN_FINGERPRINTS`] pushed fingerprints, the sample keeps the first, and then every `step`-th one.
    step: u64,
    /// Number of fingerprints pushed so far.
    seen: u64,
}

impl<F: Fingerprint> RunSample<F> {
    fn push(&mut self, fingerprint: F) {
        let (run, at) = (self.seen / RUN_FINGERPRINTS, self.seen % RUN_FINGERPRINTS);
        self.seen += 1;
        if !run.is_multiple_of(self.step) {
            return;
        }
        if at == 0 {
            if self.runs.len() == MAX_RUNS {
                let mut number = 0;
                self.runs.retain(|_| {
                    number += 1;
                    number % 2 == 1
                });
                self.step *= 2;
                if !run.is_multiple_of(self.step) {
                    return;
                }
            }
            self.runs.push(Vec::with_capacity(RUN_FINGERPRINTS as usize));
        }
        if let Some(last) = self.runs.last_mut() {
            last.push(fingerprint);
        }
    }
}

/// Returns the codec with the smallest tables. Unless the objective is size, codecs that are much slower than the
/// fastest one are left out ([`MAX_SLOWDOWN`]).
pub(super) fn choose_codec<R: SegmentRecord>(
    objective: CodecObjective,
    options: &BuildOptions,
    records: &SegmentRecords<R>,
) -> Result<Codec> {
    let mut runs = RunSample { runs: Vec::new(), step: 1, seen: 0 };
    let (progress, mut seen) = (ProgressCounter::new(options.progress.as_ref(), 0), 0);
    records.visit_fingerprints(|fingerprint| {
        runs.push(fingerprint);
        progress.check_cancelled_at(&mut seen)
    })?;
    let (fingerprints, sample) = (runs.seen, runs.runs.concat());
    // A codec without restart points cannot have a span.
    let candidates = Codec::ALL
        .into_iter()
        .filter(|codec| options.span.is_none() || crate::table::check_span(*codec, options.span).is_ok());
    let mut measured = Vec::new();
    for codec in candidates {
        measured.push((
            codec,
            sample_bytes(codec, options, &sample, fingerprints)?,
            query_nanoseconds::<R::Fingerprint>(codec, options, fingerprints)?,
        ));
    }
    let fastest = measured.iter().map(|(_, _, nanoseconds)| *nanoseconds).fold(f64::INFINITY, f64::min);
    let is_fast_enough =
        |nanoseconds: f64| objective == CodecObjective::Size || nanoseconds <= fastest * MAX_SLOWDOWN;
    let eligible = measured.into_iter().filter(|(_, _, nanoseconds)| is_fast_enough(*nanoseconds));
    eligible
        .min_by_key(|&(_, size, _)| size)
        .map(|(codec, _, _)| codec)
        .ok_or_else(|| Error::Bug("no codec is the fastest".to_string()))
}

/// Returns the size in bytes of a table of the fingerprints in `sample`. `fingerprints` is the number of fingerprints in
/// the whole segment. The default span of a table (number of fingerprints from one restart point to the next) depends
/// on it.
fn sample_bytes<F: Fingerprint>(
    codec: Codec,
    options: &BuildOptions,
    sample: &[F],
    fingerprints: u64,
) -> Result<usize> {
    let span = options.span.or(codec.default_span(fingerprints));
    let plan = TablePlan { permutation: Permutation::identity(), prefix_bits: 0, flips: 0 };
    let path = Path::new("sample in memory");
    Table::encode_with(path, sample, &plan, codec, options.block_size, span).map(|table| table.len())
}

/// Returns the estimated time of a query in nanoseconds, in a segment of `fingerprints` fingerprints. The segment is
/// assumed to have this codec, and the plan that would be chosen for this codec.
fn query_nanoseconds<F: Fingerprint>(codec: Codec, options: &BuildOptions, fingerprints: u64) -> Result<f64> {
    let (block_size, span) = (options.block_size, options.span);
    let workload = Workload { fingerprints, codec, block_size, span, medium: Medium::Memory };
    let plan = options.plan.plan::<F>(options.distance, &workload)?;
    Ok(plan::estimate(&plan, &workload).nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(count: u64) -> RunSample<u64> {
        let mut runs = RunSample { runs: Vec::new(), step: 1, seen: 0 };
        (0..count).for_each(|fingerprint| runs.push(fingerprint));
        runs
    }

    #[test]
    fn a_sample_is_all_of_a_few() {
        assert_eq!(runs(5000).runs.concat(), (0..5000).collect::<Vec<_>>());
        assert!(runs(0).runs.is_empty());
    }

    /// Asserts that the span of a sample's table depends on the number of fingerprints in the whole table, not in
    /// the sample. The span is the number of fingerprints from one restart point to the next.
    #[test]
    fn sizes_are_those_of_the_spans_that_the_table_gets() {
        let sample: Vec<u64> =
            (0..50_000).map(|i: u64| i << 40 | i.wrapping_mul(0x9e37_79b9) & 0xff_ffff).collect();
        let of = |codec, fingerprints| {
            sample_bytes(codec, &BuildOptions::default(), &sample, fingerprints).unwrap()
        };
        assert!(of(Codec::Gap, 1 << 20) > of(Codec::Gap, 50_000));
        assert_eq!(of(Codec::EliasFano, 1 << 20), of(Codec::EliasFano, 50_000));
    }

    #[test]
    fn runs_are_whole_and_spread_evenly() {
        for count in [
            RUN_FINGERPRINTS * 64,
            RUN_FINGERPRINTS * 64 + 1,
            RUN_FINGERPRINTS * 65,
            RUN_FINGERPRINTS * 1000 + 7,
        ] {
            let runs = runs(count);
            assert!(runs.runs.len() <= MAX_RUNS && runs.runs.len() >= MAX_RUNS / 2, "{count}");
            for (i, run) in runs.runs.iter().enumerate() {
                let first = i as u64 * runs.step * RUN_FINGERPRINTS;
                let last = (first + RUN_FINGERPRINTS).min(count);
                assert_eq!(*run, (first..last).collect::<Vec<_>>(), "{count}");
            }
        }
    }
}
