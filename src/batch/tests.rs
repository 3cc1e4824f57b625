use proptest::prelude::*;

use super::*;
use crate::segment::Match;
use crate::{BuildOptions, Builder, Codec, PlanChoice};

fn build<F: Fingerprint>(stored: &[F], ids: bool, codec: Codec) -> (tempfile::TempDir, Snapshot<F>) {
    let folder = tempfile::tempdir().unwrap();
    let plan = PlanChoice::Named("scan".to_string());
    let options = BuildOptions {
        distance: F::MAX_DISTANCE,
        codec,
        plan,
        ids,
        block_size: Some(256),
        memory: Some(16 << 20),
        ..BuildOptions::default()
    };
    let mut builder = Builder::create(&folder.path().join("store"), options).unwrap();
    // Some fingerprints have several ids, and some have the same id twice.
    for (id, &fingerprint) in (0..).zip(stored) {
        builder.insert(fingerprint, id / 2).unwrap();
    }
    (folder, builder.finish().unwrap())
}

/// Returns the expected matches, by comparing every query with every stored fingerprint. `ids` says whether the
/// fingerprints are stored with ids.
fn plain<F: Fingerprint>(stored: &[F], ids: bool, queries: &[F], distance: u32) -> Vec<BatchMatch<F>> {
    let mut matches = Vec::new();
    for (query, &asked) in queries.iter().enumerate() {
        for (id, &fingerprint) in (0..).zip(stored) {
            let found =
                Match { fingerprint, distance: asked.distance(fingerprint), id: ids.then_some(id / 2) };
            if found.distance <= distance {
                matches.push(BatchMatch { query, found });
            }
        }
    }
    sort(&mut matches);
    matches.dedup();
    matches
}

fn sort<F: Fingerprint>(matches: &mut [BatchMatch<F>]) {
    matches.sort_by_key(|&BatchMatch { query, found }| (query, found.distance, found.fingerprint, found.id));
}

/// Checks that a batch query by a given plan finds each expected match exactly once.
fn check_design<F: Fingerprint>(
    store: &Snapshot<F>,
    queries: &[F],
    distance: u32,
    plan: &BatchPlan,
    expected: &[BatchMatch<F>],
) {
    let matches = Mutex::new(Vec::new());
    let visitor = |found: &[BatchMatch<F>]| {
        matches.lock().unwrap().extend_from_slice(found);
        ControlFlow::Continue(())
    };
    store.stream_all(queries, distance, plan, &visitor).unwrap();
    let mut matches = matches.into_inner().unwrap();
    sort(&mut matches);
    assert_eq!(matches, expected, "{plan:?}, distance {distance}");
}

fn check<F: Fingerprint>(stored: &[u128], queries: &[u128], distance: u32, plan: &BatchPlan, codec: Codec) {
    let stored: Vec<F> = stored.iter().map(|&value| F::from_u128(value)).collect();
    let queries: Vec<F> = queries.iter().map(|&value| F::from_u128(value)).collect();
    for ids in [false, true] {
        let (_folder, store) = build(&stored, ids, codec);
        check_design(&store, &queries, distance, plan, &plain(&stored, ids, &queries, distance));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Checks that a batch query by any plan finds the same matches as a comparison of each query with each stored
    /// fingerprint. The fingerprints lie near a few centres, so that some differ from a query in slightly more bits
    /// than the distance.
    #[test]
    fn every_design_equals_the_plain_loop(
        centres in prop::collection::vec(any::<u128>(), 1..6),
        stored in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(0_u32..128, 0..7)), 0..500),
        queries in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(0_u32..128, 0..5)), 0..60),
        distance in 0_u32..=8,
        flips in 0_u32..=8,
        group_bits in 0_u32..=12,
        index_bits in 0_u32..=12,
        codec in 0_usize..3,
    ) {
        let near = |picks: &[(prop::sample::Index, Vec<u32>)]| -> Vec<u128> {
            let flip = |value: u128, bit: &u32| value ^ 1 << bit ^ 1 << (bit / 2);
            picks.iter().map(|(centre, bits)| bits.iter().fold(*centre.get(&centres), flip)).collect()
        };
        let (stored, queries) = (near(&stored), near(&queries));
        let flips = flips.min(distance);
        let plan = BatchPlan { group_bits, index_bits, flips, tails: distance - flips };
        check::<u64>(&stored, &queries, distance, &plan, Codec::ALL[codec]);
        check::<u128>(&stored, &queries, distance, &plan, Codec::ALL[codec]);
    }
}

/// Checks that batch queries find all matches among difficult fingerprints: the smallest and the largest
/// fingerprint, fingerprints that differ from them in one bit, and thousands of fingerprints that agree in most bits.
#[test]
fn adversarial_sets() {
    let ends = [0, u128::MAX, u128::from(u64::MAX), 1, 1 << 63, 1 << 127];
    let mut stored: Vec<u128> = ends.iter().flat_map(|end| (0..128).map(move |bit| end ^ 1 << bit)).collect();
    stored.extend(ends);
    stored.extend((0..3000).map(|i| 0xabcd << 112 | 0xabcd << 48 | i));
    stored.extend((0..3000_u128).map(|i| i << 40 | i << 100 | 0x77));
    let mut queries: Vec<u128> = stored.iter().step_by(70).copied().collect();
    queries.extend([queries[0]; 3]);
    queries.extend(ends);
    for plan in [
        BatchPlan::direct(3),
        BatchPlan { group_bits: 0, index_bits: 18, flips: 0, tails: 3 },
        BatchPlan { group_bits: 16, index_bits: 16, flips: 2, tails: 1 },
        BatchPlan { group_bits: 9, index_bits: 6, flips: 1, tails: 2 },
        BatchPlan { group_bits: 20, index_bits: 3, flips: 3, tails: 0 },
    ] {
        check::<u64>(&stored, &queries, 3, &plan, Codec::Gap);
        check::<u128>(&stored, &queries, 3, &plan, Codec::EliasFano);
    }
}

#[test]
fn nothing_stored_or_nothing_asked() {
    let (_folder, empty) = build::<u64>(&[], true, Codec::Gap);
    let (_other, one) = build::<u64>(&[7], true, Codec::Gap);
    for method in [BatchMethod::Auto, BatchMethod::Stream, BatchMethod::LookUp] {
        assert_eq!(empty.batch_query_by(&[], 3, method).unwrap(), []);
        assert_eq!(empty.batch_query_by(&[1, 2], 3, method).unwrap(), []);
        assert_eq!(one.batch_query_by(&[], 3, method).unwrap(), []);
        let found = one.batch_query_by(&[u64::MAX, 6], 3, method).unwrap();
        assert_eq!(found.iter().map(|m| (m.query, m.found.distance)).collect::<Vec<_>>(), [(1, 1)]);
        assert!(matches!(one.batch_query_by(&[1], 17, method), Err(Error::Distance { .. })));
    }
}

#[test]
fn the_cheaper_method_is_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let mut builder = Builder::<u64>::create(&folder.path().join("store"), BuildOptions::default()).unwrap();
    (0..100_000).for_each(|i| builder.insert(i * 0x9e37_79b9_7f4a, i).unwrap());
    let store = builder.finish().unwrap();
    assert_eq!(store.batch_method(1, 3), BatchMethod::LookUp);
    assert_eq!(store.batch_method(100_000, 3), BatchMethod::Stream);
}
