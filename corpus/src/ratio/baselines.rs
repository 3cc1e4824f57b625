//! Sizes of a sorted set of fingerprints, compressed by general methods instead of the codecs of tables. A gap is the
//! difference of two consecutive fingerprints.

use std::io::{self, Write};

use rayon::prelude::*;
use simstore::{Error, Fingerprint, Result};

use crate::observer::Stage;

/// Length of the longest variable-length integer, in bytes. It has 128 bits, and each byte holds seven of them.
const MAX_VARINT_BYTES: usize = 19;
/// Number of fingerprints coded between two checks for cancellation.
const CANCEL_CHECK_INTERVAL: usize = 1 << 12;

/// Returns the size of a set as one Elias-Fano sequence, in bytes, with the best split into upper and lower bits.
pub(super) fn elias_fano<F: Fingerprint>(sorted: &[F]) -> u64 {
    let Some(last) = sorted.last() else { return 0 };
    let count = sorted.len() as u128;
    let bits = |lower: u32| {
        // The upper bits have a one for each fingerprint, and a zero for each of their values.
        (last.to_u128() >> lower).saturating_add(count * u128::from(lower) + count + 1)
    };
    bytes((0..F::BITS).map(bits).min().unwrap_or(0))
}

/// Returns the size of Golomb-Rice codes of the gaps between consecutive fingerprints, in bytes, with the best parameter. The
/// first fingerprint is stored raw.
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

/// Compresses the fingerprints as little-endian words with zstd, and returns the compressed size in bytes. Fails if the job of
/// `stage` is cancelled.
pub(super) fn zstd_raw<F: Fingerprint>(sorted: &[F], level: i32, stage: &Stage<'_>) -> Result<u64> {
    zstd_bytes(sorted.iter().copied(), level, stage, write_word)
}

/// Compresses the gaps between consecutive fingerprints, as little-endian words, with zstd. Returns the compressed size in
/// bytes. Fails if the job of `stage` is cancelled.
pub(super) fn zstd_gaps<F: Fingerprint>(sorted: &[F], level: i32, stage: &Stage<'_>) -> Result<u64> {
    zstd_bytes(gaps(sorted), level, stage, write_word)
}

/// Compresses the gaps between consecutive fingerprints, as variable-length integers of seven bits a byte, with zstd.
/// Returns the compressed size in bytes. Fails if the job of `stage` is cancelled.
pub(super) fn zstd_varints<F: Fingerprint>(sorted: &[F], level: i32, stage: &Stage<'_>) -> Result<u64> {
    zstd_bytes(gaps(sorted), level, stage, |gap, bytes| {
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

/// Compresses values with zstd, and returns the compressed size in bytes. `write` encodes a value into a buffer, and
/// returns the number of bytes written.
fn zstd_bytes<F: Fingerprint>(
    values: impl Iterator<Item = F>,
    level: i32,
    stage: &Stage<'_>,
    write: impl Fn(F, &mut [u8]) -> usize,
) -> Result<u64> {
    let failed = |error: io::Error| Error::BadArgument(format!("zstd: {error}"));
    let encoder = zstd::Encoder::new(ByteCounter(0), level).map_err(failed)?;
    let mut encoder = io::BufWriter::with_capacity(1 << 16, encoder);
    let mut bytes = [0; MAX_VARINT_BYTES];
    for (at, value) in values.enumerate() {
        let length = write(value, &mut bytes);
        encoder.write_all(&bytes[..length]).map_err(failed)?;
        if at % CANCEL_CHECK_INTERVAL == 0 {
            stage.add(0)?;
        }
    }
    let encoder = encoder.into_inner().map_err(|error| failed(error.into_error()))?;
    Ok(encoder.finish().map_err(failed)?.0)
}

/// Writer that only counts the bytes written to it.
struct ByteCounter(u64);

impl Write for ByteCounter {
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
        // Gaps less one are 2^58 - 1: one bit and 58 more each. The first fingerprint has 64 bits.
        let sorted: Vec<u64> = (0..64).map(|i| i << 58).collect();
        assert_eq!(rice(&sorted), (63_u64 * 59 + 64).div_ceil(8));
        // 58 lower bits for each fingerprint, 64 ones and 64 zeros.
        assert_eq!(elias_fano(&sorted), (64 * 58 + 64 + 64) / 8);
        assert_eq!(elias_fano::<u128>(&[0]), 1);
        assert_eq!((elias_fano::<u64>(&[]), rice::<u64>(&[])), (0, 0));
    }

    #[test]
    fn extremes() {
        let ends = [0, u128::MAX];
        assert!(rice(&ends) <= 33 && elias_fano(&ends) <= 33);
        let stage = Stage::new(&(), "methods");
        for size in [zstd_raw(&ends, 3, &stage), zstd_gaps(&ends, 3, &stage), zstd_varints(&ends, 3, &stage)]
        {
            assert!((1..100).contains(&size.unwrap()));
        }
    }
}
