//! Codecs: how the fingerprints of a block are coded (`format-spec/table.md`, "Blocks").
//!
//! | codec | what is coded | bits per random fingerprint |
//! |---|---|---|
//! | `first-difference` | position of the first bit that differs from the predecessor, then the bits after it | 64 - log2 n + 3.40 |
//! | `gap` | position of the top bit of the difference to the predecessor, then the bits after it | 64 - log2 n + 1.52 |
//! | `elias-fano` | upper bits in unary, lower bits at fixed width | 64 - log2 n + 2.0 |

mod difference;
mod elias_fano;

use std::fmt;
use std::str::FromStr;

use byteorder::{ByteOrder, LittleEndian};

pub(crate) use self::difference::{Difference, FirstDifference, Gap, Step};
pub(crate) use self::elias_fano::EliasFano;
use crate::error::{Damage, Error};
use crate::fingerprint::Fingerprint;
use crate::format;

/// Which codec a table is written with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// The paper's: Huffman code of the position of the first bit that differs from the predecessor, then
    /// the bits after it.
    #[default]
    FirstDifference,
    /// Huffman code of the position of the top bit of the difference to the predecessor, then the bits
    /// after it. The smallest.
    Gap,
    /// Elias-Fano, one per block: look-ups go straight to their range and decode nothing before it.
    EliasFano,
}

impl Codec {
    /// All codecs.
    pub const ALL: [Codec; 3] = [Codec::FirstDifference, Codec::Gap, Codec::EliasFano];

    /// The block size of a table that is not told one, in bytes, for fingerprints of `bits` bits: what keeps
    /// look-ups short and the block index, a fingerprint a block, under 0.1 byte a fingerprint. Measured in
    /// `BENCHMARKS.md`, "Block size and span".
    pub fn default_block_size(self, bits: u32) -> u32 {
        match (self, bits) {
            (Codec::EliasFano, 64) => 512,
            _ => 4096,
        }
    }

    /// The codec's number in files.
    pub(crate) fn number(self) -> u8 {
        match self {
            Codec::FirstDifference => 0,
            Codec::Gap => 1,
            Codec::EliasFano => 2,
        }
    }

    /// The codec of a number in a file.
    pub(crate) fn of_number(number: u8) -> Option<Codec> {
        Codec::ALL.into_iter().find(|codec| codec.number() == number)
    }

    /// The name used on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Codec::FirstDifference => "first-difference",
            Codec::Gap => "gap",
            Codec::EliasFano => "elias-fano",
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Codec {
    type Err = Error;

    fn from_str(name: &str) -> Result<Codec, Error> {
        Codec::ALL.into_iter().find(|codec| codec.name() == name).ok_or_else(|| {
            Error::BadArgument(format!(
                "there is no codec `{name}`; expected first-difference, gap or elias-fano"
            ))
        })
    }
}

/// How many fingerprints go into a block, and the bytes they take there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fit {
    pub(crate) count: usize,
    pub(crate) bytes: usize,
}

/// A block that can be decoded, and is not what its fingerprints are coded as.
const OTHER_CODE: Damage = Damage::Mismatch { what: "a block and the code of its fingerprints" };

/// What a codec does with one block.
///
/// Fingerprints are strictly ascending. A block's bytes may be anything: an answer is then an error or
/// nonsense, never a panic, and takes no longer than that of a block in order.
pub(crate) trait BlockCodec<F: Fingerprint> {
    /// The longest start of `fingerprints` (not empty) that fits in `bytes` bytes, at least one.
    fn fit(&self, fingerprints: &[F], bytes: usize) -> Fit;

    /// Writes all of `fingerprints`, which fit, into a zeroed block, but for its checksum.
    fn encode(&self, fingerprints: &[F], block: &mut [u8]);

    /// Whether a block is coded as the format says, byte for byte; `fingerprints`, strictly ascending, are what it was
    /// decoded to.
    fn check(&self, block: &[u8], fingerprints: &[F]) -> Result<(), Damage>;

    /// Appends the block's fingerprints to `fingerprints`, in order.
    fn decode(&self, block: &[u8], fingerprints: &mut Vec<F>) -> Result<(), Damage>;

    /// Whether [`BlockCodec::aim`] tells something.
    const AIMS: bool;

    /// The byte of the block that [`BlockCodec::locate`] will read next, after the block's first line.
    fn aim(&self, block: &[u8], low: F, last: F) -> Result<usize, Damage>;

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
    /// What this counts is the codec's business.
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
    /// `first-difference`, `gap`: width of a restart value; `elias-fano`: width of the lower bits.
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

#[cfg(test)]
mod tests;
