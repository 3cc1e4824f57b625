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

/// Maximum number of bit positions that are stored for one fingerprint, in its *tail*. Each is the position of a
/// bit in which the fingerprint differs from the earlier fingerprint that it is coded relative to. The highest
/// differing bit is not counted, because its position is part of the Huffman symbol of the fingerprint.
/// `benches/history/all-differences.md` has the measurements for this choice.
pub(super) const MAX_DIFFERING: u32 = MAX_POSITIONS;
/// Width in bits of the *distance back*, which is stored for a fingerprint that is not coded relative to its predecessor.
/// It is the number of places from the predecessor back to the fingerprint that is used instead.
const BACK_BITS: u32 = 4;
/// A fingerprint can be coded relative to any one of this number of fingerprints before it.
pub(crate) const WINDOW: usize = 1 << BACK_BITS;
/// Number of symbols for each bit position h: one gap symbol for numeric differences to the predecessor, and near
/// symbols for 0 to [`MAX_DIFFERING`] differing bits below h. For each number of differing bits, there are two
/// near symbols: relative to the predecessor, and relative to an earlier fingerprint.
const SYMBOL_FORMS: u32 = 1 + 2 * (MAX_DIFFERING + 1);

/// Returns the number of Huffman symbols of this codec for fingerprints of `bits` bits.
pub(crate) fn alphabet_size(bits: u32) -> usize {
    (SYMBOL_FORMS * bits) as usize
}

/// Returns how many bits store the position of a bit below position `h`.
fn position_bits(h: u32) -> u32 {
    if h < 2 { 0 } else { 32 - (h - 1).leading_zeros() }
}

/// A decoded Huffman symbol.
///
/// - `Gap` codes the numeric difference to the predecessor. The top bit of the difference is at position `h`.
/// - `Near` codes the bits that differ from an earlier fingerprint. The highest of them is at position `h`.
///   `differing` is the number of the others. `is_earlier` is false if the earlier fingerprint is the predecessor.
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

    /// Returns the symbol that codes `next` by the bits that differ from an earlier fingerprint, `other`. `back`
    /// is 0 if `other` is the predecessor of `next`, 1 if `other` is the fingerprint before the predecessor, and
    /// so on. Returns `None` if `next` and `other` differ in more than [`MAX_DIFFERING`] + 1 bits.
    pub(super) fn from_near<F: Fingerprint>(other: F, next: F, back: usize) -> Option<DeltaSymbol> {
        let difference = other ^ next;
        let differing = difference.count_ones().wrapping_sub(1);
        (differing <= MAX_DIFFERING).then(|| DeltaSymbol::Near {
            h: top_bit(difference),
            differing,
            is_earlier: back > 0,
        })
    }

    /// Describes the list of differing bits that follows this symbol. Returns the width in bits of a list entry (a bit
    /// position) and the number of entries. Both are 0 for a gap symbol, which has no list.
    pub(super) fn position_fields(self) -> (u32, u32) {
        match self {
            DeltaSymbol::Gap { .. } => (0, 0),
            DeltaSymbol::Near { h, differing, .. } => (position_bits(h), differing),
        }
    }

    /// Returns the length in bits of the tail: the bits that are stored for a fingerprint in addition to this
    /// symbol.
    pub(super) fn tail_len(self) -> u32 {
        match self {
            DeltaSymbol::Gap { h } => h,
            DeltaSymbol::Near { h, differing, is_earlier } => {
                differing * position_bits(h) + u32::from(is_earlier) * BACK_BITS
            }
        }
    }

    /// Returns the tail that codes `next` relative to `other`: the bits that are stored in addition to this
    /// symbol. `back` is as in [`DeltaSymbol::from_near`].
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

/// The coding chosen for a fingerprint: a symbol, and the earlier fingerprint that the fingerprint is coded
/// relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeltaCoding {
    pub(super) symbol: DeltaSymbol,
    /// Distance back to the earlier fingerprint that this one is coded relative to: 0 for the predecessor, 1 for
    /// the fingerprint before the predecessor, and so on.
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

/// Returns the coding of `next` with the lowest price, or `None` if no symbol that can code `next` has a price.
///
/// `before` has the fingerprints before `next` in its span, at least one; only the last [`WINDOW`] are examined.
/// `price` takes a symbol's index in the alphabet and the symbol. It returns the size of the code word and of the
/// further bits, in any unit, or `None` if the symbol has no code word. If several codings have the lowest price, the
/// gap symbol is preferred, then the coding relative to the fingerprint nearest before `next`.
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
