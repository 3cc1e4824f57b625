//! The matches of a batch.

use crate::segment::Match;

/// A match of one of the queries of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchMatch<F> {
    /// Position of the query in the batch.
    pub query: usize,
    /// A stored fingerprint near the query.
    pub found: Match<F>,
}
