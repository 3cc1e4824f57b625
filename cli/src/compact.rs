//! `simstore compact`: merges the segments of a store into one.

use std::path::PathBuf;

use clap::Args;
use simstore::any::Width;
use simstore::store::CompactOptions;
use simstore::{Fingerprint, Snapshot, StoreOptions, each_width};

use crate::command_error::{CommandError, CommandResult};
use crate::numbers::{format_bytes, format_count_of, rounded};
use crate::open_store::open_store;
use crate::output::{self, object};
use crate::progress::ProgressDisplay;
use crate::width::check_distance;

/// Merge a store's segments into one
///
/// Queries become faster, and the space of deleted documents is freed. With --distance, the store then answers queries up to a larger
/// distance. If the store's plan does not exist for that distance, the plan becomes `auto`.
#[derive(Debug, Args)]
#[command(after_help = "\
With --json, one object is printed at the end: store, segments, fingerprints, ids, bytes (size of all files and logs), before \
(size before the merge), distance, plan, seconds.

Examples:
  simstore compact pages.simstore
  simstore compact --distance 6 pages.simstore")]
pub(crate) struct CompactArgs {
    /// The store
    store: PathBuf,
    /// New largest distance of queries, in bits; at least the current one
    #[arg(long, short, value_name = "K")]
    distance: Option<u32>,
    /// Print a summary as a JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &CompactArgs, progress: &ProgressDisplay) -> CommandResult {
    each_width!(Width::from_store(&args.store)?, type F => compact::<F>(args, progress))
}

fn compact<F: Fingerprint>(args: &CompactArgs, progress: &ProgressDisplay) -> CommandResult {
    if let Some(distance) = args.distance {
        check_distance::<F>(distance)?;
    }
    // Opened before the store is opened for writing, which starts a new log: `before` must not count it.
    let before = Snapshot::<F>::open(&args.store);
    let store = open_store::<F>(
        &args.store,
        StoreOptions { create: false, compaction: false, ..StoreOptions::default() },
    )?;
    let before = before?;
    match args.distance {
        Some(distance) if distance < store.snapshot().distance() => {
            let current = store.snapshot().distance();
            return Err(CommandError::Usage(format!(
                "{}: the store's distance is {current}; it can be raised, but not lowered to {distance}",
                args.store.display()
            )));
        }
        distance => store.compact_with(&CompactOptions { distance, ..CompactOptions::default() })?,
    }
    drop(store);
    let snapshot = Snapshot::<F>::open(&args.store)?;
    if snapshot.plan_policy() != before.plan_policy() {
        progress.print_summary(&format!(
            "{}: plan {} does not exist for distance {}; the store now has plan {}",
            args.store.display(),
            before.plan_policy(),
            snapshot.distance(),
            snapshot.plan_policy()
        ));
    }
    let before = disk_bytes(&before);
    let stats = snapshot.stats();
    if args.json {
        let mut output = output::stdout();
        output.write_json(&object! {
            store: args.store.to_string_lossy(),
            segments: stats.segments,
            fingerprints: stats.fingerprints,
            ids: stats.ids,
            bytes: disk_bytes(&snapshot),
            before,
            distance: snapshot.distance(),
            plan: snapshot.plan_policy(),
            seconds: rounded(progress.elapsed_seconds()),
        })?;
        return Ok(output.finish()?);
    }
    progress.print_summary(&format!(
        "{}: {} in {}, {} (before: {}), {:.1} s",
        args.store.display(),
        format_count_of(stats.fingerprints, "fingerprint"),
        format_count_of(stats.segments as u64, "segment"),
        format_bytes(disk_bytes(&snapshot)),
        format_bytes(before),
        progress.elapsed_seconds()
    ));
    Ok(())
}

/// Returns the size of all files of a store, including logs, in bytes.
fn disk_bytes<F: Fingerprint>(store: &Snapshot<F>) -> u64 {
    store.stats().bytes + store.logs().iter().map(|log| log.bytes).sum::<u64>()
}
