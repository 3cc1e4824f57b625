//! Measures the time of inserts, queries and deletes in a memtable.

use super::random;
use crate::fingerprint::Fingerprint;
use crate::memtable::Memtable;
use crate::memtable::multi_index::MultiIndex;
use crate::memtable::pairs::VersionedPairs;

/// CPU time of this thread in nanoseconds, without the time of other threads on the same core.
fn processor_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// Prints the time of inserts, queries and deletes:
/// `cargo test --release memtable::tests::speed -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn speed() {
    fn measure<F: Fingerprint>(entries: u64, distance: u32) {
        let each =
            (VersionedPairs::<F>::RECORD_BYTES + MultiIndex::<F>::bytes_per_fingerprint(distance)) as u64;
        let memtable = Memtable::<F>::new(distance, entries * each);
        let fingerprint =
            |i: u64| F::from_u128(u128::from(random(i)) << 64 | u128::from(random(i + (1 << 40))));
        let nanoseconds = |start: u64, count: u64| (processor_time() - start) / count;
        let start = processor_time();
        (0..entries).for_each(|i| memtable.insert(fingerprint(i), i, None));
        let insert = nanoseconds(start, entries);
        let version = memtable.publish();
        let (bytes, mut matches) = (memtable.bytes() / entries, Vec::new());
        let queries = if distance < 8 { 100_000 } else { 200 };
        let start = processor_time();
        (0..queries).for_each(|i| memtable.query(version, fingerprint(i << 50), distance, &mut matches));
        let new = nanoseconds(start, queries);
        let start = processor_time();
        for i in 0..queries {
            let stored = fingerprint(i * 7 % entries) ^ F::ONE << (i % 64) as u32;
            memtable.query(version, stored, distance, &mut matches);
        }
        let near = nanoseconds(start, queries);
        let start = processor_time();
        (0..entries).for_each(|i| memtable.delete(fingerprint(i), i));
        let delete = nanoseconds(start, entries);
        println!(
            "{} bits, k={distance}, {entries} entries: insert {insert} ns, query {new} ns, near a stored one \
             {near} ns, delete {delete} ns, {bytes} bytes an entry",
            F::BITS
        );
    }
    // The first distance runs twice, since the first run meets cold memory.
    for distance in [3, 3, 0, 6, 8, 9, 10, 16] {
        measure::<u64>(600_000, distance);
    }
    measure::<u64>(5_000_000, 3);
    measure::<u128>(600_000, 3);
}
