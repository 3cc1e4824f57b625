//! Blocks that are cut into spans: the directory of such a block, and the steps to write and read one that do not
//! depend on the spans' contents.
//!
//! The first fingerprint of each span is a *restart point*. The block's directory has it at fixed width, together
//! with the position of its span. So a look-up starts decoding at most a span before its range.

use super::block::{BlockHeader, Fit, OTHER_CODE, Spot};
use crate::bits;
use crate::error::Damage;
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::kernels::{self, Fields};

/// Bytes of a cache line.
const LINE: usize = 64;

/// How the blocks of one table are cut into spans.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spans {
    /// Fingerprints from one restart point to the next.
    pub(super) span: usize,
    /// Bits of a position in a block.
    position_bits: u32,
}

impl Spans {
    /// `span` is 1 to [`format::MAX_SPAN`].
    pub(super) fn new(span: u16, block_size: u32) -> Self {
        Spans { span: usize::from(span), position_bits: block_size.ilog2() + 3 }
    }

    /// Bits of a block before its first span.
    fn header_bits<F: Fingerprint>(&self, spans: usize, width: u32) -> usize {
        BlockHeader::<F>::LEN * 8 + (spans - 1) * (width + self.position_bits) as usize
    }

    /// Returns the longest prefix of `fingerprints` that fits in `bytes` bytes, at least one fingerprint.
    ///
    /// `cost` returns the bits of the last of the given fingerprints; the others come before it in its span.
    #[inline(always)]
    pub(super) fn fit<F: Fingerprint>(
        &self,
        fingerprints: &[F],
        bytes: usize,
        mut cost: impl FnMut(&[F]) -> usize,
    ) -> Fit {
        let mut best = Fit { count: 1, bytes: BlockHeader::<F>::LEN };
        let first = fingerprints[0];
        let (mut start, mut spans, mut width, mut data) = (0, 1, 0, 0);
        for (i, &fingerprint) in fingerprints.iter().enumerate().take(format::MAX_BLOCK_COUNT).skip(1) {
            let restarts = i - start == self.span;
            if restarts {
                start = i;
                spans += 1;
                width = F::BITS - fingerprint.wrapping_sub(first).leading_zeros();
            } else {
                data += cost(&fingerprints[start..=i]);
            }
            // A span starts inside the block; otherwise its position would need one more bit.
            let needed = (self.header_bits::<F>(spans, width) + data + usize::from(restarts)).div_ceil(8);
            if needed > bytes {
                break;
            }
            best = Fit { count: i + 1, bytes: needed };
        }
        best
    }

    /// Writes a zeroed block except its checksum.
    ///
    /// `cost` returns the bits of a span after its first fingerprint, and is also given the span's number. `write`
    /// writes these bits into the given bit range of the block.
    pub(super) fn encode<F: Fingerprint>(
        &self,
        fingerprints: &[F],
        block: &mut [u8],
        cost: impl Fn(usize, &[F]) -> usize,
        write: impl FnMut(usize, &[F], &mut [u8], (usize, usize)),
    ) {
        let last_restart = fingerprints[(fingerprints.len() - 1) / self.span * self.span];
        let width = F::BITS - last_restart.wrapping_sub(fingerprints[0]).leading_zeros();
        self.encode_with(width, fingerprints, block, cost, write);
    }

    /// [`Spans::encode`] with restart points of `width` bits.
    fn encode_with<F: Fingerprint>(
        &self,
        width: u32,
        fingerprints: &[F],
        block: &mut [u8],
        cost: impl Fn(usize, &[F]) -> usize,
        mut write: impl FnMut(usize, &[F], &mut [u8], (usize, usize)),
    ) {
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
            // Unused bits of the block lie between the words and the tails of its last span.
            let end = start + cost(i, span);
            write(i, span, block, (start, if i + 1 == spans { block.len() * 8 } else { end }));
            start = end;
        }
    }

    /// Checks that a block is equal to the encoding of `fingerprints`, which were decoded from it. `cost` and `write`
    /// are the ones of [`Spans::encode`].
    pub(super) fn check<F: Fingerprint>(
        &self,
        block: &[u8],
        fingerprints: &[F],
        cost: impl Fn(usize, &[F]) -> usize,
        write: impl FnMut(usize, &[F], &mut [u8], (usize, usize)),
    ) -> Result<(), Damage> {
        let header = BlockHeader::<F>::read(block)?;
        let spans = fingerprints.len().div_ceil(self.span);
        // Symbols other than the block's may not fit, or have no words.
        let mut bits = self.header_bits::<F>(spans, header.width);
        for (i, span) in fingerprints.chunks(self.span).enumerate() {
            if bits >> self.position_bits > 0 && span[0] != fingerprints[0] {
                return Err(OTHER_CODE);
            }
            bits += cost(i, span);
        }
        if bits > block.len() * 8 {
            return Err(OTHER_CODE);
        }
        let mut again = vec![0; block.len()];
        self.encode_with(header.width, fingerprints, &mut again, cost, write);
        if again[format::BLOCK_COUNT..] == block[format::BLOCK_COUNT..] { Ok(()) } else { Err(OTHER_CODE) }
    }
}

/// The directory of a block: the first fingerprint and the position of each span.
pub(super) struct Directory<'a, F> {
    pub(super) block: &'a [u8],
    pub(super) header: BlockHeader<F>,
    /// Number of spans.
    pub(super) spans: usize,
    position_bits: u32,
}

impl<'a, F: Fingerprint> Directory<'a, F> {
    #[inline(always)]
    pub(super) fn read(cut: &Spans, block: &'a [u8]) -> Result<Self, Damage> {
        let header = BlockHeader::<F>::read(block)?;
        // Most tables have one of these spans; dividing by a constant takes no division.
        const SPANS: [usize; 2] = [format::DEFAULT_SPANS[0] as usize, format::DEFAULT_SPANS[1] as usize];
        let spans = match cut.span {
            span if span == SPANS[0] => header.count.div_ceil(SPANS[0]),
            span if span == SPANS[1] => header.count.div_ceil(SPANS[1]),
            span => header.count.div_ceil(span),
        };
        let found = cut.header_bits::<F>(spans, header.width);
        if found > block.len() * 8 {
            return Err(Damage::Field {
                name: "width",
                found: u64::from(header.width),
                expected: "a directory that lies inside the block",
            });
        }
        Ok(Directory { block, header, spans, position_bits: cut.position_bits })
    }

    /// The bit position of a span's entry; spans with an entry start at 1.
    #[inline(always)]
    fn entry(&self, span: usize) -> usize {
        BlockHeader::<F>::LEN * 8 + (span - 1) * (self.header.width + self.position_bits) as usize
    }

    /// The first fingerprint of a span.
    #[inline(always)]
    pub(super) fn restart(&self, span: usize) -> F {
        if span == 0 {
            return self.header.first;
        }
        self.header.first.wrapping_add(bits::read(self.block, self.entry(span), self.header.width))
    }

    /// The bit positions at which a span starts and ends.
    #[inline(always)]
    pub(super) fn bounds(&self, span: usize) -> Result<(usize, usize), Damage> {
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

    /// The span expected to contain `low`, if the fingerprints up to the block's `last` are spread evenly.
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

    /// Offsets of the two cache lines (mostly the same one) where the search for a span starts. They contain the
    /// entries from one span before `guess` to two after it.
    #[inline(always)]
    fn lines(&self, guess: usize) -> (usize, usize) {
        let (from, to) = (self.entry(guess.max(2) - 1), self.entry(guess.max(1) + 3) - 1);
        (from / 8 / LINE * LINE, to / 8 / LINE * LINE)
    }

    /// Prefetches the bytes that the search for the span of `low` reads, in a block that ends with `last`.
    #[inline(always)]
    pub(super) fn prefetch(&self, low: F, last: F) {
        let (from, to) = self.lines(self.guess(low, last));
        kernels::prefetch(self.block, from);
        kernels::prefetch(self.block, to);
    }

    /// The last span whose first fingerprint is at most `low`; otherwise the first span.
    #[inline(always)]
    fn span_of(&self, low: F, last: F) -> usize {
        let guess = self.guess(low, last);
        match self.span_near(guess, low) {
            Some(span) => span,
            None => self.span_from(guess, low),
        }
    }

    /// Like [`Directory::span_of`], but only for the spans around `guess`, and without a branch that depends on the
    /// result. Returns `None` if it is none of them.
    #[inline(always)]
    fn span_near(&self, guess: usize, low: F) -> Option<usize> {
        let width = self.header.width;
        if F::BITS > 64 || !kernels::has_eights() || width > bits::SHORT || low < self.header.first {
            return None;
        }
        let lines = self.lines(guess);
        let from = guess.max(2) - 1;
        let fields = Fields {
            lines: [self.block.get(lines.0..)?.first_chunk()?, self.block.get(lines.1..)?.first_chunk()?],
            position: (self.entry(from) - lines.0 * 8) as u32,
            end: ((lines.1 - lines.0 + LINE) * 8) as u32,
            step: width + self.position_bits,
            width,
        };
        let (there, below) = fields.at_most(low.wrapping_sub(self.header.first).low_u64());
        // Fields after the last span are not entries.
        let there = (there.count_ones() as usize).min(self.spans.saturating_sub(from));
        let below = (u32::from(below) & ((1 << there) - 1)).count_ones() as usize;
        let all = below == there && from + there < self.spans;
        (!all && (below > 0 || from == 1)).then(|| from + below - 1)
    }

    /// Like [`Directory::span_of`], step by step from a guess.
    #[inline(never)]
    fn span_from(&self, guess: usize, low: F) -> usize {
        let (mut from, mut to) = (0, self.spans);
        let mut middle = guess;
        // First the guess and its neighbours, then halving.
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

    /// The first span to read for the fingerprints from `low` to `high`, in a block that ends with `last`. `None` if
    /// all fingerprints of the block come after them.
    #[inline(always)]
    pub(super) fn locate(&self, low: F, high: F, last: F) -> Result<Option<Spot>, Damage> {
        let span = self.span_of(low, last);
        if span == 0 && self.header.first > high {
            return Ok(None);
        }
        let (start, end) = self.bounds(span)?;
        Ok(Some(Spot { index: span as u32, bytes: ((start / 8) as u32, (end / 8) as u32) }))
    }
}
