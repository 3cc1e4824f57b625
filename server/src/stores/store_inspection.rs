//! Segments, tables and blocks of a served store, for people who want to see how it is stored.

use axum::http::StatusCode;
use simstore::raw::{Segment, Table};
use simstore::{Fingerprint, Snapshot};
use simstore_corpus::describe::{TableDescription, count_symbols, describe_block, describe_table};

use super::segment_age::segment_age;
use crate::messages::{BlockDetails, SegmentDetails, TableDetails};
use crate::service_error::{ServiceError, ServiceResult};

/// Maximum number of blocks that are counted for the histogram of a table.
const MAX_SAMPLED_BLOCKS: usize = 1 << 12;

/// Place of a table: the number of its segment, and its index in the segment, from 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TablePlace {
    pub(crate) segment: u64,
    pub(crate) table: usize,
}

/// A state of the store, of any width of fingerprints.
pub(crate) trait StoreInspection {
    /// Describes all segments, oldest first, with their tables.
    fn segments(&self) -> Vec<SegmentDetails>;

    /// Describes a table, with a histogram of its codes.
    fn table(&self, place: TablePlace) -> ServiceResult<TableDetails>;

    /// Describes a block of a table, with its fingerprints.
    fn block(&self, place: TablePlace, block: usize) -> ServiceResult<BlockDetails>;
}

impl<F: Fingerprint> StoreInspection for Snapshot<F> {
    fn segments(&self) -> Vec<SegmentDetails> {
        let describe = |(at, segment): (usize, &std::sync::Arc<Segment<F>>)| {
            let stats = segment.stats();
            let tables = segment.tables().iter().enumerate();
            SegmentDetails {
                number: segment.number(),
                plan: segment.plan().name().to_owned(),
                fingerprints: stats.fingerprints,
                pairs: if self.keeps_ids() { stats.ids } else { stats.fingerprints },
                tombstones: stats.tombstones,
                bytes: stats.bytes,
                age_seconds: segment_age(self.path(), segment),
                tables: tables.map(|(table, found)| describe_table(segment, found, [at, table])).collect(),
            }
        };
        Snapshot::segments(self).iter().enumerate().map(describe).collect()
    }

    fn table(&self, place: TablePlace) -> ServiceResult<TableDetails> {
        let (at, segment, table) = find_table(self, place)?;
        let sampled_every = table.blocks().div_ceil(MAX_SAMPLED_BLOCKS).max(1);
        let histogram = Some(table.differing_bits(sampled_every)?);
        let symbols = Some(count_symbols(table, sampled_every)?);
        let description = describe_table(segment, table, [at, place.table]);
        Ok(TableDetails { table: TableDescription { histogram, symbols, ..description }, sampled_every })
    }

    fn block(&self, place: TablePlace, block: usize) -> ServiceResult<BlockDetails> {
        let (at, _, table) = find_table(self, place)?;
        if block >= table.blocks() {
            return Err(no_part(format!(
                "no block {block}: the table has {} blocks, numbered from 0",
                table.blocks()
            )));
        }
        Ok(BlockDetails { block: describe_block(table, [at, place.table, block])? })
    }
}

/// Returns a table, its segment, and the index of the segment.
fn find_table<F: Fingerprint>(
    snapshot: &Snapshot<F>,
    place: TablePlace,
) -> ServiceResult<(usize, &Segment<F>, &Table<F>)> {
    let TablePlace { segment: number, table } = place;
    let segments = snapshot.segments();
    let at = segments.iter().position(|segment| segment.number() == number);
    let (at, segment) = at.map(|at| (at, &*segments[at])).ok_or_else(|| {
        no_part(format!("no segment {number}: it may have become part of another one; see `/segments`"))
    })?;
    let found = segment.tables().get(table).ok_or_else(|| {
        no_part(format!(
            "no table {table}: the segment has {} tables, numbered from 0",
            segment.tables().len()
        ))
    })?;
    Ok((at, segment, found))
}

fn no_part(message: String) -> ServiceError {
    ServiceError::new(StatusCode::NOT_FOUND, "no-part", message)
}
