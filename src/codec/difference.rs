//! The two Huffman codecs, `first-difference` and `gap`: one machine, and one line between them.
//!
//! A block is cut into spans of R fingerprints. The first fingerprint of each span is a *restart point*: it
//! stands at fixed width in the block's directory together with the position of its span, so that a look-up
//! starts decoding at most R fingerprints before its range. A span's code words run forward from its start,
//! the tails (the bits after the coded one) backward from its end. The code words of a span are decoded
//! first, several to a table look-up; then all its tails' places are known, and reading them is
//! independent of one another.

use std::marker::PhantomData;

use super::{BlockCodec, BlockHeader, Choice, CodecKind, Costs, Facts, Fit, Near, OTHER_CODE, Range, Spot};
use crate::bits;
use crate::error::Damage;
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::huffman::{Code, Decoder, NO_SYMBOLS, Symbols};

/// What tells the two apart, whatever the width of the fingerprints.
pub(crate) trait Kind: Send + Sync + 'static {
    /// In files.
    const NUMBER: u8;
    const NAME: &'static str;
    /// Bits of a random fingerprint above 64 - log2 n.
    const BITS: f64;
}

/// How a fingerprint follows from its predecessor and the bits from the coded one on.
///
/// The symbol that is Huffman-coded is the number of bits after the coded bit, the length of the tail. The
/// bits of the tail are the low bits of the difference's source: of the next fingerprint, or of the gap.
pub(crate) trait Step<F: Fingerprint>: Kind {
    /// What differs between two neighbours, `previous < next`; not zero. Its top bit is the coded one.
    fn difference(previous: F, next: F) -> F;
    /// The number whose low bits are the tail.
    fn tail(previous: F, next: F) -> F;
    /// The next fingerprint, from the length of the tail and a field that starts with the tail.
    fn next(previous: F, len: u32, field: F) -> F;

    /// The length of the tail of two neighbours, in bits.
    #[inline]
    fn symbol(previous: F, next: F) -> u32 {
        F::BITS - 1 - Self::difference(previous, next).leading_zeros()
    }
}

/// The paper's codec: the position of the first bit that differs, then the bits after it.
#[derive(Debug)]
pub(crate) struct FirstDifference;

impl Kind for FirstDifference {
    const NUMBER: u8 = 0;
    const NAME: &'static str = "first-difference";
    const BITS: f64 = 3.42;
}

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
    fn next(previous: F, len: u32, field: F) -> F {
        // The coded bit is 0 in the predecessor. All but the last two operations can be done ahead of it.
        let kept = F::MAX << len;
        let tail = field & !kept | F::ONE << len;
        previous & kept | tail
    }
}

/// The same with minus in the place of xor.
#[derive(Debug)]
pub(crate) struct Gap;

impl Kind for Gap {
    const NUMBER: u8 = 1;
    const NAME: &'static str = "gap";
    const BITS: f64 = 1.54;
}

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
    fn next(previous: F, len: u32, field: F) -> F {
        previous.wrapping_add(field & !(F::MAX << len) | F::ONE << len)
    }
}

/// A Huffman codec with the code of one table.
#[derive(Debug)]
pub(crate) struct Difference<S> {
    code: Code,
    decoder: Decoder,
    /// Fingerprints from one restart point to the next.
    span: usize,
    /// Refills of the bit buffer that decode the words of a span.
    refills: usize,
    /// Bits of a position in a block.
    position_bits: u32,
    step: PhantomData<S>,
}

/// Spans whose words are decoded at the same time.
const AT_ONCE: usize = 2;

impl<S: Kind> CodecKind for Difference<S> {
    const FACTS: Facts = Facts {
        number: S::NUMBER,
        name: S::NAME,
        has_code: true,
        default_span: Some(format::DEFAULT_SPAN as u16),
        default_block_sizes: [4096, 4096],
        costs: Costs { bits: S::BITS, probe: 100.0, decode: 2.6, miss: 1.6 },
    };

    /// `span` is 1 to [`format::MAX_SPAN`].
    fn new(code: &Code, span: u16, block_size: u32) -> Self {
        let (decoder, span) = (Decoder::new(code), usize::from(span));
        let refills = decoder.refills(span - 1);
        let position_bits = block_size.ilog2() + 3;
        Difference { code: code.clone(), decoder, span, refills, position_bits, step: PhantomData }
    }
}

impl<S> Difference<S> {
    /// Reads all fingerprints of a span whose code words have been decoded.
    #[inline(always)]
    fn read_tails<F: Fingerprint>(
        &self,
        directory: &Directory<F>,
        span: usize,
        (start, end): (usize, usize),
        tails: &Symbols,
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

    /// Bits of the words and the tails of a span.
    fn data_bits<F: Fingerprint>(&self, span: &[F]) -> usize
    where
        S: Step<F>,
    {
        let symbols = span.windows(2).map(|pair| S::symbol(pair[0], pair[1]));
        symbols.map(|len| (self.code.length(len) + len) as usize).sum()
    }

    /// Writes a block whose restart points have `width` bits.
    fn encode_with<F: Fingerprint>(&self, width: u32, fingerprints: &[F], block: &mut [u8])
    where
        S: Step<F>,
    {
        let first = fingerprints[0];
        let count = fingerprints.len();
        let spans = count.div_ceil(self.span);
        BlockHeader { count, width, first }.write(block);

        let entry_bits = (width + self.position_bits) as usize;
        let mut start = self.header_bits::<F>(spans, width);
        for (i, span) in fingerprints.chunks(self.span).enumerate() {
            if i > 0 {
                let entry = BlockHeader::<F>::LEN * 8 + (i - 1) * entry_bits;
                bits::write(block, entry, width, span[0].wrapping_sub(first));
                bits::write_u64(block, entry + width as usize, self.position_bits, start as u64);
            }
            let bits = self.data_bits(span);
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
}

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
        let field = F::from_u64(bits::load(self.block, self.position / 8) >> (self.position % 8));
        self.value = S::next(self.value, u32::from(len) % F::BITS, field);
        self.value
    }

    /// The next fingerprint, whatever the length of its tail.
    #[inline(always)]
    fn next(&mut self, len: u8) -> F {
        if u32::from(len) <= bits::SHORT {
            return self.next_short(len);
        }
        let len = u32::from(len) % F::BITS;
        self.position = self.position.wrapping_sub(len as usize);
        self.value = S::next(self.value, len, bits::read_long(self.block, self.position, len));
        self.value
    }
}

/// The directory of a block: with which fingerprint and where each span starts.
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
        // Most tables have the same span.
        let spans = match codec.span {
            format::DEFAULT_SPAN => header.count.div_ceil(format::DEFAULT_SPAN),
            span => header.count.div_ceil(span),
        };
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

    /// The bit position of the entry of a span, from 1.
    #[inline(always)]
    fn entry(&self, span: usize) -> usize {
        BlockHeader::<F>::LEN * 8 + (span - 1) * (self.header.width + self.position_bits) as usize
    }

    /// The first fingerprint of a span.
    #[inline(always)]
    fn restart(&self, span: usize) -> F {
        if span == 0 {
            return self.header.first;
        }
        self.header.first.wrapping_add(bits::read(self.block, self.entry(span), self.header.width))
    }

    /// The bit positions at which a span starts and ends.
    #[inline(always)]
    fn bounds(&self, span: usize) -> Result<(usize, usize), Damage> {
        let position = |span: usize| {
            let at = self.entry(span) + self.header.width as usize;
            bits::read_u64(self.block, at, self.position_bits) as usize
        };
        let data = self.entry(self.spans);
        let start = if span == 0 { data } else { position(span) };
        let end = if span + 1 == self.spans { self.block.len() * 8 } else { position(span + 1) };
        if start < data || start > end || end > self.block.len() * 8 {
            return Err(Damage::Order { what: "the positions of a block's spans" });
        }
        Ok((start, end))
    }

    /// Where the span of `low` should be, if the fingerprints up to the block's `last` are spread evenly.
    #[inline(always)]
    fn guess(&self, low: F, last: F) -> usize {
        let spread = last.wrapping_sub(self.header.first);
        let shift = (F::BITS - spread.leading_zeros()).saturating_sub(32);
        if low <= self.header.first || low >= last {
            return if low >= last { self.spans - 1 } else { 0 };
        }
        let below = (low.wrapping_sub(self.header.first) >> shift).low_u64();
        let all = (spread >> shift).low_u64() + 1;
        (below * self.spans as u64 / all) as usize
    }

    /// The last span whose first fingerprint is at most `low`; the first span if there is none.
    #[inline(always)]
    fn span_of(&self, low: F, last: F) -> usize {
        let (mut from, mut to) = (0, self.spans);
        let mut middle = self.guess(low, last);
        // The guess and its neighbours first, then by halves.
        for step in 0_usize.. {
            if middle == from || self.restart(middle) <= low {
                from = middle;
                middle += 1;
            } else {
                to = middle;
                middle -= 1;
            }
            if to - from <= 1 {
                break;
            }
            if step >= 3 {
                middle = from.midpoint(to);
            }
        }
        from
    }
}

impl<F: Fingerprint, S: Step<F>> BlockCodec<F> for Difference<S>
where
    Difference<S>: Choice,
{
    #[inline]
    fn symbol(previous: F, next: F) -> Option<u32> {
        Some(S::symbol(previous, next))
    }

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
        let last_restart = fingerprints[(fingerprints.len() - 1) / self.span * self.span];
        let width = F::BITS - last_restart.wrapping_sub(fingerprints[0]).leading_zeros();
        self.encode_with(width, fingerprints, block);
    }

    fn check(&self, block: &[u8], fingerprints: &[F]) -> Result<(), Damage> {
        let header = BlockHeader::<F>::read(block)?;
        let spans = fingerprints.len().div_ceil(self.span);
        // With symbols that are other than those of the block, they may not fit, or have no words.
        let mut bits = self.header_bits::<F>(spans, header.width);
        for span in fingerprints.chunks(self.span) {
            if bits >> self.position_bits > 0 && span[0] != fingerprints[0] {
                return Err(OTHER_CODE);
            }
            bits += self.data_bits(span);
        }
        if bits > block.len() * 8 {
            return Err(OTHER_CODE);
        }
        let mut again = vec![0; block.len()];
        self.encode_with(header.width, fingerprints, &mut again);
        if again[format::BLOCK_COUNT..] == block[format::BLOCK_COUNT..] { Ok(()) } else { Err(OTHER_CODE) }
    }

    #[inline(always)]
    fn decode(&self, block: &[u8], fingerprints: &mut Vec<F>) -> Result<(), Damage> {
        let directory = Directory::read(self, block)?;
        let before = fingerprints.len();
        fingerprints.resize(before + directory.header.count, F::ZERO);
        let values = &mut fingerprints[before..];
        let mut tails = [NO_SYMBOLS; AT_ONCE];
        let groups = directory.header.count / (AT_ONCE * self.span);
        let (grouped, rest) = values.split_at_mut(groups * AT_ONCE * self.span);
        for (group, values) in grouped.chunks_exact_mut(AT_ONCE * self.span).enumerate() {
            let mut bounds = [(0, 0); AT_ONCE];
            for (i, bounds) in bounds.iter_mut().enumerate() {
                *bounds = directory.bounds(AT_ONCE * group + i)?;
            }
            let starts = bounds.map(|(start, _)| start);
            self.decoder.decode_several(block, starts, self.span - 1, self.refills, &mut tails)?;
            for (i, values) in values.chunks_exact_mut(self.span).enumerate() {
                self.read_tails(&directory, AT_ONCE * group + i, bounds[i], &tails[i], values)?;
            }
        }
        for (i, values) in rest.chunks_mut(self.span).enumerate() {
            let span = AT_ONCE * groups + i;
            let bounds = directory.bounds(span)?;
            self.decoder.decode(block, bounds.0, values.len() - 1, &mut tails[0])?;
            self.read_tails(&directory, span, bounds, &tails[0], values)?;
        }
        Ok(())
    }

    const AIMS: bool = true;

    #[inline(always)]
    fn aim(&self, block: &[u8], low: F, last: F) -> Result<usize, Damage> {
        let directory = Directory::read(self, block)?;
        Ok(directory.entry(directory.guess(low, last).max(1)) / 8)
    }

    #[inline(always)]
    fn locate(&self, block: &[u8], range: Range<F>, last: F) -> Result<Option<Spot>, Damage> {
        let directory = Directory::read(self, block)?;
        let span = directory.span_of(range.low, last);
        if span == 0 && directory.header.first > range.high {
            return Ok(None);
        }
        let (start, end) = directory.bounds(span)?;
        Ok(Some(Spot { index: span as u32, bytes: ((start / 8) as u32, (end / 8) as u32) }))
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
        let directory = Directory::read(self, block)?;
        let mut tails = NO_SYMBOLS;
        for span in spot as usize..directory.spans {
            let first = directory.restart(span);
            if first > high {
                break;
            }
            let at = span * self.span;
            let count = (directory.header.count - at).min(self.span);
            let (start, end) = directory.bounds(span)?;
            if first >= low && near.holds(first) {
                visitor(at, first);
            }
            let mut words = self.decoder.stream(start);
            let mut walk = Walk::<F, S> { block, position: end, value: first, step: PhantomData };
            let mut i = 1;
            while i < count {
                let decoded = words.reach(&self.decoder, block, i, &mut tails)?.min(count - 1);
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
