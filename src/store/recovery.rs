//! Reading a store from its files: the manifest's segments, and then the logs.

use std::path::Path;
use std::sync::Arc;

use super::view::{LogInfo, Recent, View};
use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::{self, log_header};
use crate::fs::Fs;
use crate::manifest::{Manifest, SegmentEntry, log_name, log_number};
use crate::memtable::{Filling, Memtable};
use crate::segment::Segment;
use crate::wal::{PreviousLog, most_inserts, read_log};

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
    let memtable = Memtable::for_pairs(manifest.settings.distance, logs.pairs::<F>());
    view.logs = logs.replay(path, manifest, &memtable)?.logs;
    let recent =
        Recent { memtable: Arc::new(memtable), logs: logs.numbers().collect(), sequence: manifest.sequence };
    view.memtables.push(recent);
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
            let bytes = fs.map(&log).map_err(Error::io(&log, "open"))?;
            bytes.will_need(0..bytes.as_ref().len());
            logs.push((number, bytes));
        }
        Ok(Logs { logs })
    }

    /// About how many pairs they insert: more than that only if they are damaged.
    pub(super) fn pairs<F: Fingerprint>(&self) -> u64 {
        self.logs.iter().map(|(_, bytes)| most_inserts::<F>(bytes.as_ref())).sum()
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
        let replayed = memtable.fill(|filling| self.replay_into(path, manifest, filling))?;
        memtable.publish();
        Ok(replayed)
    }

    fn replay_into<F: Fingerprint>(
        &self,
        path: &Path,
        manifest: &Manifest,
        filling: &mut Filling<'_, '_, F>,
    ) -> Result<Replayed> {
        let sequence = manifest.sequence;
        let version = format::VERSION;
        let mut replayed = Replayed { sequence, version, logs: Vec::new(), last: None, before_last: None };
        for (number, bytes) in &self.logs {
            let log = path.join(log_name(*number));
            let mut operations = 0;
            let end = read_log::<F>(&log, bytes.as_ref(), *number, |_, operation| {
                filling.apply(&operation);
                operations += 1;
                Ok(())
            })?;
            // A log gets its name when its header is durable: no crash leaves one without.
            let Some(end) = end else {
                let what = "the header of this log and its checksum";
                return Err(Error::corrupt(&log, 0, Damage::Mismatch { what }));
            };
            if let Some(last) = replayed.last {
                check_follows(path, last, *number, end.start.previous)?;
            }
            if end.start.first_sequence != replayed.sequence {
                let what = "the records of this log and of what comes before it";
                return Err(Error::corrupt(&log, 0, Damage::Mismatch { what }));
            }
            replayed.logs.iter_mut().for_each(|log| log.ended = true);
            replayed.logs.push(LogInfo {
                number: *number,
                bytes: bytes.as_ref().len() as u64,
                torn_bytes: end.torn_bytes,
                ended: end.closed,
                records: end.records(),
                operations,
            });
            replayed.version = replayed.version.max(end.start.version);
            replayed.before_last = end.start.previous;
            replayed.last = Some(PreviousLog { number: *number, len: end.sound_bytes });
            replayed.sequence = end.next_sequence;
        }
        Ok(replayed)
    }
}

/// What the logs of a store were found to hold.
pub(super) struct Replayed {
    /// The sequence number of the next record.
    pub(super) sequence: u64,
    /// The newest version of the format that one has.
    pub(super) version: u32,
    pub(super) logs: Vec<LogInfo>,
    /// What the next log will say of the last one.
    pub(super) last: Option<PreviousLog>,
    /// What the last one says of the one before it.
    pub(super) before_last: Option<PreviousLog>,
}

/// Checks what a log says of the one before it against what that one is.
fn check_follows(path: &Path, last: PreviousLog, number: u64, said: Option<PreviousLog>) -> Result<()> {
    match said {
        Some(said) if said == last => Ok(()),
        Some(said) if said.number == last.number => {
            let what = "the sound part of this log and what the next log says was synced of it";
            let log = path.join(log_name(last.number));
            Err(Error::corrupt(&log, last.len.min(said.len), Damage::Mismatch { what }))
        }
        Some(said) if said.number > last.number => {
            let missing = path.join(log_name(said.number));
            Err(Error::io(&missing, "open")(std::io::ErrorKind::NotFound.into()))
        }
        _ => {
            let what = "the log that this one names as the one before it, and that one";
            let offset = log_header::PREVIOUS as u64;
            Err(Error::corrupt(&path.join(log_name(number)), offset, Damage::Mismatch { what }))
        }
    }
}
