//! The rule that decides which pairs are candidates, from their signatures and their numbers of features.

use simstore_text::{BANDS, BandSearch};

use crate::rows::SignatureRow;

/// Rule that decides from the signatures of two documents whether they are a candidate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CandidateRule {
    pub(crate) search: BandSearch,
    /// Least Jaccard similarity of similar documents.
    pub(crate) min_similarity: f64,
}

impl CandidateRule {
    /// Whether two documents, found by the join of `band`, are a candidate that the join of no earlier band has
    /// found.
    #[inline]
    pub(crate) fn is_new(&self, a: &SignatureRow, b: &SignatureRow, band: usize) -> bool {
        is_first_found_by(&self.search, &a.bands, &b.bands, band)
            && may_be_similar(a.features, b.features, self.min_similarity)
    }

    /// Whether at least one joined band of two signatures is within the maximum distance for bands, and the whole
    /// signatures are within the maximum distance for signatures.
    #[inline(always)]
    pub(crate) fn accepts(&self, a: &[u64; BANDS], b: &[u64; BANDS]) -> bool {
        let distance = |at: usize| (a[at] ^ b[at]).count_ones();
        (0..BANDS).map(distance).sum::<u32>() <= self.search.signature_distance
            && (0..self.search.bands).any(|band| distance(band) <= self.search.band_distance)
    }
}

/// Whether two signatures are within the maximum distance for whole signatures, and no band before `band` is
/// within the maximum distance for bands. Then `band` is the first band whose join finds the pair.
#[inline]
pub(crate) fn is_first_found_by(
    search: &BandSearch,
    x: &[u64; BANDS],
    y: &[u64; BANDS],
    band: usize,
) -> bool {
    let distance = |at: usize| (x[at] ^ y[at]).count_ones();
    (0..band).all(|earlier| distance(earlier) > search.band_distance)
        && (0..BANDS).map(distance).sum::<u32>() <= search.signature_distance
}

/// Whether two documents with `a` and `b` features can have a Jaccard similarity of at least `min_similarity`.
/// It is greatest if the document with more features has all features of the other one.
#[inline]
pub(crate) fn may_be_similar(a: u32, b: u32, min_similarity: f64) -> bool {
    f64::from(a.min(b)) >= f64::from(a.max(b)) * min_similarity - 1e-9
}
