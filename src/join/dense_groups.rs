//! Visitor of dense groups: groups of fingerprints with so many near pairs that a join reports the group instead of
//! the pairs.

/// Visitor of dense groups: groups of fingerprints (members) with so many pairs within the distance that a join
/// reports the group instead of its pairs. A group of n members has up to n (n - 1) / 2 such pairs.
#[derive(Clone, Copy)]
pub struct DenseGroupVisitor<'a, F> {
    /// A group counts as dense if the number of its pairs within the distance is more than about
    /// `pairs_per_member` times the number of its members.
    pub pairs_per_member: usize,
    /// Function that receives all members of a dense group, in any order. Several threads call it at the same
    /// time.
    pub visitor: &'a (dyn Fn(&[F]) + Sync),
}

impl<F> std::fmt::Debug for DenseGroupVisitor<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DenseGroupVisitor {{ pairs_per_member: {} }}", self.pairs_per_member)
    }
}
