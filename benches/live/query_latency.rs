//! Measures the query latency of a live store, with several numbers of segments, and while another thread inserts.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use simstore::store::WriteStats;
use simstore::{Store, StoreOptions};

use crate::random::random;
use crate::{DISTANCE, Result, both_codecs, flip_bits, load_store, new_fingerprint, stored_fingerprint};

/// Duration in seconds of each measurement of queries before, during and after inserts.
const LATENCY_SECONDS: f64 = 10.0;
/// Duration of a measurement of queries while nothing is written to the store, in seconds.
const IDLE_SECONDS: f64 = 4.0;
/// Duration of the measurement of the maximum insert rate, in seconds.
const TOP_RATE_SECONDS: f64 = 5.0;

/// Inserts new fingerprints with the ids `first`, `first + 1` and so on, until `is_done` returns `true`. `rate` is in
/// inserts per second; `None` means full speed. Returns the number of inserts.
fn insert_until(
    store: &Store<u64>,
    first: u64,
    rate: Option<f64>,
    is_done: impl Fn() -> bool,
) -> Result<u64> {
    let (start, mut inserted) = (Instant::now(), 0);
    while !is_done() {
        let due = rate.map_or(u64::MAX, |rate| (start.elapsed().as_secs_f64() * rate) as u64);
        if inserted >= due {
            std::thread::sleep(Duration::from_millis(1));
        }
        for _ in 0..(due.saturating_sub(inserted)).min(1000) {
            store.insert(new_fingerprint(first + inserted), first + inserted)?;
            inserted += 1;
        }
    }
    Ok(inserted)
}

/// Times queries one by one for `seconds`, and prints a row with the label `phase`. Half of the queries are near one of
/// the first `count` stored fingerprints, half are random.
fn measure_queries(store: &Store<u64>, count: u64, codec: &str, phase: &str, seconds: f64) -> Result<()> {
    let (start, before) = (Instant::now(), store.write_stats());
    let (mut state, mut times, mut matches) = (99, Vec::new(), Vec::new());
    while start.elapsed().as_secs_f64() < seconds {
        let query = match times.len() % 2 {
            0 => flip_bits(stored_fingerprint(random(&mut state) % count), &mut state),
            _ => random(&mut state),
        };
        let begin = Instant::now();
        store.query_into(query, DISTANCE, &mut matches)?;
        black_box(&matches);
        times.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    let quantile = |per_mille: usize| times[times.len() * per_mille / 1000];
    let WriteStats { flushes, compactions, .. } = store.write_stats();
    println!(
        "| {codec} | {phase} | {:.1} | {:.1} | {:.0} | {:.1} | {} | {} | {} |",
        quantile(500),
        quantile(990),
        quantile(999),
        times[times.len() - 1] / 1e3,
        store.snapshot().segments().len(),
        flushes - before.flushes,
        compactions - before.compactions
    );
    Ok(())
}

fn print_header(count: u64) {
    println!(
        "| {count} stored | while | p50, us | p99, us | p99.9, us | longest, ms | segments at the end | flushes | merges |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
}

/// Measures queries without concurrent writes, in three states of a store. First it has one segment. Then five smaller
/// segments are added, with typical sizes after flushes and merges. Then the memtable gets fingerprints too.
pub(crate) fn measure_segments(count: u64) -> Result<()> {
    print_header(count);
    for codec in both_codecs() {
        let folder = tempfile::tempdir()?;
        let options = StoreOptions { codec: Some(codec), compaction: false, ..StoreOptions::default() };
        let store = load_store(&folder.path().join("store"), count, options)?;
        let codec = codec.to_string();
        store.snapshot().verify(|error| eprintln!("{error}"));
        measure_queries(&store, count, &codec, "one segment", IDLE_SECONDS)?;
        let mut next = 0;
        for share in [5, 5, 5, 20, 20] {
            let mut load = store.bulk_load()?;
            let end = next + count / share;
            (next..end).try_for_each(|i| load.insert(new_fingerprint(i), i))?;
            load.finish()?;
            next = end;
        }
        store.snapshot().verify(|error| eprintln!("{error}"));
        measure_queries(&store, count, &codec, "and 3 of a fifth, 2 of a twentieth", IDLE_SECONDS)?;
        (next..next + count / 40).try_for_each(|i| store.insert(new_fingerprint(i), i))?;
        measure_queries(&store, count, &codec, "and half as many in a memtable", IDLE_SECONDS)?;
    }
    Ok(())
}

/// Measures queries before, during and after inserts by another thread, at half the maximum insert rate.
pub(crate) fn measure_during_inserts(count: u64, fanout: usize) -> Result<()> {
    print_header(count);
    for codec in both_codecs() {
        let folder = tempfile::tempdir()?;
        let store = load_store(
            &folder.path().join("store"),
            count,
            StoreOptions { codec: Some(codec), fanout, ..StoreOptions::default() },
        )?;
        store.snapshot().verify(|error| eprintln!("{error}"));
        let codec = codec.to_string();
        measure_queries(&store, count, &codec, "nothing is written", LATENCY_SECONDS)?;
        let start = Instant::now();
        let inserted = insert_until(&store, 0, None, || start.elapsed().as_secs_f64() > TOP_RATE_SECONDS)?;
        let rate = inserted as f64 / start.elapsed().as_secs_f64() / 2.0;
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                insert_until(&store, inserted, Some(rate), || done.load(Ordering::Relaxed))
                    .map_err(|error| error.to_string())
            });
            let result = measure_queries(
                &store,
                count,
                &codec,
                &format!("{rate:.0} inserts/s, half the top rate"),
                LATENCY_SECONDS,
            );
            done.store(true, Ordering::Relaxed);
            writer.join().expect("a thread that inserts")?;
            result
        })?;
        store.flush()?;
        store.wait_for_background()?;
        measure_queries(&store, count, &codec, "nothing is written any more", LATENCY_SECONDS)?;
    }
    Ok(())
}
