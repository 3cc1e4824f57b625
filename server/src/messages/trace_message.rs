//! Where a query looked in the store.

use serde::Serialize;
use utoipa::ToSchema;

/// Work of a query in all segments. Documents that are in memory, not in segments yet, are not included.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct TraceAnswer {
    /// Number of fingerprints that the query looks up: 1 or, in a store of similar documents, the bands of the text's signature
    pub(crate) fingerprints: usize,
    /// The segments, oldest first
    pub(crate) segments: Vec<SegmentTrace>,
}

/// Work of a query in a segment.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct SegmentTrace {
    /// File number of the segment
    pub(crate) number: u64,
    pub(crate) tables: Vec<TableTrace>,
}

/// Work of a query in a table, for all its fingerprints together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct TableTrace {
    /// Index of the table in its segment, from 0
    pub(crate) table: usize,
    /// Number of prefixes that the query looks up
    pub(crate) probes: u64,
    /// Number of probes that the filter of the table ended
    pub(crate) filtered: u64,
    /// Number of probes that passed the filter, and found no fingerprint with their prefix
    pub(crate) empty: u64,
    /// Number of blocks with fingerprints that the query compares
    pub(crate) blocks: u64,
    /// Number of fingerprints that the query compares
    pub(crate) compared: u64,
    /// Number of fingerprints within the distance. Several tables may find the same one
    pub(crate) found: u64,
}
