//! What the choices in `all-differences` cost: entropies of its symbols plus the bits of its tails, for other alphabets than
//! the one that was taken; prints Markdown.
//!
//! `cargo bench --bench differences -- FILE.u64 ...` takes raw little-endian fingerprints. Restart points are counted at
//! 72 bits, blocks' headers and the index not.

use std::collections::HashMap;

/// How positions below h stand in a tail.
#[derive(Clone, Copy, PartialEq)]
enum PositionCoding {
    /// Fields of ceil(log2 h) bits.
    Fields,
    /// Fields that shrink: each is below the one before.
    Shrinking,
    /// One number of log2 C(h, m) bits, not rounded.
    Enumerated,
}

/// How it is told which fingerprint another is coded from.
#[derive(Clone, Copy, PartialEq)]
enum ReferenceCoding {
    /// A field in every tail.
    Field,
    /// A code of its own.
    Coded,
    /// The symbol says whether it is the predecessor; a field where it is not.
    OtherField,
}

/// What does without another fingerprint.
#[derive(Clone, Copy, PartialEq)]
enum RawCoding {
    Xor,
    Gap,
}

#[derive(Clone, Copy)]
struct AllDifferencesVariant {
    span: usize,
    /// Fingerprints before one that it may be coded from.
    window: usize,
    max_lower_bits: u32,
    positions: PositionCoding,
    reference: ReferenceCoding,
    raw: RawCoding,
}

const CURRENT: AllDifferencesVariant = AllDifferencesVariant {
    span: 32,
    window: 16,
    max_lower_bits: 5,
    positions: PositionCoding::Fields,
    reference: ReferenceCoding::OtherField,
    raw: RawCoding::Gap,
};
const RESTART_BITS: f64 = 72.0;
/// Rounds of choosing the cheapest by the entropies of the round before.
const ROUNDS: usize = 4;
/// What a symbol is taken to cost before any was counted, and one that did not come.
const UNCOUNTED_SYMBOL_BITS: f64 = 7.0;
const UNSEEN_SYMBOL_BITS: f64 = 14.0;

fn ceil_log2(number: u64) -> f64 {
    f64::from(u64::BITS - number.saturating_sub(1).leading_zeros())
}

fn position_bits(positions: PositionCoding, h: u32, below: u64) -> f64 {
    let m = u64::from(below.count_ones());
    match positions {
        PositionCoding::Fields => m as f64 * ceil_log2(u64::from(h)),
        PositionCoding::Enumerated => (0..m).map(|i| ((u64::from(h) - i) as f64 / (i + 1) as f64).log2()).sum(),
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

/// Whether a symbol is raw (`None`) or how many bits differ; h; whether it is of an earlier one than the predecessor.
type Symbol = (Option<u32>, u32, bool);

#[derive(Default)]
struct EntropyModel<T> {
    counts: HashMap<T, u64>,
    bits: HashMap<T, f64>,
}

impl<T: std::hash::Hash + Eq + Copy> EntropyModel<T> {
    fn symbol_bits(&self, symbol: T) -> f64 {
        if self.bits.is_empty() { UNCOUNTED_SYMBOL_BITS } else { self.bits.get(&symbol).copied().unwrap_or(UNSEEN_SYMBOL_BITS) }
    }

    fn count(&mut self, symbol: T) {
        *self.counts.entry(symbol).or_default() += 1;
    }

    /// The entropy of all that was counted, in bits; what was counted decides from then on.
    fn finish_round(&mut self) -> f64 {
        let all = self.counts.values().sum::<u64>() as f64;
        self.bits =
            self.counts.iter().map(|(&symbol, &count)| (symbol, (all / count as f64).log2())).collect();
        self.counts.drain().map(|(symbol, count)| count as f64 * self.bits[&symbol]).sum()
    }
}

/// Bits of each fingerprint, how many symbols come, and the share that is coded from another one, from the predecessor.
fn measure(fingerprints: &[u64], variant: AllDifferencesVariant) -> (f64, usize, f64, f64) {
    let AllDifferencesVariant { span, window, max_lower_bits: most, positions, reference, raw } = variant;
    let back_bits = ceil_log2(window as u64);
    let (mut symbols, mut references) = (EntropyModel::<Symbol>::default(), EntropyModel::<usize>::default());
    let mut figures = (0.0, 0, 0.0, 0.0);
    for _ in 0..ROUNDS {
        let (mut bits, mut near, mut of_predecessor) = (0.0, 0.0, 0.0);
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
            let mut best = (symbols.symbol_bits(symbol) + f64::from(h), symbol, 0, f64::from(h));
            for back in 0..window.min(in_span) {
                let difference = next ^ fingerprints[i - 1 - back];
                let (h, m) = (63 - difference.leading_zeros(), difference.count_ones() - 1);
                if m > most {
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
                near += 1.0;
                of_predecessor += f64::from(u8::from(best.2 == 0));
            }
        }
        let kinds = symbols.counts.len();
        bits += symbols.finish_round();
        let of_references = references.finish_round();
        if reference == ReferenceCoding::Coded {
            bits += of_references;
        }
        let each = fingerprints.len() as f64;
        figures = (bits / each, kinds, near / each, of_predecessor / each);
    }
    figures
}

fn main() -> std::io::Result<()> {
    let variants = [
        ("as it is taken", CURRENT),
        ("m at most 3", AllDifferencesVariant { max_lower_bits: 3, ..CURRENT }),
        ("m at most 4", AllDifferencesVariant { max_lower_bits: 4, ..CURRENT }),
        ("m at most 6", AllDifferencesVariant { max_lower_bits: 6, ..CURRENT }),
        ("m at most 8", AllDifferencesVariant { max_lower_bits: 8, ..CURRENT }),
        ("positions that shrink", AllDifferencesVariant { positions: PositionCoding::Shrinking, ..CURRENT }),
        ("positions enumerated", AllDifferencesVariant { positions: PositionCoding::Enumerated, ..CURRENT }),
        ("from the predecessor alone", AllDifferencesVariant { window: 1, ..CURRENT }),
        ("from one of the last 4", AllDifferencesVariant { window: 4, ..CURRENT }),
        ("from one of the last 8", AllDifferencesVariant { window: 8, ..CURRENT }),
        ("from any of the span", AllDifferencesVariant { window: 32, ..CURRENT }),
        ("which one: a field in every tail", AllDifferencesVariant { reference: ReferenceCoding::Field, ..CURRENT }),
        ("which one: a code of its own", AllDifferencesVariant { reference: ReferenceCoding::Coded, ..CURRENT }),
        ("xor for the raw ones", AllDifferencesVariant { raw: RawCoding::Xor, ..CURRENT }),
        ("spans of 16", AllDifferencesVariant { span: 16, ..CURRENT }),
        ("spans of 64", AllDifferencesVariant { span: 64, ..CURRENT }),
        ("spans of 64, from any of the span", AllDifferencesVariant { span: 64, window: 64, ..CURRENT }),
        ("spans of 128", AllDifferencesVariant { span: 128, ..CURRENT }),
        ("spans of 128, from any of the span", AllDifferencesVariant { span: 128, window: 128, ..CURRENT }),
    ];
    // `cargo bench` adds a flag of its own.
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
            let (bits, symbols, near, of_predecessor) = measure(&fingerprints, variant);
            let percent = |share: f64| share * 100.0;
            println!(
                "| {name} | {bits:.2} | {symbols} | {:.0}% | {:.0}% |",
                percent(near),
                percent(of_predecessor)
            );
        }
    }
    Ok(())
}
