//! The loops that compare fingerprints with one another.

use crate::fingerprint::Fingerprint;

/// Fingerprints that are compared before the first branch.
const LANES: usize = 8;

/// Visits the places of those within the distance of `one`.
#[inline(always)]
pub(super) fn visit_near<F: Fingerprint>(
    one: F,
    others: &[F],
    distance: u32,
    mut visitor: impl FnMut(usize),
) {
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

/// Whether some are within the distance of `one`: without a branch, so that it becomes vector instructions where
/// there are any.
#[inline(always)]
fn any_near<F: Fingerprint>(one: F, others: &[F; LANES], distance: u32) -> bool {
    // The difference is negative for those within the distance.
    let signs = others.iter().fold(0, |signs, &other| signs | one.distance(other).wrapping_sub(distance + 1));
    signs >> 31 == 1
}

/// Whether some of a few are within the distance of one another.
#[inline(always)]
pub(super) fn any_near_pair<F: Fingerprint>(few: &[F], distance: u32) -> bool {
    let mut signs = 0;
    for (i, &one) in few.iter().enumerate() {
        for &other in &few[..i] {
            signs |= one.distance(other).wrapping_sub(distance + 1);
        }
    }
    signs >> 31 == 1
}
