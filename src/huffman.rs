//! Length-limited canonical Huffman codes, decoded several symbols at a time.
//!
//! Code words have at most [`MAX_WORD_BITS`] bits, so one table look-up decodes any of them, and there is no slow
//! path. The first bit of a code word comes first in the bit stream (`format-spec/table.md`, "Code lengths").

use crate::bits;
use crate::error::Damage;

/// Length of the longest code word, in bits.
pub(crate) const MAX_WORD_BITS: u32 = 12;

/// Largest number of symbols that one table look-up decodes.
const SYMBOLS_PER_ENTRY: usize = 6;
/// Number of table look-ups after each refill of the bit buffer. A refill provides at least 57 bits, and a look-up takes at
/// most [`MAX_WORD_BITS`] of them.
const LOOKUPS_PER_REFILL: usize = 4;
/// Largest number of symbols that one call of [`HuffmanDecoder::decode`] can decode.
pub(crate) const MAX_BUFFERED_SYMBOLS: usize = 256;

/// Buffer of decoded symbols. Bytes after the requested number of symbols have no meaning.
pub(crate) type SymbolBuffer = [u8; MAX_BUFFERED_SYMBOLS + 8];
pub(crate) const EMPTY_SYMBOLS: SymbolBuffer = [0; MAX_BUFFERED_SYMBOLS + 8];

/// A canonical Huffman code: the length in bits of each symbol's code word (0 if it has none), and the code words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HuffmanCode {
    lengths: Box<[u8]>,
    /// Code words, bit-reversed: the first bit of a word is its least significant bit.
    words: Box<[u16]>,
}

impl HuffmanCode {
    /// Returns the code with the smallest total length for a text in which each symbol occurs `counts[symbol]` times.
    /// Code words have at most [`MAX_WORD_BITS`] bits.
    ///
    /// Package-merge: L. L. Larmore, D. S. Hirschberg, "A fast algorithm for optimal length-limited Huffman
    /// codes", J. ACM 37 (1990). A symbol that never occurs gets no code word; a single symbol gets one bit.
    pub(crate) fn from_counts(counts: &[u64]) -> HuffmanCode {
        let mut coins: Vec<(u64, Vec<u16>)> = (0..counts.len())
            .filter(|&symbol| counts[symbol] > 0)
            .map(|symbol| (counts[symbol], vec![symbol as u16]))
            .collect();
        coins.sort_by_key(|coin| coin.0);
        let mut lengths = vec![0; counts.len()];
        if let [(_, only)] = &coins[..] {
            lengths[usize::from(only[0])] = 1;
        } else if !coins.is_empty() {
            let mut row = coins.clone();
            for _ in 1..MAX_WORD_BITS {
                let packages = row
                    .chunks_exact(2)
                    .map(|pair| (pair[0].0 + pair[1].0, [&pair[0].1[..], &pair[1].1].concat()));
                row = coins.iter().cloned().chain(packages).collect();
                row.sort_by_key(|package| package.0);
            }
            for (_, symbols) in &row[..2 * coins.len() - 2] {
                for &symbol in symbols {
                    lengths[usize::from(symbol)] += 1;
                }
            }
        }
        HuffmanCode::assign_words(lengths.into())
    }

    /// Returns the code whose code words have these lengths. A valid code is complete (uses all bit strings), has a
    /// single word of one bit, or has no word.
    ///
    /// # Errors
    /// [`Damage::IncompleteCode`] if the lengths are no valid code.
    pub(crate) fn from_lengths(lengths: Box<[u8]>) -> Result<HuffmanCode, Damage> {
        let mut used = 0;
        let mut symbols = 0;
        for &length in lengths.iter().filter(|&&length| length > 0) {
            if u32::from(length) > MAX_WORD_BITS {
                return Err(Damage::IncompleteCode);
            }
            used += 1_u32 << (MAX_WORD_BITS - u32::from(length));
            symbols += 1;
        }
        let whole = 1 << MAX_WORD_BITS;
        match (symbols, used) {
            (0, _) => Ok(()),
            (1, used) if used == whole / 2 => Ok(()),
            (2.., used) if used == whole => Ok(()),
            _ => Err(Damage::IncompleteCode),
        }?;
        Ok(HuffmanCode::assign_words(lengths))
    }

    /// Assigns code words in ascending order of length, then of symbol. A code word is the previous one plus 1,
    /// followed by zeros if it is longer.
    fn assign_words(lengths: Box<[u8]>) -> HuffmanCode {
        let mut words = vec![0; lengths.len()];
        let mut next = 0_u16;
        for length in 1..=MAX_WORD_BITS {
            for symbol in (0..lengths.len()).filter(|&symbol| u32::from(lengths[symbol]) == length) {
                words[symbol] = next.reverse_bits() >> (16 - length);
                next += 1;
            }
            next <<= 1;
        }
        HuffmanCode { lengths, words: words.into() }
    }

    /// Lengths of all code words in bits, by symbol; 0 for a symbol without a code word.
    pub(crate) fn lengths(&self) -> &[u8] {
        &self.lengths
    }

    /// Length of a symbol's code word in bits, 0 if it has none.
    #[inline]
    pub(crate) fn length(&self, symbol: u32) -> u32 {
        u32::from(self.lengths[symbol as usize])
    }

    /// Writes a symbol's code word at bit `position`.
    #[inline]
    pub(crate) fn write(&self, bytes: &mut [u8], position: usize, symbol: u32) {
        let word = u64::from(self.words[symbol as usize]);
        bits::write_u64(bytes, position, self.length(symbol), word);
    }
}

impl HuffmanCode {
    /// Iterates over all bit strings of [`MAX_WORD_BITS`] bits that start with a code word. Items are the word's symbol, the bit
    /// string, and the word's length in bits.
    pub(crate) fn strings_with_word(&self) -> impl Iterator<Item = (u32, usize, u32)> {
        let words = self.lengths.iter().zip(&self.words).enumerate().filter(|(_, (length, _))| **length > 0);
        words.flat_map(|(symbol, (&length, &word))| {
            let strings = (usize::from(word)..1 << MAX_WORD_BITS).step_by(1 << length);
            strings.map(move |string| (symbol as u32, string, u32::from(length)))
        })
    }
}

/// An entry of the decoding table. Its fields, from the lowest bit on: total length of its code words (8 bits), number of its
/// symbols (8 bits), up to six symbols (8 bits each). After a look-up, the lowest bits of the entry are the number of bits to
/// skip in the stream.
#[derive(Clone, Copy, Debug, Default)]
struct LookUpEntry(u64);

impl LookUpEntry {
    fn push(self, symbol: u8, length: u32) -> LookUpEntry {
        let count = self.count();
        LookUpEntry((self.0 | u64::from(symbol) << (16 + 8 * count)) + (1 << 8) + u64::from(length))
    }

    /// Returns the symbols of this entry. There are up to six; the bytes after them have no meaning.
    #[inline(always)]
    fn symbols(self) -> [u8; 8] {
        (self.0 >> 16).to_le_bytes()
    }

    #[inline(always)]
    fn count(self) -> usize {
        (self.0 >> 8) as u8 as usize
    }

    #[inline(always)]
    fn bits(self) -> usize {
        self.0 as u8 as usize
    }
}

/// Decodes the code words of a [`HuffmanCode`].
#[derive(Clone, Debug)]
pub(crate) struct HuffmanDecoder {
    entries: Box<[LookUpEntry; 1 << MAX_WORD_BITS]>,
}

impl HuffmanDecoder {
    /// Size of a decoder's table in memory, in bytes.
    pub(crate) const MEMORY: usize = size_of::<LookUpEntry>() << MAX_WORD_BITS;

    pub(crate) fn new(code: &HuffmanCode) -> HuffmanDecoder {
        // First step, single symbols: each bit string that starts with a code word decodes to its symbol.
        let mut single = vec![None; 1 << MAX_WORD_BITS];
        for (symbol, string, length) in code.strings_with_word() {
            single[string] = Some((symbol as u8, length));
        }
        let mut entries = Box::new([LookUpEntry::default(); 1 << MAX_WORD_BITS]);
        for (string, entry) in entries.iter_mut().enumerate() {
            while let Some((symbol, length)) = single[string >> entry.bits()]
                && entry.bits() as u32 + length <= MAX_WORD_BITS
                && entry.count() < SYMBOLS_PER_ENTRY
            {
                *entry = entry.push(symbol, length);
            }
        }
        HuffmanDecoder { entries }
    }

    /// Average number of symbols that are decoded from one refill of the bit buffer, if symbols have the frequencies that
    /// the code expects.
    fn symbols_per_refill(&self) -> usize {
        let symbols: usize = self.entries.iter().map(|entry| entry.count()).sum();
        (symbols * LOOKUPS_PER_REFILL) >> MAX_WORD_BITS
    }

    /// Number of refills of the bit buffer that nearly always suffice to decode `count` symbols.
    pub(crate) fn expected_refills(&self, count: usize) -> usize {
        (count + count / 8).div_ceil(self.symbols_per_refill().max(1))
    }

    /// Decodes `count` symbols (at most [`MAX_BUFFERED_SYMBOLS`]) from bit `position` on.
    #[inline(always)]
    pub(crate) fn decode(
        &self,
        bytes: &[u8],
        position: usize,
        count: usize,
        symbols: &mut SymbolBuffer,
    ) -> Result<(), Damage> {
        let mut stream = SymbolStream { position, done: 0 };
        stream.decode_at_least(self, bytes, count, symbols)?;
        Ok(())
    }

    /// Like [`HuffmanDecoder::decode`], for several streams together: while one stream waits for a table look-up, the
    /// others continue. Each stream first gets `refills` refills, so that no branch depends on the code words. Streams
    /// that need more refills get them afterwards.
    #[inline(always)]
    pub(crate) fn decode_interleaved<const N: usize>(
        &self,
        bytes: &[u8],
        positions: [usize; N],
        count: usize,
        refills: usize,
        symbols: &mut [SymbolBuffer; N],
    ) -> Result<(), Damage> {
        let mut streams = positions.map(|position| SymbolStream { position, done: 0 });
        for _ in 0..refills {
            for (stream, symbols) in streams.iter_mut().zip(symbols.iter_mut()) {
                stream.refill(self, bytes, symbols);
            }
        }
        for (stream, symbols) in streams.iter_mut().zip(symbols) {
            stream.decode_at_least(self, bytes, count, symbols)?;
        }
        Ok(())
    }

    /// Returns a stream that decodes code words from bit `position` on.
    #[inline(always)]
    pub(crate) fn stream(&self, position: usize) -> SymbolStream {
        SymbolStream { position, done: 0 }
    }
}

/// State of the decoding of one stream of code words. The next code word starts at bit `position`.
pub(crate) struct SymbolStream {
    position: usize,
    /// Number of symbols decoded so far.
    done: usize,
}

impl SymbolStream {
    /// Refills the bit buffer once, and decodes symbols from it by [`LOOKUPS_PER_REFILL`] look-ups.
    #[inline(always)]
    fn refill(&mut self, decoder: &HuffmanDecoder, bytes: &[u8], symbols: &mut SymbolBuffer) {
        let mut buffer = bits::load(bytes, self.position / 8) >> (self.position % 8);
        for _ in 0..LOOKUPS_PER_REFILL {
            let entry = decoder.entries[(buffer & ((1 << MAX_WORD_BITS) - 1)) as usize];
            let at = self.done.min(MAX_BUFFERED_SYMBOLS);
            symbols[at..at + 8].copy_from_slice(&entry.symbols());
            self.done += entry.count();
            buffer >>= entry.0 & 63;
            self.position += entry.bits();
        }
    }

    /// Decodes until the stream has decoded at least `count` symbols since its start. Returns the number of
    /// symbols decoded since the start.
    #[inline(always)]
    pub(crate) fn decode_at_least(
        &mut self,
        decoder: &HuffmanDecoder,
        bytes: &[u8],
        count: usize,
        symbols: &mut SymbolBuffer,
    ) -> Result<usize, Damage> {
        while self.done < count {
            let before = self.done;
            self.refill(decoder, bytes, symbols);
            if self.done == before {
                return Err(Damage::CodeWord);
            }
        }
        Ok(self.done)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SYMBOLS: usize = 128;

    fn counts() -> impl Strategy<Value = Vec<u64>> {
        let count = prop_oneof![3 => Just(0_u64), 2 => 1_u64..100, 1 => 1_u64..1 << 40];
        prop::collection::vec(count, SYMBOLS)
    }

    proptest! {
        #[test]
        fn symbols_come_back(counts in counts(), picks in prop::collection::vec(any::<prop::sample::Index>(), 0..256)) {
            let code = HuffmanCode::from_counts(&counts);
            prop_assert_eq!(&HuffmanCode::from_lengths(code.lengths().into()).unwrap(), &code);
            let present: Vec<u8> = (0..SYMBOLS as u8).filter(|&s| counts[s as usize] > 0).collect();
            prop_assume!(!present.is_empty());
            let message: Vec<u8> = picks.iter().map(|pick| *pick.get(&present)).collect();
            let mut bytes = vec![0; message.len() * 2 + 8];
            let mut position = 3;
            for &symbol in &message {
                code.write(&mut bytes, position, u32::from(symbol));
                position += code.length(u32::from(symbol)) as usize;
            }
            let mut symbols = EMPTY_SYMBOLS;
            HuffmanDecoder::new(&code).decode(&bytes, 3, message.len(), &mut symbols).unwrap();
            prop_assert_eq!(&symbols[..message.len()], &message[..]);
        }

        #[test]
        fn any_bytes_decode_or_fail(counts in counts(), bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut symbols = EMPTY_SYMBOLS;
            let _ = HuffmanDecoder::new(&HuffmanCode::from_counts(&counts)).decode(&bytes, 5, 256, &mut symbols);
        }

        #[test]
        fn any_lengths_are_a_code_or_refused(lengths in prop::collection::vec(0_u8..16, SYMBOLS)) {
            if let Ok(code) = HuffmanCode::from_lengths(lengths.into()) {
                HuffmanDecoder::new(&code);
            }
        }
    }

    /// Returns the total length in bits of an optimal code whose words may have any length. Huffman's algorithm:
    /// repeatedly joins the two nodes with the smallest counts.
    fn unlimited(counts: &[u64]) -> u64 {
        let mut heap: std::collections::BinaryHeap<_> =
            counts.iter().map(|&c| std::cmp::Reverse(c)).collect();
        let mut total = 0;
        while heap.len() > 1 {
            let joined = heap.pop().unwrap().0 + heap.pop().unwrap().0;
            total += joined;
            heap.push(std::cmp::Reverse(joined));
        }
        total
    }

    fn total(counts: &[u64]) -> u64 {
        let code = HuffmanCode::from_counts(counts);
        (0..counts.len()).map(|s| counts[s] * u64::from(code.length(s as u32))).sum()
    }

    #[test]
    fn as_short_as_huffman_where_the_limit_does_not_bind() {
        let mut counts = [0; SYMBOLS];
        for (symbol, count) in counts.iter_mut().enumerate().take(100) {
            *count = (symbol as u64 * 7919) % 101 + 1;
        }
        assert_eq!(total(&counts), unlimited(&counts[..100]));
    }

    #[test]
    fn the_limit_holds_and_costs_little() {
        // Fibonacci counts need words of 59 bits without a limit.
        let mut counts = [0; SYMBOLS];
        (counts[0], counts[1]) = (1, 1);
        for i in 2..60 {
            counts[i] = counts[i - 1] + counts[i - 2];
        }
        let code = HuffmanCode::from_counts(&counts);
        assert!(code.lengths().iter().all(|&length| u32::from(length) <= MAX_WORD_BITS));
        let (limited, free) = (total(&counts), unlimited(&counts[..60]));
        assert!(limited >= free && limited < free + free / 50, "{limited} {free}");
    }

    #[test]
    fn codes_with_gaps_or_overlaps_are_refused() {
        let lengths = |used: &[u8]| {
            let mut lengths = [0; SYMBOLS];
            lengths[..used.len()].copy_from_slice(used);
            HuffmanCode::from_lengths(lengths.into())
        };
        assert!(lengths(&[]).is_ok());
        assert!(lengths(&[1]).is_ok());
        assert!(lengths(&[1, 2, 2]).is_ok());
        for bad in [&[2][..], &[1, 2], &[1, 1, 1], &[13], &[1, 2, 3, 13]] {
            assert_eq!(lengths(bad), Err(Damage::IncompleteCode), "{bad:?}");
        }
    }
}
