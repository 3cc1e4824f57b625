//! `simstore compact`: a store's segments become one.

use std::path::PathBuf;

use clap::Args;
use simstore::any::Width;
use simstore::store::CompactOptions;
use simstore::{Fingerprint, Snapshot, StoreOptions, each_width};

use crate::failure::{Failure, Outcome};
use crate::inputs::count_of;
use crate::numbers::{bytes, rounded};
use crate::output::{self, object};
use crate::progress::Progress;

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

pub(crate) fn run(args: &CompactArgs, progress: &Progress) -> Outcome {
    each_width!(Width::of_store(&args.store)?, type F => compact::<F>(args, progress))
}

fn compact<F: Fingerprint>(args: &CompactArgs, progress: &Progress) -> Outcome {
    if let Some(distance) = args.distance {
        crate::width::check_distance::<F>(distance)?;
    }
    // Opening the store to write to it starts another log.
    let before = Snapshot::<F>::open(&args.store);
    let store = crate::writing::open::<F>(
        &args.store,
        StoreOptions { create: false, compaction: false, ..StoreOptions::default() },
    )?;
    let before = before?;
    match args.distance {
        Some(distance) if distance < store.snapshot().distance() => {
            let has = store.snapshot().distance();
            return Err(Failure::Usage(format!(
                "{}: the store's distance is {has}; it can be raised, but not lowered to {distance}",
                args.store.display()
            )));
        }
        distance => store.compact_with(&CompactOptions { distance, ..CompactOptions::default() })?,
    }
    drop(store);
    let snapshot = Snapshot::<F>::open(&args.store)?;
    if snapshot.plan_policy() != before.plan_policy() {
        progress.say(&format!(
            "{}: plan {} does not exist for distance {}; the store now has plan {}",
            args.store.display(),
            before.plan_policy(),
            snapshot.distance(),
            snapshot.plan_policy()
        ));
    }
    let before = bytes_of(&before);
    let stats = snapshot.stats();
    if args.json {
        let mut output = output::stdout();
        output.json(&object! {
            store: args.store.to_string_lossy(),
            segments: stats.segments,
            fingerprints: stats.fingerprints,
            ids: stats.ids,
            bytes: bytes_of(&snapshot),
            before,
            distance: snapshot.distance(),
            plan: snapshot.plan_policy(),
            seconds: rounded(progress.seconds()),
        })?;
        return Ok(output.finish()?);
    }
    progress.say(&format!(
        "{}: {} in {}, {} (before: {}), {:.1} s",
        args.store.display(),
        count_of(stats.fingerprints, "fingerprint"),
        count_of(stats.segments as u64, "segment"),
        bytes(bytes_of(&snapshot)),
        bytes(before),
        progress.seconds()
    ));
    Ok(())
}

/// The size of all files of a store, logs too.
fn bytes_of<F: Fingerprint>(store: &Snapshot<F>) -> u64 {
    store.stats().bytes + store.logs().iter().map(|log| log.bytes).sum::<u64>()
}
