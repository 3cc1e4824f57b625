//! Opening a store for writing: takes the lock, reads the manifest, replays the logs, starts a new log.
//!
//! Each writer has a log of its own, so many short runs of a program leave many logs. Two rules keep them few: a new log replaces
//! an empty one, and more than [`MOST_LOGS`] logs become a segment.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::locked_folder::LockedFolder;
use super::reading::{LogInfo, Replayed};
use super::recovery::{self, Logs};
use super::view::{Recent, View};
use super::{LOCK, make_folder, remove_litter, remove_marker, sync_parent};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::{self, log_header};
use crate::fs::{Fs, TEMPORARY};
use crate::manifest::{
    BUILDING, MANIFEST, MANIFEST_LOST, Manifest, Settings, check_log_number, is_manifest_lost, is_store_file,
    log_name,
};
use crate::memtable::Memtable;
use crate::options::StoreOptions;
use crate::wal::{LogStart, LogWriter};

/// Most logs of a store. If it has more, their operations become a segment.
const MOST_LOGS: usize = 8;

/// A store that this process alone may write to.
pub(super) struct Opened<F: Fingerprint> {
    /// The disk for all that is written. It holds the lock until it is dropped.
    pub(super) fs: Arc<dyn Fs>,
    pub(super) view: View<F>,
    pub(super) log: LogWriter<F>,
    pub(super) next_number: u64,
    /// Torn tail of the newest log, if damage could have caused it.
    pub(super) torn_end: Option<Error>,
}

/// Opens a store, or makes one.
pub(super) fn open<F: Fingerprint>(path: &Path, options: &StoreOptions) -> Result<Opened<F>> {
    let disk = &options.fs;
    if options.create && disk.list(path).is_err() {
        // Impossible options are refused before anything is made.
        settings::<F>(options)?;
    }
    let is_new = options.create && make_folder(&**disk, path)?;
    if is_new {
        sync_parent(&**disk, path)?;
    } else {
        check_folder(&**disk, path, options)?;
    }
    let fs: &Arc<dyn Fs> = &(Arc::new(LockedFolder::take(disk, path)?) as Arc<dyn Fs>);
    let manifest = match Manifest::load(&**fs, path) {
        Ok(manifest) => manifest,
        Err(Error::NotAStore { .. }) if options.create => {
            // Under the lock, nobody else changes the folder.
            check_folder(&**fs, path, options)?;
            create(fs, path, settings::<F>(options)?)?;
            Manifest::load(&**fs, path)?
        }
        Err(error) => return Err(error),
    };
    check_settings::<F>(path, &manifest.settings, options)?;

    let mut view = recovery::segments::<F>(fs, path, &manifest, &[])?;
    // A snapshot may be kept for longer than the lock.
    view.fs = disk.clone();
    let logs = Logs::find(&**fs, path, &manifest)?;
    let distance = manifest.settings.distance;
    let pairs = Memtable::<F>::pairs_in(distance, options.memtable).max(logs.pairs::<F>());
    let memtable = Memtable::for_pairs(distance, pairs);
    let Replayed { sequence, version, logs: found, last, before_last } =
        logs.replay(path, &manifest, &memtable)?;
    view.logs = found;
    let torn_end = view.logs.iter().find_map(|log| log.torn_end(path));
    // Replayed records may be in the page cache only: they become durable before anything is written after them.
    for number in logs.numbers() {
        let log = path.join(log_name(number));
        fs.sync_file(&log).map_err(Error::io(&log, "sync"))?;
    }
    let mut keep: Vec<String> = manifest.segments.iter().flat_map(|segment| segment.files()).collect();
    keep.extend(logs.numbers().map(log_name));
    remove_litter(&**fs, path, &keep)?;
    remove_marker(&**fs, path)?;

    let mut numbers: Vec<u64> = logs.numbers().collect();
    let mut next_number = manifest.next_number.max(numbers.last().map_or(0, |last| last + 1));
    // One that is empty is of no use any more: the new one is the same.
    let is_empty = |log: &mut LogInfo| log.bytes == log_header::LEN as u64;
    let (number, previous) = match view.logs.pop_if(is_empty) {
        Some(empty) => {
            numbers.pop();
            (empty.number, before_last)
        }
        None => {
            if last.is_some_and(|last| last.len == log_header::LEN as u64) {
                // The process that made it may have ended before its name was durable, and the next log refers to it.
                fs.sync_dir(path).map_err(Error::io(path, "sync"))?;
            }
            next_number += 1;
            (next_number - 1, last)
        }
    };
    let version = if manifest.has_notes() { format::VERSION_WITH_NOTES } else { version };
    let start = LogStart { version, first_sequence: sequence, previous };
    let log = start_log(fs, path, number, start)?;
    // That log says how much of them there was.
    view.logs.iter_mut().for_each(|log| log.ended = true);
    if manifest.first_log == 0 {
        // The store was built in one go. Only with a first log in its manifest are logs looked for.
        let manifest = Manifest { first_log: number, next_number, ..manifest };
        manifest.save(fs, path)?;
        view.manifest = manifest;
    }
    let is_full = numbers.len() > MOST_LOGS || memtable.bytes() >= options.memtable;
    let (distance, first) = (view.manifest.settings.distance, view.manifest.sequence);
    if is_full && !numbers.is_empty() {
        view.memtables.push(Recent::new(Arc::new(memtable), numbers, first));
        let memtable = Arc::new(Memtable::new(distance, options.memtable));
        view.memtables.push(Recent::new(memtable, vec![number], sequence));
    } else {
        numbers.push(number);
        view.memtables.push(Recent::new(Arc::new(memtable), numbers, first));
    }
    Ok(Opened { fs: fs.clone(), view, log, next_number, torn_end })
}

/// Starts a log. Its header and name are durable, and so is the previous log up to the length in the header.
pub(super) fn start_log<F: Fingerprint>(
    fs: &Arc<dyn Fs>,
    path: &Path,
    number: u64,
    start: LogStart,
) -> Result<LogWriter<F>> {
    check_log_number(path, number)?;
    let log = LogWriter::create(fs, &path.join(log_name(number)), number, start)?;
    fs.sync_dir(path).map_err(Error::io(path, "sync"))?;
    Ok(log)
}

/// Refuses a folder that is neither a store's nor may become one: nothing is made in it, not even a lock.
fn check_folder(fs: &dyn Fs, path: &Path, options: &StoreOptions) -> Result<()> {
    let names = match fs.list(path) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            let reason = "a store is a directory, but this is a file".to_string();
            return Err(Error::NotAStore { path: path.to_path_buf(), reason });
        }
        Err(error) => return Err(Error::io(path, "open")(error)),
    };
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    let ours =
        names.iter().all(|name| is_store_file(name) || [LOCK, MANIFEST, BUILDING].contains(&&name[..]));
    let is_lost = ours && is_manifest_lost(&names);
    // A loss of power may have left files that were being written, and not the lock.
    let unfinished = has(LOCK) || has(BUILDING) || names.iter().all(|name| name.ends_with(TEMPORARY));
    if has(MANIFEST) || options.create && ours && unfinished && !is_lost {
        return Ok(());
    }
    let reason = if is_lost {
        MANIFEST_LOST.to_string()
    } else if options.create {
        "the directory is not empty and not a store; choose another path for the store".to_string()
    } else {
        format!("the directory has no {MANIFEST}")
    };
    Err(Error::NotAStore { path: path.to_path_buf(), reason })
}

/// The settings of a new store.
fn settings<F: Fingerprint>(options: &StoreOptions) -> Result<Settings> {
    let settings = Settings {
        bits: F::BITS,
        distance: options.distance.unwrap_or(3),
        codec: options.codec.unwrap_or_default(),
        ids: options.ids.unwrap_or(true),
        block_size: options.block_size,
        span: options.span,
        profile: options.profile.clone().unwrap_or_default(),
        plan: options.plan.clone().unwrap_or_default(),
    };
    settings.plan.check::<F>(settings.distance)?;
    crate::format::check_block_size(settings.block_size)?;
    crate::table::check_span(settings.codec, settings.span)?;
    Ok(settings)
}

/// Makes a store of nothing.
fn create(fs: &Arc<dyn Fs>, path: &Path, settings: Settings) -> Result<()> {
    let manifest = Manifest {
        settings,
        next_number: 1,
        first_log: 0,
        sequence: 0,
        highest_id: None,
        segments: Vec::new(),
    };
    let names = fs.list(path).map_err(Error::io(path, "list"))?;
    if names.iter().any(|name| name == BUILDING) {
        return manifest.save_as_first(fs, path);
    }
    manifest.save(fs, path)
}

/// Refuses options that differ from the store's settings.
fn check_settings<F: Fingerprint>(path: &Path, has: &Settings, asked: &StoreOptions) -> Result<()> {
    if has.bits != F::BITS {
        return Err(Error::Width { path: path.to_path_buf(), expected: F::BITS, found: has.bits });
    }
    let differs = |setting: &'static str, has: String, asked: Option<String>| match asked {
        Some(asked) if asked != has => Err(Error::Setting { path: path.to_path_buf(), setting, has, asked }),
        _ => Ok(()),
    };
    let text = |value: Option<u32>| value.map_or("the default".to_string(), |value| value.to_string());
    differs("distance", has.distance.to_string(), asked.distance.map(|distance| distance.to_string()))?;
    differs("codec", has.codec.to_string(), asked.codec.map(|codec| codec.to_string()))?;
    differs("plan", has.plan.to_string(), asked.plan.as_ref().map(ToString::to_string))?;
    differs("ids", has.ids.to_string(), asked.ids.map(|ids| ids.to_string()))?;
    let profile = |name: &str| if name.is_empty() { "none".to_string() } else { name.to_string() };
    differs("profile", profile(&has.profile), asked.profile.as_deref().map(profile))?;
    differs("block size", text(has.block_size), asked.block_size.map(|size| text(Some(size))))?;
    let span = has.span.map(u32::from);
    differs("span", text(span), asked.span.map(|span| text(Some(u32::from(span)))))
}
