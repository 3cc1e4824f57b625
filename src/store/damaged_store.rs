//! [`DamagedStore`]: the readable part of a damaged store, with a list of its issues.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::issue::Issue;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::fs::{Disk, Fs};
use crate::manifest::{MANIFEST, Manifest, SegmentEntry, Settings, is_store_file, log_file_name, log_number};
use crate::memtable::Memtable;
use crate::plan::{Plan, PlanChoice};
use crate::segment::DamagedSegment;
use crate::wal::{PreviousLog, salvage_log, salvage_previous};

/// The readable part of a damaged store, and the issues (descriptions of damage) that were found.
pub(super) struct DamagedStore<F: Fingerprint> {
    pub(super) path: PathBuf,
    pub(super) settings: Settings,
    pub(super) is_manifest_lost: bool,
    /// Readable parts of the segments, oldest first.
    pub(super) segments: Vec<DamagedSegment<F>>,
    /// Memtable with all intact operations of the logs.
    pub(super) memtable: Memtable<F>,
    /// Number of operations (inserts, deletes, and writes of metadata and notes) replayed from the logs.
    pub(super) operations: u64,
    pub(super) metadata: BTreeMap<String, Vec<u8>>,
    pub(super) highest_id: Option<u64>,
    pub(super) issues: Vec<Issue>,
}

/// Returns the width of the fingerprints, in bits, in a store that may be damaged. If the manifest is damaged, reads the width
/// from the header of a table or log.
///
/// # Errors
/// [`Error::NotAStore`] if no intact header has the width, [`Error::UnsupportedVersion`], [`Error::Io`].
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

/// Returns the intact metadata of a store that may be damaged, as a map from keys to values.
///
/// # Errors
/// [`Error::Width`] if the store's fingerprints have another width, [`Error::UnsupportedVersion`], [`Error::Io`].
pub fn salvageable_metadata<F: Fingerprint>(path: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let fs: Arc<dyn Fs> = Arc::new(Disk::default());
    Ok(DamagedStore::<F>::open(&fs, path)?.metadata)
}

impl<F: Fingerprint> DamagedStore<F> {
    /// Opens all files of the store in the folder `path` that can be opened, and adds an issue for each file that cannot be
    /// opened. Writes nothing.
    pub(super) fn open(fs: &Arc<dyn Fs>, path: &Path) -> Result<Self> {
        let mut names = fs.list(path).map_err(Error::io(path, "list"))?;
        names.sort();
        let mut issues = Vec::new();
        let manifest = match Manifest::load(&**fs, path) {
            Ok(manifest) if manifest.settings.bits != F::BITS => {
                let (expected, found) = (F::BITS, manifest.settings.bits);
                return Err(Error::Width { path: path.to_path_buf(), expected, found });
            }
            Ok(manifest) => Some(manifest),
            Err(error @ Error::UnsupportedVersion { .. }) => return Err(error),
            Err(error) => {
                issues.push(manifest_issue(path, &error));
                None
            }
        };
        let entries = match &manifest {
            Some(manifest) => manifest.segments.clone(),
            None => entries_from_file_names(&names),
        };
        let mut segments = Vec::new();
        for entry in entries {
            segments
                .push(DamagedSegment::open(&**fs, path, entry, &mut |error| issues.push(file_issue(&error))));
        }
        let mut settings = match &manifest {
            Some(manifest) => manifest.settings.clone(),
            // Without segments, all pairs are in the logs, which do not record whether the store has ids. Assume that it has.
            None => settings_from_tables(&segments, segments.is_empty() || has_id_files(&names)),
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
        let sequence = logged.map(|manifest| manifest.first_sequence);
        // Without a manifest, the logs may tell that the store has ids.
        let may_have_ids = manifest.is_none() || settings.has_ids;
        let (memtable, operations) =
            replay(&**fs, path, settings.distance, may_have_ids, &logs, sequence, &mut issues);
        let version = memtable.version();
        if manifest.is_none() {
            settings.has_ids |= memtable.highest_id(version) > Some(0)
                || !memtable.names(version).is_empty()
                || !memtable.notes(version).is_empty();
        }
        let mut metadata = BTreeMap::new();
        for segment in &segments {
            metadata.extend(
                segment.metadata(&mut |error| issues.push(metadata_issue(Issue::from_error(&error, true)))),
            );
        }
        metadata.extend(memtable.all_metadata(version));
        let is_manifest_lost = manifest.is_none();
        let highest_id = manifest.and_then(|manifest| manifest.highest_id).max(memtable.highest_id(version));
        let path = path.to_path_buf();
        Ok(DamagedStore {
            path,
            settings,
            is_manifest_lost,
            segments,
            memtable,
            operations,
            metadata,
            highest_id,
            issues,
        })
    }
}

/// Applies all intact operations of the logs to a new memtable, and adds an issue for each damage. Returns the memtable,
/// and the number of operations. `logs` has the file numbers of the logs. `next` is the sequence number that the first
/// record should have according to the manifest; `None` if it is unknown. If `may_have_ids` is false, operations
/// with ids, names or notes are damage.
fn replay<F: Fingerprint>(
    fs: &dyn Fs,
    path: &Path,
    distance: u32,
    may_have_ids: bool,
    logs: &[u64],
    mut next: Option<u64>,
    issues: &mut Vec<Issue>,
) -> (Memtable<F>, u64) {
    let mut opened = Vec::new();
    for &number in logs {
        let log = path.join(log_file_name(number));
        match fs.map(&log) {
            Ok(bytes) => opened.push((number, log, bytes)),
            Err(error) => issues.push(Issue::from_error(&Error::io(&log, "open")(error), true)),
        }
    }
    let bytes = opened.iter().map(|(_, _, bytes)| bytes.as_ref().len() as u64).sum();
    // Each log but the first records the length of the previous one.
    let recorded: Vec<PreviousLog> = (opened.iter().skip(1))
        .filter_map(|(number, log, bytes)| salvage_previous::<F>(log, bytes.as_ref(), *number))
        .collect();
    for missing in recorded.iter().filter(|previous| !logs.contains(&previous.number)) {
        let description = "missing; the log after it says that it was there".to_string();
        let is_loss = missing.len > format::log_header::LEN as u64;
        issues.push(Issue {
            path: path.join(log_file_name(missing.number)),
            offset: None,
            description,
            is_loss,
        });
    }
    let (memtable, mut operations) = (Memtable::new(distance, bytes), 0);
    for (number, log, bytes) in opened {
        let bytes = bytes.as_ref();
        let synced = recorded.iter().find(|previous| previous.number == number).map(|previous| previous.len);
        let damaged_log = salvage_log::<F>(&log, bytes, number, may_have_ids, |operation| {
            memtable.apply(&operation);
            operations += 1;
        });
        memtable.publish();
        let mut report = |offset, description: String, is_loss| {
            issues.push(Issue { path: log.clone(), offset, description, is_loss });
        };
        if let (Some(next), Some((first, _))) = (next, damaged_log.sequences)
            && next < first
        {
            report(None, format!("records {next} to {} before this log are missing", first - 1), true);
        }
        if bytes.len() < format::log_header::LEN {
            // A log gets its name after its header is complete. So a shorter file was truncated later, and any number of records
            // may be lost.
            let expected = format::log_header::LEN;
            let description =
                format!("{} bytes, less than its header of {expected}; its records are lost", bytes.len());
            report(None, description, true);
            continue;
        }
        // If the header is damaged, and no bytes follow it, no records are lost.
        let is_unreadable = damaged_log.sequences.is_none() && bytes.len() > format::log_header::LEN;
        let lost = damaged_log.missing > 0 || is_unreadable;
        issues.extend(damaged_log.damage.iter().map(|error| Issue::from_error(error, lost)));
        let mut report = |offset, description: String, is_loss| {
            issues.push(Issue { path: log.clone(), offset, description, is_loss });
        };
        if damaged_log.missing > 0 {
            report(None, format!("{} records are lost; later records are used", damaged_log.missing), true);
        }
        let is_reported = is_unreadable && !damaged_log.damage.is_empty();
        let end = bytes.len() as u64 - damaged_log.torn_bytes;
        if let Some(lost) = synced.and_then(|synced| synced.checked_sub(end)).filter(|lost| *lost > 0) {
            report(Some(end), format!("{lost} synced bytes are damaged"), true);
        } else if damaged_log.torn_bytes > 0 && !is_reported {
            let ended = synced.is_some() || damaged_log.closed;
            let doubt = if ended { "" } else { ", or they are damaged (it is not known which)" };
            let description = format!(
                "the last {} bytes are not a complete record: a crash cut them off{doubt}",
                damaged_log.torn_bytes
            );
            report(Some(end), description, false);
        }
        next = damaged_log.sequences.map(|(_, last)| last.saturating_add(1)).or(next);
    }
    (memtable, operations)
}

/// Converts the error for a missing or damaged manifest to an issue, whose description includes the consequences.
fn manifest_issue(path: &Path, error: &Error) -> Issue {
    let (offset, cause) = match error {
        Error::Corrupt { offset, damage, .. } => (Some(*offset), damage.to_string()),
        Error::NotAStore { .. } => (None, "missing".to_string()),
        other => (None, other.to_string()),
    };
    let description = format!(
        "{cause}; using all segments and logs in the directory, in the order of their numbers, with the settings of the tables; the text \
         profile is unknown unless given; deleted documents may be back if segments had been merged"
    );
    Issue { path: path.join(MANIFEST), offset, description, is_loss: true }
}

/// Converts the error for a file that cannot be opened to an issue, whose description includes the consequences. The
/// issue of a table or id file is not marked as a loss, because the salvage counts the lost fingerprints and ids
/// separately.
fn file_issue(error: &Error) -> Issue {
    let mut issue = Issue::from_error(error, false);
    match issue.path.extension().and_then(|extension| extension.to_str()) {
        Some("names") => {
            issue.is_loss = true;
            issue.description += "; the names of its documents are lost";
        }
        Some("notes") => {
            issue.is_loss = true;
            issue.description += "; the notes of its documents are lost";
        }
        Some("tombstones") => {
            issue.is_loss = true;
            issue.description += "; pairs that it deleted from older segments are back";
        }
        Some("metadata") => return metadata_issue(issue),
        _ => {}
    }
    issue
}

/// Marks the issue of a metadata file as a loss, and adds the consequences to its description.
fn metadata_issue(issue: Issue) -> Issue {
    let description =
        format!("{}; metadata is lost, such as how far inputs have been read", issue.description);
    Issue { description, is_loss: true, ..issue }
}

/// Reconstructs the manifest's entries of all segments, ordered by file number, from the file names in the folder.
/// File names do not show how much a file contains. So the count of names is 1 if the segment has a name file, and
/// likewise for notes, metadata and tombstones. The counts of fingerprints and ids are 0.
fn entries_from_file_names(names: &[String]) -> Vec<SegmentEntry> {
    let keeps_ids = has_id_files(names);
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
        entry.metadata += u64::from(kind == "metadata");
        entry.notes += u64::from(kind == "notes");
    }
    entries.into_values().collect()
}

/// Whether some of the files belong to a store with ids. Names and notes belong to ids, so no other store has them.
fn has_id_files(names: &[String]) -> bool {
    let is_of_ids = |name: &String| [".ids", ".names", ".notes"].iter().any(|ending| name.ends_with(ending));
    names.iter().any(|name| is_store_file(name) && is_of_ids(name))
}

/// Reconstructs the settings of a store from the headers of its tables. `ids` tells whether the store has ids.
fn settings_from_tables<F: Fingerprint>(segments: &[DamagedSegment<F>], ids: bool) -> Settings {
    let mut settings = Settings {
        bits: F::BITS,
        distance: 3,
        codec: Default::default(),
        has_ids: ids,
        block_size: None,
        span: None,
        profile: String::new(),
        plan: PlanChoice::Auto,
    };
    if let Some(table) = segments.iter().flat_map(DamagedSegment::tables).next() {
        let header = table.header();
        settings.codec = header.codec;
        let default = header.codec.default_block_size(F::BITS);
        settings.block_size = Some(header.block_size).filter(|&size| size != default);
        settings.span = Some(header.span)
            .filter(|&span| span > 0 && Some(span) != header.codec.default_span(header.fingerprints));
    }
    // The plan of each segment is complete at least for the store's distance, and may be complete for a larger one. So the smallest
    // of their largest distances is used. A plan that reads the whole table is complete for every distance, and is left out.
    let complete_for = segments.iter().filter(|segment| segment.has_all_tables()).filter_map(|segment| {
        let plans: Vec<_> = segment.tables().map(|table| table.header().plan.clone()).collect();
        let is_complete = |distance: &u32| Plan::new("", *distance, plans.clone()).is_ok();
        (0..=F::MAX_DISTANCE).take_while(is_complete).last().filter(|&distance| distance < F::MAX_DISTANCE)
    });
    settings.distance = complete_for.min().unwrap_or(settings.distance);
    settings
}
