//! Histogram of the similarities of compared pairs, also of the pairs below the threshold.

use std::sync::atomic::{AtomicU64, Ordering};

/// Number of bins: one for each hundredth from 0 to 0.99, and one for similarity 1.
pub(crate) const SIMILARITY_BINS: usize = 101;
/// Tolerance for rounding errors when a similarity is assigned to a bin.
const ROUNDING: f64 = 1e-9;

/// Counts of similarities, which several threads increment. Bin i has the similarities from i / 100 up to, but not
/// including, (i + 1) / 100. The last bin has similarity 1.
#[derive(Debug)]
pub(crate) struct SimilarityHistogram([AtomicU64; SIMILARITY_BINS]);

impl SimilarityHistogram {
    pub(crate) fn new() -> SimilarityHistogram {
        SimilarityHistogram(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    pub(crate) fn add(&self, similarity: f64) {
        self.0[similarity_bin(similarity)].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the count of each bin.
    pub(crate) fn counts(&self) -> Vec<u64> {
        self.0.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }
}

/// Returns the bin of a similarity from 0 to 1.
pub(crate) fn similarity_bin(similarity: f64) -> usize {
    let last = SIMILARITY_BINS - 1;
    if similarity >= 1.0 { last } else { ((similarity * last as f64 + ROUNDING) as usize).min(last - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hundredth_is_in_its_bin() {
        for percent in 0..=100 {
            assert_eq!(similarity_bin(f64::from(percent) / 100.0), percent as usize);
        }
        // Fractions that `f64` does not represent exactly, and a similarity just below 1.
        assert_eq!((similarity_bin(29.0 / 50.0), similarity_bin(0.999_999)), (58, 99));
        let histogram = SimilarityHistogram::new();
        [0.5, 0.509, 1.0].into_iter().for_each(|similarity| histogram.add(similarity));
        let counts = histogram.counts();
        assert_eq!((counts[50], counts[100], counts.iter().sum::<u64>()), (2, 1, 3));
    }
}
