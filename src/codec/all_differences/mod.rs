//! The codec `all-differences`. If a fingerprint differs from an earlier one in few bits, this codec stores the
//! positions of all these bits. Other codecs store only the position of the first one, and then all bits after it.
//!
//! Blocks and spans have the layout of `first-difference`, but there are more symbols (`alphabet.rs`). Each
//! fingerprint, except for the first of a span, has a code word and a *tail*. The code word determines the fields
//! of the tail. Code word and tail together give the difference between the fingerprint and one of the sixteen
//! fingerprints before it in its span.

mod alphabet;
mod decoder;

use std::iter;

pub(super) use self::alphabet::WINDOW;
use self::alphabet::{DeltaCoding, DeltaSymbol, alphabet_size, cheapest_coding};
use self::decoder::{
    CodeWordBuffer, EMPTY_WORDS, GROUP_LEN, GroupDeltas, SpanReader, WORDS_PER_LOAD, WordDecoder,
};
use super::block_codec::{
    Block, BlockCodec, BlockFit, CodecCosts, CodecKind, CodecParameters, CodecSpec, FingerprintRange,
    HammingBall, NONCONFORMING_BLOCK, ScanStart,
};
use super::spans::{SpanDirectory, SpanLayout};
use super::symbols::{Coding, SymbolHistogram};
use crate::bits;
use crate::error::Damage;
use crate::fingerprint::Fingerprint;
use crate::huffman::HuffmanCode;

/// The codec `all-differences`, with the Huffman code of one table.
#[derive(Debug)]
pub(crate) struct AllDifferences {
    code: HuffmanCode,
    decoder: WordDecoder,
    spans: SpanLayout,
}

impl CodecKind for AllDifferences {
    const SPEC: CodecSpec = CodecSpec {
        number: 3,
        name: "all-differences",
        has_code: true,
        has_lines: false,
        alphabet_size,
        default_spans: Some([32, 32]),
        default_block_sizes: [4096, 4096],
        costs: CodecCosts { bits: 1.6, probe: 100.0, decode: 4.5, miss: 1.6 },
    };

    fn new(CodecParameters { code, span, block_size, .. }: CodecParameters<'_>) -> Self {
        // The size of the alphabet implies the width of the fingerprints.
        let bits = (code.lengths().len() / alphabet_size(1)) as u32;
        let spans = SpanLayout::new(span, block_size);
        AllDifferences { code: code.clone(), decoder: WordDecoder::new(code, bits), spans }
    }
}

impl AllDifferences {
    /// Returns the coding with the fewest bits for the last fingerprint of `span`. `span` also has the fingerprints
    /// before it: all since the start of the span, or only the last [`WINDOW`].
    fn choose_coding<F: Fingerprint>(&self, span: &[F]) -> DeltaCoding {
        let (&next, before) = span.split_last().expect("a fingerprint");
        let price = |number, symbol: DeltaSymbol| {
            let word = self.code.length(number);
            (word > 0).then(|| word + symbol.tail_len())
        };
        // The table's Huffman code has a word for the gap between any two neighbours.
        let gap = || DeltaCoding { symbol: DeltaSymbol::from_gap(before[before.len() - 1], next), back: 0 };
        cheapest_coding(before, next, price).unwrap_or_else(gap)
    }

    /// Returns the coding of each fingerprint of a span, except for the first, which has none.
    fn choose_codings<F: Fingerprint>(&self, span: &[F]) -> Vec<DeltaCoding> {
        (1..span.len()).map(|i| self.choose_coding(&span[i.saturating_sub(WINDOW)..=i])).collect()
    }

    /// Returns the total size in bits of a span's code words and tails. `coded` has the codings of its
    /// fingerprints.
    fn data_bits<F: Fingerprint>(&self, coded: &[DeltaCoding]) -> usize {
        let bits = |&DeltaCoding { symbol, .. }: &DeltaCoding| {
            self.code.length(symbol.number(F::BITS)) + symbol.tail_len()
        };
        coded.iter().map(|coded| bits(coded) as usize).sum()
    }

    /// Writes the coded fingerprints of a span: the code words forward from bit `word` of a block, and the tails
    /// (the bits that the code words leave open) backward from bit `tail`.
    fn write_span<F: Fingerprint>(
        &self,
        span: &[F],
        coded: &[DeltaCoding],
        block: &mut [u8],
        (mut word, mut tail): (usize, usize),
    ) {
        for (i, &DeltaCoding { symbol, back }) in coded.iter().enumerate() {
            let number = symbol.number(F::BITS);
            self.code.write(block, word, number);
            word += self.code.length(number) as usize;
            let len = symbol.tail_len();
            tail -= len as usize;
            bits::write(block, tail, len, symbol.tail(span[i - back], span[i + 1], back));
        }
    }

    /// Returns the coding of each fingerprint of a block, in a list for each span. The first fingerprint of a span
    /// has no coding. `fingerprints` were decoded from the block. Returns an error if the symbol of a fingerprint does
    /// not fit the fingerprint: no conforming writer writes such a block.
    fn read_codings<F: Fingerprint>(
        &self,
        block: &[u8],
        fingerprints: &[F],
    ) -> Result<Vec<Vec<DeltaCoding>>, Damage> {
        let directory = SpanDirectory::<F>::read(&self.spans, block)?;
        let read_span = |(number, span): (usize, &[F])| {
            let (mut start, end) = directory.span_bounds(number)?;
            let mut deltas = GroupDeltas::NONE;
            let mut reader = SpanReader::new(block, end, span[0]);
            let mut all = Vec::with_capacity(span.len());
            for (i, &fingerprint) in span.iter().enumerate().skip(1) {
                let mut words = [0; GROUP_LEN];
                self.decoder.read_words(block, start, &mut words.as_chunks_mut().0[0]);
                reader.read_tails(&words, 1, &mut deltas)?;
                let coded = deltas.coding(words[0], 0);
                let other = i.checked_sub(1 + coded.back).map(|at| span[at]).ok_or(NONCONFORMING_BLOCK)?;
                let symbol = match coded.symbol {
                    DeltaSymbol::Gap { .. } => Some(DeltaSymbol::from_gap(other, fingerprint)),
                    DeltaSymbol::Near { .. } => DeltaSymbol::from_near(other, fingerprint, coded.back),
                };
                if symbol != Some(coded.symbol) {
                    return Err(NONCONFORMING_BLOCK);
                }
                start += self.code.length(coded.symbol.number(F::BITS)) as usize;
                all.push(coded);
            }
            Ok(all)
        };
        fingerprints.chunks(self.spans.span_len).enumerate().map(read_span).collect()
    }

    /// Decodes the fingerprints of `N` consecutive spans into `values`, all spans at once. The spans must have the
    /// same length. `first` is the index of the first span in the block.
    #[inline(always)]
    fn decode_spans<F: Fingerprint, const N: usize>(
        &self,
        directory: &SpanDirectory<'_, F>,
        first: usize,
        words: &mut [CodeWordBuffer; N],
        values: [&mut [F]; N],
    ) -> Result<(), Damage> {
        let mut bounds = [(0, 0); N];
        for (i, bounds) in bounds.iter_mut().enumerate() {
            *bounds = directory.span_bounds(first + i)?;
        }
        let count = values[0].len() - 1;
        let mut starts = bounds.map(|(start, _)| start);
        for at in 0..count.div_ceil(WORDS_PER_LOAD) {
            for (start, words) in starts.iter_mut().zip(words.iter_mut()) {
                *start = self.decoder.read_words(directory.block, *start, &mut words.as_chunks_mut().0[at]);
            }
        }
        let mut deltas = GroupDeltas::NONE;
        for (i, values) in values.into_iter().enumerate() {
            let (start, end) = bounds[i];
            values[0] = directory.restart(first + i);
            let mut reader = SpanReader::new(directory.block, end, values[0]);
            for (words, values) in words[i].as_chunks().0.iter().zip(values[1..].chunks_mut(GROUP_LEN)) {
                reader.read_tails(words, values.len(), &mut deltas)?;
                // Most groups have eight fingerprints. Here the compiler knows the number.
                if let Some(values) = values.first_chunk_mut::<GROUP_LEN>() {
                    for (i, value) in values.iter_mut().enumerate() {
                        *value = reader.next_fingerprint(&deltas, i);
                    }
                    continue;
                }
                for (i, value) in values.iter_mut().enumerate() {
                    *value = reader.next_fingerprint(&deltas, i);
                }
            }
            if reader.tail < start || reader.tail > end {
                return Err(Damage::Mismatch { what: "the lengths of a span's code words and tails" });
            }
        }
        Ok(())
    }
}

impl<F: Fingerprint> BlockCodec<F> for AllDifferences {
    fn count(recent: &[F], next: F, histogram: &mut SymbolHistogram) {
        // The nearest fingerprints may be in another span. Then the gap is needed, so it always gets a code word.
        if let Some(&previous) = recent.last() {
            histogram.ensure_word(DeltaSymbol::from_gap(previous, next).number(F::BITS));
        }
        let price = |number, symbol: DeltaSymbol| Some(histogram.price(number) + 16 * symbol.tail_len());
        if let Some(coded) = cheapest_coding(recent, next, price) {
            histogram.add_and_reprice(coded.symbol.number(F::BITS));
        }
    }

    fn fit(&self, fingerprints: &[F], bytes: usize) -> BlockFit {
        self.spans.fit(fingerprints, bytes, |span| self.data_bits::<F>(&[self.choose_coding(span)]))
    }

    fn encode(&self, fingerprints: &[F], block: &mut [u8]) {
        let coded: Vec<_> =
            fingerprints.chunks(self.spans.span_len).map(|span| self.choose_codings(span)).collect();
        let write = |i: usize, span: &[F], block: &mut [u8], bits| {
            self.write_span(span, &coded[i], block, bits);
        };
        self.spans.encode(fingerprints, block, |i, _| self.data_bits::<F>(&coded[i]), write);
    }

    fn check(&self, Block { bytes: block, .. }: Block<'_>, fingerprints: &[F]) -> Result<(), Damage> {
        // A writer may choose any valid coding of a fingerprint.
        let coded = self.read_codings(block, fingerprints)?;
        let write = |i: usize, span: &[F], block: &mut [u8], bits| {
            self.write_span(span, &coded[i], block, bits);
        };
        self.spans.check(block, fingerprints, |i, _| self.data_bits::<F>(&coded[i]), write)
    }

    fn codings(
        &self,
        Block { bytes: block, .. }: Block<'_>,
        fingerprints: &[F],
    ) -> Result<Vec<Option<Coding>>, Damage> {
        let coded = self.read_codings(block, fingerprints)?;
        let span =
            |span: Vec<DeltaCoding>| iter::once(None).chain(span.into_iter().map(|coded| Some(coded.into())));
        Ok(coded.into_iter().flat_map(span).collect())
    }

    #[inline(always)]
    fn decode(&self, Block { bytes: block, .. }: Block<'_>, fingerprints: &mut Vec<F>) -> Result<(), Damage> {
        let directory = SpanDirectory::read(&self.spans, block)?;
        let before = fingerprints.len();
        fingerprints.resize(before + directory.header.count, F::ZERO);
        let span = self.spans.span_len;
        // The code words of two spans are decoded together: while one span waits for its look-up, the other continues.
        let mut words = [EMPTY_WORDS; 2];
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

    const PREFETCHES_FOR_LOCATE: bool = true;

    #[inline(always)]
    fn prefetch_for_locate(
        &self,
        Block { bytes: block, .. }: Block<'_>,
        low: F,
        last: F,
    ) -> Result<(), Damage> {
        SpanDirectory::read(&self.spans, block)?.prefetch(low, last);
        Ok(())
    }

    #[inline(always)]
    fn locate(
        &self,
        Block { bytes: block, .. }: Block<'_>,
        range: FingerprintRange<F>,
        last: F,
    ) -> Result<Option<ScanStart>, Damage> {
        SpanDirectory::read(&self.spans, block)?.locate(range.low, range.high, last)
    }

    #[inline(always)]
    fn visit_from(
        &self,
        Block { bytes: block, .. }: Block<'_>,
        start_index: u32,
        FingerprintRange { low, high }: FingerprintRange<F>,
        ball: HammingBall<F>,
        mut visitor: impl FnMut(usize, F),
    ) -> Result<(), Damage> {
        let directory = SpanDirectory::read(&self.spans, block)?;
        let mut deltas = GroupDeltas::NONE;
        for span in start_index as usize..directory.spans {
            let first = directory.restart(span);
            if first > high {
                break;
            }
            let at = span * self.spans.span_len;
            let count = (directory.header.count - at).min(self.spans.span_len);
            if first >= low && ball.contains(first) {
                visitor(at, first);
            }
            let (mut word, end) = directory.span_bounds(span)?;
            let mut reader = SpanReader::new(block, end, first);
            for start in (1..count).step_by(GROUP_LEN) {
                let here = GROUP_LEN.min(count - start);
                let mut words = [0; GROUP_LEN];
                for some in words.as_chunks_mut().0 {
                    word = self.decoder.read_words(block, word, some);
                }
                reader.read_tails(&words, here, &mut deltas)?;
                for i in 0..here {
                    let value = reader.next_fingerprint(&deltas, i);
                    if value > high {
                        return Ok(());
                    }
                    if ball.contains(value) && value >= low {
                        visitor(at + start + i, value);
                    }
                }
            }
        }
        Ok(())
    }
}
