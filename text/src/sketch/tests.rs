use proptest::prelude::*;

use super::*;

/// Sketches computed directly by their definition.
fn plain(members: &[u64]) -> [u64; SKETCHES] {
    let words = words(members);
    let mut sketches = [0; SKETCHES];
    for position in 0..POSITIONS {
        let of_round = |&(odd, add): &(u64, u64)| {
            let hashes = words.iter().map(|word| word.wrapping_mul(odd).wrapping_add(add));
            hashes.filter(|hash| (hash >> 55) as usize == position).map(|hash| (hash >> 23) as u32).min()
        };
        let of_all = || {
            let (odd, add) = (CONSTANTS.odd[position], CONSTANTS.add[position]);
            words.iter().map(|&word| (word as u32).wrapping_mul(odd).wrapping_add(add)).min()
        };
        let won = CONSTANTS.rounds.iter().find_map(of_round).or_else(of_all);
        let Some(minimum) = won else { continue };
        sketches[position / 64] |= u64::from(bit_of(minimum, position as u32)) << (position % 64);
    }
    sketches
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    fn some(&mut self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.next()).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn agrees_with_the_definition(seed in any::<u64>(), count in prop_oneof![0_usize..80, 80_usize..1500]) {
        let members = Random(seed).some(count);
        prop_assert_eq!(sketch(&members), plain(&members));
        prop_assert_eq!(OfWords(&words(&members)).run(), plain(&members));
    }

    #[test]
    fn order_and_structure_of_members_do_not_matter(first in any::<u64>(), count in 1_u64..300) {
        let up: Vec<u64> = (0..count).map(|i| first.wrapping_add(i)).collect();
        let down: Vec<u64> = up.iter().rev().copied().collect();
        prop_assert_eq!(Sketched::new(&up), Sketched::new(&down));
    }
}

/// Statistics of the distances of random pairs, as multiples of the values of the binomial distribution: mean of all words, deviation
/// of one word, deviation of all words.
struct Spread {
    mean: f64,
    of_word: f64,
    of_all: f64,
}

/// Measures pairs of sets of `a` and `b` members that share `both` members.
fn spread(
    a: usize,
    b: usize,
    both: usize,
    trials: u32,
    sketch: impl Fn(&[u64]) -> [u64; SKETCHES],
) -> Spread {
    let similarity = both as f64 / (a + b - both) as f64;
    let p = (1.0 - similarity) / 2.0;
    let mut random = Random((a * 7 + b * 3 + both) as u64);
    let (mut sum, mut of_word, mut of_all) = (0.0, 0.0, 0.0);
    for _ in 0..trials {
        let common = random.some(both);
        let [x, y] = [a, b].map(|size| sketch(&[&common[..], &random.some(size - both)].concat()));
        let distances = x.iter().zip(y).map(|(x, y)| f64::from((x ^ y).count_ones()));
        let (mut all, mut squares) = (0.0, 0.0);
        for distance in distances {
            all += distance;
            squares += (distance - 64.0 * p).powi(2);
        }
        sum += all;
        of_word += squares / SKETCHES as f64;
        of_all += (all - POSITIONS as f64 * p).powi(2);
    }
    let trials = f64::from(trials);
    let variance = 64.0 * p * (1.0 - p);
    Spread {
        mean: sum / trials / POSITIONS as f64 / p,
        of_word: (of_word / trials / variance).sqrt(),
        of_all: (of_all / trials / variance / SKETCHES as f64).sqrt(),
    }
}

/// Sizes of two sets and of their intersection. Sets have equal or very different sizes, and similarities from 0 to 0.9.
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

/// A bit differs with probability (1 - J) / 2, in one word and in all as if bits were independent.
#[test]
fn bits_differ_as_the_formula_says() {
    for (a, b, both) in PAIRS {
        let trials = if a > 1000 { 150 } else { 600 };
        let Spread { mean, of_word, of_all } = spread(a, b, both, trials, sketch);
        let p = (1.0 - both as f64 / (a + b - both) as f64) / 2.0;
        let error = ((1.0 - p) / p / (POSITIONS as f64 * f64::from(trials))).sqrt();
        assert!((mean - 1.0).abs() < 4.0 * error, "{a} {b} {both}: mean {mean}, error {error}");
        let off = 4.0 / f64::from(2 * trials).sqrt();
        assert!((0.95 - off / 2.0..1.03 + off / 2.0).contains(&of_word), "{a} {b} {both}: a word {of_word}");
        assert!((0.85 - off..1.02 + off).contains(&of_all), "{a} {b} {both}: all {of_all}");
    }
}

/// The test above can fail: a bit that depends on the member alone is the same in all positions that the member wins.
#[test]
fn a_bit_has_to_depend_on_the_position() {
    let of_member = |members: &[u64]| {
        let (words, mut sketches) = (words(members), [0; SKETCHES]);
        for position in 0..POSITIONS {
            let (odd, add) = (CONSTANTS.odd[position], CONSTANTS.add[position]);
            let won = words.iter().min_by_key(|word| (**word as u32).wrapping_mul(odd).wrapping_add(add));
            sketches[position / 64] |= won.map_or(0, |word| word >> 63) << (position % 64);
        }
        sketches
    };
    for (a, b, both) in [(2, 2, 1), (4, 5, 4)] {
        let spread = spread(a, b, both, 200, of_member);
        assert!(spread.of_word > 1.15 && spread.of_all > 1.8, "{} {}", spread.of_word, spread.of_all);
    }
}

#[test]
fn equal_sets_are_equal_and_others_are_not() {
    let mut random = Random(3);
    for count in [1, 2, 31, 500] {
        let set = random.some(count);
        let mut other = set.clone();
        other[count / 2] ^= 1;
        let [set, other] = [set, other].map(|set| Sketched::new(&set).unwrap());
        assert_eq!(set.distance(&set), 0);
        assert_ne!((set.sum, set.digest()), (other.sum, other.digest()));
    }
    assert_eq!(sketch(&[]), [0; SKETCHES]);
    assert_eq!(Sketched::new(&[]), None);
}
