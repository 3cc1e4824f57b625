//! Copies the intact part of a damaged store into a new store.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use super::builder::Builder;
use super::damaged_store::DamagedStore;
use super::is_inside;
use super::issue::Issue;
use super::iter::{KeyedSource, NewestByKey, ReadChunkFn};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::fs::{Disk, Fs};
use crate::options::{BuildOptions, MIN_SORT_MEMORY, check_memory};
use crate::progress::{ProgressCallback, ProgressCounter};
use crate::segment::DamagedSegment;
use crate::spill::{PrefixLocation, Sorter};

/// Options of [`salvage`].
#[derive(Clone, Debug, Default)]
pub struct SalvageOptions {
    /// Whether to keep fingerprints whose ids are lost. If true, these fingerprints get new ids above the highest id of the
    /// store. If false, the default, they are left out.
    pub keep_without_ids: bool,
    /// Largest query distance of the new store, in bits. The default is the distance in the manifest or, if the manifest is lost,
    /// the largest distance that the tables can answer.
    pub distance: Option<u32>,
    /// Lower bound for the largest query distance of the new store, in bits. It applies if `distance` or its default is
    /// smaller.
    pub min_distance: Option<u32>,
    /// Keys of metadata values that are always kept. Values of other keys are kept only if nothing is lost.
    pub kept_metadata: Vec<String>,
    /// Text profile of the new store (how texts become fingerprints), used only if the manifest is lost.
    pub profile: Option<String>,
    /// Memory for sorting, in bytes; see [`BuildOptions::memory`](field@BuildOptions::memory).
    pub memory: Option<u64>,
    /// Callback that receives the progress of building the new store, and can cancel the salvage. If the callback cancels,
    /// the files of the new store are removed.
    pub progress: Option<ProgressCallback>,
}

/// The result of [`salvage`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// Number of distinct fingerprints in the new store.
    pub fingerprints: u64,
    /// Number of pairs of fingerprint and id in the new store.
    pub ids: u64,
    /// Number of document names in the new store.
    pub names: u64,
    /// Number of notes in the new store. A note is a string of bytes stored with a document, see
    /// [`Builder::set_note`].
    pub notes: u64,
    /// Number of operations (inserts, deletes, and writes of metadata and notes) replayed from the logs.
    pub operations: u64,
    /// Number of fingerprints that are readable, but whose ids are lost.
    pub without_ids: u64,
    /// Number of lost fingerprints, which cannot be read in any table of their segment. If the number of fingerprints of a
    /// segment is unknown, the lost fingerprints of this segment are not counted.
    pub lost_fingerprints: u64,
    /// Problems that were found in the damaged store, each with the file and a description.
    pub issues: Vec<Issue>,
}

impl SalvageReport {
    /// Whether nothing was lost. If true, the new store has the whole content of the damaged store.
    pub fn is_whole(&self) -> bool {
        !self.issues.iter().any(|issue| issue.is_loss)
    }
}

/// Copies the intact part of a damaged store into a new store. Nothing is written to the damaged store, and
/// nothing else may write to it meanwhile.
///
/// The manifest lists the segments and logs. If the manifest is lost, segments and logs are found by their file names,
/// and the settings are read from the headers of the tables. A fingerprint is rescued if it is intact in any table of
/// its segment. Its ids are rescued if the part of the id file that contains them is intact. From logs, all intact
/// records are taken, even those after a damaged record.
///
/// If anything is lost, all metadata is dropped, except the keys in [`SalvageOptions::kept_metadata`], because
/// programs may keep in metadata how far they have read their inputs. Without this metadata, the programs read the
/// inputs again, and so restore the lost content.
///
/// # Errors
/// [`Error::Width`] if the store's fingerprints have another width. [`Error::UnsupportedVersion`] if the manifest has an unknown
/// version. [`Error::BadArgument`] if the new path is inside the damaged store. [`Error::Exhausted`] if no new ids are left. Errors of
/// [`Builder::create`] and [`Builder::finish`] for the new store.
pub fn salvage<F: Fingerprint>(path: &Path, new: &Path, options: &SalvageOptions) -> Result<SalvageReport> {
    let fs: Arc<dyn Fs> = Arc::new(Disk::default());
    salvage_on::<F>(&fs, path, new, options)
}

/// Like [`salvage`], on another file system than the real disk.
///
/// # Errors
/// Errors of [`salvage`].
pub fn salvage_on<F: Fingerprint>(
    fs: &Arc<dyn Fs>,
    path: &Path,
    new: &Path,
    options: &SalvageOptions,
) -> Result<SalvageReport> {
    check_memory(options.memory)?;
    if is_inside(path, new) {
        let message = format!("{}: inside the damaged store; choose another path", new.display());
        return Err(Error::BadArgument(message));
    }
    let mut store = DamagedStore::<F>::open(fs, path)?;
    let distance = options.distance.unwrap_or(store.settings.distance);
    store.settings.distance = distance.max(options.min_distance.unwrap_or(0));
    if let Some(profile) = options.profile.as_ref().filter(|_| store.is_manifest_lost) {
        store.settings.profile.clone_from(profile);
    }
    let settings = &store.settings;
    let build = BuildOptions {
        distance: settings.distance,
        codec: settings.codec,
        plan: settings.plan.or_auto::<F>(settings.distance),
        block_size: settings.block_size,
        span: settings.span,
        memory: options.memory,
        progress: options.progress.clone(),
        ids: settings.has_ids,
        profile: settings.profile.clone(),
        fs: fs.clone(),
        ..BuildOptions::default()
    };
    // The builder and the two other sorters get a third of the memory each.
    let memory = build.memory() / 3;
    let build = BuildOptions { memory: Some(memory.max(MIN_SORT_MEMORY)), ..build };
    let builder = Builder::<F>::create(new, build).map_err(|error| match error {
        Error::AlreadyExists { path, .. } => {
            let reason = "the path already exists; choose another path for the new store";
            Error::AlreadyExists { path, reason }
        }
        other => other,
    })?;
    // Temporary runs get file number 0. Segments of the new store have higher numbers.
    let run_location = PrefixLocation::new(builder.fs(), &new.join("000000"));
    let without_ids = Sorter::new(run_location.clone(), memory);
    let mut job = SalvageJob {
        run_location,
        memory,
        builder,
        without_ids,
        result: SalvageReport::default(),
        progress: options.progress.clone(),
    };
    job.result.issues.clone_from(&store.issues);
    job.result.operations = store.operations;
    job.copy_pairs(&store)?;
    let version = store.memtable.version();
    let recent = &store.memtable;
    let (chunks, read) = (DamagedSegment::name_chunks, DamagedSegment::names);
    job.copy_newest_by_id(&store, &recent.names(version), chunks, read, Builder::set_name)?;
    let (chunks, read) = (DamagedSegment::note_chunks, DamagedSegment::notes);
    job.copy_newest_by_id(&store, &recent.notes(version), chunks, read, Builder::set_note)?;
    job.finish(&store, options)
}

/// The state of a running salvage.
struct SalvageJob<F: Fingerprint> {
    /// Location of the temporary files with sorted runs of fingerprints.
    run_location: Arc<PrefixLocation>,
    /// Memory for each sorter of fingerprints, in bytes.
    memory: u64,
    builder: Builder<F>,
    /// Sorter with the fingerprints whose ids are lost.
    without_ids: Sorter<F>,
    result: SalvageReport,
    progress: Option<ProgressCallback>,
}

impl<F: Fingerprint> SalvageJob<F> {
    /// Copies the pairs of fingerprint and id from segments and logs to the new store, except pairs that newer tombstones
    /// delete. Fingerprints whose ids are lost go to `without_ids`.
    fn copy_pairs(&mut self, store: &DamagedStore<F>) -> Result<()> {
        let keeps_ids = store.settings.has_ids;
        let version = store.memtable.version();
        let progress = self.progress.clone();
        let (steps, mut seen) = (ProgressCounter::new(progress.as_ref(), 0), 0);
        for (i, segment) in store.segments.iter().enumerate() {
            steps.check_cancelled()?;
            let newer = &store.segments[i + 1..];
            let mut damaged = Vec::new();
            let mut without_ids = 0;
            let SalvageJob { builder, without_ids: pending, .. } = self;
            let read = segment.visit(
                self.run_location.clone(),
                self.memory,
                &steps,
                &mut |error| damaged.push(error),
                &mut |fingerprint, id| {
                    steps.check_cancelled_at(&mut seen)?;
                    let Some(id) = id.or((!keeps_ids).then_some(0)) else {
                        without_ids += 1;
                        return pending.push(fingerprint);
                    };
                    let is_hidden = newer.iter().any(|newer| newer.has_tombstone(fingerprint, id))
                        || store.memtable.has_tombstone(version, fingerprint, id);
                    if is_hidden { Ok(()) } else { builder.insert(fingerprint, id) }
                },
            )?;
            self.result.without_ids += without_ids;
            let lost = segment.fingerprints.saturating_sub(read);
            self.result.lost_fingerprints += lost;
            let is_unknown = lost == 0 && segment.tables().next().is_none();
            // The issues below count the losses in these parts as fingerprints.
            self.result.issues.extend(damaged.iter().map(|error| Issue::from_error(error, false)));
            let path = store.path.join(segment.entry.table_file_name(0));
            if lost > 0 || is_unknown {
                let lost = if is_unknown { "an unknown number".to_string() } else { lost.to_string() };
                let description =
                    format!("{lost} of the fingerprints of segment {} are lost", segment.entry.number);
                self.result.issues.push(Issue { path, offset: None, description, is_loss: true });
            }
            if without_ids > 0 {
                let path = store.path.join(segment.entry.side_file_name("ids"));
                let description = format!("the ids of {without_ids} fingerprints are lost");
                self.result.issues.push(Issue { path, offset: None, description, is_loss: true });
            }
        }
        for (fingerprint, id) in store.memtable.entries(version) {
            self.builder.insert(fingerprint, id)?;
        }
        Ok(())
    }

    /// Copies names or notes to the new store: the newest value of each document, unless a newer segment or log deletes a
    /// pair with the document's id. `recent` has the values in the logs. `chunks` returns the number of chunks of values
    /// in a segment, and `read` reads one chunk. `keep` adds a value to the new store.
    fn copy_newest_by_id<V: ToOwned + ?Sized>(
        &mut self,
        store: &DamagedStore<F>,
        recent: &[(u64, &V)],
        chunks: fn(&DamagedSegment<F>) -> usize,
        read: ReadChunkFn<DamagedSegment<F>, u64, V::Owned>,
        keep: fn(&mut Builder<F>, u64, &V) -> Result<()>,
    ) -> Result<()> {
        let issues = RefCell::new(Vec::new());
        let segments = store.segments.iter().map(|segment| {
            let read_intact = |chunk, values: &mut VecDeque<_>| {
                if let Err(error) = read(segment, chunk, values) {
                    values.clear();
                    issues.borrow_mut().push(Issue::from_error(&error, true));
                }
                Ok(())
            };
            KeyedSource::new(chunks(segment), read_intact, |&id| segment.has_forgotten(id))
        });
        let copy = |at: usize, values: &mut VecDeque<_>| {
            let (id, value) = recent[at];
            values.push_back((id, value.to_owned()));
            Ok(())
        };
        let version = store.memtable.version();
        let logs = KeyedSource::new(recent.len(), copy, |&id| store.memtable.has_forgotten(version, id));
        let mut previous = None;
        let progress = self.progress.clone();
        let (steps, mut seen) = (ProgressCounter::new(progress.as_ref(), 0), 0);
        for newest in NewestByKey::new(segments.chain([logs])) {
            steps.check_cancelled_at(&mut seen)?;
            // A chunk whose ids do not ascend is damaged, even if its checksum is right.
            if let Some((id, value)) = newest?
                && previous.is_none_or(|previous| previous < id)
            {
                previous = Some(id);
                keep(&mut self.builder, id, value.borrow())?;
            }
        }
        self.result.issues.append(&mut issues.into_inner());
        Ok(())
    }

    fn finish(mut self, store: &DamagedStore<F>, options: &SalvageOptions) -> Result<SalvageReport> {
        let SalvageOptions { keep_without_ids, kept_metadata, .. } = options;
        let mut result = self.result;
        if store.settings.has_ids {
            self.builder.highest_id = self.builder.highest_id.max(store.highest_id);
        }
        if *keep_without_ids && result.without_ids > 0 {
            let builder = &mut self.builder;
            let mut highest = builder.highest_id;
            self.without_ids.finish_runs()?.visit(|fingerprint| {
                let next = highest.map_or(Some(0), |id| id.checked_add(1)).ok_or_else(|| {
                    let reason = "the greatest id, 2^64 - 1, is in use: leave out fingerprints without ids";
                    Error::Exhausted { path: store.path.clone(), reason }
                })?;
                highest = Some(next);
                builder.insert(fingerprint, next)
            })?;
        }
        let is_whole = result.is_whole();
        let mut kept = store.metadata.iter().filter(|(key, _)| is_whole || kept_metadata.contains(key));
        kept.try_for_each(|(key, value)| self.builder.set_metadata(key, value))?;
        let stats = self.builder.finish()?.stats();
        (result.fingerprints, result.ids) = (stats.fingerprints, stats.ids);
        (result.names, result.notes) = (stats.names, stats.notes);
        Ok(result)
    }
}
