//! Bitwise majority of many hashes: the simhash of features of equal weight.

/// Number of bit planes. The planes are 64-bit words that together store 64 counters of 40 binary digits. Counter b counts the
/// hashes that have bit b set. Digit p of counter b, from the least significant, is bit b of plane p.
const PLANES: usize = 40;
/// Number of hashes that are added to the counters in one step.
const CHUNK_HASHES: usize = 8;

/// Returns the bits that are set in more than half of the hashes.
///
/// A counter for each of the 64 bits counts the hashes that have the bit set. The counters are stored as bit planes (see
/// [`PLANES`]) and updated in parallel (carry-save addition).
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

/// For each of the 64 positions, adds the bits of `a`, `b` and `c` at this position. Returns the sum bits, then the carry bits.
#[inline(always)]
fn full_adder(a: u64, b: u64, c: u64) -> (u64, u64) {
    (a ^ b ^ c, (a & b) | (c & (a ^ b)))
}

/// Adds one digit to each of the 64 counters: bit b of `bits` to counter b. `planes[0]` holds the digits to which `bits` is
/// added, and the planes after it hold the more significant digits.
#[inline(always)]
fn add_to_counters(planes: &mut [u64], mut bits: u64) {
    for plane in planes {
        if bits == 0 {
            return;
        }
        (*plane, bits) = (*plane ^ bits, *plane & bits);
    }
}

/// Returns a mask of the counters whose value is greater than `count`: bit b for counter b.
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

    /// Computes the result of [`majority`] by its definition, bit by bit.
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
