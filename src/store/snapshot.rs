//! [`Snapshot`]: the contents of a store at one moment, and all operations that only read.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::log_chain::LogInfo;
use super::recovery;
use super::view::{MemtableRef, View};
use crate::codec::Codec;
use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::fs::{Disk, Fs};
use crate::manifest::{MANIFEST, Manifest};
use crate::memtable::Memtable;
use crate::progress::{ProgressCallback, ProgressCounter};
use crate::segment::{self, Match, Segment, Stats};

/// Maximum number of times that [`Snapshot::open_retrying`] refreshes a snapshot while a log has a torn tail (an
/// incomplete record at its end).
const TORN_TAIL_RETRIES: u32 = 10;
/// Pause before each refresh of a snapshot by [`Snapshot::open_retrying`].
const TORN_TAIL_RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Returns the width of a store's fingerprints in bits, 64 or 128. Reads only the manifest.
///
/// # Errors
/// [`Error::NotAStore`], [`Error::Corrupt`], [`Error::UnsupportedVersion`] or [`Error::Io`].
pub fn stored_bits(path: &Path) -> Result<u32> {
    Ok(Manifest::load(&Disk::default(), path)?.settings.bits)
}

/// A store as it was at one moment. Answers queries from any number of threads at once. Cloning is cheap.
///
/// ```
/// use simstore::{BuildOptions, Builder, Snapshot};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("pages");
/// let mut builder = Builder::<u64>::create(&path, BuildOptions::default())?;
/// builder.insert(0x0123_4567_89ab_cdef, 1)?;
/// builder.insert(0x0123_4567_89ab_cdee, 2)?;
/// builder.insert(0xfedc_ba98_7654_3210, 3)?;
/// let store: Snapshot<u64> = builder.finish()?;
///
/// let matches = store.query(0x0123_4567_89ab_cdef, 3)?;
/// assert_eq!(matches.iter().map(|m| (m.distance, m.id)).collect::<Vec<_>>(), [(0, Some(1)), (1, Some(2))]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Snapshot<F> {
    view: Arc<View<F>>,
    /// Number of operations of the newest memtable that are visible in this snapshot. Later operations are not visible.
    version: u64,
}

impl<F: Fingerprint> Snapshot<F> {
    /// Reads the newest state of a store without a lock: another process may be writing to the store.
    ///
    /// The files are mapped, so nothing except simstore may change them while they are open. If another program makes
    /// a mapped file shorter, reading the missing part ends the process with the signal SIGBUS. [`Snapshot::open_on`]
    /// with [`Disk::resident`] reads the files into memory instead of mapping them.
    ///
    /// Headers, footers and block indexes are checked by this call, and each block when it is first read. The contents
    /// of the logs are read into memory.
    ///
    /// # Errors
    /// [`Error::NotAStore`] if the path is not a store, [`Error::Width`] if its fingerprints have another width,
    /// [`Error::UnsupportedVersion`] if another version of simstore wrote it, [`Error::Corrupt`] if a file is damaged,
    /// [`Error::IncompletePlan`] if the store's tables would miss matches of some queries, [`Error::Io`].
    pub fn open(path: &Path) -> Result<Self> {
        Snapshot::open_on(&(Arc::new(Disk::default()) as Arc<dyn Fs>), path)
    }

    /// Like [`Snapshot::open`], but if a log has a torn tail (an incomplete record at its end), refreshes the snapshot for
    /// up to 0.2 s until the record is complete. A log that another process is writing may have a torn tail for a moment.
    /// A tail that stays torn is the result of a crash or of damage.
    ///
    /// # Errors
    /// Errors of [`Snapshot::open`].
    pub fn open_retrying(path: &Path) -> Result<Self> {
        Snapshot::open_retrying_on(&(Arc::new(Disk::default()) as Arc<dyn Fs>), path)
    }

    /// Like [`Snapshot::open_retrying`], on another file system, such as [`Disk::resident`].
    ///
    /// # Errors
    /// Errors of [`Snapshot::open`].
    pub fn open_retrying_on(fs: &Arc<dyn Fs>, path: &Path) -> Result<Self> {
        let mut store = Snapshot::open_on(fs, path)?;
        for _ in 0..TORN_TAIL_RETRIES {
            if store.logs().iter().all(|log| log.torn_bytes == 0 || log.is_sealed) {
                break;
            }
            std::thread::sleep(TORN_TAIL_RETRY_PAUSE);
            store = store.refresh()?;
        }
        Ok(store)
    }

    /// Like [`Snapshot::open`], on another file system than the real disk.
    ///
    /// # Errors
    /// Errors of [`Snapshot::open`].
    pub fn open_on(fs: &Arc<dyn Fs>, path: &Path) -> Result<Self> {
        Snapshot::read(fs, path, None)
    }

    /// Returns the newest state of the store, as [`Snapshot::open`] reads it. Opens only new files, and reads only
    /// the new part of the logs, so it takes time in proportion to the changes.
    ///
    /// This relies on logs being append-only, as in every version of simstore. If the header or the last known record of
    /// a log has changed, the whole log is read again. Damage before that record is not found until the store is opened
    /// again.
    ///
    /// # Errors
    /// Errors of [`Snapshot::open`].
    pub fn refresh(&self) -> Result<Self> {
        Snapshot::read(&self.view.fs, &self.view.path, Some(&self.view))
    }

    fn read(fs: &Arc<dyn Fs>, path: &Path, known: Option<&View<F>>) -> Result<Self> {
        let mut manifest = Manifest::load(&**fs, path)?;
        loop {
            let error = match recovery::read_view(fs, path, &manifest, known) {
                Ok(view) => return Ok(Snapshot::new(Arc::new(view))),
                Err(error) => error,
            };
            // If the store has changed since its manifest was read, its old files may be gone.
            match Manifest::load(&**fs, path) {
                Ok(newer) if newer != manifest => manifest = newer,
                _ => return Err(error),
            }
        }
    }

    /// Creates a snapshot of a [`View`]. The snapshot sees the operations that are visible in the view's memtables now.
    pub(super) fn new(view: Arc<View<F>>) -> Self {
        let version = view.memtables.last().map_or(0, MemtableRef::visible_version);
        Snapshot { view, version }
    }

    /// Returns the lists of segments, logs and memtables.
    pub(super) fn view(&self) -> &View<F> {
        &self.view
    }

    /// Returns the memtables, oldest first, each with its version: the number of the memtable's operations that this
    /// snapshot sees.
    pub(super) fn memtables(
        &self,
    ) -> impl DoubleEndedIterator<Item = (&Memtable<F>, u64)> + ExactSizeIterator {
        let last = self.view.memtables.len();
        self.view.memtables.iter().enumerate().map(move |(i, recent)| {
            (&*recent.memtable, if i + 1 == last { self.version } else { recent.visible_version() })
        })
    }

    /// Whether a tombstone deletes a pair of fingerprint and id. Checks the tombstones of segments from index
    /// `first_segment` on, and of memtables from index `first_memtable` on.
    pub(super) fn hides(
        &self,
        first_segment: usize,
        first_memtable: usize,
        fingerprint: F,
        id: Option<u64>,
    ) -> bool {
        let id = id.unwrap_or(0);
        self.view.segments[first_segment..].iter().any(|newer| newer.has_tombstone(fingerprint, id))
            || self.memtables().skip(first_memtable).any(|(newer, version)| {
                // Most stores have no tombstones, so this check saves a cache miss.
                newer.has_tombstones() && newer.has_tombstone(version, fingerprint, id)
            })
    }

    /// Returns all stored fingerprints within `distance` bits of `fingerprint`. There is one match for each id of a
    /// fingerprint. Matches are sorted by distance, then fingerprint, then id.
    ///
    /// # Errors
    /// [`Error::Distance`] if the store was built for a smaller distance, [`Error::Corrupt`] if a block that the
    /// query reads is damaged.
    pub fn query(&self, fingerprint: F, distance: u32) -> Result<Vec<Match<F>>> {
        let mut matches = Vec::new();
        self.query_into(fingerprint, distance, &mut matches)?;
        Ok(matches)
    }

    /// Like [`Snapshot::query`], but clears `matches` and writes the result into it. If the caller passes the same
    /// buffer each time, a query allocates nothing.
    ///
    /// # Errors
    /// Errors of [`Snapshot::query`]. After an error `matches` is empty.
    pub fn query_into(&self, fingerprint: F, distance: u32, matches: &mut Vec<Match<F>>) -> Result<()> {
        matches.clear();
        if distance > self.distance() {
            let path = self.view.path.clone();
            return Err(Error::Distance { path, requested: distance, supported: self.distance() });
        }
        let is_hidden = |segment: usize, fingerprint, id| self.hides(segment + 1, 0, fingerprint, id);
        if let Err(error) = segment::query(&self.view.segments, fingerprint, distance, is_hidden, matches) {
            matches.clear();
            return Err(error);
        }
        self.query_memtables(fingerprint, distance, matches);
        matches.sort_unstable_by_key(|found| (found.distance, found.fingerprint, found.id));
        matches.dedup();
        Ok(())
    }

    /// Searches the memtables, and appends the matches to `matches`, except those that newer tombstones delete.
    pub(crate) fn query_memtables(&self, fingerprint: F, distance: u32, matches: &mut Vec<Match<F>>) {
        for (i, (memtable, version)) in self.memtables().enumerate() {
            let start = matches.len();
            memtable.query(version, fingerprint, distance, matches);
            self.retain_visible(self.view.segments.len(), i + 1, start, matches);
            if !self.keeps_ids() {
                matches[start..].iter_mut().for_each(|found| found.id = None);
            }
        }
    }

    /// Whether any memtable has a pair of fingerprint and id.
    pub(crate) fn has_memtable_pairs(&self) -> bool {
        self.memtables().any(|(memtable, version)| memtable.len(version) > 0)
    }

    /// Whether tombstones may delete matches of the segment with index `segment`, because a memtable or a newer segment has
    /// tombstones.
    pub(crate) fn has_newer_tombstones(&self, segment: usize) -> bool {
        self.view.segments[segment + 1..].iter().any(|newer| !newer.tombstones().is_empty())
            || self.memtables().any(|(memtable, _)| memtable.has_tombstones())
    }

    /// Whether a newer tombstone deletes a match that was found in the segment with index `segment`.
    pub(crate) fn is_hidden(&self, segment: usize, found: &Match<F>) -> bool {
        self.hides(segment + 1, 0, found.fingerprint, found.id)
    }

    /// Like [`Snapshot::query`], but returns only matches that were inserted after the snapshot `before` of the same
    /// store. Searches only the newest memtable. Returns `None` if `before` has another newest memtable: then an older
    /// memtable or a segment may also have such matches.
    pub(super) fn query_since(&self, before: &Self, fingerprint: F, distance: u32) -> Option<Vec<Match<F>>> {
        let (last, since) = (self.view.memtables.last()?, before.view.memtables.last()?);
        if !Arc::ptr_eq(&last.memtable, &since.memtable) {
            return None;
        }
        let mut matches = Vec::new();
        last.memtable.query_since(before.version, self.version, fingerprint, distance, &mut matches);
        Some(matches)
    }

    /// Removes from `matches[start..]` the matches that a tombstone deletes. Checks the tombstones of segments from index
    /// `first_segment` on, and of memtables from index `first_memtable` on.
    fn retain_visible(
        &self,
        first_segment: usize,
        first_memtable: usize,
        start: usize,
        matches: &mut Vec<Match<F>>,
    ) {
        if matches.len() == start {
            return;
        }
        let mut kept = start;
        for i in start..matches.len() {
            if !self.hides(first_segment, first_memtable, matches[i].fingerprint, matches[i].id) {
                matches[kept] = matches[i];
                kept += 1;
            }
        }
        matches.truncate(kept);
    }

    /// Whether a fingerprint is stored.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the block that would hold it is damaged.
    pub fn contains(&self, fingerprint: F) -> Result<bool> {
        let mut found = false;
        for (i, segment) in self.view.segments.iter().enumerate() {
            if let Some((block, position)) = segment.locate(fingerprint)? {
                segment.visit_ids(block, position, |id| {
                    found = found || !self.hides(i + 1, 0, fingerprint, id);
                })?;
            }
            if found {
                return Ok(true);
            }
        }
        let mut recent = Vec::new();
        self.query_memtables(fingerprint, 0, &mut recent);
        Ok(!recent.is_empty())
    }

    /// Whether a fingerprint is stored with an id. In a store without ids, `id` is ignored.
    ///
    /// # Errors
    /// Errors of [`Snapshot::contains`].
    pub fn contains_pair(&self, fingerprint: F, id: u64) -> Result<bool> {
        let id = if self.keeps_ids() { id } else { 0 };
        for (memtable, version) in self.memtables().rev() {
            if let Some(state) = memtable.state(version, fingerprint, id) {
                return Ok(state);
            }
        }
        for segment in self.view.segments.iter().rev() {
            let mut found = false;
            if let Some((block, position)) = segment.locate(fingerprint)? {
                segment.visit_ids(block, position, |other| found |= other.is_none_or(|other| other == id))?;
            }
            if found || segment.has_tombstone(fingerprint, id) {
                return Ok(found);
            }
        }
        Ok(false)
    }

    /// Returns the number of distinct fingerprints or, before a compaction, an upper bound for it: a fingerprint may count
    /// once in each segment and once for each id in the logs, and a deleted fingerprint may still count.
    pub fn len(&self) -> u64 {
        let segments = self.view.segments.iter().map(|segment| segment.stats().fingerprints);
        let memtables = self.memtables().map(|(memtable, version)| memtable.len(version));
        segments.chain(memtables).fold(0, u64::saturating_add)
    }

    /// Whether [`Snapshot::len`] is 0. A store counts as not empty if all its fingerprints are deleted, but not compacted yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the largest id ever stored, even if it has been deleted. `None` if no id was ever stored. A program that
    /// numbers its documents can give the next document this id plus 1.
    pub fn highest_id(&self) -> Option<u64> {
        let recent = self.memtables().filter_map(|(memtable, version)| memtable.highest_id(version)).max();
        if self.keeps_ids() { self.view.manifest.highest_id.max(recent) } else { None }
    }

    /// Returns the metadata value of a key, see [`Transaction::set_metadata`](crate::Transaction::set_metadata). `None` if the
    /// key was never set.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the chunk of metadata that would contain the key is damaged.
    pub fn metadata(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let recent = self.memtables().rev().find_map(|(memtable, version)| memtable.metadata(version, key));
        if recent.is_some() {
            return Ok(recent);
        }
        for segment in self.view.segments.iter().rev() {
            if let Some(value) = segment.metadata_value(key)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// Returns statistics: the numbers of fingerprints, ids, segments and so on, the sizes of the files, and the memory
    /// in use.
    pub fn stats(&self) -> Stats {
        let mut all = Stats { bytes: self.view.manifest_bytes, ..Stats::default() };
        for stats in self.view.segments.iter().map(|segment| segment.stats()) {
            all.fingerprints += stats.fingerprints;
            all.ids = all.ids.saturating_add(stats.ids);
            all.names = all.names.saturating_add(stats.names);
            all.tombstones += stats.tombstones;
            all.metadata = all.metadata.saturating_add(stats.metadata);
            all.notes = all.notes.saturating_add(stats.notes);
            all.segments += stats.segments;
            all.tables += stats.tables;
            all.bytes += stats.bytes;
            all.table_bytes += stats.table_bytes;
            all.id_bytes += stats.id_bytes;
            all.name_bytes += stats.name_bytes;
            all.tombstone_bytes += stats.tombstone_bytes;
            all.metadata_bytes += stats.metadata_bytes;
            all.note_bytes += stats.note_bytes;
            all.memory += stats.memory;
        }
        for (memtable, version) in self.memtables() {
            all.memtable_entries += memtable.len(version);
            all.names = all.names.saturating_add(memtable.names_len());
            all.notes = all.notes.saturating_add(memtable.notes_len());
            all.memory += memtable.bytes();
        }
        all
    }

    /// Returns the memory of each memtable in bytes, oldest first. All memtables except the last one are frozen: they take no more
    /// writes, and wait until they are written as segments.
    pub fn memtable_sizes(&self) -> Vec<u64> {
        self.memtables().map(|(memtable, _)| memtable.bytes()).collect()
    }

    /// Returns the largest distance that queries may ask for, in bits.
    pub fn distance(&self) -> u32 {
        self.view.manifest.settings.distance
    }

    /// Returns the codec of the tables (the compression of their blocks).
    pub fn codec(&self) -> Codec {
        self.view.manifest.settings.codec
    }

    /// Whether the store keeps ids with its fingerprints.
    pub fn keeps_ids(&self) -> bool {
        self.view.manifest.settings.has_ids
    }

    /// Returns the name of the [plan](crate::plan::Plan) for the tables of new segments, or `auto` if the plan is chosen by
    /// the size of each segment.
    pub fn plan_policy(&self) -> &str {
        self.view.manifest.settings.plan.as_str()
    }

    /// Returns the text profile, which describes how texts become fingerprints. Empty if the fingerprints are not of texts.
    pub fn profile(&self) -> &str {
        &self.view.manifest.settings.profile
    }

    /// Returns the path of the store's folder.
    pub fn path(&self) -> &Path {
        &self.view.path
    }

    /// Returns the block size of new tables in bytes; `None` is the codec's default.
    pub fn block_size(&self) -> Option<u32> {
        self.view.manifest.settings.block_size
    }

    /// Returns the span of new tables: the number of fingerprints from one restart point of a block to the next, see
    /// [`BuildOptions::span`](crate::BuildOptions::span). `None` is the codec's default.
    pub fn span(&self) -> Option<u16> {
        self.view.manifest.settings.span
    }

    /// Describes the logs that were found when the store was opened, oldest first. Logs whose operations are in segments now
    /// are left out. The lengths and counts do not include later writes of this process.
    pub fn logs(&self) -> &[LogInfo] {
        let in_segments = |log: &LogInfo| log.number < self.view.manifest.first_log;
        &self.view.logs[self.view.logs.partition_point(in_segments)..]
    }

    /// Returns the segments, oldest first.
    pub fn segments(&self) -> &[Arc<Segment<F>>] {
        &self.view.segments
    }

    /// Reads all files of the store. Checks all checksums, sort orders and counts, and whether the tables, ids and names of
    /// a segment agree with one another. Calls `damaged` with each problem, and returns the number of problems.
    ///
    /// Manifest, logs and tombstones are already checked when a store is opened. If a store cannot be opened, use
    /// [`find_damaged_files`](super::find_damaged_files()). A torn tail of the newest log counts as a problem,
    /// [`Error::TornTail`]. If another process is writing to the store, the torn tail may also be an unfinished write.
    pub fn verify(&self, damaged: impl FnMut(Error)) -> u64 {
        // Without a callback, the only error, cancellation, cannot occur.
        self.verify_steps(None, damaged).0
    }

    /// Like [`Snapshot::verify`], with a callback that can stop the check.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if the callback stopped the check.
    pub fn verify_with(&self, progress: &ProgressCallback, damaged: impl FnMut(Error)) -> Result<u64> {
        let (problems, verified) = self.verify_steps(Some(progress), damaged);
        verified.map(|()| problems)
    }

    fn verify_steps(
        &self,
        progress: Option<&ProgressCallback>,
        mut damaged: impl FnMut(Error),
    ) -> (u64, Result<()>) {
        let mut problems = 0;
        for torn in self.logs().iter().filter_map(|log| log.torn_tail(self.path())) {
            problems += 1;
            damaged(torn);
        }
        let total = self.view.segments.iter().map(|segment| segment.verified_fingerprints()).sum();
        let steps = ProgressCounter::new(progress, total);
        let mut report = |error| {
            problems += 1;
            damaged(error);
        };
        let verified = self.view.segments.iter().try_fold(None, |largest: Option<u64>, segment| {
            Ok(segment.verify(&steps, &mut report)?.max(largest))
        });
        let largest = *verified.as_ref().unwrap_or(&None);
        let highest = self.view.manifest.highest_id;
        if largest > highest {
            // A program that continues numbering after the recorded highest id would reuse ids.
            let (name, found) = ("highest id", highest.unwrap_or(0));
            let expected = "at least the greatest id in the segments: `salvage` the store into a new one";
            let offset = format::manifest_header::HIGHEST_ID as u64;
            let damage = Damage::Field { name, found, expected };
            report(Error::corrupt(&self.path().join(MANIFEST), offset, damage));
        }
        (problems, verified.map(|_| ()))
    }
}
