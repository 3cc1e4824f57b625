//! One table of a plan: its permutation, its prefix, and the flips of its probes.

use crate::fingerprint::Fingerprint;
use crate::permutation::Permutation;

/// Maximum number of flip patterns of a table's probes. If there would be more, fewer leading bits of the
/// prefix are flipped.
const MAX_FLIP_PATTERNS: f64 = 16384.0;

/// One table of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePlan<F> {
    /// Permutation that moves the prefix bits to the front.
    pub permutation: Permutation<F>,
    /// Number of prefix bits, p. If it is 0, a probe reads the whole table.
    pub prefix_bits: u32,
    /// Maximum number of prefix bits that a probe flips, r.
    pub flips: u32,
}

impl<F: Fingerprint> TablePlan<F> {
    /// Returns the mask of the prefix bits in the original fingerprint.
    pub fn prefix_mask(&self) -> F {
        self.permutation.invert(F::prefix_mask(self.prefix_bits))
    }

    /// Number of leading prefix bits that probes flip, in a table of `fingerprints` fingerprints.
    ///
    /// A probe flips at most r of these bits. If it flips fewer than r, it ignores the other prefix bits: it
    /// reads all fingerprints with the same leading bits, about 16 to 30. So it also finds fingerprints with
    /// errors in the other prefix bits, without a probe for each of them.
    pub fn flipped_bits(&self, fingerprints: u64) -> u32 {
        let spread = fingerprints.max(1).ilog2();
        let mut bits = self.prefix_bits.min(spread.saturating_sub(4));
        while combinations_up_to(f64::from(bits), self.flips) > MAX_FLIP_PATTERNS {
            bits -= 1;
        }
        bits
    }
}

/// Number of sets of at most `most` out of `bits` bits. `bits` may be fractional.
pub(super) fn combinations_up_to(bits: f64, most: u32) -> f64 {
    let (mut sum, mut term) = (1.0, 1.0);
    for i in 0..most {
        term *= (bits - f64::from(i)).max(0.0) / f64::from(i + 1);
        sum += term;
    }
    sum
}
