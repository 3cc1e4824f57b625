//! Opening a store for writing: takes the lock, reads the manifest, replays the logs, starts a new log.
//!
//! Each open starts a new log, so many short runs of a program leave many logs. Two rules limit the number of logs: a new log
//! replaces an empty one, and if there are more than [`MAX_LOGS`] logs, their contents are flushed to a segment.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::locked_folder::LockedFolder;
use super::log_chain::{LogChain, LogInfo};
use super::recovery::{self, UnflushedLogs};
use super::view::{MemtableRef, View};
use super::{LOCK_FILE, create_folder, remove_build_marker, remove_unlisted_files, sync_parent};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::log_header;
use crate::fs::{Fs, TEMPORARY_SUFFIX};
use crate::manifest::{
    BUILD_MARKER, MANIFEST, MANIFEST_LOST_REASON, Manifest, Settings, check_log_number, is_manifest_lost,
    is_store_file, log_file_name,
};
use crate::memtable::Memtable;
use crate::options::StoreOptions;
use crate::wal::{LogHeader, LogWriter};

/// Maximum number of logs that a store keeps. If there are more when the store is opened, their operations are flushed
/// to a segment.
const MAX_LOGS: usize = 8;

/// The parts of a store that was opened for writing: its locked file system, its contents, and its new log.
pub(super) struct OpenedStore<F: Fingerprint> {
    /// File system for all writes. It holds the lock of the store's folder until it is dropped.
    pub(super) fs: Arc<dyn Fs>,
    pub(super) view: View<F>,
    pub(super) log: LogWriter<F>,
    pub(super) next_number: u64,
    /// Error for the torn tail of the newest log (an incomplete record at its end), if damage may have caused it.
    pub(super) torn_tail: Option<Error>,
}

/// Opens a store for writing, or creates it.
pub(super) fn open<F: Fingerprint>(path: &Path, options: &StoreOptions) -> Result<OpenedStore<F>> {
    let disk = &options.fs;
    if options.create && disk.list(path).is_err() {
        // Impossible options are refused before anything is created.
        new_settings::<F>(options)?;
    }
    let is_new = options.create && create_folder(&**disk, path)?;
    if is_new {
        sync_parent(&**disk, path)?;
    } else {
        check_folder(&**disk, path, options)?;
    }
    let fs: &Arc<dyn Fs> = &(Arc::new(LockedFolder::acquire(disk, path)?) as Arc<dyn Fs>);
    let manifest = match Manifest::load(&**fs, path) {
        Ok(manifest) => manifest,
        Err(Error::NotAStore { .. }) if options.create => {
            // The first check was without the lock, so the folder may have changed since.
            check_folder(&**fs, path, options)?;
            create_empty(fs, path, new_settings::<F>(options)?)?;
            Manifest::load(&**fs, path)?
        }
        Err(error) => return Err(error),
    };
    check_settings::<F>(path, &manifest.settings, options)?;

    let mut view = recovery::open_segments::<F>(fs, path, &manifest, &[])?;
    // A snapshot may outlive the lock, so it gets the plain file system.
    view.fs = disk.clone();
    let logs = UnflushedLogs::open(&**fs, path, &manifest)?;
    let distance = manifest.settings.distance;
    let pairs = Memtable::<F>::pairs_in_bytes(distance, options.memtable).max(logs.insert_count::<F>());
    let memtable = Memtable::with_expected_pairs(distance, pairs);
    let LogChain { next_sequence: sequence, logs: found, last, before_last } =
        logs.replay(path, &manifest, &memtable)?;
    view.logs = found;
    let torn_tail = view.logs.iter().find_map(|log| log.torn_tail(path));
    // Replayed records may be in the page cache only. They must be durable before later records are written.
    for number in logs.numbers() {
        let log = path.join(log_file_name(number));
        fs.sync_file(&log).map_err(Error::io(&log, "sync"))?;
    }
    let mut keep: Vec<String> = manifest.segments.iter().flat_map(|segment| segment.file_names()).collect();
    keep.extend(logs.numbers().map(log_file_name));
    remove_unlisted_files(&**fs, path, &keep)?;
    remove_build_marker(&**fs, path)?;

    let mut numbers: Vec<u64> = logs.numbers().collect();
    let mut next_number = manifest.next_number.max(numbers.last().map_or(0, |last| last + 1));
    // An empty log is replaced: the new log gets its number.
    let is_empty = |log: &mut LogInfo| log.bytes == log_header::LEN as u64;
    let (number, previous) = match view.logs.pop_if(is_empty) {
        Some(empty) => {
            numbers.pop();
            (empty.number, before_last)
        }
        None => {
            if last.is_some_and(|last| last.len == log_header::LEN as u64) {
                // The last log may be empty, and its name not durable, if its process ended early. The next log refers to it.
                fs.sync_dir(path).map_err(Error::io(path, "sync"))?;
            }
            next_number += 1;
            (next_number - 1, last)
        }
    };
    let start = LogHeader { first_sequence: sequence, previous };
    let log = create_log(fs, path, number, start)?;
    // The header of the new log records the length of the sound part of the last log.
    view.logs.iter_mut().for_each(|log| log.is_sealed = true);
    if manifest.first_log == 0 {
        // A store from a `Builder` has no logs yet. Logs are read only if the manifest has the number of the first one.
        let manifest = Manifest { first_log: number, next_number, ..manifest };
        manifest.save(fs, path)?;
        view.manifest = manifest;
    }
    let is_full = numbers.len() > MAX_LOGS || memtable.bytes() >= options.memtable;
    let (distance, first) = (view.manifest.settings.distance, view.manifest.first_sequence);
    if is_full && !numbers.is_empty() {
        view.memtables.push(MemtableRef::new(Arc::new(memtable), numbers, first));
        let memtable = Arc::new(Memtable::new(distance, options.memtable));
        view.memtables.push(MemtableRef::new(memtable, vec![number], sequence));
    } else {
        numbers.push(number);
        view.memtables.push(MemtableRef::new(Arc::new(memtable), numbers, first));
    }
    Ok(OpenedStore { fs: fs.clone(), view, log, next_number, torn_tail })
}

/// Creates a log with the header `start`. The header and the name of the log are durable afterwards. The header records
/// the length of the previous log; the caller must have synced the previous log up to this length.
pub(super) fn create_log<F: Fingerprint>(
    fs: &Arc<dyn Fs>,
    path: &Path,
    number: u64,
    start: LogHeader,
) -> Result<LogWriter<F>> {
    check_log_number(path, number)?;
    let log = LogWriter::create(fs, &path.join(log_file_name(number)), number, start)?;
    fs.sync_dir(path).map_err(Error::io(path, "sync"))?;
    Ok(log)
}

/// Returns an error unless the folder is a store or, with `options.create`, is empty or holds an unfinished store. Creates nothing
/// in the folder, not even a lock file.
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
    let is_ours = names
        .iter()
        .all(|name| is_store_file(name) || [LOCK_FILE, MANIFEST, BUILD_MARKER].contains(&&name[..]));
    let is_lost = is_ours && is_manifest_lost(&names);
    // After a power failure, there may be temporary files without the lock file.
    let is_unfinished =
        has(LOCK_FILE) || has(BUILD_MARKER) || names.iter().all(|name| name.ends_with(TEMPORARY_SUFFIX));
    if has(MANIFEST) || options.create && is_ours && is_unfinished && !is_lost {
        return Ok(());
    }
    let reason = if is_lost {
        MANIFEST_LOST_REASON.to_string()
    } else if options.create {
        "the directory is not empty and not a store; choose another path for the store".to_string()
    } else {
        format!("the directory has no {MANIFEST}")
    };
    Err(Error::NotAStore { path: path.to_path_buf(), reason })
}

/// Returns the settings of a new store with these options, or an error if they are impossible.
fn new_settings<F: Fingerprint>(options: &StoreOptions) -> Result<Settings> {
    let settings = Settings {
        bits: F::BITS,
        distance: options.distance.unwrap_or(3),
        codec: options.codec.unwrap_or_default(),
        has_ids: options.ids.unwrap_or(true),
        block_size: options.block_size,
        span: options.span,
        profile: options.profile.clone().unwrap_or_default(),
        plan: options.plan.clone().unwrap_or_default(),
    };
    settings.plan.validate::<F>(settings.distance)?;
    crate::format::check_block_size(settings.block_size)?;
    crate::table::check_span(settings.codec, settings.span)?;
    Ok(settings)
}

/// Creates an empty store in an existing folder.
fn create_empty(fs: &Arc<dyn Fs>, path: &Path, settings: Settings) -> Result<()> {
    let manifest = Manifest {
        settings,
        next_number: 1,
        first_log: 0,
        first_sequence: 0,
        highest_id: None,
        segments: Vec::new(),
    };
    let names = fs.list(path).map_err(Error::io(path, "list"))?;
    if names.iter().any(|name| name == BUILD_MARKER) {
        return manifest.save_over_marker(fs, path);
    }
    manifest.save(fs, path)
}

/// Returns an error if an option is given but differs from the corresponding setting of an existing store.
fn check_settings<F: Fingerprint>(path: &Path, settings: &Settings, options: &StoreOptions) -> Result<()> {
    if settings.bits != F::BITS {
        return Err(Error::Width { path: path.to_path_buf(), expected: F::BITS, found: settings.bits });
    }
    let differs = |setting: &'static str, has: String, requested: Option<String>| match requested {
        Some(requested) if requested != has => {
            Err(Error::Setting { path: path.to_path_buf(), setting, has, requested })
        }
        _ => Ok(()),
    };
    let text = |value: Option<u32>| value.map_or("the default".to_string(), |value| value.to_string());
    differs(
        "distance",
        settings.distance.to_string(),
        options.distance.map(|distance| distance.to_string()),
    )?;
    differs("codec", settings.codec.to_string(), options.codec.map(|codec| codec.to_string()))?;
    differs("plan", settings.plan.to_string(), options.plan.as_ref().map(ToString::to_string))?;
    differs("ids", settings.has_ids.to_string(), options.ids.map(|ids| ids.to_string()))?;
    let profile = |name: &str| if name.is_empty() { "none".to_string() } else { name.to_string() };
    differs("profile", profile(&settings.profile), options.profile.as_deref().map(profile))?;
    differs("block size", text(settings.block_size), options.block_size.map(|size| text(Some(size))))?;
    let span = settings.span.map(u32::from);
    differs("span", text(span), options.span.map(|span| text(Some(u32::from(span)))))
}
