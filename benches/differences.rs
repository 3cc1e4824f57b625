//! Estimates the size of variants of the codec `all-differences` (`format-spec/table.md`). Prints Markdown.
//!
//! `cargo bench --bench differences -- FILE.u64 ...` reads little-endian 64-bit fingerprints.
//!
//! A *span* is a group of successive fingerprints. The first is stored in full. Every other fingerprint is
//! stored as its differing bits from an earlier fingerprint of the span, the *reference*. A *symbol* of a Huffman
//! code has h, the position of the highest differing bit, and m, the number of differing bits below it. The *tail*, a
//! bit string besides the symbol, has the positions of these m bits. If a *raw symbol* takes fewer bits, it is stored
//! instead. A raw symbol has only h, the position of the highest bit of the difference from the preceding fingerprint.
//! The tail of a raw symbol has the h bits of the difference below that bit.
//!
//! The estimate is the entropy of the symbols plus the sizes of the tails. The first fingerprint of a span counts 72
//! bits. Block headers and the block index do not count.

use std::collections::HashMap;

/// Coding of the positions of the bits that differ between a fingerprint and an earlier one. The position h of the highest
/// differing bit is stored elsewhere; only the positions of the m lower differing bits are coded here.
#[derive(Clone, Copy, PartialEq)]
enum PositionCoding {
    /// Each position takes a field of ceil(log2 h) bits. This suffices, because all positions are below h, the position of
    /// the highest differing bit.
    Fields,
    /// The positions are in descending order. Each takes a field that is only wide enough for positions below the
    /// previous position.
    Shrinking,
    /// One number encodes all m positions: it selects one of the C(h, m) sets of m positions below h. Its size counts as
    /// log2 C(h, m) bits, not rounded up.
    Enumerated,
}

/// Way to store the choice of the *reference*: the earlier fingerprint whose differing bits are stored for a fingerprint.
#[derive(Clone, Copy, PartialEq)]
enum ReferenceCoding {
    /// A field of fixed width besides each symbol selects the reference, one of the earlier fingerprints.
    Field,
    /// A symbol of a second Huffman code selects the reference, one of the earlier fingerprints.
    Coded,
    /// The symbol says whether the reference is the preceding fingerprint. If not, a field of fixed width selects one
    /// of the earlier fingerprints.
    OtherField,
}

/// Difference from the preceding fingerprint, for fingerprints that are not stored as positions of differing bits. An
/// entropy-coded symbol gives h, the position of the highest bit of the difference. The h lower bits are stored uncompressed.
#[derive(Clone, Copy, PartialEq)]
enum RawCoding {
    /// Exclusive or of the fingerprint and the preceding fingerprint.
    Xor,
    /// The fingerprint minus the preceding fingerprint.
    Gap,
}

/// Parameters of one variant of the codec `all-differences`.
#[derive(Clone, Copy)]
struct Variant {
    /// Number of successive fingerprints in a span. The first fingerprint of a span is stored in full.
    span: usize,
    /// Number of preceding fingerprints that are tried as reference of a fingerprint. The best one becomes its reference.
    window: usize,
    /// Maximum number of differing bits below the highest one. A fingerprint with more such bits is stored as its difference
    /// from the preceding fingerprint.
    max_lower_bits: u32,
    positions: PositionCoding,
    reference: ReferenceCoding,
    raw: RawCoding,
}

/// The variant that the codec `all-differences` uses.
const CURRENT: Variant = Variant {
    span: 32,
    window: 16,
    max_lower_bits: 5,
    positions: PositionCoding::Fields,
    reference: ReferenceCoding::OtherField,
    raw: RawCoding::Gap,
};
/// Size in bits of a fingerprint that is stored in full: the first one of each span, a group of successive fingerprints.
const RESTART_BITS: f64 = 72.0;
/// Number of passes over the fingerprints. Each pass chooses the shortest coding of each fingerprint, with the symbol
/// sizes from the previous pass.
const ROUNDS: usize = 4;
/// Assumed size of any symbol in the first pass over the fingerprints, in bits.
const UNCOUNTED_SYMBOL_BITS: f64 = 7.0;
/// Assumed size of a symbol that did not occur in the previous pass over the fingerprints, in bits.
const UNSEEN_SYMBOL_BITS: f64 = 14.0;

fn ceil_log2(number: u64) -> f64 {
    f64::from(u64::BITS - number.saturating_sub(1).leading_zeros())
}

/// Returns the size in bits that the positions of the 1 bits of `below` take when coded. All positions are less than
/// `h`.
fn position_bits(positions: PositionCoding, h: u32, below: u64) -> f64 {
    let m = u64::from(below.count_ones());
    match positions {
        PositionCoding::Fields => m as f64 * ceil_log2(u64::from(h)),
        PositionCoding::Enumerated => {
            (0..m).map(|i| ((u64::from(h) - i) as f64 / (i + 1) as f64).log2()).sum()
        }
        PositionCoding::Shrinking => {
            let (mut bits, mut rest, mut limit) = (0.0, below, u64::from(h));
            for after in (0..m).rev() {
                bits += ceil_log2(limit - after);
                limit = u64::from(63 - rest.leading_zeros());
                rest &= !(1 << limit);
            }
            bits
        }
    }
}

/// Symbol of the Huffman code, with three fields:
///
/// - The number of differing bits below the highest one. `None` if the fingerprint is stored as its difference from the
///   preceding one.
/// - The position of the highest differing bit.
/// - Whether a field besides the symbol selects the reference. Always `false` without [`ReferenceCoding::OtherField`].
type Symbol = (Option<u32>, u32, bool);

/// Estimates the size of each symbol in an ideal code, from the number of its occurrences in the previous pass over the
/// fingerprints.
#[derive(Default)]
struct EntropyModel<T> {
    /// Number of occurrences of each symbol so far in the current pass over the fingerprints.
    counts: HashMap<T, u64>,
    /// Size of each symbol in bits, computed from its count in the previous pass over the fingerprints. Empty in the first pass.
    bits: HashMap<T, f64>,
}

impl<T: std::hash::Hash + Eq + Copy> EntropyModel<T> {
    /// Returns the estimated size of a symbol in bits.
    fn symbol_bits(&self, symbol: T) -> f64 {
        if self.bits.is_empty() {
            UNCOUNTED_SYMBOL_BITS
        } else {
            self.bits.get(&symbol).copied().unwrap_or(UNSEEN_SYMBOL_BITS)
        }
    }

    fn count(&mut self, symbol: T) {
        *self.counts.entry(symbol).or_default() += 1;
    }

    /// Ends a pass over the fingerprints. Returns the total size in bits of all symbols that were counted in this pass, and
    /// sets the sizes of symbols for the next pass.
    fn finish_round(&mut self) -> f64 {
        let all = self.counts.values().sum::<u64>() as f64;
        self.bits =
            self.counts.iter().map(|(&symbol, &count)| (symbol, (all / count as f64).log2())).collect();
        self.counts.drain().map(|(symbol, count)| count as f64 * self.bits[&symbol]).sum()
    }
}

/// Returns four figures of a variant: the bits per fingerprint; the number of distinct symbols; the share of
/// fingerprints coded by their differing bits from any earlier fingerprint; and the share of fingerprints coded by their
/// differing bits from the preceding fingerprint.
fn measure(fingerprints: &[u64], variant: Variant) -> (f64, usize, f64, f64) {
    let Variant { span, window, max_lower_bits, positions, reference, raw } = variant;
    let back_bits = ceil_log2(window as u64);
    let (mut symbols, mut references) = (EntropyModel::<Symbol>::default(), EntropyModel::<usize>::default());
    let mut figures = (0.0, 0, 0.0, 0.0);
    for _ in 0..ROUNDS {
        let (mut bits, mut by_bits, mut from_predecessor) = (0.0, 0.0, 0.0);
        for (i, &next) in fingerprints.iter().enumerate() {
            let in_span = i % span;
            if in_span == 0 {
                bits += RESTART_BITS;
                continue;
            }
            let previous = fingerprints[i - 1];
            let difference = if raw == RawCoding::Gap { next - previous } else { next ^ previous };
            let h = 63 - difference.leading_zeros();
            let symbol = (None, h, false);
            // Estimated size in bits, symbol, distance to the reference minus 1, size of the tail in bits.
            let mut best = (symbols.symbol_bits(symbol) + f64::from(h), symbol, 0, f64::from(h));
            for back in 0..window.min(in_span) {
                let difference = next ^ fingerprints[i - 1 - back];
                let (h, m) = (63 - difference.leading_zeros(), difference.count_ones() - 1);
                if m > max_lower_bits {
                    continue;
                }
                let mut tail = position_bits(positions, h, difference & !(1 << h));
                let mut cost = 0.0;
                match reference {
                    ReferenceCoding::Field => tail += back_bits,
                    ReferenceCoding::OtherField if back > 0 => tail += back_bits,
                    ReferenceCoding::OtherField => {}
                    ReferenceCoding::Coded => cost += references.symbol_bits(back),
                }
                let symbol = (Some(m), h, reference == ReferenceCoding::OtherField && back > 0);
                cost += symbols.symbol_bits(symbol) + tail;
                if cost < best.0 {
                    best = (cost, symbol, back, tail);
                }
            }
            bits += best.3;
            symbols.count(best.1);
            if best.1.0.is_some() {
                references.count(best.2);
                by_bits += 1.0;
                from_predecessor += f64::from(u8::from(best.2 == 0));
            }
        }
        let symbol_count = symbols.counts.len();
        bits += symbols.finish_round();
        let reference_bits = references.finish_round();
        if reference == ReferenceCoding::Coded {
            bits += reference_bits;
        }
        let len = fingerprints.len() as f64;
        figures = (bits / len, symbol_count, by_bits / len, from_predecessor / len);
    }
    figures
}

fn main() -> std::io::Result<()> {
    let variants = [
        ("as it is taken", CURRENT),
        ("m at most 3", Variant { max_lower_bits: 3, ..CURRENT }),
        ("m at most 4", Variant { max_lower_bits: 4, ..CURRENT }),
        ("m at most 6", Variant { max_lower_bits: 6, ..CURRENT }),
        ("m at most 8", Variant { max_lower_bits: 8, ..CURRENT }),
        ("positions that shrink", Variant { positions: PositionCoding::Shrinking, ..CURRENT }),
        ("positions enumerated", Variant { positions: PositionCoding::Enumerated, ..CURRENT }),
        ("from the predecessor alone", Variant { window: 1, ..CURRENT }),
        ("from one of the last 4", Variant { window: 4, ..CURRENT }),
        ("from one of the last 8", Variant { window: 8, ..CURRENT }),
        ("from any of the span", Variant { window: 32, ..CURRENT }),
        ("which one: a field in every tail", Variant { reference: ReferenceCoding::Field, ..CURRENT }),
        ("which one: a code of its own", Variant { reference: ReferenceCoding::Coded, ..CURRENT }),
        ("xor for the raw ones", Variant { raw: RawCoding::Xor, ..CURRENT }),
        ("spans of 16", Variant { span: 16, ..CURRENT }),
        ("spans of 64", Variant { span: 64, ..CURRENT }),
        ("spans of 64, from any of the span", Variant { span: 64, window: 64, ..CURRENT }),
        ("spans of 128", Variant { span: 128, ..CURRENT }),
        ("spans of 128, from any of the span", Variant { span: 128, window: 128, ..CURRENT }),
    ];
    // `cargo bench` adds the flag `--bench`.
    for path in std::env::args().skip(1).filter(|argument| !argument.starts_with("--")) {
        let mut fingerprints: Vec<u64> = (std::fs::read(&path)?.chunks_exact(8))
            .map(|bytes| bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
            .collect();
        fingerprints.sort_unstable();
        fingerprints.dedup();
        println!("\n{path}, {} distinct\n", fingerprints.len());
        println!(
            "| variant | bits each | symbols that come | coded from another one | from the predecessor |"
        );
        println!("|---|---|---|---|---|");
        for (name, variant) in variants {
            let (bits, symbols, by_bits, from_predecessor) = measure(&fingerprints, variant);
            let percent = |share: f64| share * 100.0;
            println!(
                "| {name} | {bits:.2} | {symbols} | {:.0}% | {:.0}% |",
                percent(by_bits),
                percent(from_predecessor)
            );
        }
    }
    Ok(())
}
