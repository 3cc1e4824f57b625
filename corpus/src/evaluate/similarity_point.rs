//! Precision and recall of finding near-duplicates by comparing the texts themselves, not fingerprints.

use serde::{Deserialize, Serialize};
use simstore::{Error, Result};

/// Precision and recall of a search that compares texts: it finds a pair if the Jaccard similarity of the shingle sets is at
/// least a threshold.
///
/// The threshold is at least [`EvaluateOptions::alike_from`](crate::evaluate::EvaluateOptions::alike_from). Two unrelated texts
/// that reach it therefore count as near-duplicates, never as a false positive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimilarityPoint {
    /// Threshold of Jaccard similarity.
    pub similar: f64,
    /// Number of positive pairs (labelled as near-duplicates) at or above the threshold.
    pub positives: u64,
    /// Number of negative pairs (labelled as different) at or above the threshold.
    pub negatives: u64,
    /// Share of the positive pairs that are at or above the threshold.
    pub recall: f64,
    /// Share of positive pairs among the labelled pairs at or above the threshold; `None` without such pairs.
    pub precision: Option<f64>,
    /// Harmonic mean of recall and precision.
    pub f1: f64,
    /// Number of labelled pairs in which a text has no shingles. No other field counts such pairs.
    pub excluded: u64,
}

impl SimilarityPoint {
    /// Evaluates the threshold `similar`. `pairs` has the similarity of each labelled pair, and whether the pair is positive.
    /// `excluded` is the number of labelled pairs that are left out because a text has no shingles.
    pub(crate) fn new(similar: f64, pairs: &[(f64, bool)], excluded: u64) -> Result<Self> {
        let count = |is_positive, least| {
            pairs.iter().filter(|pair| pair.0 >= least && pair.1 == is_positive).count() as u64
        };
        let (positives, negatives, all) = (count(true, similar), count(false, similar), count(true, 0.0));
        if all == 0 {
            return Err(Error::BadArgument(
                "no positive pair has shingles in both texts, so there is nothing to measure; use other pairs, or no \
                 option `similar`"
                    .to_owned(),
            ));
        }
        let (found, within) = (positives as f64, (positives + negatives) as f64);
        Ok(SimilarityPoint {
            similar,
            positives,
            negatives,
            recall: found / all as f64,
            precision: (within > 0.0).then(|| found / within),
            f1: 2.0 * found / (within + all as f64),
            excluded,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let pairs = [(1.0, true), (0.8, true), (0.79, true), (0.0, true), (0.9, false), (0.1, false)];
        let point = SimilarityPoint::new(0.8, &pairs, 7).unwrap();
        assert_eq!((point.positives, point.negatives, point.excluded), (2, 1, 7));
        assert_eq!((point.recall, point.precision, point.f1), (0.5, Some(2.0 / 3.0), 4.0 / 7.0));
        let none = SimilarityPoint::new(0.95, &pairs[1..], 0).unwrap();
        assert_eq!((none.recall, none.precision, none.f1), (0.0, None, 0.0));
        assert!(SimilarityPoint::new(0.5, &pairs[4..], 0).is_err());
    }
}
