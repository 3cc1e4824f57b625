//! Matches of batch queries.

use crate::segment::Match;

/// A match of one query of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchMatch<F> {
    /// Position of the query in the batch.
    pub query: usize,
    /// The stored fingerprint, its id, and its distance from the query.
    pub found: Match<F>,
}
