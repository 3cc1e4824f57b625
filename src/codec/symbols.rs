//! Symbols of the Huffman code of a table: their meaning, and how often each occurs.

use crate::huffman::Code;

/// How one fingerprint is coded in its block: the meaning of its symbol, and the earlier fingerprint that it follows from
/// (`format-spec/table.md`, "Blocks").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Coding {
    /// The bit that the symbol names is worth 2^h: the first one that differs or, for a gap, the top bit of the difference.
    pub h: u32,
    /// In [`Codec::AllDifferences`](super::Codec::AllDifferences), how many bits below that one differ; the positions of all of
    /// them are coded; `None` for a gap. In other codecs `None`: the tail is all the bits below.
    pub differing: Option<u32>,
    /// How many places before its predecessor is the fingerprint that it is coded from.
    pub back: u32,
}

/// Counts of symbols, and an estimate of the lengths of their words.
pub(crate) struct Counts {
    counts: Box<[u64]>,
    total: u64,
    /// In sixteenths of a bit, as of some time ago.
    prices: Box<[u16]>,
}

impl Counts {
    pub(super) fn new(symbols: usize) -> Counts {
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

    /// The code with the fewest bits for these counts.
    pub(super) fn code(&self) -> Code {
        Code::from_counts(&self.counts)
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

/// The assumed length of a word before any count, in sixteenths of a bit.
const PRIOR: u16 = 7 * 16;
/// The assumed length of the rarest words.
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
