//! Decodes fingerprints of the codec `all-differences`: first the Huffman code words, then the *tails* (the bits
//! stored in addition to the code words).

use std::hint::select_unpredictable;

use super::alphabet::{DeltaCoding, DeltaSymbol, MAX_DIFFERING, WINDOW};
use crate::bits;
use crate::error::Damage;
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::huffman::{HuffmanCode, MAX_WORD_BITS};
use crate::simd::{Deltas8, WordGroup8};

/// A decoded code word, packed. From the lowest bit on:
///
/// - length of the code word (4 bits), never 0: an entry of 0 is no code word
/// - length of the tail (7 bits)
/// - bit position h of the symbol (7 bits)
/// - width of a bit position in the tail (3 bits)
/// - number of bit positions in the tail (3 bits)
/// - whether the tail has a distance back (1 bit)
/// - whether the symbol is a gap symbol (1 bit)
///
/// `alphabet.rs` explains these terms.
#[derive(Clone, Copy, Debug, Default)]
struct WordEntry(u32);

impl WordEntry {
    fn new(word_len: u32, symbol: DeltaSymbol) -> WordEntry {
        let (position_bits, positions) = symbol.position_fields();
        let (h, is_gap, is_earlier) = match symbol {
            DeltaSymbol::Gap { h } => (h, true, false),
            DeltaSymbol::Near { h, is_earlier, .. } => (h, false, is_earlier),
        };
        let flags = u32::from(is_earlier) << 24 | u32::from(is_gap) << 25;
        WordEntry(word_len | symbol.tail_len() << 4 | h << 11 | position_bits << 18 | positions << 21 | flags)
    }

    #[inline(always)]
    fn word_len(self) -> usize {
        (self.0 & 15) as usize
    }

    #[inline(always)]
    fn h(self) -> u32 {
        self.0 >> 11 & 127
    }

    #[inline(always)]
    fn position_bits(self) -> u32 {
        self.0 >> 18 & 7
    }

    #[inline(always)]
    fn positions(self) -> u32 {
        self.0 >> 21 & 7
    }

    #[inline(always)]
    fn is_earlier(self) -> bool {
        self.0 >> 24 & 1 == 1
    }

    #[inline(always)]
    fn is_gap(self) -> bool {
        self.0 >> 25 & 1 == 1
    }

    fn symbol(self) -> DeltaSymbol {
        match self.is_gap() {
            true => DeltaSymbol::Gap { h: self.h() },
            false => {
                DeltaSymbol::Near { h: self.h(), differing: self.positions(), is_earlier: self.is_earlier() }
            }
        }
    }
}

/// Number of fingerprints in a group. The tails of a group (the bits stored in addition to the code words) are
/// read together.
pub(super) const GROUP_LEN: usize = 8;
/// Number of Huffman code words that always fit in one load of the bit buffer, because a load has at least 57
/// bits.
pub(super) const WORDS_PER_LOAD: usize = 4;
/// Number of code words in a [`CodeWordBuffer`]. The buffer has room for the code words of the longest span, and
/// for those that are read beyond the span's end.
const WORD_BUFFER_LEN: usize = format::MAX_SPAN as usize + GROUP_LEN;

/// The decoded code words of a span (a sequence of fingerprints that is decoded from its start). Each is a packed
/// [`WordEntry`].
pub(super) type CodeWordBuffer = [u32; WORD_BUFFER_LEN];
pub(super) const EMPTY_WORDS: CodeWordBuffer = [0; WORD_BUFFER_LEN];

/// A look-up table that decodes Huffman code words. The next bits of a block are the index of an entry.
#[derive(Debug)]
pub(super) struct WordDecoder {
    entries: Box<[WordEntry; 1 << MAX_WORD_BITS]>,
}

impl WordDecoder {
    /// Creates the look-up table of a Huffman code, for fingerprints of `bits` bits.
    pub(super) fn new(code: &HuffmanCode, bits: u32) -> WordDecoder {
        let mut entries = Box::new([WordEntry::default(); 1 << MAX_WORD_BITS]);
        for (number, string, length) in code.strings_with_word() {
            entries[string] = WordEntry::new(length, DeltaSymbol::from_number(number, bits));
        }
        WordDecoder { entries }
    }

    /// Decodes the [`WORDS_PER_LOAD`] code words that start at bit `start` of a block. Returns the bit position of
    /// the next code word.
    #[inline(always)]
    pub(super) fn read_words(
        &self,
        block: &[u8],
        mut start: usize,
        words: &mut [u32; WORDS_PER_LOAD],
    ) -> usize {
        let mut buffer = bits::load(block, start / 8) >> (start % 8);
        for word in words {
            let entry = self.entries[(buffer & ((1 << MAX_WORD_BITS) - 1)) as usize];
            *word = entry.0;
            buffer >>= entry.word_len();
            start += entry.word_len();
        }
        start
    }
}

/// How to compute each of eight fingerprints from an earlier fingerprint. Extends [`Deltas8`] to fingerprints of
/// 128 bits.
pub(super) struct GroupDeltas {
    deltas: Deltas8,
    /// Upper 64 bits of each number in `deltas.add`. Used for fingerprints of 128 bits.
    high_add: [u64; GROUP_LEN],
    /// Upper 64 bits of each number in `deltas.flip`. Used for fingerprints of 128 bits.
    high_flip: [u64; GROUP_LEN],
}

impl GroupDeltas {
    pub(super) const NONE: GroupDeltas =
        GroupDeltas { deltas: Deltas8::NONE, high_add: [0; GROUP_LEN], high_flip: [0; GROUP_LEN] };

    /// Reads the tails of eight fingerprints: the bits stored in addition to their code words. Tails are stored
    /// backward: the first one ends at bit `end` of the block, the second ends where the first starts, and so on.
    #[inline(always)]
    fn read_tails<F: Fingerprint>(&mut self, block: &[u8], words: &[u32; GROUP_LEN], end: usize) {
        let words = WordGroup8 { words, block, end };
        if F::BITS > 64 {
            words.decode_plain(bits::load, &mut self.deltas);
            self.reread_wide::<F>(words);
            return;
        }
        words.decode(bits::load, &mut self.deltas);
        if self.deltas.long_gaps != 0 {
            self.reread_long_gaps(words);
        }
    }

    /// Reads the tails of all gap symbols (numeric differences) again, with a method for tails of any length. Called
    /// if a tail is longer than one load, as it may be in the smallest tables.
    #[cold]
    #[inline(never)]
    fn reread_long_gaps(&mut self, words: WordGroup8<'_>) {
        for i in 0..GROUP_LEN {
            let (word, h) = (WordEntry(words.words[i]), WordEntry(words.words[i]).h() % u64::BITS);
            if word.is_gap() {
                self.deltas.add[i] =
                    bits::read_u64(words.block, self.deltas.tail_starts[i] as usize, h) | 1 << h;
            }
        }
    }

    /// Reads the tails of eight fingerprints of 128 bits again, and completes `deltas.add` and `deltas.flip` with the
    /// upper halves of the numbers, for which [`Deltas8`] has no space.
    #[inline(always)]
    fn reread_wide<F: Fingerprint>(&mut self, words: WordGroup8<'_>) {
        for (i, &word) in words.words.iter().enumerate() {
            let (word, tail) = (WordEntry(word), self.deltas.tail_starts[i] as usize);
            let first = F::ONE << (word.h() % F::BITS);
            if word.is_gap() {
                let add = bits::read::<F>(words.block, tail, word.h() % F::BITS) | first;
                (self.deltas.add[i], self.high_add[i], self.high_flip[i]) =
                    (add.low_u64(), add.high_u64(), 0);
                continue;
            }
            let field = bits::load(words.block, tail / 8) >> (tail % 8);
            let (mut flip, len) = (first, word.position_bits());
            for number in 0..word.positions().min(MAX_DIFFERING) {
                let position = field >> (number * len) & ((1 << len) - 1);
                flip = flip | F::ONE << (position as u32 % F::BITS);
            }
            (self.deltas.flip[i], self.high_flip[i], self.high_add[i]) = (flip.low_u64(), flip.high_u64(), 0);
        }
    }

    /// Returns the coding of fingerprint `i` of the group, from 0 to 7. `word` is its decoded code word.
    pub(super) fn coding(&self, word: u32, i: usize) -> DeltaCoding {
        DeltaCoding { symbol: WordEntry(word).symbol(), back: self.deltas.back[i] as usize }
    }
}

/// Joins the two halves of a fingerprint. A fingerprint of 64 bits has only the low one.
#[inline(always)]
fn from_halves<F: Fingerprint>(low: u64, high: u64) -> F {
    if F::BITS == 64 { F::from_u64(low) } else { F::from_u64(low) | F::from_u64(high) << (64 % F::BITS) }
}

/// Decodes the fingerprints of a span, a sequence that is decoded from its start. Reads the tails (the bits stored
/// in addition to the code words) in groups of eight, and then computes one fingerprint after the other.
pub(super) struct SpanReader<'a, F> {
    block: &'a [u8],
    /// Bit position where the next tail ends. Tails are stored backward, so this is where the previous tail starts.
    pub(super) tail: usize,
    value: F,
    /// The [`WINDOW`] fingerprints that were decoded last. Fingerprint n of the span, counted from 0, is at index
    /// n modulo [`WINDOW`].
    recent: [F; WINDOW],
    number: usize,
}

impl<'a, F: Fingerprint> SpanReader<'a, F> {
    /// Creates a reader of a span whose first fingerprint is `first`. The tails of the span end at bit `end` of
    /// the block.
    #[inline(always)]
    pub(super) fn new(block: &'a [u8], end: usize, first: F) -> Self {
        SpanReader { block, tail: end, value: first, recent: [first; WINDOW], number: 0 }
    }

    /// Reads the tails of the next eight fingerprints into `deltas`; `words` has their decoded code words. Only
    /// the first `count` words belong to the span. The results for the other words have no meaning.
    #[inline(always)]
    pub(super) fn read_tails(
        &mut self,
        words: &[u32; GROUP_LEN],
        count: usize,
        deltas: &mut GroupDeltas,
    ) -> Result<(), Damage> {
        deltas.read_tails::<F>(self.block, words, self.tail);
        self.tail = deltas.deltas.tail_starts[(count - 1) % GROUP_LEN] as usize;
        let unknown = deltas.deltas.invalid_words << (GROUP_LEN - count);
        if unknown == 0 { Ok(()) } else { Err(Damage::CodeWord) }
    }

    /// Returns the next fingerprint. `i` (0 to 7) is its index in `deltas`, the results of the last `read_tails`.
    #[inline(always)]
    pub(super) fn next_fingerprint(&mut self, deltas: &GroupDeltas, i: usize) -> F {
        let back = deltas.deltas.back[i] as usize;
        // The predecessor is still in a register. Loading it from `recent` would wait for the store, longer than all other work.
        let earlier = self.recent[self.number.wrapping_sub(back.max(1)) % WINDOW];
        let other = select_unpredictable(back == 0, self.value, earlier);
        let add = from_halves::<F>(deltas.deltas.add[i], deltas.high_add[i]);
        self.value = other.wrapping_add(add) ^ from_halves(deltas.deltas.flip[i], deltas.high_flip[i]);
        self.number += 1;
        self.recent[self.number % WINDOW] = self.value;
        self.value
    }
}
