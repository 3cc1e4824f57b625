//! Which tables bring the near ones of a set together with the least work.

use std::sync::OnceLock;

use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::plan::{self, Plan, TablePlan};
use crate::radix::first_bits;

/// One table of a join: fingerprints are near in it if at most `flips` of the prefix bits differ.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prefix<F> {
    /// The prefix bits.
    pub(super) mask: F,
    pub(super) flips: u32,
}

/// The plans of each distance, of 64 and of 128 bits, each by the prefixes of its tables. Making and checking the plans of a
/// distance takes a millisecond, once.
static PLANS: [[OnceLock<Vec<Design>>; DISTANCES]; 2] = [const { [const { OnceLock::new() }; DISTANCES] }; 2];

/// The prefixes of a plan's tables, widened.
type Design = Vec<Prefix<u128>>;
const DISTANCES: usize = u128::MAX_DISTANCE as usize + 1;

/// Up to here all pairs of a set are compared, without looking for a plan.
pub(super) const FEW: usize = 160;

// The work of each step, in nanoseconds on a core: only the ratios matter.

/// Moving a fingerprint to its place by one digit.
const MOVE: f64 = 4.0;
/// Comparing two.
const COMPARE: f64 = 1.2;
/// Looking up a group by its prefix.
const LOOK_UP: f64 = 20.0;
/// Most bits of one digit.
const DIGIT_BITS: f64 = 10.0;
/// The longest prefix that is looked up with flips: there is a number for each.
pub(super) const MAX_FLIPPED_PREFIX: u32 = 20;

/// Returns the plans to choose from for a distance.
fn designs<F: Fingerprint>(distance: u32) -> &'static [Design] {
    let known = &PLANS[usize::from(F::BITS > u64::BITS)][distance as usize];
    known.get().unwrap_or_else(|| {
        let prefix =
            |table: &TablePlan<F>| Prefix { mask: table.prefix_mask().to_u128(), flips: table.flips };
        let plans = plan::names::<F>(distance).into_iter().map(|name| Plan::<F>::named(&name, distance));
        let plans = plans.filter_map(Result::ok);
        let made = plans.map(|plan| plan.tables().iter().map(prefix).collect()).collect();
        // The plans are made before the cell is locked: a process that is forked meanwhile must not find it locked for ever. If
        // another thread was faster, its plans are equal.
        known.get_or_init(|| made)
    })
}

/// Returns the least work if the fingerprints are random in `bits` bits, and its design; `None` to compare all with all.
pub(super) fn least_work<F: Fingerprint>(
    count: usize,
    bits: u32,
    distance: u32,
) -> (f64, Option<&'static Design>) {
    let mut least = count as f64 * count as f64 / 2.0 * COMPARE;
    let mut best = None;
    // Each table moves every fingerprint once at least: so few are compared in less time.
    if bits <= distance || least <= count as f64 * MOVE {
        return (least, best);
    }
    for design in designs::<F>(distance) {
        let work = design.iter().map(|prefix| work::<F>(count, prefix, bits).0).sum();
        if work < least {
            (least, best) = (work, Some(design));
        }
    }
    (least, best)
}

/// Chooses tables that bring together all near ones of `count` fingerprints, which differ only in these bits. Returns `None`
/// if comparing all with all is less work.
pub(super) fn choose<F: Fingerprint>(count: usize, bits: F, distance: u32) -> Option<Vec<Prefix<F>>> {
    if count <= FEW {
        return None;
    }
    let (_, best) = least_work::<F>(count, bits.count_ones(), distance);
    let tables = best?.iter().map(|prefix| {
        let mask = spread(F::from_u128(prefix.mask), bits);
        let longest = work::<F>(count, prefix, bits.count_ones()).1;
        let mask = if prefix.flips == 0 { mask } else { first_bits(mask, longest) };
        Prefix { mask, flips: prefix.flips }
    });
    // Without a prefix there is nothing to tell fingerprints apart by.
    Some(tables.collect()).filter(|tables: &Vec<Prefix<F>>| tables.iter().all(|table| table.mask != F::ZERO))
}

/// Up to so many are a crowd if they are so alike that tables tell few apart.
const CROWD: usize = 1 << 12;

/// Whether tables bring half of all pairs together, one by one: then to compare all with all is less work than to go on inside of
/// groups that are nearly as large, table by table. A design is chosen as if fingerprints were random, which these are not.
pub(super) fn is_crowd<F: Fingerprint>(values: &[F], tables: &[Prefix<F>]) -> bool {
    /// Pairs that are looked at.
    const SAMPLE: usize = 128;
    if values.len() > CROWD {
        return false;
    }
    let mut together = 0;
    for i in 0..SAMPLE {
        // Two of different places, evenly spread, at all distances from one another.
        let one = i * values.len() / SAMPLE;
        let other = (one + 1 + i * 37 % SAMPLE * (values.len() - 1) / SAMPLE) % values.len();
        let errors = values[one] ^ values[other];
        together += tables.iter().filter(|table| (errors & table.mask).count_ones() <= table.flips).count();
    }
    together * 2 >= SAMPLE
}

/// Whether an eighth of the pairs of some fingerprints are near, of a sample, so that each has twice as many near ones as are `enough`.
pub(super) fn is_dense<F: Fingerprint>(values: &[F], distance: u32, enough: usize) -> bool {
    /// Pairs that are looked at.
    const SAMPLE: usize = 256;
    if values.len() <= FEW || values.len() < 2 * enough {
        return false;
    }
    let near = |i: &usize| {
        let one = i * values.len() / SAMPLE;
        let other = (one + 1 + i * 37 % SAMPLE * (values.len() - 1) / SAMPLE) % values.len();
        one != other && values[one].distance(values[other]) <= distance
    };
    let near = (0..SAMPLE).filter(near).count();
    near * 8 >= SAMPLE && near.saturating_mul(values.len()) >= SAMPLE.saturating_mul(2 * enough)
}

/// A plan's prefix when its bits are shared out among `bits`.
///
/// Each bit represents its own bit of the plan, so any errors among them are errors of the plan. The plan is complete, also
/// if bits are left out.
fn spread<F: Fingerprint>(prefix: F, bits: F) -> F {
    let (count, mut left, mut mask) = (bits.count_ones(), bits, F::ZERO);
    for i in 0..count {
        let bit = F::bit_mask(left.leading_zeros());
        if prefix & F::bit_mask(i * F::BITS / count) != F::ZERO {
            mask = mask | bit;
        }
        left = left & !bit;
    }
    mask
}

/// The work of one table, were the fingerprints random in so many bits; and how many prefix bits to use.
fn work<F: Fingerprint>(count: usize, prefix: &Prefix<u128>, bits: u32) -> (f64, u32) {
    let most = prefix.mask.count_ones() * bits / F::BITS;
    let n = count as f64;
    let moves = |length: u32| n * MOVE * (f64::from(length).min(n.log2()) / DIGIT_BITS).ceil().max(1.0);
    let compares = |length: u32| n * n / 2.0 / f64::from(length).exp2() * COMPARE;
    if prefix.flips == 0 {
        return (moves(most) + compares(most), most);
    }
    let mut best = (f64::INFINITY, 0);
    for length in 1..=most.min(MAX_FLIPPED_PREFIX) {
        let flipped: f64 = (1..=prefix.flips).map(|flips| binomial(length, flips)).sum();
        let look_ups = f64::from(length).exp2() * flipped / 2.0 * LOOK_UP;
        // Sorted as a whole, which is one more move.
        let work = n * MOVE + moves(length) + look_ups + compares(length) * (1.0 + flipped);
        if work < best.0 {
            best = (work, length);
        }
    }
    best
}

/// Number of ways to choose `k` of `n`.
fn binomial(n: u32, k: u32) -> f64 {
    (0..k).map(|i| f64::from(n.saturating_sub(i)) / f64::from(i + 1)).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers whose bits differ from one number with a probability of `share` / 256.
    fn alike(count: usize, share: u64) -> Vec<u64> {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 56
        };
        (0..count).map(|_| (0..64).fold(0, |bits, at| bits | u64::from(next() < share) << at)).collect()
    }

    #[test]
    fn what_is_alike_is_compared_all_with_all() {
        for distance in [8, 11] {
            for count in [1000, 4000] {
                let tables = choose(count, u64::MAX, distance).unwrap();
                assert!(is_crowd(&alike(count, 12), &tables), "{distance} {count}");
                assert!(!is_crowd(&alike(count, 128), &tables), "{distance} {count}");
            }
        }
        // Numbers that are equal in the first half are told apart by the other half.
        let half: Vec<u64> = alike(4000, 128).into_iter().map(|value| value >> 32).collect();
        let tables = choose(4000, u64::from(u32::MAX), 3).unwrap();
        assert!(!is_crowd(&half, &tables));
    }

    /// Whether any `errors` of the bits leave some table near.
    fn complete(tables: &[Prefix<u64>], bits: &[u32], errors: u64, left: u32) -> bool {
        tables.iter().any(|table| (table.mask & errors).count_ones() <= table.flips)
            && (left == 0
                || bits
                    .iter()
                    .enumerate()
                    .all(|(i, &bit)| complete(tables, &bits[i + 1..], errors | u64::bit_mask(bit), left - 1)))
    }

    #[test]
    fn complete_for_any_bits() {
        for bits in [u64::MAX, 0x0f0f_00ff_0000_1110, 0x8000_4000_2000_1001, 0xffff_0000_ffff_0000] {
            let each: Vec<u32> = (0..64).filter(|&bit| bits & u64::bit_mask(bit) != 0).collect();
            for distance in 0..=4 {
                for count in [200, 1000, 100_000, 1 << 24] {
                    let Some(tables) = choose(count, bits, distance) else { continue };
                    assert!(tables.iter().all(|table| table.mask & !bits == 0));
                    assert!(complete(&tables, &each, 0, distance), "{count}, {distance}, {bits:x}");
                }
            }
        }
    }

    #[test]
    fn plans_that_are_known_are_those_that_were_made() {
        fn check<F: Fingerprint + std::fmt::Debug>() {
            for distance in [0, 3, F::MAX_DISTANCE] {
                let masks = || -> Vec<(F, u32)> {
                    let prefixes = designs::<F>(distance).iter().flatten();
                    prefixes.map(|prefix| (F::from_u128(prefix.mask), prefix.flips)).collect()
                };
                let plans = plan::names::<F>(distance).into_iter();
                let plans = plans.filter_map(|name| Plan::<F>::named(&name, distance).ok());
                let made: Vec<(F, u32)> = plans
                    .flat_map(|plan| plan.tables().to_vec())
                    .map(|table| (table.prefix_mask(), table.flips))
                    .collect();
                assert!(!made.is_empty() && masks() == made && masks() == made);
            }
        }
        check::<u64>();
        check::<u128>();
    }

    #[test]
    fn more_fingerprints_take_longer_prefixes() {
        let tables = |count| choose(count, u64::MAX, 3).map_or(0, |tables| tables.len());
        assert_eq!(tables(100), 0);
        assert!(tables(1 << 14) <= tables(1 << 20) && tables(1 << 20) < tables(1 << 27));
        // All are within the distance.
        assert!(choose(1000, 7_u64, 3).is_none());
    }
}
