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
pub mod join;
mod manifest;
mod map;
mod options;
mod permutation;
pub mod plan;
mod segment;
mod sort;
mod store;
mod table;
#[cfg(feature = "text")]
pub mod text;

pub use crate::codec::Codec;
pub use crate::error::{Damage, Error, Result};
pub use crate::fingerprint::Fingerprint;
pub use crate::map::Bytes;
pub use crate::options::{BuildOptions, BuildProgress, PlanChoice, ProgressCallback};
pub use crate::permutation::Permutation;
pub use crate::plan::floor_bits_per_fingerprint;
pub use crate::segment::{Entry, Match, Segment, Stats};
pub use crate::store::{Builder, Iter, Store, stored_bits};
pub use crate::table::{BlockInfo, Table, TableHeader, TableScan};
