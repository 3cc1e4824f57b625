//! Salvage of a segment with damaged or missing files.

use std::path::Path;
use std::sync::Arc;

use super::SegmentFileOpener;
use super::id_values::{NameFile, NoteFile};
use super::ids::IdFile;
use super::metadata::MetadataFile;
use super::tombstones::Tombstones;
use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::fs::Fs;
use crate::manifest::SegmentEntry;
use crate::progress::ProgressCounter;
use crate::spill::{Sorter, SpillLocation};
use crate::table::Table;

/// A segment that may be damaged, with the files that could be opened.
pub(crate) struct DamagedSegment<F> {
    /// Manifest entry of the segment. If there is no manifest, the entry is reconstructed from the file names. Then it has no
    /// footer checksums and no count of fingerprints. A nonzero count, such as that of the names, then only says that there
    /// is a file of these.
    pub(crate) entry: SegmentEntry,
    /// Tables of the segment, in the order of their numbers; `None` for those that could not be opened.
    tables: Vec<Option<Table<F>>>,
    ids: Option<IdFile>,
    names: Option<NameFile>,
    tombstones: Option<Tombstones<F>>,
    metadata: Option<MetadataFile>,
    notes: Option<NoteFile>,
    /// Number of distinct fingerprints according to the manifest or the tables; 0 if unknown.
    pub(crate) fingerprints: u64,
}

/// A callback for the salvaged pairs. Its arguments are a fingerprint and one of its ids, or `None` if the ids are lost.
pub(crate) type SalvageVisitor<'a, F> = &'a mut dyn FnMut(F, Option<u64>) -> Result<()>;

impl<F: Fingerprint> DamagedSegment<F> {
    /// Opens the files that can be opened. Calls `damaged` with the error of each file that cannot be opened.
    pub(crate) fn open(
        fs: &dyn Fs,
        store: &Path,
        entry: SegmentEntry,
        mut damaged: impl FnMut(Error),
    ) -> DamagedSegment<F> {
        let footers = (!entry.footer_crcs.is_empty()).then(|| entry.footer_crcs.iter());
        let mut files = SegmentFileOpener { fs, store, entry: &entry, footers };
        let mut fingerprints = entry.fingerprints;
        let mut tables = Vec::new();
        for number in 0..entry.tables {
            let table = files.open(entry.table_file_name(number), |path, bytes| {
                let table = Table::<F>::open(path, bytes)?;
                if fingerprints > 0 && table.header().fingerprints != fingerprints {
                    let what = "the numbers of fingerprints of this table and of another one";
                    return Err(Error::corrupt(path, 0, Damage::Mismatch { what }));
                }
                Ok(table)
            });
            let table = table.map_err(&mut damaged).ok();
            fingerprints = table.as_ref().map_or(fingerprints, |table| table.header().fingerprints);
            tables.push(table);
        }
        let blocks = tables.first().and_then(Option::as_ref).map(Table::blocks);
        let ids = files.open_if(entry.has_ids, "ids", |path, bytes| {
            let ids = IdFile::open_alone(path, bytes)?;
            let sound = ids.fingerprints() == fingerprints || fingerprints == 0;
            if !sound || blocks.is_some_and(|blocks| blocks != ids.chunks.len()) {
                let what = "the chunks of ids and the blocks of the first table";
                return Err(Error::corrupt(path, 0, Damage::Mismatch { what }));
            }
            Ok(ids)
        });
        let ids = ids.map_err(&mut damaged).ok().flatten();
        let names =
            files.open_if(entry.names > 0, "names", NameFile::open).map_err(&mut damaged).ok().flatten();
        let tombstones = files.open_if(entry.tombstones > 0, "tombstones", Tombstones::open);
        let tombstones = tombstones.map_err(&mut damaged).ok().flatten();
        let metadata = files
            .open_if(entry.metadata > 0, "metadata", MetadataFile::open)
            .map_err(&mut damaged)
            .ok()
            .flatten();
        let notes =
            files.open_if(entry.notes > 0, "notes", NoteFile::open).map_err(&mut damaged).ok().flatten();
        DamagedSegment { entry, tables, ids, names, tombstones, metadata, notes, fingerprints }
    }

    /// The tables that could be opened.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Table<F>> {
        self.tables.iter().flatten()
    }

    /// Whether all tables could be opened.
    pub(crate) fn has_all_tables(&self) -> bool {
        self.tables.iter().all(Option::is_some)
    }

    /// Number of chunks in the name file.
    pub(crate) fn name_chunks(&self) -> usize {
        self.names.as_ref().map_or(0, |names| names.chunks.len())
    }

    /// Appends the (id, name) pairs of a chunk of the name file to `all`, ascending by id.
    pub(crate) fn names(&self, chunk: usize, all: &mut impl Extend<(u64, String)>) -> Result<()> {
        self.names.as_ref().map_or(Ok(()), |names| names.read(chunk, all))
    }

    /// Number of chunks in the note file.
    pub(crate) fn note_chunks(&self) -> usize {
        self.notes.as_ref().map_or(0, |notes| notes.chunks.len())
    }

    /// Appends the (id, note) pairs of a chunk of the note file to `all`, ascending by id.
    pub(crate) fn notes(&self, chunk: usize, all: &mut impl Extend<(u64, Vec<u8>)>) -> Result<()> {
        self.notes.as_ref().map_or(Ok(()), |notes| notes.read(chunk, all))
    }

    /// Returns the readable metadata as (key, value) pairs. Calls `damaged` with the error of each chunk that cannot be read.
    pub(crate) fn metadata(&self, damaged: &mut dyn FnMut(Error)) -> Vec<(String, Vec<u8>)> {
        let mut all = Vec::new();
        if let Some(metadata) = &self.metadata {
            (0..metadata.chunks.len())
                .for_each(|chunk| metadata.read(chunk, &mut all).unwrap_or_else(&mut *damaged));
        }
        all
    }

    /// Whether this segment deletes the pair from older segments.
    pub(crate) fn has_tombstone(&self, fingerprint: F, id: u64) -> bool {
        self.tombstones.as_ref().is_some_and(|tombstones| tombstones.contains(fingerprint, id))
    }

    /// Whether this segment has a tombstone for any pair with this id. If so, the id's names and notes in older segments no
    /// longer apply.
    pub(crate) fn has_forgotten(&self, id: u64) -> bool {
        self.tombstones.as_ref().is_some_and(|tombstones| tombstones.has_id(id))
    }

    /// Visits all fingerprints that at least one table still has. Visits them with their ids, or without if their
    /// ids are lost. Calls `damaged` with the error of each part that cannot be read. Returns the number of
    /// distinct fingerprints visited. If it must sort fingerprints, it uses `memory` bytes of memory, and temporary
    /// files in `runs`.
    pub(crate) fn visit(
        &self,
        runs: Arc<dyn SpillLocation>,
        memory: u64,
        progress: &ProgressCounter<'_>,
        damaged: &mut dyn FnMut(Error),
        visit: SalvageVisitor<'_, F>,
    ) -> Result<u64> {
        match self.tables.first() {
            Some(Some(first)) => self.visit_with_first(first, progress, damaged, visit),
            _ => self.visit_without_first(runs, memory, progress, damaged, visit),
        }
    }

    /// Does the work of [`DamagedSegment::visit`] if the first table could be opened. Visits its sound blocks first. The
    /// fingerprints of its damaged blocks come from the other tables.
    fn visit_with_first(
        &self,
        first: &Table<F>,
        progress: &ProgressCounter<'_>,
        damaged: &mut dyn FnMut(Error),
        visit: SalvageVisitor<'_, F>,
    ) -> Result<u64> {
        let mut count = 0;
        let mut lost: Vec<(usize, Vec<F>)> = Vec::new();
        let mut fingerprints = Vec::new();
        for block in 0..first.blocks() {
            fingerprints.clear();
            match first.decode_block(block, &mut fingerprints) {
                Ok(()) => {
                    count += fingerprints.len() as u64;
                    self.emit_block(block, &fingerprints, damaged, visit)?;
                }
                Err(error) => {
                    damaged(error);
                    lost.push((block, Vec::new()));
                }
            }
        }
        if lost.is_empty() {
            return Ok(count);
        }
        for table in self.tables().skip(1) {
            visit_sound_blocks(table, progress, damaged, |fingerprint| {
                let block = first.block_of(fingerprint);
                if let Ok(i) = lost.binary_search_by_key(&block, |lost| lost.0) {
                    lost[i].1.push(fingerprint);
                }
                Ok(())
            })?;
            for (_, fingerprints) in &mut lost {
                fingerprints.sort_unstable();
                fingerprints.dedup();
            }
        }
        for (block, fingerprints) in lost {
            count += fingerprints.len() as u64;
            self.emit_block(block, &fingerprints, damaged, visit)?;
        }
        Ok(count)
    }

    /// Visits the fingerprints of a block of the first table, with the ids in the chunk for this block. Visits the
    /// fingerprints without ids if the chunk is damaged, or has ids for more or fewer fingerprints than the block has.
    fn emit_block(
        &self,
        block: usize,
        fingerprints: &[F],
        damaged: &mut dyn FnMut(Error),
        visit: SalvageVisitor<'_, F>,
    ) -> Result<()> {
        let mut pairs = Vec::new();
        if let Some(ids) = self.ids.as_ref().filter(|_| !fingerprints.is_empty()) {
            match ids.pairs(block, fingerprints, &mut pairs) {
                Ok(()) => {}
                Err(error) => damaged(error),
            }
        }
        if pairs.is_empty() {
            return fingerprints.iter().try_for_each(|&fingerprint| visit(fingerprint, None));
        }
        pairs.into_iter().try_for_each(|(fingerprint, id)| visit(fingerprint, Some(id)))
    }

    /// Does the work of [`DamagedSegment::visit`] if the first table could not be opened. Sorts the fingerprints
    /// of the other tables, because the ids are stored in the sort order of the lost table.
    fn visit_without_first(
        &self,
        runs: Arc<dyn SpillLocation>,
        memory: u64,
        progress: &ProgressCounter<'_>,
        damaged: &mut dyn FnMut(Error),
        visit: SalvageVisitor<'_, F>,
    ) -> Result<u64> {
        let mut sorter = Sorter::<F>::new(runs, memory);
        for table in self.tables() {
            let is_sound =
                visit_sound_blocks(table, progress, damaged, |fingerprint| sorter.push(fingerprint))?;
            // A sound table has all fingerprints.
            if is_sound {
                break;
            }
        }
        let sorted = sorter.finish_runs()?;
        let mut count = 0_u64;
        sorted.visit(|_| progress.check_cancelled_at(&mut count))?;
        let chunks = self.ids.as_ref().map_or(Vec::new(), |ids| ids.chunks_by_position(count, damaged));
        // Index of the current chunk, position of the fingerprint, and fingerprints of the current chunk so far.
        let (mut next, mut position, mut pending) = (0, 0, Vec::new());
        sorted.visit(|fingerprint| {
            while next < chunks.len() && chunks[next].1.end <= position {
                next += 1;
            }
            match chunks.get(next).filter(|(_, range)| range.contains(&position)) {
                Some((block, range)) => {
                    pending.push(fingerprint);
                    if position + 1 == range.end {
                        self.emit_block(*block, &pending, damaged, visit)?;
                        pending.clear();
                    }
                }
                None => visit(fingerprint, None)?,
            }
            position += 1;
            Ok(())
        })?;
        Ok(count)
    }
}

/// Visits the fingerprints in the sound blocks of a table. Returns whether all blocks are sound.
fn visit_sound_blocks<F: Fingerprint>(
    table: &Table<F>,
    progress: &ProgressCounter<'_>,
    damaged: &mut dyn FnMut(Error),
    mut visit: impl FnMut(F) -> Result<()>,
) -> Result<bool> {
    let mut is_sound = true;
    let (mut decoded, mut pending) = (Vec::new(), 0);
    progress.check_cancelled()?;
    for block in 0..table.blocks() {
        progress.check_cancelled_batched(&mut pending, decoded.len() as u64)?;
        decoded.clear();
        match table.decode_block(block, &mut decoded) {
            Ok(()) => {
                for &permuted in &decoded {
                    visit(table.header().plan.permutation.invert(permuted))?;
                }
            }
            Err(error) => {
                is_sound = false;
                damaged(error);
            }
        }
    }
    Ok(is_sound)
}
