//! The interface of a codec: its constants, and the operations on one block.

use std::sync::Arc;

use byteorder::{ByteOrder, LittleEndian};

use super::symbols::{Coding, SymbolHistogram};
use crate::error::Damage;
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::huffman::HuffmanCode;
use crate::prefix_lines::{LineShape, PrefixLines};

/// Constants of a codec, the same for all its tables.
pub(crate) struct CodecSpec {
    /// Number that identifies the codec in files.
    pub(super) number: u8,
    pub(super) name: &'static str,
    /// Whether the codec's tables have a Huffman code.
    pub(crate) has_code: bool,
    /// Whether the codec's tables have prefix lines.
    pub(crate) has_lines: bool,
    /// Returns the number of Huffman symbols for fingerprints of the given width in bits.
    pub(crate) alphabet_size: fn(u32) -> usize,
    /// Default number of fingerprints from one restart point (a fingerprint where decoding can start) to the next.
    /// The first value is for tables with fewer than [`format::LARGE_TABLE_FINGERPRINTS`] fingerprints, the second
    /// for larger ones. `None` if the codec has no restart points.
    pub(super) default_spans: Option<[u16; 2]>,
    /// Default block sizes in bytes, for fingerprints of 64 and of 128 bits.
    pub(super) default_block_sizes: [u32; 2],
    pub(crate) costs: CodecCosts,
}

/// Constants of a codec for the cost model (`plan/cost_model.rs`). Times are for 64-bit fingerprints.
#[derive(Clone, Copy)]
pub(crate) struct CodecCosts {
    /// Constant c of the mean size of a coded fingerprint: a table of n random fingerprints of f bits takes about
    /// f - log2 n + c bits for each. Block headers and directories are not included.
    pub(crate) bits: f64,
    /// Time in nanoseconds of a probe (the look-up of one prefix in a table) up to the start of decoding, if all
    /// memory that it reads is in the cache.
    pub(crate) probe: f64,
    /// Time to decode one fingerprint and compare it, in nanoseconds.
    pub(crate) decode: f64,
    /// Mean number of memory waits (cache misses) for each block that a probe reads. It may be below 1, because the
    /// waits of several probes overlap. `elias-fano` reads about two cache lines of a block. The Huffman codecs read
    /// more: header, directory, code words and tails.
    pub(crate) miss: f64,
}

/// The part of a codec that does not depend on the width of the fingerprints: constants and constructor.
pub(crate) trait CodecKind: Sized {
    const SPEC: CodecSpec;

    /// Creates the codec of one table.
    fn new(parameters: CodecParameters<'_>) -> Self;
}

/// The parts of a table that its codec needs.
#[derive(Clone, Copy)]
pub(crate) struct CodecParameters<'a> {
    /// Huffman code of the table, without words if the codec uses none.
    pub(crate) code: &'a HuffmanCode,
    /// Number of fingerprints from one restart point (a fingerprint where decoding can start) to the next; 0 if the codec
    /// has no restart points.
    pub(crate) span: u16,
    /// Size of a block in bytes.
    pub(crate) block_size: u32,
    /// Shape of the main prefix lines, if the table has prefix lines.
    pub(crate) line_shape: Option<LineShape>,
    /// The prefix lines of a table that is read; `None` if the table has none, or is written.
    pub(crate) lines: Option<&'a Arc<PrefixLines>>,
}

/// The bytes of a block, and the index of the block in its table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'a> {
    pub(crate) number: usize,
    pub(crate) bytes: &'a [u8],
}

/// The number of fingerprints that fit in a block, and the bytes that they need there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockFit {
    pub(crate) count: usize,
    pub(crate) bytes: usize,
}

/// Error for a block that can be decoded, but that differs from what a conforming writer writes for its fingerprints.
pub(super) const NONCONFORMING_BLOCK: Damage =
    Damage::Mismatch { what: "a block and the code of its fingerprints" };

/// The operations of a codec on one block.
///
/// Fingerprints are strictly ascending. The methods that read a block do not trust its bytes: for arbitrary bytes
/// they return an error or wrong fingerprints, but never panic, and take no longer than for a valid block.
pub(crate) trait BlockCodec<F: Fingerprint>: Sized {
    /// Counts, in `histogram`, the Huffman symbol that codes `next`. `recent` has the fingerprints before `next`;
    /// the last one is its predecessor. A codec without a Huffman code counts nothing.
    fn count(recent: &[F], next: F, histogram: &mut SymbolHistogram);

    /// Returns how many of `fingerprints`, from the first one on, fit in a block of `bytes` bytes: at least one.
    /// `fingerprints` must not be empty.
    fn fit(&self, fingerprints: &[F], bytes: usize) -> BlockFit;

    /// Writes `fingerprints` into a zeroed block that is large enough for all of them. The caller writes the checksum.
    fn encode(&self, fingerprints: &[F], block: &mut [u8]);

    /// Checks that a block has exactly the bytes that the format prescribes. `fingerprints`, strictly ascending, were decoded
    /// from it.
    fn check(&self, block: Block<'_>, fingerprints: &[F]) -> Result<(), Damage>;

    /// Returns the coding of each fingerprint of a block. The coding is `None` for restart points (fingerprints
    /// where decoding can start), and for all fingerprints if the codec has no Huffman code. `fingerprints`,
    /// strictly ascending, were decoded from the block.
    fn codings(&self, _: Block<'_>, fingerprints: &[F]) -> Result<Vec<Option<Coding>>, Damage> {
        Ok(vec![None; fingerprints.len()])
    }

    /// Appends the block's fingerprints to `fingerprints`, in order.
    fn decode(&self, block: Block<'_>, fingerprints: &mut Vec<F>) -> Result<(), Damage>;

    /// Whether [`BlockCodec::prefetch_for_locate`] does anything.
    const PREFETCHES_FOR_LOCATE: bool;

    /// Prefetches the cache lines that [`BlockCodec::locate`] will read for a range that starts at `low`, except for
    /// the first line of the block. `last` is the block's last fingerprint.
    fn prefetch_for_locate(&self, block: Block<'_>, low: F, last: F) -> Result<(), Damage>;

    /// Returns the position where [`BlockCodec::visit_from`] starts to decode for `range`. `last` is the block's
    /// last fingerprint. Returns `None` if it is clear without decoding that the block has no fingerprint in the
    /// range.
    fn locate(
        &self,
        block: Block<'_>,
        range: FingerprintRange<F>,
        last: F,
    ) -> Result<Option<ScanStart>, Damage>;

    /// Calls `visitor` with each fingerprint that lies in both `range` and `ball`, in ascending order. The arguments of
    /// `visitor` are the fingerprint's position in the block and its value. `start_index` is the
    /// [`index`](ScanStart::index) that [`BlockCodec::locate`] returned for the range.
    fn visit_from(
        &self,
        block: Block<'_>,
        start_index: u32,
        range: FingerprintRange<F>,
        ball: HammingBall<F>,
        visitor: impl FnMut(usize, F),
    ) -> Result<(), Damage>;
}

/// The position in a block where a look-up starts to decode.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanStart {
    /// Index of a span (a sequence of fingerprints that is decoded from its start) in the block. For `elias-fano`,
    /// a bit position in the block's upper bits. For `prefix-lines`, the index of a fingerprint in the block.
    pub(crate) index: u32,
    /// Offsets in the block of the first and the last byte that the look-up reads next.
    pub(crate) bytes: (u32, u32),
}

/// The fingerprints from `low` to `high`, both included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FingerprintRange<F> {
    pub(crate) low: F,
    pub(crate) high: F,
}

/// The fingerprints within a Hamming distance of a query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HammingBall<F> {
    pub(crate) query: F,
    pub(crate) distance: u32,
}

impl<F: Fingerprint> HammingBall<F> {
    /// The ball that contains all fingerprints.
    pub(crate) const ALL: Self = HammingBall { query: F::ZERO, distance: F::BITS };

    #[inline(always)]
    pub(crate) fn contains(self, value: F) -> bool {
        (value ^ self.query).count_ones() <= self.distance
    }
}

/// The fields at the start of every block, after its checksum.
pub(crate) struct BlockHeader<F> {
    /// Number of fingerprints, at least 1.
    pub(crate) count: usize,
    /// With the codec `elias-fano`, width in bits of the lower part of a fingerprint; with `prefix-lines`, width of the bits
    /// after the prefix. With other codecs, width in bits of a restart point (the first fingerprint of a span).
    pub(crate) width: u32,
    pub(crate) first: F,
}

impl<F: Fingerprint> BlockHeader<F> {
    /// Number of bytes at the start of a block that its checksum and the fields of this header take.
    pub(crate) const LEN: usize = format::BLOCK_FIRST + F::BYTES;

    #[inline(always)]
    pub(crate) fn read(block: &[u8]) -> Result<Self, Damage> {
        if block.len() < Self::LEN {
            return Err(Damage::Truncated { expected: Self::LEN as u64, found: block.len() as u64 });
        }
        let fields = LittleEndian::read_u64(block);
        let count = usize::from((fields >> (8 * format::BLOCK_COUNT)) as u16);
        let width = u32::from((fields >> (8 * format::BLOCK_WIDTH)) as u16);
        // Every fingerprint after the first takes at least one bit. A larger count would let a damaged block waste time.
        if count == 0 || count > block.len() * 8 {
            return Err(Damage::Field {
                name: "count",
                found: count as u64,
                expected: "1 to the number of bits of the block",
            });
        }
        if width > F::BITS {
            return Err(Damage::Field {
                name: "width",
                found: u64::from(width),
                expected: "at most the bits of a fingerprint",
            });
        }
        Ok(BlockHeader { count, width, first: F::read_le(&block[format::BLOCK_FIRST..]) })
    }

    pub(crate) fn write(&self, block: &mut [u8]) {
        LittleEndian::write_u16(&mut block[format::BLOCK_COUNT..], self.count as u16);
        LittleEndian::write_u16(&mut block[format::BLOCK_WIDTH..], self.width as u16);
        self.first.write_le(&mut block[format::BLOCK_FIRST..]);
    }
}
