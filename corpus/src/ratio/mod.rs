//! Measures the compressed size of a set of fingerprints, by each codec of a store and by other methods.
//!
//! Codecs are measured as whole table files, with headers, checksums and the block index. Other methods are measured on
//! the bare sorted sequence, without random access. The *floor* is the size of an optimal encoding of n distinct random
//! fingerprints: log2 C(2^bits, n) / n bits for each fingerprint. Real fingerprints are not random, but clustered, so an
//! adaptive codec can need less.
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
use simstore::plan::{TablePlan, min_bits_per_fingerprint};
use simstore::raw::{Permutation, Table};
use simstore::threads::ensure_pool;
use simstore::{Codec, Error, Fingerprint, Result};

use crate::observer::{Observer, Stage};

mod baselines;

/// A method to store a sorted set of distinct fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionMethod {
    /// Table of a store, compressed by this codec, with headers, checksums and block index.
    Table(Codec),
    /// The whole set as one Elias-Fano sequence, with the best split into upper and lower bits.
    EliasFano,
    /// Golomb-Rice codes of the gaps (differences of consecutive fingerprints), with the best parameter.
    Rice,
    /// zstd of this level, on the fingerprints as little-endian words.
    Zstd(i32),
    /// zstd of this level, on the gaps (differences of consecutive fingerprints) as little-endian words.
    ZstdGaps(i32),
    /// zstd of this level, on the gaps (differences of consecutive fingerprints) as variable-length integers of seven bits a
    /// byte.
    ZstdVarints(i32),
    /// The fingerprints as little-endian words, uncompressed.
    Raw,
}

impl CompressionMethod {
    /// Returns all methods that [`compression_ratios`] measures. The methods with zstd use the level `zstd_level`.
    pub fn all(zstd_level: i32) -> [CompressionMethod; 11] {
        [
            CompressionMethod::Table(Codec::FirstDifference),
            CompressionMethod::Table(Codec::Gap),
            CompressionMethod::Table(Codec::EliasFano),
            CompressionMethod::Table(Codec::AllDifferences),
            CompressionMethod::Table(Codec::PrefixLines),
            CompressionMethod::EliasFano,
            CompressionMethod::Rice,
            CompressionMethod::Zstd(zstd_level),
            CompressionMethod::ZstdGaps(zstd_level),
            CompressionMethod::ZstdVarints(zstd_level),
            CompressionMethod::Raw,
        ]
    }

    /// Compresses a sorted set of fingerprints by the method `self`, and returns the compressed size in bytes. Fails if the
    /// observer of `stage` cancels the job.
    fn bytes<F: Fingerprint>(self, sorted: &[F], block_size: Option<u32>, stage: &Stage<'_>) -> Result<u64> {
        match self {
            CompressionMethod::Table(codec) => {
                let plan = TablePlan { permutation: Permutation::identity(), prefix_bits: 0, flips: 0 };
                Ok(Table::encode(sorted, &plan, codec, block_size)?.len() as u64)
            }
            CompressionMethod::EliasFano => Ok(baselines::elias_fano(sorted)),
            CompressionMethod::Rice => Ok(baselines::rice(sorted)),
            CompressionMethod::Zstd(level) => baselines::zstd_raw(sorted, level, stage),
            CompressionMethod::ZstdGaps(level) => baselines::zstd_gaps(sorted, level, stage),
            CompressionMethod::ZstdVarints(level) => baselines::zstd_varints(sorted, level, stage),
            CompressionMethod::Raw => Ok(size_of_val(sorted) as u64),
        }
    }
}

impl fmt::Display for CompressionMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompressionMethod::Table(codec) => write!(f, "simstore {codec}"),
            CompressionMethod::EliasFano => write!(f, "Elias-Fano"),
            CompressionMethod::Rice => write!(f, "Rice-coded gaps"),
            CompressionMethod::Zstd(level) => write!(f, "zstd -{level}"),
            CompressionMethod::ZstdGaps(level) => write!(f, "gaps + zstd -{level}"),
            CompressionMethod::ZstdVarints(level) => write!(f, "varint gaps + zstd -{level}"),
            CompressionMethod::Raw => write!(f, "raw"),
        }
    }
}

/// Parameters of the compression methods that [`compression_ratios`] measures.
#[derive(Clone, Debug)]
pub struct RatioOptions {
    /// Level of zstd, from 1 to 22.
    pub zstd_level: i32,
    /// Block size of the codecs in bytes, a power of two from 256 to 65536. By default, it depends on the codec.
    pub block_size: Option<u32>,
}

impl Default for RatioOptions {
    fn default() -> Self {
        RatioOptions { zstd_level: 19, block_size: None }
    }
}

/// Compressed sizes of one set of fingerprints, by each compression method.
#[derive(Clone, Debug, PartialEq)]
pub struct CompressionRatios {
    /// Number of given fingerprints, including repeats.
    pub fingerprints: u64,
    /// Number of distinct fingerprints. Each method stores each of them once.
    pub distinct: u64,
    /// Floor: size of an optimal encoding of [`distinct`](Self::distinct) random fingerprints, in bits for each fingerprint.
    /// See the [module](self).
    pub floor: f64,
    /// Size by each method, in the order of [`CompressionMethod::all`].
    pub sizes: Vec<MethodSize>,
}

/// Size of the distinct fingerprints, compressed by one method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MethodSize {
    /// Method that compressed the fingerprints.
    pub method: CompressionMethod,
    /// Compressed size of all distinct fingerprints, in bytes.
    pub bytes: u64,
    /// Compressed size in bits, divided by the number of distinct fingerprints.
    pub bits_per_fingerprint: f64,
    /// [`bits_per_fingerprint`](Self::bits_per_fingerprint), divided by [`CompressionRatios::floor`].
    pub ratio_to_floor: f64,
}

/// Measures the compressed size of fingerprints by each method. The fingerprints may be in any order, with repeats.
///
/// # Errors
/// [`Error::BadArgument`] if there are no fingerprints, or an option is out of its range. [`Error::Cancelled`] if the
/// observer cancels.
pub fn compression_ratios<F: Fingerprint>(
    mut fingerprints: Vec<F>,
    options: &RatioOptions,
    observer: &dyn Observer,
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
    let floor = min_bits_per_fingerprint(F::BITS, distinct);
    let stage = Stage::new(observer, "methods");
    let measured = CompressionMethod::all(options.zstd_level).into_par_iter().map(|method| {
        stage.add(0)?;
        let bytes = method.bytes(&fingerprints, options.block_size, &stage)?;
        stage.add(1)?;
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
        let fingerprints: Vec<u64> = (0..40_000).map(|i| (i % 20_000) << 49).rev().collect();
        let options = RatioOptions::default();
        let ratios = compression_ratios(fingerprints, &options, &()).unwrap();
        assert_eq!((ratios.fingerprints, ratios.distinct), (40_000, 20_000));
        let methods: Vec<CompressionMethod> = ratios.sizes.iter().map(|size| size.method).collect();
        assert_eq!(methods, CompressionMethod::all(options.zstd_level));
        let (raw, others) = ratios.sizes.split_last().unwrap();
        assert_eq!(
            (raw.method, raw.bytes, raw.bits_per_fingerprint),
            (CompressionMethod::Raw, 160_000, 64.0)
        );
        assert!((raw.ratio_to_floor * ratios.floor - 64.0).abs() < 1e-9);
        assert!(others.iter().all(|size| size.bytes < 160_000), "{ratios:?}");
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
