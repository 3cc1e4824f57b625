//! Views: a view is the immutable state of a store that snapshots share.

use std::path::PathBuf;
use std::sync::Arc;

use super::log_chain::LogInfo;
use super::log_tail::LogTail;
use crate::fingerprint::Fingerprint;
use crate::fs::Fs;
use crate::manifest::Manifest;
use crate::memtable::Memtable;
use crate::options::BuildOptions;
use crate::segment::Segment;

/// The lists of segments, logs and memtables of a store. When a list changes, a new view replaces the old view. All
/// snapshots that are taken between two such changes share one view.
#[derive(Clone, Debug)]
pub(super) struct View<F> {
    /// File system through which the store is read.
    pub(super) fs: Arc<dyn Fs>,
    pub(super) path: PathBuf,
    pub(super) manifest: Manifest,
    /// Size of the manifest file, in bytes.
    pub(super) manifest_bytes: u64,
    /// Segments, oldest first.
    pub(super) segments: Vec<Arc<Segment<F>>>,
    /// Counts and sizes of the logs, oldest first, as of when the store was opened.
    pub(super) logs: Vec<LogInfo>,
    /// Memtables that are not flushed yet, oldest first. Only the last one takes writes.
    pub(super) memtables: Vec<MemtableRef<F>>,
    /// Memtables together with the read positions in their logs. A refresh continues from these positions. Empty in a
    /// store that this process has open for writing.
    pub(super) log_tails: Vec<Arc<LogTail<F>>>,
}

impl<F: Fingerprint> View<F> {
    /// Returns the options for building a segment of the store, whose tables answer queries up to `distance` bits. The
    /// segment is written to the file system `fs`, and sorted in `memory` bytes.
    pub(super) fn build_options(&self, distance: u32, memory: Option<u64>, fs: &Arc<dyn Fs>) -> BuildOptions {
        let settings = &self.manifest.settings;
        BuildOptions {
            distance,
            codec: settings.codec,
            plan: settings.plan.or_auto::<F>(distance),
            block_size: settings.block_size,
            span: settings.span,
            memory,
            ids: settings.has_ids,
            fs: fs.clone(),
            ..BuildOptions::default()
        }
    }
}

/// A memtable with the logs whose operations it holds.
#[derive(Clone, Debug)]
pub(super) struct MemtableRef<F> {
    pub(super) memtable: Arc<Memtable<F>>,
    /// File numbers of the logs whose operations the memtable holds, ascending.
    pub(super) log_numbers: Vec<u64>,
    /// Sequence number of the first record in the oldest log of the memtable.
    pub(super) first_sequence: u64,
    /// Maximum version of the memtable (count of its operations) that snapshots of this view may see; `u64::MAX` without a
    /// limit. A reader needs the limit, because later refreshes read more records into the same memtable.
    pub(super) max_version: u64,
}

impl<F> MemtableRef<F> {
    /// Creates a reference without a limit on the version: a snapshot sees all operations that the memtable has when the
    /// snapshot is taken.
    pub(super) fn new(memtable: Arc<Memtable<F>>, log_numbers: Vec<u64>, first_sequence: u64) -> Self {
        MemtableRef { memtable, log_numbers, first_sequence, max_version: u64::MAX }
    }
}

impl<F: Fingerprint> MemtableRef<F> {
    /// Returns the version of the memtable that a snapshot sees if it is taken now: the count of the visible operations.
    pub(super) fn visible_version(&self) -> u64 {
        self.memtable.version().min(self.max_version)
    }
}
