//! Compares searches in the index with a linear scan.

use super::super::append_vec::mix;
use super::super::multi_index::{MultiIndex, flips};
use crate::fingerprint::Fingerprint;

#[test]
fn flips_are_all_there_once() {
    for bits in [1, 2, 7, 12] {
        for share in 0..bits + 3 {
            let mut found: Vec<u64> = flips(bits, share).collect();
            found.sort_unstable();
            assert!(found.into_iter().eq((0..1 << bits).filter(|flip: &u64| flip.count_ones() < share)));
        }
    }
    assert_eq!((flips(64, 1).count(), flips(64, 3).count()), (1, 1 + 64 + 64 * 63 / 2));
    assert_eq!(flips(63, 2).last(), Some(1 << 62));
}

fn random<F: Fingerprint>(number: u64) -> F {
    F::from_u128(u128::from(mix(number + 1)) << 64 | u128::from(mix(!number)))
}

/// Compares searches at every distance with a linear scan. Creates the index with `MultiIndex::new(built, expected)`. If
/// `fill` is true, fills the index band by band, otherwise fingerprint by fingerprint. Half of the fingerprints are random.
/// The others differ from a query in up to 20 bits, adjacent or spread.
fn same_as_the_plain_loop<F: Fingerprint>(built: u32, expected: u64, fill: bool) {
    let index = MultiIndex::<F>::new(built, expected);
    let query = random::<F>(7);
    let mut stored: Vec<F> = [F::ZERO, F::MAX, query, query, !query].into();
    for i in 0..400 {
        let (start, bits) = ((mix(i) % u64::from(F::BITS)) as u32, 1 + (i % 20) as u32);
        let step = [1, (F::BITS / bits) | 1, 5][(i % 3) as usize];
        let flipped = |x, j| x ^ F::bit_mask((start + j * step) % F::BITS);
        stored.extend([random(i), (0..bits).fold(query, flipped)]);
    }
    let pairs: Vec<(F, u32)> = stored.iter().copied().zip(0..).collect();
    if fill {
        (0..index.band_len()).for_each(|band| index.insert_into_band(band, &pairs));
    } else {
        pairs.iter().for_each(|&(fingerprint, number)| index.insert(fingerprint, number));
    }
    for query in [query, F::ZERO, random(3)] {
        for distance in (0..=16).filter(|&distance| index.is_faster_than_scan(distance, u32::MAX)) {
            let mut found = Vec::new();
            index.search(query, distance, |fingerprint, number| found.push((fingerprint, number)));
            found.sort_unstable_by_key(|&(_, number)| number);
            let near = pairs.iter().copied().filter(|pair| pair.0.distance(query) <= distance);
            assert!(found.into_iter().eq(near), "built for {built}, asked {distance}, {expected} expected");
        }
    }
}

#[test]
fn every_distance_as_the_plain_loop() {
    for expected in [0, 500, 600_000] {
        for fill in [false, true] {
            for built in 0..=16 {
                same_as_the_plain_loop::<u64>(built, expected, fill);
                same_as_the_plain_loop::<u128>(built, expected, fill);
            }
            same_as_the_plain_loop::<u128>(32, expected, fill);
        }
    }
}

#[test]
fn few_are_compared_in_order_and_many_looked_up() {
    let index = MultiIndex::<u64>::new(3, 600_000);
    assert!(!index.is_faster_than_scan(3, 20) && index.is_faster_than_scan(3, 600_000));
    assert!(index.is_faster_than_scan(10, 600_000) && index.is_faster_than_scan(16, 600_000));
    assert!(
        !index.is_faster_than_scan(10, 1000)
            && !index.is_faster_than_scan(40, 600_000)
            && !index.is_faster_than_scan(64, u32::MAX)
    );
    // An index built for a smaller distance also serves larger ones, unless they take too many lookups.
    let exact = MultiIndex::<u64>::new(0, 600_000);
    assert!(
        exact.is_faster_than_scan(1, 600_000)
            && exact.is_faster_than_scan(2, 600_000)
            && !exact.is_faster_than_scan(3, u32::MAX)
    );
}
