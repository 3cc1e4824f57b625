//! Reported form of pairs: fingerprint values or indexes.

use super::pairs::FingerprintPair;
use crate::fingerprint::Fingerprint;

/// Conversion of fingerprints to the pairs that a join reports.
pub(super) trait PairOutput<F>: Sync {
    /// Reported form of a fingerprint: its value or its index.
    type Member: Copy + Send;
    type Pair: Send;

    fn member(&self, fingerprint: F) -> Self::Member;
    /// Creates a pair of two members in any order.
    fn pair(&self, a: Self::Member, b: Self::Member, distance: u32) -> Self::Pair;
}

/// Reports pairs as fingerprint values.
pub(super) struct ByValue;

impl<F: Fingerprint> PairOutput<F> for ByValue {
    type Member = F;
    type Pair = FingerprintPair<F>;

    #[inline]
    fn member(&self, fingerprint: F) -> F {
        fingerprint
    }

    #[inline]
    fn pair(&self, a: F, b: F, distance: u32) -> FingerprintPair<F> {
        FingerprintPair { a: a.min(b), b: a.max(b), distance }
    }
}
