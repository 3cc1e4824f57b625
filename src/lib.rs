//! simstore keeps document fingerprints (simhashes) on disk, compressed, and answers, exactly: which stored
//! fingerprints are within k bits of this one?
//!
//! The method is that of G. S. Manku, A. Jain and A. Das Sarma, "Detecting Near-Duplicates for Web Crawling"
//! (WWW 2007): several copies of the set, each under a bit permutation of its own, sorted, and written as
//! compressed blocks of which a look-up reads only those that it needs.
//!
//! # Building and asking
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
//! [`Snapshot::batch_query`] asks for many fingerprints at once, by reading the store once whatever their number.
//! A [`Snapshot`] is `Send + Sync`, and its reads are concurrent. A [`Builder`] takes any number of fingerprints
//! in bounded memory; the store appears when it is complete and durable, or not at all.
//!
//! # A store that moves on
//!
//! A [`Store`] takes inserts and deletes, by a write-ahead log, while it is queried: [`Store::insert_if_new`] is one step
//! whatever other threads do, a [`Transaction`] is all or nothing, and a [`Store::snapshot`] stays as it is. What was
//! acknowledged as [`Durability::Sync`] survives a loss of power.
//!
//! # Above it
//!
//! The package `simstore-text` makes fingerprints of documents, in Chinese, English or any other language;
//! `simstore-corpus` reads documents and fingerprints from files; `simstore-cli` is the command line `simstore`.
//!
//! # Below the front door
//!
//! [`join`] finds all pairs inside one set, [`plan`] says which tables a set is kept in, checked to miss nothing,
//! [`store::salvage`](store::salvage()) makes another store of what is intact of a damaged one, and [`raw`] has the tables
//! themselves. The files are specified in the folder `format-spec`.

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
/// Safe code that is compiled for several processors, of which the best one is chosen at run time.
pub mod processor {
    pub use crate::kernels::{Work, dispatch};
}
