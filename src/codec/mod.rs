//! Codecs: the encodings of the fingerprints in a block (`format-spec/blocks.md`).
//!
//! The codecs, each with the mean size of a coded fingerprint in a table of n random fingerprints of 64 bits:
//!
//! | codec | coded values | bits per fingerprint |
//! |---|---|---|
//! | `first-difference` | position of the first bit that differs from the predecessor, then the bits after it | 64 - log2 n + 3.40 |
//! | `gap` | position of the top bit of the difference to the predecessor, then the bits after it | 64 - log2 n + 1.52 |
//! | `elias-fano` | upper bits in unary, lower bits at fixed width | 64 - log2 n + 2.0 |
//! | `all-differences` | position of the first differing bit and number of later ones, then their positions; like `gap` if many bits differ | 64 - log2 n + 1.52 |
//! | `prefix-lines` | a prefix of q bits, q - 8 by position and 8 in a byte; the other bits at fixed width | 64 - log2 n + 7.7 |

mod all_differences;
mod block_codec;
mod delta;
mod elias_fano;
mod prefix_lines;
mod spans;
mod symbol_counter;
mod symbols;

use std::fmt;
use std::str::FromStr;

use self::all_differences::AllDifferences;
pub(crate) use self::block_codec::{
    Block, BlockCodec, BlockHeader, CodecCosts, CodecParameters, FingerprintRange, HammingBall,
};
use self::block_codec::{CodecKind, CodecSpec};
use self::delta::{FirstDifference, Gap};
use self::elias_fano::EliasFano;
pub(crate) use self::prefix_lines::PrefixLinesCodec;
pub(crate) use self::symbol_counter::SymbolCounter;
pub use self::symbols::Coding;
use self::symbols::SymbolHistogram;
use crate::error::{Damage, Error, find_by_name};
use crate::fingerprint::Fingerprint;
use crate::format;

/// Defines [`Codec`], [`AnyCodec`] and `with_codec!` from the list of codecs. `$d` is a dollar sign: the inner macro needs it.
macro_rules! codecs {
    ($d:tt $($(#[$attribute:meta])* $name:ident: $codec:ty,)*) => {
        /// Codec of the blocks of a table.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Codec {
            $($(#[$attribute])* $name,)*
        }

        impl Codec {
            /// All codecs.
            pub const ALL: [Codec; [$(Codec::$name),*].len()] = [$(Codec::$name),*];

            pub(crate) fn spec(self) -> &'static CodecSpec {
                match self {
                    $(Codec::$name => &<$codec>::SPEC,)*
                }
            }

            /// Counts the Huffman symbol that codes one fingerprint; see [`BlockCodec::count`].
            #[inline]
            fn count<F: Fingerprint>(self, recent: &[F], next: F, histogram: &mut SymbolHistogram) {
                match self {
                    $(Codec::$name => <$codec as BlockCodec<F>>::count(recent, next, histogram),)*
                }
            }
        }

        /// The codec of one table, with the table's Huffman code and span length.
        #[derive(Debug)]
        pub(crate) enum AnyCodec {
            $($name($codec),)*
        }

        impl AnyCodec {
            /// Creates the codec of a table.
            pub(crate) fn new(codec: Codec, parameters: CodecParameters<'_>) -> AnyCodec {
                match codec {
                    $(Codec::$name => AnyCodec::$name(<$codec>::new(parameters)),)*
                }
            }
        }

        $(impl CodecVariant for $codec {
            #[inline(always)]
            fn from_any(any: &AnyCodec) -> Option<&$codec> {
                match any {
                    AnyCodec::$name(codec) => Some(codec),
                    _ => None,
                }
            }
        })*

        /// Evaluates an expression with the concrete codec type of a table. So the codec is matched once, before
        /// any loop in the expression.
        macro_rules! with_codec {
            ($d any:expr, $d codec:ident => $d call:expr) => {
                match $d any {
                    $($crate::codec::AnyCodec::$name($d codec) => $d call,)*
                }
            };
        }
    };
}

// A new codec needs one entry here and one file.
codecs! {
    $
    /// The codec of the paper by Manku, Jain and Das Sarma: Huffman code of the position of the first bit that
    /// differs from the predecessor, then the bits after it.
    #[default]
    FirstDifference: FirstDifference,
    /// Huffman code of the position of the top bit of the difference to the predecessor, then the bits
    /// after it. Gives the smallest tables of random fingerprints.
    Gap: Gap,
    /// Elias-Fano code for each block: a look-up goes straight to the fingerprints that it needs, and decodes none
    /// before them.
    EliasFano: EliasFano,
    /// If few bits differ from an earlier fingerprint: Huffman code of the number of these bits and of the first one's
    /// position, then the positions of the others. Otherwise like [`Codec::Gap`]. Gives the smallest tables if many
    /// fingerprints are near one another.
    AllDifferences: AllDifferences,
    /// The first bits of each fingerprint in cache lines that are addressed by arithmetic, the other bits in blocks: a
    /// look-up of a prefix that no fingerprint has reads one cache line. Gives the fastest queries up to distance 6. At 8 and
    /// more, and if many fingerprints are near one another, `elias-fano` is faster.
    PrefixLines: PrefixLinesCodec,
}
#[expect(
    clippy::single_component_path_imports,
    reason = "without it the name is known in this module alone"
)]
pub(crate) use with_codec;

impl Codec {
    /// Default block size of a table, in bytes, for fingerprints of `bits` bits. Blocks of this size are small enough for fast
    /// look-ups, and large enough for a small block index: less than 0.1 byte for each fingerprint of the table.
    /// `benches/history/block-size.md` has the measurements.
    pub fn default_block_size(self, bits: u32) -> u32 {
        self.spec().default_block_sizes[usize::from(bits > 64)]
    }

    /// Default number of fingerprints from one restart point (a fingerprint where decoding can start) to the next,
    /// for a table of `fingerprints` fingerprints. `None` if the codec has no restart points.
    pub(crate) fn default_span(self, fingerprints: u64) -> Option<u16> {
        self.spec()
            .default_spans
            .map(|spans| spans[usize::from(fingerprints >= format::LARGE_TABLE_FINGERPRINTS)])
    }

    /// Whether the codec's blocks are divided into spans: sequences of fingerprints that are decoded from their
    /// start.
    pub(crate) fn has_spans(self) -> bool {
        self.spec().default_spans.is_some()
    }

    /// Number of Huffman symbols for fingerprints of `bits` bits: the header of a table has one code length for each.
    pub(crate) fn alphabet_size(self, bits: u32) -> usize {
        (self.spec().alphabet_size)(bits)
    }

    /// Number that identifies the codec in files.
    pub(crate) fn number(self) -> u8 {
        self.spec().number
    }

    /// Returns the codec that `number` identifies in a file, or an error if the number is unknown.
    pub(crate) fn from_number(number: u8) -> Result<Codec, Damage> {
        Codec::ALL.into_iter().find(|codec| codec.number() == number).ok_or(Damage::Field {
            name: "codec",
            found: u64::from(number),
            expected: "the number of a codec that this version knows",
        })
    }

    /// Name of the codec on the command line and in reports.
    pub fn name(self) -> &'static str {
        self.spec().name
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
        find_by_name("codec", &Codec::ALL.map(|codec| (codec, codec.name())), name)
    }
}

/// A codec type that is a variant of [`AnyCodec`].
pub(crate) trait CodecVariant: Sized {
    /// Returns the codec in `any`, or `None` if it has another type.
    fn from_any(any: &AnyCodec) -> Option<&Self>;
}

#[cfg(test)]
mod tests;
