//! Measures queries of a store whose fingerprints are all in the memtable.

use std::hint::black_box;
use std::time::Instant;

use simstore::{Store, StoreOptions};

use crate::random::random;
use crate::{Result, flip_bits, stored_fingerprint};

/// Numbers of entries in the measured memtables: about as many as a memtable of the default size can hold, and ten
/// times as many. An entry is a fingerprint and an id.
const MEMTABLE_PAIRS: [u64; 2] = [600_000, 6_000_000];
/// Duration of the measurement of each kind of query, in seconds.
const QUERY_SECONDS: f64 = 1.0;

/// Measures queries at several distances. The queries are new fingerprints, or near copies of stored fingerprints.
pub(crate) fn measure() -> Result<()> {
    println!("| in the memtable | k | inserts/s, batches of 1000 | us a new one | us near a stored one |");
    println!("|---|---|---|---|---|");
    for count in MEMTABLE_PAIRS {
        for distance in [0, 3, 4, 6, 8, 10, 12, 16] {
            let folder = tempfile::tempdir()?;
            let options = StoreOptions {
                distance: Some(distance),
                memtable: count * 200,
                compaction: false,
                ..StoreOptions::default()
            };
            let store = Store::<u64>::open(&folder.path().join("store"), options)?;
            let start = Instant::now();
            for first in (0..count).step_by(1000) {
                let mut batch = store.transaction();
                (first..first + 1000).for_each(|id| batch.insert(stored_fingerprint(id), id));
                batch.commit(simstore::Durability::Os)?;
            }
            let rate = count as f64 / start.elapsed().as_secs_f64();
            let (snapshot, mut matches, mut state) = (store.snapshot(), Vec::new(), 7);
            let mut time = |is_near: bool| -> Result<f64> {
                let (start, mut query_count) = (Instant::now(), 0_u32);
                while start.elapsed().as_secs_f64() < QUERY_SECONDS {
                    for _ in 0..20 {
                        let new = random(&mut state);
                        let query = if is_near {
                            flip_bits(stored_fingerprint(new % count), &mut state)
                        } else {
                            new
                        };
                        snapshot.query_into(query, distance, &mut matches)?;
                        black_box(&matches);
                    }
                    query_count += 20;
                }
                Ok(start.elapsed().as_secs_f64() * 1e6 / f64::from(query_count))
            };
            let (new, near) = (time(false)?, time(true)?);
            println!("| {count} | {distance} | {rate:.0} | {new:.2} | {near:.2} |");
        }
    }
    Ok(())
}
