//! Fingerprints: fixed-width bit strings. Similar documents have fingerprints that differ in few bits.

use std::fmt::{Debug, LowerHex};
use std::hash::Hash;
use std::ops::{BitAnd, BitOr, BitXor, Not, Shl, Shr};

use crate::error::{Error, Result, excerpt};

mod sealed {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for u128 {}
}

/// A fingerprint of 64 (`u64`) or 128 (`u128`) bits.
///
/// Bit 0 is the **most significant** bit. So numeric order is the lexicographic order of the bits, and all
/// fingerprints with the same prefix form a range of numbers.
///
/// ```
/// use simstore::Fingerprint;
///
/// assert_eq!(0b1011_u64.distance(0b0001), 2);
/// assert_eq!(u64::parse_hex("00000000000000ff")?, 255);
/// assert_eq!(255_u64.to_hex(), "00000000000000ff");
/// # Ok::<(), simstore::Error>(())
/// ```
pub trait Fingerprint:
    sealed::Sealed
    + Copy
    + Ord
    + Hash
    + Debug
    + Default
    + LowerHex
    + Send
    + Sync
    + 'static
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    /// Width in bits: 64 or 128.
    const BITS: u32;
    /// Width in bytes.
    const BYTES: usize;
    /// All bits zero.
    const ZERO: Self;
    /// The value 1: only the last bit set.
    const ONE: Self;
    /// All bits one.
    const MAX: Self;
    /// The largest distance that a store can support, in bits: a quarter of the width.
    const MAX_DISTANCE: u32 = Self::BITS / 4;

    /// Number of differing bits.
    fn distance(self, other: Self) -> u32 {
        (self ^ other).count_ones()
    }

    /// Number of set bits.
    fn count_ones(self) -> u32;
    /// Number of zero bits before the first set bit. If all bits are zero, the width in bits.
    fn leading_zeros(self) -> u32;
    /// Rotates the bits to the left by `by` bits.
    fn rotate_left(self, by: u32) -> Self;
    /// `self + other` modulo 2^width.
    fn wrapping_add(self, other: Self) -> Self;
    /// `self - other` modulo 2^width.
    fn wrapping_sub(self, other: Self) -> Self;
    /// Converts a 64-bit value; if the fingerprint is wider, its high bits are zero.
    fn from_u64(value: u64) -> Self;
    /// Converts a 128-bit value; if the fingerprint is narrower, the high bits are dropped.
    fn from_u128(value: u128) -> Self;
    /// Converts to a 128-bit value, with zeros as the high bits if the fingerprint is narrower.
    fn to_u128(self) -> u128;
    /// Returns the last (least significant) 64 bits.
    fn low_u64(self) -> u64;
    /// Returns the first (most significant) 64 bits.
    fn high_u64(self) -> u64;
    /// Reads a little-endian value from the first `BYTES` bytes of a slice.
    ///
    /// # Panics
    /// If the slice is shorter than `BYTES`.
    fn read_le(bytes: &[u8]) -> Self;
    /// Writes the value in little-endian order to the first `BYTES` bytes of a slice.
    ///
    /// # Panics
    /// If the slice is shorter than `BYTES`.
    fn write_le(self, bytes: &mut [u8]);

    /// Returns the mask of the first (most significant) `bits` bits.
    fn prefix_mask(bits: u32) -> Self {
        if bits == 0 { Self::ZERO } else { Self::MAX << (Self::BITS - bits) }
    }

    /// Returns the mask of the last (least significant) `bits` bits.
    fn suffix_mask(bits: u32) -> Self {
        if bits == 0 { Self::ZERO } else { Self::MAX >> (Self::BITS - bits) }
    }

    /// Returns the mask of one bit. Bit 0 is the most significant.
    fn bit_mask(bit: u32) -> Self {
        Self::ONE << (Self::BITS - 1 - bit)
    }

    /// Formats the fingerprint as lower-case hexadecimal with a fixed width: 16 or 32 digits.
    fn to_hex(self) -> String {
        format!("{self:0width$x}", width = Self::BYTES * 2)
    }

    /// Parses hexadecimal digits, upper or lower case: exactly 16 for a fingerprint of 64 bits, 32 for one of 128 bits.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the text has another number of characters, or one that is not a hexadecimal digit.
    fn parse_hex(text: &str) -> Result<Self> {
        let digits = Self::BYTES * 2;
        if text.len() != digits || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(Error::BadArgument(format!(
                "`{}` is not a {}-bit fingerprint: expected {digits} hexadecimal digits, found {} characters",
                excerpt(text).escape_debug(),
                Self::BITS,
                text.chars().count(),
            )));
        }
        let value = u128::from_str_radix(text, 16)
            .map_err(|error| Error::BadArgument(format!("`{}`: {error}", excerpt(text))))?;
        Ok(Self::from_u128(value))
    }
}

macro_rules! fingerprint {
    ($type:ty) => {
        impl Fingerprint for $type {
            const BITS: u32 = <$type>::BITS;
            const BYTES: usize = size_of::<$type>();
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const MAX: Self = <$type>::MAX;

            #[inline]
            fn count_ones(self) -> u32 {
                <$type>::count_ones(self)
            }
            #[inline]
            fn leading_zeros(self) -> u32 {
                <$type>::leading_zeros(self)
            }
            #[inline]
            fn rotate_left(self, by: u32) -> Self {
                <$type>::rotate_left(self, by)
            }
            #[inline]
            fn wrapping_add(self, other: Self) -> Self {
                <$type>::wrapping_add(self, other)
            }
            #[inline]
            fn wrapping_sub(self, other: Self) -> Self {
                <$type>::wrapping_sub(self, other)
            }
            #[inline]
            fn from_u64(value: u64) -> Self {
                <$type>::from(value)
            }
            #[inline]
            fn from_u128(value: u128) -> Self {
                value as $type
            }
            #[inline]
            fn to_u128(self) -> u128 {
                u128::from(self)
            }
            #[inline]
            fn low_u64(self) -> u64 {
                self as u64
            }
            #[inline]
            fn high_u64(self) -> u64 {
                (self >> (<$type>::BITS - 64)) as u64
            }
            #[inline]
            fn read_le(bytes: &[u8]) -> Self {
                let mut word = [0; size_of::<$type>()];
                word.copy_from_slice(&bytes[..size_of::<$type>()]);
                <$type>::from_le_bytes(word)
            }
            #[inline]
            fn write_le(self, bytes: &mut [u8]) {
                bytes[..size_of::<$type>()].copy_from_slice(&self.to_le_bytes());
            }
        }
    };
}

fingerprint!(u64);
fingerprint!(u128);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_count_from_the_most_significant_bit() {
        assert_eq!(u64::prefix_mask(0), 0);
        assert_eq!(u64::prefix_mask(4), 0xf000_0000_0000_0000);
        assert_eq!(u64::prefix_mask(64), u64::MAX);
        assert_eq!(u64::suffix_mask(0), 0);
        assert_eq!(u64::suffix_mask(4), 0xf);
        assert_eq!(u128::bit_mask(0), 1 << 127);
        assert_eq!(u128::bit_mask(127), 1);
    }

    #[test]
    fn hex_has_a_fixed_width() {
        assert_eq!(0_u64.to_hex(), "0000000000000000");
        assert_eq!(u128::MAX.to_hex(), "f".repeat(32));
        assert_eq!(u64::parse_hex("FFFFFFFFFFFFFFFF").unwrap(), u64::MAX);
        for bad in ["", "0", "00000000000000000", "000000000000000g", "+000000000000001", "é00000000000000"]
        {
            assert!(u64::parse_hex(bad).is_err(), "{bad}");
        }
        assert!(u128::parse_hex("0000000000000001").is_err());
    }

    #[test]
    fn halves() {
        let value = (7_u128 << 64) | 9;
        assert_eq!((value.high_u64(), value.low_u64()), (7, 9));
        assert_eq!((9_u64.high_u64(), 9_u64.low_u64()), (9, 9));
    }
}
