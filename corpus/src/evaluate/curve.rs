//! Recall, precision and F1 for each distance k, from the distances of labelled and random pairs.

use serde::{Deserialize, Serialize};

/// Largest distance k that is evaluated, in bits.
pub const MAX_K: u32 = 16;
/// Smallest F1 (harmonic mean of recall and precision) of a recommended distance.
pub const MIN_RECOMMENDED_F1: f64 = 0.8;

/// Numerator of the rule of three: if an event is not seen in n independent trials, its probability is at most 3 / n with 95%
/// confidence (3 is about -ln 0.05).
const RULE_OF_THREE: f64 = 3.0;

/// Histogram of the distances of pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DistanceHistogram {
    /// Number of pairs at each distance up to [`MAX_K`].
    at: [u64; MAX_K as usize + 1],
    /// Number of all pairs, at any distance.
    pub(crate) all: u64,
}

impl DistanceHistogram {
    pub(crate) fn add(&mut self, distance: u32) {
        self.all += 1;
        if let Some(count) = self.at.get_mut(distance as usize) {
            *count += 1;
        }
    }

    /// Number of pairs at exactly this distance, which must not exceed [`MAX_K`].
    pub(crate) fn at(&self, distance: u32) -> u64 {
        self.at[distance as usize]
    }

    /// Number of pairs within distance k, which must not exceed [`MAX_K`].
    pub(crate) fn within(&self, k: u32) -> u64 {
        self.at[..=k as usize].iter().sum()
    }

    pub(crate) fn merge(mut self, other: DistanceHistogram) -> DistanceHistogram {
        for (count, more) in self.at.iter_mut().zip(other.at) {
            *count += more;
        }
        self.all += other.all;
        self
    }
}

/// Histograms of the distances of labelled and random pairs, by the fingerprints of one profile.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProfileDistances {
    /// Labelled pairs that are near-duplicates.
    pub(crate) positives: DistanceHistogram,
    /// Labelled pairs that are not near-duplicates.
    pub(crate) negatives: DistanceHistogram,
    pub(crate) random: DistanceHistogram,
    /// Random pairs whose texts were compared: at each distance up to [`MAX_K`], all random pairs or a sample of them.
    pub(crate) verified: DistanceHistogram,
    /// Pairs in [`verified`](Self::verified) whose texts are so similar that they count as [alike](crate::evaluate).
    pub(crate) alike: DistanceHistogram,
    /// Number of texts without features, which therefore have no fingerprint.
    pub(crate) empty: u64,
    /// Number of labelled pairs with a text that has no features, and so no fingerprint. No other field counts such pairs.
    pub(crate) excluded: u64,
}

/// Recall, precision and F1 of a search that finds the pairs within one distance k.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Distance, in bits.
    pub k: u32,
    /// Number of positive pairs (labelled as near-duplicates) within k.
    pub positives: u64,
    /// Number of negative pairs (labelled as different) within k.
    pub negatives: u64,
    /// Number of random pairs (of unrelated texts) within k.
    pub random: u64,
    /// Number of random pairs within k whose texts are so similar that they count as [alike](crate::evaluate), not as false. The
    /// number is an estimate if only a sample of the texts was compared.
    pub alike: u64,
    /// Share of the positive pairs that are within k.
    pub recall: f64,
    /// Predicted share of positive pairs among all pairs within k, in a corpus of
    /// [`documents`](crate::evaluate::EvaluateOptions::documents) documents. [Alike](CurvePoint::alike) pairs do not
    /// count. `None` if no pair is within k.
    pub precision: Option<f64>,
    /// Harmonic mean of recall and precision.
    pub f1: f64,
    /// Share of the random pairs that are within distance k and not [alike](CurvePoint::alike); `None` without random pairs.
    pub false_share: Option<f64>,
    /// Predicted number of false pairs within k, in a corpus of [`documents`](crate::evaluate::EvaluateOptions::documents)
    /// documents; `None` without random pairs.
    pub false_pairs: Option<FalsePairs>,
}

/// Predicted number of false pairs in a corpus: pairs of documents that are within a distance k, but not similar. The
/// prediction assumes that the share of false pairs among all pairs of the corpus is the same as among the random pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum FalsePairs {
    /// Expected number of false pairs.
    Expected(f64),
    /// Upper limit of the number of false pairs, with 95% confidence. Used if no random pair within k is false.
    AtMost(f64),
}

/// Recall, precision and F1 of one profile for each distance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfileCurve {
    /// Name of the profile.
    pub profile: String,
    /// Number of labelled pairs that are near-duplicates.
    pub positives: u64,
    /// Number of labelled pairs that are not near-duplicates.
    pub negatives: u64,
    /// Number of random pairs, which are pairs of unrelated texts.
    pub random: u64,
    /// Number of random pairs within [`MAX_K`] whose texts were compared. At a distance that very many random pairs have, only
    /// the texts of a sample are compared.
    #[serde(rename = "looked_at")]
    pub verified: u64,
    /// Number of labelled pairs with a text that has no features, and so no fingerprint. The other counts exclude such pairs.
    pub excluded: u64,
    /// Number of texts without features, which therefore have no fingerprint.
    pub empty: u64,
    /// Recall, precision and F1 for each distance from 0 to [`MAX_K`].
    pub points: Vec<CurvePoint>,
    /// Distance with the largest predicted F1. If several distances have the largest F1, the smallest of these distances.
    pub best: u32,
    /// Whether there are too few random pairs (of unrelated texts) for predictions about the corpus. In this case, false pairs
    /// can be the majority of the pairs within a distance in the corpus, even if no random pair is within the distance.
    pub too_few_random: bool,
}

impl ProfileCurve {
    /// Computes the curve for a corpus of n = `documents` documents, each in one labelled pair. The corpus has n / 2
    /// labelled pairs and n(n - 1) / 2 pairs in total, which is n - 1 for each labelled pair. So n - 1 random pairs are
    /// counted for each labelled pair.
    pub(crate) fn new(profile: String, compared: &ProfileDistances, documents: u64) -> Self {
        let weight = documents.saturating_sub(1) as f64;
        let points: Vec<CurvePoint> = (0..=MAX_K)
            .map(|k| {
                let (recall, precision, f1) = compared.rates(k, weight);
                CurvePoint {
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
            |best: u32, point: &CurvePoint| if point.f1 > points[best as usize].f1 { point.k } else { best };
        ProfileCurve {
            profile,
            positives: compared.positives.all,
            negatives: compared.negatives.all,
            random: compared.random.all,
            verified: compared.verified.all,
            excluded: compared.excluded,
            empty: compared.empty,
            best: points.iter().fold(0, best),
            too_few_random: compared.has_too_few_random(weight),
            points,
        }
    }

    /// Recall, precision and F1 of the [best](ProfileCurve::best) distance.
    pub fn best(&self) -> &CurvePoint {
        &self.points[self.best as usize]
    }

    /// Recall, precision and F1 of the best distance; `None` if it cannot be recommended, because its F1 is below
    /// [`MIN_RECOMMENDED_F1`], or because there are [too few random pairs](ProfileCurve::too_few_random).
    pub fn recommended(&self) -> Option<&CurvePoint> {
        Some(self.best()).filter(|point| point.f1 >= MIN_RECOMMENDED_F1 && !self.too_few_random)
    }

    /// Size, in documents, of the largest corpus that the random pairs suffice for. See [`ProfileCurve::too_few_random`].
    pub fn max_documents(&self) -> u64 {
        (self.random as f64 / RULE_OF_THREE) as u64 + 1
    }
}

impl ProfileDistances {
    /// Number of labelled pairs, without the [excluded](Self::excluded) ones.
    fn labelled_pairs(&self) -> u64 {
        self.positives.all + self.negatives.all
    }

    /// Estimated number of random pairs within distance k whose texts are [alike](CurvePoint::alike). Only the texts of a sample
    /// of the random pairs are compared. At each distance, the share of alike pairs in the sample is taken as the share in all
    /// random pairs.
    fn alike_within(&self, k: u32) -> f64 {
        let at = |distance| {
            let looked_at = self.verified.at(distance).max(1) as f64;
            self.random.at(distance) as f64 * self.alike.at(distance) as f64 / looked_at
        };
        (0..=k).map(at).sum()
    }

    /// Share of the random pairs that are within distance k and not [alike](CurvePoint::alike); `None` without random pairs.
    fn false_share(&self, k: u32) -> Option<f64> {
        let count = self.random.within(k) as f64 - self.alike_within(k);
        (self.random.all > 0).then(|| count / self.random.all as f64)
    }

    /// Returns recall, precision and F1 of distance k. Scales the random pairs to `weight` for each labelled pair.
    ///
    /// Let p be the number of positive pairs, t the number of positive pairs within k, and f the number of false pairs within
    /// k: labelled negatives, and random pairs that are not alike. Recall is t / p, precision is t / (t + f), and F1 is
    /// 2t / (t + f + p).
    fn rates(&self, k: u32, weight: f64) -> (f64, Option<f64>, f64) {
        let (found, positives) = (self.positives.within(k) as f64, self.positives.all as f64);
        let random = self.false_share(k).unwrap_or(0.0) * weight * self.labelled_pairs() as f64;
        let within = found + self.negatives.within(k) as f64 + random;
        let precision = (within > 0.0).then(|| found / within);
        (found / positives, precision, 2.0 * found / (within + positives))
    }

    /// Predicts the number of false pairs within k in a corpus of `documents` documents, from the share of false pairs among
    /// the random pairs. `None` without random pairs.
    fn false_pairs(&self, k: u32, documents: u64) -> Option<FalsePairs> {
        let pairs = documents as f64 * (documents as f64 - 1.0) / 2.0;
        let share = self.false_share(k)?;
        if share > 0.0 {
            return Some(FalsePairs::Expected(share * pairs));
        }
        // In a sample, each pair represents several pairs.
        let pairs_per_sample =
            |distance| self.random.at(distance) as f64 / self.verified.at(distance).max(1) as f64;
        let most = (0..=k).map(pairs_per_sample).fold(1.0, f64::max);
        Some(FalsePairs::AtMost((RULE_OF_THREE * most / self.random.all as f64).min(1.0) * pairs))
    }

    /// Whether there are too few random pairs for a corpus that has, for each labelled pair, `weight` pairs in total. See
    /// [`ProfileCurve::too_few_random`].
    fn has_too_few_random(&self, weight: f64) -> bool {
        RULE_OF_THREE * weight > self.random.all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distances(values: &[u32]) -> DistanceHistogram {
        let mut distances = DistanceHistogram::default();
        values.iter().for_each(|&distance| distances.add(distance));
        distances
    }

    const POSITIVES: [u32; 8] = [0, 0, 2, 3, 3, 7, 16, 17];
    const NEGATIVES: [u32; 4] = [3, 9, 30, 64];
    const RANDOM: [u32; 24] =
        [1, 5, 5, 8, 10, 12, 16, 17, 20, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 40, 128];

    fn compared() -> ProfileDistances {
        ProfileDistances {
            positives: distances(&POSITIVES),
            negatives: distances(&NEGATIVES),
            random: distances(&RANDOM),
            ..ProfileDistances::default()
        }
    }

    /// Recall, precision and F1 computed by their definitions, with every random pair counted `repeats` times.
    fn plain(k: u32, repeats: usize) -> (f64, f64, f64) {
        let random = RANDOM.iter().flat_map(|&distance| vec![(distance, false); repeats]);
        let with_label = POSITIVES.iter().map(|&d| (d, true)).chain(NEGATIVES.iter().map(|&d| (d, false)));
        let (mut right, mut wrong, mut missed) = (0, 0, 0);
        for (distance, is_positive) in with_label.chain(random) {
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
    fn similar_pairs_are_not_false_pairs() {
        // The pair at 1 and one of the two at 5.
        let all =
            ProfileDistances { verified: distances(&[1, 5, 5, 8]), alike: distances(&[1, 5]), ..compared() };
        assert_eq!(all.rates(3, 2.0), (0.625, Some(5.0 / 6.0), 10.0 / 14.0));
        assert_eq!((all.false_share(3), all.false_share(5)), (Some(0.0), Some(1.0 / 24.0)));
        let curve = ProfileCurve::new("any".to_owned(), &all, 10);
        let point = |k: usize| (curve.points[k].random, curve.points[k].alike, curve.points[k].false_pairs);
        assert_eq!(point(3), (1, 1, Some(FalsePairs::AtMost(45.0 / 8.0))));
        assert_eq!(point(5), (3, 2, Some(FalsePairs::Expected(45.0 / 24.0))));
        assert_eq!(curve.verified, 4);
    }

    #[test]
    fn a_share_of_the_random_pairs_represents_all() {
        // The texts of 10 of 60 pairs at distance 2 were compared, and 4 of the 10 are alike.
        let random = [&[2; 60][..], &[40; 40]].concat();
        let some = |alike: usize| ProfileDistances {
            positives: distances(&[0]),
            random: distances(&random),
            verified: distances(&[2; 10]),
            alike: distances(&vec![2; alike]),
            ..ProfileDistances::default()
        };
        assert_eq!((some(4).alike_within(1), some(4).alike_within(2)), (0.0, 24.0));
        assert_eq!(some(4).false_share(2), Some(0.36));
        // All ten alike: with 95% confidence not more than 3 of 10 are false, 18 of the 60.
        assert_eq!(some(10).false_pairs(2, 10), Some(FalsePairs::AtMost(45.0 * 0.18)));
        assert_eq!(some(10).false_pairs(1, 10), Some(FalsePairs::AtMost(45.0 * 0.03)));
    }

    #[test]
    fn nothing_within_k_has_no_precision() {
        let far = ProfileDistances { positives: distances(&[5]), ..ProfileDistances::default() };
        assert_eq!(far.rates(4, 100.0), (0.0, None, 0.0));
        assert_eq!((far.false_share(4), far.false_pairs(4, 10)), (None, None));
    }

    #[test]
    fn the_smallest_of_the_best() {
        let best = |compared: &ProfileDistances, documents| {
            let curve = ProfileCurve::new("any".to_owned(), compared, documents);
            assert_eq!(curve.best().k, curve.best);
            curve.best
        };
        let flat = ProfileDistances { positives: distances(&[2, 2, 9]), ..ProfileDistances::default() };
        assert_eq!(best(&flat, 2), 9);
        let nothing = ProfileDistances { positives: distances(&[60]), ..ProfileDistances::default() };
        assert_eq!(best(&nothing, 2), 0);
        let mixed = ProfileDistances { random: distances(&[6, 40]), ..flat };
        // From 6 on, the false pairs cost more than the third positive pair gains, unless the weight is 0.
        assert_eq!((best(&mixed, 11), best(&mixed, 1)), (2, 9));
    }

    #[test]
    fn only_good_distances_are_recommended() {
        let curve = |positives: &[u32], random: &[u32], documents| {
            let compared = ProfileDistances {
                positives: distances(positives),
                random: distances(&[random, &[40; 300]].concat()),
                ..ProfileDistances::default()
            };
            ProfileCurve::new("any".to_owned(), &compared, documents)
        };
        let good = curve(&[1, 3, 3, 20], &[5], 101);
        assert_eq!(good.recommended().map(|point| (point.k, point.recall)), Some((3, 0.75)));
        assert!((good.best().f1, good.best().precision) == (6.0 / 7.0, Some(1.0)));
        // 301 random pairs are enough for 101 documents.
        assert_eq!(good.max_documents(), 101);
        let many = curve(&[1, 3, 3, 20], &[5], 102);
        assert!(many.too_few_random && many.recommended().is_none());
        // Half of the positives are beyond 16: F1 2/3.
        assert!(curve(&[1, 20], &[], 10).recommended().is_none());
        // At 0 bits, a corpus of ten documents has equal numbers of false and positive pairs. In a corpus of four, a third as many are false.
        let template = |documents| curve(&[0, 0], &[0; 38], documents).recommended().map(|point| point.k);
        assert_eq!((template(4), template(10)), (Some(0), None));
    }

    #[test]
    fn false_pairs_of_a_corpus() {
        let compared = compared();
        // The corpus has 45 pairs, and a share of 1 / 24 is false.
        assert_eq!(compared.false_pairs(3, 10), Some(FalsePairs::Expected(45.0 / 24.0)));
        assert_eq!(compared.false_pairs(0, 10), Some(FalsePairs::AtMost(45.0 / 8.0)));
        assert_eq!(compared.false_pairs(0, 1), Some(FalsePairs::AtMost(0.0)));
        let one = ProfileDistances { random: distances(&[40]), ..ProfileDistances::default() };
        assert_eq!(one.false_pairs(3, 10), Some(FalsePairs::AtMost(45.0)));
        assert!(!compared.has_too_few_random(8.0) && compared.has_too_few_random(8.1));
    }

    #[test]
    fn merging_is_adding() {
        let (left, right) = RANDOM.split_at(9);
        assert_eq!(distances(left).merge(distances(right)), distances(&RANDOM));
    }
}
