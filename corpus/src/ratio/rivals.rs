//! What other ways of compressing a sorted set of fingerprints cost, in bytes.

use std::io::{self, Write};

use rayon::prelude::*;
use simstore::{Error, Fingerprint, Result};

use crate::watch::Step;

/// The longest that a value is coded as: 128 bits, seven a byte.
const MAX_BYTES: usize = 19;
/// Fingerprints that are coded before the watch is asked whether to go on.
const AT_ONCE: usize = 1 << 12;

/// The whole set as one Elias-Fano sequence, with the best split into upper and lower bits.
pub(super) fn elias_fano<F: Fingerprint>(sorted: &[F]) -> u64 {
    let Some(last) = sorted.last() else { return 0 };
    let count = sorted.len() as u128;
    let bits = |lower: u32| {
        // A one for each fingerprint, a zero for each value of the upper bits.
        (last.to_u128() >> lower).saturating_add(count * u128::from(lower) + count + 1)
    };
    bytes((0..F::BITS).map(bits).min().unwrap_or(0))
}

/// Golomb-Rice codes of the gaps with the best parameter, the first fingerprint raw.
pub(super) fn rice<F: Fingerprint>(sorted: &[F]) -> u64 {
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
pub(super) fn zstd_raw<F: Fingerprint>(sorted: &[F], level: i32, step: &Step<'_>) -> Result<u64> {
    zstd_of(sorted.iter().copied(), level, step, write_word)
}

/// zstd on the gaps as little-endian words.
pub(super) fn zstd_gaps<F: Fingerprint>(sorted: &[F], level: i32, step: &Step<'_>) -> Result<u64> {
    zstd_of(gaps(sorted), level, step, write_word)
}

/// zstd on the gaps as variable-length integers, seven bits a byte.
pub(super) fn zstd_varints<F: Fingerprint>(sorted: &[F], level: i32, step: &Step<'_>) -> Result<u64> {
    zstd_of(gaps(sorted), level, step, |gap, bytes| {
        let (mut rest, mut length) = (gap.to_u128(), 0);
        while rest >= 0x80 {
            bytes[length] = rest as u8 | 0x80;
            (rest, length) = (rest >> 7, length + 1);
        }
        bytes[length] = rest as u8;
        length + 1
    })
}

fn gaps<F: Fingerprint>(sorted: &[F]) -> impl Iterator<Item = F> + '_ {
    let before = std::iter::once(F::ZERO).chain(sorted.iter().copied());
    sorted.iter().zip(before).map(|(value, before)| value.wrapping_sub(before))
}

fn write_word<F: Fingerprint>(word: F, bytes: &mut [u8]) -> usize {
    word.write_le(bytes);
    F::BYTES
}

/// The size of what zstd makes of values, each written to some bytes by a function that tells how many these are.
fn zstd_of<F: Fingerprint>(
    values: impl Iterator<Item = F>,
    level: i32,
    step: &Step<'_>,
    write: impl Fn(F, &mut [u8]) -> usize,
) -> Result<u64> {
    let failed = |error: io::Error| Error::BadArgument(format!("zstd: {error}"));
    let encoder = zstd::Encoder::new(Length(0), level).map_err(failed)?;
    let mut encoder = io::BufWriter::with_capacity(1 << 16, encoder);
    let mut bytes = [0; MAX_BYTES];
    for (at, value) in values.enumerate() {
        let length = write(value, &mut bytes);
        encoder.write_all(&bytes[..length]).map_err(failed)?;
        if at % AT_ONCE == 0 {
            step.add(0)?;
        }
    }
    let encoder = encoder.into_inner().map_err(|error| failed(error.into_error()))?;
    Ok(encoder.finish().map_err(failed)?.0)
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
        let step = Step::new(&(), "methods");
        for size in [zstd_raw(&ends, 3, &step), zstd_gaps(&ends, 3, &step), zstd_varints(&ends, 3, &step)] {
            assert!((1..100).contains(&size.unwrap()));
        }
    }
}
