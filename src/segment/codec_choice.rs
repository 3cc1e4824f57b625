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
use crate::prefix_lines::{LINE_BYTES, LineShape};
use crate::progress::ProgressCounter;
use crate::run_sample::RunSample;
use crate::table::Table;

/// Maximum query time of the chosen codec, divided by the query time of the fastest codec. Applies if the objective is speed.
const MAX_SLOWDOWN: f64 = 1.5;

/// Additional query time with prefix lines if all keys are in divided lines, divided by the time of random fingerprints. The
/// cost model knows random fingerprints only. With a share of 0.12 of the keys in divided lines, queries took 1.3 to 1.7
/// times as long, compared with `elias-fano`; with a share of 0.5, 2 to 4 times (`benches/history/prefix-lines.md`).
const DIVIDED_SLOWDOWN: f64 = 6.0;

/// Returns the codec with the smallest tables. Unless the objective is size, codecs that are much slower than the
/// fastest one are left out ([`MAX_SLOWDOWN`]).
pub(super) fn choose_codec<R: SegmentRecord>(
    objective: CodecObjective,
    options: &BuildOptions,
    records: &SegmentRecords<R>,
) -> Result<Codec> {
    let mut sample = RunSample::new();
    let (progress, mut seen) = (ProgressCounter::new(options.progress.as_ref(), 0), 0);
    records.visit_fingerprints(|fingerprint| {
        sample.push(fingerprint);
        progress.check_cancelled_at(&mut seen)
    })?;
    let fingerprints = sample.pushed();
    // A codec without restart points cannot have a span.
    let candidates = Codec::ALL
        .into_iter()
        .filter(|codec| options.span.is_none() || crate::table::check_span(*codec, options.span).is_ok());
    let mut measured = Vec::new();
    for codec in candidates {
        measured.push((
            codec,
            sample_bytes(codec, options, &sample, fingerprints)?,
            query_nanoseconds::<R::Fingerprint>(codec, options, &sample)?,
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
    sample: &RunSample<F>,
    fingerprints: u64,
) -> Result<usize> {
    let sampled = sample.runs().concat();
    if codec.spec().has_lines {
        let shape = LineShape::for_sample(sample);
        let lines = shape.estimated_lines(sample) / sample.pushed().max(1) as f64 * LINE_BYTES as f64;
        let suffix = f64::from(F::BITS - shape.key_bits()) / 8.0;
        return Ok(((lines + suffix) * sampled.len() as f64) as usize);
    }
    let span = options.span.or(codec.default_span(fingerprints));
    let plan = TablePlan { permutation: Permutation::identity(), prefix_bits: 0, flips: 0 };
    let path = Path::new("sample in memory");
    Table::encode_with(path, &sampled, &plan, codec, options.block_size, span).map(|table| table.len())
}

/// Returns the estimated time of a query in nanoseconds, in a segment with the fingerprints that `sample` is taken from. The
/// segment is assumed to have this codec, and the plan that would be chosen for this codec.
fn query_nanoseconds<F: Fingerprint>(
    codec: Codec,
    options: &BuildOptions,
    sample: &RunSample<F>,
) -> Result<f64> {
    let (block_size, span) = (options.block_size, options.span);
    let workload =
        Workload { fingerprints: sample.pushed(), codec, block_size, span, medium: Medium::Memory };
    let plan = options.plan.plan::<F>(options.distance, &workload)?;
    let divided_share =
        if codec.spec().has_lines { LineShape::for_sample(sample).divided_share(sample) } else { 0.0 };
    Ok(plan::estimate(&plan, &workload).nanoseconds * (1.0 + DIVIDED_SLOWDOWN * divided_share))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that the span of a sample's table depends on the number of fingerprints in the whole table, not in
    /// the sample. The span is the number of fingerprints from one restart point to the next.
    #[test]
    fn sizes_are_those_of_the_spans_that_the_table_gets() {
        let mut sample = RunSample::new();
        (0..50_000_u64).for_each(|i| sample.push(i << 40 | i.wrapping_mul(0x9e37_79b9) & 0xff_ffff));
        let of = |codec, fingerprints| {
            sample_bytes(codec, &BuildOptions::default(), &sample, fingerprints).unwrap()
        };
        assert!(of(Codec::Gap, 1 << 20) > of(Codec::Gap, 50_000));
        assert_eq!(of(Codec::EliasFano, 1 << 20), of(Codec::EliasFano, 50_000));
    }

    /// Returns the estimated time of a query at distance 3 in these fingerprints with `prefix-lines`, divided by the time with
    /// `elias-fano`.
    fn relative_time(mut fingerprints: Vec<u64>) -> f64 {
        fingerprints.sort_unstable();
        let mut sample = RunSample::new();
        fingerprints.iter().for_each(|&fingerprint| sample.push(fingerprint));
        let time = |codec| query_nanoseconds(codec, &BuildOptions::default(), &sample).unwrap();
        time(Codec::PrefixLines) / time(Codec::EliasFano)
    }

    #[test]
    fn prefix_lines_are_slower_for_fingerprints_in_groups() {
        let random = |i: u64| {
            i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xbf58_476d_1ce4_e5b9)
        };
        let spread: Vec<u64> = (0..1_000_000).map(random).collect();
        assert!(relative_time(spread) < 0.7);
        let grouped: Vec<u64> =
            (0..1_000_000).map(|i| random(i / 100) ^ 1 << (i % 64) ^ 1 << (i % 61)).collect();
        assert!(relative_time(grouped) > 1.0);
    }
}
