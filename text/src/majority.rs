//! Bitwise majority of many hashes: the simhash of features of equal weight.

/// Number of binary digits of a counter, which counts up to 2^40 - 1. For each of the 64 bit positions, a counter counts the hashes
/// that have this bit set. Bit b of plane p is the binary digit p of the counter for bit position b.
const PLANES: usize = 40;
/// Number of hashes that are added to the counters in one step.
const CHUNK_HASHES: usize = 8;

/// Returns the bits that are set in more than half of the hashes.
///
/// The 64 counters are stored as bit planes and updated in parallel (carry-save addition).
pub(crate) fn majority(hashes: &[u64]) -> u64 {
    let mut planes = [0_u64; PLANES];
    let (chunks, rest) = hashes.as_chunks::<CHUNK_HASHES>();
    for &[a, b, c, d, e, f, g, h] in chunks {
        let (ones, twos_a) = full_adder(planes[0], a, b);
        let (ones, twos_b) = full_adder(ones, c, d);
        let (twos, fours_a) = full_adder(planes[1], twos_a, twos_b);
        let (ones, twos_a) = full_adder(ones, e, f);
        let (ones, twos_b) = full_adder(ones, g, h);
        let (twos, fours_b) = full_adder(twos, twos_a, twos_b);
        let (fours, eights) = full_adder(planes[2], fours_a, fours_b);
        (planes[0], planes[1], planes[2]) = (ones, twos, fours);
        add_to_counters(&mut planes[3..], eights);
    }
    rest.iter().for_each(|&hash| add_to_counters(&mut planes, hash));
    more_than(&planes, hashes.len() as u64 / 2)
}

/// Adds the three bits at each position. Returns the sum bits and the carry bits.
#[inline(always)]
fn full_adder(a: u64, b: u64, c: u64) -> (u64, u64) {
    (a ^ b ^ c, (a & b) | (c & (a ^ b)))
}

/// Adds the bit at each position to the counter of this position.
#[inline(always)]
fn add_to_counters(planes: &mut [u64], mut bits: u64) {
    for plane in planes {
        if bits == 0 {
            return;
        }
        (*plane, bits) = (*plane ^ bits, *plane & bits);
    }
}

/// Returns the bits whose counter is greater than `count`.
fn more_than(planes: &[u64; PLANES], count: u64) -> u64 {
    let (mut more, mut equal) = (0, u64::MAX);
    for (p, &plane) in planes.iter().enumerate().rev() {
        let count_bit = if count >> p & 1 == 1 { u64::MAX } else { 0 };
        more |= equal & plane & !count_bit;
        equal &= !(plane ^ count_bit);
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
