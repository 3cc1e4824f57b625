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

/// The lists of segments, logs and memtables of a store. When a list changes, a new view replaces the old one. All
/// snapshots that are taken between two changes share one view.
#[derive(Clone, Debug)]
pub(super) struct View<F> {
    /// File system for reads.
    pub(super) fs: Arc<dyn Fs>,
    pub(super) path: PathBuf,
    pub(super) manifest: Manifest,
    /// Encoded size of the manifest, in bytes.
    pub(super) manifest_bytes: u64,
    /// Segments, oldest first.
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
    /// Newest version of the memtable that snapshots of this view may see; `u64::MAX` if they may see all. In a
    /// view of a reader, it hides records that later refreshes read into the same memtable.
    pub(super) max_version: u64,
}

impl<F> MemtableRef<F> {
    /// Creates a reference with `max_version` unlimited: snapshots see the memtable's current version.
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
