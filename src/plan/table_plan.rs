//! How one table is probed.

use crate::fingerprint::Fingerprint;
use crate::permutation::Permutation;

/// The largest list of flips of prefix bits that a table keeps; with more flips, probes look at shorter prefixes first.
const MAX_FLIPS: f64 = 16384.0;

/// One table of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePlan<F> {
    /// Brings the prefix bits to the front.
    pub permutation: Permutation<F>,
    /// Number of prefix bits, p. With 0 a probe reads the whole table.
    pub prefix_bits: u32,
    /// How many prefix bits a probe may flip, r.
    pub flips: u32,
}

impl<F: Fingerprint> TablePlan<F> {
    /// The bits of the original fingerprint that make the prefix.
    pub fn prefix_mask(&self) -> F {
        self.permutation.invert(F::prefix_mask(self.prefix_bits))
    }

    /// How many of the first bits of the prefix probes of a table of so many fingerprints flip, up to r of them. A probe
    /// that flips fewer reads all fingerprints that share these bits, some sixteen to thirty, and so finds those that
    /// differ later in the prefix, without a probe for each of its later bits.
    pub fn flipped_bits(&self, fingerprints: u64) -> u32 {
        let spread = fingerprints.max(1).ilog2();
        let mut bits = self.prefix_bits.min(spread.saturating_sub(4));
        while combinations(f64::from(bits), self.flips) > MAX_FLIPS {
            bits -= 1;
        }
        bits
    }
}

/// Number of ways to choose at most `most` of `bits` bits, which need not be a whole number.
pub(super) fn combinations(bits: f64, most: u32) -> f64 {
    let (mut sum, mut term) = (1.0, 1.0);
    for i in 0..most {
        term *= (bits - f64::from(i)).max(0.0) / f64::from(i + 1);
        sum += term;
    }
    sum
}
