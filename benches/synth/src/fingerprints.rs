//! Random fingerprints: drawn in order, by their gaps, so that nothing is sorted.

use rayon::prelude::*;

use crate::random::random;

/// The most fingerprints of a slice.
const SLICE: u64 = 1 << 16;
/// Slices that are drawn while those before them are written.
const AHEAD: u64 = 32;

/// Distinct random fingerprints of 64 bits, as many as are wanted: the same seed gives the same.
///
/// All values are cut into equal slices with equally many fingerprints, each drawn by itself: so threads share the work, and
/// the last fingerprint cannot run over the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RandomFingerprints {
    count: u64,
    seed: u64,
    slices: u64,
}

impl RandomFingerprints {
    /// So many. Nothing is drawn yet.
    pub(crate) fn new(count: u64, seed: u64) -> Self {
        RandomFingerprints { count, seed, slices: count.div_ceil(SLICE) }
    }

    /// Calls `visitor` with some of them after others, in ascending order.
    ///
    /// # Errors
    /// Those of the visitor.
    pub(crate) fn visit(
        &self,
        visitor: &mut dyn FnMut(&[u64]) -> simstore::Result<()>,
    ) -> simstore::Result<()> {
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
    pub(crate) fn queries(&self, count: u64) -> Vec<u64> {
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

/// Exponentially distributed, with mean 1.
fn exponential(state: &mut u64) -> f64 {
    let uniform = ((random(state) >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    -uniform.ln()
}

/// Random bits under a mask; a mask of none takes no random number.
fn random_if(mask: u64, state: &mut u64) -> u64 {
    if mask == 0 { 0 } else { random(state) & mask }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(count: u64, seed: u64) -> Vec<u64> {
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
