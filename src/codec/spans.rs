//! The spans of a block. A *span* is a sequence of fingerprints that are decoded one after another, from the first one on.
//!
//! The first fingerprint of each span is a *restart point*. The block's directory stores it at fixed width, together
//! with the position of its span. So a look-up of a range of fingerprints starts decoding at most one span before the
//! range.
//!
//! This module writes and reads the directory. The codecs write and read the contents of the spans.

use super::block_codec::{BlockFit, BlockHeader, NONCONFORMING_BLOCK, ScanStart};
use crate::bits;
use crate::error::Damage;
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::simd::{self, FieldGroup8};

/// Size of a cache line, in bytes.
const CACHE_LINE_BYTES: usize = 64;

/// The layout of the spans in the blocks of one table. A span is a sequence of fingerprints that is decoded from
/// its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpanLayout {
    /// Number of fingerprints in a span. The last span of a block may have fewer.
    pub(super) span_len: usize,
    /// Width in bits of a span's position, as stored in a block's directory. The position is a bit position in the
    /// block.
    position_bits: u32,
}

impl SpanLayout {
    /// Creates the layout for blocks of `block_size` bytes. `span`, the number of fingerprints in a span, is 1 to
    /// [`format::MAX_SPAN`].
    pub(super) fn new(span: u16, block_size: u32) -> Self {
        SpanLayout { span_len: usize::from(span), position_bits: block_size.ilog2() + 3 }
    }

    /// Returns the size in bits of the header and the directory of a block with `spans` spans. Header and
    /// directory come before the first span. `width` is the width in bits of a restart point, the first
    /// fingerprint of a span.
    fn header_bits<F: Fingerprint>(&self, spans: usize, width: u32) -> usize {
        BlockHeader::<F>::LEN * 8 + (spans - 1) * (width + self.position_bits) as usize
    }

    /// Returns how many of `fingerprints`, from the first one on, fit in a block of `bytes` bytes: at least one.
    ///
    /// `cost` takes a slice that starts at the first fingerprint of a span. It returns the coded size in bits of the
    /// last fingerprint in the slice.
    #[inline(always)]
    pub(super) fn fit<F: Fingerprint>(
        &self,
        fingerprints: &[F],
        bytes: usize,
        mut cost: impl FnMut(&[F]) -> usize,
    ) -> BlockFit {
        let mut best = BlockFit { count: 1, bytes: BlockHeader::<F>::LEN };
        let first = fingerprints[0];
        let (mut start, mut spans, mut width, mut data) = (0, 1, 0, 0);
        for (i, &fingerprint) in fingerprints.iter().enumerate().take(format::MAX_BLOCK_FINGERPRINTS).skip(1)
        {
            let restarts = i - start == self.span_len;
            if restarts {
                start = i;
                spans += 1;
                width = F::BITS - fingerprint.wrapping_sub(first).leading_zeros();
            } else {
                data += cost(&fingerprints[start..=i]);
            }
            // A span must start inside the block; otherwise its position would need one more bit.
            let needed = (self.header_bits::<F>(spans, width) + data + usize::from(restarts)).div_ceil(8);
            if needed > bytes {
                break;
            }
            best = BlockFit { count: i + 1, bytes: needed };
        }
        best
    }

    /// Writes the contents of a block, except for its checksum. `block` must have only zeros before.
    ///
    /// `cost` takes the index of a span and its fingerprints. It returns the coded size in bits of all
    /// fingerprints but the first. `write` takes the same two arguments, the block, and a bit range in the block.
    /// It writes the coded fingerprints to this bit range.
    pub(super) fn encode<F: Fingerprint>(
        &self,
        fingerprints: &[F],
        block: &mut [u8],
        cost: impl Fn(usize, &[F]) -> usize,
        write: impl FnMut(usize, &[F], &mut [u8], (usize, usize)),
    ) {
        let last_restart = fingerprints[(fingerprints.len() - 1) / self.span_len * self.span_len];
        let width = F::BITS - last_restart.wrapping_sub(fingerprints[0]).leading_zeros();
        self.encode_with(width, fingerprints, block, cost, write);
    }

    /// Like [`SpanLayout::encode`], but stores each restart point (first fingerprint of a span) in `width` bits,
    /// not in the smallest width that fits.
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
        let spans = count.div_ceil(self.span_len);
        BlockHeader { count, width, first }.write(block);

        let entry_bits = (width + self.position_bits) as usize;
        let mut start = self.header_bits::<F>(spans, width);
        for (i, span) in fingerprints.chunks(self.span_len).enumerate() {
            if i > 0 {
                let entry = BlockHeader::<F>::LEN * 8 + (i - 1) * entry_bits;
                bits::write(block, entry, width, span[0].wrapping_sub(first));
                bits::write_u64(block, entry + width as usize, self.position_bits, start as u64);
            }
            // The unused bits of the block lie between the code words and the tails of its last span.
            let end = start + cost(i, span);
            write(i, span, block, (start, if i + 1 == spans { block.len() * 8 } else { end }));
            start = end;
        }
    }

    /// Checks that a block is equal to the encoding of `fingerprints`, which were decoded from it. `cost` and `write`
    /// are as in [`SpanLayout::encode`].
    pub(super) fn check<F: Fingerprint>(
        &self,
        block: &[u8],
        fingerprints: &[F],
        cost: impl Fn(usize, &[F]) -> usize,
        write: impl FnMut(usize, &[F], &mut [u8], (usize, usize)),
    ) -> Result<(), Damage> {
        let header = BlockHeader::<F>::read(block)?;
        let spans = fingerprints.len().div_ceil(self.span_len);
        // If the block was not written by `write`, the encoding may use other symbols: they may not fit or have no code word.
        let mut bits = self.header_bits::<F>(spans, header.width);
        for (i, span) in fingerprints.chunks(self.span_len).enumerate() {
            if bits >> self.position_bits > 0 && span[0] != fingerprints[0] {
                return Err(NONCONFORMING_BLOCK);
            }
            bits += cost(i, span);
        }
        if bits > block.len() * 8 {
            return Err(NONCONFORMING_BLOCK);
        }
        let mut again = vec![0; block.len()];
        self.encode_with(header.width, fingerprints, &mut again, cost, write);
        if again[format::BLOCK_COUNT..] == block[format::BLOCK_COUNT..] {
            Ok(())
        } else {
            Err(NONCONFORMING_BLOCK)
        }
    }
}

/// The directory of a block: the restart point (first fingerprint) and the position of each span.
pub(super) struct SpanDirectory<'a, F> {
    pub(super) block: &'a [u8],
    pub(super) header: BlockHeader<F>,
    /// Number of spans in the block.
    pub(super) spans: usize,
    position_bits: u32,
}

impl<'a, F: Fingerprint> SpanDirectory<'a, F> {
    #[inline(always)]
    pub(super) fn read(layout: &SpanLayout, block: &'a [u8]) -> Result<Self, Damage> {
        let header = BlockHeader::<F>::read(block)?;
        // Most tables have one of these span lengths. The compiler turns division by a constant into a multiplication.
        const SPANS: [usize; 2] = [format::DEFAULT_SPANS[0] as usize, format::DEFAULT_SPANS[1] as usize];
        let spans = match layout.span_len {
            span if span == SPANS[0] => header.count.div_ceil(SPANS[0]),
            span if span == SPANS[1] => header.count.div_ceil(SPANS[1]),
            span => header.count.div_ceil(span),
        };
        let found = layout.header_bits::<F>(spans, header.width);
        if found > block.len() * 8 {
            return Err(Damage::Field {
                name: "width",
                found: u64::from(header.width),
                expected: "a directory that lies inside the block",
            });
        }
        Ok(SpanDirectory { block, header, spans, position_bits: layout.position_bits })
    }

    /// Returns the bit position of a span's directory entry. Span 0 has no entry.
    #[inline(always)]
    fn entry_position(&self, span: usize) -> usize {
        BlockHeader::<F>::LEN * 8 + (span - 1) * (self.header.width + self.position_bits) as usize
    }

    /// Returns the first fingerprint of a span.
    #[inline(always)]
    pub(super) fn restart(&self, span: usize) -> F {
        if span == 0 {
            return self.header.first;
        }
        self.header.first.wrapping_add(bits::read(self.block, self.entry_position(span), self.header.width))
    }

    /// Returns the bit positions where a span starts and ends.
    #[inline(always)]
    pub(super) fn span_bounds(&self, span: usize) -> Result<(usize, usize), Damage> {
        let position = |span: usize| {
            let at = self.entry_position(span) + self.header.width as usize;
            bits::read_u64(self.block, at, self.position_bits) as usize
        };
        let data = self.entry_position(self.spans);
        let start = if span == 0 { data } else { position(span) };
        let end = if span + 1 == self.spans { self.block.len() * 8 } else { position(span + 1) };
        if start < data || start > end || end > self.block.len() * 8 {
            return Err(Damage::Order { what: "the positions of a block's spans" });
        }
        Ok((start, end))
    }

    /// Guesses the span that contains `low`. The guess is right if the fingerprints from the block's first to its last one
    /// (`last`) are spread evenly.
    #[inline(always)]
    fn guess_span(&self, low: F, last: F) -> usize {
        let spread = last.wrapping_sub(self.header.first);
        let shift = (F::BITS - spread.leading_zeros()).saturating_sub(32);
        if low <= self.header.first || low >= last {
            return if low >= last { self.spans - 1 } else { 0 };
        }
        let below = (low.wrapping_sub(self.header.first) >> shift).low_u64();
        let all = (spread >> shift).low_u64() + 1;
        (below * self.spans as u64 / all) as usize
    }

    /// Returns the byte offsets of the two cache lines of the directory where the search for a span starts. They contain the
    /// entries from one span before `guess` to two spans after it. Mostly one line contains them all: then both offsets are
    /// the same.
    #[inline(always)]
    fn entry_lines(&self, guess: usize) -> (usize, usize) {
        let (from, to) = (self.entry_position(guess.max(2) - 1), self.entry_position(guess.max(1) + 3) - 1);
        (from / 8 / CACHE_LINE_BYTES * CACHE_LINE_BYTES, to / 8 / CACHE_LINE_BYTES * CACHE_LINE_BYTES)
    }

    /// Prefetches the directory entries where the search for the span of `low` starts. `last` is the block's last
    /// fingerprint.
    #[inline(always)]
    pub(super) fn prefetch(&self, low: F, last: F) {
        let (from, to) = self.entry_lines(self.guess_span(low, last));
        simd::prefetch(self.block, from);
        simd::prefetch(self.block, to);
    }

    /// Returns the last span whose first fingerprint is at most `low`, or span 0 if there is no such span. `last` is the
    /// block's last fingerprint.
    #[inline(always)]
    fn find_span(&self, low: F, last: F) -> usize {
        let guess = self.guess_span(low, last);
        match self.find_span_near(guess, low) {
            Some(span) => span,
            None => self.find_span_from(guess, low),
        }
    }

    /// Like [`SpanDirectory::find_span`], but examines only the spans around `guess`, and compares them all at
    /// once. Returns `None` if the result is not among them.
    #[inline(always)]
    fn find_span_near(&self, guess: usize, low: F) -> Option<usize> {
        let width = self.header.width;
        if F::BITS > 64 || !simd::has_fast_group8() || width > bits::MAX_SHORT_BITS || low < self.header.first
        {
            return None;
        }
        let lines = self.entry_lines(guess);
        let from = guess.max(2) - 1;
        let fields = FieldGroup8 {
            lines: [self.block.get(lines.0..)?.first_chunk()?, self.block.get(lines.1..)?.first_chunk()?],
            position: (self.entry_position(from) - lines.0 * 8) as u32,
            end: ((lines.1 - lines.0 + CACHE_LINE_BYTES) * 8) as u32,
            step: width + self.position_bits,
            width,
        };
        let (present, below) = fields.at_most_masks(low.wrapping_sub(self.header.first).low_u64());
        // Fields after the last span are not entries.
        let present = (present.count_ones() as usize).min(self.spans.saturating_sub(from));
        let below = (u32::from(below) & ((1 << present) - 1)).count_ones() as usize;
        let all = below == present && from + present < self.spans;
        (!all && (below > 0 || from == 1)).then(|| from + below - 1)
    }

    /// Like [`SpanDirectory::find_span`], but examines the span `guess` and its neighbours first. If none of them is the
    /// result, a binary search of the remaining spans follows.
    #[inline(never)]
    fn find_span_from(&self, guess: usize, low: F) -> usize {
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

    /// Returns the first span to read for the fingerprints from `low` to `high`. `last` is the block's last fingerprint.
    /// Returns `None` if all fingerprints of the block are greater than `high`.
    #[inline(always)]
    pub(super) fn locate(&self, low: F, high: F, last: F) -> Result<Option<ScanStart>, Damage> {
        let span = self.find_span(low, last);
        if span == 0 && self.header.first > high {
            return Ok(None);
        }
        let (start, end) = self.span_bounds(span)?;
        Ok(Some(ScanStart { index: span as u32, bytes: ((start / 8) as u32, (end / 8) as u32) }))
    }
}
