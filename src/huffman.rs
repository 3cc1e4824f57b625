//! Length-limited canonical Huffman codes, decoded several symbols at a time.
//!
//! Code words are at most [`MAX_LENGTH`] bits, so that one table look-up decodes any of them and no slow
//! path exists. They stand in the bit stream first bit first (`format-spec/table.md`, "The code").

use crate::bits;
use crate::error::Damage;

/// The longest code word, in bits.
pub(crate) const MAX_LENGTH: u32 = 12;

/// A table look-up decodes at most this many symbols.
const SYMBOLS_PER_ENTRY: usize = 6;
/// A refill of the bit buffer (57 bits at least) serves this many look-ups.
const LOOKUPS_PER_REFILL: usize = 4;
/// The most symbols that can be asked for at once.
pub(crate) const MAX_SYMBOLS_AT_ONCE: usize = 256;

/// Room for decoded symbols; what is beyond the number asked for means nothing.
pub(crate) type Symbols = [u8; MAX_SYMBOLS_AT_ONCE + 8];
pub(crate) const NO_SYMBOLS: Symbols = [0; MAX_SYMBOLS_AT_ONCE + 8];

/// A canonical code: the length of each symbol's word (0: the symbol has none), and the words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Code {
    lengths: Box<[u8]>,
    /// Bit-reversed: the first bit of a word is its least significant.
    words: Box<[u16]>,
}

impl Code {
    /// The code of least total length for symbols that occur `counts[symbol]` times.
    ///
    /// Package-merge: L. L. Larmore, D. S. Hirschberg, "A fast algorithm for optimal length-limited Huffman
    /// codes", J. ACM 37 (1990). A symbol that never occurs gets no word; one that is alone gets one bit.
    pub(crate) fn from_counts(counts: &[u64]) -> Code {
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
            for _ in 1..MAX_LENGTH {
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
        Code::assign_words(lengths.into())
    }

    /// The code with these lengths, if they make one that a reader accepts: complete, or one word of one
    /// bit, or no word at all.
    pub(crate) fn from_lengths(lengths: Box<[u8]>) -> Result<Code, Damage> {
        let mut used = 0;
        let mut symbols = 0;
        for &length in lengths.iter().filter(|&&length| length > 0) {
            if u32::from(length) > MAX_LENGTH {
                return Err(Damage::IncompleteCode);
            }
            used += 1_u32 << (MAX_LENGTH - u32::from(length));
            symbols += 1;
        }
        let whole = 1 << MAX_LENGTH;
        match (symbols, used) {
            (0, _) => Ok(()),
            (1, used) if used == whole / 2 => Ok(()),
            (2.., used) if used == whole => Ok(()),
            _ => Err(Damage::IncompleteCode),
        }?;
        Ok(Code::assign_words(lengths))
    }

    /// Words in order of length, then of symbol, each one more than the one before.
    fn assign_words(lengths: Box<[u8]>) -> Code {
        let mut words = vec![0; lengths.len()];
        let mut next = 0_u16;
        for length in 1..=MAX_LENGTH {
            for symbol in (0..lengths.len()).filter(|&symbol| u32::from(lengths[symbol]) == length) {
                words[symbol] = next.reverse_bits() >> (16 - length);
                next += 1;
            }
            next <<= 1;
        }
        Code { lengths, words: words.into() }
    }

    /// The lengths of all words, 0 for symbols that have none.
    pub(crate) fn lengths(&self) -> &[u8] {
        &self.lengths
    }

    /// The length of a symbol's word in bits, 0 if it has none.
    #[inline]
    pub(crate) fn length(&self, symbol: u32) -> u32 {
        u32::from(self.lengths[symbol as usize])
    }

    /// Writes a symbol's word at bit `position`.
    #[inline]
    pub(crate) fn write(&self, bytes: &mut [u8], position: usize, symbol: u32) {
        let word = u64::from(self.words[symbol as usize]);
        bits::write_u64(bytes, position, self.length(symbol), word);
    }
}

impl Code {
    /// All strings of [`MAX_LENGTH`] bits that start with a word: its symbol, the string, the word's length.
    pub(crate) fn strings(&self) -> impl Iterator<Item = (u32, usize, u32)> {
        let words = self.lengths.iter().zip(&self.words).enumerate().filter(|(_, (length, _))| **length > 0);
        words.flat_map(|(symbol, (&length, &word))| {
            let strings = (usize::from(word)..1 << MAX_LENGTH).step_by(1 << length);
            strings.map(move |string| (symbol as u32, string, u32::from(length)))
        })
    }
}

/// One table entry: the bits of all its words (8 bits), the number of its symbols (8 bits), up to six symbols
/// (8 bits each). The bits come first, since a shift by the whole entry is then a shift by them.
#[derive(Clone, Copy, Debug, Default)]
struct Entry(u64);

impl Entry {
    fn push(self, symbol: u8, length: u32) -> Entry {
        let count = self.count();
        Entry((self.0 | u64::from(symbol) << (16 + 8 * count)) + (1 << 8) + u64::from(length))
    }

    /// The symbols, and two bytes of nothing.
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

/// Decodes the words of a [`Code`].
#[derive(Clone, Debug)]
pub(crate) struct Decoder {
    entries: Box<[Entry; 1 << MAX_LENGTH]>,
}

impl Decoder {
    /// Bytes in memory.
    pub(crate) const MEMORY: usize = size_of::<Entry>() << MAX_LENGTH;

    pub(crate) fn new(code: &Code) -> Decoder {
        // First the single symbols: all bit strings that start with a word lead to its symbol.
        let mut single = vec![None; 1 << MAX_LENGTH];
        for (symbol, string, length) in code.strings() {
            single[string] = Some((symbol as u8, length));
        }
        let mut entries = Box::new([Entry::default(); 1 << MAX_LENGTH]);
        for (string, entry) in entries.iter_mut().enumerate() {
            while let Some((symbol, length)) = single[string >> entry.bits()]
                && entry.bits() as u32 + length <= MAX_LENGTH
                && entry.count() < SYMBOLS_PER_ENTRY
            {
                *entry = entry.push(symbol, length);
            }
        }
        Decoder { entries }
    }

    /// The symbols that a refill decodes on average, where the words follow one another as the code expects.
    fn symbols_per_refill(&self) -> usize {
        let symbols: usize = self.entries.iter().map(|entry| entry.count()).sum();
        (symbols * LOOKUPS_PER_REFILL) >> MAX_LENGTH
    }

    /// The refills that decode `count` symbols in all but a few cases.
    pub(crate) fn refills(&self, count: usize) -> usize {
        (count + count / 8).div_ceil(self.symbols_per_refill().max(1))
    }

    /// Decodes the `count` symbols (at most [`MAX_SYMBOLS_AT_ONCE`]) whose words start at bit `position`.
    #[inline(always)]
    pub(crate) fn decode(
        &self,
        bytes: &[u8],
        position: usize,
        count: usize,
        symbols: &mut Symbols,
    ) -> Result<(), Damage> {
        let mut stream = Stream { position, done: 0 };
        stream.reach(self, bytes, count, symbols)?;
        Ok(())
    }

    /// [`Decoder::decode`] of several streams at once: while one waits for its look-up, the others go on. The
    /// number of `refills` is given beforehand, so that no branch depends on the words.
    #[inline(always)]
    pub(crate) fn decode_several<const N: usize>(
        &self,
        bytes: &[u8],
        positions: [usize; N],
        count: usize,
        refills: usize,
        symbols: &mut [Symbols; N],
    ) -> Result<(), Damage> {
        let mut streams = positions.map(|position| Stream { position, done: 0 });
        for _ in 0..refills {
            for (stream, symbols) in streams.iter_mut().zip(symbols.iter_mut()) {
                stream.refill(self, bytes, symbols);
            }
        }
        for (stream, symbols) in streams.iter_mut().zip(symbols) {
            stream.reach(self, bytes, count, symbols)?;
        }
        Ok(())
    }

    /// Starts to decode the words from bit `position` on.
    #[inline(always)]
    pub(crate) fn stream(&self, position: usize) -> Stream {
        Stream { position, done: 0 }
    }
}

/// Code words being decoded, from bit `position` on.
pub(crate) struct Stream {
    position: usize,
    /// Number of symbols decoded.
    done: usize,
}

impl Stream {
    /// Decodes as many symbols as one refill of the bit buffer holds.
    #[inline(always)]
    fn refill(&mut self, decoder: &Decoder, bytes: &[u8], symbols: &mut Symbols) {
        let mut buffer = bits::load(bytes, self.position / 8) >> (self.position % 8);
        for _ in 0..LOOKUPS_PER_REFILL {
            let entry = decoder.entries[(buffer & ((1 << MAX_LENGTH) - 1)) as usize];
            let at = self.done.min(MAX_SYMBOLS_AT_ONCE);
            symbols[at..at + 8].copy_from_slice(&entry.symbols());
            self.done += entry.count();
            buffer >>= entry.0 & 63;
            self.position += entry.bits();
        }
    }

    /// Decodes at least `count` symbols in all, and returns how many.
    #[inline(always)]
    pub(crate) fn reach(
        &mut self,
        decoder: &Decoder,
        bytes: &[u8],
        count: usize,
        symbols: &mut Symbols,
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
            let code = Code::from_counts(&counts);
            prop_assert_eq!(&Code::from_lengths(code.lengths().into()).unwrap(), &code);
            let present: Vec<u8> = (0..SYMBOLS as u8).filter(|&s| counts[s as usize] > 0).collect();
            prop_assume!(!present.is_empty());
            let message: Vec<u8> = picks.iter().map(|pick| *pick.get(&present)).collect();
            let mut bytes = vec![0; message.len() * 2 + 8];
            let mut position = 3;
            for &symbol in &message {
                code.write(&mut bytes, position, u32::from(symbol));
                position += code.length(u32::from(symbol)) as usize;
            }
            let mut symbols = NO_SYMBOLS;
            Decoder::new(&code).decode(&bytes, 3, message.len(), &mut symbols).unwrap();
            prop_assert_eq!(&symbols[..message.len()], &message[..]);
        }

        #[test]
        fn any_bytes_decode_or_fail(counts in counts(), bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut symbols = NO_SYMBOLS;
            let _ = Decoder::new(&Code::from_counts(&counts)).decode(&bytes, 5, 256, &mut symbols);
        }

        #[test]
        fn any_lengths_are_a_code_or_refused(lengths in prop::collection::vec(0_u8..16, SYMBOLS)) {
            if let Ok(code) = Code::from_lengths(lengths.into()) {
                Decoder::new(&code);
            }
        }
    }

    /// Total length of an optimal code without a limit: repeatedly join the two lightest.
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
        let code = Code::from_counts(counts);
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
        let code = Code::from_counts(&counts);
        assert!(code.lengths().iter().all(|&length| u32::from(length) <= MAX_LENGTH));
        let (limited, free) = (total(&counts), unlimited(&counts[..60]));
        assert!(limited >= free && limited < free + free / 50, "{limited} {free}");
    }

    #[test]
    fn codes_with_gaps_or_overlaps_are_refused() {
        let lengths = |used: &[u8]| {
            let mut lengths = [0; SYMBOLS];
            lengths[..used.len()].copy_from_slice(used);
            Code::from_lengths(lengths.into())
        };
        assert!(lengths(&[]).is_ok());
        assert!(lengths(&[1]).is_ok());
        assert!(lengths(&[1, 2, 2]).is_ok());
        for bad in [&[2][..], &[1, 2], &[1, 1, 1], &[13], &[1, 2, 3, 13]] {
            assert_eq!(lengths(bad), Err(Damage::IncompleteCode), "{bad:?}");
        }
    }
}
