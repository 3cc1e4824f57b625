//! Writable stores whose fingerprints have 64 or 128 bits, and their transactions.

use std::path::Path;

use super::convert::{to_width, widen_insertion, widen_matches};
use super::forward::forward;
use super::{AnySnapshot, AnyWidth, Width};
use crate::error::{Error, Result};
use crate::options::{Durability, StoreOptions};
use crate::segment::Match;
use crate::store::{CompactOptions, Insertion, Store, Transaction, is_store, stored_bits};

/// A [`Store`] whose fingerprints have 64 or 128 bits.
pub type AnyStore = AnyWidth<Store<u64>, Store<u128>>;

impl AnyStore {
    /// Opens or creates a store, like [`Store::open`]. `bits` is the width of the store's fingerprints: 64 or 128.
    /// If `bits` is `None`, an existing store may have either width, and a new store gets 64 bits.
    ///
    /// # Errors
    /// The errors of [`Store::open`]; [`Error::Width`] if the store has another width than `bits`, and
    /// [`Error::BadArgument`] if `bits` is neither 64 nor 128.
    pub fn open(path: &Path, bits: Option<u32>, options: StoreOptions) -> Result<Self> {
        let bits = match bits {
            None if is_store(path) => stored_bits(path)?,
            requested => requested.unwrap_or(64),
        };
        Ok(match Width::from_bits(bits)? {
            Width::Bits64(()) => AnyStore::Bits64(Store::open(path, options)?),
            Width::Bits128(()) => AnyStore::Bits128(Store::open(path, options)?),
        })
    }

    /// Deletes pairs of a fingerprint and an id, like [`Store::delete_all`]. Returns for each pair whether it was
    /// stored.
    ///
    /// # Errors
    /// The errors of [`Store::delete_all`]; [`Error::BadArgument`] if a fingerprint does not fit in the
    /// store's width.
    pub fn delete_all(&self, pairs: &[(u128, u64)], durability: Durability) -> Result<Vec<bool>> {
        each_width!(self, one => {
            let fitted = pairs.iter().map(|&(fingerprint, id)| Ok((to_width(fingerprint)?, id)));
            one.delete_all(&fitted.collect::<Result<Vec<_>>>()?, durability)
        })
    }

    /// Starts a transaction, like [`Store::transaction`].
    pub fn transaction(&self) -> AnyTransaction<'_> {
        self.as_ref().map(Store::transaction, Store::transaction)
    }

    /// Returns a snapshot of the store, like [`Store::snapshot`].
    pub fn snapshot(&self) -> AnySnapshot {
        self.as_ref().map(Store::snapshot, Store::snapshot)
    }

    forward! { Store:
        pub fn insert(&self, ?fingerprint, id: u64) -> Result<()>;
        pub fn insert_named(&self, ?fingerprint, id: u64, name: &str) -> Result<()>;
        pub fn insert_if_new(&self, ?fingerprint, id: u64) -> Result<Insertion<u128>> => widen_insertion;
        pub fn delete(&self, ?fingerprint, id: u64) -> Result<bool>;
        pub fn query(&self, ?fingerprint, distance: u32) -> Result<Vec<Match<u128>>> => widen_matches;
        pub fn sync(&self) -> Result<()>;
        pub fn flush(&self) -> Result<()>;
        pub fn compact_with(&self, options: &CompactOptions) -> Result<()>;
        pub fn wait_for_background(&self) -> Result<()>;
        pub fn torn_tail(&self) -> Option<&Error>;
    }
}

/// A [`Transaction`] of an [`AnyStore`].
pub type AnyTransaction<'a> = AnyWidth<Transaction<'a, u64>, Transaction<'a, u128>>;

impl AnyTransaction<'_> {
    forward! { Transaction:
        pub fn insert(&mut self, ?fingerprint, id: u64) -> Result<()> => Ok;
        pub fn insert_named(&mut self, ?fingerprint, id: u64, name: &str) -> Result<()>;
        pub fn delete(&mut self, ?fingerprint, id: u64) -> Result<()> => Ok;
        pub fn set_metadata(&mut self, key: &str, value: &[u8]) -> Result<()>;
        pub fn set_note(&mut self, id: u64, note: &[u8]) -> Result<()>;
        pub fn bytes(&self) -> usize;
        pub fn commit(self, durability: Durability) -> Result<()>;
        pub fn commit_if_new(self, durability: Durability) -> Result<Insertion<u128>> => widen_insertion;
    }
}
