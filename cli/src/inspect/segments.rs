//! Output of the segments and logs of a store.

use simstore::store::LogInfo;
use simstore::{Fingerprint, Result, Snapshot};
use simstore_corpus::describe::StoreDescription;

use crate::numbers::{format_bytes, format_count, format_count_of};
use crate::output::Output;

/// Prints a line for each segment, oldest first; then a summary of the logs, and the number of pairs of fingerprint and id
/// in memtables.
pub(super) fn print<F: Fingerprint>(
    output: &mut Output,
    store: &Snapshot<F>,
    description: &StoreDescription,
) -> Result<()> {
    let segments = &description.by_age;
    if !segments.is_empty() {
        let columns = ["age", "number", "pairs", "deleted", "bytes"];
        let [age, number, pairs, deleted, size] = columns;
        output
            .write_line(format_args!("  {age:>5} {number:>8} {pairs:>14} {deleted:>9} {size:>14}  plan"))?;
    }
    for segment in segments {
        output.write_line(format_args!(
            "  {:>5} {:>8} {:>14} {:>9} {:>14}  {}",
            segment.segment,
            segment.number,
            format_count(segment.pairs),
            format_count(segment.tombstones),
            format_count(segment.bytes),
            segment.plan
        ))?;
    }
    let logs = store.logs();
    if let (Some(first), Some(last)) = (logs.first(), logs.last()) {
        let sum = |field: fn(&LogInfo) -> u64| logs.iter().map(field).sum::<u64>();
        let names = match logs.len() {
            1 => first.file_name(),
            _ => format!("{} to {}", first.file_name(), last.file_name()),
        };
        output.write_line(format_args!(
            "{}, {names}: {}, {} in {} not in segments yet",
            format_count_of(logs.len() as u64, "log"),
            format_bytes(sum(|log| log.bytes)),
            format_count_of(sum(|log| log.operations), "operation"),
            format_count_of(sum(|log| log.records), "record")
        ))?;
    }
    for log in logs.iter().filter(|log| log.torn_bytes > 0) {
        let (name, torn) = (log.file_name(), format_count_of(log.torn_bytes, "byte"));
        let caveat =
            if log.is_sealed { "" } else { ", is being written, or is damaged (it is not known which)" };
        output.write_line(format_args!("  {name}: the last {torn}: cut off by a crash{caveat}"))?;
    }
    let entries = description.memtable_entries;
    if entries > 0 {
        output.write_line(format_args!("in memory: {}", format_count_of(entries, "pair")))
    } else {
        Ok(())
    }
}
