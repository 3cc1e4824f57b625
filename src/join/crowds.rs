//! Groups of fingerprints whose pairs are not visited.

/// Groups of fingerprints that are nearly all near one another: they have about as many pairs as half the square of their number.
#[derive(Clone, Copy)]
pub struct Crowds<'a, F> {
    /// A group is a crowd when it has given so many pairs for each of its members.
    pub enough: usize,
    /// Takes all members of a crowd, in any order. It is called from several threads at a time.
    pub visitor: &'a (dyn Fn(&[F]) + Sync),
}

impl<F> std::fmt::Debug for Crowds<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Crowds {{ enough: {} }}", self.enough)
    }
}
