//! How small a set of fingerprints becomes: by each codec of a store, and by other methods.
//!
//! The codecs' figures measure whole table files, with headers, checksums and the block index. The others are computed for the
//! bare sorted sequence, which gives no random access. The floor is the minimum for a set of as many random fingerprints, log2
//! C(2^bits, n) / n. Real fingerprints are clustered, so an adaptive codec can go below it.
//!
//! ```
//! use simstore_corpus::ratio::{compression_ratios, RatioOptions};
//!
//! let fingerprints: Vec<u64> = (0..10_000).map(|i| i * 1_844_674_407_370_955).collect();
//! let ratios = compression_ratios(fingerprints, &RatioOptions::default(), &())?;
//! let smallest = ratios.sizes.iter().min_by_key(|size| size.bytes).unwrap();
//! println!("{}: {:.2} bits each", smallest.method, smallest.bits_per_fingerprint);
//! # Ok::<(), simstore::Error>(())
//! ```

use std::fmt;

use rayon::prelude::*;
use simstore::plan::{TablePlan, floor_bits_per_fingerprint};
use simstore::raw::{Permutation, Table};
use simstore::threads::ensure_pool;
use simstore::{Codec, Error, Fingerprint, Result};

use crate::watch::{Step, Watch};

mod rivals;

/// A way to store a sorted set of distinct fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A table of a store: headers, checksums and block index included.
    Table(Codec),
    /// The whole set as one Elias-Fano sequence, with the best split into upper and lower bits.
    EliasFano,
    /// Golomb-Rice codes of the gaps with the best parameter.
    Rice,
    /// zstd, of this level, on little-endian words.
    Zstd(i32),
    /// zstd on the gaps as little-endian words.
    ZstdGaps(i32),
    /// zstd on the gaps as variable-length integers, seven bits a byte.
    ZstdVarints(i32),
    /// Little-endian words.
    Raw,
}

impl Method {
    /// All, with zstd of a level.
    pub fn all(zstd_level: i32) -> [Method; 10] {
        [
            Method::Table(Codec::FirstDifference),
            Method::Table(Codec::Gap),
            Method::Table(Codec::EliasFano),
            Method::Table(Codec::AllDifferences),
            Method::EliasFano,
            Method::Rice,
            Method::Zstd(zstd_level),
            Method::ZstdGaps(zstd_level),
            Method::ZstdVarints(zstd_level),
            Method::Raw,
        ]
    }

    /// The size of a sorted set, in bytes.
    fn bytes<F: Fingerprint>(self, sorted: &[F], block_size: Option<u32>, step: &Step<'_>) -> Result<u64> {
        match self {
            Method::Table(codec) => {
                let plan = TablePlan { permutation: Permutation::identity(), prefix_bits: 0, flips: 0 };
                Ok(Table::encode(sorted, &plan, codec, block_size)?.len() as u64)
            }
            Method::EliasFano => Ok(rivals::elias_fano(sorted)),
            Method::Rice => Ok(rivals::rice(sorted)),
            Method::Zstd(level) => rivals::zstd_raw(sorted, level, step),
            Method::ZstdGaps(level) => rivals::zstd_gaps(sorted, level, step),
            Method::ZstdVarints(level) => rivals::zstd_varints(sorted, level, step),
            Method::Raw => Ok(size_of_val(sorted) as u64),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Method::Table(codec) => write!(f, "simstore {codec}"),
            Method::EliasFano => write!(f, "Elias-Fano"),
            Method::Rice => write!(f, "Rice-coded gaps"),
            Method::Zstd(level) => write!(f, "zstd -{level}"),
            Method::ZstdGaps(level) => write!(f, "gaps + zstd -{level}"),
            Method::ZstdVarints(level) => write!(f, "varint gaps + zstd -{level}"),
            Method::Raw => write!(f, "raw"),
        }
    }
}

/// How sizes are measured.
#[derive(Clone, Debug)]
pub struct RatioOptions {
    /// The level of zstd, from 1 to 22.
    pub zstd_level: i32,
    /// Bytes of a block of the codecs, a power of two from 256 to 65536; `None`: by codec.
    pub block_size: Option<u32>,
}

impl Default for RatioOptions {
    fn default() -> Self {
        RatioOptions { zstd_level: 19, block_size: None }
    }
}

/// How small a set of fingerprints becomes.
#[derive(Clone, Debug, PartialEq)]
pub struct CompressionRatios {
    /// Fingerprints given.
    pub fingerprints: u64,
    /// Distinct ones: those that are stored.
    pub distinct: u64,
    /// Bits for each distinct one in the smallest file that any set of as many random fingerprints can have.
    pub floor: f64,
    /// The size by each method, in the order of [`Method::all`].
    pub sizes: Vec<MethodSize>,
}

/// The size of a set by one method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MethodSize {
    /// The method.
    pub method: Method,
    /// The size, in bytes.
    pub bytes: u64,
    /// Bits for each distinct fingerprint.
    pub bits_per_fingerprint: f64,
    /// That, over the floor.
    pub ratio_to_floor: f64,
}

/// Measures how small fingerprints become by each method; they may come in any order, and several times.
///
/// # Errors
/// [`Error::BadArgument`] without fingerprints, and for an option out of its range; [`Error::Cancelled`].
pub fn compression_ratios<F: Fingerprint>(
    mut fingerprints: Vec<F>,
    options: &RatioOptions,
    watch: &dyn Watch,
) -> Result<CompressionRatios> {
    ensure_pool()?;
    if !(1..=22).contains(&options.zstd_level) {
        let level = options.zstd_level;
        return Err(Error::BadArgument(format!("option `zstd_level` is {level}: expected 1 to 22")));
    }
    let count = fingerprints.len() as u64;
    fingerprints.par_sort_unstable();
    fingerprints.dedup();
    let distinct = fingerprints.len() as u64;
    if distinct == 0 {
        let reason = "the inputs have no fingerprints: nothing to compare";
        return Err(Error::BadArgument(reason.to_owned()));
    }
    let floor = floor_bits_per_fingerprint(F::BITS, distinct);
    let step = Step::new(watch, "methods");
    let measured = Method::all(options.zstd_level).into_par_iter().map(|method| {
        step.add(0)?;
        let bytes = method.bytes(&fingerprints, options.block_size, &step)?;
        step.add(1)?;
        let bits = bytes as f64 * 8.0 / distinct as f64;
        Ok(MethodSize { method, bytes, bits_per_fingerprint: bits, ratio_to_floor: bits / floor })
    });
    Ok(CompressionRatios {
        fingerprints: count,
        distinct,
        floor,
        sizes: measured.collect::<Result<Vec<MethodSize>>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_distinct_fingerprint_counts_once() {
        let fingerprints: Vec<u64> = (0..1000).map(|i| (i % 500) << 40).rev().collect();
        let ratios = compression_ratios(fingerprints, &RatioOptions::default(), &()).unwrap();
        assert_eq!((ratios.fingerprints, ratios.distinct, ratios.sizes.len()), (1000, 500, 10));
        let raw = ratios.sizes.last().unwrap();
        assert_eq!((raw.method, raw.bytes, raw.bits_per_fingerprint), (Method::Raw, 4000, 64.0));
        assert!((raw.ratio_to_floor * ratios.floor - 64.0).abs() < 1e-9);
        assert!(ratios.sizes[..9].iter().all(|size| size.bytes < 4000), "{ratios:?}");
    }

    #[test]
    fn nothing_and_bad_options_are_errors() {
        let measure =
            |fingerprints: &[u64], options| compression_ratios(fingerprints.to_vec(), &options, &());
        assert!(measure(&[], RatioOptions::default()).unwrap_err().to_string().contains("no fingerprint"));
        let odd = RatioOptions { block_size: Some(1000), ..RatioOptions::default() };
        assert!(matches!(measure(&[1], odd), Err(Error::BadArgument(_))));
        let high = RatioOptions { zstd_level: 23, ..RatioOptions::default() };
        assert!(measure(&[1], high).unwrap_err().to_string().contains("expected 1 to 22"));
    }
}
