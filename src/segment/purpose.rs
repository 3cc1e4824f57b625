//! Which codec suits some fingerprints: tables of a sample, and what the cost model says of queries.

use std::path::Path;

use super::records::{Record, Records};
use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::options::{BuildOptions, Purpose};
use crate::permutation::Permutation;
use crate::plan::{self, Medium, TablePlan, Workload};
use crate::progress::Steps;
use crate::table::Table;

/// Fingerprints of a sample that follow one another: codecs code them from those before.
const RUN: u64 = 2048;
/// The most runs of a sample.
const RUNS: usize = 64;
/// For speed, a query may take so many times as long as with the fastest codec.
const SLOWER: f64 = 1.5;

/// Runs of neighbours, spread evenly over all.
struct Runs<F> {
    runs: Vec<Vec<F>>,
    /// Of so many runs, one is kept.
    step: u64,
    seen: u64,
}

impl<F: Fingerprint> Runs<F> {
    fn push(&mut self, fingerprint: F) {
        let (run, at) = (self.seen / RUN, self.seen % RUN);
        self.seen += 1;
        if !run.is_multiple_of(self.step) {
            return;
        }
        if at == 0 {
            if self.runs.len() == RUNS {
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
            self.runs.push(Vec::with_capacity(RUN as usize));
        }
        if let Some(last) = self.runs.last_mut() {
            last.push(fingerprint);
        }
    }
}

/// The smallest codec that serves the purpose.
pub(super) fn choose<R: Record>(
    purpose: Purpose,
    options: &BuildOptions,
    records: &Records<R>,
) -> Result<Codec> {
    let mut runs = Runs { runs: Vec::new(), step: 1, seen: 0 };
    let (steps, mut seen) = (Steps::new(options.progress.as_ref(), 0), 0);
    records.visit_fingerprints(|fingerprint| {
        runs.push(fingerprint);
        steps.ask_at(&mut seen)
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
            size(codec, options, &sample, fingerprints)?,
            nanoseconds::<R::Fingerprint>(codec, options, fingerprints)?,
        ));
    }
    let fastest = measured.iter().map(|(_, _, nanoseconds)| *nanoseconds).fold(f64::INFINITY, f64::min);
    let serves = |nanoseconds: f64| purpose == Purpose::Size || nanoseconds <= fastest * SLOWER;
    let served = measured.into_iter().filter(|(_, _, nanoseconds)| serves(*nanoseconds));
    served
        .min_by_key(|&(_, size, _)| size)
        .map(|(codec, _, _)| codec)
        .ok_or_else(|| Error::Bug("no codec is the fastest".to_string()))
}

/// Bytes of a table of a sample, with the spans that a table of so many fingerprints gets.
fn size<F: Fingerprint>(
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

/// What the cost model says of a query, with the plan that the codec would get.
fn nanoseconds<F: Fingerprint>(codec: Codec, options: &BuildOptions, fingerprints: u64) -> Result<f64> {
    let (block_size, span) = (options.block_size, options.span);
    let workload = Workload { fingerprints, codec, block_size, span, medium: Medium::Memory };
    let plan = options.plan.plan::<F>(options.distance, &workload)?;
    Ok(plan::estimate(&plan, &workload).nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(count: u64) -> Runs<u64> {
        let mut runs = Runs { runs: Vec::new(), step: 1, seen: 0 };
        (0..count).for_each(|fingerprint| runs.push(fingerprint));
        runs
    }

    #[test]
    fn a_sample_is_all_of_a_few() {
        assert_eq!(runs(5000).runs.concat(), (0..5000).collect::<Vec<_>>());
        assert!(runs(0).runs.is_empty());
    }

    /// A sample has fewer fingerprints than the table, whose spans depend on their number.
    #[test]
    fn sizes_are_those_of_the_spans_that_the_table_gets() {
        let sample: Vec<u64> =
            (0..50_000).map(|i: u64| i << 40 | i.wrapping_mul(0x9e37_79b9) & 0xff_ffff).collect();
        let of = |codec, fingerprints| size(codec, &BuildOptions::default(), &sample, fingerprints).unwrap();
        assert!(of(Codec::Gap, 1 << 20) > of(Codec::Gap, 50_000));
        assert_eq!(of(Codec::EliasFano, 1 << 20), of(Codec::EliasFano, 50_000));
    }

    #[test]
    fn runs_are_whole_and_spread_evenly() {
        for count in [RUN * 64, RUN * 64 + 1, RUN * 65, RUN * 1000 + 7] {
            let runs = runs(count);
            assert!(runs.runs.len() <= RUNS && runs.runs.len() >= RUNS / 2, "{count}");
            for (i, run) in runs.runs.iter().enumerate() {
                let first = i as u64 * runs.step * RUN;
                let last = (first + RUN).min(count);
                assert_eq!(*run, (first..last).collect::<Vec<_>>(), "{count}");
            }
        }
    }
}
