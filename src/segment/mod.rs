//! Segments: immutable sets of fingerprints with their ids, names, notes and metadata.

mod builder;
mod chunked_file;
mod codec_choice;
mod copy;
mod damaged_segment;
mod id_values;
mod ids;
mod metadata;
mod query;
mod records;
#[cfg(test)]
mod tests;
mod tombstones;
mod verify;

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

pub(crate) use self::builder::SegmentBuilder;
pub(crate) use self::damaged_segment::DamagedSegment;
use self::id_values::{NameFile, NoteFile};
use self::ids::IdFile;
use self::metadata::MetadataFile;
pub(crate) use self::query::query;
use self::tombstones::Tombstones;
use crate::error::{Damage, Error, Result};
use crate::file_bytes::Bytes;
use crate::fingerprint::Fingerprint;
use crate::format::footer_crc;
use crate::fs::Fs;
use crate::manifest::SegmentEntry;
use crate::plan::Plan;
use crate::table::Table;

/// A match of a query: a stored fingerprint within the distance, with one of its ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Match<F> {
    /// The stored fingerprint.
    pub fingerprint: F,
    /// Hamming distance from the query, in bits.
    pub distance: u32,
    /// One of the fingerprint's ids; `None` in a store without ids.
    pub id: Option<u64>,
}

/// A stored fingerprint with one of its ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry<F> {
    /// The stored fingerprint.
    pub fingerprint: F,
    /// One of the fingerprint's ids; `None` in a store without ids.
    pub id: Option<u64>,
}

/// Counts and sizes of a store or a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of distinct fingerprints, without memtables. A fingerprint in several segments counts once for each.
    pub fingerprints: u64,
    /// Number of pairs of a fingerprint and an id, without memtables. A deleted pair counts until segments are merged.
    pub ids: u64,
    /// Number of document names; an upper bound if some are in memtables or in several segments.
    pub names: u64,
    /// Number of tombstones: pairs deleted from older segments.
    pub tombstones: u64,
    /// Number of metadata keys, without memtables; an upper bound if a key is in several segments.
    pub metadata: u64,
    /// Number of document notes; an upper bound if some are in memtables or in several segments.
    pub notes: u64,
    /// Number of pairs in memtables, which are not in segments yet.
    pub memtable_entries: u64,
    /// Number of segments.
    pub segments: usize,
    /// Number of tables in all segments.
    pub tables: usize,
    /// Size of all files except the logs, in bytes.
    pub bytes: u64,
    /// Size of the table files, in bytes.
    pub table_bytes: u64,
    /// Size of the id files, in bytes.
    pub id_bytes: u64,
    /// Size of the name files, in bytes.
    pub name_bytes: u64,
    /// Size of the tombstone files, in bytes.
    pub tombstone_bytes: u64,
    /// Size of the metadata files (`.metadata`), in bytes.
    pub metadata_bytes: u64,
    /// Size of the note files, in bytes.
    pub note_bytes: u64,
    /// Memory in bytes of block indexes, a bit for each block, tombstones, Bloom filters and, in a store, memtables. The
    /// memory-mapped files do not count. In a segment with filters, each table has one or two bytes of filter for each
    /// fingerprint.
    pub memory: u64,
}

/// An immutable set of fingerprints: its tables, and its ids, names, tombstones, metadata and notes, if any.
#[derive(Debug)]
pub struct Segment<F> {
    entry: SegmentEntry,
    plan: Plan<F>,
    tables: Vec<Table<F>>,
    ids: Option<IdFile>,
    names: Option<NameFile>,
    tombstones: Option<Tombstones<F>>,
    metadata: Option<MetadataFile>,
    notes: Option<NoteFile>,
    /// Whether the decision about Bloom filters was made: they were built, or none will be built.
    filters_decided: AtomicBool,
    /// Number of queries before it was decided whether to build Bloom filters.
    unfiltered_queries: AtomicU64,
}

/// Opens the files of a segment in the order of [`SegmentEntry::file_names`].
struct SegmentFileOpener<'a> {
    fs: &'a dyn Fs,
    store: &'a Path,
    entry: &'a SegmentEntry,
    /// Footer checksums, from the manifest, of the files that have not been opened yet; `None` without a manifest.
    footers: Option<std::slice::Iter<'a, u32>>,
}

impl SegmentFileOpener<'_> {
    /// Opens the file `name`, which must be the next file of the segment, and checks that its footer has the checksum in
    /// the manifest.
    fn open<T>(&mut self, name: String, open: impl FnOnce(&Path, Bytes) -> Result<T>) -> Result<T> {
        let (path, named) = (self.store.join(name), self.footers.as_mut().map(Iterator::next));
        let bytes = self.fs.map(&path).map_err(Error::io(&path, "open"))?;
        let footer = footer_crc(bytes.as_ref());
        let opened = open(&path, bytes)?;
        if named.is_none_or(|named| named == Some(&footer)) {
            return Ok(opened);
        }
        // A sound file, but not the one that was written with the manifest.
        let what = "the footers of this file and of the one that the manifest names";
        Err(Error::corrupt(&path, 0, Damage::Mismatch { what }))
    }

    /// Opens the file with this extension if `has` is true. Otherwise returns `None`.
    fn open_if<T>(
        &mut self,
        has: bool,
        extension: &str,
        open: impl FnOnce(&Path, Bytes) -> Result<T>,
    ) -> Result<Option<T>> {
        if has { self.open(self.entry.side_file_name(extension), open).map(Some) } else { Ok(None) }
    }
}

impl<F: Fingerprint> Segment<F> {
    /// Opens the files of a segment. Returns an error if its tables are not enough for queries within `distance` bits.
    pub(crate) fn open(fs: &dyn Fs, store: &Path, entry: SegmentEntry, distance: u32) -> Result<Self> {
        let mut files =
            SegmentFileOpener { fs, store, entry: &entry, footers: Some(entry.footer_crcs.iter()) };
        let mut tables = Vec::new();
        for number in 0..entry.tables {
            tables.push(files.open(entry.table_file_name(number), |path, bytes| {
                let table = Table::<F>::open(path, bytes)?;
                if table.header().fingerprints != entry.fingerprints {
                    let what = "the numbers of fingerprints of the table and of the manifest";
                    let offset = crate::format::table_header::FINGERPRINTS as u64;
                    return Err(Error::corrupt(path, offset, Damage::Mismatch { what }));
                }
                Ok(table)
            })?);
        }
        let plans = tables.iter().map(|table| table.header().plan.clone()).collect();
        let plan = Plan::new(&entry.plan, distance, plans).map_err(|error| {
            let path = store.join(entry.table_file_name(0)).display().to_string();
            match error {
                // Tables that form no valid plan also miss neighbours.
                Error::IncompletePlan { reason, .. } | Error::BadArgument(reason) => {
                    let reason = format!("{reason}; its tables are {path} and the tables after it");
                    Error::IncompletePlan { plan: entry.plan.clone(), distance, reason }
                }
                other => other,
            }
        })?;
        let blocks = tables[0].blocks();
        let open_ids =
            |path: &Path, bytes| IdFile::open(path, bytes, [entry.fingerprints, entry.ids], blocks);
        let ids = files.open_if(entry.has_ids, "ids", open_ids)?;
        let names = files.open_if(entry.names > 0, "names", NameFile::open)?;
        let tombstones = files.open_if(entry.tombstones > 0, "tombstones", |path, bytes| {
            let all = Tombstones::<F>::open(path, bytes)?;
            if all.pairs().len() as u64 != entry.tombstones {
                let what = "the number of tombstones and the manifest";
                let offset = crate::format::tombstones_header::COUNT as u64;
                return Err(Error::corrupt(path, offset, Damage::Mismatch { what }));
            }
            if !entry.has_ids {
                all.check_without_ids(path)?;
            }
            Ok(all)
        })?;
        let metadata = files.open_if(entry.metadata > 0, "metadata", MetadataFile::open)?;
        let notes = files.open_if(entry.notes > 0, "notes", NoteFile::open)?;
        let (filtered, queries) = (AtomicBool::new(false), AtomicU64::new(0));
        Ok(Segment {
            entry,
            plan,
            tables,
            ids,
            names,
            tombstones,
            metadata,
            notes,
            filters_decided: filtered,
            unfiltered_queries: queries,
        })
    }

    /// Number of the segment. The names of the segment's files start with it.
    pub fn number(&self) -> u64 {
        self.entry.number
    }

    /// Plan of the segment's tables: their permutations, and the prefixes and bit flips with which a query probes
    /// them.
    pub fn plan(&self) -> &Plan<F> {
        &self.plan
    }

    /// Tables of the segment, in the order of its plan.
    pub fn tables(&self) -> &[Table<F>] {
        &self.tables
    }

    /// Counts and sizes of the segment.
    pub fn stats(&self) -> Stats {
        let table_bytes = self.tables.iter().map(Table::file_len).sum();
        let id_bytes = self.ids.as_ref().map_or(0, |ids| ids.chunks.file_len());
        let name_bytes = self.names.as_ref().map_or(0, |names| names.chunks.file_len());
        let table_memory: usize = self.tables.iter().map(Table::memory).sum();
        let tombstone_bytes = self.tombstones.as_ref().map_or(0, Tombstones::file_len);
        let metadata_bytes = self.metadata.as_ref().map_or(0, |metadata| metadata.chunks.file_len());
        let note_bytes = self.notes.as_ref().map_or(0, |notes| notes.chunks.file_len());
        let memory = table_memory
            + self.ids.as_ref().map_or(0, |ids| ids.chunks.memory())
            + self.names.as_ref().map_or(0, |names| names.chunks.memory())
            + self.tombstones.as_ref().map_or(0, Tombstones::memory)
            + self.metadata.as_ref().map_or(0, |metadata| metadata.chunks.memory())
            + self.notes.as_ref().map_or(0, |notes| notes.chunks.memory());
        Stats {
            fingerprints: self.entry.fingerprints,
            ids: self.entry.ids,
            names: self.entry.names,
            tombstones: self.entry.tombstones,
            metadata: self.entry.metadata,
            notes: self.entry.notes,
            memtable_entries: 0,
            segments: 1,
            tables: self.tables.len(),
            bytes: table_bytes + id_bytes + name_bytes + tombstone_bytes + metadata_bytes + note_bytes,
            table_bytes,
            id_bytes,
            name_bytes,
            tombstone_bytes,
            metadata_bytes,
            note_bytes,
            memory: memory as u64,
        }
    }

    /// Finds a fingerprint in the first table, which is not permuted. Returns the index of its block and its position in the
    /// block, or `None` if the segment does not have the fingerprint.
    pub(crate) fn locate(&self, fingerprint: F) -> Result<Option<(usize, usize)>> {
        let mut found = None;
        self.tables[0].visit(fingerprint, fingerprint, |block, i, _| found = Some((block, i)))?;
        Ok(found)
    }

    /// Calls `visitor` with each id of the fingerprint at a position in a block of the first table. In a segment without
    /// ids, calls it once with `None`.
    pub(crate) fn visit_ids(
        &self,
        block: usize,
        position: usize,
        mut visitor: impl FnMut(Option<u64>),
    ) -> Result<()> {
        match &self.ids {
            Some(ids) => ids.visit(block, position, |id| visitor(Some(id))),
            None => {
                visitor(None);
                Ok(())
            }
        }
    }

    /// Manifest entry of the segment.
    pub(crate) fn entry(&self) -> &SegmentEntry {
        &self.entry
    }

    /// Pairs deleted from older segments, ascending.
    pub(crate) fn tombstones(&self) -> &[(F, u64)] {
        self.tombstones.as_ref().map_or(&[], Tombstones::pairs)
    }

    /// Whether this segment deletes the pair from older segments. In a store without ids, the id is 0.
    #[inline]
    pub(crate) fn has_tombstone(&self, fingerprint: F, id: u64) -> bool {
        self.tombstones.as_ref().is_some_and(|tombstones| tombstones.contains(fingerprint, id))
    }

    /// Whether this segment has a tombstone for any pair with this id. If so, the id's names and notes in older segments no
    /// longer apply.
    pub(crate) fn has_forgotten(&self, id: u64) -> bool {
        self.tombstones.as_ref().is_some_and(|tombstones| tombstones.has_id(id))
    }

    /// Number of chunks in the name file; 0 without a name file.
    pub(crate) fn name_chunks(&self) -> usize {
        self.names.as_ref().map_or(0, |names| names.chunks.len())
    }

    /// Appends the (id, name) pairs of a chunk of the name file to `all`, ascending by id.
    pub(crate) fn names(&self, chunk: usize, all: &mut impl Extend<(u64, String)>) -> Result<()> {
        self.names.as_ref().map_or(Ok(()), |names| names.read(chunk, all))
    }

    /// Returns the name of a document, or `None` if this segment has no name for it.
    pub(crate) fn name(&self, id: u64) -> Result<Option<String>> {
        self.names.as_ref().map_or(Ok(None), |names| names.get(id))
    }

    /// Looks up the names of `ids`, which must ascend. Calls `found` with the index of each id that has a name, and the
    /// name. Reads each chunk at most once.
    pub(crate) fn names_for(&self, ids: &[u64], found: impl FnMut(usize, String)) -> Result<()> {
        self.names.as_ref().map_or(Ok(()), |names| names.get_all(ids, found))
    }

    /// Returns those ids of a chunk of the name file whose names are in `wanted`.
    pub(crate) fn ids_with_names(&self, chunk: usize, wanted: &HashSet<String>) -> Result<Vec<u64>> {
        self.names.as_ref().map_or(Ok(Vec::new()), |names| names.ids_with_names(chunk, wanted))
    }

    /// Number of chunks in the note file; 0 without a note file.
    pub(crate) fn note_chunks(&self) -> usize {
        self.notes.as_ref().map_or(0, |notes| notes.chunks.len())
    }

    /// Appends the (id, note) pairs of a chunk of the note file to `all`, ascending by id.
    pub(crate) fn notes(&self, chunk: usize, all: &mut impl Extend<(u64, Vec<u8>)>) -> Result<()> {
        self.notes.as_ref().map_or(Ok(()), |notes| notes.read(chunk, all))
    }

    /// Returns the note of a document, or `None` if this segment has no note for it.
    pub(crate) fn note(&self, id: u64) -> Result<Option<Vec<u8>>> {
        self.notes.as_ref().map_or(Ok(None), |notes| notes.get(id))
    }

    /// Looks up the notes of `ids`, which must ascend. Calls `found` with the index of each id that has a note, and the
    /// note. Reads each chunk at most once.
    pub(crate) fn notes_for(&self, ids: &[u64], found: impl FnMut(usize, Vec<u8>)) -> Result<()> {
        self.notes.as_ref().map_or(Ok(()), |notes| notes.get_all(ids, found))
    }

    /// Appends the entries of a block of the first table that have a wanted id: an id for which `is_wanted`
    /// returns true. Does not decode the block if no id in it is wanted.
    pub(crate) fn entries_with_ids(
        &self,
        block: usize,
        is_wanted: impl Fn(u64) -> bool,
        entries: &mut Vec<Entry<F>>,
    ) -> Result<()> {
        let Some(ids) = &self.ids else { return Ok(()) };
        let mut is_any_wanted = false;
        ids.visit_all(block, |id, _| {
            is_any_wanted = is_wanted(id);
            !is_any_wanted
        })?;
        if is_any_wanted {
            let start = entries.len();
            self.entries(block, entries)?;
            let all = entries.split_off(start);
            entries.extend(all.into_iter().filter(|entry| entry.id.is_some_and(&is_wanted)));
        }
        Ok(())
    }

    /// Number of chunks in the metadata file; 0 without a metadata file.
    pub(crate) fn metadata_chunks(&self) -> usize {
        self.metadata.as_ref().map_or(0, |metadata| metadata.chunks.len())
    }

    /// Appends the (key, value) pairs of a chunk of the metadata file to `all`, ascending by key.
    pub(crate) fn metadata(&self, chunk: usize, all: &mut impl Extend<(String, Vec<u8>)>) -> Result<()> {
        self.metadata.as_ref().map_or(Ok(()), |metadata| metadata.read(chunk, all))
    }

    /// Returns the metadata value of a key, or `None` if this segment does not have the key.
    pub(crate) fn metadata_value(&self, key: &str) -> Result<Option<Vec<u8>>> {
        self.metadata.as_ref().map_or(Ok(None), |metadata| metadata.get(key))
    }

    /// Appends all entries of a block of the first table, ascending.
    pub(crate) fn entries(&self, block: usize, entries: &mut Vec<Entry<F>>) -> Result<()> {
        let mut fingerprints = Vec::new();
        self.tables[0].decode_block(block, &mut fingerprints)?;
        let Some(ids) = &self.ids else {
            entries.extend(fingerprints.into_iter().map(|fingerprint| Entry { fingerprint, id: None }));
            return Ok(());
        };
        let mut rest = fingerprints.iter();
        let mut current = None;
        ids.visit_all(block, |id, first| {
            if first {
                current = rest.next();
            }
            entries.extend(current.map(|&fingerprint| Entry { fingerprint, id: Some(id) }));
            current.is_some()
        })?;
        if rest.next().is_some() || current.is_none() {
            let what = "the number of fingerprints of a chunk of ids and of its block";
            return Err(ids.chunks.damaged(block, Damage::Mismatch { what }));
        }
        Ok(())
    }
}
