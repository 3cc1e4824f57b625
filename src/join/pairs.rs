//! The pairs of a join.

/// Two fingerprints within the distance, by their positions in the slice that was joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pair {
    /// Position of the one.
    pub a: usize,
    /// Position of the other, greater than `a`.
    pub b: usize,
    /// Their distance, in bits.
    pub distance: u32,
}

/// Two fingerprints within the distance, as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NearPair<F> {
    /// The one.
    pub a: F,
    /// The other, which is greater.
    pub b: F,
    /// Their distance, in bits.
    pub distance: u32,
}
