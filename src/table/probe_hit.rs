//! A result of the probes of a query.

/// A stored fingerprint within the distance of a query, and its location.
pub(crate) struct ProbeHit<F> {
    /// Index of the table in the sequence of all probed tables.
    pub(crate) table: usize,
    pub(crate) block: usize,
    /// Position of the fingerprint in its block.
    pub(crate) position: usize,
    /// Permuted fingerprint.
    pub(crate) value: F,
}
