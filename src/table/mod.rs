//! Tables. Each is a permuted, sorted, compressed copy of the fingerprints of a segment (`format-spec/table.md`).

mod block_index;
mod blocks;
mod bloom_filter;
mod coding_stats;
mod header;
mod line_candidates;
mod line_probes;
mod line_search;
mod line_table;
mod probe;
mod probe_group;
mod probe_hit;
mod probe_masks;
mod probe_trace;
mod reader;
mod verify;
mod writer;

pub use self::header::TableHeader;
pub(crate) use self::header::check_span;
pub(crate) use self::probe::probe;
pub(crate) use self::probe_hit::ProbeHit;
pub use self::probe_trace::ProbeTrace;
pub use self::reader::{BlockInfo, PrefixLineCounts, Table, TableScan};
pub(crate) use self::writer::TableWriter;

#[cfg(test)]
mod tests;
