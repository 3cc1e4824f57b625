//! The symbols of a table's Huffman code: their meaning, and the count of each.

use crate::huffman::HuffmanCode;

/// How one fingerprint is coded in its block: the meaning of its Huffman symbol, and the earlier fingerprint that
/// it is coded relative to (`format-spec/blocks.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Coding {
    /// Position of the coded bit, which has the value 2^h. The coded bit is the first bit that differs from the
    /// earlier fingerprint. If instead the numeric difference to the predecessor is coded, the coded bit is the
    /// top bit of this difference.
    pub h: u32,
    /// Number of differing bits below bit [`h`](Coding::h), if the position of each is stored
    /// ([`Codec::AllDifferences`](super::Codec::AllDifferences)). `None` if all bits below bit `h` are stored as
    /// they are: for a numeric difference, and in all other codecs.
    pub differing: Option<u32>,
    /// Distance back to the earlier fingerprint that this one is coded relative to: 0 for the predecessor, 1 for
    /// the fingerprint before the predecessor, and so on.
    pub back: u32,
}

/// Counts of symbols, and estimates of the lengths of their code words.
pub(crate) struct SymbolHistogram {
    counts: Box<[u64]>,
    total: u64,
    /// Price of each symbol: the estimated length of its code word, in sixteenths of a bit. Updated each time that the total
    /// count has doubled.
    prices: Box<[u16]>,
}

impl SymbolHistogram {
    pub(super) fn new(symbols: usize) -> SymbolHistogram {
        SymbolHistogram {
            counts: vec![0; symbols].into(),
            total: 0,
            prices: vec![PRIOR_PRICE; symbols].into(),
        }
    }

    #[inline]
    pub(super) fn add(&mut self, symbol: u32) {
        self.counts[symbol as usize] += 1;
    }

    /// Like [`SymbolHistogram::add`], but also updates the prices (estimated lengths of the code words) each time that the
    /// total count has doubled. Used by codecs that choose the cheapest symbol for a fingerprint.
    pub(super) fn add_and_reprice(&mut self, symbol: u32) {
        self.add(symbol);
        self.total += 1;
        // Each time the number of symbols has doubled.
        if self.total.is_power_of_two() && self.total >= FIRST_REPRICING {
            let all = sixteenths_of_log2(2 * self.total);
            for (price, &count) in self.prices.iter_mut().zip(&self.counts) {
                *price = (all - sixteenths_of_log2(2 * count + 1)).min(MAX_PRICE);
            }
        }
    }

    /// Returns the Huffman code with the fewest bits for these counts.
    pub(super) fn code(&self) -> HuffmanCode {
        HuffmanCode::from_counts(&self.counts)
    }

    /// Makes sure that a symbol gets a code word, even if it was never counted.
    pub(super) fn ensure_word(&mut self, symbol: u32) {
        let count = &mut self.counts[symbol as usize];
        *count = (*count).max(1);
    }

    /// Estimated length of a symbol's code word, in sixteenths of a bit.
    pub(super) fn price(&self, symbol: u32) -> u32 {
        u32::from(self.prices[symbol as usize])
    }
}

/// Assumed length of a code word before the first update of the prices, in sixteenths of a bit.
const PRIOR_PRICE: u16 = 7 * 16;
/// Maximum price (estimated length of a code word), in sixteenths of a bit: the length of the longest possible word.
const MAX_PRICE: u16 = crate::huffman::MAX_WORD_BITS as u16 * 16;
/// Number of counted symbols at the first update of the prices: fewer symbols give no useful estimate.
const FIRST_REPRICING: u64 = 256;

/// Returns 16 log2 of a number other than 0, rounded down. Integer arithmetic makes files the same on every machine.
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
