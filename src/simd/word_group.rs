//! Kernel of the codec `all-differences`: computes how each of eight fingerprints differs from an earlier one.
//!
//! Each fingerprint is coded by a symbol and a tail, the bits that the symbol leaves open. A near symbol says that
//! bit h is the first bit that differs from an earlier fingerprint; the tail has the positions of further differing
//! bits, and which earlier fingerprint it is. A gap symbol says that the numeric difference to the predecessor has top
//! bit h; the tail has the bits below it. `codec/all_differences/alphabet.rs` has the details.

/// The decoded code words of eight fingerprints, and the location of their tails.
///
/// A valid word is not 0. Its fields say how to read the tail of the fingerprint, the bits after the code word.
/// Bits of the word, counted from the lowest (the [module docs](self) explain the terms):
///
/// - bits 0 to 3: length of the code word
/// - bits 4 to 10: length of the tail
/// - bits 11 to 17: bit position h of the symbol
/// - bits 18 to 20: width of a bit position in the tail
/// - bits 21 to 23: number of bit positions in the tail, at most [`MAX_POSITIONS`]
/// - bit 24: whether the tail has a distance back, in 4 bits after the bit positions
/// - bit 25: whether the symbol is a gap symbol; then the tail has the h bits below the top bit of the gap, the numeric
///   difference to the predecessor
#[derive(Clone, Copy, Debug)]
pub(crate) struct WordGroup8<'a> {
    pub(crate) words: &'a [u32; 8],
    pub(crate) block: &'a [u8],
    /// Bit position in the block where the first tail ends. The tails are stored backward: the second tail ends where the
    /// first starts, and so on.
    pub(crate) end: usize,
}

/// Maximum number of bit positions that a tail stores. Each is the position of a bit that differs from the earlier
/// fingerprint.
pub(crate) const MAX_POSITIONS: u32 = 5;
/// Maximum length in bits of a tail that is read with one load of 64 bits. A load starts at a whole byte, so up to 7 of
/// its bits may lie before the tail.
const MAX_LOADED_TAIL_BITS: u64 = 57;

/// Says how to compute each of eight fingerprints from an earlier one: as (earlier fingerprint + `add`) xor `flip`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deltas8 {
    /// For each fingerprint, the location of the earlier fingerprint from which it is computed: 0 is its predecessor,
    /// 1 the fingerprint before the predecessor, and so on.
    pub(crate) back: [u64; 8],
    pub(crate) add: [u64; 8],
    pub(crate) flip: [u64; 8],
    /// Bit position where each tail starts. If the block is damaged, some positions may have wrapped around below 0.
    pub(crate) tail_starts: [u64; 8],
    /// Mask of the code words that are invalid. An invalid word is 0.
    pub(crate) invalid_words: u8,
    /// Mask of the code words whose symbol is a gap symbol with a tail of more than 57 bits. For these, `add` is
    /// wrong.
    pub(crate) long_gaps: u8,
}

impl Deltas8 {
    pub(crate) const NONE: Deltas8 = Deltas8 {
        back: [0; 8],
        add: [0; 8],
        flip: [0; 8],
        tail_starts: [0; 8],
        invalid_words: 0,
        long_gaps: 0,
    };
}

impl WordGroup8<'_> {
    /// Computes all fields of `all` for fingerprints of 64 bits. For wider fingerprints, `add` and `flip` are
    /// wrong and the other fields are right. `load` takes the block and the index of a byte. It returns the 64
    /// bits from this byte on, with zeros beyond the end.
    #[inline(always)]
    pub(crate) fn decode(&self, load: impl Fn(&[u8], usize) -> u64, all: &mut Deltas8) {
        #[cfg(target_arch = "x86_64")]
        if super::x86::level() >= super::x86::V4 {
            // SAFETY: the processor has the features that the callee is compiled for.
            return unsafe { x86::decode(self, load, all) };
        }
        self.decode_plain(load, all);
    }

    /// The version of [`WordGroup8::decode`] for processors without AVX-512.
    #[inline(always)]
    pub(crate) fn decode_plain(&self, load: impl Fn(&[u8], usize) -> u64, all: &mut Deltas8) {
        *all = Deltas8::NONE;
        let mut tail = self.end as u64;
        for (i, &word) in self.words.iter().enumerate() {
            let tail_len = u64::from(word >> 4 & 127);
            tail = tail.wrapping_sub(tail_len);
            all.tail_starts[i] = tail;
            all.invalid_words |= u8::from(word == 0) << i;
            let field = load(self.block, (tail / 8) as usize) >> (tail % 8);
            let first = 1_u64 << (word >> 11 & 63);
            if word >> 25 & 1 == 1 {
                all.long_gaps |= u8::from(tail_len > MAX_LOADED_TAIL_BITS) << i;
                all.add[i] = field & (first - 1) | first;
                continue;
            }
            let (len, positions) = (word >> 18 & 7, word >> 21 & 7);
            let position = |number: u32| field >> (number * len) & ((1 << len) - 1);
            let bits = (0..positions.min(MAX_POSITIONS)).map(|number| 1 << (position(number) & 63));
            all.flip[i] = bits.fold(first, |all, bit: u64| all | bit);
            if word >> 24 & 1 == 1 {
                all.back[i] = field >> (len * positions) & 15;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Deltas8, MAX_LOADED_TAIL_BITS, MAX_POSITIONS, WordGroup8};

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub(super) fn decode(words: &WordGroup8, load: impl Fn(&[u8], usize) -> u64, all: &mut Deltas8) {
        let splat = |value: u64| _mm512_set1_epi64(value.cast_signed());
        let zero = _mm512_setzero_si512();
        // SAFETY: 32 bytes are read from an array of 32.
        let word = unsafe { _mm512_cvtepu32_epi64(_mm256_loadu_si256(words.words.as_ptr().cast())) };
        let tail_len = _mm512_and_si512(_mm512_srli_epi64::<4>(word), splat(127));
        // Prefix sums of the lengths: each step adds the value one, two, then four places before.
        let sum = _mm512_add_epi64(tail_len, _mm512_alignr_epi64::<7>(tail_len, zero));
        let sum = _mm512_add_epi64(sum, _mm512_alignr_epi64::<6>(sum, zero));
        let sum = _mm512_add_epi64(sum, _mm512_alignr_epi64::<4>(sum, zero));
        let tail = _mm512_sub_epi64(splat(words.end as u64), sum);
        let bytes = _mm512_srli_epi64::<3>(tail);
        let last = words.block.len().wrapping_sub(8);
        let inside = words.block.len() >= 8 && _mm512_cmple_epu64_mask(bytes, splat(last as u64)) == 0xff;
        let loaded = if inside {
            // SAFETY: eight bytes from each of these are in the block, by the comparison.
            unsafe { _mm512_i64gather_epi64::<1>(bytes, words.block.as_ptr().cast()) }
        } else {
            let mut loaded = [0; 8];
            // SAFETY: 64 bytes are written to an array of 64, and read from one.
            unsafe {
                _mm512_storeu_si512(loaded.as_mut_ptr().cast(), bytes);
                for field in &mut loaded {
                    *field = load(words.block, *field as usize);
                }
                _mm512_loadu_si512(loaded.as_ptr().cast())
            }
        };
        let field = _mm512_srlv_epi64(loaded, _mm512_and_si512(tail, splat(7)));

        let (one, low) = (splat(1), splat(7));
        let first = _mm512_sllv_epi64(one, _mm512_and_si512(_mm512_srli_epi64::<11>(word), splat(63)));
        let len = _mm512_and_si512(_mm512_srli_epi64::<18>(word), low);
        let positions = _mm512_and_si512(_mm512_srli_epi64::<21>(word), low);
        let is_gap = _mm512_test_epi64_mask(word, splat(1 << 25));
        let is_earlier = _mm512_test_epi64_mask(word, splat(1 << 24)) & !is_gap;

        let below = _mm512_and_si512(field, _mm512_sub_epi64(first, one));
        let add = _mm512_maskz_or_epi64(is_gap, below, first);

        let mask = _mm512_sub_epi64(_mm512_sllv_epi64(one, len), one);
        let (mut flip, mut rest) = (first, field);
        for number in 0..u64::from(MAX_POSITIONS) {
            let bit = _mm512_sllv_epi64(one, _mm512_and_si512(rest, mask));
            let is_there = _mm512_cmpgt_epu64_mask(positions, splat(number));
            flip = _mm512_mask_or_epi64(flip, is_there, flip, bit);
            rest = _mm512_srlv_epi64(rest, len);
        }
        let flip = _mm512_maskz_mov_epi64(!is_gap, flip);
        let passed = _mm512_mul_epu32(len, positions);
        let back = _mm512_maskz_and_epi64(is_earlier, _mm512_srlv_epi64(field, passed), splat(15));

        let unknown = _mm512_cmpeq_epi64_mask(word, zero);
        let long = _mm512_cmpgt_epu64_mask(tail_len, splat(MAX_LOADED_TAIL_BITS)) & is_gap;
        (all.invalid_words, all.long_gaps) = (unknown, long);
        // SAFETY: 64 bytes are written to arrays of 64.
        unsafe {
            _mm512_storeu_si512(all.back.as_mut_ptr().cast(), back);
            _mm512_storeu_si512(all.add.as_mut_ptr().cast(), add);
            _mm512_storeu_si512(all.flip.as_mut_ptr().cast(), flip);
            _mm512_storeu_si512(all.tail_starts.as_mut_ptr().cast(), tail);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn load(bytes: &[u8], at: usize) -> u64 {
        let byte = |i: usize| u64::from(at.checked_add(i).and_then(|at| bytes.get(at)).copied().unwrap_or(0));
        (0..8).fold(0, |word, i| word | byte(i) << (8 * i))
    }

    proptest! {
        #[test]
        fn both_ways_follow(
            words in prop_oneof![any::<[u32; 8]>(), prop::array::uniform8(0_u32..1 << 10)],
            block in prop::collection::vec(any::<u8>(), 0..300),
            end in 0_usize..2600,
        ) {
            let words = WordGroup8 { words: &words, block: &block, end };
            let (mut found, mut plain) = (Deltas8::NONE, Deltas8::NONE);
            words.decode(load, &mut found);
            words.decode_plain(load, &mut plain);
            // A position of 7 bits may exceed 63; then the results may differ. Words of 64-bit fingerprints have none.
            let is_right = |i: usize| words.words[i] >> 18 & 7 < 7;
            for i in (0..8).filter(|&i| is_right(i)) {
                prop_assert_eq!(
                    (found.back[i], found.add[i], found.flip[i], found.tail_starts[i]),
                    (plain.back[i], plain.add[i], plain.flip[i], plain.tail_starts[i])
                );
            }
            prop_assert_eq!((found.invalid_words, found.long_gaps), (plain.invalid_words, plain.long_gaps));
        }
    }
}
