//! Elias-Fano, one per block: each fingerprint minus the first is split into lower bits, stored at fixed
//! width, and upper bits, stored in unary. A look-up counts zeros up to its range and decodes nothing before.
//!
//! P. Elias, "Efficient storage and retrieval by content and address of static files", J. ACM 21 (1974);
//! R. M. Fano, "On the number of bits required to implement an associative memory", MIT (1971).

use super::{BlockCodec, BlockHeader, Fit};
use crate::bits;
use crate::error::Damage;
use crate::fingerprint::Fingerprint;
use crate::format;

/// The codec; it has no parameters but those that each block chooses for itself.
#[derive(Debug)]
pub(crate) struct EliasFano;

/// The width of the lower bits that takes the fewest bits for `count` fingerprints after the first, the
/// last of which is `last` above it; and these bits.
fn best_width<F: Fingerprint>(count: usize, last: F) -> (u32, usize) {
    let bits = |width: u32| {
        // Upper parts too long for any block: the width is far too small.
        let upper = if F::BITS - last.leading_zeros() > width + 32 {
            return usize::MAX;
        } else {
            (last >> width).low_u64() as usize
        };
        count * (width as usize + 1) + upper + 1
    };
    let mean = F::BITS - last.leading_zeros();
    let guess = mean.saturating_sub(usize::BITS - count.leading_zeros());
    (guess.saturating_sub(1)..=(guess + 2).min(F::BITS - 1))
        .map(|width| (width, bits(width)))
        .min_by_key(|&(_, bits)| bits)
        .unwrap_or((F::BITS - 1, usize::MAX))
}

/// Position of the zero bit number `rank` (from 0) of a word that has more than `rank` zeros.
#[inline(always)]
fn select_zero(word: u64, mut rank: u32) -> u32 {
    let mut word = !word;
    let mut position = 0;
    for half in [32, 16, 8, 4, 2, 1] {
        let ones = (word & ((1 << half) - 1)).count_ones();
        if rank >= ones {
            rank -= ones;
            word >>= half;
            position += half;
        }
    }
    position
}

/// The two parts of a block.
struct Parts<'a, F> {
    block: &'a [u8],
    header: BlockHeader<F>,
    /// Bit position at which the lower bits, which run backward from the block's end, stop.
    lower_end: usize,
    /// A mask of the lower bits.
    mask: F,
}

impl<'a, F: Fingerprint> Parts<'a, F> {
    const UPPER: usize = BlockHeader::<F>::LEN * 8;

    #[inline(always)]
    fn read(block: &'a [u8]) -> Result<Self, Damage> {
        let header = BlockHeader::<F>::read(block)?;
        let lower = (header.count - 1) * header.width as usize;
        if header.width >= F::BITS || Self::UPPER + lower > block.len() * 8 {
            return Err(Damage::Field {
                name: "width",
                found: u64::from(header.width),
                expected: "lower bits that lie inside the block",
            });
        }
        let mask = F::low_mask(header.width);
        Ok(Parts { lower_end: block.len() * 8 - lower, block, header, mask })
    }

    /// The lower bits of fingerprint `i`, from 1.
    #[inline(always)]
    fn lower(&self, i: usize) -> F {
        let width = self.header.width;
        bits::read_masked(self.block, self.block.len() * 8 - i * width as usize, width, self.mask)
    }

    /// Up to 64 of the upper bits from bit `at` on, and how many.
    #[inline(always)]
    fn upper(&self, at: usize) -> Option<(u64, u32)> {
        let start = Self::UPPER + at;
        let len = self.lower_end.checked_sub(start)?.min(56) as u32;
        (len > 0).then(|| (bits::read_u64(self.block, start, len), len))
    }

    /// Calls `visitor` with position and value of each fingerprint after the first from the one whose upper
    /// bits come after `skip` zeros on, until it says stop.
    #[inline(always)]
    fn walk(&self, skip: u64, mut visitor: impl FnMut(usize, F) -> bool) -> Result<(), Damage> {
        let mut at = 0;
        let mut zeros = 0;
        loop {
            let Some((word, len)) = self.upper(at) else { return Ok(()) };
            let here = u64::from(len - word.count_ones());
            if zeros + here >= skip {
                if skip > zeros {
                    at += select_zero(word, (skip - zeros - 1) as u32) as usize + 1;
                }
                break;
            }
            zeros += here;
            at += len as usize;
        }
        let mut i = at - skip as usize;
        while let Some((mut word, len)) = self.upper(at) {
            while word != 0 {
                let upper = at + word.trailing_zeros() as usize - i;
                i += 1;
                if i >= self.header.count {
                    return Err(Damage::Mismatch { what: "the number of upper bits and the block's count" });
                }
                let value = F::from_u64(upper as u64) << self.header.width | self.lower(i);
                if !visitor(i, self.header.first.wrapping_add(value)) {
                    return Ok(());
                }
                word &= word - 1;
            }
            at += len as usize;
        }
        if i + 1 < self.header.count {
            return Err(Damage::Mismatch { what: "the number of upper bits and the block's count" });
        }
        Ok(())
    }
}

impl<F: Fingerprint> BlockCodec<F> for EliasFano {
    fn fit(&self, fingerprints: &[F], bytes: usize) -> Fit {
        let mut best = Fit { count: 1, bytes: BlockHeader::<F>::LEN };
        for (i, &fingerprint) in fingerprints.iter().enumerate().take(format::MAX_BLOCK_COUNT).skip(1) {
            let (_, bits) = best_width(i, fingerprint.wrapping_sub(fingerprints[0]));
            let needed = bits.saturating_add(BlockHeader::<F>::LEN * 8).div_ceil(8);
            if needed > bytes {
                break;
            }
            best = Fit { count: i + 1, bytes: needed };
        }
        best
    }

    fn encode(&self, fingerprints: &[F], block: &mut [u8]) {
        let (first, count) = (fingerprints[0], fingerprints.len());
        let last = fingerprints[count - 1].wrapping_sub(first);
        let width = if count == 1 { 0 } else { best_width(count - 1, last).0 };
        BlockHeader { count, width, first }.write(block);
        let end = block.len() * 8;
        for (i, fingerprint) in fingerprints.iter().enumerate().skip(1) {
            let value = fingerprint.wrapping_sub(first);
            let upper = (value >> width).low_u64() as usize;
            bits::write_u64(block, Parts::<F>::UPPER + upper + i - 1, 1, 1);
            bits::write(block, end - i * width as usize, width, value & F::suffix_mask(width));
        }
    }

    fn decode(&self, block: &[u8], fingerprints: &mut Vec<F>) -> Result<(), Damage> {
        let parts = Parts::read(block)?;
        let before = fingerprints.len();
        fingerprints.resize(before + parts.header.count, parts.header.first);
        let values = &mut fingerprints[before..];
        parts.walk(0, |i, value| {
            values[i] = value;
            true
        })
    }

    #[inline(always)]
    fn visit(&self, block: &[u8], low: F, high: F, mut visitor: impl FnMut(usize, F)) -> Result<(), Damage> {
        let parts = Parts::read(block)?;
        let first = parts.header.first;
        if high < first {
            return Ok(());
        }
        let mut skip = F::ZERO;
        if low <= first {
            visitor(0, first);
        } else {
            skip = low.wrapping_sub(first) >> parts.header.width;
        }
        if skip > F::from_u64(block.len() as u64 * 8) {
            return Ok(());
        }
        parts.walk(skip.low_u64(), |i, value| {
            if value > high {
                return false;
            }
            if value >= low {
                visitor(i, value);
            }
            true
        })
    }
}
