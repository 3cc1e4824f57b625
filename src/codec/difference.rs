//! The two Huffman codecs, `first-difference` and `gap`. They share all code but the step between two fingerprints.
//!
//! In a span ([`Spans`]) the code words run forward from its start, the tails (the bits after the coded one)
//! backward from its end. The code words of a span are decoded first, several to a table look-up; then all its
//! tails' places are known, and reading them is independent of one another.

use std::iter;

use super::block::{BlockCodec, CodecKind, Costs, Facts, Fit, Near, Range, Spot};
use super::spans::{Directory, Spans};
use super::symbols::{Coding, Counts};
use crate::bits;
use crate::error::Damage;
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::huffman::{Code, Decoder, NO_SYMBOLS, Symbols};
use crate::kernels::{NearTails, Tails, has_eights};

/// A Huffman codec with the code of one table: `gap` if it `ADDS`, otherwise `first-difference`, the codec of the paper.
///
/// The coded bit is the top bit in which a fingerprint differs from its predecessor, or the top bit of its gap to the
/// predecessor. The Huffman-coded symbol is the length of the tail: the number of bits after the coded bit. The tail is
/// the low bits of the next fingerprint, or of the gap.
#[derive(Debug)]
pub(crate) struct Difference<const ADDS: bool> {
    code: Code,
    decoder: Decoder,
    spans: Spans,
    /// Refills of the bit buffer that decode the words of a span.
    refills: usize,
}

/// The position of the first differing bit, then the bits after it.
pub(crate) type FirstDifference = Difference<false>;
/// Like [`FirstDifference`], with minus in place of xor.
pub(crate) type Gap = Difference<true>;

/// Spans whose words are decoded at the same time.
const AT_ONCE: usize = 2;

impl<const ADDS: bool> CodecKind for Difference<ADDS> {
    const FACTS: Facts = Facts {
        number: if ADDS { 1 } else { 0 },
        name: if ADDS { "gap" } else { "first-difference" },
        version: format::VERSION,
        has_code: true,
        symbols: |bits| bits as usize,
        default_spans: Some(format::DEFAULT_SPANS),
        default_block_sizes: [4096, 4096],
        costs: Costs { bits: if ADDS { 1.54 } else { 3.42 }, probe: 100.0, decode: 2.6, miss: 1.6 },
    };

    /// `span` is 1 to [`format::MAX_SPAN`].
    fn new(code: &Code, span: u16, block_size: u32) -> Self {
        let (decoder, spans) = (Decoder::new(code), Spans::new(span, block_size));
        let refills = decoder.refills(spans.span - 1);
        Difference { code: code.clone(), decoder, spans, refills }
    }
}

impl<const ADDS: bool> Difference<ADDS> {
    /// The length of the tail of two neighbours, in bits.
    #[inline]
    pub(super) fn symbol<F: Fingerprint>(previous: F, next: F) -> u32 {
        let difference = if ADDS { next.wrapping_sub(previous) } else { previous ^ next };
        F::BITS - 1 - difference.leading_zeros()
    }

    /// Reads all fingerprints of a span with decoded code words.
    #[inline(always)]
    fn read_tails<F: Fingerprint>(
        &self,
        directory: &Directory<F>,
        span: usize,
        (start, end): (usize, usize),
        tails: &Symbols,
        values: &mut [F],
    ) -> Result<(), Damage> {
        let first = directory.restart(span);
        let mut walk = Walk::<F, ADDS> { block: directory.block, position: end, value: first };
        values[0] = first;
        let tails = &tails[..values.len() - 1];
        if tails.iter().all(|&len| u32::from(len) <= bits::SHORT) {
            for (value, &len) in values[1..].iter_mut().zip(tails) {
                *value = walk.next_short(len);
            }
        } else {
            for (value, &len) in values[1..].iter_mut().zip(tails) {
                *value = walk.next(len);
            }
        }
        if walk.position < start || walk.position > end {
            return Err(Damage::Mismatch { what: "the lengths of a span's code words and tails" });
        }
        Ok(())
    }

    /// Bits of the code words and the tails of a span.
    fn data_bits<F: Fingerprint>(&self, span: &[F]) -> usize {
        let symbols = span.windows(2).map(|pair| Self::symbol(pair[0], pair[1]));
        symbols.map(|len| (self.code.length(len) + len) as usize).sum()
    }

    /// Writes the code words (forward) and the tails (backward) of a span, from given bit positions of a block.
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

/// Walks through the tails of a span, from its end backward.
struct Walk<'a, F, const ADDS: bool> {
    block: &'a [u8],
    position: usize,
    value: F,
}

impl<F: Fingerprint, const ADDS: bool> Walk<'_, F, ADDS> {
    /// Goes to the next fingerprint and returns it, from the length of the tail and a field that starts with the tail.
    #[inline(always)]
    fn step(&mut self, len: u32, field: F) -> F {
        // All but the last operations can be done ahead of the predecessor. Without `ADDS`, the coded bit is 0 in the predecessor.
        let kept = F::MAX << len;
        let tail = field & !kept | F::ONE << len;
        self.value = if ADDS { self.value.wrapping_add(tail) } else { self.value & kept | tail };
        self.value
    }

    /// Returns the next fingerprint, with a tail of at most [`bits::SHORT`] bits.
    #[inline(always)]
    fn next_short(&mut self, len: u8) -> F {
        self.position = self.position.wrapping_sub(usize::from(len));
        let field = F::from_u64(bits::load(self.block, self.position / 8) >> (self.position % 8));
        self.step(u32::from(len) % F::BITS, field)
    }

    /// Returns the next fingerprint, with a tail of any length.
    #[inline(always)]
    fn next(&mut self, len: u8) -> F {
        if u32::from(len) <= bits::SHORT {
            return self.next_short(len);
        }
        let len = u32::from(len) % F::BITS;
        self.position = self.position.wrapping_sub(len as usize);
        self.step(len, bits::read_long(self.block, self.position, len))
    }

    /// Decodes `lengths.len() - 7` fingerprints, at most eight. Returns `None` if a tail or the block is out of the
    /// ordinary.
    #[inline(always)]
    fn eight(&mut self, lengths: &[u8], range: Range<F>, near: Near<F>) -> Option<NearTails> {
        const EACH: u64 = 0x0101_0101_0101_0101;
        const PAIRS: u64 = 0x00ff_00ff_00ff_00ff;
        let count = lengths.len() as u32 - 7;
        let lengths = u64::from_le_bytes(*lengths.first_chunk()?) & u64::MAX >> (64 - 8 * count);
        // No symbol is above 127, so no sum carries into the next byte.
        if (lengths + u64::from(127 - Tails::LONGEST) * EACH) & (128 * EACH) != 0 {
            return None;
        }
        let pairs = (lengths & PAIRS) + (lengths >> 8 & PAIRS);
        let all = pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48;
        let start = self.position.checked_sub(all as usize)?;
        // The 64 bytes up to the current position: later bytes may not have been prefetched.
        let first_byte = self.position.div_ceil(8).max(64) - 64;
        let tails = Tails {
            adds: ADDS,
            lengths,
            count,
            bytes: self.block.get(first_byte..)?.first_chunk()?,
            end: (self.position - first_byte * 8) as u32,
            previous: self.value.low_u64(),
            range: (range.low.low_u64(), range.high.low_u64()),
            query: near.query.low_u64(),
            distance: near.distance,
        };
        let found = tails.near();
        (self.position, self.value) = (start, F::from_u64(found.values[7]));
        Some(found)
    }
}

impl<F: Fingerprint, const ADDS: bool> BlockCodec<F> for Difference<ADDS> {
    #[inline]
    fn count(recent: &[F], next: F, counts: &mut Counts) {
        if let Some(&previous) = recent.last() {
            counts.add(Self::symbol(previous, next));
        }
    }

    fn fit(&self, fingerprints: &[F], bytes: usize) -> Fit {
        self.spans.fit(fingerprints, bytes, |span| self.data_bits(&span[span.len() - 2..]))
    }

    fn encode(&self, fingerprints: &[F], block: &mut [u8]) {
        let write = |_, span: &[F], block: &mut [u8], bits| self.write_span(span, block, bits);
        self.spans.encode(fingerprints, block, |_, span| self.data_bits(span), write);
    }

    fn check(&self, block: &[u8], fingerprints: &[F]) -> Result<(), Damage> {
        let write = |_, span: &[F], block: &mut [u8], bits| self.write_span(span, block, bits);
        self.spans.check(block, fingerprints, |_, span| self.data_bits(span), write)
    }

    fn codings(&self, _: &[u8], fingerprints: &[F]) -> Result<Vec<Option<Coding>>, Damage> {
        // There is one way to code a fingerprint.
        let coding =
            |pair: &[F]| Some(Coding { h: Self::symbol(pair[0], pair[1]), differing: None, back: 0 });
        let span = |span| iter::once(None).chain(<[F]>::windows(span, 2).map(coding));
        Ok(fingerprints.chunks(self.spans.span).flat_map(span).collect())
    }

    #[inline(always)]
    fn decode(&self, block: &[u8], fingerprints: &mut Vec<F>) -> Result<(), Damage> {
        let directory = Directory::read(&self.spans, block)?;
        let before = fingerprints.len();
        fingerprints.resize(before + directory.header.count, F::ZERO);
        let values = &mut fingerprints[before..];
        let mut tails = [NO_SYMBOLS; AT_ONCE];
        let groups = directory.header.count / (AT_ONCE * self.spans.span);
        let (grouped, rest) = values.split_at_mut(groups * AT_ONCE * self.spans.span);
        for (group, values) in grouped.chunks_exact_mut(AT_ONCE * self.spans.span).enumerate() {
            let mut bounds = [(0, 0); AT_ONCE];
            for (i, bounds) in bounds.iter_mut().enumerate() {
                *bounds = directory.bounds(AT_ONCE * group + i)?;
            }
            let starts = bounds.map(|(start, _)| start);
            self.decoder.decode_several(block, starts, self.spans.span - 1, self.refills, &mut tails)?;
            for (i, values) in values.chunks_exact_mut(self.spans.span).enumerate() {
                self.read_tails(&directory, AT_ONCE * group + i, bounds[i], &tails[i], values)?;
            }
        }
        for (i, values) in rest.chunks_mut(self.spans.span).enumerate() {
            let span = AT_ONCE * groups + i;
            let bounds = directory.bounds(span)?;
            self.decoder.decode(block, bounds.0, values.len() - 1, &mut tails[0])?;
            self.read_tails(&directory, span, bounds, &tails[0], values)?;
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
        range: Range<F>,
        near: Near<F>,
        mut visitor: impl FnMut(usize, F),
    ) -> Result<(), Damage> {
        let directory = Directory::read(&self.spans, block)?;
        let Range { low, high } = range;
        let eights = F::BITS == 64 && has_eights();
        let mut tails = NO_SYMBOLS;
        for span in spot as usize..directory.spans {
            let first = directory.restart(span);
            if first > high {
                break;
            }
            let at = span * self.spans.span;
            let count = (directory.header.count - at).min(self.spans.span);
            let (start, end) = directory.bounds(span)?;
            if near.holds(first) && first >= low {
                visitor(at, first);
            }
            let mut words = self.decoder.stream(start);
            let mut walk = Walk::<F, ADDS> { block, position: end, value: first };
            let mut i = 1;
            while i < count {
                let wanted = if eights { (i + 7).min(count - 1) } else { i };
                let decoded = words.reach(&self.decoder, block, wanted, &mut tails)?.min(count - 1);
                if eights && let Some(found) = walk.eight(&tails[i - 1..wanted + 7], range, near) {
                    let mut near = found.near;
                    while near != 0 {
                        let place = near.trailing_zeros() as usize;
                        visitor(at + i + place, F::from_u64(found.values[place]));
                        near &= near - 1;
                    }
                    if found.above {
                        return Ok(());
                    }
                    i = wanted + 1;
                    continue;
                }
                for &len in &tails[i - 1..decoded] {
                    let value = walk.next(len);
                    if value > high {
                        return Ok(());
                    }
                    if near.holds(value) && value >= low {
                        visitor(at + i, value);
                    }
                    i += 1;
                }
            }
        }
        Ok(())
    }
}
