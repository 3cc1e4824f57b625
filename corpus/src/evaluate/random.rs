//! Random pairs: texts of different documents.

use rayon::prelude::*;
use simstore::{Fingerprint, Result};

use crate::evaluate::curve::Distances;
use crate::random::random;
use crate::watch::Step;

/// Up to so many pairs, all are compared; of more, so many are drawn.
pub(crate) const MAX_PAIRS: u64 = 1 << 28;
/// Pairs drawn by one stream of random numbers.
const DRAWN_AT_ONCE: u64 = 1 << 16;

/// A fingerprint and the group of its text: pairs within a group are no random pairs.
pub(crate) type Grouped<F> = (F, usize);

/// The distances of pairs of texts of different groups: of all pairs, if there are at most `max_pairs`, or else of about
/// `max_pairs` random ones, always the same.
pub(crate) fn distances<F: Fingerprint>(
    texts: &[Grouped<F>],
    max_pairs: u64,
    step: &Step<'_>,
) -> Result<Distances> {
    let count = texts.len() as u64;
    if count * count.saturating_sub(1) / 2 <= max_pairs {
        all(texts, step)
    } else {
        drawn(texts, max_pairs, step)
    }
}

fn all<F: Fingerprint>(texts: &[Grouped<F>], step: &Step<'_>) -> Result<Distances> {
    let of_one = |(at, &(a, group)): (usize, &Grouped<F>)| {
        let mut distances = Distances::default();
        for &(b, other) in &texts[at + 1..] {
            if other != group {
                distances.add(a.distance(b));
            }
        }
        step.add(distances.all)?;
        Ok(distances)
    };
    texts.par_iter().enumerate().map(of_one).try_reduce(Distances::default, merged)
}

fn drawn<F: Fingerprint>(texts: &[Grouped<F>], pairs: u64, step: &Step<'_>) -> Result<Distances> {
    let of_stream = |stream: u64| {
        let mut state = stream;
        state = random(&mut state);
        let mut distances = Distances::default();
        let mut draw = || texts[((u128::from(random(&mut state)) * texts.len() as u128) >> 64) as usize];
        for _ in 0..DRAWN_AT_ONCE {
            let ((a, group), (b, other)) = (draw(), draw());
            if group != other {
                distances.add(a.distance(b));
            }
        }
        step.add(distances.all)?;
        Ok(distances)
    };
    let streams = pairs.div_ceil(DRAWN_AT_ONCE);
    (0..streams).into_par_iter().map(of_stream).try_reduce(Distances::default, merged)
}

fn merged(a: Distances, b: Distances) -> Result<Distances> {
    Ok(a.merge(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts in groups of one to three, many of them near one another.
    fn texts(count: usize) -> Vec<Grouped<u64>> {
        let mut state = 7;
        let value = |state: &mut u64| random(state) & 0x0fff;
        (0..count).map(|at| (value(&mut state), at / (1 + at % 3))).collect()
    }

    #[test]
    fn all_pairs_of_different_groups() {
        let texts = texts(200);
        let mut expected = Distances::default();
        for (at, a) in texts.iter().enumerate() {
            for b in texts.iter().take(at).filter(|b| b.1 != a.1) {
                expected.add((a.0 ^ b.0).count_ones());
            }
        }
        assert!(expected.all < 200 * 199 / 2);
        let step = Step::new(&(), "random pairs");
        assert_eq!(distances(&texts, 200 * 199 / 2, &step).unwrap(), expected);
        assert_eq!(distances::<u128>(&[], 0, &step).unwrap(), Distances::default());
        assert_eq!(distances(&[(1_u64, 5), (1, 5)], 1, &step).unwrap(), Distances::default());
    }

    #[test]
    fn drawn_pairs_are_like_all() {
        let texts = texts(300);
        let step = Step::new(&(), "random pairs");
        let all = distances(&texts, u64::MAX, &step).unwrap();
        let drawn = |pairs| drawn(&texts, pairs, &step).unwrap();
        assert_eq!(distances(&texts, 1 << 13, &step).unwrap().all, drawn(1).all);
        let drawn = drawn(1 << 18);
        assert!((250_000..1 << 18).contains(&drawn.all), "{}", drawn.all);
        for k in 0..=12 {
            let share = |distances: &Distances| distances.within(k) as f64 / distances.all as f64;
            let (expected, got) = (share(&all), share(&drawn));
            // Five standard deviations.
            let tolerance = 5.0 * (expected * (1.0 - expected) / drawn.all as f64).sqrt();
            assert!((expected - got).abs() <= tolerance, "{k}: {expected} {got}");
        }
    }
}
