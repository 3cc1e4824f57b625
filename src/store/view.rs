//! What a store holds between one change and the next.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;
use crate::fs::Fs;
use crate::manifest::Manifest;
use crate::memtable::Memtable;
use crate::segment::Segment;

/// A log, as it was when the store was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogInfo {
    /// The number in the name of its file.
    pub number: u64,
    /// Length of the file, in bytes.
    pub bytes: u64,
    /// Bytes at its end that are no sound record: a crash cut them off, or they were being written.
    pub torn_bytes: u64,
    /// Whether its end is vouched for: it was closed, or a writer has recovered it since. Otherwise bytes at its end that are
    /// no sound record may also be damage.
    pub ended: bool,
    /// Sound records: transactions that were written.
    pub records: u64,
    /// Inserts, deletes, marks and notes in them.
    pub operations: u64,
}

impl LogInfo {
    /// The name of its file.
    pub fn file_name(&self) -> String {
        crate::manifest::log_name(self.number)
    }

    /// What is wrong with its end, if damage could have made it; `store` is the store's folder.
    pub(super) fn torn_end(&self, store: &Path) -> Option<Error> {
        let path = store.join(self.file_name());
        let (offset, bytes) = (self.bytes - self.torn_bytes, self.torn_bytes);
        (bytes > 0 && !self.ended).then_some(Error::TornEnd { path, offset, bytes })
    }
}

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
}

/// A memtable, and where in the logs it begins.
#[derive(Clone, Debug)]
pub(super) struct Recent<F> {
    pub(super) memtable: Arc<Memtable<F>>,
    /// The numbers of its logs, ascending.
    pub(super) logs: Vec<u64>,
    /// The sequence number of the first record of the first of them.
    pub(super) sequence: u64,
}
