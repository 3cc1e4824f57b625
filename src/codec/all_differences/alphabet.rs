//! The symbols of the codec `all-differences`. A fingerprint is coded relative to an earlier fingerprint in its span:
//! by a Huffman-coded symbol, and by a *tail* of further bits. Each symbol has a bit position h. There are two kinds:
//!
//! - A *gap* symbol codes the numeric difference to the predecessor. The top bit of the difference has the value 2^h.
//!   The tail has the h bits below this bit.
//! - A *near* symbol codes the bits that differ from an earlier fingerprint: the bit of value 2^h, and m lower bits.
//!   The tail has the positions of these m bits. If the earlier fingerprint is not the predecessor, the tail also has
//!   the distance from the predecessor back to it.

use crate::codec::Coding;
use crate::fingerprint::Fingerprint;
use crate::simd::MAX_POSITIONS;

/// Maximum number of differing bits whose positions a tail can have. The highest differing bit is not counted: the
/// symbol itself has its position.
/// `benches/history/all-differences.md` has the measurements for this choice.
pub(super) const MAX_DIFFERING: u32 = MAX_POSITIONS;
/// Width in bits of the distance back that a tail can have: from the predecessor back to the earlier fingerprint
/// that this one is coded relative to.
const BACK_BITS: u32 = 4;
/// Number of preceding fingerprints, any of which a fingerprint can be coded relative to.
pub(crate) const WINDOW: usize = 1 << BACK_BITS;
/// Number of symbols for each bit position h: one gap symbol, and near symbols for 0 to [`MAX_DIFFERING`] lower bits.
/// There are two near symbols for each number of lower bits: relative to the predecessor, and to an earlier fingerprint.
const SYMBOL_FORMS: u32 = 1 + 2 * (MAX_DIFFERING + 1);

/// Returns the number of symbols for fingerprints of `bits` bits.
pub(crate) fn alphabet_size(bits: u32) -> usize {
    (SYMBOL_FORMS * bits) as usize
}

/// Returns the number of bits that store a bit position from 0 to h - 1.
fn position_bits(h: u32) -> u32 {
    if h < 2 { 0 } else { 32 - (h - 1).leading_zeros() }
}

/// A symbol with its parameters: the bit position `h`, the number of differing bits below it, and whether the
/// fingerprint is coded relative to one before its predecessor (`is_earlier`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeltaSymbol {
    Gap { h: u32 },
    Near { h: u32, differing: u32, is_earlier: bool },
}

impl DeltaSymbol {
    /// Returns the symbol with the index `number` in the alphabet for fingerprints of `bits` bits.
    pub(super) fn from_number(number: u32, bits: u32) -> DeltaSymbol {
        let (form, h) = (number / bits, number % bits);
        match form.checked_sub(1) {
            None => DeltaSymbol::Gap { h },
            Some(form) => DeltaSymbol::Near {
                h,
                differing: form % (MAX_DIFFERING + 1),
                is_earlier: form > MAX_DIFFERING,
            },
        }
    }

    pub(super) fn number(self, bits: u32) -> u32 {
        match self {
            DeltaSymbol::Gap { h } => h,
            DeltaSymbol::Near { h, differing, is_earlier } => {
                (1 + differing + u32::from(is_earlier) * (MAX_DIFFERING + 1)) * bits + h
            }
        }
    }

    /// Returns the symbol that codes `next` by its numeric difference to its predecessor `previous`.
    pub(super) fn from_gap<F: Fingerprint>(previous: F, next: F) -> DeltaSymbol {
        DeltaSymbol::Gap { h: top_bit(next.wrapping_sub(previous)) }
    }

    /// Returns the near symbol that codes `next` relative to an earlier fingerprint, `other`. The predecessor of `next` is
    /// `back` places after `other`; `back` is 0 if `other` is the predecessor. Returns `None` if the two fingerprints
    /// differ in more than [`MAX_DIFFERING`] + 1 bits.
    pub(super) fn from_near<F: Fingerprint>(other: F, next: F, back: usize) -> Option<DeltaSymbol> {
        let difference = other ^ next;
        let differing = difference.count_ones().wrapping_sub(1);
        (differing <= MAX_DIFFERING).then(|| DeltaSymbol::Near {
            h: top_bit(difference),
            differing,
            is_earlier: back > 0,
        })
    }

    /// Returns the width in bits of each bit position in the tail, and the number of bit positions. Both are 0 for a
    /// gap symbol.
    pub(super) fn position_fields(self) -> (u32, u32) {
        match self {
            DeltaSymbol::Gap { .. } => (0, 0),
            DeltaSymbol::Near { h, differing, .. } => (position_bits(h), differing),
        }
    }

    /// Returns the length of the tail, in bits.
    pub(super) fn tail_len(self) -> u32 {
        match self {
            DeltaSymbol::Gap { h } => h,
            DeltaSymbol::Near { h, differing, is_earlier } => {
                differing * position_bits(h) + u32::from(is_earlier) * BACK_BITS
            }
        }
    }

    /// Returns the tail that codes `next` relative to `other`. `back` is as in [`DeltaSymbol::from_near`].
    pub(super) fn tail<F: Fingerprint>(self, other: F, next: F, back: usize) -> F {
        match self {
            DeltaSymbol::Gap { h } => next.wrapping_sub(other) & F::suffix_mask(h),
            DeltaSymbol::Near { h, is_earlier, .. } => {
                let mut below = ((other ^ next) & F::suffix_mask(h)).to_u128();
                let (mut tail, mut at) = (0_u64, 0);
                while below != 0 {
                    tail |= u64::from(below.trailing_zeros()) << at;
                    at += position_bits(h);
                    below &= below - 1;
                }
                F::from_u64(if is_earlier { tail | (back as u64) << at } else { tail })
            }
        }
    }
}

/// Returns the position of the highest set bit of a number other than 0, counted from the lowest bit.
fn top_bit<F: Fingerprint>(number: F) -> u32 {
    F::BITS - 1 - number.leading_zeros()
}

/// The coding chosen for a fingerprint: a symbol, and the earlier fingerprint that the symbol refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeltaCoding {
    pub(super) symbol: DeltaSymbol,
    /// Distance from the predecessor back to the fingerprint that this one is coded relative to; 0 is the predecessor.
    pub(super) back: usize,
}

impl From<DeltaCoding> for Coding {
    fn from(DeltaCoding { symbol, back }: DeltaCoding) -> Coding {
        let (h, differing) = match symbol {
            DeltaSymbol::Gap { h } => (h, None),
            DeltaSymbol::Near { h, differing, .. } => (h, Some(differing)),
        };
        Coding { h, differing, back: back as u32 }
    }
}

/// Returns the coding of `next` with the lowest price, or `None` if no symbol for `next` has a price.
///
/// `before` has the fingerprints before `next` in its span, at least one; only the last [`WINDOW`] are examined. `price`
/// takes a symbol's index in the alphabet and the symbol. It returns the size of the code word and the tail, in any
/// unit, or `None` if the symbol has no code word. Among codings with the same price, the gap symbol comes first,
/// then the fingerprint nearest before `next`.
pub(super) fn cheapest_coding<F: Fingerprint>(
    before: &[F],
    next: F,
    price: impl Fn(u32, DeltaSymbol) -> Option<u32>,
) -> Option<DeltaCoding> {
    let priced = |symbol: DeltaSymbol, back| {
        Some((price(symbol.number(F::BITS), symbol)?, DeltaCoding { symbol, back }))
    };
    let mut best = before.last().and_then(|&previous| priced(DeltaSymbol::from_gap(previous, next), 0));
    for (back, &other) in before.iter().rev().enumerate().take(WINDOW) {
        if let Some(symbol) = DeltaSymbol::from_near(other, next, back)
            && let Some(found) = priced(symbol, back)
            && best.is_none_or(|(price, _)| found.0 < price)
        {
            best = Some(found);
        }
    }
    best.map(|(_, coded)| coded)
}
