//! The rule that decides which pairs are candidates, from their signatures and their numbers of features.

use simstore_text::{BANDS, BandSearch};

use crate::rows::SignatureRow;

/// Rule that decides from the signatures of two documents whether the pair is a candidate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CandidateRule {
    pub(crate) search: BandSearch,
    /// Least Jaccard similarity of similar documents.
    pub(crate) min_similarity: f64,
}

impl CandidateRule {
    /// Whether two documents form a candidate pair, and no band before band number `band` is near. The caller has found
    /// that band number `band` is near. So each candidate is reported only once, for its first near band.
    #[inline]
    pub(crate) fn is_new(&self, a: &SignatureRow, b: &SignatureRow, band: usize) -> bool {
        is_first_found_by(&self.search, &a.bands, &b.bands, band)
            && may_be_similar(a.features, b.features, self.min_similarity)
    }

    /// Whether two signatures are near enough for a candidate pair: the whole signatures are within the maximum distance
    /// for signatures, and at least one of the searched bands is within the maximum distance for bands.
    #[inline(always)]
    pub(crate) fn accepts(&self, a: &[u64; BANDS], b: &[u64; BANDS]) -> bool {
        let distance = |at: usize| (a[at] ^ b[at]).count_ones();
        (0..BANDS).map(distance).sum::<u32>() <= self.search.signature_distance
            && (0..self.search.bands).any(|band| distance(band) <= self.search.band_distance)
    }
}

/// Whether two signatures are within the maximum distance for whole signatures, and no band before band number
/// `band` is within the maximum distance for bands. The caller has found that band number `band` is near, so `band`
/// is then the first near band.
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
/// The similarity is greatest if the document with more features has all features of the other one.
#[inline]
pub(crate) fn may_be_similar(a: u32, b: u32, min_similarity: f64) -> bool {
    f64::from(a.min(b)) >= f64::from(a.max(b)) * min_similarity - 1e-9
}
