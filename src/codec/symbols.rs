//! What the Huffman code of a table is built from.

use super::Codec;
use super::all_differences::WINDOW;
use crate::fingerprint::Fingerprint;
use crate::huffman::Code;

/// How one fingerprint is coded in its block: what its symbol says, and which one before it it follows from
/// (`format-spec/table.md`, "Blocks").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Coding {
    /// 2^h is what the bit that the symbol names is worth: the first one that differs, or where a gap is coded the top bit of
    /// the difference.
    pub h: u32,
    /// In [`Codec::AllDifferences`], how many bits below that one differ, all of which are coded by their positions; `None`
    /// for a gap. In other codecs `None`: the tail is all the bits below.
    pub differing: Option<u32>,
    /// How many places before its predecessor is the fingerprint that it is coded from.
    pub back: u32,
}

/// How often each symbol occurs between the fingerprints of a table.
///
/// Fingerprints come in strictly ascending order, permuted.
pub(crate) struct SymbolCounts<F> {
    codec: Codec,
    counts: Counts,
    fingerprints: u64,
    /// The last ones, and some before.
    recent: Vec<F>,
}

/// Counts of symbols, and what they say so far of how long the words will be.
pub(crate) struct Counts {
    counts: Box<[u64]>,
    total: u64,
    /// In sixteenths of a bit, as of some time ago.
    prices: Box<[u16]>,
}

impl<F: Fingerprint> SymbolCounts<F> {
    pub(crate) fn new(codec: Codec) -> Self {
        let counts = Counts::new(codec.symbols(F::BITS));
        SymbolCounts { codec, counts, fingerprints: 0, recent: Vec::with_capacity(2 * WINDOW) }
    }

    /// The counts of a codec without a code, for which only the number of fingerprints matters.
    pub(crate) fn of(codec: Codec, fingerprints: u64) -> Self {
        SymbolCounts { fingerprints, ..SymbolCounts::new(codec) }
    }

    #[inline]
    pub(crate) fn push(&mut self, fingerprint: F) {
        if !self.recent.is_empty() {
            self.codec.count(&self.recent, fingerprint, &mut self.counts);
        }
        if self.recent.len() == 2 * WINDOW {
            self.recent.drain(..WINDOW);
        }
        self.recent.push(fingerprint);
        self.fingerprints += 1;
    }

    /// Number of fingerprints pushed.
    pub(crate) fn fingerprints(&self) -> u64 {
        self.fingerprints
    }

    pub(crate) fn code(&self) -> Code {
        Code::from_counts(&self.counts.counts)
    }
}

impl Counts {
    fn new(symbols: usize) -> Counts {
        Counts { counts: vec![0; symbols].into(), total: 0, prices: vec![PRIOR; symbols].into() }
    }

    #[inline]
    pub(super) fn add(&mut self, symbol: u32) {
        self.counts[symbol as usize] += 1;
    }

    /// [`Counts::add`] where the counts so far decide which symbol comes next.
    pub(super) fn add_priced(&mut self, symbol: u32) {
        self.add(symbol);
        self.total += 1;
        // Each time there are twice as many.
        if self.total.is_power_of_two() && self.total >= FIRST {
            let all = sixteenths_of_log2(2 * self.total);
            for (price, &count) in self.prices.iter_mut().zip(&self.counts) {
                *price = (all - sixteenths_of_log2(2 * count + 1)).min(LONGEST);
            }
        }
    }

    /// Makes sure that a symbol has a word.
    pub(super) fn ensure(&mut self, symbol: u32) {
        let count = &mut self.counts[symbol as usize];
        *count = (*count).max(1);
    }

    /// About the length of a symbol's word, in sixteenths of a bit.
    pub(super) fn price(&self, symbol: u32) -> u32 {
        u32::from(self.prices[symbol as usize])
    }
}

/// What a word is taken to cost before anything was counted, in sixteenths of a bit.
const PRIOR: u16 = 7 * 16;
/// What the rarest words are taken to cost.
const LONGEST: u16 = crate::huffman::MAX_LENGTH as u16 * 16;
/// Counts of fewer symbols say nothing.
const FIRST: u64 = 256;

/// 16 log2 of a number that is not 0, rounded down: in whole numbers, so that files are the same everywhere.
fn sixteenths_of_log2(number: u64) -> u16 {
    let whole = number.ilog2();
    // 1.31 fixed point; each squaring shifts out another bit of the logarithm.
    let mut mantissa = (number << (63 - whole)) >> 32;
    let mut log = whole as u16;
    for _ in 0..4 {
        mantissa = (mantissa * mantissa) >> 31;
        let bit = mantissa >> 32;
        mantissa >>= bit;
        log = log << 1 | bit as u16;
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_right() {
        for number in (1..5000).chain([u64::MAX, 1 << 63, (1 << 40) + 12345]) {
            let expected = ((number as f64).log2() * 16.0 + 1e-9).floor();
            let found = f64::from(sixteenths_of_log2(number));
            assert!((expected - found).abs() <= 1.0, "{number}: {expected} {found}");
        }
        assert_eq!([1, 2, 3, 4].map(sixteenths_of_log2), [0, 16, 25, 32]);
    }
}
