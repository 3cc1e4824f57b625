//! From the distances of labelled and random pairs to recall, and precision and F1 in a corpus, for each k.

use serde::{Deserialize, Serialize};

/// The largest k that is evaluated.
pub const MAX_K: u32 = 16;
/// A distance of a smaller F1 is not recommended.
pub const GOOD_F1: f64 = 0.8;

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

    /// Number of pairs at a distance of at most [`MAX_K`].
    pub(crate) fn at(&self, distance: u32) -> u64 {
        self.at[distance as usize]
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

/// How far apart a profile brings the pairs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Compared {
    /// Labelled pairs that are near-duplicates.
    pub(crate) positives: Distances,
    /// Labelled pairs that are not.
    pub(crate) negatives: Distances,
    pub(crate) random: Distances,
    /// Random pairs of which the texts were compared, all or some at each distance up to [`MAX_K`].
    pub(crate) looked_at: Distances,
    /// Those of them that are alike.
    pub(crate) alike: Distances,
    /// Texts without features.
    pub(crate) empty: u64,
    /// Labelled pairs with such a text: they are in none of the counts.
    pub(crate) excluded: u64,
}

/// What a distance gives.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The distance, in bits.
    pub k: u32,
    /// Positive pairs within k.
    pub positives: u64,
    /// Labelled pairs within k that are not positive.
    pub negatives: u64,
    /// Random pairs within k.
    pub random: u64,
    /// How many of them are alike by their texts, and so not false; where only some were looked at, by their share.
    pub alike: u64,
    /// Share of the positive pairs that are within k.
    pub recall: f64,
    /// Share of positive pairs in all that are within k in the corpus, but for those alike; `None` if nothing is.
    pub precision: Option<f64>,
    /// Harmonic mean of recall and precision.
    pub f1: f64,
    /// Share of the random pairs that are within k and not alike; `None` if there are no random pairs.
    pub false_share: Option<f64>,
    /// Pairs within k in the corpus that are false; `None` if there are no random pairs.
    pub false_pairs: Option<FalsePairs>,
}

/// The number of false pairs in a corpus whose documents resemble each other as the random pairs do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum FalsePairs {
    /// So many are to be expected.
    Expected(f64),
    /// No false pair was seen within k: with 95% confidence there are not more.
    AtMost(f64),
}

/// What a profile makes of the pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfileCurve {
    /// The name of the profile.
    pub profile: String,
    /// Labelled pairs that are near-duplicates.
    pub positives: u64,
    /// Labelled pairs that are not.
    pub negatives: u64,
    /// Pairs of texts of different documents that were compared.
    pub random: u64,
    /// Those within [`MAX_K`] of which the texts were compared: all, or at each distance so many as say enough.
    pub looked_at: u64,
    /// Labelled pairs of which a text has no features: they are in none of the counts.
    pub excluded: u64,
    /// Texts without features.
    pub empty: u64,
    /// What each distance gives, from 0 to [`MAX_K`].
    pub points: Vec<Point>,
    /// The distance of the largest F1 in the corpus; of equal ones the smallest.
    pub best: u32,
    /// Whether the random pairs are too few to speak of the corpus: with none within k there may still be more false pairs
    /// than labelled ones.
    pub too_few_random: bool,
}

impl ProfileCurve {
    /// What the pairs give in a corpus of so many documents, each in one labelled pair: of its n(n-1)/2 pairs n/2 are
    /// labelled, and each of these meets n-1 random ones.
    pub(crate) fn new(profile: String, compared: &Compared, documents: u64) -> Self {
        let weight = documents.saturating_sub(1) as f64;
        let points: Vec<Point> = (0..=MAX_K)
            .map(|k| {
                let (recall, precision, f1) = compared.rates(k, weight);
                Point {
                    k,
                    positives: compared.positives.within(k),
                    negatives: compared.negatives.within(k),
                    random: compared.random.within(k),
                    alike: compared.alike_within(k).round() as u64,
                    recall,
                    precision,
                    f1,
                    false_share: compared.false_share(k),
                    false_pairs: compared.false_pairs(k, documents),
                }
            })
            .collect();
        let best =
            |best: u32, point: &Point| if point.f1 > points[best as usize].f1 { point.k } else { best };
        ProfileCurve {
            profile,
            positives: compared.positives.all,
            negatives: compared.negatives.all,
            random: compared.random.all,
            looked_at: compared.looked_at.all,
            excluded: compared.excluded,
            empty: compared.empty,
            best: points.iter().fold(0, best),
            too_few_random: compared.is_too_small(weight),
            points,
        }
    }

    /// What the [best](ProfileCurve::best) distance gives.
    pub fn best(&self) -> &Point {
        &self.points[self.best as usize]
    }

    /// What the best distance gives, if it is to be recommended for the corpus: its F1 is at least [`GOOD_F1`], and the random
    /// pairs are enough to say so.
    pub fn recommended(&self) -> Option<&Point> {
        Some(self.best()).filter(|point| point.f1 >= GOOD_F1 && !self.too_few_random)
    }

    /// The size of the largest corpus of which the random pairs are enough to speak.
    pub fn most_documents(&self) -> u64 {
        (self.random as f64 / RULE_OF_THREE) as u64 + 1
    }
}

impl Compared {
    /// Number of labelled pairs, without those excluded.
    fn labelled(&self) -> u64 {
        self.positives.all + self.negatives.all
    }

    /// Random pairs within k that are alike: at each distance by their share in those looked at.
    fn alike_within(&self, k: u32) -> f64 {
        let at = |distance| {
            let looked_at = self.looked_at.at(distance).max(1) as f64;
            self.random.at(distance) as f64 * self.alike.at(distance) as f64 / looked_at
        };
        (0..=k).map(at).sum()
    }

    /// Share of the random pairs that are within k and not alike; `None` if there are no random pairs.
    fn false_share(&self, k: u32) -> Option<f64> {
        let count = self.random.within(k) as f64 - self.alike_within(k);
        (self.random.all > 0).then(|| count / self.random.all as f64)
    }

    /// Recall, precision and F1 where `weight` random pairs come for each labelled one.
    ///
    /// With t positives within k of p, and f false ones (labelled negatives, and the random pairs that are not alike), recall
    /// is t / p, precision t / (t + f), and F1 2t / (t + f + p).
    fn rates(&self, k: u32, weight: f64) -> (f64, Option<f64>, f64) {
        let (found, positives) = (self.positives.within(k) as f64, self.positives.all as f64);
        let random = self.false_share(k).unwrap_or(0.0) * weight * self.labelled() as f64;
        let within = found + self.negatives.within(k) as f64 + random;
        let precision = (within > 0.0).then(|| found / within);
        (found / positives, precision, 2.0 * found / (within + positives))
    }

    /// False pairs within k in a corpus of `documents` that resemble each other as the random pairs do; `None` if there are
    /// no random pairs.
    fn false_pairs(&self, k: u32, documents: u64) -> Option<FalsePairs> {
        let pairs = documents as f64 * (documents as f64 - 1.0) / 2.0;
        let share = self.false_share(k)?;
        if share > 0.0 {
            return Some(FalsePairs::Expected(share * pairs));
        }
        // Where only some were looked at, each of them stands for several.
        let stands_for =
            |distance| self.random.at(distance) as f64 / self.looked_at.at(distance).max(1) as f64;
        let most = (0..=k).map(stands_for).fold(1.0, f64::max);
        Some(FalsePairs::AtMost((RULE_OF_THREE * most / self.random.all as f64).min(1.0) * pairs))
    }

    /// Whether the random pairs are too few to speak of a corpus where `weight` come for each labelled pair: with none
    /// within k there may still be more false pairs than labelled ones.
    fn is_too_small(&self, weight: f64) -> bool {
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

    fn compared() -> Compared {
        Compared {
            positives: distances(&POSITIVES),
            negatives: distances(&NEGATIVES),
            random: distances(&RANDOM),
            ..Compared::default()
        }
    }

    /// Each pair judged by itself, every random pair `repeats` times.
    fn plain(k: u32, repeats: usize) -> (f64, f64, f64) {
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
        (recall, precision, 2.0 * precision * recall / (precision + recall))
    }

    #[test]
    fn agrees_with_the_definition() {
        // 12 labelled pairs: a weight of 2 makes the 24 random pairs count once, 10 five times.
        for (weight, repeats) in [(2, 1), (10, 5), (0, 0)] {
            let curve = ProfileCurve::new("any".to_owned(), &compared(), weight + 1);
            assert_eq!(curve.points.len(), 17);
            for (k, point) in (0..).zip(curve.points) {
                let (recall, precision, f1) = plain(k, repeats);
                assert_eq!((point.k, point.recall), (k, recall));
                assert!((point.precision.unwrap() - precision).abs() < 1e-12, "{point:?}");
                assert!((point.f1 - f1).abs() < 1e-12, "{point:?} {f1}");
            }
        }
    }

    #[test]
    fn by_hand() {
        // Within 3: five of eight positives, one negative, and one random pair of 24.
        assert_eq!(compared().rates(3, 2.0), (0.625, Some(5.0 / 7.0), 10.0 / 15.0));
        assert_eq!(compared().false_share(3), Some(1.0 / 24.0));
    }

    #[test]
    fn what_is_alike_is_not_false() {
        // The pair at 1 and one of the two at 5.
        let all = Compared { looked_at: distances(&[1, 5, 5, 8]), alike: distances(&[1, 5]), ..compared() };
        assert_eq!(all.rates(3, 2.0), (0.625, Some(5.0 / 6.0), 10.0 / 14.0));
        assert_eq!((all.false_share(3), all.false_share(5)), (Some(0.0), Some(1.0 / 24.0)));
        let curve = ProfileCurve::new("any".to_owned(), &all, 10);
        let point = |k: usize| (curve.points[k].random, curve.points[k].alike, curve.points[k].false_pairs);
        assert_eq!(point(3), (1, 1, Some(FalsePairs::AtMost(45.0 / 8.0))));
        assert_eq!(point(5), (3, 2, Some(FalsePairs::Expected(45.0 / 24.0))));
        assert_eq!(curve.looked_at, 4);
    }

    #[test]
    fn a_share_of_the_random_pairs_stands_for_all() {
        // Of 60 pairs at distance 2 ten were looked at, and four of them are alike.
        let random = [&[2; 60][..], &[40; 40]].concat();
        let some = |alike: usize| Compared {
            positives: distances(&[0]),
            random: distances(&random),
            looked_at: distances(&[2; 10]),
            alike: distances(&vec![2; alike]),
            ..Compared::default()
        };
        assert_eq!((some(4).alike_within(1), some(4).alike_within(2)), (0.0, 24.0));
        assert_eq!(some(4).false_share(2), Some(0.36));
        // All ten alike: with 95% confidence not more than 3 of 10 are false, 18 of the 60.
        assert_eq!(some(10).false_pairs(2, 10), Some(FalsePairs::AtMost(45.0 * 0.18)));
        assert_eq!(some(10).false_pairs(1, 10), Some(FalsePairs::AtMost(45.0 * 0.03)));
    }

    #[test]
    fn nothing_within_k_has_no_precision() {
        let far = Compared { positives: distances(&[5]), ..Compared::default() };
        assert_eq!(far.rates(4, 100.0), (0.0, None, 0.0));
        assert_eq!((far.false_share(4), far.false_pairs(4, 10)), (None, None));
    }

    #[test]
    fn the_smallest_of_the_best() {
        let best = |compared: &Compared, documents| {
            let curve = ProfileCurve::new("any".to_owned(), compared, documents);
            assert_eq!(curve.best().k, curve.best);
            curve.best
        };
        let flat = Compared { positives: distances(&[2, 2, 9]), ..Compared::default() };
        assert_eq!(best(&flat, 2), 9);
        let nothing = Compared { positives: distances(&[60]), ..Compared::default() };
        assert_eq!(best(&nothing, 2), 0);
        let mixed = Compared { random: distances(&[6, 40]), ..flat };
        // From 6 on, half of the random pairs outweigh the third positive, unless there are none for each.
        assert_eq!((best(&mixed, 11), best(&mixed, 1)), (2, 9));
    }

    #[test]
    fn only_what_is_good_is_recommended() {
        let curve = |positives: &[u32], random: &[u32], documents| {
            let compared = Compared {
                positives: distances(positives),
                random: distances(&[random, &[40; 300]].concat()),
                ..Compared::default()
            };
            ProfileCurve::new("any".to_owned(), &compared, documents)
        };
        let good = curve(&[1, 3, 3, 20], &[5], 101);
        assert_eq!(good.recommended().map(|point| (point.k, point.recall)), Some((3, 0.75)));
        assert!((good.best().f1, good.best().precision) == (6.0 / 7.0, Some(1.0)));
        // 301 random pairs speak of 101 documents.
        assert_eq!(good.most_documents(), 101);
        let many = curve(&[1, 3, 3, 20], &[5], 102);
        assert!(many.too_few_random && many.recommended().is_none());
        // Half of the positives are beyond 16: F1 2/3.
        assert!(curve(&[1, 20], &[], 10).recommended().is_none());
        // At 0 bits as many false pairs as positive ones, for ten documents; for four, a third.
        let template = |documents| curve(&[0, 0], &[0; 38], documents).recommended().map(|point| point.k);
        assert_eq!((template(4), template(10)), (Some(0), None));
    }

    #[test]
    fn false_pairs_of_a_corpus() {
        let compared = compared();
        // 1 of 24, of 45 pairs.
        assert_eq!(compared.false_pairs(3, 10), Some(FalsePairs::Expected(45.0 / 24.0)));
        assert_eq!(compared.false_pairs(0, 10), Some(FalsePairs::AtMost(45.0 / 8.0)));
        assert_eq!(compared.false_pairs(0, 1), Some(FalsePairs::AtMost(0.0)));
        let one = Compared { random: distances(&[40]), ..Compared::default() };
        assert_eq!(one.false_pairs(3, 10), Some(FalsePairs::AtMost(45.0)));
        assert!(!compared.is_too_small(8.0) && compared.is_too_small(8.1));
    }

    #[test]
    fn merging_is_adding() {
        let (left, right) = RANDOM.split_at(9);
        assert_eq!(distances(left).merge(distances(right)), distances(&RANDOM));
    }
}
