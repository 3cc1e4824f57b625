use proptest::prelude::*;

use super::*;

/// Returns the bands of a signature, computed directly from their definition.
fn minhash_by_definition(members: &[u64]) -> [u64; BANDS] {
    let words = words_from_members(members);
    let mut bands = [0; BANDS];
    for position in 0..SIGNATURE_BITS {
        let round_minimum = |&(odd, add): &(u64, u64)| {
            let hashes = words.iter().map(|word| word.wrapping_mul(odd).wrapping_add(add));
            hashes.filter(|hash| (hash >> 55) as usize == position).map(|hash| (hash >> 23) as u32).min()
        };
        let minimum_over_all = || {
            let (odd, add) = (CONSTANTS.odd[position], CONSTANTS.add[position]);
            words.iter().map(|&word| (word as u32).wrapping_mul(odd).wrapping_add(add)).min()
        };
        let won = CONSTANTS.rounds.iter().find_map(round_minimum).or_else(minimum_over_all);
        let Some(minimum) = won else { continue };
        bands[position / 64] |= u64::from(signature_bit(minimum, position as u32)) << (position % 64);
    }
    bands
}

struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN_GAMMA);
        mix(self.0)
    }

    fn members(&mut self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.next()).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn agrees_with_the_definition(seed in any::<u64>(), count in prop_oneof![0_usize..80, 80_usize..1500]) {
        let members = SplitMix(seed).members(count);
        prop_assert_eq!(minhash(&members), minhash_by_definition(&members));
        prop_assert_eq!(SignatureKernel(&words_from_members(&members)).run(), minhash_by_definition(&members));
    }

    #[test]
    fn order_and_structure_of_members_do_not_matter(first in any::<u64>(), count in 1_u64..300) {
        let up: Vec<u64> = (0..count).map(|i| first.wrapping_add(i)).collect();
        let down: Vec<u64> = up.iter().rev().copied().collect();
        prop_assert_eq!(Signature::new(&up), Signature::new(&down));
    }
}

/// Measured Hamming distances between the signatures of random pairs of sets: the mean, the standard deviation for one band, and
/// the standard deviation for a whole signature. Each statistic is divided by its value in the binomial distribution, so 1 means
/// agreement.
struct DistanceStatistics {
    mean: f64,
    band_deviation: f64,
    signature_deviation: f64,
}

/// Measures the distances between the signatures of `trials` random pairs of sets. The first set of a pair has `a` members, the
/// second set has `b` members, and `both` members are in both sets.
fn distance_statistics(
    a: usize,
    b: usize,
    both: usize,
    trials: u32,
    minhash: impl Fn(&[u64]) -> [u64; BANDS],
) -> DistanceStatistics {
    let similarity = both as f64 / (a + b - both) as f64;
    let p = (1.0 - similarity) / 2.0;
    let mut random = SplitMix((a * 7 + b * 3 + both) as u64);
    let (mut sum, mut band_deviation, mut signature_deviation) = (0.0, 0.0, 0.0);
    for _ in 0..trials {
        let common = random.members(both);
        let [x, y] = [a, b].map(|size| minhash(&[&common[..], &random.members(size - both)].concat()));
        let distances = x.iter().zip(y).map(|(x, y)| f64::from((x ^ y).count_ones()));
        let (mut all, mut squares) = (0.0, 0.0);
        for distance in distances {
            all += distance;
            squares += (distance - 64.0 * p).powi(2);
        }
        sum += all;
        band_deviation += squares / BANDS as f64;
        signature_deviation += (all - SIGNATURE_BITS as f64 * p).powi(2);
    }
    let trials = f64::from(trials);
    let variance = 64.0 * p * (1.0 - p);
    DistanceStatistics {
        mean: sum / trials / SIGNATURE_BITS as f64 / p,
        band_deviation: (band_deviation / trials / variance).sqrt(),
        signature_deviation: (signature_deviation / trials / variance / BANDS as f64).sqrt(),
    }
}

/// The pairs of sets to test, each as the size of the first set, of the second set and of their intersection. Some sizes are equal,
/// some very different. The Jaccard similarities are from 0 to 0.9.
const PAIRS: [(usize, usize, usize); 14] = [
    (1, 1, 0),
    (1, 2, 1),
    (4, 5, 4),
    (8, 8, 7),
    (9, 7, 7),
    (20, 18, 18),
    (30, 30, 27),
    (64, 65, 60),
    (100, 100, 89),
    (500, 500, 444),
    (500, 400, 400),
    (1000, 10, 10),
    (10_000, 10_000, 9_474),
    (10_000, 300, 300),
];

/// In two signatures, a bit differs with probability (1 - J) / 2, where J is the Jaccard similarity. The distances of bands and of
/// whole signatures have nearly the same standard deviations as those of independent bits.
#[test]
fn bits_differ_as_the_formula_says() {
    for (a, b, both) in PAIRS {
        let trials = if a > 1000 { 150 } else { 600 };
        let DistanceStatistics { mean, band_deviation, signature_deviation } =
            distance_statistics(a, b, both, trials, minhash);
        let p = (1.0 - both as f64 / (a + b - both) as f64) / 2.0;
        let error = ((1.0 - p) / p / (SIGNATURE_BITS as f64 * f64::from(trials))).sqrt();
        assert!((mean - 1.0).abs() < 4.0 * error, "{a} {b} {both}: mean {mean}, error {error}");
        let off = 4.0 / f64::from(2 * trials).sqrt();
        assert!(
            (0.95 - off / 2.0..1.03 + off / 2.0).contains(&band_deviation),
            "{a} {b} {both}: a word {band_deviation}"
        );
        assert!(
            (0.85 - off..1.02 + off).contains(&signature_deviation),
            "{a} {b} {both}: all {signature_deviation}"
        );
    }
}

/// If a bit depended only on the member with the minimum hash, and not on the position, the standard deviations of the distances
/// would be too large. The reason is that all positions with the same minimum member would have the same bit.
#[test]
fn a_bit_has_to_depend_on_the_position() {
    let from_members_alone = |members: &[u64]| {
        let (words, mut bands) = (words_from_members(members), [0; BANDS]);
        for position in 0..SIGNATURE_BITS {
            let (odd, add) = (CONSTANTS.odd[position], CONSTANTS.add[position]);
            let won = words.iter().min_by_key(|word| (**word as u32).wrapping_mul(odd).wrapping_add(add));
            bands[position / 64] |= won.map_or(0, |word| word >> 63) << (position % 64);
        }
        bands
    };
    for (a, b, both) in [(2, 2, 1), (4, 5, 4)] {
        let distance_statistics = distance_statistics(a, b, both, 200, from_members_alone);
        assert!(
            distance_statistics.band_deviation > 1.15 && distance_statistics.signature_deviation > 1.8,
            "{} {}",
            distance_statistics.band_deviation,
            distance_statistics.signature_deviation
        );
    }
}

#[test]
fn equal_sets_are_equal_and_others_are_not() {
    let mut random = SplitMix(3);
    for count in [1, 2, 31, 500] {
        let set = random.members(count);
        let mut other = set.clone();
        other[count / 2] ^= 1;
        let [set, other] = [set, other].map(|set| Signature::new(&set).unwrap());
        assert_eq!(set.distance(&set), 0);
        assert_ne!((set.sum, set.digest()), (other.sum, other.digest()));
    }
    assert_eq!(minhash(&[]), [0; BANDS]);
    assert_eq!(Signature::new(&[]), None);
}
