//! Describes the contents of a store: counts and sizes of the store, its segments, tables and logs. The descriptions are plain
//! data, and can be serialized, such as to JSON.
//!
//! ```
//! use simstore::{BuildOptions, Builder};
//! use simstore_corpus::describe::describe_store;
//!
//! # let folder = tempfile::tempdir().unwrap();
//! let mut builder = Builder::<u64>::create(&folder.path().join("pages"), BuildOptions::default())?;
//! builder.insert(0x0123_4567_89ab_cdef, 1)?;
//! let store = builder.finish()?;
//! let description = describe_store(&store);
//! assert_eq!((description.fingerprints, description.ids, description.bits), (1, 1, 64));
//! # Ok::<(), simstore::Error>(())
//! ```

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use simstore::plan::min_bits_per_fingerprint;
use simstore::raw::{Coding, Segment, Table};
use simstore::{Error, Fingerprint, Result, Snapshot};

mod block;

pub use self::block::{BlockDescription, CodeDescription, CodedFingerprint, describe_block};

/// Counts, sizes and settings of a store.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoreDescription {
    /// Number of fingerprints in segments and logs. An upper bound if several segments have the same fingerprint.
    pub fingerprints: u64,
    /// Number of pairs of fingerprint and id in segments and logs. An upper bound if several segments have the same pair. 0
    /// if the store keeps no ids.
    pub ids: u64,
    /// Number of names of documents. An upper bound if some are in memory, or in several segments.
    pub names: u64,
    /// Number of notes. A note is data stored with a document, such as its compressed text. The number is an upper bound if some
    /// notes are in memory, or in several segments.
    pub notes: u64,
    /// Size of the manifest and of all files of segments, in bytes.
    pub bytes: u64,
    /// Size of the manifest and of all files of segments (tables, ids, names, notes and others), divided by the number of
    /// fingerprints in segments, in bits.
    #[serde(serialize_with = "thousandths")]
    pub bits_per_fingerprint: f64,
    /// Smallest possible size of one table with all fingerprints, if they were random: a lower bound by information theory, in
    /// bits for each fingerprint.
    #[serde(serialize_with = "thousandths")]
    pub floor_bits_per_fingerprint: f64,
    /// Size of tables, in bytes.
    pub table_bytes: u64,
    /// Size of ids, in bytes.
    pub id_bytes: u64,
    /// Size of names, in bytes.
    pub name_bytes: u64,
    /// Size of notes, in bytes.
    pub note_bytes: u64,
    /// Memory of the open store, without its mapped files, in bytes.
    pub memory: u64,
    /// Largest distance of a query, in bits.
    pub distance: u32,
    /// Width of fingerprints, in bits.
    pub bits: u32,
    /// Codec that compresses fingerprints.
    pub codec: &'static str,
    /// Name of the profile that makes fingerprints of texts; empty if unknown.
    pub profile: String,
    /// Number of segments.
    pub segments: usize,
    /// Number of tables in all segments.
    pub tables: usize,
    /// Number of tombstones: pairs deleted from older segments.
    pub tombstones: u64,
    /// Size of tombstones, in bytes.
    pub tombstone_bytes: u64,
    /// Number of metadata entries in segments, such as how far an input file has been read.
    pub metadata: u64,
    /// Size of metadata entries, in bytes.
    pub metadata_bytes: u64,
    /// Number of pairs that are only in logs and memtables, not in segments yet.
    pub memtable_entries: u64,
    /// Whether the store keeps ids.
    pub keeps_ids: bool,
    /// Name of the plan (choice of tables) for new segments.
    pub plan: String,
    /// Block size of new segments, in bytes; `None` for the codec's default.
    pub block_size: Option<u32>,
    /// Number of fingerprints between two restart points (places where decoding can start) in new segments; `None` for the
    /// codec's default.
    pub span: Option<u16>,
    /// Segments, oldest first.
    pub by_age: Vec<SegmentDescription>,
    /// Logs, oldest first.
    pub logs: Vec<LogDescription>,
}

/// Counts and sizes of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SegmentDescription {
    /// Index among the segments from oldest to newest, from 0.
    pub segment: usize,
    /// Sequence number of the segment. The names of its files start with it.
    pub number: u64,
    /// Name of the segment's plan (choice of tables).
    pub plan: String,
    /// Number of distinct fingerprints.
    pub fingerprints: u64,
    /// Number of pairs of fingerprint and id. If the store keeps no ids, number of fingerprints.
    pub pairs: u64,
    /// Number of pairs that the segment deletes from older segments.
    pub tombstones: u64,
    /// Number of tables.
    pub tables: usize,
    /// Size of all files of the segment, in bytes.
    pub bytes: u64,
}

/// Counts and size of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogDescription {
    /// Sequence number in the name of the log's file.
    pub number: u64,
    /// Size of the log, in bytes.
    pub bytes: u64,
    /// Size of the torn tail (the part after the last valid record), in bytes. A log has a torn tail if a crash cut off a
    /// record, or while a record is being written.
    pub torn_bytes: u64,
    /// Whether the store has recorded where the log ends. If not, the cause of a torn tail (bytes after the last valid record)
    /// can also be damage.
    pub ended: bool,
    /// Number of valid records.
    pub records: u64,
    /// Number of operations in the valid records: inserts, deletions, metadata and notes.
    pub operations: u64,
}

/// Counts, sizes and parameters of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TableDescription {
    /// Index of the table's segment, from 0.
    pub segment: usize,
    /// Index of the table in its segment, from 0.
    pub table: usize,
    /// Name of the segment's plan (choice of tables).
    pub plan: String,
    /// Length, in bits, of the fingerprint prefix that a query looks up in the table to find candidates.
    pub prefix_bits: u32,
    /// Maximum number of prefix bits that a query flips to find candidates with a slightly different prefix.
    pub flips: u32,
    /// Codec that compresses fingerprints.
    pub codec: &'static str,
    /// Number of distinct fingerprints in the table.
    pub fingerprints: u64,
    /// Block size, in bytes.
    pub block_size: u32,
    /// Number of fingerprints between two restart points (places where decoding can start).
    pub span: u16,
    /// Number of leading bits of each fingerprint in the prefix lines; `None` without prefix lines.
    pub key_bits: Option<u32>,
    /// Number of prefix lines to which arithmetic leads; `None` without prefix lines.
    pub lines: Option<u64>,
    /// Number of prefix lines that divide others, whose keys did not fit; `None` without prefix lines.
    pub dividing_lines: Option<u64>,
    /// Number of blocks.
    pub blocks: usize,
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// Size of the file divided by the number of its fingerprints, in bits.
    #[serde(serialize_with = "thousandths")]
    pub bits_per_fingerprint: f64,
    /// Smallest possible size of the table, if its fingerprints were random: a lower bound by information theory, in bits for
    /// each fingerprint.
    #[serde(serialize_with = "thousandths")]
    pub floor_bits_per_fingerprint: f64,
    /// Memory of the open table, without its mapped file, in bytes.
    pub memory: usize,
    /// For each bit of the permuted fingerprints in the table: position of the same bit in the original fingerprint. Bit 0
    /// is the most significant bit.
    pub permutation: Vec<u8>,
    /// Number of fingerprints by the position of the first bit that differs from the previous fingerprint, as counted by
    /// [`Table::differing_bits`]; `None` if not computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Vec<u64>>,
    /// Number of fingerprints that each symbol of the Huffman code codes, as counted by [`count_symbols`]; `None` if not
    /// computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbols: Option<Vec<SymbolCount>>,
}

/// A symbol of a table's Huffman code, and the number of fingerprints that it codes in the table's blocks. [`Coding`] explains
/// the fields of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SymbolCount {
    /// Position of the *coded bit*, which has the value 2^h. The coded bit is the first bit that differs from an earlier
    /// fingerprint or, if the numeric difference to the predecessor is coded, the top bit of this difference. See
    /// [`Coding::h`].
    pub h: u32,
    /// Number of differing bits below bit [`h`](Self::h), compared with the earlier fingerprint that the fingerprint is coded
    /// relative to. `None` if all bits below bit `h` are stored as they are. See [`Coding::differing`].
    pub differing: Option<u32>,
    /// Whether the fingerprints with this symbol are coded relative to a fingerprint before their predecessor, not relative to
    /// the predecessor itself. See [`Coding::back`].
    pub earlier: bool,
    /// Number of fingerprints coded by this symbol.
    pub count: u64,
}

/// Counts the fingerprints that each symbol codes, in every `step`-th block of a table, starting with the first block.
/// Returns the symbols that occur, in ascending order.
///
/// # Errors
/// Errors of [`Table::codings`].
pub fn count_symbols<F: Fingerprint>(table: &Table<F>, step: usize) -> Result<Vec<SymbolCount>> {
    let mut counts = BTreeMap::new();
    for block in (0..table.blocks()).step_by(step.max(1)) {
        for Coding { h, differing, back } in table.codings(block)?.into_iter().flatten() {
            *counts.entry((h, differing, back > 0)).or_insert(0) += 1;
        }
    }
    let counts = counts.into_iter();
    Ok(counts.map(|((h, differing, earlier), count)| SymbolCount { h, differing, earlier, count }).collect())
}

/// Serializes a number rounded to three decimals, which is more accurate than any measurement.
fn thousandths<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value * 1000.0).round() / 1000.0)
}

fn bits_each(bytes: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { bytes as f64 * 8.0 / count as f64 }
}

/// Describes a store, without reading its files.
pub fn describe_store<F: Fingerprint>(store: &Snapshot<F>) -> StoreDescription {
    let (stats, keeps_ids) = (store.stats(), store.keeps_ids());
    let by_age = store.segments().iter().enumerate().map(|(at, segment)| {
        let stats = segment.stats();
        SegmentDescription {
            segment: at,
            number: segment.number(),
            plan: segment.plan().name().to_owned(),
            fingerprints: stats.fingerprints,
            pairs: if keeps_ids { stats.ids } else { stats.fingerprints },
            tombstones: stats.tombstones,
            tables: stats.tables,
            bytes: stats.bytes,
        }
    });
    let logs = store.logs().iter().map(|log| LogDescription {
        number: log.number,
        bytes: log.bytes,
        torn_bytes: log.torn_bytes,
        ended: log.is_sealed,
        records: log.records,
        operations: log.operations,
    });
    StoreDescription {
        fingerprints: store.len(),
        ids: if keeps_ids { stats.ids.saturating_add(stats.memtable_entries) } else { 0 },
        names: stats.names,
        notes: stats.notes,
        bytes: stats.bytes,
        bits_per_fingerprint: bits_each(stats.bytes, stats.fingerprints),
        floor_bits_per_fingerprint: min_bits_per_fingerprint(F::BITS, stats.fingerprints),
        table_bytes: stats.table_bytes,
        id_bytes: stats.id_bytes,
        name_bytes: stats.name_bytes,
        note_bytes: stats.note_bytes,
        memory: stats.memory,
        distance: store.distance(),
        bits: F::BITS,
        codec: store.codec().name(),
        profile: store.profile().to_owned(),
        segments: stats.segments,
        tables: stats.tables,
        tombstones: stats.tombstones,
        tombstone_bytes: stats.tombstone_bytes,
        metadata: stats.metadata,
        metadata_bytes: stats.metadata_bytes,
        memtable_entries: stats.memtable_entries,
        keeps_ids,
        plan: store.plan_policy().to_string(),
        block_size: store.block_size(),
        span: store.span(),
        by_age: by_age.collect(),
        logs: logs.collect(),
    }
}

/// Describes a table, without reading its file. The last argument has the index of the segment in its store, and the index of
/// the table in the segment.
pub fn describe_table<F: Fingerprint>(
    segment: &Segment<F>,
    table: &Table<F>,
    [segment_index, table_index]: [usize; 2],
) -> TableDescription {
    let (header, lines) = (table.header(), table.prefix_lines());
    TableDescription {
        segment: segment_index,
        table: table_index,
        plan: segment.plan().name().to_owned(),
        prefix_bits: header.plan.prefix_bits,
        flips: header.plan.flips,
        codec: header.codec.name(),
        fingerprints: header.fingerprints,
        block_size: header.block_size,
        span: header.span,
        key_bits: lines.map(|lines| lines.key_bits),
        lines: lines.map(|lines| lines.lines),
        dividing_lines: lines.map(|lines| lines.dividing_lines),
        blocks: table.blocks(),
        bytes: table.file_len(),
        bits_per_fingerprint: bits_each(table.file_len(), header.fingerprints),
        floor_bits_per_fingerprint: min_bits_per_fingerprint(F::BITS, header.fingerprints),
        memory: table.memory(),
        permutation: header.plan.permutation.sources().to_vec(),
        histogram: None,
        symbols: None,
    }
}

/// Returns an error for each log that ends with a torn tail (bytes after the last valid record), if damage may be the cause.
/// Queries do not find the writes in such a tail. A torn tail that a later opening of the store has recovered is not included.
pub fn torn_log_tails<F: Fingerprint>(store: &Snapshot<F>) -> impl Iterator<Item = Error> {
    store.logs().iter().filter(|log| log.torn_bytes > 0 && !log.is_sealed).map(|log| Error::TornTail {
        path: store.path().join(log.file_name()),
        offset: log.bytes - log.torn_bytes,
        bytes: log.torn_bytes,
    })
}
