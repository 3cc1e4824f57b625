//! The readable part of a damaged store: settings, segments and logs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::finding::Finding;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::fs::{Disk, Fs};
use crate::manifest::{MANIFEST, Manifest, SegmentEntry, Settings, is_store_file, log_name, log_number};
use crate::memtable::Memtable;
use crate::plan::{Plan, PlanChoice};
use crate::segment::SegmentRemains;
use crate::wal::{PreviousLog, salvage_log, salvage_previous};

/// A damaged store.
pub(super) struct StoreRemains<F: Fingerprint> {
    pub(super) path: PathBuf,
    pub(super) settings: Settings,
    pub(super) manifest_is_lost: bool,
    /// The oldest first.
    pub(super) segments: Vec<SegmentRemains<F>>,
    /// Operations of the logs, replayed.
    pub(super) memtable: Memtable<F>,
    /// Operations of the logs.
    pub(super) operations: u64,
    pub(super) marks: BTreeMap<String, Vec<u8>>,
    pub(super) highest_id: Option<u64>,
    pub(super) findings: Vec<Finding>,
}

/// The width of the fingerprints of a store whose manifest may be damaged, by its other files then.
///
/// # Errors
/// [`Error::NotAStore`] if no file tells, [`Error::UnsupportedVersion`], [`Error::Io`].
pub fn salvageable_bits(path: &Path) -> Result<u32> {
    let fs = Disk::default();
    match Manifest::load(&fs, path) {
        Ok(manifest) => return Ok(manifest.settings.bits),
        Err(error @ Error::UnsupportedVersion { .. }) => return Err(error),
        Err(_) => {}
    }
    let mut names = fs.list(path).map_err(Error::io(path, "list"))?;
    names.retain(|name| is_store_file(name));
    names.sort();
    for name in names {
        let (magic, at) = match name.rsplit_once('.') {
            Some((_, "table")) => (format::TABLE_MAGIC, format::table_header::BITS),
            Some((_, "log")) => (format::LOG_MAGIC, format::log_header::BITS),
            _ => continue,
        };
        if let Ok(bytes) = fs.map(&path.join(name))
            && bytes.as_ref().starts_with(&magic)
            && let Some(&bits @ (64 | 128)) = bytes.as_ref().get(at)
        {
            return Ok(u32::from(bits));
        }
    }
    let reason = "no intact manifest, table or log gives the width of fingerprints";
    Err(Error::NotAStore { path: path.to_path_buf(), reason: reason.to_string() })
}

/// The sound marks of a store that may be damaged, by key.
///
/// # Errors
/// As [`salvage`](super::salvage()).
pub fn salvageable_marks<F: Fingerprint>(path: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let fs: Arc<dyn Fs> = Arc::new(Disk::default());
    Ok(StoreRemains::<F>::open(&fs, path)?.marks)
}

impl<F: Fingerprint> StoreRemains<F> {
    /// Opens what can be opened; writes nothing.
    pub(super) fn open(fs: &Arc<dyn Fs>, path: &Path) -> Result<Self> {
        let mut names = fs.list(path).map_err(Error::io(path, "list"))?;
        names.sort();
        let mut findings = Vec::new();
        let manifest = match Manifest::load(&**fs, path) {
            Ok(manifest) if manifest.settings.bits != F::BITS => {
                let (expected, found) = (F::BITS, manifest.settings.bits);
                return Err(Error::Width { path: path.to_path_buf(), expected, found });
            }
            Ok(manifest) => Some(manifest),
            Err(error @ Error::UnsupportedVersion { .. }) => return Err(error),
            Err(error) => {
                findings.push(manifest_lost(path, &error));
                None
            }
        };
        let entries = match &manifest {
            Some(manifest) => manifest.segments.clone(),
            None => entries_of(&names),
        };
        let mut segments = Vec::new();
        for entry in entries {
            segments
                .push(SegmentRemains::open(&**fs, path, entry, &mut |error| findings.push(of_file(&error))));
        }
        let settings = match &manifest {
            Some(manifest) => manifest.settings.clone(),
            // Before there is a segment, only the logs have ids: there are, unless a file says otherwise.
            None => {
                settings_of(&segments, segments.is_empty() || names.iter().any(|name| name.ends_with(".ids")))
            }
        };

        let mut logs: Vec<u64> = names.iter().filter_map(|name| log_number(name)).collect();
        if let Some(manifest) = &manifest {
            logs.retain(|&number| manifest.has_log(number));
            if manifest.first_log > 0 && !logs.contains(&manifest.first_log) {
                logs.push(manifest.first_log);
            }
        }
        logs.sort_unstable();
        let logged = manifest.as_ref().filter(|manifest| manifest.first_log > 0);
        let sequence = logged.map(|manifest| manifest.sequence);
        let (memtable, operations) = replay(&**fs, path, &settings, &logs, sequence, &mut findings);
        let version = memtable.version();
        let mut marks = BTreeMap::new();
        for segment in &segments {
            marks.extend(segment.marks(&mut |error| findings.push(marks_lost(Finding::of(&error, true)))));
        }
        marks.extend(memtable.marks(version));
        let manifest_is_lost = manifest.is_none();
        let highest_id = manifest.and_then(|manifest| manifest.highest_id).max(memtable.highest_id(version));
        let path = path.to_path_buf();
        Ok(StoreRemains {
            path,
            settings,
            manifest_is_lost,
            segments,
            memtable,
            operations,
            marks,
            highest_id,
            findings,
        })
    }
}

/// Does all sound operations of the logs again, and counts them. `next` is the sequence number of the first record.
fn replay<F: Fingerprint>(
    fs: &dyn Fs,
    path: &Path,
    settings: &Settings,
    logs: &[u64],
    mut next: Option<u64>,
    findings: &mut Vec<Finding>,
) -> (Memtable<F>, u64) {
    let mut opened = Vec::new();
    for &number in logs {
        let log = path.join(log_name(number));
        match fs.map(&log) {
            Ok(bytes) => opened.push((number, log, bytes)),
            Err(error) => findings.push(Finding::of(&Error::io(&log, "open")(error), true)),
        }
    }
    let bytes = opened.iter().map(|(_, _, bytes)| bytes.as_ref().len() as u64).sum();
    // Each log but the first records the length of the previous one.
    let said: Vec<PreviousLog> = (opened.iter().skip(1))
        .filter_map(|(number, log, bytes)| salvage_previous::<F>(log, bytes.as_ref(), *number))
        .collect();
    for missing in said.iter().filter(|said| !logs.contains(&said.number)) {
        let what = "missing; the log after it says that it was there".to_string();
        let lost = missing.len > format::log_header::LEN as u64;
        findings.push(Finding { path: path.join(log_name(missing.number)), offset: None, what, lost });
    }
    let (memtable, mut operations) = (Memtable::new(settings.distance, bytes), 0);
    for (number, log, bytes) in opened {
        let bytes = bytes.as_ref();
        let synced = said.iter().find(|said| said.number == number).map(|said| said.len);
        let remains = salvage_log::<F>(&log, bytes, number, |operation| {
            memtable.apply(&operation);
            operations += 1;
        });
        memtable.publish();
        let mut found = |offset, what: String, lost| {
            findings.push(Finding { path: log.clone(), offset, what, lost });
        };
        if let (Some(next), Some((first, _))) = (next, remains.sequences)
            && next < first
        {
            found(None, format!("records {next} to {} before this log are missing", first - 1), true);
        }
        if bytes.len() < format::log_header::LEN {
            // A log gets its name with a whole header: a shorter one was cut later, and may have had any number of records.
            let expected = format::log_header::LEN;
            let what =
                format!("{} bytes, less than its header of {expected}; its records are lost", bytes.len());
            found(None, what, true);
            continue;
        }
        // A log with a damaged header and nothing behind it held nothing.
        let unreadable = remains.sequences.is_none() && bytes.len() > format::log_header::LEN;
        let lost = remains.missing > 0 || unreadable;
        findings.extend(remains.damage.iter().map(|error| Finding::of(error, lost)));
        let mut found = |offset, what: String, lost| {
            findings.push(Finding { path: log.clone(), offset, what, lost });
        };
        if remains.missing > 0 {
            found(None, format!("{} records are lost; later records are used", remains.missing), true);
        }
        let is_told = unreadable && !remains.damage.is_empty();
        let end = bytes.len() as u64 - remains.torn_bytes;
        if let Some(lost) = synced.and_then(|synced| synced.checked_sub(end)).filter(|lost| *lost > 0) {
            found(Some(end), format!("{lost} synced bytes are damaged"), true);
        } else if remains.torn_bytes > 0 && !is_told {
            let ended = synced.is_some() || remains.closed;
            let doubt = if ended { "" } else { ", or they are damaged (it is not known which)" };
            let what = format!(
                "the last {} bytes are not a complete record: a crash cut them off{doubt}",
                remains.torn_bytes
            );
            found(Some(end), what, false);
        }
        next = remains.sequences.map(|(_, last)| last.saturating_add(1)).or(next);
    }
    (memtable, operations)
}

/// The finding for a lost manifest, with its consequences.
fn manifest_lost(path: &Path, error: &Error) -> Finding {
    let (offset, why) = match error {
        Error::Corrupt { offset, damage, .. } => (Some(*offset), damage.to_string()),
        Error::NotAStore { .. } => (None, "missing".to_string()),
        other => (None, other.to_string()),
    };
    let what = format!(
        "{why}; using all segments and logs in the directory, in the order of their numbers, with the settings of the tables; the text \
         profile is unknown unless given; deleted documents may be back if segments had been merged"
    );
    Finding { path: path.join(MANIFEST), offset, what, lost: true }
}

/// The finding for a file that cannot be opened. Losses in tables and ids are counted by fingerprints instead.
fn of_file(error: &Error) -> Finding {
    let mut found = Finding::of(error, false);
    match found.path.extension().and_then(|extension| extension.to_str()) {
        Some("names") => {
            found.lost = true;
            found.what += "; the names of its documents are lost";
        }
        Some("notes") => {
            found.lost = true;
            found.what += "; the notes of its documents are lost";
        }
        Some("tombstones") => {
            found.lost = true;
            found.what += "; pairs that it deleted from older segments are back";
        }
        Some("marks") => return marks_lost(found),
        _ => {}
    }
    found
}

/// The finding for lost marks, with its consequences.
fn marks_lost(found: Finding) -> Finding {
    let what = format!("{}; marks are lost, such as how far inputs have been read", found.what);
    Finding { what, lost: true, ..found }
}

/// The segments that a folder has files of, by number.
fn entries_of(names: &[String]) -> Vec<SegmentEntry> {
    let keeps_ids = names.iter().any(|name| name.ends_with(".ids"));
    let mut entries: BTreeMap<u64, SegmentEntry> = BTreeMap::new();
    for name in names.iter().filter(|name| is_store_file(name) && !name.ends_with(".tmp")) {
        let Some((stem, kind)) = name.rsplit_once('.').filter(|(_, kind)| *kind != "log") else { continue };
        let (number, table) = stem.split_once('-').unwrap_or((stem, "0"));
        let (Ok(number), Ok(table)) = (number.parse(), table.parse::<u32>()) else { continue };
        let entry = entries.entry(number).or_insert_with(|| SegmentEntry {
            number,
            tables: 1,
            has_ids: keeps_ids,
            ..SegmentEntry::default()
        });
        entry.tables = entry.tables.max(table + 1);
        entry.names += u64::from(kind == "names");
        entry.tombstones += u64::from(kind == "tombstones");
        entry.marks += u64::from(kind == "marks");
        entry.notes += u64::from(kind == "notes");
    }
    entries.into_values().collect()
}

/// The settings of a store, by its tables.
fn settings_of<F: Fingerprint>(segments: &[SegmentRemains<F>], ids: bool) -> Settings {
    let mut settings = Settings {
        bits: F::BITS,
        distance: 3,
        codec: Default::default(),
        ids,
        block_size: None,
        span: None,
        profile: String::new(),
        plan: PlanChoice::Auto,
    };
    if let Some(table) = segments.iter().flat_map(SegmentRemains::tables).next() {
        let header = table.header();
        settings.codec = header.codec;
        let default = header.codec.default_block_size(F::BITS);
        settings.block_size = Some(header.block_size).filter(|&size| size != default);
        settings.span = Some(header.span)
            .filter(|&span| span > 0 && Some(span) != header.codec.default_span(header.fingerprints));
    }
    // Each segment is complete for the store's distance at least; one that is read whole is for every distance.
    let complete_for = segments.iter().filter(|segment| segment.has_all_tables()).filter_map(|segment| {
        let plans: Vec<_> = segment.tables().map(|table| table.header().plan.clone()).collect();
        let is_complete = |distance: &u32| Plan::new("", *distance, plans.clone()).is_ok();
        (0..=F::MAX_DISTANCE).take_while(is_complete).last().filter(|&distance| distance < F::MAX_DISTANCE)
    });
    settings.distance = complete_for.min().unwrap_or(settings.distance);
    settings
}
