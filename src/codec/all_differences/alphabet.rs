//! The symbols of `all-differences`: how a fingerprint is derived from an earlier one in its span.
//!
//! A *gap* symbol says that the top bit of the difference to the predecessor is worth 2^h; the tail is the h bits
//! below. A *near* symbol says that the fingerprint differs from another one in the bit worth 2^h and in m lower
//! bits. Its tail has the positions of these bits. If the other fingerprint is not the predecessor, the tail also
//! says how far back it is.

use crate::codec::Coding;
use crate::fingerprint::Fingerprint;
use crate::kernels::POSITIONS;

/// Most lower bits that may differ between near fingerprints. Measured in
/// `benches/history/all-differences.md`.
pub(super) const MOST: u32 = POSITIONS;
/// Bits of the field that says how far back the other fingerprint is.
const BACK_BITS: u32 = 4;
/// Number of earlier fingerprints that a fingerprint may be coded from.
pub(crate) const WINDOW: usize = 1 << BACK_BITS;
/// Forms of symbols: gap, near the predecessor, near an earlier fingerprint.
const FORMS: u32 = 1 + 2 * (MOST + 1);

/// Number of symbols for fingerprints of `bits` bits.
pub(crate) fn symbols(bits: u32) -> usize {
    (FORMS * bits) as usize
}

/// Bits of the position of a bit that is below the bit worth 2^h.
fn position_bits(h: u32) -> u32 {
    if h < 2 { 0 } else { 32 - (h - 1).leading_zeros() }
}

/// The meaning of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Gap { h: u32 },
    Near { h: u32, differing: u32, is_earlier: bool },
}

impl Meaning {
    /// Returns the meaning of a symbol of fingerprints of `bits` bits.
    pub(super) fn of(symbol: u32, bits: u32) -> Meaning {
        let (form, h) = (symbol / bits, symbol % bits);
        match form.checked_sub(1) {
            None => Meaning::Gap { h },
            Some(form) => Meaning::Near { h, differing: form % (MOST + 1), is_earlier: form > MOST },
        }
    }

    pub(super) fn symbol(self, bits: u32) -> u32 {
        match self {
            Meaning::Gap { h } => h,
            Meaning::Near { h, differing, is_earlier } => {
                (1 + differing + u32::from(is_earlier) * (MOST + 1)) * bits + h
            }
        }
    }

    /// Codes `next` as a gap to its predecessor.
    pub(super) fn gap<F: Fingerprint>(previous: F, next: F) -> Meaning {
        Meaning::Gap { h: top_bit(next.wrapping_sub(previous)) }
    }

    /// Codes `next` from a fingerprint `back` places before its predecessor, if the two are near.
    pub(super) fn near<F: Fingerprint>(other: F, next: F, back: usize) -> Option<Meaning> {
        let difference = other ^ next;
        let differing = difference.count_ones().wrapping_sub(1);
        (differing <= MOST).then(|| Meaning::Near { h: top_bit(difference), differing, is_earlier: back > 0 })
    }

    /// Bits of each position in the tail, and the number of positions.
    pub(super) fn positions(self) -> (u32, u32) {
        match self {
            Meaning::Gap { .. } => (0, 0),
            Meaning::Near { h, differing, .. } => (position_bits(h), differing),
        }
    }

    /// Length of the tail, in bits.
    pub(super) fn tail_len(self) -> u32 {
        match self {
            Meaning::Gap { h } => h,
            Meaning::Near { h, differing, is_earlier } => {
                differing * position_bits(h) + u32::from(is_earlier) * BACK_BITS
            }
        }
    }

    /// The tail of the fingerprint `next`, which is coded from `other`, `back` places before the predecessor.
    pub(super) fn tail<F: Fingerprint>(self, other: F, next: F, back: usize) -> F {
        match self {
            Meaning::Gap { h } => next.wrapping_sub(other) & F::suffix_mask(h),
            Meaning::Near { h, is_earlier, .. } => {
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

/// Position of the highest set bit of a number other than 0, counted from the lowest.
fn top_bit<F: Fingerprint>(number: F) -> u32 {
    F::BITS - 1 - number.leading_zeros()
}

/// How a fingerprint is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Coded {
    pub(super) meaning: Meaning,
    /// Distance from the predecessor back to the fingerprint that this one is coded from; 0 is the predecessor.
    pub(super) back: usize,
}

impl From<Coded> for Coding {
    fn from(Coded { meaning, back }: Coded) -> Coding {
        let (h, differing) = match meaning {
            Meaning::Gap { h } => (h, None),
            Meaning::Near { h, differing, .. } => (h, Some(differing)),
        };
        Coding { h, differing, back: back as u32 }
    }
}

/// Returns the cheapest way to code the fingerprint after `before`.
///
/// Only the last [`WINDOW`] fingerprints of `before` count, and it must not be empty. `price` returns the price of a
/// symbol with its tail. Of several with the same price, the first is taken.
pub(super) fn cheapest<F: Fingerprint>(
    before: &[F],
    next: F,
    price: impl Fn(u32, Meaning) -> Option<u32>,
) -> Option<Coded> {
    let priced =
        |meaning: Meaning, back| Some((price(meaning.symbol(F::BITS), meaning)?, Coded { meaning, back }));
    let mut best = before.last().and_then(|&previous| priced(Meaning::gap(previous, next), 0));
    for (back, &other) in before.iter().rev().enumerate().take(WINDOW) {
        if let Some(meaning) = Meaning::near(other, next, back)
            && let Some(found) = priced(meaning, back)
            && best.is_none_or(|(price, _)| found.0 < price)
        {
            best = Some(found);
        }
    }
    best.map(|(_, coded)| coded)
}
