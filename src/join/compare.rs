//! Loops that compare fingerprints with one another. They are compiled for several instruction sets.

use crate::fingerprint::Fingerprint;
use crate::simd::{Kernel, dispatch};

/// Number of fingerprints that [`any_near`] compares with one fingerprint, in a loop without branches.
const LANES: usize = 8;

/// Finds the fingerprints of `others` that are within `distance` bits of `one`, and calls `visitor` with their
/// positions in `others`.
#[inline]
pub(super) fn visit_near<F: Fingerprint>(one: F, others: &[F], distance: u32, visitor: impl FnMut(usize)) {
    dispatch(VisitNear { one, others, distance, visitor });
}

struct VisitNear<'a, F, V> {
    one: F,
    others: &'a [F],
    distance: u32,
    visitor: V,
}

impl<F: Fingerprint, V: FnMut(usize)> Kernel for VisitNear<'_, F, V> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let VisitNear { one, others, distance, mut visitor } = self;
        let (chunks, rest) = others.as_chunks::<LANES>();
        for (number, chunk) in chunks.iter().enumerate() {
            if any_near(one, chunk, distance) {
                for (lane, &other) in chunk.iter().enumerate() {
                    if one.distance(other) <= distance {
                        visitor(number * LANES + lane);
                    }
                }
            }
        }
        for (i, &other) in rest.iter().enumerate() {
            if one.distance(other) <= distance {
                visitor(chunks.len() * LANES + i);
            }
        }
    }
}

/// Whether any of `others` is within `distance` bits of `one`. The loop has no branch, so that the compiler
/// vectorizes it.
#[inline(always)]
fn any_near<F: Fingerprint>(one: F, others: &[F; LANES], distance: u32) -> bool {
    others.iter().fold(0, |signs, &other| signs | sign(one, other, distance)) >> 63 == 1
}

/// Returns a number whose highest bit is 1 if the fingerprints are within `distance` bits, and 0 if they are not.
#[inline(always)]
fn sign<F: Fingerprint>(one: F, other: F, distance: u32) -> u64 {
    u64::from(one.distance(other)).wrapping_sub(u64::from(distance) + 1)
}

/// [`find_near`] compares each fingerprint of a list with this number of fingerprints after it.
pub(super) const LOOKAHEAD: usize = 7;
/// [`find_near`] divides a list into blocks of this number of fingerprints.
pub(super) const BLOCK_LEN: usize = 16;

/// Divides a list into blocks of [`BLOCK_LEN`] fingerprints, and finds the blocks with a fingerprint that is
/// within `distance` bits of one of the [`LOOKAHEAD`] fingerprints after it. Replaces the contents of `blocks`
/// by the indexes of these blocks, ascending.
#[inline]
pub(super) fn find_near<F: Fingerprint>(values: &[F], distance: u32, blocks: &mut Vec<usize>) {
    dispatch(FindNear { values, distance, blocks });
}

struct FindNear<'a, F> {
    values: &'a [F],
    distance: u32,
    blocks: &'a mut Vec<usize>,
}

impl<F: Fingerprint> Kernel for FindNear<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let FindNear { values, distance, blocks } = self;
        blocks.clear();
        for block in 0..values.len().div_ceil(BLOCK_LEN) {
            let rest = &values[block * BLOCK_LEN..];
            let is_near = match rest.first_chunk::<{ BLOCK_LEN + LOOKAHEAD }>() {
                Some(window) => has_near(window, distance),
                None => has_near_pair(rest, LOOKAHEAD, distance),
            };
            if is_near {
                blocks.push(block);
            }
        }
    }
}

/// Whether one of the first [`BLOCK_LEN`] fingerprints of `window` is within `distance` bits of one of the
/// [`LOOKAHEAD`] fingerprints after it.
#[inline(always)]
fn has_near<F: Fingerprint>(window: &[F; BLOCK_LEN + LOOKAHEAD], distance: u32) -> bool {
    let mut signs = [0; BLOCK_LEN];
    for lag in 1..=LOOKAHEAD {
        for (lane, signs) in signs.iter_mut().enumerate() {
            *signs |= sign(window[lane], window[lane + lag], distance);
        }
    }
    signs.iter().fold(0, |all, &signs| all | signs) >> 63 == 1
}

/// Whether any two fingerprints of a short list are within `distance` bits. Compares all pairs.
#[inline]
pub(super) fn any_near_pair<F: Fingerprint>(few: &[F], distance: u32) -> bool {
    dispatch(AnyNearPair { few, distance })
}

struct AnyNearPair<'a, F> {
    few: &'a [F],
    distance: u32,
}

impl<F: Fingerprint> Kernel for AnyNearPair<'_, F> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        has_near_pair(self.few, self.few.len(), self.distance)
    }
}

/// Whether any fingerprint of a short list is within `distance` bits of one of the `reach` fingerprints after it.
#[inline(always)]
fn has_near_pair<F: Fingerprint>(few: &[F], reach: usize, distance: u32) -> bool {
    let mut signs = 0;
    for (at, &one) in few.iter().enumerate() {
        for &other in few[at + 1..].iter().take(reach) {
            signs |= sign(one, other, distance);
        }
    }
    signs >> 63 == 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check<F: Fingerprint>(values: &[F], distance: u32) -> Result<(), TestCaseError> {
        let is_near = |&block: &usize| {
            (block * BLOCK_LEN..values.len().min((block + 1) * BLOCK_LEN)).any(|at| {
                let mut next = values[at + 1..].iter().take(LOOKAHEAD);
                next.any(|&other| values[at].distance(other) <= distance)
            })
        };
        let mut found = vec![7];
        find_near(values, distance, &mut found);
        // The last block may also contain pairs after its first `BLOCK_LEN` fingerprints.
        let expected: Vec<usize> = (0..values.len().div_ceil(BLOCK_LEN)).filter(is_near).collect();
        let full = values.len().saturating_sub(BLOCK_LEN + LOOKAHEAD) / BLOCK_LEN;
        prop_assert!(expected.iter().all(|block| found.contains(block)));
        prop_assert!(found.iter().filter(|&&block| block < full).all(|block| expected.contains(block)));
        prop_assert!(found.is_sorted());
        let few = &values[..values.len().min(20)];
        let expected = few
            .iter()
            .enumerate()
            .any(|(at, &one)| few[..at].iter().any(|&other| one.distance(other) <= distance));
        prop_assert_eq!(any_near_pair(few, distance), expected);
        for (at, &one) in values.iter().enumerate().take(3) {
            let mut near = Vec::new();
            visit_near(one, values, distance, |place| near.push(place));
            let expected: Vec<usize> =
                (0..values.len()).filter(|&place| one.distance(values[place]) <= distance).collect();
            prop_assert_eq!(near, expected, "{}", at);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn near_ones_are_found(
            values in prop::collection::vec(any::<u128>(), 0..120),
            mask in any::<u128>(),
            distance in 0_u32..40,
        ) {
            let wide: Vec<u128> = values.iter().map(|value| value & mask).collect();
            let narrow: Vec<u64> = wide.iter().map(|&value| value as u64).collect();
            check(&wide, distance)?;
            check(&narrow, distance)?;
        }
    }
}
