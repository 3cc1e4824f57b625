//! A compressed on-disk index of document fingerprints (simhashes). It finds all stored fingerprints within k
//! bits of a query, and the answers are exact.
//!
//! Similar documents have fingerprints that differ in few bits. So near-duplicates of a document are the
//! stored fingerprints at a small Hamming distance from its own. A linear scan finds them too, but compares
//! every stored fingerprint. This crate reads a few compressed blocks per query instead.
//!
//! The method is from G. S. Manku, A. Jain and A. Das Sarma, "Detecting Near-Duplicates for Web Crawling"
//! (WWW 2007). A store keeps several *tables*. Each table holds all fingerprints under its own permutation of
//! the bits, sorted and compressed. A query looks up an exact prefix in each table and compares the few
//! fingerprints that share it.
//!
//! Fingerprints are `u64` or `u128` ([`Fingerprint`]). If the width is only known at run time, see the module
//! [`any`].
//!
//! # Build a store, then query it
//!
//! A [`Builder`] takes `(fingerprint, id)` pairs in any order, and optionally a name for each id. It needs a
//! bounded amount of memory for any number of pairs, because it sorts in runs on disk. The store appears
//! atomically: [`Builder::finish`] makes it visible only when it is complete and durable.
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
//! A [`Snapshot`] is `Send + Sync`. Any number of threads can query it at the same time. [`BuildOptions`]
//! sets the largest distance of queries, the codec and the tables; the defaults suit distance 3.
//!
//! # Query many fingerprints at once
//!
//! [`Snapshot::batch_query`] answers a batch of queries on all cores. For large batches it reads the store
//! once, instead of looking up each query.
//!
//! ```
//! # use simstore::{BuildOptions, Builder};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("pages");
//! # let mut builder = Builder::<u64>::create(&path, BuildOptions::default())?;
//! # builder.insert(0b1111_0000, 7)?;
//! # let store = builder.finish()?;
//! let matches = store.batch_query(&[0b1111_0001, u64::MAX], 3)?;
//! assert_eq!((matches[0].query, matches[0].found.id), (0, Some(7)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Insert and delete while querying
//!
//! A [`Store`] is a log-structured merge tree. Writes go to a write-ahead log and a memtable. Background
//! threads flush memtables to segments and merge segments. Queries see each write as soon as it returns.
//!
//! ```
//! use simstore::{Durability, Insertion, Store, StoreOptions};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("pages");
//! let store = Store::<u64>::open(&path, StoreOptions::default())?;
//! // Inserts the document only if the store has none within the store's distance.
//! assert!(matches!(store.insert_if_new(0b1111, 1)?, Insertion::Inserted));
//! assert!(matches!(store.insert_if_new(0b1110, 2)?, Insertion::DuplicateOf(_)));
//!
//! // A snapshot does not change: it has none of the later writes.
//! let before = store.snapshot();
//! let mut transaction = store.transaction();
//! transaction.insert(u64::MAX, 3);
//! transaction.delete(0b1111, 1);
//! transaction.commit(Durability::Sync)?;
//! assert_eq!((before.query(u64::MAX, 3)?.len(), store.query(u64::MAX, 3)?.len()), (0, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Transaction`] is applied atomically, also if the process or the machine crashes. [`Durability`] sets
//! whether a write is acknowledged before or after it is on the disk. Writes with [`Durability::Sync`]
//! survive a power failure.
//!
//! One process at a time can write. Other processes can read the same store with [`Snapshot::open`];
//! [`Snapshot::refresh`] returns a newer snapshot, with the writes since.
//!
//! # Find all near pairs of a set
//!
//! The module [`join`] finds all pairs within a distance inside one set of fingerprints, in memory, on disk
//! or divided between machines. It can also connect the pairs to clusters.
//!
//! ```
//! use simstore::join::{IndexPair, self_join};
//!
//! let pairs = self_join::<u64>(&[0b0000, 0b0111, 0b1111], 3)?;
//! assert_eq!(pairs, [IndexPair { a: 0, b: 1, distance: 3 }, IndexPair { a: 1, b: 2, distance: 1 }]);
//! # Ok::<(), simstore::Error>(())
//! ```
//!
//! # Choose the tables
//!
//! More tables make queries faster and the store larger. By default a cost model chooses the tables of each
//! segment, by its size. The module [`plan`] lists the plans to choose from, estimates their cost, and checks
//! that a plan is *complete*: that no stored fingerprint within the distance is missed. An incomplete
//! [`Plan`](plan::Plan) cannot be constructed.
//!
//! # Errors and damaged files
//!
//! All fallible functions return [`Error`]. Damaged files cause an error that names the file and the offset,
//! never a panic or a wrong answer. [`Snapshot::verify`] checks all bytes of a store.
//! [`store::salvage`](store::salvage()) copies the intact part of a damaged store to a new one. The module
//! [`raw`] gives access to the files of a store. The folder `format-spec` specifies them.
//!
//! # Packages above this one
//!
//! This crate knows fingerprints only, not documents:
//!
//! - `simstore-text` computes fingerprints of texts in Chinese, English and other languages.
//! - `simstore-io` reads and writes documents in files of many formats.
//! - `simstore-corpus` builds and updates stores from such files.
//! - `simstore-dedup` removes near-duplicates from a corpus.
//! - `simstore-cli` is the command line `simstore`.

pub mod any;
pub mod batch;
mod bits;
mod codec;
mod compaction;
pub mod error;
mod file_bytes;
mod fingerprint;
mod format;
#[doc(hidden)]
pub mod fs;
mod huffman;
pub mod join;
mod manifest;
mod memtable;
mod options;
mod permutation;
pub mod plan;
mod prefix_lines;
pub mod progress;
mod radix;
mod run_sample;
mod segment;
#[doc(hidden)]
pub mod simd;
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
pub use crate::options::{BuildOptions, CodecObjective, Durability, StoreOptions};
pub use crate::plan::PlanChoice;
pub use crate::segment::{Entry, Match};
pub use crate::store::{Builder, Insertion, Snapshot, Store, Transaction};

/// Runs the examples in `docs/embedding.md` as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/embedding.md")]
struct Embedding;

/// Access to the segments, tables and blocks of a store, for tools that inspect its files.
pub mod raw {
    pub use crate::codec::Coding;
    pub use crate::file_bytes::Bytes;
    pub use crate::permutation::Permutation;
    pub use crate::segment::Segment;
    pub use crate::table::{BlockInfo, PrefixLineCounts, ProbeTrace, Table, TableHeader, TableScan};
}
