//! From the distances of labelled and random pairs to recall, precision and F1 for each k.

/// The largest k that is evaluated.
pub(crate) const MAX_K: u32 = 16;

/// With 95% confidence, a share of which nothing is seen in n independent trials is at most 3 / n (the rule of three:
/// 3 is -ln 0.05).
const RULE_OF_THREE: f64 = 3.0;

/// How far apart pairs are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Distances {
    /// Number of pairs at each distance up to [`MAX_K`].
    at: [u64; MAX_K as usize + 1],
    /// Number of all pairs.
    pub(crate) all: u64,
}

impl Distances {
    pub(crate) fn add(&mut self, distance: u32) {
        self.all += 1;
        if let Some(count) = self.at.get_mut(distance as usize) {
            *count += 1;
        }
    }

    /// Number of pairs within distance k, at most [`MAX_K`].
    pub(crate) fn within(&self, k: u32) -> u64 {
        self.at[..=k as usize].iter().sum()
    }

    pub(crate) fn merge(mut self, other: Distances) -> Distances {
        for (count, more) in self.at.iter_mut().zip(other.at) {
            *count += more;
        }
        self.all += other.all;
        self
    }
}

/// What a profile makes of the pairs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evaluation {
    /// Labelled pairs that are near-duplicates.
    pub(crate) positives: Distances,
    /// Labelled pairs that are not.
    pub(crate) negatives: Distances,
    pub(crate) random: Distances,
    /// Texts without features.
    pub(crate) empty: u64,
    /// Labelled pairs with such a text: they are in none of the counts.
    pub(crate) excluded: u64,
}

/// What k gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) k: u32,
    /// Share of the positives that are within k.
    pub(crate) recall: f64,
    /// Share of what is within k that is positive; `None` if nothing is.
    pub(crate) precision: Option<f64>,
    /// Harmonic mean of both.
    pub(crate) f1: f64,
}

/// The number of false pairs in a corpus.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FalsePairs {
    Expected(f64),
    /// No random pair was within k: with 95% confidence there are not more.
    AtMost(f64),
}

impl Evaluation {
    /// Number of labelled pairs, without those excluded.
    pub(crate) fn labelled(&self) -> u64 {
        self.positives.all + self.negatives.all
    }

    /// Share of the random pairs that are within k; `None` if there are no random pairs.
    pub(crate) fn random_share(&self, k: u32) -> Option<f64> {
        (self.random.all > 0).then(|| self.random.within(k) as f64 / self.random.all as f64)
    }

    /// What k gives where `weight` random pairs come for each labelled one.
    ///
    /// With t positives within k of p, and f false ones (labelled negatives, and the share of the random pairs), recall
    /// is t / p, precision t / (t + f), and F1 2t / (t + f + p).
    pub(crate) fn point(&self, k: u32, weight: f64) -> Point {
        let (found, positives) = (self.positives.within(k) as f64, self.positives.all as f64);
        let random = self.random_share(k).unwrap_or(0.0) * weight * self.labelled() as f64;
        let within = found + self.negatives.within(k) as f64 + random;
        Point {
            k,
            recall: found / positives,
            precision: (within > 0.0).then(|| found / within),
            f1: 2.0 * found / (within + positives),
        }
    }

    pub(crate) fn curve(&self, weight: f64) -> impl Iterator<Item = Point> + '_ {
        (0..=MAX_K).map(move |k| self.point(k, weight))
    }

    /// The point of the largest F1; of equal ones, that of the smallest k.
    pub(crate) fn best(&self, weight: f64) -> Point {
        let first = self.point(0, weight);
        self.curve(weight).fold(first, |best, point| if point.f1 > best.f1 { point } else { best })
    }

    /// Pairs of different documents within k in a corpus of `documents` that resemble each other as the random pairs
    /// do; `None` if there are no random pairs.
    pub(crate) fn false_pairs(&self, k: u32, documents: u64) -> Option<FalsePairs> {
        let pairs = documents as f64 * (documents as f64 - 1.0) / 2.0;
        let share = self.random_share(k)?;
        Some(if share > 0.0 {
            FalsePairs::Expected(share * pairs)
        } else {
            FalsePairs::AtMost((RULE_OF_THREE / self.random.all as f64).min(1.0) * pairs)
        })
    }

    /// Whether the random pairs are too few to speak of a corpus where `weight` come for each labelled pair: with none
    /// within k there may still be more false pairs than labelled ones.
    pub(crate) fn is_too_small(&self, weight: f64) -> bool {
        RULE_OF_THREE * weight > self.random.all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distances(of: &[u32]) -> Distances {
        let mut distances = Distances::default();
        of.iter().for_each(|&distance| distances.add(distance));
        distances
    }

    const POSITIVES: [u32; 8] = [0, 0, 2, 3, 3, 7, 16, 17];
    const NEGATIVES: [u32; 4] = [3, 9, 30, 64];
    const RANDOM: [u32; 24] =
        [1, 5, 5, 8, 10, 12, 16, 17, 20, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 40, 128];

    fn evaluation() -> Evaluation {
        Evaluation {
            positives: distances(&POSITIVES),
            negatives: distances(&NEGATIVES),
            random: distances(&RANDOM),
            ..Evaluation::default()
        }
    }

    /// Each pair judged by itself, every random pair `repeats` times.
    fn plain(k: u32, repeats: usize) -> Point {
        let random = RANDOM.iter().flat_map(|&distance| vec![(distance, false); repeats]);
        let labelled = POSITIVES.iter().map(|&d| (d, true)).chain(NEGATIVES.iter().map(|&d| (d, false)));
        let (mut right, mut wrong, mut missed) = (0, 0, 0);
        for (distance, is_positive) in labelled.chain(random) {
            match (distance <= k, is_positive) {
                (true, true) => right += 1,
                (true, false) => wrong += 1,
                (false, true) => missed += 1,
                (false, false) => {}
            }
        }
        let recall = f64::from(right) / f64::from(right + missed);
        let precision = f64::from(right) / f64::from(right + wrong);
        Point { k, recall, precision: Some(precision), f1: 2.0 * precision * recall / (precision + recall) }
    }

    #[test]
    fn agrees_with_the_definition() {
        // 12 labelled pairs: a weight of 2 makes the 24 random pairs count once, 10 five times.
        for (weight, repeats) in [(2.0, 1), (10.0, 5), (0.0, 0)] {
            let points: Vec<Point> = evaluation().curve(weight).collect();
            assert_eq!(points.len(), 17);
            for (k, point) in (0..).zip(points) {
                let plain = plain(k, repeats);
                assert_eq!((point.k, point.recall), (k, plain.recall));
                assert!((point.precision.unwrap() - plain.precision.unwrap()).abs() < 1e-12, "{point:?}");
                assert!((point.f1 - plain.f1).abs() < 1e-12, "{point:?} {plain:?}");
            }
        }
    }

    #[test]
    fn by_hand() {
        // Within 3: five of eight positives, one negative, and one random pair of 24.
        let point = evaluation().point(3, 2.0);
        assert_eq!(point, Point { k: 3, recall: 0.625, precision: Some(5.0 / 7.0), f1: 10.0 / 15.0 });
        assert_eq!(evaluation().random_share(3), Some(1.0 / 24.0));
    }

    #[test]
    fn nothing_within_k_has_no_precision() {
        let far = Evaluation { positives: distances(&[5]), ..Evaluation::default() };
        assert_eq!(far.point(4, 100.0), Point { k: 4, recall: 0.0, precision: None, f1: 0.0 });
        assert_eq!((far.random_share(4), far.false_pairs(4, 10)), (None, None));
    }

    #[test]
    fn the_smallest_of_the_best() {
        let flat = Evaluation { positives: distances(&[2, 2, 9]), ..Evaluation::default() };
        assert_eq!(flat.best(1.0).k, 9);
        let nothing = Evaluation { positives: distances(&[60]), ..Evaluation::default() };
        assert_eq!(nothing.best(1.0).k, 0);
        let mixed = Evaluation { positives: distances(&[2, 2, 9]), random: distances(&[6, 40]), ..flat };
        // From 6 on, half of the random pairs outweigh the third positive.
        assert_eq!(mixed.best(10.0).k, 2);
    }

    #[test]
    fn false_pairs_of_a_corpus() {
        let evaluation = evaluation();
        // 1 of 24, of 45 pairs.
        assert_eq!(evaluation.false_pairs(3, 10), Some(FalsePairs::Expected(45.0 / 24.0)));
        assert_eq!(evaluation.false_pairs(0, 10), Some(FalsePairs::AtMost(45.0 / 8.0)));
        assert_eq!(evaluation.false_pairs(0, 1), Some(FalsePairs::AtMost(0.0)));
        let one = Evaluation { random: distances(&[40]), ..Evaluation::default() };
        assert_eq!(one.false_pairs(3, 10), Some(FalsePairs::AtMost(45.0)));
        assert!(!evaluation.is_too_small(8.0) && evaluation.is_too_small(8.1));
    }

    #[test]
    fn merging_is_adding() {
        let (left, right) = RANDOM.split_at(9);
        assert_eq!(distances(left).merge(distances(right)), distances(&RANDOM));
    }
}
