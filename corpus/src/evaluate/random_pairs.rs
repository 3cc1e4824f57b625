//! Draws random pairs of unrelated texts, and computes the distances of their fingerprints.

use rayon::prelude::*;
use simstore::{Fingerprint, Result};

use crate::evaluate::curve::{DistanceHistogram, MAX_K};
use crate::observer::Stage;
use crate::random::splitmix64;

/// Maximum number of random pairs. If more pairs are possible, about this many are drawn.
pub(crate) const RANDOM_PAIRS_MAX: u64 = 1 << 28;
/// Number of pairs drawn from one stream of random numbers. Each stream is processed by one thread.
const PAIRS_PER_STREAM: u64 = 1 << 16;

/// Fingerprint of a text, the text's index, and the group of related texts that it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupedText<F> {
    pub(crate) fingerprint: F,
    pub(crate) number: usize,
    /// Group of related texts that the text belongs to. Two texts of one group are never paired at random.
    pub(crate) group: usize,
}

/// Two unrelated texts (not of one group of related texts) with fingerprints within distance [`MAX_K`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NearTextPair {
    pub(crate) texts: [usize; 2],
    pub(crate) distance: u32,
}

/// Pairs of unrelated texts (not of one group of related texts): all such pairs or, if more than
/// [`max_pairs`](Self::max_pairs) are possible, about `max_pairs` random ones. The same texts always give the same pairs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RandomPairs<'a, F> {
    pub(crate) texts: &'a [GroupedText<F>],
    pub(crate) max_pairs: u64,
}

impl<F: Fingerprint> RandomPairs<'_, F> {
    pub(crate) fn distances(self, stage: &Stage<'_>) -> Result<DistanceHistogram> {
        let add = |distances: &mut DistanceHistogram, _: &GroupedText<F>, _: &GroupedText<F>, distance| {
            distances.add(distance);
        };
        self.fold(stage, &add, DistanceHistogram::merge)
    }

    /// For each distance up to [`MAX_K`], returns about `max_each` of the pairs with this distance, or all of them if
    /// there are fewer. `distances` has the number of pairs at each distance. The same texts always give the same pairs.
    pub(crate) fn sample_near(
        self,
        distances: &DistanceHistogram,
        max_each: u64,
        stage: &Stage<'_>,
    ) -> Result<Vec<NearTextPair>> {
        let chance = |distance| match distances.at(distance) {
            count if count <= max_each => u64::MAX,
            count => ((u128::from(max_each) << 64) / u128::from(count)) as u64,
        };
        let chances: Vec<u64> = (0..=MAX_K).map(chance).collect();
        let add = |near: &mut Vec<NearTextPair>, a: &GroupedText<F>, b: &GroupedText<F>, distance: u32| {
            if let Some(&chance) = chances.get(distance as usize) {
                let texts = [a.number.min(b.number), a.number.max(b.number)];
                let mut state = (texts[0] as u64).rotate_left(32) ^ texts[1] as u64;
                if splitmix64(&mut state) <= chance {
                    near.push(NearTextPair { texts, distance });
                }
            }
        };
        let concatenate = |mut a: Vec<NearTextPair>, mut b: Vec<NearTextPair>| {
            a.append(&mut b);
            a
        };
        let mut near = self.fold(stage, &add, concatenate)?;
        near.sort_unstable();
        Ok(near)
    }

    /// Calls `add` for each pair, on all threads, with a result to update, the two texts, and their distance. Returns the
    /// results of all threads, combined by `merge`.
    fn fold<T: Default + Send>(
        self,
        stage: &Stage<'_>,
        add: &(impl Fn(&mut T, &GroupedText<F>, &GroupedText<F>, u32) + Sync),
        merge: impl Fn(T, T) -> T + Sync + Send,
    ) -> Result<T> {
        let merge = |a, b| Ok(merge(a, b));
        let count = self.texts.len() as u64;
        if count * count.saturating_sub(1) / 2 <= self.max_pairs {
            (0..self.texts.len())
                .into_par_iter()
                .map(|at| self.fold_text(at, stage, add))
                .try_reduce(T::default, merge)
        } else {
            let streams = self.max_pairs.div_ceil(PAIRS_PER_STREAM);
            (0..streams)
                .into_par_iter()
                .map(|stream| self.fold_stream(stream, stage, add))
                .try_reduce(T::default, merge)
        }
    }

    /// Calls `add` for the pairs of the text at index `at` with all later texts. Returns the result that `add` has updated.
    fn fold_text<T: Default>(
        self,
        at: usize,
        stage: &Stage<'_>,
        add: &impl Fn(&mut T, &GroupedText<F>, &GroupedText<F>, u32),
    ) -> Result<T> {
        let (mut found, mut pairs, a) = (T::default(), 0, &self.texts[at]);
        for b in &self.texts[at + 1..] {
            if a.group != b.group {
                pairs += 1;
                add(&mut found, a, b, a.fingerprint.distance(b.fingerprint));
            }
        }
        stage.add(pairs)?;
        Ok(found)
    }

    /// Calls `add` for the pairs drawn from one stream of random numbers. Returns the result that `add` has updated.
    fn fold_stream<T: Default>(
        self,
        stream: u64,
        stage: &Stage<'_>,
        add: &impl Fn(&mut T, &GroupedText<F>, &GroupedText<F>, u32),
    ) -> Result<T> {
        let mut state = stream;
        state = splitmix64(&mut state);
        let (mut found, mut pairs) = (T::default(), 0);
        let mut draw = || {
            let at = (u128::from(splitmix64(&mut state)) * self.texts.len() as u128) >> 64;
            &self.texts[at as usize]
        };
        for _ in 0..PAIRS_PER_STREAM {
            let (a, b) = (draw(), draw());
            if a.group != b.group {
                pairs += 1;
                add(&mut found, a, b, a.fingerprint.distance(b.fingerprint));
            }
        }
        stage.add(pairs)?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes texts in groups of one to three. Many of their fingerprints are near one another.
    fn texts(count: usize) -> Vec<GroupedText<u64>> {
        let mut state = 7;
        let mut text = |number| GroupedText {
            fingerprint: splitmix64(&mut state) & 0x0fff,
            number,
            group: number / (1 + number % 3),
        };
        (0..count).map(&mut text).collect()
    }

    /// Finds all pairs of texts of different groups by comparing each text with each earlier one.
    fn plain(texts: &[GroupedText<u64>]) -> Vec<NearTextPair> {
        let mut near = Vec::new();
        for (at, b) in texts.iter().enumerate() {
            for a in texts.iter().take(at).filter(|a| a.group != b.group) {
                let distance = (a.fingerprint ^ b.fingerprint).count_ones();
                near.push(NearTextPair { texts: [a.number, b.number], distance });
            }
        }
        near.sort_unstable();
        near
    }

    fn pairs(texts: &[GroupedText<u64>], max_pairs: u64) -> RandomPairs<'_, u64> {
        RandomPairs { texts, max_pairs }
    }

    #[test]
    fn all_pairs_of_different_groups() {
        let texts = texts(200);
        let expected = plain(&texts);
        assert!(expected.len() < 200 * 199 / 2);
        let mut distances = DistanceHistogram::default();
        expected.iter().for_each(|near| distances.add(near.distance));
        let stage = Stage::new(&(), "random pairs");
        let pairs = pairs(&texts, 200 * 199 / 2);
        assert_eq!(pairs.distances(&stage).unwrap(), distances);
        assert_eq!(pairs.sample_near(&distances, u64::MAX, &stage).unwrap(), expected);
        let none = RandomPairs::<u128> { texts: &[], max_pairs: 0 };
        assert_eq!(none.distances(&stage).unwrap(), DistanceHistogram::default());
        let one_group = [0, 1].map(|number| GroupedText { fingerprint: 1_u64, number, group: 5 });
        let pairs = RandomPairs { texts: &one_group, max_pairs: 1 };
        assert_eq!(pairs.distances(&stage).unwrap(), DistanceHistogram::default());
    }

    #[test]
    fn drawn_pairs_are_like_all() {
        let texts = texts(300);
        let stage = Stage::new(&(), "random pairs");
        let all = pairs(&texts, u64::MAX).distances(&stage).unwrap();
        let drawn = pairs(&texts, 1 << 14).distances(&stage).unwrap();
        assert!((15_000..1 << 16).contains(&drawn.all), "{}", drawn.all);
        for k in 0..=12 {
            let share = |distances: &DistanceHistogram| distances.within(k) as f64 / distances.all as f64;
            let (expected, got) = (share(&all), share(&drawn));
            // Five standard deviations.
            let tolerance = 5.0 * (expected * (1.0 - expected) / drawn.all as f64).sqrt();
            assert!((expected - got).abs() <= tolerance, "{k}: {expected} {got}");
        }
    }

    #[test]
    fn a_few_of_the_near_at_each_distance() {
        let texts = texts(400);
        let stage = Stage::new(&(), "random pairs");
        let pairs = pairs(&texts, u64::MAX);
        let distances = pairs.distances(&stage).unwrap();
        let near = pairs.sample_near(&distances, 500, &stage).unwrap();
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
