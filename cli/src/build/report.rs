//! Summary of `simstore build`.

use simstore::{Fingerprint, Snapshot};
use simstore_corpus::InputCounts;

use super::args::BuildArgs;
use crate::command_error::CommandResult;
use crate::numbers::{bits_per_item, format_bytes, format_count_of, rounded};
use crate::output::{self, object};
use crate::progress::ProgressDisplay;

pub(super) fn report<F: Fingerprint>(
    args: &BuildArgs,
    store: &Snapshot<F>,
    counts: InputCounts,
    progress: &ProgressDisplay,
) -> CommandResult {
    let stats = store.stats();
    let plan = store.segments().first().map(|segment| segment.plan().name());
    let bits_per_fingerprint = rounded(bits_per_item(stats.bytes, stats.fingerprints));
    if args.json {
        let mut output = output::stdout();
        output.write_json(&object! {
            store: args.store.to_string_lossy(),
            bits: F::BITS,
            distance: store.distance(),
            codec: store.codec().name(),
            plan,
            tables: stats.tables,
            documents: counts.read,
            fingerprints: stats.fingerprints,
            ids: stats.ids,
            empty: counts.empty,
            short: counts.short,
            bad: counts.malformed,
            other_names: counts.duplicate_paths,
            skipped_files: counts.skipped_files,
            bytes: stats.bytes,
            bits_per_fingerprint,
            seconds: rounded(progress.elapsed_seconds()),
        })?;
        return Ok(output.finish()?);
    }
    progress.print_summary(&format!(
        "{}: {}, plan {} ({}), {} ({bits_per_fingerprint:.1} bits a fingerprint with ids and names), {:.1} s",
        args.store.display(),
        format_count_of(stats.fingerprints, "distinct fingerprint"),
        plan.unwrap_or("none"),
        format_count_of(stats.tables as u64, "table"),
        format_bytes(stats.bytes),
        progress.elapsed_seconds()
    ));
    Ok(())
}
