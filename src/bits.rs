//! Bit fields in byte slices, least significant bit first.
//!
//! Bit `i` of a slice is bit `i % 8` (counted from the least significant) of byte `i / 8`. A field of `len` bits at position
//! `p` holds the number whose bit `j` is bit `p + j` of the slice. Reading past the end of the slice returns zeros. So a read
//! stays inside the slice even if damaged bytes lead to a wrong position.

use byteorder::{ByteOrder, LittleEndian};

use crate::fingerprint::Fingerprint;

/// Returns the 64 bits that start at byte `byte`, with zeros beyond the end. `byte` is at most `usize::MAX / 8 + 8`.
#[inline(always)]
pub(crate) fn load(bytes: &[u8], byte: usize) -> u64 {
    match bytes.get(byte..byte + 8) {
        Some(word) => LittleEndian::read_u64(word),
        None => load_tail(bytes, byte),
    }
}

/// Like [`load`], for a byte near or after the end of the slice. Not inlined, so that it takes no registers from loops
/// that call [`load`].
#[cold]
#[inline(never)]
pub(crate) fn load_tail(bytes: &[u8], byte: usize) -> u64 {
    let rest = bytes.get(byte..).unwrap_or_default();
    let mut word = [0; 8];
    let len = rest.len().min(8);
    word[..len].copy_from_slice(&rest[..len]);
    u64::from_le_bytes(word)
}

/// Returns the field of `len` (0 to 64) bits at bit `position`.
#[inline(always)]
pub(crate) fn read_u64(bytes: &[u8], position: usize, len: u32) -> u64 {
    let shift = (position % 8) as u32;
    let mut value = load(bytes, position / 8) >> shift;
    if shift + len > 64 {
        // The field spans nine bytes, so the shift is at least 1.
        value |= load(bytes, position / 8 + 8) << (64 - shift);
    }
    value & u64::suffix_mask(len)
}

/// Returns the field of `len` bits at bit `position`. `len` is 0 to the width of a fingerprint.
#[inline(always)]
pub(crate) fn read<F: Fingerprint>(bytes: &[u8], position: usize, len: u32) -> F {
    if len <= 64 {
        return F::from_u64(read_u64(bytes, position, len));
    }
    let low = F::from_u64(read_u64(bytes, position, 64));
    low | (F::from_u64(read_u64(bytes, position.wrapping_add(64), len - 64)) << (64 % F::BITS))
}

/// Maximum length in bits of a field that one [`load`] can always read. The load starts at the byte that contains
/// the first bit of the field, so up to 7 of its 64 bits are before the field.
pub(crate) const MAX_SHORT_BITS: u32 = 57;

/// Like [`read`], but not inlined: it is for fields of more than [`MAX_SHORT_BITS`] bits, which are frequent only in the
/// smallest tables.
#[cold]
#[inline(never)]
pub(crate) fn read_long<F: Fingerprint>(bytes: &[u8], position: usize, len: u32) -> F {
    read(bytes, position, len)
}

/// Sets the field of `len` (0 to 64) bits at bit `position`, whose bits must be zero so far.
///
/// # Panics
/// If the field does not lie inside the slice.
pub(crate) fn write_u64(bytes: &mut [u8], position: usize, len: u32, value: u64) {
    debug_assert!(len == 64 || value >> len == 0);
    let (byte, shift) = (position / 8, (position % 8) as u32);
    if let Some(word) = bytes.get_mut(byte..).and_then(|rest| rest.first_chunk_mut::<8>()) {
        *word = (u64::from_le_bytes(*word) | (value << shift)).to_le_bytes();
        if shift + len > 64 {
            bytes[byte + 8] |= (value >> (64 - shift)) as u8;
        }
        return;
    }
    let wide = u128::from(value) << shift;
    for i in 0..((shift + len) as usize).div_ceil(8) {
        bytes[byte + i] |= (wide >> (8 * i)) as u8;
    }
}

/// Sets the field of `len` bits at bit `position`, whose bits must be zero so far. `len` is 0 to the width of a fingerprint.
///
/// # Panics
/// If the field does not lie inside the slice.
pub(crate) fn write<F: Fingerprint>(bytes: &mut [u8], position: usize, len: u32, value: F) {
    if len <= 64 {
        return write_u64(bytes, position, len, value.low_u64());
    }
    write_u64(bytes, position, 64, value.low_u64());
    write_u64(bytes, position + 64, len - 64, (value >> (64 % F::BITS)).low_u64());
}

#[cfg(test)]
mod tests {
    use bitvec::prelude::*;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Written fields give the same bytes as a simple implementation with `bitvec`, and read back unchanged.
        #[test]
        fn fields_equal_those_of_bitvec(fields in prop::collection::vec((0_u32..=128, any::<u128>()), 1..40)) {
            let mut plain: BitVec<u8, Lsb0> = BitVec::new();
            let total: usize = fields.iter().map(|&(len, _)| len as usize).sum();
            let mut bytes = vec![0; total.div_ceil(8)];
            let mut position = 0;
            for &(len, value) in &fields {
                let value = value & u128::suffix_mask(len);
                write(&mut bytes, position, len, value);
                plain.extend((0..len).map(|bit| value >> bit & 1 == 1));
                position += len as usize;
            }
            let mut expected = plain.into_vec();
            expected.resize(bytes.len(), 0);
            prop_assert_eq!(&bytes, &expected);
            let mut position = 0;
            for (len, value) in fields {
                prop_assert_eq!(read::<u128>(&bytes, position, len), value & u128::suffix_mask(len));
                if len <= 64 {
                    prop_assert_eq!(read::<u64>(&bytes, position, len), value as u64 & u64::suffix_mask(len));
                }
                position += len as usize;
            }
        }

        #[test]
        fn reading_outside_gives_zeros(bytes in prop::collection::vec(any::<u8>(), 0..20), at in any::<usize>()) {
            let inside = bytes.len() * 8;
            prop_assert_eq!(read_u64(&bytes, inside.max(at), 64), 0);
        }
    }
}
