//! Stores whose width is known only when the program runs, as that of a service or of another language.
//!
//! Fingerprints are `u128` here, whatever the width; one that does not fit into a store of 64 bits is refused. What else is to
//! be done with a store, or many times, is done with what the variants hold: [`each_width!`](crate::each_width) does it with either.
//!
//! ```
//! use simstore::any::{AnySnapshot, AnyStore};
//! use simstore::StoreOptions;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("pages");
//! // One of 128 bits is made; a store that is there has the width that it has.
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
mod fit;
mod forward;
mod snapshot;
mod store;

pub use self::builder::AnyBuilder;
pub use self::snapshot::AnySnapshot;
pub use self::store::{AnyStore, AnyTransaction};
pub use self::width::{AnyFingerprints, AnyWidth, Width};
