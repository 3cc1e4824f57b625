//! How the fingerprints of a pair are reported: by position, or by value.

use super::pairs::NearPair;
use crate::fingerprint::Fingerprint;

/// Names fingerprints.
pub(super) trait Naming<F>: Sync {
    type Name: Copy + Send;
    type Pair: Send;

    fn name(&self, fingerprint: F) -> Self::Name;
    /// The pair of two that were named, in any order.
    fn pair(&self, a: Self::Name, b: Self::Name, distance: u32) -> Self::Pair;
}

/// Reports pairs as fingerprint values.
pub(super) struct Themselves;

impl<F: Fingerprint> Naming<F> for Themselves {
    type Name = F;
    type Pair = NearPair<F>;

    #[inline]
    fn name(&self, fingerprint: F) -> F {
        fingerprint
    }

    #[inline]
    fn pair(&self, a: F, b: F, distance: u32) -> NearPair<F> {
        NearPair { a: a.min(b), b: a.max(b), distance }
    }
}
