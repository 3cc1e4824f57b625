//! `simstore synth`: a store of random fingerprints, to measure with.

use std::path::PathBuf;

use clap::Args;
use rayon::prelude::*;
use serde::Serialize;
use simstore::plan::Plan;
use simstore::{BuildOptions, Builder, Codec, PlanChoice};

use crate::failure::{Failure, Outcome};
use crate::numbers::{bits_each, bytes, grouped, parse_block_size, parse_count, rounded};
use crate::output::Output;
use crate::progress::Progress;
use crate::width::check_distance;

const EXAMPLES: &str = "\
The fingerprints are drawn in order, by their gaps, so that nothing is sorted and the memory does not grow with \
their number, but for the block index: of plan `probe-1`, whose one table is in this order. The tables of other \
plans are sorted as in `build`. The same seed gives the same fingerprints.

With --json, one object is printed at the end:
  store, codec, plan    what was written
  fingerprints, seed    how many, and which
  bytes                 size of all files
  bits_per_fingerprint  the same for each fingerprint
  seconds               time taken

Example:
  simstore synth random.simstore --count 100k --force --queries 1k --queries-file queries.u64";

/// Write a store of random 64-bit fingerprints, to measure with
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SynthArgs {
    /// The store: a folder that does not exist yet
    store: PathBuf,
    /// Number of fingerprints, like 1000000, 100M or 8e9
    #[arg(long, value_name = "N", value_parser = parse_count)]
    count: u64,
    /// Which random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The largest distance that the store can answer: at most 16
    #[arg(long, short, value_name = "K", default_value_t = 3)]
    distance: u32,
    /// How fingerprints are compressed: first-difference, gap or elias-fano
    #[arg(long, default_value_t = Codec::FirstDifference)]
    codec: Codec,
    /// Which tables are kept: auto, or a name as listed by `simstore plan`
    #[arg(long, value_name = "NAME", default_value = "probe-1")]
    plan: PlanChoice,
    /// Bytes of a block, a power of two from 256 to 65536 [default: by codec]
    #[arg(long, value_name = "BYTES", value_parser = parse_block_size)]
    block_size: Option<u32>,
    /// Replace the store if there is one
    #[arg(long)]
    force: bool,
    /// Write so many queries too: half are stored fingerprints with up to 3 bits flipped, half are random
    #[arg(long, value_name = "N", value_parser = parse_count, requires = "queries_file")]
    queries: Option<u64>,
    /// The file of the queries: raw, little-endian, so it should end in .u64
    #[arg(long, value_name = "FILE", requires = "queries")]
    queries_file: Option<PathBuf>,
    /// Print a summary as a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Summary<'a> {
    store: &'a str,
    codec: &'static str,
    plan: &'a str,
    fingerprints: u64,
    seed: u64,
    bytes: u64,
    bits_per_fingerprint: f64,
    seconds: f64,
}

pub(crate) fn run(args: &SynthArgs, progress: &Progress) -> Outcome {
    check_distance::<u64>(args.distance)?;
    if let PlanChoice::Named(name) = &args.plan {
        Plan::<u64>::named(name, args.distance).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    let options = BuildOptions {
        distance: args.distance,
        codec: args.codec,
        plan: args.plan.clone(),
        block_size: args.block_size,
        ids: false,
        replace: args.force,
        ..BuildOptions::default()
    };
    let slices = Slices::new(args.count, args.seed);
    let store =
        Builder::<u64>::create(&args.store, options)?.finish_sorted(move |write| slices.visit(write))?;
    if let (Some(queries), Some(file)) = (args.queries, &args.queries_file) {
        let mut output = Output::create(file)?;
        for query in slices.queries(queries) {
            output.write(&query.to_le_bytes())?;
        }
        output.finish()?;
    }
    let (stats, plan) = (store.stats(), store.segments()[0].plan().name());
    let bits_per_fingerprint = bits_each(stats.bytes, stats.fingerprints);
    if args.json {
        let mut output = Output::stdout();
        output.json(&Summary {
            store: &args.store.to_string_lossy(),
            codec: args.codec.name(),
            plan,
            fingerprints: stats.fingerprints,
            seed: args.seed,
            bytes: stats.bytes,
            bits_per_fingerprint: rounded(bits_per_fingerprint),
            seconds: rounded(progress.seconds()),
        })?;
        return output.finish();
    }
    progress.say(&format!(
        "{}: {} random fingerprints, plan {plan}, {} ({:.3} bytes each), {:.1} s",
        args.store.display(),
        grouped(stats.fingerprints),
        bytes(stats.bytes),
        bits_per_fingerprint / 8.0,
        progress.seconds()
    ));
    Ok(())
}

/// The most fingerprints of a slice.
const SLICE: u64 = 1 << 16;
/// Slices that are drawn while those before them are written.
const AHEAD: u64 = 32;

/// All values cut into equal slices with equally many fingerprints, each drawn by itself: so threads share the
/// work, and the last fingerprint cannot run over the end.
#[derive(Clone, Copy)]
struct Slices {
    count: u64,
    seed: u64,
    slices: u64,
}

impl Slices {
    fn new(count: u64, seed: u64) -> Self {
        Slices { count, seed, slices: count.div_ceil(SLICE) }
    }

    /// Calls `visitor` with the fingerprints of each slice, in order.
    fn visit(&self, visitor: &mut dyn FnMut(&[u64]) -> simstore::Result<()>) -> simstore::Result<()> {
        let draw = |first: u64| -> Vec<Vec<u64>> {
            let last = (first + AHEAD).min(self.slices);
            (first..last).into_par_iter().map(|slice| self.draw(slice)).collect()
        };
        let mut drawn = draw(0);
        let mut first = 0;
        while first < self.slices {
            first += AHEAD;
            let mut next = Vec::new();
            rayon::in_place_scope(|scope| {
                scope.spawn(|_| next = draw(first));
                drawn.iter().try_for_each(|slice| visitor(slice))
            })?;
            drawn = next;
        }
        Ok(())
    }

    /// Queries in random order: every other one a fingerprint with 0 to 3 bits flipped, the others random.
    fn queries(&self, count: u64) -> Vec<u64> {
        let mut state = !self.seed;
        let near = count / 2;
        let mut queries: Vec<u64> = (0..count - near).map(|_| random(&mut state)).collect();
        // As many of each slice as of the others.
        let picks = |slice| self.part(slice, near.into()) as u64..self.part(slice + 1, near.into()) as u64;
        let picked: Vec<Vec<u64>> = (0..self.slices)
            .into_par_iter()
            .filter(|&slice| !picks(slice).is_empty())
            .map(|slice| {
                let (mut state, fingerprints) = (!self.seed ^ slice << 32, self.draw(slice));
                let mut pick = |i: u64| {
                    let chosen = fingerprints[(random(&mut state) % fingerprints.len() as u64) as usize];
                    (0..i % 4).fold(chosen, |value, _| value ^ 1 << (random(&mut state) % 64))
                };
                picks(slice).map(&mut pick).collect()
            })
            .collect();
        queries.extend(picked.into_iter().flatten());
        for i in (1..queries.len()).rev() {
            queries.swap(i, (random(&mut state) % (i as u64 + 1)) as usize);
        }
        queries
    }

    /// Part `number` of `whole` cut into slices.
    fn part(&self, number: u64, whole: u128) -> u128 {
        // In this order nothing is larger than 128 bits.
        let slices = u128::from(self.slices);
        let number = u128::from(number);
        whole / slices * number + whole % slices * number / slices
    }

    /// The fingerprints of a slice, strictly ascending.
    fn draw(&self, slice: u64) -> Vec<u64> {
        let count = u128::from(self.count);
        let count = self.part(slice + 1, count) - self.part(slice, count);
        let (start, end) = (self.part(slice, 1 << 64), self.part(slice + 1, 1 << 64));
        let mut state = self.seed ^ slice.wrapping_mul(0xd134_2543_de82_ef95);
        state = random(&mut state);
        // Gaps between random points in order are exponentially distributed; the last one ends the slice.
        let mut gaps: Vec<f64> = Vec::with_capacity(count as usize);
        gaps.extend((0..count).map(|_| exponential(&mut state)));
        let sum: f64 = gaps.iter().sum::<f64>() + exponential(&mut state);
        let scale = (end - start - count) as f64 / sum;
        // Bits that a gap is too long for.
        let low = (scale as u64 >> 51).next_power_of_two() - 1;
        let mut next = start;
        gaps.iter()
            .zip(0..)
            .map(|(gap, i)| {
                next += u128::from((gap * scale) as u64) + u128::from(random_if(low, &mut state));
                // Room for those that follow, whatever was rounded.
                let here = next.min(end - count + i);
                next += 1;
                here as u64
            })
            .collect()
    }
}

/// Random bits under a mask; a mask of none takes no random number.
fn random_if(mask: u64, state: &mut u64) -> u64 {
    if mask == 0 { 0 } else { random(state) & mask }
}

/// SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, OOPSLA 2014): the same numbers on every machine.
pub(crate) fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Exponentially distributed, with mean 1.
fn exponential(state: &mut u64) -> f64 {
    let uniform = ((random(state) >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    -uniform.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(count: u64, seed: u64) -> Vec<u64> {
        let mut all = Vec::new();
        let slices = Slices::new(count, seed);
        slices
            .visit(&mut |fingerprints| {
                all.extend_from_slice(fingerprints);
                Ok(())
            })
            .unwrap();
        all
    }

    #[test]
    fn exactly_so_many_in_order_and_by_the_seed() {
        for count in [1, 2, 3, 100, 65_535, 65_536, 65_537, 200_000, 5_000_000] {
            let all = drawn(count, 7);
            assert_eq!(all.len() as u64, count);
            assert!(all.is_sorted_by(|a, b| a < b));
            assert_eq!(all, drawn(count, 7));
            assert_ne!(all, drawn(count, 8));
        }
    }

    #[test]
    fn they_look_uniform() {
        let count = 300_000;
        let all = drawn(count, 1);
        for bit in 0..64 {
            let ones = all.iter().filter(|&&value| value >> bit & 1 == 1).count() as f64;
            // Six standard deviations.
            assert!((ones - count as f64 / 2.0).abs() < 3.0 * (count as f64).sqrt(), "bit {bit}: {ones}");
        }
        // Of exponential gaps, e^-1 are longer than the mean.
        let mean = u64::MAX / count;
        let longer = all.windows(2).filter(|pair| pair[1] - pair[0] > mean).count() as f64 / count as f64;
        assert!((longer - (-1_f64).exp()).abs() < 0.01, "{longer}");
    }
}
