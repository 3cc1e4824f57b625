//! The symbols of `all-differences`. A symbol and its tail derive a fingerprint from an earlier one in its span.
//!
//! A *gap* symbol: the top bit of the difference to the predecessor has the value 2^h; the tail has the h bits below it.
//! A *near* symbol: the fingerprint differs from an earlier one in the bit of value 2^h and in m lower bits. The tail has
//! the positions of these m bits. If the earlier fingerprint is not the predecessor, the tail also has its distance back.

use crate::codec::Coding;
use crate::fingerprint::Fingerprint;
use crate::simd::MAX_POSITIONS;

/// Largest number of lower bits that may differ between near fingerprints. Measured in
/// `benches/history/all-differences.md`.
pub(super) const MAX_DIFFERING: u32 = MAX_POSITIONS;
/// Width in bits of the field for the distance back to the earlier fingerprint.
const BACK_BITS: u32 = 4;
/// Number of earlier fingerprints that a fingerprint may be coded relative to.
pub(crate) const WINDOW: usize = 1 << BACK_BITS;
/// Number of symbols for each h: one gap; near the predecessor, or near an earlier fingerprint, with 0 to
/// [`MAX_DIFFERING`] lower bits.
const SYMBOL_FORMS: u32 = 1 + 2 * (MAX_DIFFERING + 1);

/// Returns the number of symbols for fingerprints of `bits` bits.
pub(crate) fn alphabet_size(bits: u32) -> usize {
    (SYMBOL_FORMS * bits) as usize
}

/// Returns the width in bits of a bit position below h.
fn position_bits(h: u32) -> u32 {
    if h < 2 { 0 } else { 32 - (h - 1).leading_zeros() }
}

/// A symbol of the code, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeltaSymbol {
    Gap { h: u32 },
    Near { h: u32, differing: u32, is_earlier: bool },
}

impl DeltaSymbol {
    /// Returns the symbol with a number in the alphabet for fingerprints of `bits` bits.
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

    /// Returns the symbol that codes `next` as a gap to its predecessor.
    pub(super) fn from_gap<F: Fingerprint>(previous: F, next: F) -> DeltaSymbol {
        DeltaSymbol::Gap { h: top_bit(next.wrapping_sub(previous)) }
    }

    /// Returns the symbol that codes `next` relative to `other`, which is `back` places before its predecessor. `None` if they
    /// differ in too many bits.
    pub(super) fn from_near<F: Fingerprint>(other: F, next: F, back: usize) -> Option<DeltaSymbol> {
        let difference = other ^ next;
        let differing = difference.count_ones().wrapping_sub(1);
        (differing <= MAX_DIFFERING).then(|| DeltaSymbol::Near {
            h: top_bit(difference),
            differing,
            is_earlier: back > 0,
        })
    }

    /// Returns the width in bits of each position in the tail, and the number of positions.
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

    /// Returns the tail of `next`, which is coded relative to `other`, `back` places before its predecessor.
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

/// The coding of a fingerprint: a symbol, and the fingerprint that it is relative to.
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

/// Returns the cheapest coding of `next`, the fingerprint after `before`. `None` if no symbol has a price.
///
/// `before` must not be empty; only its last [`WINDOW`] fingerprints are examined. `price` takes a symbol's number and the
/// symbol, and returns the price of its code word and tail. If several codings have the same price, the first one is chosen.
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
