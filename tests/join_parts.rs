//! Tests of joins that are divided into parts (`JoinParts`): together, the parts find the same pairs as an undivided
//! self-join, each pair once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use simstore::fs::{Disk, Fs};
use simstore::join::{
    DenseGroupVisitor, FingerprintPair, Forest, JoinOnDisk, JoinParts, clusters, self_join,
};
use simstore::spill::{PrefixLocation, SpillLocation};
use simstore::{Error, Fingerprint};

use crate::support::disk::SimulatedDisk;
use crate::support::random::random;

/// Divides fingerprints into the parts of one table of the join. Returns the parts that are not empty; the key is the
/// index of the part. Asserts that the methods `part` and `scatter` of [`JoinParts`] give the same parts.
fn routed<F: Fingerprint>(parts: &JoinParts<F>, table: usize, fingerprints: &[F]) -> BTreeMap<usize, Vec<F>> {
    let mut routed: BTreeMap<usize, Vec<F>> = BTreeMap::new();
    for &fingerprint in fingerprints {
        let part = parts.part(table, fingerprint);
        assert!(part < parts.part_count());
        routed.entry(part).or_default().push(fingerprint);
    }
    let mut scattered = Vec::new();
    let visit = |part, some: &[F]| {
        scattered.push((part, some.to_vec()));
        Ok(())
    };
    parts.scatter(table, fingerprints, visit).unwrap();
    assert!(scattered.iter().map(|(part, some)| (part, some)).eq(&routed));
    routed
}

/// Computes the clusters of the fingerprints in each part as a forest, merges these forests into one, and returns the
/// edges of the merged forest.
fn connected<F: Fingerprint>(parts: &JoinParts<F>, fingerprints: &[F]) -> Vec<(F, F)> {
    let mut all = Forest::new();
    for table in 0..parts.table_count() {
        for part in routed(parts, table, fingerprints).values() {
            let edges = parts.forest(table, part, None).unwrap();
            assert!(edges.len() < part.len());
            edges.into_iter().for_each(|(first, other)| all.connect(first, other));
        }
    }
    all.into_edges()
}

fn joined<F: Fingerprint>(parts: &JoinParts<F>, fingerprints: &[F]) -> Vec<FingerprintPair<F>> {
    let found = Mutex::new(Vec::new());
    for table in 0..parts.table_count() {
        for part in routed(parts, table, fingerprints).values() {
            let visit = |pairs: &[FingerprintPair<F>]| {
                found.lock().unwrap().extend_from_slice(pairs);
                ControlFlow::Continue(())
            };
            parts.join(table, part, visit).unwrap();
        }
    }
    let mut found = found.into_inner().unwrap();
    found.sort_unstable();
    found
}

fn distinct<F: Fingerprint>(values: impl IntoIterator<Item = u128>) -> Vec<F> {
    let values: BTreeSet<F> = values.into_iter().map(F::from_u128).collect();
    values.into_iter().collect()
}

fn check<F: Fingerprint>(values: impl IntoIterator<Item = u128>, distance: u32, parts: usize) {
    let fingerprints: Vec<F> = distinct(values);
    let expected: Vec<FingerprintPair<F>> = self_join(&fingerprints, distance)
        .unwrap()
        .into_iter()
        .map(|pair| FingerprintPair {
            a: fingerprints[pair.a],
            b: fingerprints[pair.b],
            distance: pair.distance,
        })
        .collect();
    let join_parts = JoinParts::with_parts(distance, parts).unwrap();
    let mut forest = Forest::new();
    forest.connect_pairs(&expected);
    assert!(
        connected(&join_parts, &fingerprints) == forest.into_edges(),
        "distance {distance}, {parts} parts"
    );
    let found = joined(&join_parts, &fingerprints);
    // Not `assert_eq!`, which would print up to a million pairs.
    assert!(
        found == expected,
        "{} of {} pairs, distance {distance}, {parts} parts",
        found.len(),
        expected.len()
    );
}

/// 128 random bits.
fn wide(state: &mut u64) -> u128 {
    u128::from(random(state)) << 64 | u128::from(random(state))
}

/// Returns `count` random fingerprints, each with seven neighbours at distances of up to 7 bits. Adds 0 and the
/// largest `u128`.
fn clustered(count: usize, seed: u64) -> Vec<u128> {
    let mut state = seed;
    let mut values = vec![0, u128::MAX];
    for _ in 0..count {
        let centre = wide(&mut state);
        values.push(centre);
        for flips in 1..8 {
            values.push((0..flips).fold(centre, |value, _| value ^ 1 << (random(&mut state) % 128)));
        }
    }
    values
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn parts_find_what_the_whole_finds(
        centres in prop::collection::vec(any::<u128>(), 1..6),
        picks in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(0_u32..128, 0..6)), 0..300),
        distance in 0_u32..=10,
        parts in 0_u32..=12,
    ) {
        let values: Vec<u128> = picks
            .iter()
            .map(|(centre, bits)| bits.iter().fold(*centre.get(&centres), |value, bit| value ^ 1 << bit))
            .collect();
        // At larger distances there are many tables, so fewer parts keep the test short.
        let parts = 1 << if distance > 5 { parts.min(7) } else { parts };
        check::<u64>(values.iter().map(|value| value >> 64), distance, parts);
        check::<u128>(values, distance, parts);
    }

    /// A join that is divided into parts finds all pairs, even if most parts are empty and a few parts have all
    /// fingerprints. This happens if the fingerprints differ only in a few bit positions.
    #[test]
    fn parts_find_what_the_whole_finds_where_few_bits_differ(
        bits in any::<u128>(),
        other in any::<u128>(),
        count in 0_usize..3000,
        distance in 0_u32..=5,
        parts in 0_u32..=8,
        seed in any::<u64>(),
    ) {
        let mut state = seed;
        let values: Vec<u128> = (0..count).map(|_| wide(&mut state) & bits & other | !bits >> 1).collect();
        check::<u64>(values.iter().map(|value| value >> 64), distance, 1 << parts);
        check::<u128>(values, distance, 1 << parts);
    }

    /// A join that reports dense groups (groups of fingerprints that are nearly all near one another) misses no near
    /// pair: each pair is visited, or one reported group has both its fingerprints.
    #[test]
    fn parts_report_dense_groups(
        bits in any::<u64>(),
        other in any::<u64>(),
        count in 0_usize..2000,
        distance in 0_u32..=8,
        parts in 0_u32..=5,
        pairs_per_member in 1_usize..40,
    ) {
        let mut state = bits;
        let values: BTreeSet<u64> = (0..count).map(|_| random(&mut state) & bits & other).collect();
        let values: Vec<u64> = values.into_iter().collect();
        let parts = JoinParts::<u64>::with_parts(distance, 1 << parts).unwrap();
        let (found, groups) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let report = |some: &[u64]| groups.lock().unwrap().push(some.iter().copied().collect::<BTreeSet<u64>>());
        for table in 0..parts.table_count() {
            for part in routed(&parts, table, &values).values() {
                let groups = DenseGroupVisitor { pairs_per_member, visitor: &report };
                parts
                    .join_except_dense(table, part, groups, |pairs| {
                        found.lock().unwrap().extend_from_slice(pairs);
                        ControlFlow::Continue(())
                    })
                    .unwrap();
            }
        }
        let mut found: Vec<(u64, u64)> =
            found.into_inner().unwrap().iter().map(|pair: &FingerprintPair<u64>| (pair.a, pair.b)).collect();
        found.sort_unstable();
        prop_assert!(found.windows(2).all(|pairs| pairs[0] < pairs[1]));
        let groups = groups.into_inner().unwrap();
        for pair in self_join(&values, distance).unwrap() {
            let (a, b) = (values[pair.a], values[pair.b]);
            let is_reported = groups.iter().any(|group| group.contains(&a) && group.contains(&b));
            prop_assert!(is_reported || found.binary_search(&(a, b)).is_ok());
        }
    }
}

/// A join that is divided into parts finds all pairs, at each distance from 0 to 10 and with up to 4096 parts.
#[test]
fn any_distance_and_any_number_of_parts() {
    let values = clustered(12, 3);
    for distance in 0..=10 {
        for bits in 0..=12 {
            check::<u64>(values.iter().map(|value| value >> 64), distance, 1 << bits);
            if bits % 4 == 0 {
                check::<u128>(values.iter().copied(), distance, 1 << bits);
            }
        }
    }
}

#[test]
fn both_ends_one_bit_neighbours_and_few() {
    for distance in [0, 1, 3, 6] {
        for parts in [1, 8, 500, 4096] {
            check::<u64>((0..64).map(|bit| 1 << bit).chain([0, u128::from(u64::MAX)]), distance, parts);
            check::<u128>((0..128).map(|bit| 1 << bit).chain([0, u128::MAX]), distance, parts);
            check::<u64>([], distance, parts);
            check::<u64>([7, 7, 7], distance, parts);
        }
    }
}

/// A join that is divided into parts finds all pairs of a million fingerprints that differ only in 40 bits. Some tables
/// of the join put most of these fingerprints into the same part.
#[test]
fn a_prefix_that_a_million_share() {
    let mut state = 5;
    let values: Vec<u64> = (0..1_000_000).map(|_| random(&mut state) >> 24).collect();
    for (shift, distance, parts) in [(0, 3, 16), (12, 3, 256), (24, 2, 4096)] {
        check::<u64>(
            values.iter().map(|&value| u128::from(value << shift | 1 << 63 >> shift)),
            distance,
            parts,
        );
    }
}

/// A join that is divided into parts finds all pairs, even if its last table puts all fingerprints into the same part. A
/// table selects the part of a fingerprint by some of its bits. In this test, the bits that the last table uses are zero
/// in all fingerprints.
#[test]
fn dense_groups_of_a_late_table() {
    for (bits, distance) in [(4, 3), (8, 2), (12, 1)] {
        let mut state = 9;
        let parts = JoinParts::<u64>::with_parts(distance, 1 << bits).unwrap();
        // Mask of the bits that select the part in any table but the last.
        let mask = (0..64)
            .map(|bit| 1_u64 << bit)
            .filter(|&bit| (0..parts.table_count() - 1).any(|table| parts.part(table, bit) != 0))
            .fold(0, |mask, bit| mask | bit);
        let values: Vec<u128> = (0..20_000).map(|_| u128::from(random(&mut state) & mask)).collect();
        check::<u64>(values, distance, 1 << bits);
    }
}

#[test]
fn parts_are_chosen_by_memory() {
    let parts = |count, memory| JoinParts::<u64>::choose(count, 3, memory).unwrap();
    assert_eq!(parts(0, 0).part_count(), 1);
    assert_eq!((parts(1_000_000, 1 << 30).part_count(), parts(1_000_000, 1 << 30).table_count()), (1, 1));
    let some = parts(1_000_000_000, 4 << 30);
    assert_eq!((some.part_count(), some.table_count()), (8, 4));
    assert!(some.parts_of(7).eq((0..4).map(|table| (table, some.part(table, 7)))));
    let refused = JoinParts::<u64>::choose(1_000_000_000, 3, 1 << 20).unwrap_err();
    assert!(matches!(&refused, Error::Refused(reason) if reason.contains("7812500")), "{refused}");
    assert!(JoinParts::<u64>::with_parts(17, 4).is_err());
    for parts in [0, 4097] {
        assert!(matches!(JoinParts::<u64>::with_parts(3, parts), Err(Error::BadArgument(_))));
    }
    assert_eq!(JoinParts::<u128>::with_parts(3, 5).unwrap().part_count(), 8);
    assert!(some.join(4, &[], |_| ControlFlow::Continue(())).is_err());
    assert!(matches!(some.join(0, &[1, 2], |_| ControlFlow::Break(())), Err(Error::Cancelled)));
}

/// Results of a join on disk: the distinct fingerprints, the fingerprints that occur more than once, and the near pairs.
type DiskJoinResult<F> = (Vec<F>, Vec<F>, Vec<FingerprintPair<F>>);

fn joined_on(
    fs: &Arc<dyn Fs>,
    folder: &Path,
    values: &[u64],
    distance: u32,
    memory: u64,
) -> Result<DiskJoinResult<u64>, Error> {
    let parts = JoinOnDisk::<u64>::choose_parts(values.len() as u64, distance, memory)?;
    let location = PrefixLocation::new(fs, &folder.join("join"));
    let mut join = JoinOnDisk::create(location.clone(), parts, memory)?;
    values.chunks(1000).try_for_each(|some| join.push(some))?;
    let (mut distinct, mut repeated) = (Vec::new(), Vec::new());
    let mut join = join.collapse(|some, several| {
        distinct.extend_from_slice(some);
        repeated.extend_from_slice(several);
        Ok(())
    })?;
    assert_eq!(join.count(), distinct.len() as u64);
    let found = Mutex::new(Vec::new());
    for table in 0..join.parts().table_count() {
        join.join(table, |pairs| {
            found.lock().unwrap().extend_from_slice(pairs);
            ControlFlow::Continue(())
        })?;
    }
    let moved = location.counters();
    assert!(moved.read() >= moved.written() && moved.peak_on_disk() <= moved.written(), "{moved:?}");
    drop(join);
    assert_eq!(location.counters().on_disk(), 0);
    let mut found = found.into_inner().unwrap();
    found.sort_unstable();
    Ok((distinct, repeated, found))
}

fn check_on_disk(values: &[u64], distance: u32, memory: u64) {
    let folder = tempfile::tempdir().unwrap();
    let fs: Arc<dyn Fs> = Arc::new(Disk::default());
    let (distinct, repeated, found) = joined_on(&fs, folder.path(), values, distance, memory).unwrap();
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    values.iter().for_each(|&value| *counts.entry(value).or_default() += 1);
    assert!(distinct.iter().eq(counts.keys()));
    assert!(repeated.iter().eq(counts.iter().filter(|(_, count)| **count > 1).map(|(value, _)| value)));
    let expected = self_join(&distinct, distance).unwrap().into_iter().map(|pair| FingerprintPair {
        a: distinct[pair.a],
        b: distinct[pair.b],
        distance: pair.distance,
    });
    let expected: Vec<FingerprintPair<u64>> = expected.collect();
    assert!(found == expected, "{} of {} pairs, distance {distance}", found.len(), expected.len());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "files are left");
}

#[test]
fn on_disk_as_in_memory() {
    let mut state = 11;
    let clustered: Vec<u64> = clustered(800, 21).into_iter().map(|value| value as u64).collect();
    let few_bits: Vec<u64> =
        (0..3000).map(|_| random(&mut state) & 0x0003_0307_0000_ff00 | 1 << 63).collect();
    let prefix: Vec<u64> = (0..3000).map(|_| random(&mut state) >> 44 | 0xabc << 52).collect();
    for values in [&clustered, &few_bits, &prefix, &vec![5; 12_000], &vec![], &vec![9]] {
        let twice = [&values[..], &values[values.len() / 2..]].concat();
        for (distance, memory) in [(3, 40_000), (1, 10_000), (6, 100_000), (0, 20_000), (3, 1 << 30)] {
            check_on_disk(&twice, distance, memory);
        }
    }
}

#[test]
fn a_full_disk_is_an_error_that_leaves_no_files() {
    let values: Vec<u64> = clustered(300, 2).into_iter().map(|value| value as u64).collect();
    let folder = Path::new("folder");
    let mut results = Vec::new();
    for room in (0..100_000).step_by(3000) {
        let disk = SimulatedDisk::default();
        disk.as_fs().create_dir(folder).unwrap();
        disk.set_free_bytes(Some(room));
        let joined = joined_on(&disk.as_fs(), folder, &values, 3, 10_000);
        if let Err(error) = &joined {
            assert!(matches!(error, Error::Io { action: "write" | "create", .. }), "{error}");
        }
        results.push(joined.is_ok());
        let left: Vec<_> = disk.paths().into_iter().filter(|path| path != folder).collect();
        assert_eq!(left, Vec::<PathBuf>::new());
    }
    assert!(results.contains(&true) && results.contains(&false));
}

#[test]
fn forests_are_the_same_in_any_order() {
    let mut state = 17;
    let edges: Vec<(u64, u64)> =
        (0..300_000).map(|_| (random(&mut state) % 200_000, random(&mut state) % 200_000)).collect();
    let forest_edges = |edges: &[(u64, u64)]| {
        let mut forest = Forest::new();
        edges.iter().for_each(|&(a, b)| forest.connect(a, b));
        forest.into_edges()
    };
    let whole = forest_edges(&edges);
    let clusters = clusters(200_000, edges.iter().map(|&(a, b)| (a as usize, b as usize)));
    let expected = clusters
        .iter()
        .flat_map(|cluster| cluster[1..].iter().map(|&member| (cluster[0] as u64, member as u64)));
    assert!(whole.iter().copied().eq(expected));
    let (some, others) = edges.split_at(100_000);
    assert!(forest_edges(&[forest_edges(others), forest_edges(some)].concat()) == whole);
}
