//! Looking up a fingerprint in the tables of all segments at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Match, Segment};
use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::table::{self, Hit, Table};

/// Appends the matches in some segments that are not hidden, unsorted; none twice in a segment. All tables are probed
/// together, whichever segment they are of. `is_hidden` is asked with the number of a segment.
///
/// # Errors
/// [`Error::Corrupt`] if a block is damaged.
pub(crate) fn query<F: Fingerprint>(
    segments: &[Arc<Segment<F>>],
    query: F,
    distance: u32,
    is_hidden: impl Fn(usize, F, Option<u64>) -> bool,
    matches: &mut Vec<Match<F>>,
) -> Result<()> {
    if segments.len() > 1 {
        segments.iter().for_each(|segment| segment.count_query());
    }
    let tables = segments.iter().flat_map(|segment| segment.tables());
    let mut found = Finds { few: [Find::NONE; FEW], many: Vec::new(), len: 0 };
    table::probe(tables, query, distance, |hit| found.extend(find(segments, query, &hit)))?;
    found.ask(segments, Find::ask_for_line);
    found.ask(segments, Find::ask_for_block);
    found.ask(segments, Find::ask_for_ids);
    for find in found.iter() {
        let segment = &segments[find.segment];
        let fingerprint = find.fingerprint;
        let (block, position) = find.place(segment)?;
        segment.visit_ids(block, position, |id| {
            if !is_hidden(find.segment, fingerprint, id) {
                matches.push(Match { fingerprint, distance: query.distance(fingerprint), id });
            }
        })?;
    }
    Ok(())
}

/// What a hit finds, unless another table of its segment reports it.
fn find<F: Fingerprint>(segments: &[Arc<Segment<F>>], query: F, hit: &Hit<F>) -> Option<Find<F>> {
    let (mut number, mut table) = (0, hit.table);
    while table >= segments[number].tables.len() {
        table -= segments[number].tables.len();
        number += 1;
    }
    let segment = &segments[number];
    let fingerprint = segment.tables[table].header().plan.permutation.invert(hit.value);
    let is_first = segment.finds_first(query ^ fingerprint) == Some(table);
    // The first table has the order of the ids.
    let place = if table == 0 { Some((hit.block, hit.position)) } else { None };
    is_first.then_some(Find { segment: number, fingerprint, place })
}

/// The most fingerprints of a segment that gets filters when it is written. A store has few segments so small, by what
/// compaction leaves of them: their filters take some 130 MiB at most, with memtables of the default size.
const MOST_FILTERED: u64 = 1 << 24;
/// The same when it is asked: the query that makes them takes a few hundredths of a second.
const MOST_FILTERED_LATE: u64 = 1 << 22;
/// Making a filter takes as long, for each fingerprint, as it spares in one of so many queries.
const SPARED: u64 = 1 << 7;

impl<F: Fingerprint> Segment<F> {
    /// Makes the filters of the tables, if the segment is small: one of several then takes little of a query's time.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a block is damaged.
    pub(crate) fn make_filters(&self) -> Result<()> {
        if self.entry.fingerprints <= MOST_FILTERED {
            self.tables.iter().try_for_each(Table::make_filter)?;
        }
        self.filtered.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// A segment that was not written by this process has no filters before it has been asked for so long that they would
    /// have been worth it.
    #[inline]
    fn count_query(&self) {
        if self.filtered.load(Ordering::Relaxed) {
            return;
        }
        let before = self.queries.fetch_add(1, Ordering::Relaxed);
        if before == self.entry.fingerprints / SPARED {
            // Of damage whoever reads the block is told; the table has no filter then.
            if self.entry.fingerprints <= MOST_FILTERED_LATE {
                let _ = self.make_filters();
            }
            self.filtered.store(true, Ordering::Relaxed);
        }
    }

    /// The first table whose probes find a fingerprint that differs from the query in these bits. Each match is reported by
    /// this table alone.
    #[inline]
    fn finds_first(&self, difference: F) -> Option<usize> {
        self.tables
            .iter()
            .position(|table| (difference & table.prefix_mask()).count_ones() <= table.header().plan.flips)
    }
}

/// A fingerprint that was found, whose ids are to be read.
#[derive(Clone, Copy)]
struct Find<F> {
    /// The number of its segment.
    segment: usize,
    fingerprint: F,
    /// Block and position in the first table, where they are known.
    place: Option<(usize, usize)>,
}

impl<F: Fingerprint> Find<F> {
    const NONE: Self = Find { segment: 0, fingerprint: F::ZERO, place: None };

    /// The block in the first table, after [`Find::ask_for_line`].
    fn block(&self, segment: &Segment<F>) -> usize {
        self.place.map_or_else(|| segment.tables[0].block_of(self.fingerprint), |(block, _)| block)
    }

    /// Block and position in the first table, whose order is that of the ids.
    fn place(&self, segment: &Segment<F>) -> Result<(usize, usize)> {
        if let Some(place) = self.place {
            return Ok(place);
        }
        // Without ids nobody asks where it is.
        if segment.ids.is_none() {
            return Ok((0, 0));
        }
        segment.find(self.fingerprint)?.ok_or_else(|| {
            let what = "the fingerprints of the first table and of another one";
            Error::corrupt(segment.tables[0].path(), 0, Damage::Mismatch { what })
        })
    }

    fn ask_for_line(&self, segment: &Segment<F>) {
        if self.place.is_none() {
            segment.tables[0].prefetch_line(self.fingerprint);
        }
    }

    fn ask_for_block(&self, segment: &Segment<F>) {
        let (Some(ids), block) = (&segment.ids, self.block(segment)) else { return };
        if block < segment.tables[0].blocks() {
            segment.tables[0].prefetch_block(block);
            ids.chunks.prefetch_place(block);
        }
    }

    fn ask_for_ids(&self, segment: &Segment<F>) {
        let (Some(ids), block) = (&segment.ids, self.block(segment)) else { return };
        if block < segment.tables[0].blocks() {
            ids.chunks.prefetch(block);
        }
    }
}

/// Finds of most queries: they take no memory of the heap.
const FEW: usize = 16;

/// What a query has found.
struct Finds<F> {
    few: [Find<F>; FEW],
    many: Vec<Find<F>>,
    len: usize,
}

impl<F: Fingerprint> Finds<F> {
    fn extend(&mut self, find: Option<Find<F>>) {
        let Some(find) = find else { return };
        match self.few.get_mut(self.len) {
            Some(place) => *place = find,
            None => self.many.push(find),
        }
        self.len += 1;
    }

    fn iter(&self) -> impl Iterator<Item = &Find<F>> {
        self.few[..self.len.min(FEW)].iter().chain(&self.many)
    }

    /// Asks for something of all, so that the waits for memory overlap.
    fn ask(&self, segments: &[Arc<Segment<F>>], ask: impl Fn(&Find<F>, &Segment<F>)) {
        self.iter().for_each(|find| ask(find, &segments[find.segment]));
    }
}

#[cfg(test)]
mod tests;
