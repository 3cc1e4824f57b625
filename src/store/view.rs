//! What a store holds between one change and the next.

use std::path::PathBuf;
use std::sync::Arc;

use super::following::Followed;
use super::reading::LogInfo;
use crate::fingerprint::Fingerprint;
use crate::fs::Fs;
use crate::manifest::Manifest;
use crate::memtable::Memtable;
use crate::segment::Segment;

/// What a store holds between one change and the next; shared by the snapshots of that time.
#[derive(Clone, Debug)]
pub(super) struct View<F> {
    pub(super) fs: Arc<dyn Fs>,
    pub(super) path: PathBuf,
    pub(super) manifest: Manifest,
    pub(super) manifest_bytes: u64,
    /// The oldest first.
    pub(super) segments: Vec<Arc<Segment<F>>>,
    /// Those that were there when the store was opened, the oldest first.
    pub(super) logs: Vec<LogInfo>,
    /// What is not in segments yet, the oldest first; all but the last stay as they are.
    pub(super) memtables: Vec<Recent<F>>,
    /// Where a reader goes on in the logs; nothing in a store that is being written to by this process.
    pub(super) followed: Vec<Arc<Followed<F>>>,
}

/// A memtable, and where in the logs it begins.
#[derive(Clone, Debug)]
pub(super) struct Recent<F> {
    pub(super) memtable: Arc<Memtable<F>>,
    /// The numbers of its logs, ascending.
    pub(super) logs: Vec<u64>,
    /// The sequence number of the first record of the first of them.
    pub(super) sequence: u64,
    /// The newest version that is shown, of a memtable that others read on; else any.
    pub(super) version: u64,
}

impl<F> Recent<F> {
    /// A memtable of which the newest version is shown.
    pub(super) fn new(memtable: Arc<Memtable<F>>, logs: Vec<u64>, sequence: u64) -> Self {
        Recent { memtable, logs, sequence, version: u64::MAX }
    }
}

impl<F: Fingerprint> Recent<F> {
    /// The version that is shown now.
    pub(super) fn shown(&self) -> u64 {
        self.memtable.version().min(self.version)
    }
}
