//! The readable part of a segment with damaged or missing files.

use std::path::Path;
use std::sync::Arc;

use super::Files;
use super::by_id::{Names, Notes};
use super::ids::Ids;
use super::marks::Marks;
use super::tombstones::Tombstones;
use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::fs::Fs;
use crate::manifest::SegmentEntry;
use crate::progress::Steps;
use crate::spill::{Place, Sorter};
use crate::table::Table;

/// The files of a segment that can be opened.
pub(crate) struct SegmentRemains<F> {
    /// The entry in the manifest. Without a manifest it has no footers, and counts only tell whether there is such a file.
    pub(crate) entry: SegmentEntry,
    /// Those that cannot be opened are `None`.
    tables: Vec<Option<Table<F>>>,
    ids: Option<Ids>,
    names: Option<Names>,
    tombstones: Option<Tombstones<F>>,
    marks: Option<Marks>,
    notes: Option<Notes>,
    /// Distinct fingerprints, as far as it is known.
    pub(crate) fingerprints: u64,
}

/// A fingerprint that was rescued, with an id if it had one that was rescued too.
pub(crate) type Rescued<'a, F> = &'a mut dyn FnMut(F, Option<u64>) -> Result<()>;

impl<F: Fingerprint> SegmentRemains<F> {
    /// Opens what can be opened; calls `damaged` with the others.
    pub(crate) fn open(
        fs: &dyn Fs,
        store: &Path,
        entry: SegmentEntry,
        mut damaged: impl FnMut(Error),
    ) -> SegmentRemains<F> {
        let footers = (!entry.footers.is_empty()).then(|| entry.footers.iter());
        let mut files = Files { fs, store, entry: &entry, footers };
        let mut fingerprints = entry.fingerprints;
        let mut tables = Vec::new();
        for number in 0..entry.tables {
            let table = files.open(entry.table_name(number), |path, bytes| {
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
            let ids = Ids::open_alone(path, bytes)?;
            let sound = ids.fingerprints() == fingerprints || fingerprints == 0;
            if !sound || blocks.is_some_and(|blocks| blocks != ids.chunks.len()) {
                let what = "the chunks of ids and the blocks of the first table";
                return Err(Error::corrupt(path, 0, Damage::Mismatch { what }));
            }
            Ok(ids)
        });
        let ids = ids.map_err(&mut damaged).ok().flatten();
        let names = files.open_if(entry.names > 0, "names", Names::open).map_err(&mut damaged).ok().flatten();
        let tombstones = files.open_if(entry.tombstones > 0, "tombstones", Tombstones::open);
        let tombstones = tombstones.map_err(&mut damaged).ok().flatten();
        let marks = files.open_if(entry.marks > 0, "marks", Marks::open).map_err(&mut damaged).ok().flatten();
        let notes = files.open_if(entry.notes > 0, "notes", Notes::open).map_err(&mut damaged).ok().flatten();
        SegmentRemains { entry, tables, ids, names, tombstones, marks, notes, fingerprints }
    }

    /// The tables that could be opened.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Table<F>> {
        self.tables.iter().flatten()
    }

    /// Whether all tables could be opened.
    pub(crate) fn has_all_tables(&self) -> bool {
        self.tables.iter().all(Option::is_some)
    }

    /// Number of chunks of names.
    pub(crate) fn name_chunks(&self) -> usize {
        self.names.as_ref().map_or(0, |names| names.chunks.len())
    }

    /// Appends the ids and names of a chunk, ascending.
    pub(crate) fn names(&self, chunk: usize, all: &mut impl Extend<(u64, String)>) -> Result<()> {
        self.names.as_ref().map_or(Ok(()), |names| names.read(chunk, all))
    }

    /// Number of chunks of notes.
    pub(crate) fn note_chunks(&self) -> usize {
        self.notes.as_ref().map_or(0, |notes| notes.chunks.len())
    }

    /// Appends the ids and notes of a chunk, ascending.
    pub(crate) fn notes(&self, chunk: usize, all: &mut impl Extend<(u64, Vec<u8>)>) -> Result<()> {
        self.notes.as_ref().map_or(Ok(()), |notes| notes.read(chunk, all))
    }

    /// Its marks; calls `damaged` with each part that cannot be read.
    pub(crate) fn marks(&self, damaged: &mut dyn FnMut(Error)) -> Vec<(String, Vec<u8>)> {
        let mut all = Vec::new();
        if let Some(marks) = &self.marks {
            (0..marks.chunks.len())
                .for_each(|chunk| marks.read(chunk, &mut all).unwrap_or_else(&mut *damaged));
        }
        all
    }

    /// Whether a pair of older segments was deleted.
    pub(crate) fn hides(&self, fingerprint: F, id: u64) -> bool {
        self.tombstones.as_ref().is_some_and(|tombstones| tombstones.contains(fingerprint, id))
    }

    /// Whether a pair with this id was deleted: names and notes of the id in older segments do not count.
    pub(crate) fn forgets(&self, id: u64) -> bool {
        self.tombstones.as_ref().is_some_and(|tombstones| tombstones.has_id(id))
    }

    /// Visits all fingerprints that some table still has, with the ids that can be told; calls `damaged` with each part
    /// that cannot be read. Returns how many distinct fingerprints it has visited. `runs` is where sorted runs go.
    pub(crate) fn visit(
        &self,
        runs: Arc<dyn Place>,
        memory: u64,
        steps: &Steps<'_>,
        damaged: &mut dyn FnMut(Error),
        rescued: Rescued<'_, F>,
    ) -> Result<u64> {
        match self.tables.first() {
            Some(Some(first)) => self.visit_first(first, steps, damaged, rescued),
            _ => self.visit_others(runs, memory, steps, damaged, rescued),
        }
    }

    /// Block by block of the first table; fingerprints of its damaged blocks come from the other tables.
    fn visit_first(
        &self,
        first: &Table<F>,
        steps: &Steps<'_>,
        damaged: &mut dyn FnMut(Error),
        rescued: Rescued<'_, F>,
    ) -> Result<u64> {
        let mut count = 0;
        let mut lost: Vec<(usize, Vec<F>)> = Vec::new();
        let mut block_of = Vec::new();
        for block in 0..first.blocks() {
            block_of.clear();
            match first.decode_block(block, &mut block_of) {
                Ok(()) => {
                    count += block_of.len() as u64;
                    self.give(block, &block_of, damaged, rescued)?;
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
            each(table, steps, damaged, |fingerprint| {
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
            self.give(block, &fingerprints, damaged, rescued)?;
        }
        Ok(count)
    }

    /// Hands over the fingerprints of a block with the ids of its chunk, if it has some for each of them.
    fn give(
        &self,
        block: usize,
        fingerprints: &[F],
        damaged: &mut dyn FnMut(Error),
        rescued: Rescued<'_, F>,
    ) -> Result<()> {
        let mut pairs = Vec::new();
        if let Some(ids) = self.ids.as_ref().filter(|_| !fingerprints.is_empty()) {
            match ids.pairs(block, fingerprints, &mut pairs) {
                Ok(()) => {}
                Err(error) => damaged(error),
            }
        }
        if pairs.is_empty() {
            return fingerprints.iter().try_for_each(|&fingerprint| rescued(fingerprint, None));
        }
        pairs.into_iter().try_for_each(|(fingerprint, id)| rescued(fingerprint, Some(id)))
    }

    /// Without the first table: the fingerprints of the others, sorted as it had them.
    fn visit_others(
        &self,
        runs: Arc<dyn Place>,
        memory: u64,
        steps: &Steps<'_>,
        damaged: &mut dyn FnMut(Error),
        rescued: Rescued<'_, F>,
    ) -> Result<u64> {
        let mut sorter = Sorter::<F>::new(runs, memory);
        for table in self.tables() {
            let is_whole = each(table, steps, damaged, |fingerprint| sorter.push(fingerprint))?;
            // One whole table has all of them.
            if is_whole {
                break;
            }
        }
        let sorted = sorter.finish_runs()?;
        let mut count = 0_u64;
        sorted.visit(|_| steps.ask_at(&mut count))?;
        let chunks = self.ids.as_ref().map_or(Vec::new(), |ids| ids.chunks_by_position(count, damaged));
        // Of the chunk that is being filled.
        let (mut next, mut position, mut pending) = (0, 0, Vec::new());
        sorted.visit(|fingerprint| {
            while next < chunks.len() && chunks[next].1.end <= position {
                next += 1;
            }
            match chunks.get(next).filter(|(_, range)| range.contains(&position)) {
                Some((block, range)) => {
                    pending.push(fingerprint);
                    if position + 1 == range.end {
                        self.give(*block, &pending, damaged, rescued)?;
                        pending.clear();
                    }
                }
                None => rescued(fingerprint, None)?,
            }
            position += 1;
            Ok(())
        })?;
        Ok(count)
    }
}

/// Visits the fingerprints of the sound blocks of a table; says whether all are sound.
fn each<F: Fingerprint>(
    table: &Table<F>,
    steps: &Steps<'_>,
    damaged: &mut dyn FnMut(Error),
    mut visit: impl FnMut(F) -> Result<()>,
) -> Result<bool> {
    let mut whole = true;
    let (mut decoded, mut pending) = (Vec::new(), 0);
    steps.ask()?;
    for block in 0..table.blocks() {
        steps.ask_some(&mut pending, decoded.len() as u64)?;
        decoded.clear();
        match table.decode_block(block, &mut decoded) {
            Ok(()) => {
                for &permuted in &decoded {
                    visit(table.header().plan.permutation.invert(permuted))?;
                }
            }
            Err(error) => {
                whole = false;
                damaged(error);
            }
        }
    }
    Ok(whole)
}
