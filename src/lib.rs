//! simstore keeps document fingerprints (simhashes) compressed on disk, and finds all stored fingerprints within k
//! bits of a query. The answers are exact.
//!
//! G. S. Manku, A. Jain and A. Das Sarma describe the method in "Detecting Near-Duplicates for Web Crawling" (WWW
//! 2007). A store has several copies of the set. Each copy has its own bit permutation, is sorted, and is written as
//! compressed blocks. A query reads only the blocks that it needs.
//!
//! # Building and querying
//!
//! ```
//! use simstore::{BuildOptions, Builder, Snapshot};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("pages");
//! let mut builder = Builder::<u64>::create(&path, BuildOptions::default())?;
//! builder.insert_named(0x6a09_e667_f3bc_c908, 1, "https://example.org/a")?;
//! builder.insert_named(0x6a09_e667_f3bc_c90b, 2, "https://example.org/a?print=1")?;
//! builder.insert_named(0xbb67_ae85_84ca_a73b, 3, "https://example.org/b")?;
//! builder.finish()?;
//!
//! let store = Snapshot::<u64>::open(&path)?;
//! let matches = store.query(0x6a09_e667_f3bc_c909, 3)?;
//! assert_eq!(matches.len(), 2);
//! assert_eq!(store.name(matches[0].id.unwrap())?.as_deref(), Some("https://example.org/a"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Snapshot::batch_query`] answers many queries and reads the store once. A [`Snapshot`] is `Send + Sync`, and its
//! reads are concurrent. A [`Builder`] takes any number of fingerprints in bounded memory; the store appears when it is
//! complete and durable, or not at all.
//!
//! # Live stores
//!
//! A [`Store`] takes inserts and deletes, by a write-ahead log, while it is queried. [`Store::insert_if_new`] is atomic, a
//! [`Transaction`] is all or nothing, and a [`Store::snapshot`] does not change. Writes acknowledged with
//! [`Durability::Sync`] survive a loss of power.
//!
//! # Packages above the engine
//!
//! `simstore-text` makes fingerprints of documents, in Chinese, English or any other language. `simstore-io` reads and
//! writes documents in files. `simstore-corpus` builds stores of them, and `simstore-dedup` removes near-duplicates from
//! a corpus. `simstore-cli` is the command line `simstore`.
//!
//! # Modules for special tasks
//!
//! [`join`] finds all pairs inside one set. [`plan`] chooses the tables of a store, and checks that they miss no pair.
//! [`store::salvage`](store::salvage()) copies the intact part of a damaged store into a new one. [`raw`] gives access to
//! the tables. The folder `format-spec` specifies the files.

pub mod any;
pub mod batch;
mod bits;
mod codec;
mod compaction;
pub mod error;
mod fingerprint;
mod format;
#[doc(hidden)]
pub mod fs;
mod huffman;
pub mod join;
mod kernels;
mod manifest;
mod map;
mod memtable;
mod options;
mod permutation;
pub mod plan;
pub mod progress;
mod radix;
mod segment;
#[doc(hidden)]
pub mod spill;
pub mod store;
mod table;
#[doc(hidden)]
pub mod threads;
mod wal;

pub use crate::codec::Codec;
pub use crate::error::{Error, Result};
pub use crate::fingerprint::Fingerprint;
pub use crate::options::{BuildOptions, Durability, Purpose, StoreOptions};
pub use crate::plan::PlanChoice;
pub use crate::segment::{Entry, Match};
pub use crate::store::{Builder, Insertion, Snapshot, Store, Transaction};

/// The files of the segments of a store, and the bytes in them. For tools that look into stores.
pub mod raw {
    pub use crate::codec::Coding;
    pub use crate::map::Bytes;
    pub use crate::permutation::Permutation;
    pub use crate::segment::Segment;
    pub use crate::table::{BlockInfo, Table, TableHeader, TableScan};
}

#[doc(hidden)]
/// Safe code, compiled for several instruction sets; the best one is chosen at run time.
pub mod processor {
    pub use crate::kernels::{Work, dispatch};
}
