//! Copies the intact part of a damaged store into a new store.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use super::builder::Builder;
use super::finding::Finding;
use super::iter::{Newest, ReadChunk, Source};
use super::remains::StoreRemains;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::fs::{Disk, Fs};
use crate::options::{BuildOptions, LEAST_MEMORY, check_memory};
use crate::progress::{ProgressCallback, Steps};
use crate::segment::SegmentRemains;
use crate::spill::{Folder, Sorter};

/// How a damaged store is salvaged.
#[derive(Clone, Debug, Default)]
pub struct SalvageOptions {
    /// Fingerprints whose ids are lost get new ones, after the highest; they are left out by default.
    pub keep_without_ids: bool,
    /// The largest distance of queries of the new store, in bits; by default as in the manifest, or else the largest one that the
    /// tables can answer.
    pub distance: Option<u32>,
    /// The least distance that the new store answers, in bits, if another one would be smaller.
    pub least_distance: Option<u32>,
    /// Keys of marks that are kept also if something is lost. Other marks are kept only if nothing is.
    pub kept_marks: Vec<String>,
    /// The text profile of the new store, where the manifest is lost.
    pub profile: Option<String>,
    /// Memory for sorting, see [`BuildOptions::memory`](field@BuildOptions::memory).
    pub memory: Option<u64>,
    /// Is told how far the building of the new store is, and says whether to go on; if not, nothing of it is left.
    pub progress: Option<ProgressCallback>,
}

/// The result of a rescue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Distinct fingerprints in the new store.
    pub fingerprints: u64,
    /// Pairs of fingerprint and id in the new store.
    pub ids: u64,
    /// Names in the new store.
    pub names: u64,
    /// Notes in the new store.
    pub notes: u64,
    /// Operations of the logs that were done again.
    pub operations: u64,
    /// Fingerprints that could be read, but not their ids.
    pub without_ids: u64,
    /// Fingerprints of segments that could not be read, as far as their number is known.
    pub lost_fingerprints: u64,
    /// The problems that were found.
    pub findings: Vec<Finding>,
}

impl Salvaged {
    /// Whether all of the store was rescued.
    pub fn is_whole(&self) -> bool {
        !self.findings.iter().any(|finding| finding.lost)
    }
}

/// Copies the intact part of a damaged store into a new store. Nothing is written to the damaged store, and
/// nothing else may write to it meanwhile.
///
/// Segments and logs are taken from the manifest; without one, from the names of the files in the folder, and the settings from
/// the tables. A fingerprint is rescued if any table of its segment has it; its ids, if their part of the id file is sound. Of
/// logs all sound records count, also behind damage. Marks, such as how far inputs have been read, are kept only if nothing
/// is lost, so that otherwise inputs are read again; marks in [`SalvageOptions::kept_marks`] are kept always.
///
/// # Errors
/// [`Error::NotAStore`] if the folder holds no part of a store. For the new store, as [`Builder::create`] and
/// [`Builder::finish`].
pub fn salvage<F: Fingerprint>(path: &Path, new: &Path, options: &SalvageOptions) -> Result<Salvaged> {
    let fs: Arc<dyn Fs> = Arc::new(Disk::default());
    salvage_on::<F>(&fs, path, new, options)
}

/// [`salvage`] on another disk than the real one.
///
/// # Errors
/// As [`salvage`].
pub fn salvage_on<F: Fingerprint>(
    fs: &Arc<dyn Fs>,
    path: &Path,
    new: &Path,
    options: &SalvageOptions,
) -> Result<Salvaged> {
    check_memory(options.memory)?;
    if let (Ok(old), Some(parent)) = (path.canonicalize(), new.parent())
        && parent.canonicalize().is_ok_and(|parent| parent.starts_with(&old))
    {
        let message = format!("{}: inside the damaged store; choose another path", new.display());
        return Err(Error::BadArgument(message));
    }
    let mut store = StoreRemains::<F>::open(fs, path)?;
    let distance = options.distance.unwrap_or(store.settings.distance);
    store.settings.distance = distance.max(options.least_distance.unwrap_or(0));
    if let Some(profile) = options.profile.as_ref().filter(|_| store.manifest_is_lost) {
        store.settings.profile.clone_from(profile);
    }
    let settings = &store.settings;
    let build = BuildOptions {
        distance: settings.distance,
        codec: settings.codec,
        plan: settings.plan.clone(),
        block_size: settings.block_size,
        span: settings.span,
        memory: options.memory,
        progress: options.progress.clone(),
        ids: settings.ids,
        profile: settings.profile.clone(),
        fs: fs.clone(),
        ..BuildOptions::default()
    };
    // A third for each of the two sorters beside the builder.
    let memory = build.memory() / 3;
    let build = BuildOptions { memory: Some(memory.max(LEAST_MEMORY)), ..build };
    let builder = Builder::<F>::create(new, build).map_err(|error| match error {
        Error::AlreadyExists { path, .. } => {
            let reason = "the path already exists; choose another path for the new store";
            Error::AlreadyExists { path, reason }
        }
        other => other,
    })?;
    // Segments of the new store have higher numbers.
    let runs = Folder::new(builder.fs(), &new.join("000000"));
    let without_ids = Sorter::new(runs.clone(), memory);
    let mut rescue = Rescue {
        runs,
        memory,
        builder,
        without_ids,
        result: Salvaged::default(),
        progress: options.progress.clone(),
    };
    rescue.result.findings.clone_from(&store.findings);
    rescue.result.operations = store.operations;
    rescue.segments(&store)?;
    let version = store.memtable.version();
    let recent = &store.memtable;
    let (chunks, read) = (SegmentRemains::name_chunks, SegmentRemains::names);
    rescue.by_id(&store, &recent.names(version), chunks, read, Builder::name)?;
    let (chunks, read) = (SegmentRemains::note_chunks, SegmentRemains::notes);
    rescue.by_id(&store, &recent.notes(version), chunks, read, Builder::note)?;
    rescue.finish(&store, options)
}

struct Rescue<F: Fingerprint> {
    /// Where fingerprints are sorted.
    runs: Arc<Folder>,
    memory: u64,
    builder: Builder<F>,
    without_ids: Sorter<F>,
    result: Salvaged,
    progress: Option<ProgressCallback>,
}

impl<F: Fingerprint> Rescue<F> {
    /// The pairs of segments and logs that nothing newer hides.
    fn segments(&mut self, store: &StoreRemains<F>) -> Result<()> {
        let keeps_ids = store.settings.ids;
        let version = store.memtable.version();
        let progress = self.progress.clone();
        let (steps, mut seen) = (Steps::new(progress.as_ref(), 0), 0);
        for (i, segment) in store.segments.iter().enumerate() {
            steps.ask()?;
            let newer = &store.segments[i + 1..];
            let mut damaged = Vec::new();
            let mut without_ids = 0;
            let Rescue { builder, without_ids: pending, .. } = self;
            let read = segment.visit(
                self.runs.clone(),
                self.memory,
                &steps,
                &mut |error| damaged.push(error),
                &mut |fingerprint, id| {
                    steps.ask_at(&mut seen)?;
                    let Some(id) = id.or((!keeps_ids).then_some(0)) else {
                        without_ids += 1;
                        return pending.push(fingerprint);
                    };
                    let hidden = newer.iter().any(|newer| newer.hides(fingerprint, id))
                        || store.memtable.hides(version, fingerprint, id);
                    if hidden { Ok(()) } else { builder.insert(fingerprint, id) }
                },
            )?;
            self.result.without_ids += without_ids;
            let lost = segment.fingerprints.saturating_sub(read);
            self.result.lost_fingerprints += lost;
            let unknown = lost == 0 && segment.tables().next().is_none();
            // Losses in damaged parts are counted by fingerprints.
            self.result.findings.extend(damaged.iter().map(|error| Finding::of(error, false)));
            let path = store.path.join(segment.entry.table_name(0));
            if lost > 0 || unknown {
                let lost = if unknown { "an unknown number".to_string() } else { lost.to_string() };
                let what = format!("{lost} of the fingerprints of segment {} are lost", segment.entry.number);
                self.result.findings.push(Finding { path, offset: None, what, lost: true });
            }
            if without_ids > 0 {
                let path = store.path.join(segment.entry.file("ids"));
                let what = format!("the ids of {without_ids} fingerprints are lost");
                self.result.findings.push(Finding { path, offset: None, what, lost: true });
            }
        }
        for (fingerprint, id) in store.memtable.entries(version) {
            self.builder.insert(fingerprint, id)?;
        }
        Ok(())
    }

    /// The newest name of each document, or its newest note, unless a newer place deletes a pair with its id. `recent` are the
    /// values of the logs, which are copied one at a time. `keep` adds a value to the new store.
    fn by_id<V: ToOwned + ?Sized>(
        &mut self,
        store: &StoreRemains<F>,
        recent: &[(u64, &V)],
        chunks: fn(&SegmentRemains<F>) -> usize,
        read: ReadChunk<SegmentRemains<F>, u64, V::Owned>,
        keep: fn(&mut Builder<F>, u64, &V) -> Result<()>,
    ) -> Result<()> {
        let findings = RefCell::new(Vec::new());
        let segments = store.segments.iter().map(|segment| {
            let read_sound = |chunk, values: &mut VecDeque<_>| {
                if let Err(error) = read(segment, chunk, values) {
                    values.clear();
                    findings.borrow_mut().push(Finding::of(&error, true));
                }
                Ok(())
            };
            Source::new(chunks(segment), read_sound, |&id| segment.forgets(id))
        });
        let copy = |at: usize, values: &mut VecDeque<_>| {
            let (id, value) = recent[at];
            values.push_back((id, value.to_owned()));
            Ok(())
        };
        let version = store.memtable.version();
        let logs = Source::new(recent.len(), copy, |&id| store.memtable.forgets(version, id));
        let mut previous = None;
        let progress = self.progress.clone();
        let (steps, mut seen) = (Steps::new(progress.as_ref(), 0), 0);
        for newest in Newest::new(segments.chain([logs])) {
            steps.ask_at(&mut seen)?;
            // A chunk whose ids do not ascend is damaged, also under a right checksum.
            if let Some((id, value)) = newest?
                && previous.is_none_or(|previous| previous < id)
            {
                previous = Some(id);
                keep(&mut self.builder, id, value.borrow())?;
            }
        }
        self.result.findings.append(&mut findings.into_inner());
        Ok(())
    }

    fn finish(mut self, store: &StoreRemains<F>, options: &SalvageOptions) -> Result<Salvaged> {
        let SalvageOptions { keep_without_ids, kept_marks, .. } = options;
        let mut result = self.result;
        self.builder.highest_id = self.builder.highest_id.max(store.highest_id);
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
        let mut kept = store.marks.iter().filter(|(key, _)| is_whole || kept_marks.contains(key));
        kept.try_for_each(|(key, value)| self.builder.mark(key, value))?;
        let stats = self.builder.finish()?.stats();
        (result.fingerprints, result.ids) = (stats.fingerprints, stats.ids);
        (result.names, result.notes) = (stats.names, stats.notes);
        Ok(result)
    }
}
