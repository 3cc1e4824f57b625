//! How much is written and kept for what is inserted.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use simstore::{Durability, Store, StoreOptions};

use crate::{Result, both_codecs, stored_fingerprint};

/// Bytes of all files in a folder; files that go meanwhile count as nothing.
fn folder_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}

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
        let (done, most) = (AtomicBool::new(false), AtomicU64::new(0));
        let start = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    most.fetch_max(folder_bytes(&path), Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
            let written = insert_all(&store, count);
            done.store(true, Ordering::Relaxed);
            written
        })?;
        let seconds = start.elapsed().as_secs_f64();
        let (written, segments, bytes) =
            (store.write_stats(), store.snapshot().segments().len(), folder_bytes(&path) as f64);
        store.compact()?;
        let compacted = folder_bytes(&path) as f64;
        let each = |bytes: u64| bytes as f64 / count as f64;
        let in_segments = (written.flush_bytes + written.compaction_bytes) as f64;
        println!(
            "| {codec} | {seconds:.1} | {} | {} | {segments} | {:.1} | {:.1} | {:.1} | {:.1} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
            written.flushes,
            written.compactions,
            each(written.log_bytes),
            each(written.flush_bytes),
            each(written.compaction_bytes),
            compacted / count as f64,
            in_segments / compacted,
            1.0 + (written.flushes as f64).log(fanout as f64),
            (in_segments + written.log_bytes as f64) / compacted,
            bytes / compacted,
            most.into_inner() as f64 / compacted,
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
