//! Which documents of a corpus on disk may be similar to another: those that have the same set of features, or that a sketch brings
//! together.
//!
//! Of each document there are two bits in memory. Rows of sketches are sent to the parts of one table after the other, in files, and
//! each part is joined in memory: a pair is looked at where both rows are at hand. Only who is in such a pair is remembered, so that
//! a crowd takes no more than its members.

use std::ops::ControlFlow;

use rayon::prelude::*;
use simstore::join::{NearPair, Parts};
use simstore::{Error, Result};
use simstore_text::SketchSearch;

use super::super::corpus::Room;
use super::super::sketch_file::{SketchFile, SketchRow};
use super::Wanted;
use super::candidates::{are_brought_together, may_be_similar};
use super::choice;
use super::marks::Marks;
use crate::Watch;
use crate::numbers::count_of;
use crate::spill::{Sorter, SpillFile, SpillWriter};
use crate::watch::Step;

/// Files that are written at the same time, each with a buffer.
const MOST_PARTS: u64 = 256;
/// Bytes of memory for a row that is joined: itself, its sketch and where that starts, and what the join takes; and room for parts
/// that are larger than others.
const BYTES_OF_A_ROW: u64 = 192;
/// Bytes of memory for a document that may be similar to another, besides what it is called: its sketches, and what it takes to
/// join them and to compare it.
const BYTES_OF_A_LIKELY_ONE: u64 = 320;
/// Bytes that are read at once of a part.
const BUFFER: usize = 1 << 18;

/// Documents that may be similar to others.
#[derive(Debug)]
pub(in super::super) struct Likely {
    /// Ascending.
    pub(in super::super) documents: Vec<usize>,
    /// Number of different sets of features, of all documents.
    pub(in super::super) distinct: usize,
}

impl Likely {
    /// Finds all whose similarity the search would compare, and those that have the same features; besides some others, which are
    /// needed anyway.
    ///
    /// # Errors
    /// [`Error::Refused`] if the budget is too little for them, with what would do.
    pub(in super::super) fn find(
        wanted: &Wanted,
        file: &SketchFile,
        others: impl Iterator<Item = usize>,
        room: &Room,
        watch: &dyn Watch,
    ) -> Result<Likely> {
        let step = Step::new(watch, "sketches joined");
        step.add(0)?;
        // Two bits of each document.
        let memory = room.budget.bytes.saturating_sub(file.len() as u64 / 4);
        let (likely, firsts) = (Marks::new(file.len()), Marks::new(file.len()));
        find_equal(file, room, memory, &firsts, &likely)?;
        step.add(0)?;
        let distinct = firsts.count();
        let search = choice::choose(wanted.least, wanted.recall, distinct)?.search;
        let sketched =
            Sketched { file, firsts: &firsts, likely: &likely, search, least: wanted.least, step: &step };
        sketched.find(room, memory)?;
        drop(firsts);
        others.for_each(|document| likely.set(document as u32));
        let needed = likely.count() as u64 * BYTES_OF_A_LIKELY_ONE;
        if needed > memory {
            return Err(Error::Refused(format!(
                "{} may be similar to others, and need {}",
                count_of(likely.count() as u64, "document"),
                room.budget.too_little_for(needed + (room.budget.bytes - memory))
            )));
        }
        Ok(Likely { documents: likely.marked(), distinct })
    }
}

/// Of the documents of each set marks the first one, and all if they are several.
fn find_equal(file: &SketchFile, room: &Room, memory: u64, firsts: &Marks, likely: &Marks) -> Result<()> {
    let mut sorter = Sorter::<(u128, u32)>::new(&room.temporary, memory / 2);
    file.visit(|row| if row.features > 0 { sorter.push((row.digest(), row.document)) } else { Ok(()) })?;
    let mut last: Option<(u128, u32)> = None;
    for record in sorter.finish()? {
        let (digest, document) = record?;
        match last {
            Some((other, first)) if other == digest => {
                likely.set(first);
                likely.set(document);
            }
            _ => {
                firsts.set(document);
                last = Some((digest, document));
            }
        }
    }
    Ok(())
}

/// How many parts there have to be, so that each takes at most so much memory, of the whole.
pub(super) fn parts_for(whole: u64, memory: u64, room: &Room) -> Result<u64> {
    // The buffers of the files take some too.
    let parts = whole.div_ceil(memory.max(1)).max(1).next_power_of_two();
    if parts > MOST_PARTS {
        // Some callers have half of the budget.
        let least = room.budget.bytes + 2 * whole.div_ceil(MOST_PARTS).saturating_sub(memory);
        return Err(Error::Refused(format!(
            "joining the documents, in {MOST_PARTS} parts, needs {}",
            room.budget.too_little_for(least)
        )));
    }
    Ok(parts)
}

/// Opens the files of some parts.
pub(super) fn create_parts(room: &Room, parts: usize) -> Result<Vec<SpillWriter>> {
    (0..parts).map(|_| room.temporary.create("part")).collect()
}

/// The search for what sketches bring together.
struct Sketched<'a> {
    file: &'a SketchFile,
    firsts: &'a Marks,
    likely: &'a Marks,
    search: SketchSearch,
    least: f64,
    step: &'a Step<'a>,
}

impl Sketched<'_> {
    /// Joins each sketch in parts, one table after the other.
    fn find(&self, room: &Room, memory: u64) -> Result<()> {
        let mut rows = 0;
        self.visit(|_| {
            rows += 1;
            Ok(())
        })?;
        let parts = parts_for(rows * BYTES_OF_A_ROW, memory, room)?;
        let parts = Parts::<u64>::with_parts(self.search.distance, parts as usize)?;
        for sketch in 0..self.search.joined {
            for table in 0..parts.tables() {
                let mut files = create_parts(room, parts.parts())?;
                self.visit(|row| row.push_to(&mut files[parts.part(table, row.words[sketch])]))?;
                let files: Vec<SpillFile> =
                    files.into_iter().map(SpillWriter::finish).collect::<Result<_>>()?;
                for file in files {
                    self.join(&parts, table, sketch, file)?;
                }
            }
        }
        Ok(())
    }

    /// Visits the rows of all sets.
    fn visit(&self, mut visitor: impl FnMut(&SketchRow) -> Result<()>) -> Result<()> {
        let mut seen: u64 = 0;
        self.file.visit(|row| {
            seen += 1;
            if seen.is_multiple_of(1 << 16) {
                self.step.add(0)?;
            }
            if self.firsts.has(row.document) { visitor(row) } else { Ok(()) }
        })
    }

    /// Joins a part of a table.
    fn join(&self, parts: &Parts<u64>, table: usize, sketch: usize, file: SpillFile) -> Result<()> {
        let mut rows: Vec<SketchRow> = Vec::with_capacity(file.bytes() as usize / size_of::<SketchRow>());
        let mut reader = file.read_once(BUFFER)?;
        while let Some(row) = SketchRow::read(&mut reader)? {
            rows.push(row);
        }
        drop(reader);
        rows.par_sort_unstable_by_key(|row| (row.words[sketch], row.document));
        let (mut values, mut starts) = (Vec::new(), Vec::new());
        for (at, row) in rows.iter().enumerate() {
            if values.last() != Some(&row.words[sketch]) {
                values.push(row.words[sketch]);
                starts.push(at as u32);
            }
        }
        starts.push(rows.len() as u32);
        let rows_of = |at: usize| &rows[starts[at] as usize..starts[at + 1] as usize];
        // Equal sketches are in one part of each table, and count in the first.
        if table == 0 {
            (0..values.len()).into_par_iter().filter(|&at| rows_of(at).len() > 1).try_for_each(|at| {
                self.mark(rows_of(at), rows_of(at), sketch);
                self.step.add(0)
            })?;
        }
        parts.join(table, &values, |pairs| {
            for NearPair { a, b, .. } in pairs {
                // Both are among the values.
                let of = |value: &u64| rows_of(values.partition_point(|other| other < value));
                let (one, other) = (of(a), of(b));
                self.mark(one, other, sketch);
                self.mark(other, one, sketch);
            }
            match self.step.add(pairs.len() as u64) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })
    }

    /// Marks those of some that are to be compared with one of others, and these with them. Of those that are marked already, nothing
    /// is left to be found.
    fn mark(&self, rows: &[SketchRow], others: &[SketchRow], sketch: usize) {
        let mut open: Vec<&SketchRow> = others.iter().filter(|row| !self.likely.has(row.document)).collect();
        for row in rows {
            if open.is_empty() {
                return;
            }
            open.retain(|other| {
                let is_new = other.document != row.document
                    && are_brought_together(&self.search, &row.words, &other.words, sketch)
                    && may_be_similar(row.features, other.features, self.least);
                if is_new {
                    self.likely.set(row.document);
                    self.likely.set(other.document);
                }
                !is_new
            });
        }
    }
}
