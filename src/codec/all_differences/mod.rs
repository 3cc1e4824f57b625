//! `all-differences`: if a fingerprint differs from an earlier one in few bits, the positions of all these bits are
//! coded, not only the first.
//!
//! Blocks and spans are as in `first-difference`, with more symbols (`alphabet.rs`). The code word gives the layout
//! of a tail; word and tail together say how a fingerprint is derived from one of the last sixteen in its span.

mod alphabet;
mod decoder;

use std::iter;

pub(super) use self::alphabet::WINDOW;
use self::alphabet::{Coded, Meaning, cheapest, symbols};
use self::decoder::{AT_ONCE, Decoder, NO_WORDS, SpanWords, Steps, WORDS_PER_LOAD, Walk};
use super::block::{BlockCodec, CodecKind, Costs, Facts, Fit, Near, OTHER_CODE, Range, Spot};
use super::spans::{Directory, Spans};
use super::symbols::{Coding, Counts};
use crate::bits;
use crate::error::Damage;
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::huffman::Code;

/// The codec with the code of one table.
#[derive(Debug)]
pub(crate) struct AllDifferences {
    code: Code,
    decoder: Decoder,
    spans: Spans,
}

impl CodecKind for AllDifferences {
    const FACTS: Facts = Facts {
        number: 3,
        name: "all-differences",
        version: format::VERSION_WITH_ALL_DIFFERENCES,
        has_code: true,
        symbols,
        default_spans: Some([32, 32]),
        default_block_sizes: [4096, 4096],
        costs: Costs { bits: 1.6, probe: 100.0, decode: 4.5, miss: 1.6 },
    };

    fn new(code: &Code, span: u16, block_size: u32) -> Self {
        // The alphabet tells how wide the fingerprints are.
        let bits = (code.lengths().len() / symbols(1)) as u32;
        let spans = Spans::new(span, block_size);
        AllDifferences { code: code.clone(), decoder: Decoder::new(code, bits), spans }
    }
}

impl AllDifferences {
    /// Returns how the last of some fingerprints of a span is coded.
    fn coded<F: Fingerprint>(&self, span: &[F]) -> Coded {
        let (&next, before) = span.split_last().expect("a fingerprint");
        let price = |symbol, meaning: Meaning| {
            let word = self.code.length(symbol);
            (word > 0).then(|| word + meaning.tail_len())
        };
        // The table's code has a word for the gap between any two neighbours.
        let gap = || Coded { meaning: Meaning::gap(before[before.len() - 1], next), back: 0 };
        cheapest(before, next, price).unwrap_or_else(gap)
    }

    /// Returns how the fingerprints of a span are coded, except for the first.
    fn coded_all<F: Fingerprint>(&self, span: &[F]) -> Vec<Coded> {
        (1..span.len()).map(|i| self.coded(&span[i.saturating_sub(WINDOW)..=i])).collect()
    }

    /// Bits of the code words and the tails.
    fn data_bits<F: Fingerprint>(&self, coded: &[Coded]) -> usize {
        let bits =
            |&Coded { meaning, .. }: &Coded| self.code.length(meaning.symbol(F::BITS)) + meaning.tail_len();
        coded.iter().map(|coded| bits(coded) as usize).sum()
    }

    /// Writes the code words (forward) and the tails (backward) of a span, from given bit positions of a block.
    fn write_span<F: Fingerprint>(
        &self,
        span: &[F],
        coded: &[Coded],
        block: &mut [u8],
        (mut word, mut tail): (usize, usize),
    ) {
        for (i, &Coded { meaning, back }) in coded.iter().enumerate() {
            let symbol = meaning.symbol(F::BITS);
            self.code.write(block, word, symbol);
            word += self.code.length(symbol) as usize;
            let len = meaning.tail_len();
            tail -= len as usize;
            bits::write(block, tail, len, meaning.tail(span[i - back], span[i + 1], back));
        }
    }

    /// Reads how each fingerprint of a decoded block was coded; an error if no conforming writer would code it so.
    fn read_coded<F: Fingerprint>(
        &self,
        block: &[u8],
        fingerprints: &[F],
    ) -> Result<Vec<Vec<Coded>>, Damage> {
        let directory = Directory::<F>::read(&self.spans, block)?;
        let read_span = |(number, span): (usize, &[F])| {
            let (mut start, end) = directory.bounds(number)?;
            let mut steps = Steps::NONE;
            let mut walk = Walk::new(block, end, span[0]);
            let mut all = Vec::with_capacity(span.len());
            for (i, &fingerprint) in span.iter().enumerate().skip(1) {
                let mut words = [0; AT_ONCE];
                self.decoder.read(block, start, &mut words.as_chunks_mut().0[0]);
                walk.read(&words, 1, &mut steps)?;
                let coded = steps.coded(words[0], 0);
                let other = i.checked_sub(1 + coded.back).map(|at| span[at]).ok_or(OTHER_CODE)?;
                let meaning = match coded.meaning {
                    Meaning::Gap { .. } => Some(Meaning::gap(other, fingerprint)),
                    Meaning::Near { .. } => Meaning::near(other, fingerprint, coded.back),
                };
                if meaning != Some(coded.meaning) {
                    return Err(OTHER_CODE);
                }
                start += self.code.length(coded.meaning.symbol(F::BITS)) as usize;
                all.push(coded);
            }
            Ok(all)
        };
        fingerprints.chunks(self.spans.span).enumerate().map(read_span).collect()
    }

    /// Decodes `N` spans of equal length, from span `first` on.
    #[inline(always)]
    fn decode_spans<F: Fingerprint, const N: usize>(
        &self,
        directory: &Directory<'_, F>,
        first: usize,
        words: &mut [SpanWords; N],
        values: [&mut [F]; N],
    ) -> Result<(), Damage> {
        let mut bounds = [(0, 0); N];
        for (i, bounds) in bounds.iter_mut().enumerate() {
            *bounds = directory.bounds(first + i)?;
        }
        let count = values[0].len() - 1;
        let mut starts = bounds.map(|(start, _)| start);
        for at in 0..count.div_ceil(WORDS_PER_LOAD) {
            for (start, words) in starts.iter_mut().zip(words.iter_mut()) {
                *start = self.decoder.read(directory.block, *start, &mut words.as_chunks_mut().0[at]);
            }
        }
        let mut steps = Steps::NONE;
        for (i, values) in values.into_iter().enumerate() {
            let (start, end) = bounds[i];
            values[0] = directory.restart(first + i);
            let mut walk = Walk::new(directory.block, end, values[0]);
            for (words, values) in words[i].as_chunks().0.iter().zip(values[1..].chunks_mut(AT_ONCE)) {
                walk.read(words, values.len(), &mut steps)?;
                // Mostly there are eight. Here the compiler knows that.
                if let Some(values) = values.first_chunk_mut::<AT_ONCE>() {
                    for (i, value) in values.iter_mut().enumerate() {
                        *value = walk.step(&steps, i);
                    }
                    continue;
                }
                for (i, value) in values.iter_mut().enumerate() {
                    *value = walk.step(&steps, i);
                }
            }
            if walk.tail < start || walk.tail > end {
                return Err(Damage::Mismatch { what: "the lengths of a span's code words and tails" });
            }
        }
        Ok(())
    }
}

impl<F: Fingerprint> BlockCodec<F> for AllDifferences {
    fn count(recent: &[F], next: F, counts: &mut Counts) {
        // The nearest fingerprints may be in another span, so the gap always gets a word.
        if let Some(&previous) = recent.last() {
            counts.ensure(Meaning::gap(previous, next).symbol(F::BITS));
        }
        let price = |symbol, meaning: Meaning| Some(counts.price(symbol) + 16 * meaning.tail_len());
        if let Some(coded) = cheapest(recent, next, price) {
            counts.add_priced(coded.meaning.symbol(F::BITS));
        }
    }

    fn fit(&self, fingerprints: &[F], bytes: usize) -> Fit {
        self.spans.fit(fingerprints, bytes, |span| self.data_bits::<F>(&[self.coded(span)]))
    }

    fn encode(&self, fingerprints: &[F], block: &mut [u8]) {
        let coded: Vec<_> = fingerprints.chunks(self.spans.span).map(|span| self.coded_all(span)).collect();
        let write = |i: usize, span: &[F], block: &mut [u8], bits| {
            self.write_span(span, &coded[i], block, bits);
        };
        self.spans.encode(fingerprints, block, |i, _| self.data_bits::<F>(&coded[i]), write);
    }

    fn check(&self, block: &[u8], fingerprints: &[F]) -> Result<(), Damage> {
        // A writer may choose any of the ways to code a fingerprint.
        let coded = self.read_coded(block, fingerprints)?;
        let write = |i: usize, span: &[F], block: &mut [u8], bits| {
            self.write_span(span, &coded[i], block, bits);
        };
        self.spans.check(block, fingerprints, |i, _| self.data_bits::<F>(&coded[i]), write)
    }

    fn codings(&self, block: &[u8], fingerprints: &[F]) -> Result<Vec<Option<Coding>>, Damage> {
        let coded = self.read_coded(block, fingerprints)?;
        let span =
            |span: Vec<Coded>| iter::once(None).chain(span.into_iter().map(|coded| Some(coded.into())));
        Ok(coded.into_iter().flat_map(span).collect())
    }

    #[inline(always)]
    fn decode(&self, block: &[u8], fingerprints: &mut Vec<F>) -> Result<(), Damage> {
        let directory = Directory::read(&self.spans, block)?;
        let before = fingerprints.len();
        fingerprints.resize(before + directory.header.count, F::ZERO);
        let span = self.spans.span;
        // Decodes the words of two spans side by side: while one waits for its look-up, the other continues.
        let mut words = [NO_WORDS; 2];
        let paired = directory.header.count / (2 * span) * 2;
        let (pairs, rest) = fingerprints[before..].split_at_mut(paired * span);
        for (i, values) in pairs.chunks_exact_mut(2 * span).enumerate() {
            let (first, second) = values.split_at_mut(span);
            self.decode_spans(&directory, 2 * i, &mut words, [first, second])?;
        }
        let [words, _] = &mut words;
        for (i, values) in rest.chunks_mut(span).enumerate() {
            self.decode_spans(&directory, paired + i, std::array::from_mut(words), [values])?;
        }
        Ok(())
    }

    const AIMS: bool = true;

    #[inline(always)]
    fn aim(&self, block: &[u8], low: F, last: F) -> Result<(), Damage> {
        Directory::read(&self.spans, block)?.prefetch(low, last);
        Ok(())
    }

    #[inline(always)]
    fn locate(&self, block: &[u8], range: Range<F>, last: F) -> Result<Option<Spot>, Damage> {
        Directory::read(&self.spans, block)?.locate(range.low, range.high, last)
    }

    #[inline(always)]
    fn visit_from(
        &self,
        block: &[u8],
        spot: u32,
        Range { low, high }: Range<F>,
        near: Near<F>,
        mut visitor: impl FnMut(usize, F),
    ) -> Result<(), Damage> {
        let directory = Directory::read(&self.spans, block)?;
        let mut steps = Steps::NONE;
        for span in spot as usize..directory.spans {
            let first = directory.restart(span);
            if first > high {
                break;
            }
            let at = span * self.spans.span;
            let count = (directory.header.count - at).min(self.spans.span);
            if first >= low && near.holds(first) {
                visitor(at, first);
            }
            let (mut word, end) = directory.bounds(span)?;
            let mut walk = Walk::new(block, end, first);
            for start in (1..count).step_by(AT_ONCE) {
                let here = AT_ONCE.min(count - start);
                let mut words = [0; AT_ONCE];
                for some in words.as_chunks_mut().0 {
                    word = self.decoder.read(block, word, some);
                }
                walk.read(&words, here, &mut steps)?;
                for i in 0..here {
                    let value = walk.step(&steps, i);
                    if value > high {
                        return Ok(());
                    }
                    if near.holds(value) && value >= low {
                        visitor(at + start + i, value);
                    }
                }
            }
        }
        Ok(())
    }
}
