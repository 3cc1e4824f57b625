//! Plan of one table: the permutation of bits by which it is sorted, and the prefix by which it is searched.

use crate::fingerprint::Fingerprint;
use crate::permutation::Permutation;
use crate::prefix_lines::LineShape;

/// Maximum number of probes of a query in one table. A query has one probe for each set of prefix bits to flip. If
/// there are more sets than this maximum, the last bits of the prefix are not flipped.
const MAX_FLIP_PATTERNS: f64 = 16384.0;

/// Maximum number of prefix lines that one probe reads.
const MAX_PROBE_LINES: f64 = 4.0;

/// How one table of a segment is sorted and searched. The table is sorted by permuted fingerprints. A probe (one
/// look-up) reads the fingerprints with one prefix: the prefix of the query, with up to `flips` bits flipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePlan<F> {
    /// Permutation of the bits of a fingerprint, which moves the bits of the prefix to the front.
    pub permutation: Permutation<F>,
    /// Length of the prefix, in bits. If it is 0, a probe reads the whole table.
    pub prefix_bits: u32,
    /// Maximum number of prefix bits that a probe flips.
    pub flips: u32,
}

impl<F: Fingerprint> TablePlan<F> {
    /// Returns the mask of the bits of a fingerprint that the permutation moves into the prefix.
    pub fn prefix_mask(&self) -> F {
        self.permutation.invert(F::prefix_mask(self.prefix_bits))
    }

    /// Returns the number of leading prefix bits among which probes choose the bits to flip, in a table of
    /// `fingerprints` fingerprints.
    ///
    /// A probe flips at most [`TablePlan::flips`] of these bits. If it flips fewer, it looks up only the leading bits,
    /// and not the rest of the prefix. So without further probes, it also finds fingerprints that differ in the rest.
    /// It usually reads 16 to 32 fingerprints.
    pub fn flipped_bits(&self, fingerprints: u64) -> u32 {
        let spread = fingerprints.max(1).ilog2();
        let mut bits = self.prefix_bits.min(spread.saturating_sub(4));
        while combinations_up_to(f64::from(bits), self.flips) > MAX_FLIP_PATTERNS {
            bits -= 1;
        }
        bits
    }
}

impl<F: Fingerprint> TablePlan<F> {
    /// Returns the number of probes of a query in a table with prefix lines of this shape. A probe looks for one bucket of
    /// prefixes. Returns `None` if it is faster to search the table by blocks: if there would be too many probes, or if the
    /// plan's prefix is so short that a probe would read many lines.
    pub(crate) fn line_probes(&self, shape: LineShape) -> Option<f64> {
        let flipped = shape.bucket_bits().min(self.prefix_bits);
        // Bits of a bucket's number that are not in the plan's prefix.
        let open = f64::from(shape.bucket_bits() - flipped).exp2();
        let probes = combinations_up_to(f64::from(flipped), self.flips) * open;
        let lines_each = open / shape.mean_buckets();
        (probes <= MAX_FLIP_PATTERNS && lines_each <= MAX_PROBE_LINES).then_some(probes)
    }
}

/// Number of ways to choose at most `most` of `bits` bits. For estimates, `bits` may be fractional.
pub(super) fn combinations_up_to(bits: f64, most: u32) -> f64 {
    let (mut sum, mut term) = (1.0, 1.0);
    for i in 0..most {
        term *= (bits - f64::from(i)).max(0.0) / f64::from(i + 1);
        sum += term;
    }
    sum
}
