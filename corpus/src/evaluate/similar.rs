//! Precision and recall of comparing the texts themselves, for comparison with the distances.

use serde::{Deserialize, Serialize};
use simstore::{Error, Result};

/// Precision and recall of a similarity threshold: pairs are found by the Jaccard similarity of their shingle sets.
///
/// Random pairs above the threshold count as alike, so none of them is false.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimilarPoint {
    /// The least similarity.
    pub similar: f64,
    /// Positive pairs that are so similar.
    pub positives: u64,
    /// Labelled pairs that are so similar and not positive.
    pub negatives: u64,
    /// Share of the positive pairs that are so similar.
    pub recall: f64,
    /// Share of positive pairs in all labelled ones that are so similar; `None` if none are.
    pub precision: Option<f64>,
    /// Harmonic mean of recall and precision.
    pub f1: f64,
    /// Labelled pairs where a text has no shingles; no other field counts them.
    pub excluded: u64,
}

impl SimilarPoint {
    /// Evaluates threshold `similar` on pairs of (similarity, whether positive).
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
        Ok(SimilarPoint {
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
        let point = SimilarPoint::new(0.8, &pairs, 7).unwrap();
        assert_eq!((point.positives, point.negatives, point.excluded), (2, 1, 7));
        assert_eq!((point.recall, point.precision, point.f1), (0.5, Some(2.0 / 3.0), 4.0 / 7.0));
        let none = SimilarPoint::new(0.95, &pairs[1..], 0).unwrap();
        assert_eq!((none.recall, none.precision, none.f1), (0.0, None, 0.0));
        assert!(SimilarPoint::new(0.5, &pairs[4..], 0).is_err());
    }
}
