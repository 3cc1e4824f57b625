//! Conversion of 64 flags to a 64-bit mask.

/// Packs 64 flags, each 0 or 1, into a mask. Bit i of the mask, counted from the least significant, is `flags[i]`.
#[inline(always)]
pub(crate) fn mask_from_flags(flags: &[u8; 64]) -> u64 {
    let mut mask = 0;
    for (at, eight) in flags.as_chunks::<8>().0.iter().enumerate() {
        // The multiplication collects the lowest bits of the eight bytes in the top byte.
        let bits = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask |= bits << (8 * at);
    }
    mask
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_flag_is_a_bit(bits in any::<u64>()) {
            let flags = std::array::from_fn(|i| (bits >> i & 1) as u8);
            prop_assert_eq!(mask_from_flags(&flags), bits);
        }
    }
}
