//! Pairs that a join reports.

/// Two fingerprints within the distance of a self-join, as positions in the list of fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexPair {
    /// Position of the first fingerprint.
    pub a: usize,
    /// Position of the second fingerprint, greater than `a`.
    pub b: usize,
    /// Hamming distance of the two fingerprints, in bits.
    pub distance: u32,
}

/// Two fingerprints within the distance of a join, as values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FingerprintPair<F> {
    /// The smaller fingerprint.
    pub a: F,
    /// The greater fingerprint.
    pub b: F,
    /// Hamming distance of the two fingerprints, in bits.
    pub distance: u32,
}
