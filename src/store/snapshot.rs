//! The contents of a store at one moment: all operations that only read.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::reading::LogInfo;
use super::recovery;
use super::view::{Recent, View};
use crate::codec::Codec;
use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::fs::{Disk, Fs};
use crate::manifest::{MANIFEST, Manifest};
use crate::memtable::Memtable;
use crate::progress::{ProgressCallback, Steps};
use crate::segment::{self, Match, Segment, Stats};

/// Number of times that a log being written is read again, and the pause before each.
const SETTLING_TRIES: u32 = 10;
const SETTLING_PAUSE: Duration = Duration::from_millis(20);

/// Returns the width of a store's fingerprints, 64 or 128 bits. Reads only the manifest.
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
    /// Version of the last memtable.
    version: u64,
}

impl<F: Fingerprint> Snapshot<F> {
    /// Reads the newest state of a store without a lock: another process may be writing to it.
    ///
    /// The files are mapped, so nothing except simstore may change them while they are open. If another program makes
    /// a mapped file shorter, reading the missing part ends the process with the signal SIGBUS. [`Snapshot::open_on`]
    /// with [`Disk::resident`] reads the files into memory instead of mapping them.
    ///
    /// Headers, footers and block indexes are checked now, and each block when it is first read. The logs are read
    /// into memory.
    ///
    /// # Errors
    /// [`Error::NotAStore`] if the path holds no store, [`Error::Width`] if its fingerprints have another width,
    /// [`Error::UnsupportedVersion`] if it was written by another version of simstore, [`Error::Corrupt`] if a file
    /// is damaged, [`Error::IncompletePlan`] if its tables would miss neighbours, [`Error::Io`].
    pub fn open(path: &Path) -> Result<Self> {
        Snapshot::open_on(&(Arc::new(Disk::default()) as Arc<dyn Fs>), path)
    }

    /// Like [`Snapshot::open`], but waits until the logs are whole. A log that another process is writing may have a
    /// torn end for a moment. If the end is still torn after a fifth of a second, it is the result of a crash or of
    /// damage.
    ///
    /// # Errors
    /// Errors of [`Snapshot::open`].
    pub fn open_settled(path: &Path) -> Result<Self> {
        Snapshot::open_settled_on(&(Arc::new(Disk::default()) as Arc<dyn Fs>), path)
    }

    /// Like [`Snapshot::open_settled`], on another file system, such as [`Disk::resident`].
    ///
    /// # Errors
    /// Errors of [`Snapshot::open`].
    pub fn open_settled_on(fs: &Arc<dyn Fs>, path: &Path) -> Result<Self> {
        let mut store = Snapshot::open_on(fs, path)?;
        for _ in 0..SETTLING_TRIES {
            if store.logs().iter().all(|log| log.torn_bytes == 0 || log.ended) {
                break;
            }
            std::thread::sleep(SETTLING_PAUSE);
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
    /// This relies on logs only being appended to, as every version of simstore does. If the header or the last known
    /// record of a log has changed, the whole log is read again. Damage before that record is not found until the
    /// store is opened again.
    ///
    /// # Errors
    /// Errors of [`Snapshot::open`].
    pub fn refresh(&self) -> Result<Self> {
        Snapshot::read(&self.view.fs, &self.view.path, Some(&self.view))
    }

    fn read(fs: &Arc<dyn Fs>, path: &Path, known: Option<&View<F>>) -> Result<Self> {
        let mut manifest = Manifest::load(&**fs, path)?;
        loop {
            let error = match recovery::read(fs, path, &manifest, known) {
                Ok(view) => return Ok(Snapshot::new(Arc::new(view))),
                Err(error) => error,
            };
            // The store may have changed since its manifest was read, so its old files may be gone.
            match Manifest::load(&**fs, path) {
                Ok(newer) if newer != manifest => manifest = newer,
                _ => return Err(error),
            }
        }
    }

    /// The newest state of a view.
    pub(super) fn new(view: Arc<View<F>>) -> Self {
        let version = view.memtables.last().map_or(0, Recent::shown);
        Snapshot { view, version }
    }

    /// The memtables with the versions that this snapshot sees, oldest first.
    pub(super) fn memtables(
        &self,
    ) -> impl DoubleEndedIterator<Item = (&Memtable<F>, u64)> + ExactSizeIterator {
        let last = self.view.memtables.len();
        self.view.memtables.iter().enumerate().map(move |(i, recent)| {
            (&*recent.memtable, if i + 1 == last { self.version } else { recent.shown() })
        })
    }

    /// Whether a pair in segments before `segment`, or in memtables before `memtable`, is hidden by newer ones.
    pub(super) fn hides(&self, segment: usize, memtable: usize, fingerprint: F, id: Option<u64>) -> bool {
        let id = id.unwrap_or(0);
        self.view.segments[segment..].iter().any(|newer| newer.hides(fingerprint, id))
            || self.memtables().skip(memtable).any(|(newer, version)| {
                // Most stores have no tombstones: this saves a wait for memory.
                newer.has_tombstones() && newer.hides(version, fingerprint, id)
            })
    }

    /// Returns all stored fingerprints within `distance` bits of `fingerprint`: one match for each of their ids,
    /// sorted by distance, then fingerprint, then id.
    ///
    /// # Errors
    /// [`Error::Distance`] if the store was built for a smaller distance, [`Error::Corrupt`] if a block that the
    /// query reads is damaged.
    pub fn query(&self, fingerprint: F, distance: u32) -> Result<Vec<Match<F>>> {
        let mut matches = Vec::new();
        self.query_into(fingerprint, distance, &mut matches)?;
        Ok(matches)
    }

    /// Like [`Snapshot::query`], into a buffer of the caller, which is cleared first. A service that reuses its
    /// buffer allocates nothing for a query.
    ///
    /// # Errors
    /// Errors of [`Snapshot::query`]. After an error the buffer is empty.
    pub fn query_into(&self, fingerprint: F, distance: u32, matches: &mut Vec<Match<F>>) -> Result<()> {
        matches.clear();
        if distance > self.distance() {
            let path = self.view.path.clone();
            return Err(Error::Distance { path, asked: distance, supported: self.distance() });
        }
        let is_hidden = |segment: usize, fingerprint, id| self.hides(segment + 1, 0, fingerprint, id);
        if let Err(error) = segment::query(&self.view.segments, fingerprint, distance, is_hidden, matches) {
            matches.clear();
            return Err(error);
        }
        self.query_recent(fingerprint, distance, matches);
        matches.sort_unstable_by_key(|found| (found.distance, found.fingerprint, found.id));
        matches.dedup();
        Ok(())
    }

    /// Appends the matches in memtables.
    pub(crate) fn query_recent(&self, fingerprint: F, distance: u32, matches: &mut Vec<Match<F>>) {
        for (i, (memtable, version)) in self.memtables().enumerate() {
            let start = matches.len();
            memtable.query(version, fingerprint, distance, matches);
            self.retain_visible(self.view.segments.len(), i + 1, start, matches);
            if !self.keeps_ids() {
                matches[start..].iter_mut().for_each(|found| found.id = None);
            }
        }
    }

    /// Whether any pair is in memtables only.
    pub(crate) fn has_recent(&self) -> bool {
        self.memtables().any(|(memtable, version)| memtable.len(version) > 0)
    }

    /// Whether matches of a segment may be hidden by newer tombstones.
    pub(crate) fn has_newer_tombstones(&self, segment: usize) -> bool {
        self.view.segments[segment + 1..].iter().any(|newer| !newer.tombstones().is_empty())
            || self.memtables().any(|(memtable, _)| memtable.has_tombstones())
    }

    /// Whether a match of a segment is hidden by newer segments or memtables.
    pub(crate) fn is_hidden(&self, segment: usize, found: &Match<F>) -> bool {
        self.hides(segment + 1, 0, found.fingerprint, found.id)
    }

    /// The matches that an earlier snapshot of the same store does not contain; `None` if they cannot be determined.
    pub(super) fn query_since(&self, before: &Self, fingerprint: F, distance: u32) -> Option<Vec<Match<F>>> {
        let (last, since) = (self.view.memtables.last()?, before.view.memtables.last()?);
        if !Arc::ptr_eq(&last.memtable, &since.memtable) {
            return None;
        }
        let mut matches = Vec::new();
        last.memtable.query_since(before.version, self.version, fingerprint, distance, &mut matches);
        Some(matches)
    }

    /// Removes matches, from index `start` on, that newer segments or memtables hide.
    fn retain_visible(&self, segment: usize, memtable: usize, start: usize, matches: &mut Vec<Match<F>>) {
        if matches.len() == start {
            return;
        }
        let mut kept = start;
        for i in start..matches.len() {
            if !self.hides(segment, memtable, matches[i].fingerprint, matches[i].id) {
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
            if let Some((block, position)) = segment.find(fingerprint)? {
                segment.visit_ids(block, position, |id| {
                    found = found || !self.hides(i + 1, 0, fingerprint, id);
                })?;
            }
            if found {
                return Ok(true);
            }
        }
        let mut recent = Vec::new();
        self.query_recent(fingerprint, 0, &mut recent);
        Ok(!recent.is_empty())
    }

    /// Whether a fingerprint is stored with an id; in a store without ids, whether it is stored.
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
            if let Some((block, position)) = segment.find(fingerprint)? {
                segment.visit_ids(block, position, |other| found |= other.is_none_or(|other| other == id))?;
            }
            if found || segment.hides(fingerprint, id) {
                return Ok(found);
            }
        }
        Ok(false)
    }

    /// Number of fingerprints. This is an upper bound while some are in several segments or logs, or deleted but not
    /// compacted.
    pub fn len(&self) -> u64 {
        let segments = self.view.segments.iter().map(|segment| segment.stats().fingerprints);
        let memtables = self.memtables().map(|(memtable, version)| memtable.len(version));
        segments.chain(memtables).fold(0, u64::saturating_add)
    }

    /// Whether the store is empty, without even deleted fingerprints that are not compacted yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The largest id ever stored, even if it has been deleted; `None` for an empty store, or one without ids. A
    /// program that numbers its documents can continue after it.
    pub fn highest_id(&self) -> Option<u64> {
        let recent = self.memtables().filter_map(|(memtable, version)| memtable.highest_id(version)).max();
        if self.keeps_ids() { self.view.manifest.highest_id.max(recent) } else { None }
    }

    /// Returns the value of a key, see [`Transaction::mark`](crate::Transaction::mark).
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the part of the marks with this key is damaged.
    pub fn mark(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let recent = self.memtables().rev().find_map(|(memtable, version)| memtable.mark(version, key));
        if recent.is_some() {
            return Ok(recent);
        }
        for segment in self.view.segments.iter().rev() {
            if let Some(mark) = segment.mark(key)? {
                return Ok(Some(mark));
            }
        }
        Ok(None)
    }

    /// Counts and sizes.
    pub fn stats(&self) -> Stats {
        let mut all = Stats { bytes: self.view.manifest_bytes, ..Stats::default() };
        for stats in self.view.segments.iter().map(|segment| segment.stats()) {
            all.fingerprints += stats.fingerprints;
            all.ids = all.ids.saturating_add(stats.ids);
            all.names = all.names.saturating_add(stats.names);
            all.tombstones += stats.tombstones;
            all.marks = all.marks.saturating_add(stats.marks);
            all.notes = all.notes.saturating_add(stats.notes);
            all.segments += stats.segments;
            all.tables += stats.tables;
            all.bytes += stats.bytes;
            all.table_bytes += stats.table_bytes;
            all.id_bytes += stats.id_bytes;
            all.name_bytes += stats.name_bytes;
            all.tombstone_bytes += stats.tombstone_bytes;
            all.mark_bytes += stats.mark_bytes;
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

    /// The largest distance that queries may ask for, in bits.
    pub fn distance(&self) -> u32 {
        self.view.manifest.settings.distance
    }

    /// Codec of the tables.
    pub fn codec(&self) -> Codec {
        self.view.manifest.settings.codec
    }

    /// Whether ids are kept.
    pub fn keeps_ids(&self) -> bool {
        self.view.manifest.settings.ids
    }

    /// The plan of new segments: a name, or `auto`.
    pub fn plan_policy(&self) -> &str {
        self.view.manifest.settings.plan.as_str()
    }

    /// Describes how texts became fingerprints; empty if the store was given fingerprints.
    pub fn profile(&self) -> &str {
        &self.view.manifest.settings.profile
    }

    /// The store's folder.
    pub fn path(&self) -> &Path {
        &self.view.path
    }

    /// Block size of new tables in bytes; `None` is the codec's default.
    pub fn block_size(&self) -> Option<u32> {
        self.view.manifest.settings.block_size
    }

    /// Fingerprints from one restart point to the next in new tables; `None` is the default.
    pub fn span(&self) -> Option<u16> {
        self.view.manifest.settings.span
    }

    /// The logs with operations that are not in segments, oldest first, as of when the store was opened. Later writes
    /// of this process are not counted.
    pub fn logs(&self) -> &[LogInfo] {
        let in_segments = |log: &LogInfo| log.number < self.view.manifest.first_log;
        &self.view.logs[self.view.logs.partition_point(in_segments)..]
    }

    /// The segments, oldest first.
    pub fn segments(&self) -> &[Arc<Segment<F>>] {
        &self.view.segments
    }

    /// Reads everything and compares every part with the others: checksums, orders, all tables of a segment, ids,
    /// names, counts. Calls `damaged` with each problem, and returns their number.
    ///
    /// Manifest, logs and tombstones are already read whole when a store is opened. If it cannot be opened, use
    /// [`damage`](super::damage()). A torn end of the newest log counts as a problem, [`Error::TornEnd`]. If another
    /// process is writing to the store, this end may also be an unfinished write.
    pub fn verify(&self, damaged: impl FnMut(Error)) -> u64 {
        // Without a callback, it cannot be cancelled.
        self.verify_steps(None, damaged).0
    }

    /// Like [`Snapshot::verify`], with a callback that can stop it.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
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
        for torn in self.logs().iter().filter_map(|log| log.torn_end(self.path())) {
            problems += 1;
            damaged(torn);
        }
        let total = self.view.segments.iter().map(|segment| segment.verified_fingerprints()).sum();
        let steps = Steps::new(progress, total);
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
            // A writer would give this id, and smaller ones, to other documents.
            let (name, found) = ("highest id", highest.unwrap_or(0));
            let expected = "at least the greatest id in the segments: `salvage` the store into a new one";
            let offset = format::manifest_header::HIGHEST_ID as u64;
            let damage = Damage::Field { name, found, expected };
            report(Error::corrupt(&self.path().join(MANIFEST), offset, damage));
        }
        (problems, verified.map(|_| ()))
    }
}
