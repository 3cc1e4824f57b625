//! Elias-Fano, one per block: each fingerprint minus the first is split into lower bits, stored at fixed
//! width, and upper bits, stored in unary. A look-up counts zeros up to its range and decodes nothing before.
//!
//! P. Elias, "Efficient storage and retrieval by content and address of static files", J. ACM 21 (1974);
//! R. M. Fano, "On the number of bits required to implement an associative memory", MIT (1971).

use super::block::{BlockCodec, BlockHeader, CodecKind, Costs, Facts, Fit, Near, OTHER_CODE, Range, Spot};
use super::symbols::Counts;
use crate::bits;
use crate::error::Damage;
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::huffman::Code;
use crate::kernels::{Eight, has_eights, select};

/// The codec. It has no parameters except those that each block chooses for itself.
#[derive(Debug)]
pub(crate) struct EliasFano;

impl CodecKind for EliasFano {
    const FACTS: Facts = Facts {
        number: 2,
        name: "elias-fano",
        version: format::VERSION,
        has_code: false,
        symbols: |bits| bits as usize,
        default_spans: None,
        default_block_sizes: [512, 4096],
        costs: Costs { bits: 2.0, probe: 38.0, decode: 0.2, miss: 0.18 },
    };

    fn new(_: &Code, _: u16, _: u32) -> Self {
        EliasFano
    }
}

/// Best width of the lower bits for `count` fingerprints after the first, and the resulting size in bits. `last` is
/// the last fingerprint minus the first.
fn best_width<F: Fingerprint>(count: usize, last: F) -> (u32, usize) {
    let bits = |width: u32| {
        // Upper parts that are too long for any block: the width is far too small.
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

/// The two parts of a block.
struct Parts<'a, F> {
    block: &'a [u8],
    header: BlockHeader<F>,
    /// The whole words after the header: first the upper bits, then other data.
    words: &'a [[u8; 8]],
    /// Number of bits from the end of the header to the lower bits, which run backward from the block's end.
    upper_len: usize,
}

impl<'a, F: Fingerprint> Parts<'a, F> {
    #[inline(always)]
    fn read(block: &'a [u8]) -> Result<Self, Damage> {
        let header = BlockHeader::<F>::read(block)?;
        let rest = &block[BlockHeader::<F>::LEN..];
        let lower = (header.count - 1) * header.width as usize;
        match (rest.len() * 8).checked_sub(lower) {
            Some(upper_len) if header.width < F::BITS => {
                Ok(Parts { block, header, words: rest.as_chunks().0, upper_len })
            }
            _ => Err(Damage::Field {
                name: "width",
                found: u64::from(header.width),
                expected: "lower bits that lie inside the block",
            }),
        }
    }

    /// The bit position of the lower bits of fingerprint `i`, from 1.
    #[inline(always)]
    fn lower_at(&self, i: usize) -> usize {
        (self.block.len() * 8).wrapping_sub(i * self.header.width as usize)
    }

    /// First and last byte of the lower bits from fingerprint `i` on. Assumes one fingerprint for each zero of the
    /// upper bits in the range.
    #[inline(always)]
    fn lower_bytes(&self, i: usize, zeros: u64) -> (u32, u32) {
        let last = self.header.count.min(i + zeros.min(self.header.count as u64) as usize);
        ((self.lower_at(last) / 8) as u32, (self.lower_at(i) / 8) as u32)
    }

    /// Fingerprint `i`, from 1, whose upper bits are `upper`.
    #[inline(always)]
    fn value(&self, i: usize, upper: usize) -> F {
        let (at, width) = (self.lower_at(i), self.header.width);
        let lower = if width <= bits::SHORT {
            F::from_u64(bits::load(self.block, at / 8) >> (at % 8)) & !(F::MAX << width)
        } else {
            bits::read_long(self.block, at, width)
        };
        self.header.first.wrapping_add(F::from_u64(upper as u64) << width | lower)
    }

    /// Word `i` from the start of the upper bits. A word after their end has no meaning.
    #[inline(always)]
    fn word(&self, i: usize) -> u64 {
        match self.words.get(i) {
            Some(word) => u64::from_le_bytes(*word),
            None => bits::load_tail(self.block, BlockHeader::<F>::LEN + i * 8),
        }
    }

    /// Upper part of a value that is not below the first, as a number of zeros. It may exceed the zeros in the block.
    #[inline(always)]
    fn zeros_before(&self, value: F) -> u64 {
        let upper = value.wrapping_sub(self.header.first) >> self.header.width;
        if F::BITS > 64 && upper.high_u64() > 0 { u64::MAX } else { upper.low_u64() }
    }

    /// The position after `zeros` zeros of the upper bits; `None` if the block has fewer.
    #[inline(always)]
    fn skip(&self, zeros: u64) -> Option<usize> {
        if zeros >= self.upper_len as u64 {
            return None;
        }
        let left = zeros as u32;
        // The first words are counted without a branch: their number is unpredictable, and most blocks have no more.
        let (word, start, left) = match self.words.first_chunk::<FEW>() {
            Some(words) => {
                let mut before = [0; FEW + 1];
                for (i, word) in words.iter().enumerate() {
                    before[i + 1] = before[i] + u64::from_le_bytes(*word).count_zeros();
                }
                let whole = (1..FEW).map(|i| usize::from(before[i] < left)).sum::<usize>();
                if before[FEW] >= left {
                    (!u64::from_le_bytes(words[whole % FEW]), whole * 64, left - before[whole % FEW])
                } else {
                    self.skip_words(FEW, left - before[FEW])
                }
            }
            None => self.skip_words(0, left),
        };
        let at = if left == 0 { start } else { start + select(word, left - 1) as usize + 1 };
        (at < self.upper_len).then_some(at)
    }

    /// Finds the word with zero number `left`, from word `i` on. Returns its inverse, its position, and the zeros
    /// left.
    #[inline(always)]
    fn skip_words(&self, mut i: usize, mut left: u32) -> (u64, usize, u32) {
        loop {
            let word = !self.word(i);
            let here = word.count_ones();
            // After the end of the block all bits are zeros, so the loop ends.
            if here >= left {
                return (word, i * 64, left);
            }
            left -= here;
            i += 1;
        }
    }
}

/// Words whose zeros are counted together.
const FEW: usize = 4;

/// A position in the upper bits. Each one bit is a fingerprint: the ones up to it give its number, the zeros before
/// it its upper part.
#[derive(Clone, Copy)]
struct Ones {
    at: usize,
    /// Zeros before this position.
    zeros: u64,
    /// Ones before this position.
    ones: usize,
}

impl<F: Fingerprint> Parts<'_, F> {
    /// Visits the next `most` fingerprints from a position on, as long as their upper part is at most `last`.
    ///
    /// Calls `visitor` with the number and value of each near one. Returns the position after them, if there may be
    /// more.
    #[inline(always)]
    fn visit_each(
        &self,
        from: Ones,
        last: u64,
        near: Near<F>,
        most: usize,
        visitor: &mut impl FnMut(usize, F),
    ) -> Option<Ones> {
        let (mut start, mut ones) = (from.at / 64 * 64, from.ones);
        let mut word = self.word(start / 64) & (u64::MAX << (from.at % 64));
        let end = self.header.count.min(from.ones.saturating_add(most).saturating_add(1));
        while ones + 1 < end {
            if word == 0 {
                start += 64;
                if start >= self.upper_len {
                    return None;
                }
                word = self.word(start / 64);
                continue;
            }
            let upper = (start + word.trailing_zeros() as usize).wrapping_sub(ones);
            if upper as u64 > last {
                return None;
            }
            ones += 1;
            word &= word - 1;
            let value = self.value(ones, upper);
            if near.holds(value) {
                visitor(ones, value);
            }
        }
        // The zeros up to the next one bit count towards that bit's fingerprint.
        let at = start + word.trailing_zeros() as usize;
        (end < self.header.count).then_some(Ones { at, zeros: at.wrapping_sub(ones) as u64, ones })
    }

    /// Like [`Parts::visit_each`], eight at a time, for lower bits of at most 56 bits and a block of at least 64
    /// bytes.
    #[inline(always)]
    fn visit_eights(&self, from: Ones, last: u64, near: Near<F>, visitor: &mut impl FnMut(usize, F)) {
        /// Upper bits that one load contains at any start.
        const WINDOW: usize = 57;
        let Ones { mut at, mut zeros, mut ones } = from;
        let width = self.header.width;
        while ones + 1 < self.header.count && at < self.upper_len && zeros <= last {
            let position = BlockHeader::<F>::LEN * 8 + at;
            let upper = bits::load(self.block, position / 8) >> (position % 8) & ((1 << WINDOW) - 1);
            let count = upper.count_ones().min(8).min((self.header.count - 1 - ones) as u32);
            // Position of the eighth fingerprint's lower bits. Near the end of a short block it may lie before the
            // block.
            let Some(position) = (self.block.len() * 8).checked_sub((ones + 8) * width as usize) else {
                self.visit_each(Ones { at, zeros, ones }, last, near, usize::MAX, visitor);
                return;
            };
            let first_byte = (position / 8).min(self.block.len() - 64);
            let Some(bytes) = self.block[first_byte..].first_chunk() else { return };
            let base = self.header.first.wrapping_add(F::from_u64(zeros) << width).low_u64();
            let (query, distance) = (near.query.low_u64(), near.distance);
            let position = (position - first_byte * 8) as u32;
            let eight =
                Eight { upper, count, zeros: last - zeros, bytes, position, width, base, query, distance };
            let (values, mut near, seen) = eight.near();
            while near != 0 {
                let i = near.trailing_zeros() as usize;
                visitor(ones + 1 + i, F::from_u64(values[i]));
                near &= near - 1;
            }
            if seen.count_ones() < count {
                return;
            }
            let passed = if count == 8 { select(upper, 7) as usize + 1 } else { WINDOW };
            at += passed;
            ones += count as usize;
            zeros += passed as u64 - u64::from(count);
        }
    }
}

/// Writes a block whose fingerprints have `width` lower bits.
fn encode_with<F: Fingerprint>(width: u32, fingerprints: &[F], block: &mut [u8]) {
    let (first, count) = (fingerprints[0], fingerprints.len());
    BlockHeader { count, width, first }.write(block);
    let end = block.len() * 8;
    for (i, fingerprint) in fingerprints.iter().enumerate().skip(1) {
        let value = fingerprint.wrapping_sub(first);
        let upper = (value >> width).low_u64() as usize;
        bits::write_u64(block, BlockHeader::<F>::LEN * 8 + upper + i - 1, 1, 1);
        bits::write(block, end - i * width as usize, width, value & F::suffix_mask(width));
    }
}

const COUNT: &str = "the number of upper bits and the block's count";

impl<F: Fingerprint> BlockCodec<F> for EliasFano {
    fn count(_: &[F], _: F, _: &mut Counts) {}

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
        let count = fingerprints.len();
        let last = fingerprints[count - 1].wrapping_sub(fingerprints[0]);
        encode_with(if count == 1 { 0 } else { best_width(count - 1, last).0 }, fingerprints, block);
    }

    fn check(&self, block: &[u8], fingerprints: &[F]) -> Result<(), Damage> {
        let parts = Parts::<F>::read(block)?;
        let (count, first) = (fingerprints.len(), fingerprints[0]);
        let upper = fingerprints[count - 1].wrapping_sub(first) >> parts.header.width;
        // If a fingerprint was too large, it has wrapped around: then the upper part does not fit the block.
        if upper > F::from_u64((parts.upper_len + 1 - count) as u64) {
            return Err(OTHER_CODE);
        }
        let mut again = vec![0; block.len()];
        encode_with(parts.header.width, fingerprints, &mut again);
        if again[format::BLOCK_COUNT..] == block[format::BLOCK_COUNT..] { Ok(()) } else { Err(OTHER_CODE) }
    }

    #[inline(always)]
    fn decode(&self, block: &[u8], fingerprints: &mut Vec<F>) -> Result<(), Damage> {
        let parts = Parts::read(block)?;
        let before = fingerprints.len();
        fingerprints.resize(before + parts.header.count, parts.header.first);
        let values = &mut fingerprints[before..];
        let mut read = 0;
        let mut end = 0;
        for (i, start) in (0..parts.upper_len).step_by(64).enumerate() {
            let mut word = parts.word(i);
            if parts.upper_len - start < 64 {
                word &= !(u64::MAX << (parts.upper_len - start));
            }
            let ones = word.count_ones() as usize;
            let Some(values) = values.get_mut(read + 1..read + 1 + ones) else {
                return Err(Damage::Mismatch { what: COUNT });
            };
            for value in values {
                let upper = start + word.trailing_zeros() as usize - read;
                read += 1;
                *value = parts.value(read, upper);
                word &= word.wrapping_sub(1);
            }
            end = read + 1;
        }
        if end.max(1) == parts.header.count { Ok(()) } else { Err(Damage::Mismatch { what: COUNT }) }
    }

    const AIMS: bool = false;

    #[inline(always)]
    fn aim(&self, _: &[u8], _: F, _: F) -> Result<(), Damage> {
        Ok(())
    }

    #[inline(always)]
    fn locate(&self, block: &[u8], Range { low, high }: Range<F>, _: F) -> Result<Option<Spot>, Damage> {
        let parts = Parts::read(block)?;
        let first = parts.header.first;
        if low <= first {
            let zeros = if high >= first { parts.zeros_before(high) } else { 0 };
            return Ok((high >= first).then_some(Spot { index: 0, bytes: parts.lower_bytes(1, zeros) }));
        }
        let zeros = parts.zeros_before(low);
        let Some(at) = parts.skip(zeros) else { return Ok(None) };
        let word = parts.word(at / 64) >> (at % 64);
        // Zeros that come next, if they end in this word.
        let gap = if word == 0 { 0 } else { u64::from(word.trailing_zeros()) };
        let zeros_within = parts.zeros_before(high) - zeros;
        if gap > zeros_within {
            return Ok(None);
        }
        let bytes = parts.lower_bytes(at - zeros as usize + 1, zeros_within);
        Ok(Some(Spot { index: at as u32, bytes }))
    }

    #[inline(always)]
    fn visit_from(
        &self,
        block: &[u8],
        spot: u32,
        Range { low, high }: Range<F>,
        near: Near<F>,
        mut visitor: impl FnMut(usize, F),
    ) -> Result<(), Damage> {
        let parts = Parts::read(block)?;
        let first = parts.header.first;
        let mut zeros = 0;
        if low > first {
            zeros = parts.zeros_before(low) as usize;
        } else if near.holds(first) {
            visitor(0, first);
        }
        let last = parts.zeros_before(high);
        let bits = Ones { at: spot as usize, zeros: zeros as u64, ones: (spot as usize).wrapping_sub(zeros) };
        let mut visitor = |i, value| {
            if value >= low && value <= high {
                visitor(i, value);
            }
        };
        // Most look-ups end after one or two fingerprints; eight at a time is for the others.
        let eights = F::BITS == 64 && has_eights() && block.len() >= 64 && parts.header.width <= 56;
        let most = if eights { 4 } else { usize::MAX };
        if let Some(more) = parts.visit_each(bits, last, near, most, &mut visitor) {
            parts.visit_eights(more, last, near, &mut visitor);
        }
        Ok(())
    }
}
