//! Views: the immutable state of a store that snapshots share.

use std::path::PathBuf;
use std::sync::Arc;

use super::log_chain::LogInfo;
use super::log_tail::LogTail;
use crate::fingerprint::Fingerprint;
use crate::fs::Fs;
use crate::manifest::Manifest;
use crate::memtable::Memtable;
use crate::segment::Segment;

/// The segments, logs and memtables of a store between one change of these lists and the next. All snapshots of that time
/// share it.
#[derive(Clone, Debug)]
pub(super) struct View<F> {
    /// File system for reads.
    pub(super) fs: Arc<dyn Fs>,
    pub(super) path: PathBuf,
    pub(super) manifest: Manifest,
    /// Encoded size of the manifest, in bytes.
    pub(super) manifest_bytes: u64,
    /// Oldest first.
    pub(super) segments: Vec<Arc<Segment<F>>>,
    /// Logs as of when the store was opened, oldest first.
    pub(super) logs: Vec<LogInfo>,
    /// Memtables that are not flushed yet, oldest first. Only the last one takes writes.
    pub(super) memtables: Vec<MemtableRef<F>>,
    /// Log tails that a refresh continues from. Empty in a store that this process has open for writing.
    pub(super) log_tails: Vec<Arc<LogTail<F>>>,
}

/// A memtable with the logs whose operations it holds.
#[derive(Clone, Debug)]
pub(super) struct MemtableRef<F> {
    pub(super) memtable: Arc<Memtable<F>>,
    /// Numbers of the logs, ascending.
    pub(super) log_numbers: Vec<u64>,
    /// Sequence number of the first record of the oldest log.
    pub(super) first_sequence: u64,
    /// Newest version that snapshots of this view may see, or `u64::MAX` without a limit. There is a limit if newer snapshots
    /// read further records into the same memtable.
    pub(super) max_version: u64,
}

impl<F> MemtableRef<F> {
    /// Creates a reference without a limit: snapshots see the memtable's current version.
    pub(super) fn new(memtable: Arc<Memtable<F>>, log_numbers: Vec<u64>, first_sequence: u64) -> Self {
        MemtableRef { memtable, log_numbers, first_sequence, max_version: u64::MAX }
    }
}

impl<F: Fingerprint> MemtableRef<F> {
    /// Returns the version that a snapshot taken now sees.
    pub(super) fn visible_version(&self) -> u64 {
        self.memtable.version().min(self.max_version)
    }
}
