//! The Elias-Fano codec. In each block, every fingerprint minus the first one is split into lower bits, stored at fixed
//! width, and upper bits, stored in unary. A look-up of a range of fingerprints finds the start of the range by counting
//! zeros, and decodes no fingerprints before it.
//!
//! P. Elias, "Efficient storage and retrieval by content and address of static files", J. ACM 21 (1974);
//! R. M. Fano, "On the number of bits required to implement an associative memory", MIT (1971).

use super::block_codec::{
    Block, BlockCodec, BlockFit, BlockHeader, CodecCosts, CodecKind, CodecParameters, CodecSpec,
    FingerprintRange, HammingBall, NONCONFORMING_BLOCK, ScanStart,
};
use super::symbols::SymbolHistogram;
use crate::bits;
use crate::error::Damage;
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::simd::{EliasFanoGroup8, has_fast_group8, select};

/// The Elias-Fano codec. It has no parameters for a whole table; each block has its own width of the lower bits.
#[derive(Debug)]
pub(crate) struct EliasFano;

impl CodecKind for EliasFano {
    const SPEC: CodecSpec = CodecSpec {
        number: 2,
        name: "elias-fano",
        has_code: false,
        has_lines: false,
        alphabet_size: |bits| bits as usize,
        default_spans: None,
        default_block_sizes: [512, 4096],
        // The time to decode was fitted to 0.2 ns with AVX-512, and to 1.5 ns without. The constant is between the two.
        costs: CodecCosts { bits: 2.0, probe: 38.0, decode: 0.8, miss: 0.18 },
    };

    fn new(_: CodecParameters<'_>) -> Self {
        EliasFano
    }
}

/// Returns the width of the lower bits with which a block is smallest, and the total size of the block's upper and
/// lower bits. Both are in bits. The block has `count` fingerprints after the first. `last` is the last
/// fingerprint minus the first.
fn best_width<F: Fingerprint>(count: usize, last: F) -> (u32, usize) {
    let bits = |width: u32| {
        // The upper bits would be too long for any block: the width is far too small.
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

/// A block with its two parts, the upper bits and the lower bits.
struct EliasFanoBlock<'a, F> {
    block: &'a [u8],
    header: BlockHeader<F>,
    /// The bytes after the header, as words of 64 bits; an incomplete word at the end is left out. The upper bits start in
    /// the first word.
    words: &'a [[u8; 8]],
    /// Length of the upper bits: the number of bits between the header and the lower bits. The lower bits run backward from
    /// the block's end.
    upper_len: usize,
}

impl<'a, F: Fingerprint> EliasFanoBlock<'a, F> {
    #[inline(always)]
    fn read(block: &'a [u8]) -> Result<Self, Damage> {
        let header = BlockHeader::<F>::read(block)?;
        let rest = &block[BlockHeader::<F>::LEN..];
        let lower = (header.count - 1) * header.width as usize;
        match (rest.len() * 8).checked_sub(lower) {
            Some(upper_len) if header.width < F::BITS => {
                Ok(EliasFanoBlock { block, header, words: rest.as_chunks().0, upper_len })
            }
            _ => Err(Damage::Field {
                name: "width",
                found: u64::from(header.width),
                expected: "lower bits that lie inside the block",
            }),
        }
    }

    /// Returns the bit position of the lower bits of fingerprint `i`. The first fingerprint (`i` = 0) has no lower bits.
    #[inline(always)]
    fn lower_position(&self, i: usize) -> usize {
        (self.block.len() * 8).wrapping_sub(i * self.header.width as usize)
    }

    /// Estimates which part of the lower bits a look-up will read. Returns the offsets in the block of the first and
    /// the last byte of this part. The look-up starts at fingerprint `i`. The upper bits that it reads contain `zeros`
    /// zeros; the estimate assumes one fingerprint for each of them.
    #[inline(always)]
    fn lower_bytes(&self, i: usize, zeros: u64) -> (u32, u32) {
        let last = self.header.count.min(i + zeros.min(self.header.count as u64) as usize);
        ((self.lower_position(last) / 8) as u32, (self.lower_position(i) / 8) as u32)
    }

    /// Returns fingerprint `i` from its upper part, `upper`, and its lower bits. `i` is at least 1.
    #[inline(always)]
    fn fingerprint(&self, i: usize, upper: usize) -> F {
        let (at, width) = (self.lower_position(i), self.header.width);
        let lower = if width <= bits::MAX_SHORT_BITS {
            F::from_u64(bits::load(self.block, at / 8) >> (at % 8)) & !(F::MAX << width)
        } else {
            bits::read_long(self.block, at, width)
        };
        self.header.first.wrapping_add(F::from_u64(upper as u64) << width | lower)
    }

    /// Returns the 64-bit word with the index `i`, counted from the start of the upper bits. Bits after the end of
    /// the upper bits have no meaning.
    #[inline(always)]
    fn word(&self, i: usize) -> u64 {
        match self.words.get(i) {
            Some(word) => u64::from_le_bytes(*word),
            None => bits::load_tail(self.block, BlockHeader::<F>::LEN + i * 8),
        }
    }

    /// Returns the upper part of `value`: the number of zeros that precede a fingerprint with this value in the
    /// upper bits. `value` must be at least the block's first fingerprint. The result may exceed the number of
    /// zeros in the block.
    #[inline(always)]
    fn zeros_before(&self, value: F) -> u64 {
        let upper = value.wrapping_sub(self.header.first) >> self.header.width;
        if F::BITS > 64 && upper.high_u64() > 0 { u64::MAX } else { upper.low_u64() }
    }

    /// Returns the bit position after the first `zeros` zeros of the upper bits, or `None` if the block has fewer
    /// zeros.
    #[inline(always)]
    fn position_after_zeros(&self, zeros: u64) -> Option<usize> {
        if zeros >= self.upper_len as u64 {
            return None;
        }
        let left = zeros as u32;
        // The first words are counted without a branch: the position is unpredictable, and most blocks have no more words.
        let (word, start, left) = match self.words.first_chunk::<UNROLLED_WORDS>() {
            Some(words) => {
                let mut before = [0; UNROLLED_WORDS + 1];
                for (i, word) in words.iter().enumerate() {
                    before[i + 1] = before[i] + u64::from_le_bytes(*word).count_zeros();
                }
                let whole = (1..UNROLLED_WORDS).map(|i| usize::from(before[i] < left)).sum::<usize>();
                if before[UNROLLED_WORDS] >= left {
                    (
                        !u64::from_le_bytes(words[whole % UNROLLED_WORDS]),
                        whole * 64,
                        left - before[whole % UNROLLED_WORDS],
                    )
                } else {
                    self.find_word_of_zero(UNROLLED_WORDS, left - before[UNROLLED_WORDS])
                }
            }
            None => self.find_word_of_zero(0, left),
        };
        let at = if left == 0 { start } else { start + select(word, left - 1) as usize + 1 };
        (at < self.upper_len).then_some(at)
    }

    /// Finds the `left`-th zero of the upper bits, counted from 1 at the start of word `i`. Returns the bitwise
    /// complement of the word that contains this zero, the bit position where the word starts, and the number of
    /// zeros in the word up to and including this zero.
    #[inline(always)]
    fn find_word_of_zero(&self, mut i: usize, mut left: u32) -> (u64, usize, u32) {
        loop {
            let word = !self.word(i);
            let here = word.count_ones();
            // After the end of the block all bits are zero, so the loop ends.
            if here >= left {
                return (word, i * 64, left);
            }
            left -= here;
            i += 1;
        }
    }
}

/// Number of 64-bit words at the start of the upper bits whose zeros are counted without a branch.
const UNROLLED_WORDS: usize = 4;

/// A position in the upper bits. Each set bit represents a fingerprint, except for the first fingerprint (index 0),
/// which has no bit. The number of set bits up to and including the bit of a fingerprint is the fingerprint's index
/// in the block. The number of zeros before the bit is the fingerprint's upper part.
#[derive(Clone, Copy)]
struct UpperPosition {
    at: usize,
    /// Number of zeros before this position.
    zeros: u64,
    /// Number of ones before this position.
    ones: usize,
}

impl<F: Fingerprint> EliasFanoBlock<'_, F> {
    /// Decodes fingerprints from a position on. Stops after `most` fingerprints, or at a fingerprint whose upper
    /// part is greater than `last`.
    ///
    /// Calls `visitor` with each decoded fingerprint in `ball`: its index in the block, and its value. Returns the position
    /// after the last decoded fingerprint, or `None` if no further fingerprint has an upper part of at most `last`.
    #[inline(always)]
    fn visit_one_by_one(
        &self,
        from: UpperPosition,
        last: u64,
        ball: HammingBall<F>,
        most: usize,
        visitor: &mut impl FnMut(usize, F),
    ) -> Option<UpperPosition> {
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
            let value = self.fingerprint(ones, upper);
            if ball.contains(value) {
                visitor(ones, value);
            }
        }
        // The zeros up to the next one bit count towards that bit's fingerprint.
        let at = start + word.trailing_zeros() as usize;
        (end < self.header.count).then_some(UpperPosition { at, zeros: at.wrapping_sub(ones) as u64, ones })
    }

    /// Like [`EliasFanoBlock::visit_one_by_one`], but decodes eight fingerprints at a time, and has no limit on the number of
    /// fingerprints. The lower bits of a fingerprint must be at most 56 bits wide, and the block must have at least 64 bytes.
    #[inline(always)]
    fn visit_groups(
        &self,
        from: UpperPosition,
        last: u64,
        ball: HammingBall<F>,
        visitor: &mut impl FnMut(usize, F),
    ) {
        /// Number of bits that one load of 64 bits always supplies from a wanted bit on. The load starts with the byte of
        /// the wanted bit, so it may have up to 7 bits before this bit.
        const WINDOW: usize = 57;
        let UpperPosition { mut at, mut zeros, mut ones } = from;
        let width = self.header.width;
        while ones + 1 < self.header.count && at < self.upper_len && zeros <= last {
            let position = BlockHeader::<F>::LEN * 8 + at;
            let upper = bits::load(self.block, position / 8) >> (position % 8) & ((1 << WINDOW) - 1);
            let count = upper.count_ones().min(8).min((self.header.count - 1 - ones) as u32);
            // Bit position of the eighth fingerprint's lower bits. Near the end of a short block it may lie before the
            // start of the block.
            let Some(position) = (self.block.len() * 8).checked_sub((ones + 8) * width as usize) else {
                self.visit_one_by_one(UpperPosition { at, zeros, ones }, last, ball, usize::MAX, visitor);
                return;
            };
            let first_byte = (position / 8).min(self.block.len() - 64);
            let Some(bytes) = self.block[first_byte..].first_chunk() else { return };
            let base = self.header.first.wrapping_add(F::from_u64(zeros) << width).low_u64();
            let (query, distance) = (ball.query.low_u64(), ball.distance);
            let position = (position - first_byte * 8) as u32;
            let group = EliasFanoGroup8 {
                upper,
                count,
                zeros: last - zeros,
                bytes,
                position,
                width,
                base,
                query,
                distance,
            };
            let (values, mut near, seen) = group.find_matches();
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

/// Writes a block in which each fingerprint has `width` lower bits.
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

const COUNT_MISMATCH: &str = "the number of upper bits and the block's count";

impl<F: Fingerprint> BlockCodec<F> for EliasFano {
    fn count(_: &[F], _: F, _: &mut SymbolHistogram) {}

    fn fit(&self, fingerprints: &[F], bytes: usize) -> BlockFit {
        let mut best = BlockFit { count: 1, bytes: BlockHeader::<F>::LEN };
        for (i, &fingerprint) in fingerprints.iter().enumerate().take(format::MAX_BLOCK_FINGERPRINTS).skip(1)
        {
            let (_, bits) = best_width(i, fingerprint.wrapping_sub(fingerprints[0]));
            let needed = bits.saturating_add(BlockHeader::<F>::LEN * 8).div_ceil(8);
            if needed > bytes {
                break;
            }
            best = BlockFit { count: i + 1, bytes: needed };
        }
        best
    }

    fn encode(&self, fingerprints: &[F], block: &mut [u8]) {
        let count = fingerprints.len();
        let last = fingerprints[count - 1].wrapping_sub(fingerprints[0]);
        encode_with(if count == 1 { 0 } else { best_width(count - 1, last).0 }, fingerprints, block);
    }

    fn check(&self, Block { bytes: block, .. }: Block<'_>, fingerprints: &[F]) -> Result<(), Damage> {
        let parts = EliasFanoBlock::<F>::read(block)?;
        let (count, first) = (fingerprints.len(), fingerprints[0]);
        let upper = fingerprints[count - 1].wrapping_sub(first) >> parts.header.width;
        // A sum above the largest fingerprint wraps around when decoded. Then the true upper part does not fit in the block.
        if upper > F::from_u64((parts.upper_len + 1 - count) as u64) {
            return Err(NONCONFORMING_BLOCK);
        }
        let mut again = vec![0; block.len()];
        encode_with(parts.header.width, fingerprints, &mut again);
        if again[format::BLOCK_COUNT..] == block[format::BLOCK_COUNT..] {
            Ok(())
        } else {
            Err(NONCONFORMING_BLOCK)
        }
    }

    #[inline(always)]
    fn decode(&self, Block { bytes: block, .. }: Block<'_>, fingerprints: &mut Vec<F>) -> Result<(), Damage> {
        let parts = EliasFanoBlock::read(block)?;
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
                return Err(Damage::Mismatch { what: COUNT_MISMATCH });
            };
            for value in values {
                let upper = start + word.trailing_zeros() as usize - read;
                read += 1;
                *value = parts.fingerprint(read, upper);
                word &= word.wrapping_sub(1);
            }
            end = read + 1;
        }
        if end.max(1) == parts.header.count { Ok(()) } else { Err(Damage::Mismatch { what: COUNT_MISMATCH }) }
    }

    const PREFETCHES_FOR_LOCATE: bool = false;

    #[inline(always)]
    fn prefetch_for_locate(&self, _: Block<'_>, _: F, _: F) -> Result<(), Damage> {
        Ok(())
    }

    #[inline(always)]
    fn locate(
        &self,
        Block { bytes: block, .. }: Block<'_>,
        FingerprintRange { low, high }: FingerprintRange<F>,
        _: F,
    ) -> Result<Option<ScanStart>, Damage> {
        let parts = EliasFanoBlock::read(block)?;
        let first = parts.header.first;
        if low <= first {
            let zeros = if high >= first { parts.zeros_before(high) } else { 0 };
            return Ok((high >= first).then_some(ScanStart { index: 0, bytes: parts.lower_bytes(1, zeros) }));
        }
        let zeros = parts.zeros_before(low);
        let Some(at) = parts.position_after_zeros(zeros) else { return Ok(None) };
        let word = parts.word(at / 64) >> (at % 64);
        // Number of zeros that follow, if they end in this word.
        let gap = if word == 0 { 0 } else { u64::from(word.trailing_zeros()) };
        let zeros_within = parts.zeros_before(high) - zeros;
        if gap > zeros_within {
            return Ok(None);
        }
        let bytes = parts.lower_bytes(at - zeros as usize + 1, zeros_within);
        Ok(Some(ScanStart { index: at as u32, bytes }))
    }

    #[inline(always)]
    fn visit_from(
        &self,
        Block { bytes: block, .. }: Block<'_>,
        start_index: u32,
        FingerprintRange { low, high }: FingerprintRange<F>,
        ball: HammingBall<F>,
        mut visitor: impl FnMut(usize, F),
    ) -> Result<(), Damage> {
        let parts = EliasFanoBlock::read(block)?;
        let first = parts.header.first;
        let mut zeros = 0;
        if low > first {
            zeros = parts.zeros_before(low) as usize;
        } else if ball.contains(first) {
            visitor(0, first);
        }
        let last = parts.zeros_before(high);
        let bits = UpperPosition {
            at: start_index as usize,
            zeros: zeros as u64,
            ones: (start_index as usize).wrapping_sub(zeros),
        };
        let mut visitor = |i, value| {
            if value >= low && value <= high {
                visitor(i, value);
            }
        };
        // Most look-ups end after one or two fingerprints. Only the others gain from groups of eight.
        let use_group8 = F::BITS == 64 && has_fast_group8() && block.len() >= 64 && parts.header.width <= 56;
        let most = if use_group8 { 4 } else { usize::MAX };
        if let Some(more) = parts.visit_one_by_one(bits, last, ball, most, &mut visitor) {
            parts.visit_groups(more, last, ball, &mut visitor);
        }
        Ok(())
    }
}
