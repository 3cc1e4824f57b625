//! The two Huffman codecs, `first-difference` and `gap`: one machine, and one line between them.
//!
//! A block is cut into spans of R fingerprints. The first fingerprint of each span is a *restart point*: it
//! stands at fixed width in the block's directory together with the position of its span, so that a look-up
//! starts decoding at most R fingerprints before its range. A span's code words run forward from its start,
//! the tails (the bits after the coded one) backward from its end. The code words of a span are decoded
//! first, several to a table look-up; then all its tails' places are known, and reading them is
//! independent of one another.

use std::marker::PhantomData;

use super::{BlockCodec, BlockHeader, Fit};
use crate::bits;
use crate::error::Damage;
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::huffman::{Code, Decoder, OVERRUN};

/// How a fingerprint follows from its predecessor and the bits from the coded one on.
///
/// The symbol that is Huffman-coded is the number of bits after the coded bit, the length of the tail. The
/// bits of the tail are the low bits of the difference's source: of the next fingerprint, or of the gap.
pub(crate) trait Step<F: Fingerprint>: Send + Sync + 'static {
    /// What differs between two neighbours, `previous < next`; not zero. Its top bit is the coded one.
    fn difference(previous: F, next: F) -> F;
    /// The number whose low bits are the tail.
    fn tail(previous: F, next: F) -> F;
    /// The next fingerprint, from a tail and a mask of the tail's length.
    fn next(previous: F, mask: F, tail: F) -> F;

    /// The length of the tail of two neighbours, in bits.
    #[inline]
    fn symbol(previous: F, next: F) -> u32 {
        F::BITS - 1 - Self::difference(previous, next).leading_zeros()
    }
}

/// The paper's codec: the position of the first bit that differs, then the bits after it.
#[derive(Debug)]
pub(crate) struct FirstDifference;

impl<F: Fingerprint> Step<F> for FirstDifference {
    #[inline(always)]
    fn difference(previous: F, next: F) -> F {
        previous ^ next
    }
    #[inline(always)]
    fn tail(_: F, next: F) -> F {
        next
    }
    #[inline(always)]
    fn next(previous: F, mask: F, tail: F) -> F {
        // The coded bit is 0 in the predecessor: with all bits below it set, adding 1 carries into it.
        (previous | mask).wrapping_add(F::ONE) | tail
    }
}

/// The same with minus in the place of xor.
#[derive(Debug)]
pub(crate) struct Gap;

impl<F: Fingerprint> Step<F> for Gap {
    #[inline(always)]
    fn difference(previous: F, next: F) -> F {
        next.wrapping_sub(previous)
    }
    #[inline(always)]
    fn tail(previous: F, next: F) -> F {
        next.wrapping_sub(previous)
    }
    #[inline(always)]
    fn next(previous: F, mask: F, tail: F) -> F {
        previous.wrapping_add(mask.wrapping_add(F::ONE).wrapping_add(tail))
    }
}

/// A Huffman codec with the code of one table.
#[derive(Debug)]
pub(crate) struct Difference<S> {
    code: Code,
    decoder: Decoder,
    /// Fingerprints from one restart point to the next.
    span: usize,
    /// Bits of a position in a block.
    position_bits: u32,
    step: PhantomData<S>,
}

impl<S> Difference<S> {
    /// `span` is 1 to [`format::MAX_SPAN`].
    pub(crate) fn new(code: Code, span: u16, block_size: u32) -> Self {
        let decoder = Decoder::new(&code);
        let position_bits = block_size.ilog2() + 3;
        Difference { code, decoder, span: usize::from(span), position_bits, step: PhantomData }
    }

    /// Reads all fingerprints of a span whose code words have been decoded.
    ///
    /// Not inlined, so that its loops have all registers to themselves.
    #[inline(never)]
    fn read_tails<F: Fingerprint>(
        &self,
        directory: &Directory<F>,
        span: usize,
        (start, end): (usize, usize),
        tails: &Tails,
        values: &mut [F],
    ) -> Result<(), Damage>
    where
        S: Step<F>,
    {
        let first = directory.restart(span);
        let mut walk =
            Walk::<F, S> { block: directory.block, position: end, value: first, step: PhantomData };
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

    fn header_bits<F: Fingerprint>(&self, spans: usize, width: u32) -> usize {
        BlockHeader::<F>::LEN * 8 + (spans - 1) * (width + self.position_bits) as usize
    }
}

/// Room for the lengths of a span's tails, in bits.
type Tails = [u8; format::MAX_SPAN as usize + OVERRUN];
const NO_TAILS: Tails = [0; format::MAX_SPAN as usize + OVERRUN];

/// Walks through the tails of a span, from its end backward.
struct Walk<'a, F, S> {
    block: &'a [u8],
    position: usize,
    value: F,
    step: PhantomData<S>,
}

impl<F: Fingerprint, S: Step<F>> Walk<'_, F, S> {
    /// The next fingerprint, whose tail has at most [`bits::SHORT`] bits.
    #[inline(always)]
    fn next_short(&mut self, len: u8) -> F {
        self.position = self.position.wrapping_sub(usize::from(len));
        let mask = F::low_mask(u32::from(len));
        self.value = S::next(self.value, mask, bits::read_short(self.block, self.position, mask));
        self.value
    }

    /// The next fingerprint, whatever the length of its tail.
    #[inline(always)]
    fn next(&mut self, len: u8) -> F {
        let len = u32::from(len) % F::BITS;
        self.position = self.position.wrapping_sub(len as usize);
        let mask = F::low_mask(len);
        self.value = S::next(self.value, mask, bits::read_masked(self.block, self.position, len, mask));
        self.value
    }
}

/// The directory of a block: where each span starts, and with which fingerprint.
struct Directory<'a, F> {
    block: &'a [u8],
    header: BlockHeader<F>,
    spans: usize,
    position_bits: u32,
}

impl<'a, F: Fingerprint> Directory<'a, F> {
    #[inline(always)]
    fn read<S>(codec: &Difference<S>, block: &'a [u8]) -> Result<Self, Damage> {
        let header = BlockHeader::<F>::read(block)?;
        let spans = header.count.div_ceil(codec.span);
        let found = codec.header_bits::<F>(spans, header.width);
        if found > block.len() * 8 {
            return Err(Damage::Field {
                name: "width",
                found: u64::from(header.width),
                expected: "a directory that lies inside the block",
            });
        }
        Ok(Directory { block, header, spans, position_bits: codec.position_bits })
    }

    /// The first fingerprint of a span.
    #[inline(always)]
    fn restart(&self, span: usize) -> F {
        if span == 0 {
            return self.header.first;
        }
        let at = BlockHeader::<F>::LEN * 8 + (span - 1) * self.header.width as usize;
        self.header.first.wrapping_add(bits::read(self.block, at, self.header.width))
    }

    /// The bit positions at which a span starts and ends.
    #[inline(always)]
    fn bounds(&self, span: usize) -> Result<(usize, usize), Damage> {
        let positions = BlockHeader::<F>::LEN * 8 + (self.spans - 1) * self.header.width as usize;
        let position = |span: usize| {
            let at = positions + (span - 1) * self.position_bits as usize;
            bits::read_u64(self.block, at, self.position_bits) as usize
        };
        let data = positions + (self.spans - 1) * self.position_bits as usize;
        let start = if span == 0 { data } else { position(span) };
        let end = if span + 1 == self.spans { self.block.len() * 8 } else { position(span + 1) };
        if start < data || start > end || end > self.block.len() * 8 {
            return Err(Damage::Order { what: "the positions of a block's spans" });
        }
        Ok((start, end))
    }

    /// The last span whose first fingerprint is at most `low`; the first span if there is none.
    #[inline(always)]
    fn span_of(&self, low: F) -> usize {
        let (mut from, mut to) = (0, self.spans);
        while to - from > 1 {
            let middle = from.midpoint(to);
            if self.restart(middle) <= low {
                from = middle;
            } else {
                to = middle;
            }
        }
        from
    }
}

impl<F: Fingerprint, S: Step<F>> BlockCodec<F> for Difference<S> {
    fn fit(&self, fingerprints: &[F], bytes: usize) -> Fit {
        let mut best = Fit { count: 1, bytes: BlockHeader::<F>::LEN };
        let first = fingerprints[0];
        let (mut spans, mut width, mut data) = (1, 0, 0);
        for (i, pair) in fingerprints.windows(2).take(format::MAX_BLOCK_COUNT - 1).enumerate() {
            let restarts = (i + 1) % self.span == 0;
            if restarts {
                spans += 1;
                width = F::BITS - pair[1].wrapping_sub(first).leading_zeros();
            } else {
                let len = S::symbol(pair[0], pair[1]);
                data += (self.code.length(len) + len) as usize;
            }
            // A span starts inside the block, or its position would need a bit more.
            let needed = (self.header_bits::<F>(spans, width) + data + usize::from(restarts)).div_ceil(8);
            if needed > bytes {
                break;
            }
            best = Fit { count: i + 2, bytes: needed };
        }
        best
    }

    fn encode(&self, fingerprints: &[F], block: &mut [u8]) {
        let first = fingerprints[0];
        let count = fingerprints.len();
        let spans = count.div_ceil(self.span);
        let last_restart = fingerprints[(spans - 1) * self.span];
        let width = F::BITS - last_restart.wrapping_sub(first).leading_zeros();
        BlockHeader { count, width, first }.write(block);

        let restarts = BlockHeader::<F>::LEN * 8;
        let positions = restarts + (spans - 1) * width as usize;
        let mut start = self.header_bits::<F>(spans, width);
        for (i, span) in fingerprints.chunks(self.span).enumerate() {
            if i > 0 {
                bits::write(block, restarts + (i - 1) * width as usize, width, span[0].wrapping_sub(first));
                let at = positions + (i - 1) * self.position_bits as usize;
                bits::write_u64(block, at, self.position_bits, start as u64);
            }
            let bits: usize = span
                .windows(2)
                .map(|pair| S::symbol(pair[0], pair[1]))
                .map(|len| (self.code.length(len) + len) as usize)
                .sum();
            // What is left over in the block lies between the words and the tails of its last span.
            let end = if i + 1 == spans { block.len() * 8 } else { start + bits };
            let (mut word, mut tail) = (start, end);
            for pair in span.windows(2) {
                let len = S::symbol(pair[0], pair[1]);
                self.code.write(block, word, len);
                word += self.code.length(len) as usize;
                tail -= len as usize;
                bits::write(block, tail, len, S::tail(pair[0], pair[1]) & F::suffix_mask(len));
            }
            start += bits;
        }
    }

    fn decode(&self, block: &[u8], fingerprints: &mut Vec<F>) -> Result<(), Damage> {
        let directory = Directory::read(self, block)?;
        let before = fingerprints.len();
        fingerprints.resize(before + directory.header.count, F::ZERO);
        let values = &mut fingerprints[before..];
        let mut tails = [NO_TAILS; 2];
        let pairs = directory.header.count / (2 * self.span);
        let (paired, rest) = values.split_at_mut(pairs * 2 * self.span);
        for (pair, values) in paired.chunks_exact_mut(2 * self.span).enumerate() {
            let spans = [2 * pair, 2 * pair + 1];
            let bounds = [directory.bounds(spans[0])?, directory.bounds(spans[1])?];
            let starts = bounds.map(|(start, _)| start);
            self.decoder.decode_two(block, starts, self.span - 1, &mut tails)?;
            for (i, values) in values.chunks_exact_mut(self.span).enumerate() {
                self.read_tails(&directory, spans[i], bounds[i], &tails[i], values)?;
            }
        }
        for (i, values) in rest.chunks_mut(self.span).enumerate() {
            let span = 2 * pairs + i;
            let bounds = directory.bounds(span)?;
            self.decoder.decode(block, bounds.0, values.len() - 1, &mut tails[0])?;
            self.read_tails(&directory, span, bounds, &tails[0], values)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn visit(&self, block: &[u8], low: F, high: F, mut visitor: impl FnMut(usize, F)) -> Result<(), Damage> {
        let directory = Directory::read(self, block)?;
        let mut tails = NO_TAILS;
        for span in directory.span_of(low)..directory.spans {
            let first = directory.restart(span);
            if first > high {
                break;
            }
            let at = span * self.span;
            let count = (directory.header.count - at).min(self.span);
            let (start, end) = directory.bounds(span)?;
            self.decoder.decode(block, start, count - 1, &mut tails)?;
            let mut walk = Walk::<F, S> { block, position: end, value: first, step: PhantomData };
            if first >= low {
                visitor(at, first);
            }
            for (i, &len) in (at + 1..at + count).zip(&tails) {
                let value = walk.next(len);
                if value > high {
                    return Ok(());
                }
                if value >= low {
                    visitor(i, value);
                }
            }
        }
        Ok(())
    }
}
