//! Reading a store from its files: the manifest's segments, and then the logs.

use std::path::Path;
use std::sync::Arc;

use super::view::{LogInfo, Recent, View};
use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::fs::Fs;
use crate::manifest::{Manifest, SegmentEntry, log_name, log_number};
use crate::memtable::Memtable;
use crate::segment::Segment;
use crate::wal::{Operation, read_log};

/// What is in the folder of a store that nobody writes to, or that somebody else does.
///
/// # Errors
/// As [`Snapshot::open`](super::Snapshot::open).
pub(super) fn read<F: Fingerprint>(
    fs: &Arc<dyn Fs>,
    path: &Path,
    manifest: &Manifest,
    known: &[Arc<Segment<F>>],
) -> Result<View<F>> {
    let mut view = segments(fs, path, manifest, known)?;
    let logs = Logs::find(&**fs, path, manifest)?;
    let memtable = Memtable::new(manifest.settings.distance, logs.bytes);
    (_, view.logs) = logs.replay(path, manifest, &memtable)?;
    let Manifest { first_log, sequence, .. } = *manifest;
    view.memtables.push(Recent { memtable: Arc::new(memtable), first_log, sequence });
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
    })
}

/// The logs whose operations are not in segments.
pub(super) struct Logs {
    /// Number and content, the oldest first.
    logs: Vec<(u64, crate::map::Bytes)>,
    /// All content, in bytes.
    pub(super) bytes: u64,
}

impl Logs {
    pub(super) fn find(fs: &dyn Fs, path: &Path, manifest: &Manifest) -> Result<Logs> {
        let mut numbers = Vec::new();
        if manifest.first_log > 0 {
            let names = fs.list(path).map_err(Error::io(path, "list"))?;
            numbers.extend(names.iter().filter_map(|name| log_number(name)));
            numbers.retain(|&number| number >= manifest.first_log);
            numbers.sort_unstable();
        }
        if manifest.first_log > 0 && numbers.first() != Some(&manifest.first_log) {
            let missing = path.join(log_name(manifest.first_log));
            return Err(Error::io(&missing, "open")(std::io::ErrorKind::NotFound.into()));
        }
        let mut logs = Vec::new();
        for number in numbers {
            let log = path.join(log_name(number));
            logs.push((number, fs.map(&log).map_err(Error::io(&log, "open"))?));
        }
        let bytes = logs.iter().map(|(_, bytes)| bytes.as_ref().len() as u64).sum();
        Ok(Logs { logs, bytes })
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

    /// Does all operations again; returns the sequence number of the next record, and what the logs are.
    pub(super) fn replay<F: Fingerprint>(
        &self,
        path: &Path,
        manifest: &Manifest,
        memtable: &Memtable<F>,
    ) -> Result<(u64, Vec<LogInfo>)> {
        let mut next = manifest.sequence;
        let mut infos = Vec::new();
        for (number, bytes) in &self.logs {
            let start = next;
            let log = path.join(log_name(*number));
            let mut operations = 0;
            let end = read_log::<F>(&log, bytes.as_ref(), *number, |sequence, operation| {
                apply(memtable, &operation);
                next = sequence + 1;
                operations += 1;
                Ok(())
            })?;
            memtable.publish();
            let bytes = bytes.as_ref().len() as u64;
            // A log gets its name when its header is durable: no crash leaves one without.
            let Some(end) = end else {
                let what = "the header of this log and its checksum";
                return Err(Error::corrupt(&log, 0, Damage::Mismatch { what }));
            };
            let torn_bytes = end.torn_bytes;
            let records = end.next_sequence - end.first_sequence;
            infos.push(LogInfo { number: *number, bytes, torn_bytes, records, operations });
            if end.first_sequence != start {
                let what = "the records of this log and of what comes before it";
                return Err(Error::corrupt(&log, 0, Damage::Mismatch { what }));
            }
        }
        Ok((next, infos))
    }
}

/// Does an operation of the log.
pub(super) fn apply<F: Fingerprint>(memtable: &Memtable<F>, operation: &Operation<'_, F>) {
    match *operation {
        Operation::Insert { fingerprint, id, name } => memtable.insert(fingerprint, id, name),
        Operation::Delete { fingerprint, id } => memtable.delete(fingerprint, id),
        Operation::Mark { key, value } => memtable.set_mark(key, value),
    }
}
