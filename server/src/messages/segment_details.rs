//! Segments, tables and blocks of the store.

use serde::Serialize;
use simstore_corpus::describe::{BlockDescription, TableDescription};
use utoipa::ToSchema;

/// A segment of the store, with its tables.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct SegmentDetails {
    /// File number. A newer segment has a greater number
    pub(crate) number: u64,
    /// Plan of the segment's tables
    pub(crate) plan: String,
    pub(crate) fingerprints: u64,
    /// Number of pairs of a fingerprint and an id
    pub(crate) pairs: u64,
    /// Number of pairs that the segment deletes from older segments
    pub(crate) tombstones: u64,
    /// Size of the segment's files, in bytes
    pub(crate) bytes: u64,
    /// Seconds since the segment was written; null if the file system does not say
    pub(crate) age_seconds: Option<f64>,
    /// An object for each table, as `simstore inspect --json` prints it
    #[schema(value_type = Vec<Object>)]
    pub(crate) tables: Vec<TableDescription>,
}

/// A table of a segment, with a histogram of its codes.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct TableDetails {
    /// The members that `simstore inspect --table --json` prints, among them `histogram` and `symbols`
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub(crate) table: TableDescription,
    /// The histogram has every n-th block: 1 for all blocks
    pub(crate) sampled_every: usize,
}

/// A block of a table, with its fingerprints.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct BlockDetails {
    /// The members that `simstore inspect --block --json` prints
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub(crate) block: BlockDescription,
}
