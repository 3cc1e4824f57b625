//! Random pairs: texts of different documents.

use rayon::prelude::*;
use simstore::{Fingerprint, Result};

use crate::evaluate::curve::{Distances, MAX_K};
use crate::random::random;
use crate::watch::Step;

/// Up to so many pairs, all are compared; of more, so many are drawn.
pub(crate) const MAX_PAIRS: u64 = 1 << 28;
/// Pairs drawn by one stream of random numbers.
const DRAWN_AT_ONCE: u64 = 1 << 16;

/// A text that random pairs are made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<F> {
    pub(crate) fingerprint: F,
    pub(crate) number: usize,
    /// Pairs within a group are no random pairs.
    pub(crate) group: usize,
}

/// Two texts of different groups within [`MAX_K`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Near {
    pub(crate) texts: [usize; 2],
    pub(crate) distance: u32,
}

/// The pairs of texts of different groups: all of them, if there are at most `max_pairs`, or else about
/// `max_pairs` random ones, always the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RandomPairs<'a, F> {
    pub(crate) texts: &'a [Text<F>],
    pub(crate) max_pairs: u64,
}

impl<F: Fingerprint> RandomPairs<'_, F> {
    pub(crate) fn distances(self, step: &Step<'_>) -> Result<Distances> {
        let add = |distances: &mut Distances, _: &Text<F>, _: &Text<F>, distance| distances.add(distance);
        self.fold(step, &add, Distances::merge)
    }

    /// Of the pairs at each distance up to [`MAX_K`] about `max_each`, the same for the same texts; all of those of which
    /// there are not more.
    pub(crate) fn near(self, distances: &Distances, max_each: u64, step: &Step<'_>) -> Result<Vec<Near>> {
        let chance = |distance| match distances.at(distance) {
            count if count <= max_each => u64::MAX,
            count => ((u128::from(max_each) << 64) / u128::from(count)) as u64,
        };
        let chances: Vec<u64> = (0..=MAX_K).map(chance).collect();
        let add = |near: &mut Vec<Near>, a: &Text<F>, b: &Text<F>, distance: u32| {
            if let Some(&chance) = chances.get(distance as usize) {
                let texts = [a.number.min(b.number), a.number.max(b.number)];
                let mut state = (texts[0] as u64).rotate_left(32) ^ texts[1] as u64;
                if random(&mut state) <= chance {
                    near.push(Near { texts, distance });
                }
            }
        };
        let together = |mut a: Vec<Near>, mut b: Vec<Near>| {
            a.append(&mut b);
            a
        };
        let mut near = self.fold(step, &add, together)?;
        near.sort_unstable();
        Ok(near)
    }

    /// Gathers what `add` makes of each pair and its distance.
    fn fold<T: Default + Send>(
        self,
        step: &Step<'_>,
        add: &(impl Fn(&mut T, &Text<F>, &Text<F>, u32) + Sync),
        merge: impl Fn(T, T) -> T + Sync + Send,
    ) -> Result<T> {
        let merge = |a, b| Ok(merge(a, b));
        let count = self.texts.len() as u64;
        if count * count.saturating_sub(1) / 2 <= self.max_pairs {
            (0..self.texts.len())
                .into_par_iter()
                .map(|at| self.of_one(at, step, add))
                .try_reduce(T::default, merge)
        } else {
            let streams = self.max_pairs.div_ceil(DRAWN_AT_ONCE);
            (0..streams)
                .into_par_iter()
                .map(|stream| self.of_stream(stream, step, add))
                .try_reduce(T::default, merge)
        }
    }

    /// The pairs of one text with all after it.
    fn of_one<T: Default>(
        self,
        at: usize,
        step: &Step<'_>,
        add: &impl Fn(&mut T, &Text<F>, &Text<F>, u32),
    ) -> Result<T> {
        let (mut found, mut pairs, a) = (T::default(), 0, &self.texts[at]);
        for b in &self.texts[at + 1..] {
            if a.group != b.group {
                pairs += 1;
                add(&mut found, a, b, a.fingerprint.distance(b.fingerprint));
            }
        }
        step.add(pairs)?;
        Ok(found)
    }

    fn of_stream<T: Default>(
        self,
        stream: u64,
        step: &Step<'_>,
        add: &impl Fn(&mut T, &Text<F>, &Text<F>, u32),
    ) -> Result<T> {
        let mut state = stream;
        state = random(&mut state);
        let (mut found, mut pairs) = (T::default(), 0);
        let mut draw = || {
            let at = (u128::from(random(&mut state)) * self.texts.len() as u128) >> 64;
            &self.texts[at as usize]
        };
        for _ in 0..DRAWN_AT_ONCE {
            let (a, b) = (draw(), draw());
            if a.group != b.group {
                pairs += 1;
                add(&mut found, a, b, a.fingerprint.distance(b.fingerprint));
            }
        }
        step.add(pairs)?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts in groups of one to three, many of them near one another.
    fn texts(count: usize) -> Vec<Text<u64>> {
        let mut state = 7;
        let mut text = |number| Text {
            fingerprint: random(&mut state) & 0x0fff,
            number,
            group: number / (1 + number % 3),
        };
        (0..count).map(&mut text).collect()
    }

    /// All pairs of different groups, by the plain loop.
    fn plain(texts: &[Text<u64>]) -> Vec<Near> {
        let mut near = Vec::new();
        for (at, b) in texts.iter().enumerate() {
            for a in texts.iter().take(at).filter(|a| a.group != b.group) {
                let distance = (a.fingerprint ^ b.fingerprint).count_ones();
                near.push(Near { texts: [a.number, b.number], distance });
            }
        }
        near.sort_unstable();
        near
    }

    fn pairs(texts: &[Text<u64>], max_pairs: u64) -> RandomPairs<'_, u64> {
        RandomPairs { texts, max_pairs }
    }

    #[test]
    fn all_pairs_of_different_groups() {
        let texts = texts(200);
        let expected = plain(&texts);
        assert!(expected.len() < 200 * 199 / 2);
        let mut distances = Distances::default();
        expected.iter().for_each(|near| distances.add(near.distance));
        let step = Step::new(&(), "random pairs");
        let pairs = pairs(&texts, 200 * 199 / 2);
        assert_eq!(pairs.distances(&step).unwrap(), distances);
        assert_eq!(pairs.near(&distances, u64::MAX, &step).unwrap(), expected);
        let none = RandomPairs::<u128> { texts: &[], max_pairs: 0 };
        assert_eq!(none.distances(&step).unwrap(), Distances::default());
        let one_group = [0, 1].map(|number| Text { fingerprint: 1_u64, number, group: 5 });
        let pairs = RandomPairs { texts: &one_group, max_pairs: 1 };
        assert_eq!(pairs.distances(&step).unwrap(), Distances::default());
    }

    #[test]
    fn drawn_pairs_are_like_all() {
        let texts = texts(300);
        let step = Step::new(&(), "random pairs");
        let all = pairs(&texts, u64::MAX).distances(&step).unwrap();
        let drawn = pairs(&texts, 1 << 14).distances(&step).unwrap();
        assert!((15_000..1 << 16).contains(&drawn.all), "{}", drawn.all);
        for k in 0..=12 {
            let share = |distances: &Distances| distances.within(k) as f64 / distances.all as f64;
            let (expected, got) = (share(&all), share(&drawn));
            // Five standard deviations.
            let tolerance = 5.0 * (expected * (1.0 - expected) / drawn.all as f64).sqrt();
            assert!((expected - got).abs() <= tolerance, "{k}: {expected} {got}");
        }
    }

    #[test]
    fn a_few_of_the_near_at_each_distance() {
        let texts = texts(400);
        let step = Step::new(&(), "random pairs");
        let pairs = pairs(&texts, u64::MAX);
        let distances = pairs.distances(&step).unwrap();
        let near = pairs.near(&distances, 500, &step).unwrap();
        let all = plain(&texts);
        assert!(near.iter().all(|pair| all.binary_search(pair).is_ok()));
        for distance in 0..=12 {
            let count = near.iter().filter(|pair| pair.distance == distance).count() as f64;
            let expected = distances.at(distance).min(500) as f64;
            let tolerance = if distances.at(distance) <= 500 { 0.0 } else { 5.0 * expected.sqrt() };
            assert!((count - expected).abs() <= tolerance, "{distance}: {count} {expected}");
        }
    }
}
