//! The majority of bits of many hashes: the simhash of features of equal weight.

/// Planes of the counters: bit b of plane p is bit p of the counter of bit b. So a counter counts up to 2^40 - 1.
const PLANES: usize = 40;
/// Hashes that are added in one step.
const STEP: usize = 8;

/// Returns the bits that more than half of the hashes have.
///
/// The counters of all 64 bits are added at once, as 64 adders in parallel.
pub(crate) fn majority(hashes: &[u64]) -> u64 {
    let mut planes = [0_u64; PLANES];
    let (chunks, rest) = hashes.as_chunks::<STEP>();
    for &[a, b, c, d, e, f, g, h] in chunks {
        let (ones, twos_a) = add(planes[0], a, b);
        let (ones, twos_b) = add(ones, c, d);
        let (twos, fours_a) = add(planes[1], twos_a, twos_b);
        let (ones, twos_a) = add(ones, e, f);
        let (ones, twos_b) = add(ones, g, h);
        let (twos, fours_b) = add(twos, twos_a, twos_b);
        let (fours, eights) = add(planes[2], fours_a, fours_b);
        (planes[0], planes[1], planes[2]) = (ones, twos, fours);
        carry(&mut planes[3..], eights);
    }
    rest.iter().for_each(|&hash| carry(&mut planes, hash));
    more_than(&planes, hashes.len() as u64 / 2)
}

/// Adds three bits at each position. Returns the sums and the carries.
#[inline(always)]
fn add(a: u64, b: u64, c: u64) -> (u64, u64) {
    (a ^ b ^ c, (a & b) | (c & (a ^ b)))
}

/// Adds one bit at each position to the counters.
#[inline(always)]
fn carry(planes: &mut [u64], mut bits: u64) {
    for plane in planes {
        if bits == 0 {
            return;
        }
        (*plane, bits) = (*plane ^ bits, *plane & bits);
    }
}

/// Returns the bits whose counter is more than `count`.
fn more_than(planes: &[u64; PLANES], count: u64) -> u64 {
    let (mut more, mut equal) = (0, u64::MAX);
    for (p, &plane) in planes.iter().enumerate().rev() {
        let of_count = if count >> p & 1 == 1 { u64::MAX } else { 0 };
        more |= equal & plane & !of_count;
        equal &= !(plane ^ of_count);
    }
    more
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, bit by bit.
    fn plain(hashes: &[u64]) -> u64 {
        let counts = |bit: u32| hashes.iter().filter(|&hash| hash >> bit & 1 == 1).count();
        (0..64).filter(|&bit| 2 * counts(bit) > hashes.len()).fold(0, |bits, bit| bits | 1 << bit)
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(
            hashes in prop::collection::vec(prop_oneof![any::<u64>(), Just(u64::MAX), Just(0), Just(1 << 63)], 0..80),
            repeats in 1_usize..40,
        ) {
            prop_assert_eq!(majority(&hashes), plain(&hashes));
            let repeated = hashes.repeat(repeats);
            prop_assert_eq!(majority(&repeated), plain(&repeated));
        }
    }
}
