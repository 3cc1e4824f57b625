//! The form in which a join reports pairs: as fingerprint values or as indexes.

use super::pairs::FingerprintPair;
use crate::fingerprint::Fingerprint;

/// Form in which a join reports pairs, and conversion of fingerprints to this form.
pub(super) trait PairOutput<F>: Sync {
    /// Reported form of a fingerprint: its value or its index.
    type Member: Copy + Send;
    type Pair: Send;

    fn member(&self, fingerprint: F) -> Self::Member;
    /// Creates the reported pair from the reported forms of its two fingerprints, which may be in any order.
    fn pair(&self, a: Self::Member, b: Self::Member, distance: u32) -> Self::Pair;
}

/// Makes a join report each pair as a [`FingerprintPair`], which has the values of the two fingerprints.
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
