//! What is in a store, as plain data that is written as JSON too: its figures, and those of its segments, tables and logs.
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
use simstore::plan::floor_bits_per_fingerprint;
use simstore::raw::{Coding, Segment, Table};
use simstore::{Error, Fingerprint, Result, Snapshot};

/// The figures of a store.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoreDescription {
    /// Fingerprints in segments and logs; an upper bound while some are in several.
    pub fingerprints: u64,
    /// Pairs of fingerprint and id likewise; none where ids are not kept.
    pub ids: u64,
    /// Names of documents.
    pub names: u64,
    /// Notes of documents.
    pub notes: u64,
    /// Size of all files of segments, and of the manifest.
    pub bytes: u64,
    /// The same for each fingerprint in segments, in bits: all tables, ids, names and notes.
    #[serde(serialize_with = "thousandths")]
    pub bits_per_fingerprint: f64,
    /// Of one copy of as many random fingerprints.
    #[serde(serialize_with = "thousandths")]
    pub floor_bits_per_fingerprint: f64,
    /// Bytes of tables.
    pub table_bytes: u64,
    /// Bytes of ids.
    pub id_bytes: u64,
    /// Bytes of names.
    pub name_bytes: u64,
    /// Bytes of notes.
    pub note_bytes: u64,
    /// Bytes that the open store takes beside its files.
    pub memory: u64,
    /// The largest distance that it answers.
    pub distance: u32,
    /// Width of fingerprints.
    pub bits: u32,
    /// How fingerprints are compressed.
    pub codec: &'static str,
    /// How texts become its fingerprints; empty if it is not told.
    pub profile: String,
    /// Number of segments.
    pub segments: usize,
    /// Number of their tables.
    pub tables: usize,
    /// Pairs that were deleted from older segments.
    pub tombstones: u64,
    /// Bytes of these.
    pub tombstone_bytes: u64,
    /// What writers keep in segments, such as how much of an input has been read.
    pub marks: u64,
    /// Bytes of these.
    pub mark_bytes: u64,
    /// Pairs that are in the logs, not in segments yet.
    pub memtable_entries: u64,
    /// Whether ids are kept.
    pub keeps_ids: bool,
    /// The plan of segments that are written.
    pub plan: String,
    /// Bytes of a block of these; `None`: the codec's default.
    pub block_size: Option<u32>,
    /// Fingerprints between restart points; `None`: the codec's default.
    pub span: Option<u16>,
    /// The segments, the oldest first.
    pub by_age: Vec<SegmentDescription>,
    /// The logs, the oldest first.
    pub logs: Vec<LogDescription>,
}

/// The figures of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SegmentDescription {
    /// Its place by age, from 0.
    pub segment: usize,
    /// The number in the names of its files.
    pub number: u64,
    /// The name of its plan.
    pub plan: String,
    /// Distinct fingerprints.
    pub fingerprints: u64,
    /// Pairs of fingerprint and id; where ids are not kept, a pair is a fingerprint.
    pub pairs: u64,
    /// Pairs that it deletes from older segments.
    pub tombstones: u64,
    /// Number of tables.
    pub tables: usize,
    /// Size of all its files.
    pub bytes: u64,
}

/// The figures of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogDescription {
    /// The number in the name of its file.
    pub number: u64,
    /// Its size.
    pub bytes: u64,
    /// Bytes at its end that a crash cut off, or that are being written.
    pub torn_bytes: u64,
    /// Whether its end is vouched for; else torn bytes may also be damage.
    pub ended: bool,
    /// Sound records.
    pub records: u64,
    /// What they hold that is not in segments yet.
    pub operations: u64,
}

/// The figures of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TableDescription {
    /// Which segment it is of, from 0.
    pub segment: usize,
    /// Which of its tables it is, from 0.
    pub table: usize,
    /// The name of the segment's plan.
    pub plan: String,
    /// Bits of the prefix that a probe looks up.
    pub prefix_bits: u32,
    /// How many of them a probe flips at most.
    pub flips: u32,
    /// How fingerprints are compressed.
    pub codec: &'static str,
    /// Fingerprints.
    pub fingerprints: u64,
    /// Bytes of a block.
    pub block_size: u32,
    /// Fingerprints between restart points.
    pub span: u16,
    /// Number of blocks.
    pub blocks: usize,
    /// Size of the file.
    pub bytes: u64,
    /// The same for each fingerprint, in bits.
    #[serde(serialize_with = "thousandths")]
    pub bits_per_fingerprint: f64,
    /// Of as many random fingerprints.
    #[serde(serialize_with = "thousandths")]
    pub floor_bits_per_fingerprint: f64,
    /// Bytes that the open table takes beside its file.
    pub memory: usize,
    /// Bits of the original fingerprint, in the table's order.
    pub permutation: Vec<u8>,
    /// [Where neighbours differ](Table::differing_bits), if that was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Vec<u64>>,
    /// [How often each symbol stands in the blocks](count_symbols), if that was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbols: Option<Vec<SymbolCount>>,
}

/// How often a symbol stands in the blocks of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SymbolCount {
    /// What the symbol names is a bit worth 2^h: see [`Coding::h`].
    pub h: u32,
    /// How many bits below that one differ and are coded by their positions; `None` where all bits below are in the tail.
    pub differing: Option<u32>,
    /// Whether fingerprints are coded from one before their predecessor.
    pub earlier: bool,
    /// How many fingerprints are coded so.
    pub count: u64,
}

/// How often each symbol stands in every `step`-th block, from the first: those that do, by what they say.
///
/// # Errors
/// Those of [`Table::codings`].
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

/// A figure for people: three decimals are more than anything measured is good for.
fn thousandths<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value * 1000.0).round() / 1000.0)
}

fn bits_each(bytes: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { bytes as f64 * 8.0 / count as f64 }
}

/// Describes a store; reads nothing.
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
        ended: log.ended,
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
        floor_bits_per_fingerprint: floor_bits_per_fingerprint(F::BITS, stats.fingerprints),
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
        marks: stats.marks,
        mark_bytes: stats.mark_bytes,
        memtable_entries: stats.memtable_entries,
        keeps_ids,
        plan: store.plan_policy().to_string(),
        block_size: store.block_size(),
        span: store.span(),
        by_age: by_age.collect(),
        logs: logs.collect(),
    }
}

/// Describes table `number` of the segment at a place by age; reads nothing.
pub fn describe_table<F: Fingerprint>(
    segment: &Segment<F>,
    table: &Table<F>,
    [at, number]: [usize; 2],
) -> TableDescription {
    let header = table.header();
    TableDescription {
        segment: at,
        table: number,
        plan: segment.plan().name().to_owned(),
        prefix_bits: header.plan.prefix_bits,
        flips: header.plan.flips,
        codec: header.codec.name(),
        fingerprints: header.fingerprints,
        block_size: header.block_size,
        span: header.span,
        blocks: table.blocks(),
        bytes: table.file_len(),
        bits_per_fingerprint: bits_each(table.file_len(), header.fingerprints),
        floor_bits_per_fingerprint: floor_bits_per_fingerprint(F::BITS, header.fingerprints),
        memory: table.memory(),
        permutation: header.plan.permutation.sources().to_vec(),
        histogram: None,
        symbols: None,
    }
}

/// The ends of logs that may be damaged, each an [`Error::TornEnd`]: what stood there is missing from all answers. What a crash
/// has left of a log that was recovered since is none.
pub fn torn_ends<F: Fingerprint>(store: &Snapshot<F>) -> impl Iterator<Item = Error> {
    store.logs().iter().filter(|log| log.torn_bytes > 0 && !log.ended).map(|log| Error::TornEnd {
        path: store.path().join(log.file_name()),
        offset: log.bytes - log.torn_bytes,
        bytes: log.torn_bytes,
    })
}
