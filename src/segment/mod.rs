//! Segments: an immutable set of fingerprints with their ids, names and notes.

mod builder;
mod by_id;
mod chunks;
mod ids;
mod marks;
mod purpose;
mod query;
mod records;
mod salvage;
#[cfg(test)]
mod tests;
mod tombstones;
mod verify;

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

pub(crate) use self::builder::SegmentBuilder;
use self::by_id::{Names, Notes};
use self::ids::Ids;
use self::marks::Marks;
pub(crate) use self::query::query;
pub(crate) use self::salvage::SegmentRemains;
use self::tombstones::Tombstones;
use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::footer_crc;
use crate::fs::Fs;
use crate::manifest::SegmentEntry;
use crate::map::Bytes;
use crate::plan::Plan;
use crate::table::Table;

/// A stored fingerprint within the distance of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Match<F> {
    /// The stored fingerprint.
    pub fingerprint: F,
    /// Its distance from the query, in bits.
    pub distance: u32,
    /// An id that was stored with it; `None` in a store without ids.
    pub id: Option<u64>,
}

/// A stored fingerprint with one of its ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry<F> {
    /// The stored fingerprint.
    pub fingerprint: F,
    /// An id that was stored with it; `None` in a store without ids.
    pub id: Option<u64>,
}

/// Counts and sizes of a store or a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Distinct fingerprints.
    pub fingerprints: u64,
    /// Ids, each counted with each fingerprint that it was stored with.
    pub ids: u64,
    /// Names of documents: an upper bound while some are in memory, or in several segments.
    pub names: u64,
    /// Pairs deleted from older segments.
    pub tombstones: u64,
    /// Marks: an upper bound while some are in several segments. Those that are in memory are not counted.
    pub marks: u64,
    /// Notes of documents: an upper bound while some are in memory, or in several segments.
    pub notes: u64,
    /// Pairs in memory that are not in segments yet.
    pub memtable_entries: u64,
    /// Segments.
    pub segments: usize,
    /// Tables of all segments.
    pub tables: usize,
    /// Bytes of all files but the logs.
    pub bytes: u64,
    /// Bytes of the tables.
    pub table_bytes: u64,
    /// Bytes of the id files.
    pub id_bytes: u64,
    /// Bytes of the name files.
    pub name_bytes: u64,
    /// Bytes of the tombstone files.
    pub tombstone_bytes: u64,
    /// Bytes of the mark files.
    pub mark_bytes: u64,
    /// Bytes of the note files.
    pub note_bytes: u64,
    /// Bytes in memory besides the maps of the files: block indexes, which blocks are verified, and a byte or two for each
    /// fingerprint and table of the segments that have filters.
    pub memory: u64,
}

/// An immutable set of fingerprints: its tables, and its ids, names, marks and notes if it has any.
#[derive(Debug)]
pub struct Segment<F> {
    entry: SegmentEntry,
    plan: Plan<F>,
    tables: Vec<Table<F>>,
    ids: Option<Ids>,
    names: Option<Names>,
    tombstones: Option<Tombstones<F>>,
    marks: Option<Marks>,
    notes: Option<Notes>,
    /// Whether filters were made, or decided against; and the number of queries before.
    filtered: AtomicBool,
    queries: AtomicU64,
}

/// The files of a segment, opened in the order of [`SegmentEntry::files`].
struct Files<'a> {
    fs: &'a dyn Fs,
    store: &'a Path,
    entry: &'a SegmentEntry,
    /// Checksums of the footers of the files that have not been opened; `None` without a manifest.
    footers: Option<std::slice::Iter<'a, u32>>,
}

impl Files<'_> {
    /// Opens the next file, which has to be the one that the manifest names.
    fn open<T>(&mut self, name: String, open: impl FnOnce(&Path, Bytes) -> Result<T>) -> Result<T> {
        let (path, named) = (self.store.join(name), self.footers.as_mut().map(Iterator::next));
        let bytes = self.fs.map(&path).map_err(Error::io(&path, "open"))?;
        let footer = footer_crc(bytes.as_ref());
        let opened = open(&path, bytes)?;
        if named.is_none_or(|named| named == Some(&footer)) {
            return Ok(opened);
        }
        // A whole file, but not the one that was written with the manifest.
        let what = "the footers of this file and of the one that the manifest names";
        Err(Error::corrupt(&path, 0, Damage::Mismatch { what }))
    }

    /// Opens the file with an ending, if the segment has it.
    fn open_if<T>(
        &mut self,
        has: bool,
        ending: &str,
        open: impl FnOnce(&Path, Bytes) -> Result<T>,
    ) -> Result<Option<T>> {
        if has { self.open(self.entry.file(ending), open).map(Some) } else { Ok(None) }
    }
}

impl<F: Fingerprint> Segment<F> {
    /// Opens the files of a segment.
    pub(crate) fn open(fs: &dyn Fs, store: &Path, entry: SegmentEntry, distance: u32) -> Result<Self> {
        let mut files = Files { fs, store, entry: &entry, footers: Some(entry.footers.iter()) };
        let mut tables = Vec::new();
        for number in 0..entry.tables {
            tables.push(files.open(entry.table_name(number), |path, bytes| {
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
            let path = store.join(entry.table_name(0)).display().to_string();
            match error {
                // Tables that make no plan at all miss neighbours, too.
                Error::IncompletePlan { reason, .. } | Error::BadArgument(reason) => {
                    let reason = format!("{reason}; its tables are {path} and the tables after it");
                    Error::IncompletePlan { plan: entry.plan.clone(), distance, reason }
                }
                other => other,
            }
        })?;
        let blocks = tables[0].blocks();
        let open_ids = |path: &Path, bytes| Ids::open(path, bytes, entry.fingerprints, blocks);
        let ids = files.open_if(entry.has_ids, "ids", open_ids)?;
        let names = files.open_if(entry.names > 0, "names", Names::open)?;
        let tombstones = files.open_if(entry.tombstones > 0, "tombstones", Tombstones::<F>::open)?;
        if tombstones.as_ref().is_some_and(|all| all.pairs().len() as u64 != entry.tombstones) {
            let what = "the number of tombstones and the manifest";
            return Err(Error::corrupt(&store.join(entry.file("tombstones")), 0, Damage::Mismatch { what }));
        }
        let marks = files.open_if(entry.marks > 0, "marks", Marks::open)?;
        let notes = files.open_if(entry.notes > 0, "notes", Notes::open)?;
        let (filtered, queries) = (AtomicBool::new(false), AtomicU64::new(0));
        Ok(Segment { entry, plan, tables, ids, names, tombstones, marks, notes, filtered, queries })
    }

    /// The number that the names of its files start with.
    pub fn number(&self) -> u64 {
        self.entry.number
    }

    /// The plan of its tables.
    pub fn plan(&self) -> &Plan<F> {
        &self.plan
    }

    /// Its tables, in the order of the plan.
    pub fn tables(&self) -> &[Table<F>] {
        &self.tables
    }

    /// Counts and sizes.
    pub fn stats(&self) -> Stats {
        let table_bytes = self.tables.iter().map(Table::file_len).sum();
        let id_bytes = self.ids.as_ref().map_or(0, |ids| ids.chunks.file_len());
        let name_bytes = self.names.as_ref().map_or(0, |names| names.chunks.file_len());
        let table_memory: usize = self.tables.iter().map(Table::memory).sum();
        let tombstone_bytes = self.tombstones.as_ref().map_or(0, Tombstones::file_len);
        let mark_bytes = self.marks.as_ref().map_or(0, |marks| marks.chunks.file_len());
        let note_bytes = self.notes.as_ref().map_or(0, |notes| notes.chunks.file_len());
        let memory = table_memory
            + self.ids.as_ref().map_or(0, |ids| ids.chunks.memory())
            + self.names.as_ref().map_or(0, |names| names.chunks.memory())
            + self.tombstones.as_ref().map_or(0, Tombstones::memory)
            + self.marks.as_ref().map_or(0, |marks| marks.chunks.memory())
            + self.notes.as_ref().map_or(0, |notes| notes.chunks.memory());
        Stats {
            fingerprints: self.entry.fingerprints,
            ids: self.entry.ids,
            names: self.entry.names,
            tombstones: self.entry.tombstones,
            marks: self.entry.marks,
            notes: self.entry.notes,
            memtable_entries: 0,
            segments: 1,
            tables: self.tables.len(),
            bytes: table_bytes + id_bytes + name_bytes + tombstone_bytes + mark_bytes + note_bytes,
            table_bytes,
            id_bytes,
            name_bytes,
            tombstone_bytes,
            mark_bytes,
            note_bytes,
            memory: memory as u64,
        }
    }

    /// Block and position of a fingerprint in the first table, which is not permuted.
    pub(crate) fn find(&self, fingerprint: F) -> Result<Option<(usize, usize)>> {
        let mut found = None;
        self.tables[0].visit(fingerprint, fingerprint, |block, i, _| found = Some((block, i)))?;
        Ok(found)
    }

    /// Calls `visitor` with the ids of the fingerprint at a position in a block of the first table; once with
    /// none in a segment without ids.
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

    /// The manifest's entry.
    pub(crate) fn entry(&self) -> &SegmentEntry {
        &self.entry
    }

    /// Pairs that were deleted from older segments, ascending.
    pub(crate) fn tombstones(&self) -> &[(F, u64)] {
        self.tombstones.as_ref().map_or(&[], Tombstones::pairs)
    }

    /// Whether a pair of older segments was deleted; where ids are not kept, the id is 0.
    #[inline]
    pub(crate) fn hides(&self, fingerprint: F, id: u64) -> bool {
        self.tombstones.as_ref().is_some_and(|tombstones| tombstones.contains(fingerprint, id))
    }

    /// Whether a pair with this id was deleted: names and notes of the id in older segments do not count.
    pub(crate) fn forgets(&self, id: u64) -> bool {
        self.tombstones.as_ref().is_some_and(|tombstones| tombstones.has_id(id))
    }

    /// Number of chunks of names.
    pub(crate) fn name_chunks(&self) -> usize {
        self.names.as_ref().map_or(0, |names| names.chunks.len())
    }

    /// Appends the ids and names of a chunk, ascending.
    pub(crate) fn names(&self, chunk: usize, all: &mut impl Extend<(u64, String)>) -> Result<()> {
        self.names.as_ref().map_or(Ok(()), |names| names.read(chunk, all))
    }

    /// The name of a document.
    pub(crate) fn name(&self, id: u64) -> Result<Option<String>> {
        self.names.as_ref().map_or(Ok(None), |names| names.get(id))
    }

    /// Calls `found` with positions among some ids, which ascend, and the names of these; reads no chunk twice.
    pub(crate) fn names_of(&self, ids: &[u64], found: impl FnMut(usize, String)) -> Result<()> {
        self.names.as_ref().map_or(Ok(()), |names| names.get_each(ids, found))
    }

    /// The ids in a chunk of names whose name is one of these.
    pub(crate) fn ids_of_names(&self, chunk: usize, wanted: &HashSet<String>) -> Result<Vec<u64>> {
        self.names.as_ref().map_or(Ok(Vec::new()), |names| names.ids_of(chunk, wanted))
    }

    /// Number of chunks of notes.
    pub(crate) fn note_chunks(&self) -> usize {
        self.notes.as_ref().map_or(0, |notes| notes.chunks.len())
    }

    /// Appends the ids and notes of a chunk, ascending.
    pub(crate) fn notes(&self, chunk: usize, all: &mut impl Extend<(u64, Vec<u8>)>) -> Result<()> {
        self.notes.as_ref().map_or(Ok(()), |notes| notes.read(chunk, all))
    }

    /// The note of a document.
    pub(crate) fn note(&self, id: u64) -> Result<Option<Vec<u8>>> {
        self.notes.as_ref().map_or(Ok(None), |notes| notes.get(id))
    }

    /// Calls `found` with positions among some ids, which ascend, and the notes of these; reads no chunk twice.
    pub(crate) fn notes_of(&self, ids: &[u64], found: impl FnMut(usize, Vec<u8>)) -> Result<()> {
        self.notes.as_ref().map_or(Ok(()), |notes| notes.get_each(ids, found))
    }

    /// Appends the entries of a block of the first table whose ids are wanted.
    pub(crate) fn entries_of(
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

    /// Number of chunks of marks.
    pub(crate) fn mark_chunks(&self) -> usize {
        self.marks.as_ref().map_or(0, |marks| marks.chunks.len())
    }

    /// Appends the keys and values of a chunk of marks, ascending.
    pub(crate) fn marks(&self, chunk: usize, all: &mut impl Extend<(String, Vec<u8>)>) -> Result<()> {
        self.marks.as_ref().map_or(Ok(()), |marks| marks.read(chunk, all))
    }

    /// The mark under a key.
    pub(crate) fn mark(&self, key: &str) -> Result<Option<Vec<u8>>> {
        self.marks.as_ref().map_or(Ok(None), |marks| marks.get(key))
    }

    /// Appends the entries of a block of the first table, in order.
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
