//! Builders of stores whose fingerprints have 64 or 128 bits.

use std::path::Path;

use super::convert::to_width;
use super::forward::forward;
use super::{AnySnapshot, AnyWidth, Width};
use crate::error::Result;
use crate::options::BuildOptions;
use crate::store::Builder;

/// A [`Builder`] of a store whose fingerprints have 64 or 128 bits.
pub type AnyBuilder = AnyWidth<Builder<u64>, Builder<u128>>;

impl AnyBuilder {
    /// Creates a builder, like [`Builder::create`]. `bits` is the width of the fingerprints: 64 or 128.
    ///
    /// # Errors
    /// The errors of [`Builder::create`]; [`Error::BadArgument`](crate::Error::BadArgument) if `bits` is
    /// neither 64 nor 128.
    pub fn create(path: &Path, bits: u32, options: BuildOptions) -> Result<Self> {
        Ok(match Width::from_bits(bits)? {
            Width::Bits64(()) => AnyBuilder::Bits64(Builder::create(path, options)?),
            Width::Bits128(()) => AnyBuilder::Bits128(Builder::create(path, options)?),
        })
    }

    /// Completes the store, like [`Builder::finish`].
    ///
    /// # Errors
    /// The errors of [`Builder::finish`].
    pub fn finish(self) -> Result<AnySnapshot> {
        Ok(match self {
            AnyBuilder::Bits64(one) => AnySnapshot::Bits64(one.finish()?),
            AnyBuilder::Bits128(one) => AnySnapshot::Bits128(one.finish()?),
        })
    }

    forward! { Builder:
        pub fn insert(&mut self, ?fingerprint, id: u64) -> Result<()>;
        pub fn insert_named(&mut self, ?fingerprint, id: u64, name: &str) -> Result<()>;
        pub fn set_note(&mut self, id: u64, note: &[u8]) -> Result<()>;
    }
}
