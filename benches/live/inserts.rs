//! Measures three insert rates of a store: inserts that may still be in buffers of the operating system, inserts that
//! are durable on disk, and `insert_if_new`.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use simstore::{Codec, Durability, Insertion, Store, StoreOptions};

use crate::random::random;
use crate::{Result, both_codecs, flip_bits, load_store, new_fingerprint, stored_fingerprint};

/// Measures the insert rate of one thread. Inserts are acknowledged once they are handed to the operating system
/// ([`Durability::Os`]).
pub(crate) fn measure_buffered(count: u64) -> Result<()> {
    println!(
        "| inserts, Durability::Os, one thread | a call | inserts/s | flushes | merges | settled after, s |"
    );
    println!("|---|---|---|---|---|---|");
    for (setup, codec) in [
        ("into log and memtable alone", None),
        ("with flushes and merges, first-difference", Some(Codec::FirstDifference)),
        ("with flushes and merges, elias-fano", Some(Codec::EliasFano)),
    ] {
        for batch_size in [1, 100] {
            let folder = tempfile::tempdir()?;
            let options = match codec {
                Some(codec) => StoreOptions { codec: Some(codec), ..StoreOptions::default() },
                // The memtable has room for all inserts, so it is never flushed.
                None => StoreOptions { memtable: count * 200, ..StoreOptions::default() },
            };
            let store = Store::<u64>::open(&folder.path().join("store"), options)?;
            let start = Instant::now();
            for first in (0..count).step_by(batch_size as usize) {
                if batch_size == 1 {
                    store.insert(stored_fingerprint(first), first)?;
                } else {
                    let mut batch = store.transaction();
                    (first..count.min(first + batch_size))
                        .for_each(|id| batch.insert(stored_fingerprint(id), id));
                    batch.commit(Durability::Os)?;
                }
            }
            let rate = count as f64 / start.elapsed().as_secs_f64();
            let insert_end = Instant::now();
            store.wait_for_background()?;
            let (settled, stats) = (insert_end.elapsed().as_secs_f64(), store.write_stats());
            println!(
                "| {setup} | {batch_size} | {rate:.0} | {} | {} | {settled:.2} |",
                stats.flushes, stats.compactions
            );
        }
    }
    Ok(())
}

/// Duration in seconds of one measurement of durable inserts. Each durability setting is measured with several numbers of
/// threads.
const DURABLE_SECONDS: f64 = 3.0;

/// Returns the rate of the disk without a store: how often per second 4 KiB can be appended to a file and synced.
fn syncs_per_second(folder: &Path) -> Result<f64> {
    let mut file = File::create(folder.join("plain"))?;
    let (start, mut syncs) = (Instant::now(), 0);
    while start.elapsed().as_secs_f64() < DURABLE_SECONDS / 3.0 {
        file.write_all(&[7; 4096])?;
        file.sync_data()?;
        syncs += 1;
    }
    Ok(f64::from(syncs) / start.elapsed().as_secs_f64())
}

/// Measures the insert rate and latency of 1 to 16 threads. Inserts are acknowledged once they are durable on disk.
pub(crate) fn measure_durable() -> Result<()> {
    println!(
        "| durability | threads | inserts/s | p50, ms | p99, ms | 4 KiB appended and synced, just before, a second |"
    );
    println!("|---|---|---|---|---|---|");
    for (name, durability) in [
        ("Sync", Durability::Sync),
        ("Group(0.2 ms)", Durability::Group(Duration::from_micros(200))),
        ("Group(2 ms)", Durability::Group(Duration::from_millis(2))),
    ] {
        for threads in [1, 4, 16] {
            let folder = tempfile::tempdir()?;
            let disk_rate = syncs_per_second(folder.path())?;
            let options = StoreOptions { durability, ..StoreOptions::default() };
            let store = Store::<u64>::open(&folder.path().join("store"), options)?;
            let (next, start) = (AtomicU64::new(0), Instant::now());
            let mut times = Vec::new();
            std::thread::scope(|scope| -> simstore::Result<()> {
                let insert = || -> simstore::Result<Vec<f64>> {
                    let mut times = Vec::new();
                    while start.elapsed().as_secs_f64() < DURABLE_SECONDS {
                        let id = next.fetch_add(1, Ordering::Relaxed);
                        let begin = Instant::now();
                        store.insert(stored_fingerprint(id), id)?;
                        times.push(begin.elapsed().as_secs_f64() * 1e3);
                    }
                    Ok(times)
                };
                let threads: Vec<_> = (0..threads).map(|_| scope.spawn(insert)).collect();
                for thread in threads {
                    times.extend(thread.join().expect("a thread that inserts")?);
                }
                Ok(())
            })?;
            let rate = times.len() as f64 / start.elapsed().as_secs_f64();
            times.sort_by(f64::total_cmp);
            let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
            println!("| {name} | {threads} | {rate:.0} | {p50:.2} | {p99:.2} | {disk_rate:.0} |");
        }
    }
    Ok(())
}

/// Number of documents that each thread passes to `insert_if_new`.
const THREAD_DOCUMENTS: u64 = 200_000;

/// Measures the rate of `insert_if_new` in a store with `count` fingerprints. Half of the inserted fingerprints are near
/// stored ones, half are random.
pub(crate) fn measure_if_new(count: u64) -> Result<()> {
    println!("| insert_if_new, {count} stored | threads | documents/s | duplicates |");
    println!("|---|---|---|---|");
    for codec in both_codecs() {
        for threads in [1_u64, 2] {
            let folder = tempfile::tempdir()?;
            let store = load_store(
                &folder.path().join("store"),
                count,
                StoreOptions { codec: Some(codec), ..StoreOptions::default() },
            )?;
            let duplicates = AtomicU64::new(0);
            let work = |thread: u64| -> simstore::Result<()> {
                let mut state = thread + 99;
                for i in 0..THREAD_DOCUMENTS {
                    let id = count + thread * THREAD_DOCUMENTS + i;
                    let document = match i % 2 {
                        0 => flip_bits(stored_fingerprint(random(&mut state) % count), &mut state),
                        _ => new_fingerprint(id),
                    };
                    if store.insert_if_new(document, id)? != Insertion::Inserted {
                        duplicates.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Ok(())
            };
            // All files are read and all blocks verified before the measurement.
            store.snapshot().verify(|error| eprintln!("{error}"));
            let start = Instant::now();
            std::thread::scope(|scope| {
                let work = &work;
                let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
                threads.into_iter().try_for_each(|thread| thread.join().expect("a thread that inserts"))
            })?;
            let rate = (threads * THREAD_DOCUMENTS) as f64 / start.elapsed().as_secs_f64();
            println!("| {codec} | {threads} | {rate:.0} | {} |", duplicates.into_inner());
        }
    }
    Ok(())
}
