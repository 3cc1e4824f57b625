//! Queries stores with many segments, and compares the matches with a linear scan. Newer segments delete or repeat
//! pairs of older segments.

use std::path::Path;

use rayon::prelude::*;
use simstore::{Codec, Durability, Fingerprint, Insertion, PlanChoice, Snapshot, Store, StoreOptions};

use crate::support::disk::SimulatedDisk;
use crate::support::random::Random;
use crate::support::samples::PairModel;

type FoundMatches<F> = Vec<(u32, F, Option<u64>)>;

/// Finds the expected matches of a query by a linear scan over all pairs.
fn plain<F: Fingerprint>(model: &PairModel<F>, query: F, distance: u32) -> FoundMatches<F> {
    let near = model.iter().filter(|(x, _)| x.distance(query) <= distance);
    let mut found: Vec<_> = near.map(|&(x, id)| (x.distance(query), x, Some(id))).collect();
    found.sort_unstable();
    found
}

fn check<F: Fingerprint>(snapshot: &Snapshot<F>, model: &PairModel<F>, distance: u32, seed: u64) {
    let mut random = Random(seed);
    let stored: Vec<(F, u64)> = model.iter().copied().collect();
    for i in 0..200 {
        let query = match i % 8 {
            0 => random.fingerprint(),
            1 => [F::ZERO, F::MAX][i / 8 % 2],
            _ if stored.is_empty() => F::ONE,
            _ => {
                let flips = random.below(u64::from(distance) + 2);
                let (stored, _) = stored[random.index(stored.len())];
                random.flip(stored, flips)
            }
        };
        let max_distance = if i % 5 == 0 { random.below(u64::from(distance) + 1) as u32 } else { distance };
        let found: Vec<_> = snapshot
            .query(query, max_distance)
            .unwrap()
            .iter()
            .map(|m| (m.distance, m.fingerprint, m.id))
            .collect();
        assert_eq!(found, plain(model, query, max_distance), "{query:x} within {max_distance} of {distance}");
        assert_eq!(snapshot.contains(query).unwrap(), model.iter().any(|pair| pair.0 == query));
    }
}

/// Writes a store with segments of one to thousands of pairs, and checks its queries. Each segment has new
/// fingerprints, some of which are near older ones. It also repeats fingerprints of older segments, with the same ids or
/// with other ids, and deletes older pairs, some of which are inserted again.
fn many_segments<F: Fingerprint>(distance: u32, codec: Codec, plan: PlanChoice) {
    let disk = SimulatedDisk::default();
    let options = StoreOptions {
        fs: disk.as_fs(),
        distance: Some(distance),
        codec: Some(codec),
        plan: Some(plan),
        block_size: Some(256),
        compaction: false,
        ..StoreOptions::default()
    };
    let path = Path::new("store");
    let store = Store::<F>::open(path, options.clone()).unwrap();
    let (mut model, mut random, mut inserted_before) =
        (PairModel::new(), Random(u64::from(distance)), Vec::new());
    let centres: Vec<F> = (0..5).map(|_| random.fingerprint()).collect();
    let sizes = [1_u64, 1500, 40, 3, 700, 90, 1, 300];
    for (round, &size) in sizes.iter().enumerate() {
        let mut transaction = store.transaction();
        for _ in 0..size {
            let kind = random.below(8);
            let (fingerprint, id) = match kind {
                0..2 => (random.fingerprint(), random.below(50)),
                2..5 => {
                    let flips = random.below(u64::from(distance) + 3);
                    let centre = centres[random.index(5)];
                    (random.flip(centre, flips), random.below(50))
                }
                _ if inserted_before.is_empty() => (F::MAX, 7),
                5 => (inserted_before[random.index(inserted_before.len())], random.below(50)),
                _ => {
                    // Deletes a pair, stored or not. The last kind inserts it again in the same transaction.
                    let pair = (inserted_before[random.index(inserted_before.len())], random.below(50));
                    let pair = model.range(pair..).next().copied().unwrap_or(pair);
                    transaction.delete(pair.0, pair.1);
                    model.remove(&pair);
                    if kind == 6 {
                        continue;
                    }
                    pair
                }
            };
            transaction.insert(fingerprint, id);
            model.insert((fingerprint, id));
            inserted_before.push(fingerprint);
        }
        transaction.commit(Durability::Os).unwrap();
        // The last round stays in memory.
        if round + 1 < sizes.len() {
            store.flush().unwrap();
        }
        if round % 3 == 2 {
            check(&store.snapshot(), &model, distance, round as u64);
        }
    }
    assert_eq!(store.snapshot().segments().len(), sizes.len() - 1);
    check(&store.snapshot(), &model, distance, 77);
    for i in 0..20 {
        let query = random
            .flip(inserted_before[i * 31 % inserted_before.len()], i as u64 % (u64::from(distance) + 2));
        let expected = plain(&model, query, distance);
        let inserted = store.insert_if_new(query, 1000).unwrap();
        assert_eq!(inserted == Insertion::Inserted, expected.is_empty(), "{query:x}");
        if expected.is_empty() {
            model.insert((query, 1000));
        }
    }
    drop(store);
    // A newly opened snapshot has no Bloom filters yet; a store makes them with its segments.
    check(&Snapshot::<F>::open_on(&disk.as_fs(), path).unwrap(), &model, distance, 78);
    let store = Store::<F>::open(path, options).unwrap();
    store.compact().unwrap();
    check(&store.snapshot(), &model, distance, 79);
}

fn every_distance<F: Fingerprint>() {
    let cases: Vec<(u32, Codec)> =
        (0..=10).flat_map(|distance| Codec::ALL.map(move |codec| (distance, codec))).collect();
    cases.par_iter().for_each(|&(distance, codec)| {
        let names = simstore::plan::names::<F>(distance);
        // "probe-2", which probes with flips, if the distance has it; otherwise the plans in turn.
        let probing = names.iter().find(|name| name.as_str() == "probe-2").cloned();
        let other = names[(distance as usize * 3 + codec as usize) % names.len()].clone();
        many_segments::<F>(distance, codec, PlanChoice::Auto);
        many_segments::<F>(distance, codec, PlanChoice::Named(probing.unwrap_or(other)));
    });
}

#[test]
fn many_segments_of_64_bits() {
    every_distance::<u64>();
}

#[test]
fn many_segments_of_128_bits() {
    every_distance::<u128>();
}
