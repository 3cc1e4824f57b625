//! The codec of tables with prefix lines: the first bits of each fingerprint are in the lines, and the other bits in
//! blocks, at fixed width. The *rank* of a fingerprint (the number of fingerprints before it in the table) tells its block
//! and its place in the block.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use super::block_codec::{
    Block, BlockCodec, BlockFit, BlockHeader, CodecCosts, CodecKind, CodecParameters, CodecSpec,
    FingerprintRange, HammingBall, NONCONFORMING_BLOCK, ScanStart,
};
use super::symbols::SymbolHistogram;
use crate::bits;
use crate::error::Damage;
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::prefix_lines::{KeyRun, LINE_BYTES, PrefixLines};

/// The codec `prefix-lines` of one table.
#[derive(Debug)]
pub(crate) struct PrefixLinesCodec {
    /// Number of leading bits of a fingerprint that the lines have.
    key_bits: u32,
    block_size: u32,
    /// The lines. `None` while the table is written, and in a table without fingerprints.
    lines: Option<Arc<PrefixLines>>,
}

impl CodecKind for PrefixLinesCodec {
    const SPEC: CodecSpec = CodecSpec {
        number: 4,
        name: "prefix-lines",
        has_code: false,
        has_lines: true,
        alphabet_size: |_| 0,
        default_spans: None,
        default_block_sizes: [4096, 4096],
        // Times set by hand to measurements of 1 to 100 million random fingerprints at k = 3, 6, 8 and 10, with AVX2.
        costs: CodecCosts { bits: 7.7, probe: 14.0, decode: 15.0, miss: 0.05 },
    };

    fn new(parameters: CodecParameters<'_>) -> Self {
        PrefixLinesCodec {
            key_bits: parameters.line_shape.map_or(format::MIN_KEY_BITS, |shape| shape.key_bits()),
            block_size: parameters.block_size,
            lines: parameters.lines.cloned(),
        }
    }
}

impl PrefixLinesCodec {
    /// Number of bits of a fingerprint after its prefix.
    #[inline(always)]
    fn suffix_bits<F: Fingerprint>(&self) -> u32 {
        F::BITS - self.key_bits
    }

    /// Returns the number of fingerprints in each block but the last.
    #[inline(always)]
    pub(crate) fn block_fingerprints<F: Fingerprint>(&self) -> u64 {
        let bits = self.block_size * 8 - BlockHeader::<F>::LEN as u32 * 8;
        u64::from(bits / self.suffix_bits::<F>()).min(format::MAX_BLOCK_FINGERPRINTS as u64)
    }

    /// Returns the prefix of a fingerprint, as a number.
    #[inline(always)]
    pub(crate) fn key<F: Fingerprint>(&self, fingerprint: F) -> u64 {
        (fingerprint >> self.suffix_bits::<F>()).low_u64()
    }

    /// Returns a fingerprint of a block from its prefix and its place in the block.
    #[inline(always)]
    pub(crate) fn fingerprint<F: Fingerprint>(&self, key: u64, block: &[u8], position: usize) -> F {
        let width = self.suffix_bits::<F>();
        F::from_u64(key) << width | bits::read(block, suffix_position::<F>(position, width), width)
    }

    /// Offset in a block of the first byte of a fingerprint's suffix.
    #[inline(always)]
    pub(crate) fn suffix_byte<F: Fingerprint>(&self, position: usize) -> usize {
        suffix_position::<F>(position, self.suffix_bits::<F>()) / 8
    }

    /// Number of whole suffixes in the length of a cache line.
    pub(crate) fn suffixes_per_line<F: Fingerprint>(&self) -> u64 {
        LINE_BYTES as u64 * 8 / u64::from(self.suffix_bits::<F>().max(1))
    }

    /// Reads the header of a block. Returns it with the ranks of the fingerprints in the block.
    #[inline(always)]
    fn read<F: Fingerprint>(&self, block: Block<'_>) -> Result<(BlockHeader<F>, Range<u64>), Damage> {
        let header = BlockHeader::<F>::read(block.bytes)?;
        let width = self.suffix_bits::<F>();
        if header.width != width {
            let expected = "the bits of a fingerprint less the key bits";
            return Err(Damage::Field { name: "width", found: u64::from(header.width), expected });
        }
        let capacity = self.block_fingerprints::<F>();
        let first = block.number as u64 * capacity;
        let is_inside = suffix_position::<F>(header.count, width) <= block.bytes.len() * 8;
        if header.count as u64 > capacity || !is_inside {
            let expected = "as many fingerprints as have room in the block";
            return Err(Damage::Field { name: "count", found: header.count as u64, expected });
        }
        let count = header.count as u64;
        Ok((header, first..first + count))
    }

    /// Calls `visitor` with the keys of the fingerprints that have the ranks `ranks` and a prefix of at most `high`. `low` is at
    /// most the prefix of the first of them. The arguments of `visitor` are the rank and the prefix.
    #[inline(always)]
    fn visit_keys(
        &self,
        ranks: Range<u64>,
        low: u64,
        high: u64,
        mut visitor: impl FnMut(u64, u64),
    ) -> Result<u64, Damage> {
        let mut next = ranks.start;
        let Some(lines) = &self.lines else { return Ok(next) };
        let visit = |run: KeyRun| {
            let end = run.rank.saturating_add(run.count).min(ranks.end);
            if run.rank <= next {
                while next < end {
                    visitor(next, run.key);
                    next += 1;
                }
            }
            // A gap in the ranks ends the walk, too. The caller misses the keys after it.
            if run.rank > next || next >= ranks.end {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        lines.visit(low, high, visit)?;
        Ok(next)
    }
}

/// Returns the bit position in a block of the suffix of the fingerprint with the index `position`. A suffix has `width` bits.
#[inline(always)]
fn suffix_position<F: Fingerprint>(position: usize, width: u32) -> usize {
    BlockHeader::<F>::LEN * 8 + position * width as usize
}

/// Error for a block with fingerprints that have no key in the lines.
const NO_KEY: Damage =
    Damage::Mismatch { what: "the fingerprints of a block and the keys of the prefix lines" };

impl<F: Fingerprint> BlockCodec<F> for PrefixLinesCodec {
    fn count(_: &[F], _: F, _: &mut SymbolHistogram) {}

    fn fit(&self, fingerprints: &[F], _: usize) -> BlockFit {
        let count = fingerprints.len().min(self.block_fingerprints::<F>() as usize);
        let bytes = suffix_position::<F>(count, self.suffix_bits::<F>()).div_ceil(8);
        BlockFit { count, bytes }
    }

    fn encode(&self, fingerprints: &[F], block: &mut [u8]) {
        let width = self.suffix_bits::<F>();
        BlockHeader { count: fingerprints.len(), width, first: fingerprints[0] }.write(block);
        for (i, &fingerprint) in fingerprints.iter().enumerate() {
            let suffix = fingerprint & F::suffix_mask(width);
            bits::write(block, suffix_position::<F>(i, width), width, suffix);
        }
    }

    fn check(&self, block: Block<'_>, fingerprints: &[F]) -> Result<(), Damage> {
        let mut again = vec![0; block.bytes.len()];
        self.encode(fingerprints, &mut again);
        if again[format::BLOCK_COUNT..] == block.bytes[format::BLOCK_COUNT..] {
            Ok(())
        } else {
            Err(NONCONFORMING_BLOCK)
        }
    }

    #[inline(always)]
    fn decode(&self, block: Block<'_>, fingerprints: &mut Vec<F>) -> Result<(), Damage> {
        let (header, ranks) = self.read::<F>(block)?;
        fingerprints.reserve(header.count);
        let (first_rank, end) = (ranks.start, ranks.end);
        let reached =
            self.visit_keys(ranks, self.key(header.first), u64::MAX >> (64 - self.key_bits), |rank, key| {
                fingerprints.push(self.fingerprint(key, block.bytes, (rank - first_rank) as usize));
            })?;
        if reached == end { Ok(()) } else { Err(NO_KEY) }
    }

    const PREFETCHES_FOR_LOCATE: bool = false;

    #[inline(always)]
    fn prefetch_for_locate(&self, _: Block<'_>, _: F, _: F) -> Result<(), Damage> {
        Ok(())
    }

    #[inline(always)]
    fn locate(
        &self,
        block: Block<'_>,
        FingerprintRange { low, high }: FingerprintRange<F>,
        _: F,
    ) -> Result<Option<ScanStart>, Damage> {
        let (header, ranks) = self.read::<F>(block)?;
        let Some(lines) = &self.lines else { return Ok(None) };
        if high < header.first {
            return Ok(None);
        }
        let rank =
            if low <= header.first { ranks.start } else { lines.rank_of(self.key(low))?.max(ranks.start) };
        if rank >= ranks.end {
            return Ok(None);
        }
        let index = (rank - ranks.start) as u32;
        let byte = self.suffix_byte::<F>(index as usize) as u32;
        Ok(Some(ScanStart { index, bytes: (byte, byte) }))
    }

    #[inline(always)]
    fn visit_from(
        &self,
        block: Block<'_>,
        start_index: u32,
        FingerprintRange { low, high }: FingerprintRange<F>,
        ball: HammingBall<F>,
        mut visitor: impl FnMut(usize, F),
    ) -> Result<(), Damage> {
        let (header, ranks) = self.read::<F>(block)?;
        let (first_rank, start) = (ranks.start, ranks.start + u64::from(start_index));
        let low_key = self.key(low.max(header.first));
        self.visit_keys(start..ranks.end, low_key, self.key(high), |rank, key| {
            let position = (rank - first_rank) as usize;
            let value = self.fingerprint(key, block.bytes, position);
            if low <= value && value <= high && ball.contains(value) {
                visitor(position, value);
            }
        })?;
        Ok(())
    }
}
