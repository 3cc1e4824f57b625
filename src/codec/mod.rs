//! Codecs: how the fingerprints of a block are coded (`format-spec/table.md`, "Blocks").
//!
//! | codec | what is coded | bits per random fingerprint |
//! |---|---|---|
//! | `first-difference` | position of the first bit that differs from the predecessor, then the bits after it | 64 - log2 n + 3.40 |
//! | `gap` | position of the top bit of the difference to the predecessor, then the bits after it | 64 - log2 n + 1.52 |
//! | `elias-fano` | upper bits in unary, lower bits at fixed width | 64 - log2 n + 2.0 |
//! | `all-differences` | position of the first differing bit and number of later ones, then their positions; as `gap` if they are many | 64 - log2 n + 1.52 |

mod all_differences;
mod block;
mod difference;
mod elias_fano;
mod spans;
mod symbol_counts;
mod symbols;

use std::fmt;
use std::str::FromStr;

use self::all_differences::AllDifferences;
pub(crate) use self::block::{BlockCodec, BlockHeader, Near, Range};
use self::block::{CodecKind, Facts};
use self::difference::{FirstDifference, Gap};
use self::elias_fano::EliasFano;
pub(crate) use self::symbol_counts::SymbolCounts;
pub use self::symbols::Coding;
use self::symbols::Counts;
use crate::error::{Damage, Error, one_of};
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
            /// Code, span and block size come from the table's header.
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

// A new codec is a line here, and a file.
codecs! {
    $
    /// The paper's: Huffman code of the position of the first bit that differs from the predecessor, then
    /// the bits after it.
    #[default]
    FirstDifference: FirstDifference,
    /// Huffman code of the position of the top bit of the difference to the predecessor, then the bits
    /// after it. The smallest.
    Gap: Gap,
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

impl Codec {
    /// The default block size of a table, in bytes, for fingerprints of `bits` bits. It keeps look-ups short, and the block
    /// index (a fingerprint a block) under 0.1 byte a fingerprint. Measured in `benches/history/block-size.md`.
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
        one_of("codec", &Codec::ALL.map(|codec| (codec, codec.name())), name)
    }
}

/// One of the choices of [`AnyCodec`].
pub(crate) trait Choice: Sized {
    /// The codec of a table, if it is this one.
    fn of(any: &AnyCodec) -> Option<&Self>;
}

#[cfg(test)]
mod tests;
