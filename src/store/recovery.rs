//! Reading a store from its files: the manifest's segments, and then the logs.

use std::path::Path;
use std::sync::Arc;

use super::following::{self, Following, Part};
use super::reading::{ReadLog, Replayed, log_numbers, map_log};
use super::view::{Recent, View};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::fs::Fs;
use crate::manifest::{Manifest, SegmentEntry, log_name};
use crate::map::Bytes;
use crate::memtable::Memtable;
use crate::segment::Segment;
use crate::wal::{count_inserts, read_log};

/// What is in the folder of a store that nobody writes to, or that somebody else does; what is known of it is not read
/// again.
///
/// # Errors
/// As [`Snapshot::open`](super::Snapshot::open).
pub(super) fn read<F: Fingerprint>(
    fs: &Arc<dyn Fs>,
    path: &Path,
    manifest: &Manifest,
    known: Option<&View<F>>,
) -> Result<View<F>> {
    let mut view = segments(fs, path, manifest, known.map_or(&[], |known| &known.segments))?;
    let Following { parts, logs } =
        following::follow(&**fs, path, manifest, known.map_or(&[], |known| &known.followed))?;
    view.logs = logs;
    for Part { followed, logs, sequence, version } in parts {
        view.memtables.push(Recent { memtable: followed.memtable.clone(), logs, sequence, version });
        view.followed.push(followed);
    }
    if view.memtables.is_empty() {
        let memtable = Arc::new(Memtable::new(manifest.settings.distance, 0));
        view.memtables.push(Recent::new(memtable, Vec::new(), manifest.sequence));
    }
    Ok(view)
}

/// The segments of a store, opened; but for those that are known.
pub(super) fn segments<F: Fingerprint>(
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
        followed: Vec::new(),
    })
}

/// The logs whose operations are not in segments.
pub(super) struct Logs {
    /// Number and content, the oldest first.
    logs: Vec<(u64, Bytes)>,
}

impl Logs {
    pub(super) fn find(fs: &dyn Fs, path: &Path, manifest: &Manifest) -> Result<Logs> {
        let numbers = log_numbers(fs, path, manifest)?;
        let logs = numbers.into_iter().map(|number| Ok((number, map_log(fs, path, number, 0)?)));
        Ok(Logs { logs: logs.collect::<Result<_>>()? })
    }

    /// About how many pairs they insert: more than that only if they are damaged.
    pub(super) fn pairs<F: Fingerprint>(&self) -> u64 {
        self.logs.iter().map(|(_, bytes)| count_inserts::<F>(bytes.as_ref(), 0)).sum()
    }

    pub(super) fn numbers(&self) -> impl DoubleEndedIterator<Item = u64> {
        self.logs.iter().map(|&(number, _)| number)
    }

    /// Reads each log by itself; calls `damaged` with what keeps one from being read.
    pub(super) fn check<F: Fingerprint>(&self, path: &Path, mut damaged: impl FnMut(Error)) {
        for (number, bytes) in &self.logs {
            let log = path.join(log_name(*number));
            if let Err(error) = read_log::<F>(&log, bytes.as_ref(), *number, |_, _| Ok(())) {
                damaged(error);
            }
        }
    }

    /// Does all operations again. After an error the memtable has some of them.
    pub(super) fn replay<F: Fingerprint>(
        &self,
        path: &Path,
        manifest: &Manifest,
        memtable: &Memtable<F>,
    ) -> Result<Replayed> {
        let mut replayed = Replayed::new(manifest);
        memtable.fill(|filling| {
            self.logs.iter().try_for_each(|(number, bytes)| {
                let log = ReadLog::start::<F>(path, *number, bytes.as_ref())?;
                let read = log.read_on::<F>(path, bytes.as_ref(), |operation| filling.apply(operation))?;
                replayed.follow(path, &read)
            })
        })?;
        memtable.publish();
        Ok(replayed)
    }
}
