use proptest::prelude::*;

use super::*;

#[path = "../../tests/support/random.rs"]
mod random;

fn plain<F: Fingerprint>(fingerprints: &[F], distance: u32) -> Vec<IndexPair> {
    let mut pairs = Vec::new();
    for (a, &x) in fingerprints.iter().enumerate() {
        for (b, &y) in fingerprints.iter().enumerate().skip(a + 1) {
            if x.distance(y) <= distance {
                pairs.push(IndexPair { a, b, distance: x.distance(y) });
            }
        }
    }
    pairs
}

/// Checks a join with a visitor of dense groups. It must visit only near pairs, each at most once. If it does not
/// visit a near pair, both fingerprints of the pair must be in the same dense group. `expected` has all near pairs.
fn check_dense_groups<F: Fingerprint>(fingerprints: &[F], distance: u32, expected: &[IndexPair]) {
    for pairs_per_member in [1, 8, 64] {
        let (found, dense_groups) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let visitor = |some: &[F]| dense_groups.lock().unwrap().push(some.to_vec());
        visit_pairs_except_dense(
            fingerprints,
            distance,
            DenseGroupVisitor { pairs_per_member, visitor: &visitor },
            |some| {
                lock(&found).extend_from_slice(some);
                ControlFlow::Continue(())
            },
        )
        .unwrap();
        let mut found = found.into_inner().unwrap();
        found.sort_unstable();
        assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{pairs_per_member}, {distance}");
        assert!(
            found.iter().all(|pair| expected.binary_search(pair).is_ok()),
            "{pairs_per_member}, {distance}"
        );
        let mut dense_groups = dense_groups.into_inner().unwrap();
        dense_groups.iter_mut().for_each(|group| group.sort_unstable());
        let left = expected.iter().filter(|pair| found.binary_search(pair).is_err());
        for pair in left {
            let is_member = |group: &Vec<F>, at: usize| group.binary_search(&fingerprints[at]).is_ok();
            assert!(dense_groups.iter().any(|group| is_member(group, pair.a) && is_member(group, pair.b)));
        }
    }
}

fn check<F: Fingerprint>(values: impl IntoIterator<Item = u128>, distance: u32) {
    let mut fingerprints: Vec<F> = values.into_iter().map(F::from_u128).collect();
    fingerprints.sort_unstable();
    fingerprints.dedup();
    let (found, expected) = (self_join(&fingerprints, distance).unwrap(), plain(&fingerprints, distance));
    // Not assert_eq!, which would print up to a million pairs.
    assert!(found == expected, "{} of {} pairs, distance {distance}", found.len(), expected.len());
    if fingerprints.len() <= 1 << 12 {
        check_dense_groups(&fingerprints, distance, &expected);
    }
}

/// Checks that `join_positions` and `label_clusters` return the same pairs and labels as a comparison of all pairs,
/// for fingerprints in any order and with repeats.
fn check_positions<F: Fingerprint>(values: &[u128], distance: u32) {
    let fingerprints: Vec<F> = values.iter().map(|&value| F::from_u128(value)).collect();
    let expected = plain(&fingerprints, distance);
    assert!(join_positions(&fingerprints, distance, None).unwrap() == expected, "distance {distance}");
    let mut components = Components::new(fingerprints.len());
    expected.iter().for_each(|pair| components.connect(pair.a, pair.b));
    let firsts: Vec<usize> = (0..fingerprints.len()).map(|member| components.first(member)).collect();
    let label = |first: usize| (0..first).filter(|&member| firsts[member] == member).count() as u32;
    let labels: Vec<u32> = firsts.iter().map(|&first| label(first)).collect();
    assert_eq!(label_clusters(&fingerprints, distance, None).unwrap(), labels, "distance {distance}");
}

#[test]
fn positions_are_joined_until_a_callback_says_no() {
    let fingerprints: Vec<u64> = (0..3000).map(|i| i % 1500).collect();
    let breaks = crate::progress::ProgressCallback::new(|_| ControlFlow::Break(()));
    let (pairs, labels) =
        (join_positions(&fingerprints, 3, Some(&breaks)), label_clusters(&fingerprints, 3, Some(&breaks)));
    assert!(matches!((pairs, labels), (Err(Error::Cancelled), Err(Error::Cancelled))));
    let equal = vec![7_u64; 100_000];
    assert!(matches!(join_positions(&equal, 0, None), Err(Error::Refused(_))));
    assert_eq!(label_clusters(&equal, 0, None).unwrap(), vec![0; 100_000]);
    assert!(join_positions::<u64>(&[], 3, None).unwrap().is_empty());
    assert!(label_clusters::<u64>(&[], 3, None).unwrap().is_empty());
}

/// Returns 128 random bits.
fn random(state: &mut u64) -> u128 {
    u128::from(random::random(state)) << 64 | u128::from(random::random(state))
}

/// Returns `value` with at most `flips` random bits flipped.
fn near(state: &mut u64, value: u128, flips: u32) -> u128 {
    (0..flips).fold(value, |value, _| value ^ 1 << (random(state) % 128))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn equals_the_plain_loop(
        centres in prop::collection::vec(any::<u128>(), 1..6),
        picks in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(0_u32..128, 0..6)), 0..300),
        distance in 0_u32..=16,
    ) {
        let values: Vec<u128> = picks
            .iter()
            .map(|(centre, bits)| bits.iter().fold(*centre.get(&centres), |value, bit| value ^ 1 << bit))
            .collect();
        check_positions::<u64>(&values, distance);
        check_positions::<u128>(&values, distance * 2);
        check::<u64>(values.iter().copied(), distance);
        check::<u128>(values, distance * 2);
    }

    /// A join finds the same near pairs as a comparison of all pairs, also if some bits are equal in all
    /// fingerprints.
    #[test]
    fn equals_the_plain_loop_where_few_bits_differ(
        bits in any::<u128>(),
        other in any::<u128>(),
        count in 0_usize..3000,
        distance in 0_u32..=10,
        seed in any::<u64>(),
    ) {
        let mut state = seed;
        let values: Vec<u128> = (0..count).map(|_| random(&mut state) & bits & other | !bits >> 1).collect();
        check::<u64>(values.iter().copied(), distance);
        check::<u128>(values, distance);
    }
}

#[test]
fn both_ends_and_one_bit_neighbours() {
    let values: Vec<u128> = (0..64).map(|bit| 1 << bit).chain([0, u128::MAX, u128::from(u64::MAX)]).collect();
    for distance in 0..=4 {
        check::<u64>(values.iter().copied(), distance);
        check::<u128>(values.iter().copied(), distance);
    }
    assert!(self_join::<u64>(&[1, 1], 3).is_err());
    assert!(self_join::<u64>(&[1, 2], 17).is_err());
    for distance in 0..=16 {
        check::<u64>([], distance);
        check::<u64>([7], distance);
        check::<u64>([0, u128::MAX], distance);
        check::<u64>([5, 4], distance);
    }
}

#[test]
fn every_distance() {
    let mut state = 1;
    let mut values = vec![0, u128::MAX];
    for _ in 0..150 {
        let centre = random(&mut state);
        values.extend((0..20).map(|flips| near(&mut state, centre, flips)));
    }
    for distance in (0..=10).chain([13, 16]) {
        check::<u64>(values.iter().copied(), distance);
        check::<u128>(values.iter().copied(), distance * 2);
    }
}

/// Checks that a join finds all near pairs of fingerprints that have many bits in common, contiguous or scattered.
/// They need a plan of their own, because a plan for random fingerprints would compare all pairs.
#[test]
fn many_bits_in_common() {
    for mask in [0xff_ffff_u128, 0x0f03_0303_0707_0707 | 1 << 100, 0xfff << 52 | 0xfff] {
        for distance in [0, 1, 3, 6, 10] {
            let mut state = 3;
            let common: Vec<u128> = (0..3000).map(|_| random(&mut state) & mask | 1 << 60).collect();
            check::<u64>(common.iter().copied(), distance);
            check::<u128>(common.iter().copied(), distance);
            // Together with random fingerprints.
            let others = (0..3000).map(|_| random(&mut state));
            check::<u64>(common.into_iter().chain(others), distance);
        }
    }
}

/// Checks that a join finds all near pairs in a chain of fingerprints: each differs in one bit from the one before.
#[test]
fn chains() {
    let gray = |i: u128| i ^ i >> 1;
    for (distance, shift) in [(1, 0), (3, 20), (6, 40), (8, 52)] {
        check::<u64>((0..4096).map(|i| gray(i) << shift), distance);
        check::<u128>((0..4096).map(|i| gray(i) << (shift * 2)), distance);
    }
}

/// Checks that a join finds all near pairs of a set that is so large that its parts are divided between the cores.
#[test]
fn large_sets() {
    let mut state = 5;
    let mut values = Vec::new();
    for i in 0..20_000 {
        let centre = random(&mut state);
        values.push(centre);
        values.push(near(&mut state, centre, i % 7));
    }
    // A quarter of the fingerprints share their first half.
    values[30_000..].iter_mut().for_each(|value| *value = *value << 32 >> 32 | 0x1234_5678 << 96);
    for distance in [3, 6] {
        check::<u64>(values.iter().map(|value| value >> 64), distance);
        check::<u128>(values.iter().copied(), distance);
    }
}

#[test]
fn the_same_on_any_number_of_threads() {
    let mut state = 9;
    let mut fingerprints: Vec<u64> = (0..70_000).map(|_| random(&mut state) as u64 >> 40).collect();
    fingerprints.sort_unstable();
    fingerprints.dedup();
    for distance in [1, 4] {
        let join = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| self_join(&fingerprints, distance).unwrap())
        };
        let one = join(1);
        assert!(!one.is_empty() && one == join(2) && one == join(5));
    }
}
