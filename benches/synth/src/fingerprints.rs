//! Random fingerprints in ascending order. They are generated from random gaps, so no sort is needed.

use rayon::prelude::*;

use crate::random::random;

/// Maximum number of fingerprints in a slice, one of the equal parts of the range of all 64-bit values.
const SLICE_FINGERPRINTS: u64 = 1 << 16;
/// Number of slices (equal parts of the range of all 64-bit values) in a batch. While the fingerprints of one batch are written,
/// the fingerprints of the next batch are generated.
const BATCH_SLICES: u64 = 32;

/// Distinct random 64-bit fingerprints. The same seed gives the same fingerprints.
///
/// The range of all 64-bit values is split into equal slices, and each slice gets the same number of fingerprints. Slices
/// are independent, so several threads can generate them in parallel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RandomFingerprints {
    count: u64,
    seed: u64,
    slices: u64,
}

impl RandomFingerprints {
    /// Describes `count` fingerprints; generates nothing yet.
    pub(crate) fn new(count: u64, seed: u64) -> Self {
        RandomFingerprints { count, seed, slices: count.div_ceil(SLICE_FINGERPRINTS) }
    }

    /// Visits all fingerprints in ascending order, one slice at a time.
    ///
    /// # Errors
    /// Errors of the visitor.
    pub(crate) fn visit(
        &self,
        visitor: &mut dyn FnMut(&[u64]) -> simstore::Result<()>,
    ) -> simstore::Result<()> {
        let generate_batch = |first: u64| -> Vec<Vec<u64>> {
            let last = (first + BATCH_SLICES).min(self.slices);
            (first..last).into_par_iter().map(|slice| self.generate_slice(slice)).collect()
        };
        let mut generated = generate_batch(0);
        let mut first = 0;
        while first < self.slices {
            first += BATCH_SLICES;
            let mut next = Vec::new();
            rayon::in_place_scope(|scope| {
                scope.spawn(|_| next = generate_batch(first));
                generated.iter().try_for_each(|slice| visitor(slice))
            })?;
            generated = next;
        }
        Ok(())
    }

    /// Generates `count` queries in random order. Half of the queries are fingerprints of this set with 0 to 3 bits
    /// flipped, half are random.
    pub(crate) fn queries(&self, count: u64) -> Vec<u64> {
        let mut state = !self.seed;
        let near = count / 2;
        let mut queries: Vec<u64> = (0..count - near).map(|_| random(&mut state)).collect();
        // All slices contribute the same number of queries, within one.
        let picks = |slice| {
            self.slice_start(slice, near.into()) as u64..self.slice_start(slice + 1, near.into()) as u64
        };
        let picked: Vec<Vec<u64>> = (0..self.slices)
            .into_par_iter()
            .filter(|&slice| !picks(slice).is_empty())
            .map(|slice| {
                let (mut state, fingerprints) = (!self.seed ^ slice << 32, self.generate_slice(slice));
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

    /// Divides the numbers from 0 to `whole` into as many equal ranges as there are [slices](Self::slices). Returns the
    /// start of the range with the index `number`.
    fn slice_start(&self, number: u64, whole: u128) -> u128 {
        // Dividing first keeps all intermediate values within 128 bits.
        let slices = u128::from(self.slices);
        let number = u128::from(number);
        whole / slices * number + whole % slices * number / slices
    }

    /// Generates the fingerprints of one of the equal slices of the range of 64-bit values, in strictly ascending order.
    fn generate_slice(&self, slice: u64) -> Vec<u64> {
        let count = u128::from(self.count);
        let count = self.slice_start(slice + 1, count) - self.slice_start(slice, count);
        let (start, end) = (self.slice_start(slice, 1 << 64), self.slice_start(slice + 1, 1 << 64));
        let mut state = self.seed ^ slice.wrapping_mul(0xd134_2543_de82_ef95);
        state = random(&mut state);
        // Gaps between sorted random points are exponentially distributed. One more gap follows the last point.
        let mut gaps: Vec<f64> = Vec::with_capacity(count as usize);
        gaps.extend((0..count).map(|_| exponential(&mut state)));
        let sum: f64 = gaps.iter().sum::<f64>() + exponential(&mut state);
        let scale = (end - start - count) as f64 / sum;
        // A long gap has more bits than an `f64` holds: the lowest bits are drawn separately.
        let low = (scale as u64 >> 51).next_power_of_two() - 1;
        let mut next = start;
        gaps.iter()
            .zip(0..)
            .map(|(gap, i)| {
                next += u128::from((gap * scale) as u64) + u128::from(random_if(low, &mut state));
                // Leaves space for the following fingerprints, in spite of rounding.
                let here = next.min(end - count + i);
                next += 1;
                here as u64
            })
            .collect()
    }
}

/// Draws an exponentially distributed number with mean 1.
fn exponential(state: &mut u64) -> f64 {
    let uniform = ((random(state) >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    -uniform.ln()
}

/// Returns a random number whose bits outside `mask` are 0. If `mask` is 0, returns 0 and does not change `state`.
fn random_if(mask: u64, state: &mut u64) -> u64 {
    if mask == 0 { 0 } else { random(state) & mask }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generated(count: u64, seed: u64) -> Vec<u64> {
        let mut all = Vec::new();
        RandomFingerprints::new(count, seed)
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
            let all = generated(count, 7);
            assert_eq!(all.len() as u64, count);
            assert!(all.is_sorted_by(|a, b| a < b));
            assert_eq!(all, generated(count, 7));
            assert_ne!(all, generated(count, 8));
        }
    }

    #[test]
    fn they_look_uniform() {
        let count = 300_000;
        let all = generated(count, 1);
        for bit in 0..64 {
            let ones = all.iter().filter(|&&value| value >> bit & 1 == 1).count() as f64;
            // Six standard deviations.
            assert!((ones - count as f64 / 2.0).abs() < 3.0 * (count as f64).sqrt(), "bit {bit}: {ones}");
        }
        // A share of e^-1 of exponential gaps is longer than the mean.
        let mean = u64::MAX / count;
        let longer = all.windows(2).filter(|pair| pair[1] - pair[0] > mean).count() as f64 / count as f64;
        assert!((longer - (-1_f64).exp()).abs() < 0.01, "{longer}");
    }
}
