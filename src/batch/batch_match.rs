//! Matches of batch queries.

use crate::segment::Match;

/// A stored fingerprint within the distance of one query of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchMatch<F> {
    /// Index of the query in the list of queries that the caller passed.
    pub query: usize,
    /// The stored fingerprint, its id, and its distance from the query.
    pub found: Match<F>,
}
