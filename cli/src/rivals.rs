//! What other ways of compressing a sorted set of fingerprints cost, in bytes.

use std::io::{self, Write};

use rayon::prelude::*;
use simstore::Fingerprint;

/// The whole set as one Elias-Fano sequence, with the best split into upper and lower bits.
pub(crate) fn elias_fano<F: Fingerprint>(sorted: &[F]) -> u64 {
    let Some(last) = sorted.last() else { return 0 };
    let count = sorted.len() as u128;
    let bits = |lower: u32| {
        // A one for each fingerprint, a zero for each value of the upper bits.
        (last.to_u128() >> lower).saturating_add(count * u128::from(lower) + count + 1)
    };
    bytes((0..F::BITS).map(bits).min().unwrap_or(0))
}

/// Golomb-Rice codes of the gaps with the best parameter, the first fingerprint raw.
pub(crate) fn rice<F: Fingerprint>(sorted: &[F]) -> u64 {
    if sorted.is_empty() {
        return 0;
    }
    let bits = |parameter: u32| {
        let quotients = sorted.windows(2).map(|pair| {
            let gap = pair[1].wrapping_sub(pair[0]).to_u128() - 1;
            (gap >> parameter).min(u128::from(u64::MAX))
        });
        let each = u128::from(parameter) + 1;
        quotients.sum::<u128>() + each * (sorted.len() as u128 - 1) + u128::from(F::BITS)
    };
    bytes((0..F::BITS).into_par_iter().map(bits).min().unwrap_or(0))
}

fn bytes(bits: u128) -> u64 {
    u64::try_from(bits.div_ceil(8)).unwrap_or(u64::MAX)
}

/// zstd on the fingerprints as little-endian words.
pub(crate) fn zstd_raw<F: Fingerprint>(sorted: &[F], level: i32) -> io::Result<u64> {
    zstd_words(sorted.iter().copied(), level)
}

/// zstd on the gaps as little-endian words.
pub(crate) fn zstd_gaps<F: Fingerprint>(sorted: &[F], level: i32) -> io::Result<u64> {
    zstd_words(gaps(sorted), level)
}

/// zstd on the gaps as variable-length integers, seven bits a byte.
pub(crate) fn zstd_varints<F: Fingerprint>(sorted: &[F], level: i32) -> io::Result<u64> {
    zstd_of(level, |encoder| {
        for gap in gaps(sorted) {
            let (mut rest, mut varint, mut length) = (gap.to_u128(), [0; 19], 0);
            while rest >= 0x80 {
                varint[length] = rest as u8 | 0x80;
                (rest, length) = (rest >> 7, length + 1);
            }
            varint[length] = rest as u8;
            encoder.write_all(&varint[..=length])?;
        }
        Ok(())
    })
}

fn gaps<F: Fingerprint>(sorted: &[F]) -> impl Iterator<Item = F> + '_ {
    let before = std::iter::once(F::ZERO).chain(sorted.iter().copied());
    sorted.iter().zip(before).map(|(value, before)| value.wrapping_sub(before))
}

fn zstd_words<F: Fingerprint>(words: impl Iterator<Item = F>, level: i32) -> io::Result<u64> {
    zstd_of(level, |encoder| {
        let mut bytes = [0; 16];
        for word in words {
            word.write_le(&mut bytes);
            encoder.write_all(&bytes[..F::BYTES])?;
        }
        Ok(())
    })
}

fn zstd_of(level: i32, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<u64> {
    let mut encoder = io::BufWriter::with_capacity(1 << 16, zstd::Encoder::new(Length(0), level)?);
    write(&mut encoder)?;
    Ok(encoder.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?.0)
}

/// Counts what is written to it.
struct Length(u64);

impl Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_a_small_set() {
        // Gaps of 2^58 less one: a bit and 58 more each, and 64 for the first.
        let sorted: Vec<u64> = (0..64).map(|i| i << 58).collect();
        assert_eq!(rice(&sorted), (63_u64 * 59 + 64).div_ceil(8));
        // 58 lower bits each, 64 ones, 64 zeros.
        assert_eq!(elias_fano(&sorted), (64 * 58 + 64 + 64) / 8);
        assert_eq!(elias_fano::<u128>(&[0]), 1);
        assert_eq!((elias_fano::<u64>(&[]), rice::<u64>(&[])), (0, 0));
    }

    #[test]
    fn extremes() {
        let ends = [0, u128::MAX];
        assert!(rice(&ends) <= 33 && elias_fano(&ends) <= 33);
        for size in [zstd_raw(&ends, 3), zstd_gaps(&ends, 3), zstd_varints(&ends, 3)] {
            assert!((1..100).contains(&size.unwrap()));
        }
    }
}
