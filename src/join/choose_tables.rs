//! Choice of the tables of a join for the least work. A table is determined by the mask of its prefix, and the
//! number of prefix bits that may differ in a pair.

use std::sync::OnceLock;

use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::plan::{self, Plan, TablePlan};
use crate::radix::first_bits;

/// One table of a join. The table finds the pairs within the distance whose prefixes (the bits of `mask`) differ in
/// at most `flips` bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct JoinPrefix<F> {
    /// Mask of the prefix bits, which may be any bits of a fingerprint.
    pub(super) mask: F,
    pub(super) flips: u32,
}

/// Plans that a join may use, by the width of the fingerprints (first 64, then 128 bits) and by the distance. They
/// are kept once created, because creating and checking the plans of one distance takes a millisecond.
static PLANS: [[OnceLock<Vec<JoinPlan>>; DISTANCE_COUNT]; 2] =
    [const { [const { OnceLock::new() }; DISTANCE_COUNT] }; 2];

/// Plan of a join: the prefix of each of its tables. In a plan for 64-bit fingerprints, the upper 64 bits of each
/// prefix mask are zero.
type JoinPlan = Vec<JoinPrefix<u128>>;
/// Number of possible distances: from 0 to [`Fingerprint::MAX_DISTANCE`] of 128-bit fingerprints.
const DISTANCE_COUNT: usize = u128::MAX_DISTANCE as usize + 1;

/// Sets of at most this number of fingerprints are joined without tables: all pairs are compared.
pub(super) const COMPARE_ALL_MAX: usize = 160;

// Times are in nanoseconds on one core. Only their ratios matter for the choice.

/// Time to move one fingerprint in one partition step (see [`DIGIT_BITS`]), in nanoseconds.
const MOVE_NS: f64 = 4.0;
/// Time to compare two fingerprints, in nanoseconds.
const COMPARE_NS: f64 = 1.2;
/// Time to look up the group of fingerprints with a given prefix, in nanoseconds.
const LOOK_UP_NS: f64 = 20.0;
/// Average number of prefix bits that one partition step uses to divide the fingerprints. The constant is used for
/// estimates only.
const DIGIT_BITS: f64 = 10.0;
/// Maximum length, in bits, of a prefix with flips. The length is limited because the join keeps a counter for each
/// value of such a prefix.
pub(super) const MAX_FLIPPED_PREFIX: u32 = 20;

/// Returns the plans for a distance. A join chooses one of them.
fn join_plans<F: Fingerprint>(distance: u32) -> &'static [JoinPlan] {
    let known = &PLANS[usize::from(F::BITS > u64::BITS)][distance as usize];
    known.get().unwrap_or_else(|| {
        let prefix =
            |table: &TablePlan<F>| JoinPrefix { mask: table.prefix_mask().to_u128(), flips: table.flips };
        let plans = plan::names::<F>(distance).into_iter().map(|name| Plan::<F>::named(&name, distance));
        let plans = plans.filter_map(Result::ok);
        let made = plans.map(|plan| plan.tables().iter().map(prefix).collect()).collect();
        // Creates the plans before it locks the cell. If the process is forked meanwhile, the cell must not
        // stay locked in the new process. If another thread was faster, its plans are equal.
        known.get_or_init(|| made)
    })
}

/// Estimates the least work to join `count` fingerprints that have `bits` random bits and are equal in all
/// other bits. Returns the work in nanoseconds, and the plan with the least work. If comparing all pairs is the
/// least work, there is `None` in place of the plan.
pub(super) fn min_work<F: Fingerprint>(
    count: usize,
    bits: u32,
    distance: u32,
) -> (f64, Option<&'static JoinPlan>) {
    let mut least = count as f64 * count as f64 / 2.0 * COMPARE_NS;
    let mut best = None;
    // Each table moves every fingerprint at least once. If that takes longer, all pairs are compared.
    if bits <= distance || least <= count as f64 * MOVE_NS {
        return (least, best);
    }
    for design in join_plans::<F>(distance) {
        let work = design.iter().map(|prefix| table_work::<F>(count, prefix, bits).0).sum();
        if work < least {
            (least, best) = (work, Some(design));
        }
    }
    (least, best)
}

/// Chooses the tables for a join of `count` fingerprints that differ only in bits of the mask `bits`. Returns
/// `None` if comparing all pairs is less work.
pub(super) fn choose_tables<F: Fingerprint>(
    count: usize,
    bits: F,
    distance: u32,
) -> Option<Vec<JoinPrefix<F>>> {
    if count <= COMPARE_ALL_MAX {
        return None;
    }
    let (_, best) = min_work::<F>(count, bits.count_ones(), distance);
    let tables = best?.iter().map(|prefix| {
        let mask = spread_mask(F::from_u128(prefix.mask), bits);
        let longest = table_work::<F>(count, prefix, bits.count_ones()).1;
        let mask = if prefix.flips == 0 { mask } else { first_bits(mask, longest) };
        JoinPrefix { mask, flips: prefix.flips }
    });
    // A table without prefix bits would not partition the fingerprints.
    Some(tables.collect())
        .filter(|tables: &Vec<JoinPrefix<F>>| tables.iter().all(|table| table.mask != F::ZERO))
}

/// Maximum number of fingerprints of a set that [`is_hard_to_split`] may return true for. For larger sets, comparing
/// all pairs would be too much work.
const HARD_TO_SPLIT_MAX: usize = 1 << 12;

/// Whether the tables hardly split a set into groups. Then comparing all pairs of the set is less work than
/// comparing the pairs of every group of each table. This happens if the fingerprints are similar, since the
/// tables were chosen for random fingerprints.
///
/// For each pair of a sample, the function counts the tables that put both fingerprints in a common group. The set
/// is hard to split if the sum of these counts is at least half the number of sampled pairs.
pub(super) fn is_hard_to_split<F: Fingerprint>(values: &[F], tables: &[JoinPrefix<F>]) -> bool {
    /// Number of sampled pairs.
    const SAMPLE: usize = 128;
    if values.len() > HARD_TO_SPLIT_MAX {
        return false;
    }
    let mut in_common_group = 0;
    for i in 0..SAMPLE {
        // The positions are evenly spread, with varying distances between the two.
        let one = i * values.len() / SAMPLE;
        let other = (one + 1 + i * 37 % SAMPLE * (values.len() - 1) / SAMPLE) % values.len();
        let errors = values[one] ^ values[other];
        in_common_group +=
            tables.iter().filter(|table| (errors & table.mask).count_ones() <= table.flips).count();
    }
    in_common_group * 2 >= SAMPLE
}

/// Whether fingerprints are a dense group, estimated from a sample of their pairs. In a dense group, at least an
/// eighth of the pairs are near (within `distance` bits), and an average fingerprint is near at least
/// `2 * pairs_per_member` others.
pub(super) fn is_dense<F: Fingerprint>(values: &[F], distance: u32, pairs_per_member: usize) -> bool {
    /// Number of sampled pairs.
    const SAMPLE: usize = 256;
    if values.len() <= COMPARE_ALL_MAX || values.len() < 2 * pairs_per_member {
        return false;
    }
    let near = |i: &usize| {
        let one = i * values.len() / SAMPLE;
        let other = (one + 1 + i * 37 % SAMPLE * (values.len() - 1) / SAMPLE) % values.len();
        one != other && values[one].distance(values[other]) <= distance
    };
    let near = (0..SAMPLE).filter(near).count();
    near * 8 >= SAMPLE && near.saturating_mul(values.len()) >= SAMPLE.saturating_mul(2 * pairs_per_member)
}

/// Adapts a prefix of a plan to fingerprints that differ only in the bits of the mask `bits`. `prefix` is the mask
/// of the prefix. Returns the mask of the adapted prefix, which has only bits of `bits`.
///
/// The n bits of `bits` are mapped to n bit positions, spread evenly over the fingerprint. A bit is in the returned
/// mask if its position is in `prefix`. So tables with adapted prefixes find all near pairs, like the plan.
fn spread_mask<F: Fingerprint>(prefix: F, bits: F) -> F {
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

/// Estimates the work of one table for `count` fingerprints that have `bits` random bits and are equal in all
/// other bits. Returns the work in nanoseconds, and the length of the prefix to use, in bits.
fn table_work<F: Fingerprint>(count: usize, prefix: &JoinPrefix<u128>, bits: u32) -> (f64, u32) {
    let most = prefix.mask.count_ones() * bits / F::BITS;
    let n = count as f64;
    let moves = |length: u32| n * MOVE_NS * (f64::from(length).min(n.log2()) / DIGIT_BITS).ceil().max(1.0);
    let compares = |length: u32| n * n / 2.0 / f64::from(length).exp2() * COMPARE_NS;
    if prefix.flips == 0 {
        return (moves(most) + compares(most), most);
    }
    let mut best = (f64::INFINITY, 0);
    for length in 1..=most.min(MAX_FLIPPED_PREFIX) {
        let flipped: f64 = (1..=prefix.flips).map(|flips| binomial(length, flips)).sum();
        let look_ups = f64::from(length).exp2() * flipped / 2.0 * LOOK_UP_NS;
        // The fingerprints are sorted by the whole prefix, which takes one more move.
        let work = n * MOVE_NS + moves(length) + look_ups + compares(length) * (1.0 + flipped);
        if work < best.0 {
            best = (work, length);
        }
    }
    best
}

/// Binomial coefficient: the number of ways to choose `k` of `n` elements.
fn binomial(n: u32, k: u32) -> f64 {
    (0..k).map(|i| f64::from(n.saturating_sub(i)) / f64::from(i + 1)).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `count` random fingerprints. Each bit is set with a probability of `share` / 256.
    fn alike(count: usize, share: u64) -> Vec<u64> {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 56
        };
        (0..count).map(|_| (0..64).fold(0, |bits, at| bits | u64::from(next() < share) << at)).collect()
    }

    #[test]
    fn sets_of_near_fingerprints_are_compared_all_with_all() {
        for distance in [8, 11] {
            for count in [1000, 4000] {
                let tables = choose_tables(count, u64::MAX, distance).unwrap();
                assert!(is_hard_to_split(&alike(count, 12), &tables), "{distance} {count}");
                assert!(!is_hard_to_split(&alike(count, 128), &tables), "{distance} {count}");
            }
        }
        // Fingerprints that are equal in the first half differ in the second half.
        let half: Vec<u64> = alike(4000, 128).into_iter().map(|value| value >> 32).collect();
        let tables = choose_tables(4000, u64::from(u32::MAX), 3).unwrap();
        assert!(!is_hard_to_split(&half, &tables));
    }

    /// Tries all sets of differing bits that consist of the mask `errors` and up to `left` more bits from the list
    /// `bits`. Returns whether each of these sets is found by at least one table.
    fn is_complete(tables: &[JoinPrefix<u64>], bits: &[u32], errors: u64, left: u32) -> bool {
        tables.iter().any(|table| (table.mask & errors).count_ones() <= table.flips)
            && (left == 0
                || bits.iter().enumerate().all(|(i, &bit)| {
                    is_complete(tables, &bits[i + 1..], errors | u64::bit_mask(bit), left - 1)
                }))
    }

    #[test]
    fn complete_for_any_bits() {
        for bits in [u64::MAX, 0x0f0f_00ff_0000_1110, 0x8000_4000_2000_1001, 0xffff_0000_ffff_0000] {
            let each: Vec<u32> = (0..64).filter(|&bit| bits & u64::bit_mask(bit) != 0).collect();
            for distance in 0..=4 {
                for count in [200, 1000, 100_000, 1 << 24] {
                    let Some(tables) = choose_tables(count, bits, distance) else { continue };
                    assert!(tables.iter().all(|table| table.mask & !bits == 0));
                    assert!(is_complete(&tables, &each, 0, distance), "{count}, {distance}, {bits:x}");
                }
            }
        }
    }

    #[test]
    fn plans_that_are_known_are_those_that_were_made() {
        fn check<F: Fingerprint + std::fmt::Debug>() {
            for distance in [0, 3, F::MAX_DISTANCE] {
                let masks = || -> Vec<(F, u32)> {
                    let prefixes = join_plans::<F>(distance).iter().flatten();
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
        let tables = |count| choose_tables(count, u64::MAX, 3).map_or(0, |tables| tables.len());
        assert_eq!(tables(100), 0);
        assert!(tables(1 << 14) <= tables(1 << 20) && tables(1 << 20) < tables(1 << 27));
        // All are within the distance.
        assert!(choose_tables(1000, 7_u64, 3).is_none());
    }
}
