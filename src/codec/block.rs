//! The interface of a codec: its constants, and its work on one block.

use byteorder::{ByteOrder, LittleEndian};

use super::symbols::{Coding, Counts};
use crate::error::Damage;
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::huffman::Code;

/// Constants of a codec, the same for all tables.
pub(crate) struct Facts {
    /// In files.
    pub(super) number: u8,
    pub(super) name: &'static str,
    /// The version of the format that its tables say.
    pub(super) version: u32,
    /// Whether its tables have a Huffman code.
    pub(crate) has_code: bool,
    /// Number of symbols in the headers of its tables, by the bits of a fingerprint.
    pub(crate) symbols: fn(u32) -> usize,
    /// Fingerprints from one restart point to the next, unless said otherwise, of tables of fewer than [`format::MANY`]
    /// fingerprints and of others; `None` if it has no restart points.
    pub(super) default_spans: Option<[u16; 2]>,
    /// Of fingerprints of 64 and of 128 bits.
    pub(super) default_block_sizes: [u32; 2],
    pub(crate) costs: Costs,
}

/// Constants of a codec for the cost model (`plan/cost.rs`).
#[derive(Clone, Copy)]
pub(crate) struct Costs {
    /// Bits of a random fingerprint above 64 - log2 n, without what a block adds.
    pub(crate) bits: f64,
    /// A probe whose lines are in the cache, up to the place where it starts to decode, in nanoseconds.
    pub(crate) probe: f64,
    /// Decoding one fingerprint and comparing it, in nanoseconds.
    pub(crate) decode: f64,
    /// Waits for memory that each block adds: waits of a group overlap, so they are few if a probe reads two lines;
    /// the Huffman codecs read head, directory, words and tails.
    pub(crate) miss: f64,
}

/// One of the codecs, for any width of the fingerprints.
pub(crate) trait CodecKind: Sized {
    const FACTS: Facts;

    /// The codec of one table. A codec without a Huffman code or restart points has no use for these.
    fn new(code: &Code, span: u16, block_size: u32) -> Self;
}

/// How many fingerprints go into a block, and the bytes they take there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fit {
    pub(crate) count: usize,
    pub(crate) bytes: usize,
}

/// A block that can be decoded, and is not what its fingerprints are coded as.
pub(super) const OTHER_CODE: Damage = Damage::Mismatch { what: "a block and the code of its fingerprints" };

/// The work of a codec on one block.
///
/// Fingerprints are strictly ascending. A block's bytes may be anything: an answer is then an error or
/// nonsense, never a panic, and takes no longer than for a sound block.
pub(crate) trait BlockCodec<F: Fingerprint>: Sized {
    /// Counts the symbol of a fingerprint that follows some recent ones, the last of them its predecessor; a codec without a
    /// code counts nothing.
    fn count(recent: &[F], next: F, counts: &mut Counts);

    /// The longest start of `fingerprints` (not empty) that fits in `bytes` bytes, at least one.
    fn fit(&self, fingerprints: &[F], bytes: usize) -> Fit;

    /// Writes all of `fingerprints`, which fit, into a zeroed block, but for its checksum.
    fn encode(&self, fingerprints: &[F], block: &mut [u8]);

    /// Whether a block is coded as the format says, byte for byte; `fingerprints`, strictly ascending, were decoded from it.
    fn check(&self, block: &[u8], fingerprints: &[F]) -> Result<(), Damage>;

    /// How each of a block's fingerprints is coded, `None` for one without a symbol: in a codec without a code, for
    /// all. `fingerprints` are as for [`BlockCodec::check`].
    fn codings(&self, _: &[u8], fingerprints: &[F]) -> Result<Vec<Option<Coding>>, Damage> {
        Ok(vec![None; fingerprints.len()])
    }

    /// Appends the block's fingerprints to `fingerprints`, in order.
    fn decode(&self, block: &[u8], fingerprints: &mut Vec<F>) -> Result<(), Damage>;

    /// Whether [`BlockCodec::aim`] does something.
    const AIMS: bool;

    /// Asks for what [`BlockCodec::locate`] will read of the block besides its first line.
    fn aim(&self, block: &[u8], low: F, last: F) -> Result<(), Damage>;

    /// Where [`BlockCodec::visit_from`] starts in a block that ends with `last`; `None` if the head alone tells
    /// that no fingerprint lies in the range.
    fn locate(&self, block: &[u8], range: Range<F>, last: F) -> Result<Option<Spot>, Damage>;

    /// Calls `visitor` with the position in the block and the value of each fingerprint in the range that is near,
    /// in order. `spot` is the index of what [`BlockCodec::locate`] found for the range.
    fn visit_from(
        &self,
        block: &[u8],
        spot: u32,
        range: Range<F>,
        near: Near<F>,
        visitor: impl FnMut(usize, F),
    ) -> Result<(), Damage>;
}

/// Where in a block a look-up goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    /// A position in the codec's own unit.
    pub(crate) index: u32,
    /// The bytes of the block that are read next, from and to.
    pub(crate) bytes: (u32, u32),
}

/// The fingerprints from `low` to `high`, both included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range<F> {
    pub(crate) low: F,
    pub(crate) high: F,
}

/// The fingerprints within a distance of a query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Near<F> {
    pub(crate) query: F,
    pub(crate) distance: u32,
}

impl<F: Fingerprint> Near<F> {
    /// All fingerprints.
    pub(crate) const ALL: Self = Near { query: F::ZERO, distance: F::BITS };

    #[inline(always)]
    pub(crate) fn holds(self, value: F) -> bool {
        (value ^ self.query).count_ones() <= self.distance
    }
}

/// The start of every block: checksum, number of fingerprints, the codec's parameter, first fingerprint.
pub(crate) struct BlockHeader<F> {
    /// Number of fingerprints, at least 1.
    pub(crate) count: usize,
    /// `elias-fano`: width of the lower bits; the others: width of a restart value.
    pub(crate) width: u32,
    pub(crate) first: F,
}

impl<F: Fingerprint> BlockHeader<F> {
    /// Length in bytes.
    pub(crate) const LEN: usize = format::BLOCK_FIRST + F::BYTES;

    #[inline(always)]
    pub(crate) fn read(block: &[u8]) -> Result<Self, Damage> {
        if block.len() < Self::LEN {
            return Err(Damage::Truncated { expected: Self::LEN as u64, found: block.len() as u64 });
        }
        let fields = LittleEndian::read_u64(block);
        let count = usize::from((fields >> (8 * format::BLOCK_COUNT)) as u16);
        let width = u32::from((fields >> (8 * format::BLOCK_WIDTH)) as u16);
        // Every fingerprint after the first takes at least a bit: no count makes a reader work in vain.
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
