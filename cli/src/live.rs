//! Stores that grow: opening one to write to it, and what `simstore inspect` shows, segments by age and logs.

use std::path::Path;

use serde::Serialize;
use simstore::store::LogInfo;
use simstore::{Fingerprint, Snapshot, Store, StoreOptions};

use crate::failure::{Outcome, complain};
use crate::inputs::count_of;
use crate::numbers::{bytes, grouped};
use crate::output::Output;

/// Opens a store to write to it; tells if that drops something which may have been damaged.
pub(crate) fn open<F: Fingerprint>(path: &Path, options: StoreOptions) -> Outcome<Store<F>> {
    let store = Store::open(path, options)?;
    if let Some(torn_end) = store.torn_end() {
        complain(&format!("warning: {torn_end}"));
    }
    Ok(store)
}

/// A segment, as JSON.
#[derive(Serialize)]
pub(crate) struct SegmentObject<'a> {
    segment: usize,
    number: u64,
    plan: &'a str,
    fingerprints: u64,
    pairs: u64,
    tombstones: u64,
    tables: usize,
    bytes: u64,
}

/// A log, as JSON.
#[derive(Serialize)]
pub(crate) struct LogObject {
    number: u64,
    bytes: u64,
    torn_bytes: u64,
    ended: bool,
    records: u64,
    operations: u64,
}

/// The segments, the oldest first.
pub(crate) fn segments<F: Fingerprint>(store: &Snapshot<F>) -> Vec<SegmentObject<'_>> {
    let mut objects = Vec::new();
    for (i, segment) in store.segments().iter().enumerate() {
        let stats = segment.stats();
        objects.push(SegmentObject {
            segment: i,
            number: segment.number(),
            plan: segment.plan().name(),
            fingerprints: stats.fingerprints,
            // Where ids are not kept, a pair is a fingerprint.
            pairs: if store.keeps_ids() { stats.ids } else { stats.fingerprints },
            tombstones: stats.tombstones,
            tables: stats.tables,
            bytes: stats.bytes,
        });
    }
    objects
}

/// The logs, the oldest first.
pub(crate) fn logs<F: Fingerprint>(store: &Snapshot<F>) -> Vec<LogObject> {
    let object = |log: &simstore::store::LogInfo| LogObject {
        number: log.number,
        bytes: log.bytes,
        torn_bytes: log.torn_bytes,
        ended: log.ended,
        records: log.records,
        operations: log.operations,
    };
    store.logs().iter().map(object).collect()
}

/// Prints segments by age, and logs.
pub(crate) fn print<F: Fingerprint>(output: &mut Output, store: &Snapshot<F>) -> Outcome {
    let segments = segments(store);
    if !segments.is_empty() {
        let columns = ["age", "number", "pairs", "deleted", "bytes"];
        let [age, number, pairs, deleted, size] = columns;
        output.line(format_args!("  {age:>5} {number:>8} {pairs:>14} {deleted:>9} {size:>14}  plan"))?;
    }
    for segment in &segments {
        output.line(format_args!(
            "  {:>5} {:>8} {:>14} {:>9} {:>14}  {}",
            segment.segment,
            segment.number,
            grouped(segment.pairs),
            grouped(segment.tombstones),
            grouped(segment.bytes),
            segment.plan
        ))?;
    }
    let logs = store.logs();
    if let (Some(first), Some(last)) = (logs.first(), logs.last()) {
        let sum = |of: fn(&LogInfo) -> u64| logs.iter().map(of).sum::<u64>();
        let names = match logs.len() {
            1 => first.file_name(),
            _ => format!("{} to {}", first.file_name(), last.file_name()),
        };
        output.line(format_args!(
            "{}, {names}: {}, {} in {} not in segments yet",
            count_of(logs.len() as u64, "log"),
            bytes(sum(|log| log.bytes)),
            count_of(sum(|log| log.operations), "operation"),
            count_of(sum(|log| log.records), "record")
        ))?;
    }
    for log in logs.iter().filter(|log| log.torn_bytes > 0) {
        let (name, torn) = (log.file_name(), count_of(log.torn_bytes, "byte"));
        let why = if log.ended { "" } else { ", being written, or damaged: that cannot be told" };
        output.line(format_args!("  {name}: the last {torn} cut off by a crash{why}"))?;
    }
    let entries = store.stats().memtable_entries;
    if entries > 0 { output.line(format_args!("in memory: {}", count_of(entries, "pair"))) } else { Ok(()) }
}
