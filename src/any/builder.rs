//! Builders of any width.

use std::path::Path;

use super::fit::fit;
use super::forward::forward;
use super::{AnySnapshot, AnyWidth, Width};
use crate::error::Result;
use crate::options::BuildOptions;
use crate::store::Builder;

/// A [`Builder`] of any width.
pub type AnyBuilder = AnyWidth<Builder<u64>, Builder<u128>>;

impl AnyBuilder {
    /// [`Builder::create`], of a store of 64 or 128 bits.
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`](crate::Error::BadArgument) for any other width.
    pub fn create(path: &Path, bits: u32, options: BuildOptions) -> Result<Self> {
        Ok(match Width::of(bits)? {
            Width::Bits64(()) => AnyBuilder::Bits64(Builder::create(path, options)?),
            Width::Bits128(()) => AnyBuilder::Bits128(Builder::create(path, options)?),
        })
    }

    /// [`Builder::finish`].
    ///
    /// # Errors
    /// As there.
    pub fn finish(self) -> Result<AnySnapshot> {
        Ok(match self {
            AnyBuilder::Bits64(one) => AnySnapshot::Bits64(one.finish()?),
            AnyBuilder::Bits128(one) => AnySnapshot::Bits128(one.finish()?),
        })
    }

    forward! { Builder:
        pub fn insert(&mut self, ?fingerprint, id: u64) -> Result<()>;
        pub fn insert_named(&mut self, ?fingerprint, id: u64, name: &str) -> Result<()>;
        pub fn note(&mut self, id: u64, note: &[u8]) -> Result<()>;
    }
}
