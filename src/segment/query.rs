//! Queries over the tables of all segments at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Match, Segment};
use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::table::{self, ProbeHit, Table};

/// Appends the matches of a query in all segments to `matches`, unsorted. Probes the tables of all segments together.
///
/// Leaves out the matches for which `is_hidden` returns true. Its arguments are the index of the segment, the fingerprint
/// and the id. The matches of one segment are distinct.
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
    let mut pending =
        PendingMatches { inline: [PendingMatch::NONE; INLINE_MATCHES], overflow: Vec::new(), len: 0 };
    table::probe(tables, query, distance, |hit| pending.extend(pending_match(segments, query, &hit)))?;
    pending.prefetch_each(segments, PendingMatch::prefetch_line);
    pending.prefetch_each(segments, PendingMatch::prefetch_block);
    pending.prefetch_each(segments, PendingMatch::prefetch_ids);
    for matched in pending.iter() {
        let segment = &segments[matched.segment];
        let fingerprint = matched.fingerprint;
        let (block, position) = matched.location(segment)?;
        segment.visit_ids(block, position, |id| {
            if !is_hidden(matched.segment, fingerprint, id) {
                matches.push(Match { fingerprint, distance: query.distance(fingerprint), id });
            }
        })?;
    }
    Ok(())
}

/// Returns the match that a table found, still without its ids. Returns `None` if an earlier table of the segment finds the
/// same fingerprint.
fn pending_match<F: Fingerprint>(
    segments: &[Arc<Segment<F>>],
    query: F,
    hit: &ProbeHit<F>,
) -> Option<PendingMatch<F>> {
    let (mut number, mut table) = (0, hit.table);
    while table >= segments[number].tables.len() {
        table -= segments[number].tables.len();
        number += 1;
    }
    let segment = &segments[number];
    let fingerprint = segment.tables[table].header().plan.permutation.invert(hit.value);
    let is_first = segment.first_finding_table(query ^ fingerprint) == Some(table);
    // The ids are in the order of the first table.
    let location = if table == 0 { Some((hit.block, hit.position)) } else { None };
    is_first.then_some(PendingMatch { segment: number, fingerprint, location })
}

/// Maximum number of fingerprints in a segment that gets Bloom filters when it is written. Compaction leaves few segments of
/// at most this size. With memtables of the default size, the filters of all these segments take at most about 130 MiB.
const MAX_FILTERED_AT_WRITE: u64 = 1 << 24;
/// Maximum number of fingerprints in a segment that gets Bloom filters during a query. Building the filters delays this query
/// by a few hundredths of a second.
const MAX_FILTERED_AT_QUERY: u64 = 1 << 22;
/// A query with filters saves about as much time as it takes to add this number of fingerprints to the filters.
const FINGERPRINTS_PER_QUERY: u64 = 1 << 7;

impl<F: Fingerprint> Segment<F> {
    /// Builds the Bloom filters of the tables, if the segment is small enough. A query over several segments then spends
    /// little time in this one.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a block is damaged.
    pub(crate) fn make_filters(&self) -> Result<()> {
        if self.entry.fingerprints <= MAX_FILTERED_AT_WRITE {
            self.tables.iter().try_for_each(Table::build_filter)?;
        }
        self.filters_decided.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Counts a query. Builds the Bloom filters as soon as there were so many queries that filters would have saved
    /// more time than building takes. (A segment that was not written by this process starts without filters.)
    #[inline]
    fn count_query(&self) {
        if self.filters_decided.load(Ordering::Relaxed) {
            return;
        }
        let before = self.unfiltered_queries.fetch_add(1, Ordering::Relaxed);
        if before == self.entry.fingerprints / FINGERPRINTS_PER_QUERY {
            // A damaged block is reported when a query reads it. Its table gets no filter.
            if self.entry.fingerprints <= MAX_FILTERED_AT_QUERY {
                let _ = self.make_filters();
            }
            self.filters_decided.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the index of the first table whose probes find a fingerprint that differs from the query in the bits of
    /// `difference`. Several tables may find the fingerprint, but only the match of this table is kept.
    #[inline]
    fn first_finding_table(&self, difference: F) -> Option<usize> {
        self.tables
            .iter()
            .position(|table| (difference & table.prefix_mask()).count_ones() <= table.header().plan.flips)
    }
}

/// A fingerprint that a query has found, and whose ids have not been read yet.
#[derive(Clone, Copy)]
struct PendingMatch<F> {
    /// Index of the segment.
    segment: usize,
    fingerprint: F,
    /// Block and position of the fingerprint in the segment's first table. `None` if another table found the
    /// fingerprint.
    location: Option<(usize, usize)>,
}

impl<F: Fingerprint> PendingMatch<F> {
    const NONE: Self = PendingMatch { segment: 0, fingerprint: F::ZERO, location: None };

    /// Returns the index of the fingerprint's block in the segment's first table. Callers call
    /// [`PendingMatch::prefetch_line`] before, so that the look-up in the block index does not wait for memory.
    fn block(&self, segment: &Segment<F>) -> usize {
        self.location.map_or_else(|| segment.tables[0].block_of(self.fingerprint), |(block, _)| block)
    }

    /// Returns the index of the fingerprint's block in the segment's first table, and the fingerprint's position in the
    /// block. They locate its ids. In a segment without ids, the result has no meaning.
    fn location(&self, segment: &Segment<F>) -> Result<(usize, usize)> {
        if let Some(location) = self.location {
            return Ok(location);
        }
        // Without ids, the location is not used.
        if segment.ids.is_none() {
            return Ok((0, 0));
        }
        segment.locate(self.fingerprint)?.ok_or_else(|| {
            let what = "the fingerprints of the first table and of another one";
            Error::corrupt(segment.tables[0].path(), 0, Damage::Mismatch { what })
        })
    }

    fn prefetch_line(&self, segment: &Segment<F>) {
        if self.location.is_none() {
            segment.tables[0].prefetch_line(self.fingerprint);
        }
    }

    fn prefetch_block(&self, segment: &Segment<F>) {
        let (Some(ids), block) = (&segment.ids, self.block(segment)) else { return };
        if block < segment.tables[0].blocks() {
            segment.tables[0].prefetch_block(block);
            ids.chunks.prefetch_directory_entry(block);
        }
    }

    fn prefetch_ids(&self, segment: &Segment<F>) {
        let (Some(ids), block) = (&segment.ids, self.block(segment)) else { return };
        if block < segment.tables[0].blocks() {
            ids.chunks.prefetch(block);
        }
    }
}

/// Maximum number of matches kept without heap memory. It is enough for most queries.
const INLINE_MATCHES: usize = 16;

/// The pending matches of a query: the first ones in `inline`, the others in `overflow`.
struct PendingMatches<F> {
    inline: [PendingMatch<F>; INLINE_MATCHES],
    overflow: Vec<PendingMatch<F>>,
    len: usize,
}

impl<F: Fingerprint> PendingMatches<F> {
    fn extend(&mut self, matched: Option<PendingMatch<F>>) {
        let Some(matched) = matched else { return };
        match self.inline.get_mut(self.len) {
            Some(slot) => *slot = matched,
            None => self.overflow.push(matched),
        }
        self.len += 1;
    }

    fn iter(&self) -> impl Iterator<Item = &PendingMatch<F>> {
        self.inline[..self.len.min(INLINE_MATCHES)].iter().chain(&self.overflow)
    }

    /// Calls `prefetch` for each match, so that the cache misses of all matches overlap.
    fn prefetch_each(&self, segments: &[Arc<Segment<F>>], prefetch: impl Fn(&PendingMatch<F>, &Segment<F>)) {
        self.iter().for_each(|matched| prefetch(matched, &segments[matched.segment]));
    }
}

#[cfg(test)]
mod tests;
