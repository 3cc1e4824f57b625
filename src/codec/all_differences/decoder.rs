//! Decoding the words and tails of a span of `all-differences`.

use std::hint::select_unpredictable;

use super::alphabet::{Coded, MOST, Meaning, WINDOW};
use crate::bits;
use crate::error::Damage;
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::huffman::{Code, MAX_LENGTH};
use crate::kernels::{Follow, Words};

/// What a word says, packed: the length of the word in the low 4 bits, of the tail in 7, h in 7, the bits of a
/// position in 3, how many there are in 3, then whether how far back stands in the tail, and whether it is a gap. No word
/// has length 0.
#[derive(Clone, Copy, Debug, Default)]
struct Entry(u32);

impl Entry {
    fn new(word_len: u32, meaning: Meaning) -> Entry {
        let (position_bits, positions) = meaning.positions();
        let (h, is_gap, is_earlier) = match meaning {
            Meaning::Gap { h } => (h, true, false),
            Meaning::Near { h, is_earlier, .. } => (h, false, is_earlier),
        };
        let flags = u32::from(is_earlier) << 24 | u32::from(is_gap) << 25;
        Entry(word_len | meaning.tail_len() << 4 | h << 11 | position_bits << 18 | positions << 21 | flags)
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

    fn meaning(self) -> Meaning {
        match self.is_gap() {
            true => Meaning::Gap { h: self.h() },
            false => {
                Meaning::Near { h: self.h(), differing: self.positions(), is_earlier: self.is_earlier() }
            }
        }
    }
}

/// Fingerprints whose tails are read together.
pub(super) const AT_ONCE: usize = 8;
/// Words that one load of the bit buffer, 57 bits at least, holds in any case.
pub(super) const WORDS_PER_LOAD: usize = 4;
/// The most words of a span, and what is read beyond them.
const ROOM: usize = format::MAX_SPAN as usize + AT_ONCE;

/// The words of a span, as far as they have been read.
pub(super) type SpanWords = [u32; ROOM];
pub(super) const NO_WORDS: SpanWords = [0; ROOM];

/// Decodes the words of a code.
#[derive(Debug)]
pub(super) struct Decoder {
    entries: Box<[Entry; 1 << MAX_LENGTH]>,
}

impl Decoder {
    /// `bits` are those of a fingerprint.
    pub(super) fn new(code: &Code, bits: u32) -> Decoder {
        let mut entries = Box::new([Entry::default(); 1 << MAX_LENGTH]);
        for (symbol, string, length) in code.strings() {
            entries[string] = Entry::new(length, Meaning::of(symbol, bits));
        }
        Decoder { entries }
    }

    /// Reads words from bit `start` of a block on, as many as one load holds; returns where the next one starts.
    #[inline(always)]
    pub(super) fn read(&self, block: &[u8], mut start: usize, words: &mut [u32; WORDS_PER_LOAD]) -> usize {
        let mut buffer = bits::load(block, start / 8) >> (start % 8);
        for word in words {
            let entry = self.entries[(buffer & ((1 << MAX_LENGTH) - 1)) as usize];
            *word = entry.0;
            buffer >>= entry.word_len();
            start += entry.word_len();
        }
        start
    }
}

/// How some fingerprints follow, each from one before it.
pub(super) struct Steps {
    follow: Follow,
    /// The high halves of `add` and `flip`, of fingerprints of 128 bits.
    add: [u64; AT_ONCE],
    flip: [u64; AT_ONCE],
}

impl Steps {
    pub(super) const NONE: Steps = Steps { follow: Follow::NONE, add: [0; AT_ONCE], flip: [0; AT_ONCE] };

    /// Reads the tails of some words; the first ends at bit `end`.
    #[inline(always)]
    fn read<F: Fingerprint>(&mut self, block: &[u8], words: &[u32; AT_ONCE], end: usize) {
        let words = Words { words, block, end };
        if F::BITS > 64 {
            words.follow_plain(bits::load, &mut self.follow);
            self.read_wide::<F>(words);
            return;
        }
        words.follow(bits::load, &mut self.follow);
        if self.follow.long != 0 {
            self.read_long(words);
        }
    }

    /// Reads gaps again that may be longer than a field: in the smallest tables only.
    #[cold]
    #[inline(never)]
    fn read_long(&mut self, words: Words<'_>) {
        for i in 0..AT_ONCE {
            let (word, h) = (Entry(words.words[i]), Entry(words.words[i]).h() % u64::BITS);
            if word.is_gap() {
                self.follow.add[i] = bits::read_u64(words.block, self.follow.tails[i] as usize, h) | 1 << h;
            }
        }
    }

    /// Reads again what may lie in the high half.
    #[inline(always)]
    fn read_wide<F: Fingerprint>(&mut self, words: Words<'_>) {
        for (i, &word) in words.words.iter().enumerate() {
            let (word, tail) = (Entry(word), self.follow.tails[i] as usize);
            let first = F::ONE << (word.h() % F::BITS);
            if word.is_gap() {
                let add = bits::read::<F>(words.block, tail, word.h() % F::BITS) | first;
                (self.follow.add[i], self.add[i], self.flip[i]) = (add.low_u64(), add.high_u64(), 0);
                continue;
            }
            let field = bits::load(words.block, tail / 8) >> (tail % 8);
            let (mut flip, len) = (first, word.position_bits());
            for number in 0..word.positions().min(MOST) {
                let position = field >> (number * len) & ((1 << len) - 1);
                flip = flip | F::ONE << (position as u32 % F::BITS);
            }
            (self.follow.flip[i], self.flip[i], self.add[i]) = (flip.low_u64(), flip.high_u64(), 0);
        }
    }

    /// How a fingerprint is coded, of which this is the word.
    pub(super) fn coded(&self, word: u32, i: usize) -> Coded {
        Coded { meaning: Entry(word).meaning(), back: self.follow.back[i] as usize }
    }
}

/// A fingerprint of its halves; of 64 bits the low one is all.
#[inline(always)]
fn join<F: Fingerprint>(low: u64, high: u64) -> F {
    if F::BITS == 64 { F::from_u64(low) } else { F::from_u64(low) | F::from_u64(high) << (64 % F::BITS) }
}

/// A walk through the fingerprints of a span, from the first one on.
pub(super) struct Walk<'a, F> {
    block: &'a [u8],
    /// Where the next tail ends, at the start of the tail before.
    pub(super) tail: usize,
    value: F,
    /// The last fingerprints, by their number in the span.
    recent: [F; WINDOW],
    number: usize,
}

impl<'a, F: Fingerprint> Walk<'a, F> {
    /// In a span whose tails end at bit `end`.
    #[inline(always)]
    pub(super) fn new(block: &'a [u8], end: usize, first: F) -> Self {
        Walk { block, tail: end, value: first, recent: [first; WINDOW], number: 0 }
    }

    /// Reads the tails of some words, of which `count` are of the span; what the others lead to means nothing.
    #[inline(always)]
    pub(super) fn read(
        &mut self,
        words: &[u32; AT_ONCE],
        count: usize,
        steps: &mut Steps,
    ) -> Result<(), Damage> {
        steps.read::<F>(self.block, words, self.tail);
        self.tail = steps.follow.tails[(count - 1) % AT_ONCE] as usize;
        let unknown = steps.follow.unknown << (AT_ONCE - count);
        if unknown == 0 { Ok(()) } else { Err(Damage::CodeWord) }
    }

    /// The next fingerprint, number `i` of those whose tails were read.
    #[inline(always)]
    pub(super) fn step(&mut self, steps: &Steps, i: usize) -> F {
        let back = steps.follow.back[i] as usize;
        // The predecessor is at hand: to wait until it has been stored takes longer than all the rest.
        let earlier = self.recent[self.number.wrapping_sub(back.max(1)) % WINDOW];
        let other = select_unpredictable(back == 0, self.value, earlier);
        let add = join::<F>(steps.follow.add[i], steps.add[i]);
        self.value = other.wrapping_add(add) ^ join(steps.follow.flip[i], steps.flip[i]);
        self.number += 1;
        self.recent[self.number % WINDOW] = self.value;
        self.value
    }
}
