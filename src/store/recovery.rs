//! Reading a store from its files: first the segments of the manifest, then the logs.

use std::path::Path;
use std::sync::Arc;

use super::log_chain::{LogChain, LogCursor, log_numbers, map_log};
use super::log_tail::{self, LogContents, LogTailSnapshot};
use super::view::{MemtableRef, View};
use crate::error::{Error, Result};
use crate::file_bytes::Bytes;
use crate::fingerprint::Fingerprint;
use crate::fs::Fs;
use crate::manifest::{Manifest, SegmentEntry, log_file_name};
use crate::memtable::Memtable;
use crate::segment::Segment;
use crate::wal::{count_inserts, read_log};

/// Reads a store into a [`View`], without the store's lock: another process may be writing to the store. `known` is
/// an earlier view of the store. Segments and log records of that view are not read again.
///
/// # Errors
/// Errors of [`Snapshot::open`](super::Snapshot::open).
pub(super) fn read_view<F: Fingerprint>(
    fs: &Arc<dyn Fs>,
    path: &Path,
    manifest: &Manifest,
    known: Option<&View<F>>,
) -> Result<View<F>> {
    let mut view = open_segments(fs, path, manifest, known.map_or(&[], |known| &known.segments))?;
    let LogContents { tails, logs } =
        log_tail::read_logs(&**fs, path, manifest, known.map_or(&[], |known| &known.log_tails))?;
    view.logs = logs;
    for LogTailSnapshot { tail, log_numbers, first_sequence, version } in tails {
        view.memtables.push(MemtableRef {
            memtable: tail.memtable.clone(),
            log_numbers,
            first_sequence,
            max_version: version,
        });
        view.log_tails.push(tail);
    }
    if view.memtables.is_empty() {
        let memtable = Arc::new(Memtable::new(manifest.settings.distance, 0));
        view.memtables.push(MemtableRef::new(memtable, Vec::new(), manifest.first_sequence));
    }
    Ok(view)
}

/// Opens the segments of a store, and returns a [`View`] without logs and memtables. `known` has segments that are open
/// already, and are not opened again.
pub(super) fn open_segments<F: Fingerprint>(
    fs: &Arc<dyn Fs>,
    path: &Path,
    manifest: &Manifest,
    known: &[Arc<Segment<F>>],
) -> Result<View<F>> {
    let settings = &manifest.settings;
    if settings.bits != F::BITS {
        let (expected, found) = (F::BITS, settings.bits);
        return Err(Error::Width { path: path.to_path_buf(), expected, found });
    }
    let open = |entry: &SegmentEntry| match known.iter().find(|segment| segment.entry() == entry) {
        Some(segment) if segment.plan().distance() == settings.distance => Ok(segment.clone()),
        _ => Segment::open(&**fs, path, entry.clone(), settings.distance).map(Arc::new),
    };
    Ok(View {
        fs: fs.clone(),
        path: path.to_path_buf(),
        manifest: manifest.clone(),
        manifest_bytes: manifest.encode().len() as u64,
        segments: manifest.segments.iter().map(open).collect::<Result<_>>()?,
        logs: Vec::new(),
        memtables: Vec::new(),
        log_tails: Vec::new(),
    })
}

/// The logs whose operations are not in segments. Their files are mapped into memory.
pub(super) struct UnflushedLogs {
    /// File number and content of each log, oldest first.
    logs: Vec<(u64, Bytes)>,
}

impl UnflushedLogs {
    pub(super) fn open(fs: &dyn Fs, path: &Path, manifest: &Manifest) -> Result<UnflushedLogs> {
        let numbers = log_numbers(fs, path, manifest)?;
        let logs = numbers.into_iter().map(|number| Ok((number, map_log(fs, path, number, 0)?)));
        Ok(UnflushedLogs { logs: logs.collect::<Result<_>>()? })
    }

    /// Returns the number of insert operations in the logs. Checksums are not verified, and records after a damaged record
    /// are not counted.
    pub(super) fn insert_count<F: Fingerprint>(&self) -> u64 {
        self.logs.iter().map(|(_, bytes)| count_inserts::<F>(bytes.as_ref(), 0)).sum()
    }

    pub(super) fn numbers(&self) -> impl DoubleEndedIterator<Item = u64> {
        self.logs.iter().map(|&(number, _)| number)
    }

    /// Reads each log independently of the others, and calls `damaged` with the error of each unreadable log.
    pub(super) fn check_each<F: Fingerprint>(
        &self,
        path: &Path,
        keeps_ids: bool,
        mut damaged: impl FnMut(Error),
    ) {
        for (number, bytes) in &self.logs {
            let log = path.join(log_file_name(*number));
            if let Err(error) = read_log::<F>(&log, bytes.as_ref(), *number, keeps_ids, |_, _| Ok(())) {
                damaged(error);
            }
        }
    }

    /// Applies all operations of the logs to a memtable, and returns the logs as a checked [`LogChain`]. After an error, the
    /// memtable may have some of the operations.
    pub(super) fn replay<F: Fingerprint>(
        &self,
        path: &Path,
        manifest: &Manifest,
        memtable: &Memtable<F>,
    ) -> Result<LogChain> {
        let mut chain = LogChain::new(manifest);
        memtable.apply_bulk(|filling| {
            self.logs.iter().try_for_each(|(number, bytes)| {
                let log = LogCursor::from_header::<F>(path, manifest, *number, bytes.as_ref())?;
                let read = log.advance::<F>(path, bytes.as_ref(), |operation| filling.apply(operation))?;
                chain.push(path, &read)
            })
        })?;
        memtable.publish();
        Ok(chain)
    }
}
