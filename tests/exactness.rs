//! Compares the results of queries with a linear scan over all fingerprints: single queries and batch queries, with
//! every table plan and every codec.

use std::path::Path;

use rayon::prelude::*;
use simstore::batch::{BatchMatch, BatchMethod};
use simstore::{BuildOptions, Builder, Codec, Fingerprint, Match, PlanChoice, Snapshot, plan};

use crate::support::disk::SimulatedDisk;
use crate::support::random::Random;

fn random<F: Fingerprint>(count: u64) -> Vec<(F, u64)> {
    let mut random = Random(1);
    (0..count).map(|id| (random.fingerprint(), id)).collect()
}

/// Fingerprints around four centres, at distances of up to `distance` + 2 bits.
fn clustered<F: Fingerprint>(count: u64, distance: u32) -> Vec<(F, u64)> {
    let mut random = Random(2);
    let centres: Vec<F> = (0..4).map(|_| random.fingerprint()).collect();
    (0..count)
        .map(|id| {
            let flips = random.below(u64::from(distance) + 3);
            let centre = centres[random.below(4) as usize];
            (random.flip(centre, flips), random.next() % (id + 1))
        })
        .collect()
}

fn one_bit_neighbours<F: Fingerprint>() -> Vec<(F, u64)> {
    let centre: F = Random(3).fingerprint();
    let neighbours = (0..F::BITS).map(|bit| centre ^ F::bit_mask(bit));
    neighbours.chain([centre, F::ZERO, F::MAX, F::ONE]).zip(0..).collect()
}

/// Returns fingerprints of two kinds, equally many of each. All fingerprints of the first kind have the same first half of
/// the bits; all of the second kind have the same second half.
fn shared_halves<F: Fingerprint>(count: u64) -> Vec<(F, u64)> {
    let mut random = Random(4);
    let (first, second) = (F::prefix_mask(F::BITS / 2), F::suffix_mask(F::BITS / 2));
    let centre: F = random.fingerprint();
    (0..count)
        .map(|id| {
            let (kept, free) = if id % 2 == 0 { (first, second) } else { (second, first) };
            (centre & kept | random.fingerprint::<F>() & free, u64::MAX - id)
        })
        .collect()
}

fn all_equal<F: Fingerprint>(count: u64) -> Vec<(F, u64)> {
    (0..count).map(|id| (F::from_u128(0x5555), id * 3)).collect()
}

fn build<F: Fingerprint>(entries: &[(F, u64)], options: BuildOptions) -> Snapshot<F> {
    let options = BuildOptions { fs: SimulatedDisk::default().as_fs(), ..options };
    let mut builder = Builder::create(Path::new("store"), options).unwrap();
    entries.iter().for_each(|&(fingerprint, id)| builder.insert(fingerprint, id).unwrap());
    builder.finish().unwrap()
}

/// Returns the expected matches of a query, found by a linear scan.
fn plain<F: Fingerprint>(entries: &[(F, u64)], query: F, distance: u32) -> Vec<Match<F>> {
    let mut matches: Vec<Match<F>> = entries
        .iter()
        .map(|&(fingerprint, id)| Match { fingerprint, distance: query.distance(fingerprint), id: Some(id) })
        .filter(|found| found.distance <= distance)
        .collect();
    matches.sort_by_key(|found| (found.distance, found.fingerprint, found.id));
    matches.dedup();
    matches
}

/// Builds a store, and compares single queries and batches with the linear scan, at distances up to the store's maximum.
fn check<F: Fingerprint>(entries: &[(F, u64)], options: BuildOptions, queries: u64) {
    let (distance, context) = (options.distance, format!("{options:?}"));
    let store = build(entries, options);
    assert_eq!(store.verify(|error| panic!("{context}: {error}")), 0);
    let mut sorted: Vec<_> = entries.iter().map(|&(fingerprint, id)| (fingerprint, Some(id))).collect();
    sorted.sort();
    sorted.dedup();
    let listed: Vec<_> =
        store.iter().map(Result::unwrap).map(|entry| (entry.fingerprint, entry.id)).collect();
    assert_eq!(listed, sorted, "{context}");

    let mut random = Random(5);
    let mut matches = Vec::new();
    let mut batch = Vec::new();
    for i in 0..queries {
        let query = match entries.len() as u64 {
            _ if i % 8 == 0 => random.fingerprint(),
            0 => F::MAX,
            _ if i % 8 == 1 => F::ZERO,
            count => {
                let flips = random.below(u64::from(distance) + 2);
                let (stored, _) = entries[random.below(count) as usize];
                random.flip(stored, flips)
            }
        };
        let max_distance = if i % 3 == 0 { random.below(u64::from(distance) + 1) as u32 } else { distance };
        store.query_into(query, max_distance, &mut matches).unwrap();
        assert_eq!(
            matches,
            plain(entries, query, max_distance),
            "{context}: {query:x} within {max_distance}"
        );
        assert_eq!(store.contains(query).unwrap(), entries.iter().any(|entry| entry.0 == query), "{context}");
        batch.extend([query; 2].iter().take(1 + usize::from(i % 5 == 0)));
    }
    for max_distance in [0, distance / 2, distance] {
        let each = batch.iter().enumerate();
        let expected: Vec<BatchMatch<F>> = each
            .flat_map(|(query, &x)| {
                plain(entries, x, max_distance).into_iter().map(move |found| BatchMatch { query, found })
            })
            .collect();
        for method in [BatchMethod::Stream, BatchMethod::LookUp, BatchMethod::Auto] {
            let found = store.batch_query_by(&batch, max_distance, method).unwrap();
            assert_eq!(found, expected, "{context}: a batch within {max_distance}, {method:?}");
        }
    }
}

fn options(distance: u32, plan: &str, codec: Codec) -> BuildOptions {
    let block_size = Some(256);
    BuildOptions {
        distance,
        codec,
        plan: PlanChoice::Named(plan.into()),
        block_size,
        ..BuildOptions::default()
    }
}

/// Builds stores of small sets of fingerprints with every table plan for these distances, and checks them.
fn every_plan<F: Fingerprint>(distances: impl Iterator<Item = u32>) {
    let plans: Vec<(u32, String)> =
        distances.flat_map(|k| plan::names::<F>(k).into_iter().map(move |name| (k, name))).collect();
    plans.par_iter().enumerate().for_each(|(i, (distance, name))| {
        let codec = Codec::ALL[i % Codec::ALL.len()];
        check(&clustered::<F>(150, *distance), options(*distance, name, codec), 24);
        check(&one_bit_neighbours::<F>(), options(*distance, name, codec), 8);
    });
}

#[test]
fn every_plan_of_64_bits() {
    every_plan::<u64>(0..=16);
}

#[test]
fn every_plan_of_128_bits() {
    every_plan::<u128>((0..=8).chain([11, 16, 23, 31, 32]));
}

/// Builds stores of sets of up to 4000 fingerprints with every table plan for distance 3 and every codec, and checks
/// them.
fn every_codec<F: Fingerprint>() {
    let mut cases = Vec::new();
    for name in plan::names::<F>(3) {
        cases.extend(Codec::ALL.iter().map(|&codec| (name.clone(), codec)));
    }
    cases.par_iter().for_each(|(name, codec)| {
        let options = || options(3, name, *codec);
        check(&random::<F>(3000), options(), 60);
        check(&clustered::<F>(3000, 3), options(), 60);
        check(&shared_halves::<F>(4000), options(), 60);
        check(&all_equal::<F>(2000), options(), 10);
        check::<F>(&[], options(), 10);
        check(&random::<F>(1), options(), 10);
        check(&[(F::ZERO, 0), (F::MAX, u64::MAX)], options(), 10);
    });
}

#[test]
fn every_codec_of_64_bits() {
    every_codec::<u64>();
}

#[test]
fn every_codec_of_128_bits() {
    every_codec::<u128>();
}

/// Queries find all matches among 20,000 fingerprints that share their first 40 bits. If so many fingerprints share a
/// prefix, a query selects some of them by the bits after the prefix.
#[test]
fn a_crowded_prefix() {
    let mut random = Random(8);
    let shared: u64 = random.fingerprint();
    let entries: Vec<(u64, u64)> = (0..20_000)
        .map(|id| (shared & u64::prefix_mask(40) | random.next() & u64::suffix_mask(24), id))
        .collect();
    for plan in ["scan", "probe-1", "probe-2", "mixed-3-20", "paper-4"] {
        for codec in Codec::ALL {
            let options = BuildOptions { block_size: Some(256), ..options(3, plan, codec) };
            check(&entries, options, 40);
        }
    }
}

/// Returns four sets of fingerprints. In each, many fingerprints share a prefix of contiguous bits. In the first set,
/// some bits are constant; in the second, the two halves of a fingerprint are equal; in the third, the first bits are
/// zero; the fourth has near-duplicates of 40 centres.
fn skewed<F: Fingerprint>(count: u64) -> Vec<Vec<(F, u64)>> {
    let mut random = Random(9);
    let half = F::BITS / 2;
    let constant: F = random.fingerprint::<F>() & F::prefix_mask(half) | F::suffix_mask(half / 2);
    let centres: Vec<F> = (0..40).map(|_| random.fingerprint()).collect();
    let mut make = |set: &mut dyn FnMut(&mut Random) -> F| -> Vec<(F, u64)> {
        (0..count).map(|id| (set(&mut random), id)).collect()
    };
    vec![
        make(&mut |random| random.fingerprint::<F>() & constant),
        make(&mut |random| {
            let value = random.fingerprint::<F>() & F::suffix_mask(half);
            value | value.rotate_left(half)
        }),
        make(&mut |random| random.fingerprint::<F>() & F::suffix_mask(F::BITS * 3 / 8)),
        make(&mut |random| {
            let (centre, flips) = (centres[random.below(40) as usize], random.below(10));
            random.flip(centre, flips)
        }),
    ]
}

/// Builds stores of the sets of [`skewed`] with table plans of every family (`probe`, `mixed`, `paper`, `cover`,
/// `scan`), and checks them.
fn skewed_sets<F: Fingerprint>() {
    let sets = skewed::<F>(12_000);
    let mut cases = Vec::new();
    for plan in ["probe-2", "probe-3", "probe-4", "mixed-3-20", "paper-10", "cover-5", "cover-11", "auto"] {
        cases
            .extend(sets.iter().enumerate().map(|(i, set)| (plan, 3, Codec::ALL[i % Codec::ALL.len()], set)));
    }
    for (plan, distance) in [("probe-4", 8), ("paper-7", 6), ("probe-2", 1), ("scan", 3), ("paper-16", 3)] {
        cases.extend(sets.iter().map(|set| (plan, distance, Codec::Gap, set)));
    }
    // Shared prefixes fill prefix lines, so many lines are divided.
    for (plan, distance) in [("probe-1", 2), ("probe-2", 4), ("probe-3", 7), ("cover-11", 3), ("probe-4", 5)]
    {
        cases.extend(sets.iter().map(|set| (plan, distance, Codec::PrefixLines, set)));
    }
    cases.par_iter().for_each(|(plan, distance, codec, entries)| {
        let plan_or_auto = plan.parse().unwrap();
        check(entries, BuildOptions { plan: plan_or_auto, ..options(*distance, plan, *codec) }, 25);
    });
}

#[test]
fn skewed_sets_of_64_bits() {
    skewed_sets::<u64>();
}

#[test]
fn skewed_sets_of_128_bits() {
    skewed_sets::<u128>();
}

#[test]
fn block_sizes_and_memory() {
    let entries = [random::<u64>(60_000), shared_halves(60_000), clustered(5000, 3)].concat();
    let sizes = [None, Some(256), Some(1024), Some(65536)];
    sizes.par_iter().for_each(|&block_size| {
        for codec in Codec::ALL {
            let plan = PlanChoice::Auto;
            let options =
                BuildOptions { codec, plan, block_size, memory: Some(16 << 20), ..BuildOptions::default() };
            check(&entries, options, 60);
        }
    });
}

#[test]
fn a_store_without_ids() {
    let entries = clustered::<u64>(2000, 3);
    let store = build(&entries, BuildOptions { ids: false, ..BuildOptions::default() });
    assert_eq!((store.stats().ids, store.stats().id_bytes), (0, 0));
    for &(query, _) in entries.iter().step_by(50) {
        let mut expected: Vec<_> =
            plain(&entries, query, 3).iter().map(|m| (m.distance, m.fingerprint)).collect();
        expected.dedup();
        let found: Vec<_> =
            store.query(query, 3).unwrap().iter().map(|m| (m.distance, m.fingerprint)).collect();
        assert_eq!(found, expected);
        assert!(store.query(query, 3).unwrap().iter().all(|m| m.id.is_none()));
    }
}

/// Checks stores with the fingerprints of real documents. The clusters of these fingerprints differ from the clusters of
/// the generated sets.
#[test]
fn real_fingerprints() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/fingerprints");
    for file in ["win32-rev.u64", "sqldocs-rev.u64"] {
        let Ok(bytes) = std::fs::read(folder.join(file)) else {
            eprintln!("SKIPPED: {file} is not in {}", folder.display());
            continue;
        };
        let entries: Vec<(u64, u64)> = bytes.chunks_exact(8).map(u64::read_le).zip(0..).collect();
        ["auto", "probe-1", "probe-2", "cover-11", "paper-4"].par_iter().for_each(|name| {
            for codec in Codec::ALL {
                let plan = name.parse().unwrap();
                check(&entries, BuildOptions { codec, plan, ..BuildOptions::default() }, 100);
            }
        });
    }
}
