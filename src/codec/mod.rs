//! Codecs: how the fingerprints of a block are coded (`format-spec/table.md`, "Blocks").
//!
//! | codec | what is coded | bits per random fingerprint |
//! |---|---|---|
//! | `first-difference` | position of the first bit that differs from the predecessor, then the bits after it | 64 - log2 n + 3.40 |
//! | `gap` | position of the top bit of the difference to the predecessor, then the bits after it | 64 - log2 n + 1.52 |
//! | `elias-fano` | upper bits in unary, lower bits at fixed width | 64 - log2 n + 2.0 |
//! | `all-differences` | position of the first bit that differs and number of those after it, then where these are; as `gap` where they are many | 64 - log2 n + 1.52 |

mod all_differences;
mod difference;
mod elias_fano;
mod spans;
mod symbols;

use std::fmt;
use std::str::FromStr;

use byteorder::{ByteOrder, LittleEndian};

use self::all_differences::AllDifferences;
use self::difference::{Difference, FirstDifference, Gap};
use self::elias_fano::EliasFano;
pub use self::symbols::Coding;
use self::symbols::Counts;
pub(crate) use self::symbols::SymbolCounts;
use crate::error::{Damage, Error, excerpt};
use crate::fingerprint::Fingerprint;
use crate::format;
use crate::huffman::Code;

/// Makes [`Codec`], [`AnyCodec`] and `with_codec!` of the list of codecs; `$d` is a dollar sign.
macro_rules! codecs {
    ($d:tt $($(#[$attribute:meta])* $name:ident: $codec:ty,)*) => {
        /// Which codec a table is written with.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Codec {
            $($(#[$attribute])* $name,)*
        }

        impl Codec {
            /// All codecs.
            pub const ALL: [Codec; [$(Codec::$name),*].len()] = [$(Codec::$name),*];

            pub(crate) fn facts(self) -> &'static Facts {
                match self {
                    $(Codec::$name => &<$codec>::FACTS,)*
                }
            }

            /// Counts what the Huffman code is for: see [`BlockCodec::count`].
            #[inline]
            fn count<F: Fingerprint>(self, recent: &[F], next: F, counts: &mut Counts) {
                match self {
                    $(Codec::$name => <$codec as BlockCodec<F>>::count(recent, next, counts),)*
                }
            }
        }

        /// The codec of one table, whichever it is.
        #[derive(Debug)]
        pub(crate) enum AnyCodec {
            $($name($codec),)*
        }

        impl AnyCodec {
            /// Code, span and block size are those of the table's header.
            pub(crate) fn new(codec: Codec, code: &Code, span: u16, block_size: u32) -> AnyCodec {
                match codec {
                    $(Codec::$name => AnyCodec::$name(<$codec>::new(code, span, block_size)),)*
                }
            }
        }

        $(impl Choice for $codec {
            #[inline(always)]
            fn of(any: &AnyCodec) -> Option<&$codec> {
                match any {
                    AnyCodec::$name(codec) => Some(codec),
                    _ => None,
                }
            }
        })*

        /// Calls something generic with the codec of a table: one match here, none in the loops.
        macro_rules! with_codec {
            ($d any:expr, $d codec:ident => $d call:expr) => {
                match $d any {
                    $($crate::codec::AnyCodec::$name($d codec) => $d call,)*
                }
            };
        }
    };
}

// A new codec is a line here, and a file with what it is and does.
codecs! {
    $
    /// The paper's: Huffman code of the position of the first bit that differs from the predecessor, then
    /// the bits after it.
    #[default]
    FirstDifference: Difference<FirstDifference>,
    /// Huffman code of the position of the top bit of the difference to the predecessor, then the bits
    /// after it. The smallest.
    Gap: Difference<Gap>,
    /// Elias-Fano, one per block: look-ups go straight to their range and decode nothing before it.
    EliasFano: EliasFano,
    /// Huffman code of how many bits differ from a fingerprint before, then the positions of all of them, where these are
    /// few; else as [`Codec::Gap`]. The smallest where many are near one another.
    AllDifferences: AllDifferences,
}
#[expect(
    clippy::single_component_path_imports,
    reason = "without it the name is known in this module alone"
)]
pub(crate) use with_codec;

/// What is known of a codec before there is a table.
pub(crate) struct Facts {
    /// In files.
    number: u8,
    name: &'static str,
    /// The version of the format that its tables say.
    version: u32,
    /// Whether its tables have a Huffman code.
    pub(crate) has_code: bool,
    /// Number of symbols for which its tables' headers have room, of fingerprints of so many bits.
    pub(crate) symbols: fn(u32) -> usize,
    /// Fingerprints from one restart point to the next, unless said otherwise, of tables of fewer than [`format::MANY`]
    /// fingerprints and of others; `None` if it has no restart points.
    default_spans: Option<[u16; 2]>,
    /// Of fingerprints of 64 and of 128 bits.
    default_block_sizes: [u32; 2],
    pub(crate) costs: Costs,
}

/// What the cost model (`plan/cost.rs`) has to know of a codec.
#[derive(Clone, Copy)]
pub(crate) struct Costs {
    /// Bits of a random fingerprint above 64 - log2 n, without what a block adds.
    pub(crate) bits: f64,
    /// A probe whose lines are in the cache, up to the place where it starts to decode, in nanoseconds.
    pub(crate) probe: f64,
    /// Decoding one fingerprint and comparing it, in nanoseconds.
    pub(crate) decode: f64,
    /// How many waits for memory each block adds: those of a group overlap, so few where a probe reads two lines;
    /// the Huffman codecs read head, directory, words and tails.
    pub(crate) miss: f64,
}

impl Codec {
    /// The block size of a table that is not told one, in bytes, for fingerprints of `bits` bits: what keeps
    /// look-ups short and the block index, a fingerprint a block, under 0.1 byte a fingerprint. Measured in
    /// `BENCHMARKS.md`, "Block size and span".
    pub fn default_block_size(self, bits: u32) -> u32 {
        self.facts().default_block_sizes[usize::from(bits > 64)]
    }

    /// Fingerprints from one restart point to the next of a table of so many that is not told; `None` if it has no
    /// restart points.
    pub(crate) fn default_span(self, fingerprints: u64) -> Option<u16> {
        self.facts().default_spans.map(|spans| spans[usize::from(fingerprints >= format::MANY)])
    }

    /// Whether its blocks have restart points.
    pub(crate) fn has_spans(self) -> bool {
        self.facts().default_spans.is_some()
    }

    /// The version of the format that its tables say, and that manifests say at least that name it.
    pub(crate) fn version(self) -> u32 {
        self.facts().version
    }

    /// Number of code lengths in the header of its tables.
    pub(crate) fn symbols(self, bits: u32) -> usize {
        (self.facts().symbols)(bits)
    }

    /// The codec's number in files.
    pub(crate) fn number(self) -> u8 {
        self.facts().number
    }

    /// The codec of a number in a file.
    pub(crate) fn of_number(number: u8) -> Result<Codec, Damage> {
        Codec::ALL.into_iter().find(|codec| codec.number() == number).ok_or(Damage::Field {
            name: "codec",
            found: u64::from(number),
            expected: "the number of a codec that this version knows",
        })
    }

    /// The name used on the command line and in reports.
    pub fn name(self) -> &'static str {
        self.facts().name
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
            let [first @ .., last] = Codec::ALL.map(Codec::name);
            let expected = format!("{} or {last}", first.join(", "));
            Error::BadArgument(format!("there is no codec `{}`; expected {expected}", excerpt(name)))
        })
    }
}

/// One of the codecs, whatever the width of the fingerprints.
pub(crate) trait CodecKind: Sized {
    const FACTS: Facts;

    /// The codec of one table. A codec without a Huffman code or restart points has no use for these.
    fn new(code: &Code, span: u16, block_size: u32) -> Self;
}

/// One of the choices of [`AnyCodec`].
pub(crate) trait Choice: Sized {
    /// The codec of a table, if it is this one.
    fn of(any: &AnyCodec) -> Option<&Self>;
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
pub(crate) trait BlockCodec<F: Fingerprint>: Choice {
    /// Counts the symbol that stands in the Huffman code for a fingerprint after some recent ones, the last its
    /// predecessor; a codec without a code counts nothing.
    fn count(recent: &[F], next: F, counts: &mut Counts);

    /// The longest start of `fingerprints` (not empty) that fits in `bytes` bytes, at least one.
    fn fit(&self, fingerprints: &[F], bytes: usize) -> Fit;

    /// Writes all of `fingerprints`, which fit, into a zeroed block, but for its checksum.
    fn encode(&self, fingerprints: &[F], block: &mut [u8]);

    /// Whether a block is coded as the format says, byte for byte; `fingerprints`, strictly ascending, are what it was
    /// decoded to.
    fn check(&self, block: &[u8], fingerprints: &[F]) -> Result<(), Damage>;

    /// How each of a block's fingerprints is coded, `None` where no symbol stands for it: in a codec without a code, for
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

#[cfg(test)]
mod tests;
