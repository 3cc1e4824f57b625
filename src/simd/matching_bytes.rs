//! Compares the bytes of a cache line with one byte.

use super::Level;

impl Level {
    /// Returns a mask of the bytes that differ from `byte` in at most `distance` of the bits of `mask`. Bit i of the result is
    /// for the byte with the index i.
    #[inline(always)]
    pub(crate) fn matching_bytes(self, bytes: &[u8; 64], byte: u8, mask: u8, distance: u32) -> u64 {
        #[cfg(target_arch = "x86_64")]
        {
            if self.0 >= super::x86::V4 {
                // SAFETY: the processor has the features that the callee is compiled for.
                return unsafe { x86::matching_bytes_v4(bytes, byte, mask, distance) };
            }
            if self.0 >= super::x86::V3 {
                // SAFETY: the processor has the features that the callee is compiled for.
                return unsafe { x86::matching_bytes_v3(bytes, byte, mask, distance) };
            }
        }
        matching_bytes_plain(bytes, byte, mask, distance)
    }
}

/// The version of [`Level::matching_bytes`] for processors without AVX2.
pub(super) fn matching_bytes_plain(bytes: &[u8; 64], byte: u8, mask: u8, distance: u32) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |all, &other| all << 1 | u64::from(((other ^ byte) & mask).count_ones() <= distance))
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// Number of ones in each number of four bits.
    const ONES: [u8; 16] = [0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4];

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn matching_bytes_v3(bytes: &[u8; 64], byte: u8, mask: u8, distance: u32) -> u64 {
        // SAFETY: twice 32 bytes are read from an array of 64.
        let halves = unsafe {
            let start = bytes.as_ptr().cast::<__m256i>();
            [_mm256_loadu_si256(start), _mm256_loadu_si256(start.add(1))]
        };
        let (byte, mask) = (_mm256_set1_epi8(byte.cast_signed()), _mm256_set1_epi8(mask.cast_signed()));
        let different = |half| _mm256_and_si256(_mm256_xor_si256(half, byte), mask);
        let low = matching_32(different(halves[0]), distance);
        let high = matching_32(different(halves[1]), distance);
        u64::from(low) | u64::from(high) << 32
    }

    /// Returns a mask of the bytes that have at most `distance` ones.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn matching_32(bytes: __m256i, distance: u32) -> u32 {
        let matches = match distance {
            0 => _mm256_cmpeq_epi8(bytes, _mm256_setzero_si256()),
            1 => {
                // Without its lowest one bit, nothing is left.
                let less = _mm256_add_epi8(bytes, _mm256_set1_epi8(-1));
                _mm256_cmpeq_epi8(_mm256_and_si256(bytes, less), _mm256_setzero_si256())
            }
            _ => {
                // SAFETY: 16 bytes are read from an array of 16.
                let ones = unsafe { _mm_loadu_si128(ONES.as_ptr().cast()) };
                let ones = _mm256_broadcastsi128_si256(ones);
                let low_bits = _mm256_set1_epi8(15);
                let high = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), low_bits);
                let low = _mm256_and_si256(bytes, low_bits);
                let count = _mm256_add_epi8(_mm256_shuffle_epi8(ones, high), _mm256_shuffle_epi8(ones, low));
                let most = _mm256_set1_epi8(distance.min(8) as i8);
                _mm256_cmpeq_epi8(_mm256_max_epu8(count, most), most)
            }
        };
        _mm256_movemask_epi8(matches).cast_unsigned()
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn matching_bytes_v4(bytes: &[u8; 64], byte: u8, mask: u8, distance: u32) -> u64 {
        // SAFETY: 64 bytes are read from an array of 64.
        let bytes = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
        let different = _mm512_and_si512(
            _mm512_xor_si512(bytes, _mm512_set1_epi8(byte.cast_signed())),
            _mm512_set1_epi8(mask.cast_signed()),
        );
        match distance {
            0 => _mm512_testn_epi8_mask(different, different),
            1 => {
                let less = _mm512_add_epi8(different, _mm512_set1_epi8(-1));
                _mm512_testn_epi8_mask(different, less)
            }
            _ => {
                // SAFETY: 16 bytes are read from an array of 16.
                let ones = unsafe { _mm_loadu_si128(ONES.as_ptr().cast()) };
                let ones = _mm512_broadcast_i32x4(ones);
                let low_bits = _mm512_set1_epi8(15);
                let high = _mm512_and_si512(_mm512_srli_epi16::<4>(different), low_bits);
                let low = _mm512_and_si512(different, low_bits);
                let count = _mm512_add_epi8(_mm512_shuffle_epi8(ones, high), _mm512_shuffle_epi8(ones, low));
                _mm512_cmple_epu8_mask(count, _mm512_set1_epi8(distance.min(8) as i8))
            }
        }
    }
}
