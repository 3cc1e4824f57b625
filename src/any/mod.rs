//! Stores whose fingerprints have 64 or 128 bits, with the width chosen at run time. Services and bindings to
//! other languages need this.
//!
//! The methods take and return fingerprints as `u128`. If a fingerprint does not fit in a store of 64 bits,
//! they fail with [`Error::BadArgument`](crate::Error::BadArgument).
//!
//! The macro [`each_width!`](crate::each_width) runs an expression on the `Store<u64>` or `Store<u128>` inside. Use
//! it for operations of a store without a method here, and in inner loops, where the conversion of each fingerprint
//! would take too long.
//!
//! ```
//! use simstore::any::{AnySnapshot, AnyStore};
//! use simstore::StoreOptions;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("pages");
//! // Creates a store of 128 bits. If the store existed, its width would have to be 128.
//! let store = AnyStore::open(&path, Some(128), StoreOptions::default())?;
//! store.insert_named(0x0123_4567 << 96, 1, "https://example.org/")?;
//! drop(store);
//! let snapshot = AnySnapshot::open(&path)?;
//! assert_eq!(snapshot.bits(), 128);
//! assert_eq!(snapshot.query(0x0123_4566 << 96, 3)?[0].id, Some(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[macro_use]
mod width;
mod builder;
mod convert;
mod forward;
mod snapshot;
mod store;

pub use self::builder::AnyBuilder;
pub use self::snapshot::AnySnapshot;
pub use self::store::{AnyStore, AnyTransaction};
pub use self::width::{AnyFingerprints, AnyWidth, Width};
