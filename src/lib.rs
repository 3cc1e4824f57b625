//! An exact, compressed, on-disk index of document fingerprints.

mod bits;
mod codec;
#[cfg(feature = "corpus")]
pub mod corpus;
mod error;
mod fingerprint;
mod format;
pub mod fs;
mod huffman;
mod map;
mod permutation;
pub mod plan;
mod table;
#[cfg(feature = "text")]
pub mod text;

pub use crate::codec::Codec;
pub use crate::error::{Damage, Error, Result};
pub use crate::fingerprint::Fingerprint;
pub use crate::map::Bytes;
pub use crate::permutation::Permutation;
pub use crate::table::{BlockInfo, Table, TableHeader, TableScan};
