//! The answer of `/stats`.

use serde::Serialize;
use utoipa::ToSchema;

/// A segment of the store: an immutable set of fingerprints.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct SegmentMessage {
    /// File number. A newer segment has a greater number
    pub(crate) number: u64,
    pub(crate) fingerprints: u64,
    /// Size of the segment's files, in bytes
    pub(crate) bytes: u64,
    /// Plan of the segment's tables
    pub(crate) plan: String,
    /// Seconds since the segment was written; null if the file system does not say
    pub(crate) age_seconds: Option<f64>,
}

/// Contents and settings of the store.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct StoreStats {
    /// `fingerprints` or `similar-documents`
    pub(crate) kind: String,
    /// Width of the fingerprints, in bits
    pub(crate) bits: u32,
    /// Number of documents; an upper bound while the files still have deleted documents
    pub(crate) documents: u64,
    /// Largest distance of queries in bits, in a store of fingerprints
    pub(crate) distance: Option<u32>,
    /// Smallest similarity of queries, in a store of similar documents
    pub(crate) similarity: Option<f64>,
    /// Probability to find a document exactly at the smallest similarity, in a store of similar documents
    pub(crate) recall: Option<f64>,
    /// Whether the store keeps texts
    pub(crate) keeps_texts: bool,
    /// Whether the store keeps ids
    pub(crate) keeps_ids: bool,
    /// Text profile; empty if the store takes fingerprints alone
    pub(crate) profile: String,
    /// Plan of new tables, or `auto`
    pub(crate) plan: String,
    /// Codec of the tables
    pub(crate) codec: String,
    /// Size of all files without the logs, in bytes
    pub(crate) bytes: u64,
    /// Memory of the store, in bytes
    pub(crate) memory: u64,
    pub(crate) segments: Vec<SegmentMessage>,
    /// Number of pairs of a fingerprint and an id that are not in segments yet
    pub(crate) memtable_entries: u64,
    /// Size of all memtables, in bytes
    pub(crate) memtable_bytes: u64,
    /// Number of full memtables that wait to become segments
    pub(crate) frozen_memtables: usize,
    /// Number of log files
    pub(crate) logs: usize,
    /// Size of the log files, in bytes
    pub(crate) log_bytes: u64,
    /// Size of all segments except the largest one, in bytes: what a compaction merges into it
    pub(crate) compaction_debt_bytes: u64,
    /// Number of memtables written as segments since the service started
    pub(crate) flushes: u64,
    /// Size of the segments that flushes wrote, in bytes
    pub(crate) flush_bytes: u64,
    /// Number of merges of segments since the service started
    pub(crate) compactions: u64,
    /// Size of the segments that merges wrote, in bytes
    pub(crate) compaction_bytes: u64,
}

/// State of the compaction that `/compact` started.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub(crate) struct CompactionMessage {
    pub(crate) is_running: bool,
    /// Part of the running compaction that is done, from 0 to 1; null if none is running
    pub(crate) progress: Option<f64>,
    /// Error of the last compaction; null if it succeeded
    pub(crate) last_error: Option<String>,
}

/// Answer of `/stats`.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ServiceStats {
    pub(crate) version: String,
    pub(crate) uptime_seconds: f64,
    pub(crate) read_only: bool,
    /// Message of the last error of the store; null if none occurred
    pub(crate) last_error: Option<String>,
    pub(crate) compaction: CompactionMessage,
    #[serde(flatten)]
    pub(crate) store: StoreStats,
}
