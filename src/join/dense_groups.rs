//! Visitor of dense groups, whose pairs are not listed.

/// Visitor of dense groups: groups whose members are nearly all near one another. A dense group of n
/// fingerprints has up to n (n - 1) / 2 near pairs.
#[derive(Clone, Copy)]
pub struct DenseGroupVisitor<'a, F> {
    /// Number of near pairs per member at which a group counts as dense.
    pub pairs_per_member: usize,
    /// Receives all members of a dense group, in any order. Several threads call it at the same time.
    pub visitor: &'a (dyn Fn(&[F]) + Sync),
}

impl<F> std::fmt::Debug for DenseGroupVisitor<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DenseGroupVisitor {{ pairs_per_member: {} }}", self.pairs_per_member)
    }
}
