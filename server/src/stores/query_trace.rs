//! Counts where a query looks in the segments of a store.

use simstore::raw::{ProbeTrace, Table};
use simstore::{Fingerprint, Result, Snapshot};

use crate::messages::{SegmentTrace, TableTrace, TraceAnswer};

/// Counts the work of looking up some fingerprints, in each table of each segment.
pub(super) fn trace_queries<F: Fingerprint>(
    snapshot: &Snapshot<F>,
    fingerprints: &[F],
    distance: u32,
) -> Result<TraceAnswer> {
    let trace_table = |(at, table): (usize, &Table<F>)| {
        let mut sum = TableTrace { table: at, ..TableTrace::default() };
        for &fingerprint in fingerprints {
            add(&mut sum, table.trace_probes(fingerprint, distance)?);
        }
        Ok(sum)
    };
    let segments = snapshot.segments().iter().map(|segment| {
        let tables = segment.tables().iter().enumerate().map(trace_table);
        Ok(SegmentTrace { number: segment.number(), tables: tables.collect::<Result<_>>()? })
    });
    Ok(TraceAnswer { fingerprints: fingerprints.len(), segments: segments.collect::<Result<_>>()? })
}

fn add(sum: &mut TableTrace, trace: ProbeTrace) {
    sum.probes += trace.probes;
    sum.filtered += trace.filtered;
    sum.empty += trace.empty;
    sum.blocks += trace.blocks;
    sum.compared += trace.compared;
    sum.found += trace.found;
}
