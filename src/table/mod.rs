//! Tables: one permuted, sorted, compressed copy of a segment's fingerprints each (`format-spec/table.md`).

mod block_index;
mod blocks;
mod filter;
mod flips;
mod group;
mod header;
mod neighbours;
mod probe;
mod reader;
mod verify;
mod writer;

pub use self::header::TableHeader;
pub(crate) use self::header::check_span;
pub(crate) use self::probe::{Hit, probe};
pub use self::reader::{BlockInfo, Table, TableScan};
pub(crate) use self::writer::TableWriter;

#[cfg(test)]
mod tests;
