//! Length-limited canonical Huffman codes, decoded several symbols at a time.
//!
//! Code words are at most [`MAX_LENGTH`] bits, so that one table look-up decodes any of them and no slow
//! path exists. They stand in the bit stream first bit first (`format-spec/table.md`, "The code").

use crate::bits;
use crate::error::Damage;

/// The longest code word, in bits.
pub(crate) const MAX_LENGTH: u32 = 12;
/// The most symbols a code can have: one for each length of a tail, 0 to 127 bits.
pub(crate) const MAX_SYMBOLS: usize = 128;

/// A table look-up decodes at most this many symbols.
const SYMBOLS_PER_ENTRY: usize = 4;
/// A refill of the bit buffer (57 bits at least) serves this many look-ups.
const LOOKUPS_PER_REFILL: usize = 4;
/// [`Decoder::decode`] may write this many symbols more than it was asked for.
pub(crate) const OVERRUN: usize = SYMBOLS_PER_ENTRY * LOOKUPS_PER_REFILL;

/// A canonical code: the length of each symbol's word (0: the symbol has none), and the words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Code {
    lengths: [u8; MAX_SYMBOLS],
    /// Bit-reversed: the first bit of a word is its least significant.
    words: [u16; MAX_SYMBOLS],
}

impl Code {
    /// The code of least total length for symbols that occur `counts[symbol]` times.
    ///
    /// Package-merge: L. L. Larmore, D. S. Hirschberg, "A fast algorithm for optimal length-limited Huffman
    /// codes", J. ACM 37 (1990). A symbol that never occurs gets no word; one that is alone gets one bit.
    pub(crate) fn from_counts(counts: &[u64; MAX_SYMBOLS]) -> Code {
        let mut coins: Vec<(u64, Vec<u8>)> = (0..MAX_SYMBOLS)
            .filter(|&symbol| counts[symbol] > 0)
            .map(|symbol| (counts[symbol], vec![symbol as u8]))
            .collect();
        coins.sort_by_key(|coin| coin.0);
        let mut lengths = [0; MAX_SYMBOLS];
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
        Code::assign_words(lengths)
    }

    /// The code with these lengths, if they make one that a reader accepts: complete, or one word of one
    /// bit, or no word at all.
    pub(crate) fn from_lengths(lengths: [u8; MAX_SYMBOLS]) -> Result<Code, Damage> {
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
    fn assign_words(lengths: [u8; MAX_SYMBOLS]) -> Code {
        let mut words = [0; MAX_SYMBOLS];
        let mut next = 0_u16;
        for length in 1..=MAX_LENGTH {
            for symbol in (0..MAX_SYMBOLS).filter(|&symbol| u32::from(lengths[symbol]) == length) {
                words[symbol] = next.reverse_bits() >> (16 - length);
                next += 1;
            }
            next <<= 1;
        }
        Code { lengths, words }
    }

    /// The lengths of all words, 0 for symbols that have none.
    pub(crate) fn lengths(&self) -> &[u8; MAX_SYMBOLS] {
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

/// One table entry: up to four symbols (8 bits each), their number (8 bits), their bits in all (8 bits).
#[derive(Clone, Copy, Debug, Default)]
struct Entry(u64);

impl Entry {
    fn push(self, symbol: u8, length: u32) -> Entry {
        let count = self.count();
        Entry((self.0 | u64::from(symbol) << (8 * count)) + (1 << 32) + (u64::from(length) << 40))
    }

    #[inline(always)]
    fn symbols(self) -> [u8; SYMBOLS_PER_ENTRY] {
        (self.0 as u32).to_le_bytes()
    }

    #[inline(always)]
    fn count(self) -> usize {
        (self.0 >> 32) as u8 as usize
    }

    #[inline(always)]
    fn bits(self) -> u32 {
        (self.0 >> 40) as u32
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
        for symbol in 0..MAX_SYMBOLS as u8 {
            let length = code.length(u32::from(symbol));
            if length > 0 {
                let word = usize::from(code.words[usize::from(symbol)]);
                for string in (word..1 << MAX_LENGTH).step_by(1 << length) {
                    single[string] = Some((symbol, length));
                }
            }
        }
        let mut entries = Box::new([Entry::default(); 1 << MAX_LENGTH]);
        for (string, entry) in entries.iter_mut().enumerate() {
            while let Some((symbol, length)) = single[string >> entry.bits()]
                && entry.bits() + length <= MAX_LENGTH
                && entry.count() < SYMBOLS_PER_ENTRY
            {
                *entry = entry.push(symbol, length);
            }
        }
        Decoder { entries }
    }

    /// Decodes the `count` symbols whose words start at bit `position` into `symbols`, which has room for
    /// [`OVERRUN`] more: what is written beyond `count` means nothing.
    #[inline(always)]
    pub(crate) fn decode(
        &self,
        bytes: &[u8],
        position: usize,
        count: usize,
        symbols: &mut [u8],
    ) -> Result<(), Damage> {
        let mut stream = Stream { position, done: 0 };
        while stream.done < count {
            stream.step(self, bytes, symbols)?;
        }
        Ok(())
    }

    /// [`Decoder::decode`] of two streams at once: while the one waits for its look-up, the other goes on.
    #[inline(always)]
    pub(crate) fn decode_two(
        &self,
        bytes: &[u8],
        positions: [usize; 2],
        count: usize,
        symbols: &mut [impl AsMut<[u8]>; 2],
    ) -> Result<(), Damage> {
        let [first, second] = symbols;
        let (first, second) = (first.as_mut(), second.as_mut());
        let [mut a, mut b] = positions.map(|position| Stream { position, done: 0 });
        while a.done < count && b.done < count {
            a.step(self, bytes, first)?;
            b.step(self, bytes, second)?;
        }
        while a.done < count {
            a.step(self, bytes, first)?;
        }
        while b.done < count {
            b.step(self, bytes, second)?;
        }
        Ok(())
    }
}

/// Code words being decoded, from bit `position` on.
struct Stream {
    position: usize,
    /// Number of symbols decoded.
    done: usize,
}

impl Stream {
    /// Decodes as many symbols as one refill of the bit buffer holds, at least one.
    #[inline(always)]
    fn step(&mut self, decoder: &Decoder, bytes: &[u8], symbols: &mut [u8]) -> Result<(), Damage> {
        let before = self.done;
        let mut buffer = bits::load(bytes, self.position / 8) >> (self.position % 8);
        for _ in 0..LOOKUPS_PER_REFILL {
            let entry = decoder.entries[(buffer & ((1 << MAX_LENGTH) - 1)) as usize];
            symbols[self.done..self.done + SYMBOLS_PER_ENTRY].copy_from_slice(&entry.symbols());
            self.done += entry.count();
            buffer >>= entry.bits();
            self.position += entry.bits() as usize;
        }
        if self.done == before { Err(Damage::CodeWord) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn counts() -> impl Strategy<Value = [u64; MAX_SYMBOLS]> {
        let count = prop_oneof![3 => Just(0_u64), 2 => 1_u64..100, 1 => 1_u64..1 << 40];
        prop::collection::vec(count, MAX_SYMBOLS).prop_map(|counts| counts.try_into().unwrap())
    }

    proptest! {
        #[test]
        fn symbols_come_back(counts in counts(), picks in prop::collection::vec(any::<prop::sample::Index>(), 0..300)) {
            let code = Code::from_counts(&counts);
            prop_assert_eq!(&Code::from_lengths(*code.lengths()).unwrap(), &code);
            let present: Vec<u8> = (0..MAX_SYMBOLS as u8).filter(|&s| counts[s as usize] > 0).collect();
            prop_assume!(!present.is_empty());
            let message: Vec<u8> = picks.iter().map(|pick| *pick.get(&present)).collect();
            let mut bytes = vec![0; message.len() * 2 + 8];
            let mut position = 3;
            for &symbol in &message {
                code.write(&mut bytes, position, u32::from(symbol));
                position += code.length(u32::from(symbol)) as usize;
            }
            let mut symbols = vec![0; message.len() + OVERRUN];
            Decoder::new(&code).decode(&bytes, 3, message.len(), &mut symbols).unwrap();
            prop_assert_eq!(&symbols[..message.len()], &message[..]);
        }

        #[test]
        fn any_bytes_decode_or_fail(counts in counts(), bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut symbols = [0; 600 + OVERRUN];
            let _ = Decoder::new(&Code::from_counts(&counts)).decode(&bytes, 5, 600, &mut symbols);
        }

        #[test]
        fn any_lengths_are_a_code_or_refused(lengths in prop::collection::vec(0_u8..16, MAX_SYMBOLS)) {
            if let Ok(code) = Code::from_lengths(lengths.try_into().unwrap()) {
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

    fn total(counts: &[u64; MAX_SYMBOLS]) -> u64 {
        let code = Code::from_counts(counts);
        (0..MAX_SYMBOLS).map(|s| counts[s] * u64::from(code.length(s as u32))).sum()
    }

    #[test]
    fn as_short_as_huffman_where_the_limit_does_not_bind() {
        let mut counts = [0; MAX_SYMBOLS];
        for (symbol, count) in counts.iter_mut().enumerate().take(100) {
            *count = (symbol as u64 * 7919) % 101 + 1;
        }
        assert_eq!(total(&counts), unlimited(&counts[..100]));
    }

    #[test]
    fn the_limit_holds_and_costs_little() {
        // Fibonacci counts need words of 59 bits without a limit.
        let mut counts = [0; MAX_SYMBOLS];
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
            let mut lengths = [0; MAX_SYMBOLS];
            lengths[..used.len()].copy_from_slice(used);
            Code::from_lengths(lengths)
        };
        assert!(lengths(&[]).is_ok());
        assert!(lengths(&[1]).is_ok());
        assert!(lengths(&[1, 2, 2]).is_ok());
        for bad in [&[2][..], &[1, 2], &[1, 1, 1], &[13], &[1, 2, 3, 13]] {
            assert_eq!(lengths(bad), Err(Damage::IncompleteCode), "{bad:?}");
        }
    }
}
