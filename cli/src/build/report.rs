//! The summary of `simstore build`.

use simstore::{Fingerprint, Snapshot};
use simstore_corpus::Counts;

use super::args::BuildArgs;
use crate::failure::Outcome;
use crate::inputs::count_of;
use crate::numbers::{bits_each, bytes, rounded};
use crate::output::{self, object};
use crate::progress::Progress;

pub(super) fn report<F: Fingerprint>(
    args: &BuildArgs,
    store: &Snapshot<F>,
    counts: Counts,
    progress: &Progress,
) -> Outcome {
    let stats = store.stats();
    let plan = store.segments().first().map(|segment| segment.plan().name());
    let bits_per_fingerprint = rounded(bits_each(stats.bytes, stats.fingerprints));
    if args.json {
        let mut output = output::stdout();
        output.json(&object! {
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
            bad: counts.bad,
            other_names: counts.other_names,
            passed_over: counts.passed_over,
            bytes: stats.bytes,
            bits_per_fingerprint,
            seconds: rounded(progress.seconds()),
        })?;
        return Ok(output.finish()?);
    }
    progress.say(&format!(
        "{}: {}, plan {} ({}), {} ({bits_per_fingerprint:.1} bits a fingerprint with ids and names), {:.1} s",
        args.store.display(),
        count_of(stats.fingerprints, "distinct fingerprint"),
        plan.unwrap_or("none"),
        count_of(stats.tables as u64, "table"),
        bytes(stats.bytes),
        progress.seconds()
    ));
    Ok(())
}
