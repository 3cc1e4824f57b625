//! Measures write and space amplification: the bytes written, and the bytes on disk, divided by the size of the
//! compacted store.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use simstore::{Durability, Store, StoreOptions};

use crate::{Result, both_codecs, stored_fingerprint};

/// Returns the total size of the files in a folder. Files removed during the call do not count.
fn folder_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// Inserts `count` fingerprints while a thread samples the size of the store's folder, then compacts the store. Prints a
/// row for each codec.
pub(crate) fn measure(count: u64, fanout: usize) -> Result<()> {
    println!(
        "| {count} inserted, batches of 1000 | s | flushes | merges | segments | log, bytes each | flushes | merges | compacted store, bytes each | segments written, of it | 1 + log_{fanout}(n / m) | all written, of it | at the end on disk, of it | at most, of it |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for codec in both_codecs() {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("store");
        let options = StoreOptions { codec: Some(codec), fanout, ..StoreOptions::default() };
        let store = Store::<u64>::open(&path, options)?;
        let (done, peak_bytes) = (AtomicBool::new(false), AtomicU64::new(0));
        let start = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    peak_bytes.fetch_max(folder_bytes(&path), Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
            let result = insert_all(&store, count);
            done.store(true, Ordering::Relaxed);
            result
        })?;
        let seconds = start.elapsed().as_secs_f64();
        let (stats, segments, bytes) =
            (store.write_stats(), store.snapshot().segments().len(), folder_bytes(&path) as f64);
        store.compact()?;
        let compacted = folder_bytes(&path) as f64;
        let each = |bytes: u64| bytes as f64 / count as f64;
        let segment_bytes = (stats.flush_bytes + stats.compaction_bytes) as f64;
        println!(
            "| {codec} | {seconds:.1} | {} | {} | {segments} | {:.1} | {:.1} | {:.1} | {:.1} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
            stats.flushes,
            stats.compactions,
            each(stats.log_bytes),
            each(stats.flush_bytes),
            each(stats.compaction_bytes),
            compacted / count as f64,
            segment_bytes / compacted,
            1.0 + (stats.flushes as f64).log(fanout as f64),
            (segment_bytes + stats.log_bytes as f64) / compacted,
            bytes / compacted,
            peak_bytes.into_inner() as f64 / compacted,
        );
    }
    Ok(())
}

fn insert_all(store: &Store<u64>, count: u64) -> simstore::Result<()> {
    for first in (0..count).step_by(1000) {
        let mut batch = store.transaction();
        (first..count.min(first + 1000)).for_each(|id| batch.insert(stored_fingerprint(id), id));
        batch.commit(Durability::Os)?;
    }
    store.flush()?;
    store.wait_for_background()
}
