//! An exact, compressed, on-disk index of document fingerprints.

mod error;
mod fingerprint;

pub use crate::error::{Damage, Error, Result};
pub use crate::fingerprint::Fingerprint;

#[cfg(feature = "corpus")]
pub mod corpus;
#[cfg(feature = "text")]
pub mod text;
