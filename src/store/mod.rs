//! Stores: the crate's front door.

mod builder;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use self::builder::Builder;
use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::fs::{Disk, Fs};
use crate::manifest::{MANIFEST, Manifest};
use crate::segment::{Entry, Match, Segment, Stats};

/// The width of the fingerprints of a store, 64 or 128 bits; reads the manifest alone.
///
/// # Errors
/// [`Error::NotAStore`], [`Error::Corrupt`], [`Error::UnsupportedVersion`] or [`Error::Io`].
pub fn stored_bits(path: &Path) -> Result<u32> {
    Ok(Manifest::load(&Disk::default(), path)?.bits)
}

/// An open store: answers queries, from any number of threads at once.
///
/// ```
/// use simstore::{BuildOptions, Builder, Store};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("pages");
/// let mut builder = Builder::<u64>::create(&path, BuildOptions::default())?;
/// builder.insert(0x0123_4567_89ab_cdef, 1)?;
/// builder.insert(0x0123_4567_89ab_cdee, 2)?;
/// builder.insert(0xfedc_ba98_7654_3210, 3)?;
/// let store: Store<u64> = builder.finish()?;
///
/// let matches = store.query(0x0123_4567_89ab_cdef, 3)?;
/// assert_eq!(matches.iter().map(|m| (m.distance, m.id)).collect::<Vec<_>>(), [(0, Some(1)), (1, Some(2))]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Store<F> {
    path: PathBuf,
    manifest: Manifest,
    manifest_bytes: u64,
    segments: Vec<Segment<F>>,
}

impl<F: Fingerprint> Store<F> {
    /// Opens a store to be read. Its files are mapped: nothing but simstore may change them while it is open.
    ///
    /// Headers, footers and block indexes are checked now, each block when it is first read.
    ///
    /// # Errors
    /// [`Error::NotAStore`] if there is no store, [`Error::Width`] if its fingerprints have another width,
    /// [`Error::UnsupportedVersion`] if it was written by a newer simstore, [`Error::Corrupt`] if a file is
    /// damaged, [`Error::IncompletePlan`] if its tables would miss neighbours, [`Error::Io`].
    pub fn open(path: &Path) -> Result<Self> {
        Store::open_on(&(Arc::new(Disk::default()) as Arc<dyn Fs>), path)
    }

    /// [`Store::open`] on another file system than the real disk.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(fs: &Arc<dyn Fs>, path: &Path) -> Result<Self> {
        let mut manifest = Manifest::load(&**fs, path)?;
        loop {
            let error = match Store::open_segments(&**fs, path, &manifest) {
                Ok(store) => return Ok(store),
                Err(error) => error,
            };
            // The store may have been replaced since its manifest was read, and its old files be gone.
            match Manifest::load(&**fs, path) {
                Ok(newer) if newer != manifest => manifest = newer,
                _ => return Err(error),
            }
        }
    }

    fn open_segments(fs: &dyn Fs, path: &Path, manifest: &Manifest) -> Result<Self> {
        if manifest.bits != F::BITS {
            let (expected, found) = (F::BITS, manifest.bits);
            return Err(Error::Width { path: path.to_path_buf(), expected, found });
        }
        let mut segments = Vec::new();
        for entry in &manifest.segments {
            segments.push(Segment::open(fs, path, entry.clone(), manifest.distance)?);
        }
        let manifest_bytes = manifest.encode().len() as u64;
        Ok(Store { path: path.to_path_buf(), manifest: manifest.clone(), manifest_bytes, segments })
    }

    /// All stored fingerprints within `distance` bits of `fingerprint`, one match for each of their ids,
    /// sorted by distance, then fingerprint, then id.
    ///
    /// # Errors
    /// [`Error::Distance`] if the store was built for a smaller distance, [`Error::Corrupt`] if a block that
    /// the query reads is damaged.
    pub fn query(&self, fingerprint: F, distance: u32) -> Result<Vec<Match<F>>> {
        let mut matches = Vec::new();
        self.query_into(fingerprint, distance, &mut matches)?;
        Ok(matches)
    }

    /// [`Store::query`] into a buffer of the caller, which is cleared first: a service that keeps its buffer
    /// allocates nothing for a query.
    ///
    /// # Errors
    /// As [`Store::query`]; the buffer is empty then.
    pub fn query_into(&self, fingerprint: F, distance: u32, matches: &mut Vec<Match<F>>) -> Result<()> {
        matches.clear();
        if distance > self.distance() {
            let path = self.path.clone();
            return Err(Error::Distance { path, asked: distance, supported: self.distance() });
        }
        for segment in &self.segments {
            if let Err(error) = segment.query(fingerprint, distance, matches) {
                matches.clear();
                return Err(error);
            }
        }
        matches.sort_unstable_by_key(|found| (found.distance, found.fingerprint, found.id));
        matches.dedup();
        Ok(())
    }

    /// Whether a fingerprint is stored.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the block that would hold it is damaged.
    pub fn contains(&self, fingerprint: F) -> Result<bool> {
        for segment in &self.segments {
            if segment.find(fingerprint)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The name of a document, if it was stored with one.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the part of the names that would hold it is damaged.
    pub fn name(&self, id: u64) -> Result<Option<String>> {
        for segment in self.segments.iter().rev() {
            if let Some(name) = segment.name(id)? {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// All fingerprints with their ids, ascending by fingerprint, then id. Ends after the first error.
    pub fn iter(&self) -> Iter<'_, F> {
        let cursors =
            self.segments.iter().map(|segment| Cursor { segment, block: 0, entries: Vec::new(), at: 0 });
        Iter { cursors: cursors.collect(), previous: None }
    }

    /// Number of fingerprints; one that is in several segments counts in each.
    pub fn len(&self) -> u64 {
        self.segments.iter().map(|segment| segment.stats().fingerprints).fold(0, u64::saturating_add)
    }

    /// Whether there are no fingerprints.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts and sizes.
    pub fn stats(&self) -> Stats {
        let mut all = Stats { bytes: self.manifest_bytes, ..Stats::default() };
        for stats in self.segments.iter().map(Segment::stats) {
            all.fingerprints += stats.fingerprints;
            all.ids = all.ids.saturating_add(stats.ids);
            all.names = all.names.saturating_add(stats.names);
            all.segments += stats.segments;
            all.tables += stats.tables;
            all.bytes += stats.bytes;
            all.table_bytes += stats.table_bytes;
            all.id_bytes += stats.id_bytes;
            all.name_bytes += stats.name_bytes;
            all.memory += stats.memory;
        }
        all
    }

    /// The largest distance that queries may ask for, in bits.
    pub fn distance(&self) -> u32 {
        self.manifest.distance
    }

    /// How the tables are coded.
    pub fn codec(&self) -> Codec {
        self.manifest.codec
    }

    /// How texts became fingerprints; empty if they were given as fingerprints.
    pub fn profile(&self) -> &str {
        &self.manifest.profile
    }

    /// The store's folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The segments.
    pub fn segments(&self) -> &[Segment<F>] {
        &self.segments
    }

    /// Reads everything and compares every part with the others: checksums, orders, all tables of a segment,
    /// ids, names, counts. Calls `damaged` with each problem, and returns their number.
    pub fn verify(&self, mut damaged: impl FnMut(Error)) -> u64 {
        let mut problems = 0;
        for segment in &self.segments {
            segment.verify(|error| {
                problems += 1;
                damaged(error);
            });
        }
        problems
    }
}

/// Iterates over the entries of a store in order; made by [`Store::iter`].
#[derive(Debug)]
pub struct Iter<'a, F> {
    cursors: Vec<Cursor<'a, F>>,
    previous: Option<Entry<F>>,
}

/// How far a segment has been read.
#[derive(Debug)]
struct Cursor<'a, F> {
    segment: &'a Segment<F>,
    block: usize,
    entries: Vec<Entry<F>>,
    at: usize,
}

impl<F: Fingerprint> Cursor<'_, F> {
    fn peek(&mut self) -> Result<Option<Entry<F>>> {
        while self.at == self.entries.len() {
            if self.block == self.segment.tables()[0].blocks() {
                return Ok(None);
            }
            self.entries.clear();
            self.at = 0;
            self.segment.entries(self.block, &mut self.entries)?;
            self.block += 1;
        }
        Ok(Some(self.entries[self.at]))
    }
}

impl<F: Fingerprint> Iter<'_, F> {
    fn advance(&mut self) -> Result<Option<Entry<F>>> {
        loop {
            let mut least: Option<(usize, Entry<F>)> = None;
            for (i, cursor) in self.cursors.iter_mut().enumerate() {
                if let Some(entry) = cursor.peek()?
                    && least.is_none_or(|(_, other)| entry < other)
                {
                    least = Some((i, entry));
                }
            }
            let Some((i, entry)) = least else { return Ok(None) };
            self.cursors[i].at += 1;
            if self.previous.replace(entry) != Some(entry) {
                return Ok(Some(entry));
            }
        }
    }
}

impl<F: Fingerprint> Iterator for Iter<'_, F> {
    type Item = Result<Entry<F>>;

    fn next(&mut self) -> Option<Result<Entry<F>>> {
        let next = self.advance();
        if next.is_err() {
            self.cursors.clear();
        }
        next.transpose()
    }
}

/// Removes files that simstore made and that the manifest does not name.
fn remove_litter(fs: &dyn Fs, path: &Path, keep: &[String]) -> Result<()> {
    for name in fs.list(path).map_err(Error::io(path, "list"))? {
        if crate::manifest::is_store_file(&name) && name != MANIFEST && !keep.contains(&name) {
            let file = path.join(name);
            fs.remove(&file).map_err(Error::io(&file, "remove"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
