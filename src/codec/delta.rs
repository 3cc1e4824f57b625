//! The delta codecs `first-difference` and `gap`. They share all code except the step from one fingerprint to the
//! next.
//!
//! A fingerprint is coded by a code word and a *tail* ([`DeltaCodec`]). The code words of a span (a sequence of
//! fingerprints that is decoded from its start) run forward from the span's start, the tails backward from its
//! end. The code words of a span are decoded first, several with each table look-up. Then the positions of all
//! tails are known, so reading one tail does not depend on another.

use std::iter;

use super::block_codec::{
    Block, BlockCodec, BlockFit, CodecCosts, CodecKind, CodecParameters, CodecSpec, FingerprintRange,
    HammingBall, ScanStart,
};
use super::spans::{SpanDirectory, SpanLayout};
use super::symbols::{Coding, SymbolHistogram};
use crate::bits;
use crate::error::Damage;
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::huffman::{EMPTY_SYMBOLS, HuffmanCode, HuffmanDecoder, SymbolBuffer};
use crate::simd::{TailGroup8, TailGroup8Matches, has_fast_group8};

/// A delta codec with the Huffman code of one table. If `ADDS` is true, it is `gap`; otherwise it is
/// `first-difference`, the codec of the paper by Manku, Jain and Das Sarma.
///
/// - In `first-difference`, the *coded bit* is the first bit that differs from the predecessor. The *tail*
///   consists of the bits of the fingerprint after the coded bit.
/// - In `gap`, the coded bit is the top bit of the gap: the numeric difference to the predecessor. The tail
///   consists of the bits of the gap after the coded bit.
///
/// The Huffman-coded symbol is the length of the tail in bits.
#[derive(Debug)]
pub(crate) struct DeltaCodec<const ADDS: bool> {
    code: HuffmanCode,
    decoder: HuffmanDecoder,
    spans: SpanLayout,
    /// Number of refills of the bit buffer that almost always suffice to decode all code words of a span.
    refills: usize,
}

/// Codes the position of the first bit that differs from the predecessor, then the bits after it.
pub(crate) type FirstDifference = DeltaCodec<false>;
/// Codes the position of the top bit of the numeric difference to the predecessor, then the bits after it.
pub(crate) type Gap = DeltaCodec<true>;

/// Number of spans (sequences of fingerprints) whose code words are decoded at the same time.
const INTERLEAVED_SPANS: usize = 2;

impl<const ADDS: bool> CodecKind for DeltaCodec<ADDS> {
    const SPEC: CodecSpec = CodecSpec {
        number: if ADDS { 1 } else { 0 },
        name: if ADDS { "gap" } else { "first-difference" },
        has_code: true,
        has_lines: false,
        alphabet_size: |bits| bits as usize,
        default_spans: Some(format::DEFAULT_SPANS),
        default_block_sizes: [4096, 4096],
        costs: CodecCosts { bits: if ADDS { 1.54 } else { 3.42 }, probe: 100.0, decode: 2.6, miss: 1.6 },
    };

    /// Creates the codec of one table. `span`, the number of fingerprints from one restart point to the next, is 1
    /// to [`format::MAX_SPAN`].
    fn new(CodecParameters { code, span, block_size, .. }: CodecParameters<'_>) -> Self {
        let (decoder, spans) = (HuffmanDecoder::new(code), SpanLayout::new(span, block_size));
        let refills = decoder.expected_refills(spans.span_len - 1);
        DeltaCodec { code: code.clone(), decoder, spans, refills }
    }
}

impl<const ADDS: bool> DeltaCodec<ADDS> {
    /// Returns the Huffman symbol that codes `next` relative to its predecessor, `previous`: the number of bits
    /// after the first bit that differs. If `ADDS` is true: the number of bits after the top bit of `next - previous`.
    #[inline]
    pub(super) fn symbol<F: Fingerprint>(previous: F, next: F) -> u32 {
        let difference = if ADDS { next.wrapping_sub(previous) } else { previous ^ next };
        F::BITS - 1 - difference.leading_zeros()
    }

    /// Decodes all fingerprints of a span into `values`. The code words of the span have been decoded before:
    /// `tails` has the length of each tail in bits. The span lies between bits `start` and `end` of the block.
    #[inline(always)]
    fn read_tails<F: Fingerprint>(
        &self,
        directory: &SpanDirectory<F>,
        span: usize,
        (start, end): (usize, usize),
        tails: &SymbolBuffer,
        values: &mut [F],
    ) -> Result<(), Damage> {
        let first = directory.restart(span);
        let mut reader = TailReader::<F, ADDS> { block: directory.block, position: end, value: first };
        values[0] = first;
        let tails = &tails[..values.len() - 1];
        if tails.iter().all(|&len| u32::from(len) <= bits::MAX_SHORT_BITS) {
            for (value, &len) in values[1..].iter_mut().zip(tails) {
                *value = reader.next_short(len);
            }
        } else {
            for (value, &len) in values[1..].iter_mut().zip(tails) {
                *value = reader.next(len);
            }
        }
        if reader.position < start || reader.position > end {
            return Err(Damage::Mismatch { what: "the lengths of a span's code words and tails" });
        }
        Ok(())
    }

    /// Returns the size in bits of a span's coded fingerprints: code words and tails. The first fingerprint of the
    /// span is not included.
    fn data_bits<F: Fingerprint>(&self, span: &[F]) -> usize {
        let symbols = span.windows(2).map(|pair| Self::symbol(pair[0], pair[1]));
        symbols.map(|len| (self.code.length(len) + len) as usize).sum()
    }

    /// Writes the coded fingerprints of a span: the code words forward from bit `word` of a block, and the tails
    /// (the bits that the code words leave open) backward from bit `tail`.
    fn write_span<F: Fingerprint>(&self, span: &[F], block: &mut [u8], (mut word, mut tail): (usize, usize)) {
        for pair in span.windows(2) {
            let len = Self::symbol(pair[0], pair[1]);
            self.code.write(block, word, len);
            word += self.code.length(len) as usize;
            tail -= len as usize;
            let field = if ADDS { pair[1].wrapping_sub(pair[0]) } else { pair[1] };
            bits::write(block, tail, len, field & F::suffix_mask(len));
        }
    }
}

/// Decodes the fingerprints of a span whose code words have been decoded. Reads the tails (the bits that the code
/// words leave open) from the end of the span backward.
struct TailReader<'a, F, const ADDS: bool> {
    block: &'a [u8],
    position: usize,
    value: F,
}

impl<F: Fingerprint, const ADDS: bool> TailReader<'_, F, ADDS> {
    /// Decodes the next fingerprint and returns it. The low `len` bits of `field` are its tail: the bits that its
    /// code word leaves open.
    #[inline(always)]
    fn apply(&mut self, len: u32, field: F) -> F {
        // Only the last operations of each variant wait for the predecessor. Without `ADDS`, the coded bit of the
        // predecessor is 0.
        let kept = F::MAX << len;
        let tail = field & !kept | F::ONE << len;
        self.value = if ADDS { self.value.wrapping_add(tail) } else { self.value & kept | tail };
        self.value
    }

    /// Decodes the next fingerprint. Its tail has `len` bits, at most [`bits::MAX_SHORT_BITS`].
    #[inline(always)]
    fn next_short(&mut self, len: u8) -> F {
        self.position = self.position.wrapping_sub(usize::from(len));
        let field = F::from_u64(bits::load(self.block, self.position / 8) >> (self.position % 8));
        self.apply(u32::from(len) % F::BITS, field)
    }

    /// Decodes the next fingerprint. Its tail has `len` bits; any length is supported.
    #[inline(always)]
    fn next(&mut self, len: u8) -> F {
        if u32::from(len) <= bits::MAX_SHORT_BITS {
            return self.next_short(len);
        }
        let len = u32::from(len) % F::BITS;
        self.position = self.position.wrapping_sub(len as usize);
        self.apply(len, bits::read_long(self.block, self.position, len))
    }

    /// Decodes the next fingerprints, at most eight, and compares them with `range` and `ball`. `lengths` has the
    /// length in bits of each of their tails, followed by seven bytes that are ignored. Returns `None` if a tail
    /// is longer than [`TailGroup8::MAX_TAIL_BITS`], or if the block has too few bytes.
    #[inline(always)]
    fn decode_group8(
        &mut self,
        lengths: &[u8],
        range: FingerprintRange<F>,
        ball: HammingBall<F>,
    ) -> Option<TailGroup8Matches> {
        const EACH: u64 = 0x0101_0101_0101_0101;
        const PAIRS: u64 = 0x00ff_00ff_00ff_00ff;
        let count = lengths.len() as u32 - 7;
        let lengths = u64::from_le_bytes(*lengths.first_chunk()?) & u64::MAX >> (64 - 8 * count);
        // No symbol is above 127, so no sum carries into the next byte.
        if (lengths + u64::from(127 - TailGroup8::MAX_TAIL_BITS) * EACH) & (128 * EACH) != 0 {
            return None;
        }
        let pairs = (lengths & PAIRS) + (lengths >> 8 & PAIRS);
        let all = pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48;
        let start = self.position.checked_sub(all as usize)?;
        // Load the 64 bytes before the current position: later bytes may not have been prefetched.
        let first_byte = self.position.div_ceil(8).max(64) - 64;
        let tails = TailGroup8 {
            adds: ADDS,
            lengths,
            count,
            bytes: self.block.get(first_byte..)?.first_chunk()?,
            end: (self.position - first_byte * 8) as u32,
            previous: self.value.low_u64(),
            range: (range.low.low_u64(), range.high.low_u64()),
            query: ball.query.low_u64(),
            distance: ball.distance,
        };
        let matches = tails.find_matches();
        (self.position, self.value) = (start, F::from_u64(matches.values[7]));
        Some(matches)
    }
}

impl<F: Fingerprint, const ADDS: bool> BlockCodec<F> for DeltaCodec<ADDS> {
    #[inline]
    fn count(recent: &[F], next: F, histogram: &mut SymbolHistogram) {
        if let Some(&previous) = recent.last() {
            histogram.add(Self::symbol(previous, next));
        }
    }

    fn fit(&self, fingerprints: &[F], bytes: usize) -> BlockFit {
        self.spans.fit(fingerprints, bytes, |span| self.data_bits(&span[span.len() - 2..]))
    }

    fn encode(&self, fingerprints: &[F], block: &mut [u8]) {
        let write = |_, span: &[F], block: &mut [u8], bits| self.write_span(span, block, bits);
        self.spans.encode(fingerprints, block, |_, span| self.data_bits(span), write);
    }

    fn check(&self, Block { bytes: block, .. }: Block<'_>, fingerprints: &[F]) -> Result<(), Damage> {
        let write = |_, span: &[F], block: &mut [u8], bits| self.write_span(span, block, bits);
        self.spans.check(block, fingerprints, |_, span| self.data_bits(span), write)
    }

    fn codings(&self, _: Block<'_>, fingerprints: &[F]) -> Result<Vec<Option<Coding>>, Damage> {
        // A fingerprint has only one coding.
        let coding =
            |pair: &[F]| Some(Coding { h: Self::symbol(pair[0], pair[1]), differing: None, back: 0 });
        let span = |span| iter::once(None).chain(<[F]>::windows(span, 2).map(coding));
        Ok(fingerprints.chunks(self.spans.span_len).flat_map(span).collect())
    }

    #[inline(always)]
    fn decode(&self, Block { bytes: block, .. }: Block<'_>, fingerprints: &mut Vec<F>) -> Result<(), Damage> {
        let directory = SpanDirectory::read(&self.spans, block)?;
        let before = fingerprints.len();
        fingerprints.resize(before + directory.header.count, F::ZERO);
        let values = &mut fingerprints[before..];
        let mut tails = [EMPTY_SYMBOLS; INTERLEAVED_SPANS];
        let groups = directory.header.count / (INTERLEAVED_SPANS * self.spans.span_len);
        let (grouped, rest) = values.split_at_mut(groups * INTERLEAVED_SPANS * self.spans.span_len);
        for (group, values) in grouped.chunks_exact_mut(INTERLEAVED_SPANS * self.spans.span_len).enumerate() {
            let mut bounds = [(0, 0); INTERLEAVED_SPANS];
            for (i, bounds) in bounds.iter_mut().enumerate() {
                *bounds = directory.span_bounds(INTERLEAVED_SPANS * group + i)?;
            }
            let starts = bounds.map(|(start, _)| start);
            self.decoder.decode_interleaved(
                block,
                starts,
                self.spans.span_len - 1,
                self.refills,
                &mut tails,
            )?;
            for (i, values) in values.chunks_exact_mut(self.spans.span_len).enumerate() {
                self.read_tails(&directory, INTERLEAVED_SPANS * group + i, bounds[i], &tails[i], values)?;
            }
        }
        for (i, values) in rest.chunks_mut(self.spans.span_len).enumerate() {
            let span = INTERLEAVED_SPANS * groups + i;
            let bounds = directory.span_bounds(span)?;
            self.decoder.decode(block, bounds.0, values.len() - 1, &mut tails[0])?;
            self.read_tails(&directory, span, bounds, &tails[0], values)?;
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
        range: FingerprintRange<F>,
        ball: HammingBall<F>,
        mut visitor: impl FnMut(usize, F),
    ) -> Result<(), Damage> {
        let directory = SpanDirectory::read(&self.spans, block)?;
        let FingerprintRange { low, high } = range;
        let use_group8 = F::BITS == 64 && has_fast_group8();
        let mut tails = EMPTY_SYMBOLS;
        for span in start_index as usize..directory.spans {
            let first = directory.restart(span);
            if first > high {
                break;
            }
            let at = span * self.spans.span_len;
            let count = (directory.header.count - at).min(self.spans.span_len);
            let (start, end) = directory.span_bounds(span)?;
            if ball.contains(first) && first >= low {
                visitor(at, first);
            }
            let mut stream = self.decoder.stream(start);
            let mut reader = TailReader::<F, ADDS> { block, position: end, value: first };
            let mut i = 1;
            while i < count {
                let wanted = if use_group8 { (i + 7).min(count - 1) } else { i };
                let decoded =
                    stream.decode_at_least(&self.decoder, block, wanted, &mut tails)?.min(count - 1);
                if use_group8
                    && let Some(matches) = reader.decode_group8(&tails[i - 1..wanted + 7], range, ball)
                {
                    let mut near = matches.near;
                    while near != 0 {
                        let place = near.trailing_zeros() as usize;
                        visitor(at + i + place, F::from_u64(matches.values[place]));
                        near &= near - 1;
                    }
                    if matches.above {
                        return Ok(());
                    }
                    i = wanted + 1;
                    continue;
                }
                for &len in &tails[i - 1..decoded] {
                    let value = reader.next(len);
                    if value > high {
                        return Ok(());
                    }
                    if ball.contains(value) && value >= low {
                        visitor(at + i, value);
                    }
                    i += 1;
                }
            }
        }
        Ok(())
    }
}
